import { hour, type Instant, minute } from '../../base/time.ts'
import type { NextPoint } from './next-points.ts'

/** State that decides the next action of a watch. */
export interface WatchState {
  /** Next points of the series; their polls are put off as far as the budget requires it. */
  readonly points: readonly NextPoint[]
  /** Time of the next poll of the registry; null if it is not watched. */
  readonly registry: Instant | null
  /** Time since which the lake is ahead of its views; null if it is not. */
  readonly untidy: Instant | null
  /** Instants before which a part rests: an API that failed, a job that found another at work. */
  readonly rests: Readonly<Record<WatchPart, Instant>>
  /**
   * Time of the last failed request by series; while this is not null a single series tests whether the API answers
   * again.
   */
  readonly tried: ReadonlyMap<string, Instant> | null
  /** Instant before which nothing is done: a commit a minute is enough. */
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

/** Minimum seconds without requests before the views are rebuilt. */
const idle = 2 * minute
/** Maximum seconds that the views stay behind the lake, even while requests are due. */
const longestUntidy = 15 * minute
/** Maximum seconds until the lake is looked at again: other jobs may have changed it. */
const longestWait = hour

/** Computes the next action from state and instant; pure. What has been due for longest comes first. */
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

/** Computes how long an API rests after so many failures in a row, in seconds. */
export const restAfter = (failures: number): number => Math.min(10 * minute, minute * 2 ** Math.max(0, failures - 1))
