import { hour, type Instant, minute } from '../../base/time.ts'
import type { NextPoint } from './due.ts'

/** State that decides the next action of a watch. */
export interface WatchState {
  /** Next points of the series; their polls are put off as far as the budget requires it. */
  readonly points: readonly NextPoint[]
  /** When the registry is to be polled; null where it is not watched. */
  readonly registry: Instant | null
  /** Since when the lake has moved on from its views; null where it has not. */
  readonly untidy: Instant | null
  /** Not before these instants: an API that failed, a job that found another at work. */
  readonly rests: Readonly<Record<WatchPart, Instant>>
  /**
   * When each series was asked in vain; while this is not null a single one finds out whether somebody answers again.
   */
  readonly tried: ReadonlyMap<string, Instant> | null
  /** Nothing before this instant: a commit a minute is enough. */
  readonly free: Instant
}

/** A part of a watch that can fail by itself. */
export type WatchPart = 'metrics' | 'registry' | 'tidy'

/** Next action of a watch: a step, or a wait. */
export type WatchAction = WatchStep | { readonly kind: 'wait'; readonly until: Instant }

/** A step of a watch: a request, or work on the lake (features, merges, views). */
export type WatchStep = WatchRequest | { readonly kind: 'tidy' }

/** An action that requests something from an API: points of some series, by id, or the feed of the registry. */
export type WatchRequest =
  | { readonly kind: 'metrics'; readonly series: ReadonlySet<string> }
  | { readonly kind: 'registry' }

/** Views are made anew where nothing is to be asked for so long, */
const idle = 2 * minute
/** or once they are so old. */
const longestUntidy = 15 * minute
/** Whatever is not due within this time is looked at again then: other jobs may have changed the lake. */
const longestWait = hour

/** From state and instant to the next action; pure. What has been due for longest comes first. */
export function nextAction({ points, registry, untidy, rests, tried, free }: WatchState, now: Instant): WatchAction {
  const fetchAt = Math.max(rests.metrics, firstPoll(points))
  const registryAt = Math.max(rests.registry, registry ?? Infinity)
  const asking = Math.min(fetchAt, registryAt)
  const quiet = Math.max(now, free) + idle <= asking
  const tidyAt = untidy === null ? Infinity : Math.max(rests.tidy, quiet ? untidy : untidy + longestUntidy)
  const soonest = Math.max(free, Math.min(asking, tidyAt))
  if (soonest > now) return { kind: 'wait', until: Math.min(soonest, now + longestWait) }
  if (fetchAt <= Math.min(registryAt, tidyAt, now)) {
    const due = points.filter(({ poll }) => poll <= now)
    const ids = due.map(({ series }) => series.id)
    const probe = tried && ids.toSorted((a, b) => (tried.get(a) ?? 0) - (tried.get(b) ?? 0)).slice(0, 1)
    return { kind: 'metrics', series: new Set(probe ?? ids) }
  }
  return registryAt <= Math.min(tidyAt, now) ? { kind: 'registry' } : { kind: 'tidy' }
}

function firstPoll(points: readonly NextPoint[]): Instant {
  let first = Infinity
  for (const { poll } of points) first = Math.min(first, poll)
  return first
}

/** How long an API rests after so many failures in a row, in seconds. */
export const restAfter = (failures: number): number => Math.min(10 * minute, minute * 2 ** Math.max(0, failures - 1))
