import { availableAt } from '../catalog/availability.ts'
import type { BodyResult } from '../lake/convert-job.ts'
import type { CoverageRow, CoverageState } from '../lake/entry.ts'
import { type Ask, toleranceOf } from '../plan.ts'
import { end, type Instant, step } from '../time.ts'
import { intersect, minus, union, type Window } from '../windows.ts'

/** When and by which request a window was answered. */
export interface Asked {
  readonly at: Instant
  readonly request: string
}

/** The one row of an answer that brought no points at all: nothing there, not allowed, or not understood. */
export function settleWhole(ask: Ask, state: CoverageState, reason: string | null, asked: Asked): CoverageRow[] {
  return [row(ask, ask.settles, state, reason, asked)]
}

/**
 * What a decoded body says of the range it was to settle, and of what it brought beyond: covered where points are,
 * `empty` before the first point of the series, `awaiting` or `gap` where one is missing behind it.
 */
export function settleBody(ask: Ask, body: BodyResult, firstHeld: Instant | null, asked: Asked): CoverageRow[] {
  const known = [firstHeld, body.first].filter((t) => t !== null)
  if (known.length === 0) return settleWhole(ask, 'empty', null, asked)
  const beginning = Math.min(...known)
  const reached = body.last === null ? ask.settles.until : Math.max(ask.settles.until, end(body.last, ask.interval))
  // A point that the overlap brought fills a gap that lies before what was to be settled.
  const range = { since: Math.min(ask.settles.since, body.addedFirst ?? Infinity), until: reached }
  const missing = intersect([range], body.missing)
  // Whoever takes no `since` tells nothing missing before its first point.
  const before = intersect([range], [{ since: Number.NEGATIVE_INFINITY, until: beginning }])
  const holes = minus(missing, before)
  return [
    ...minus([range], [...missing, ...before]).map((window) => row(ask, window, 'covered', null, asked)),
    ...before.map((window) => row(ask, window, 'empty', 'before the first point', asked)),
    ...holes.flatMap((window) => splitByAge(ask, window, asked)),
  ].toSorted((a, b) => a.since - b.since)
}

/** What failed, but only where no earlier answer covers: a failure takes no knowledge away. */
export function settleFailure(ask: Ask, reason: string, covered: readonly Window[], asked: Asked): CoverageRow[] {
  return minus([ask.settles], union(covered)).map((window) => row(ask, window, 'failed', reason, asked))
}

/** A hole is awaited until it is older than the endpoint's tolerance, then it is a gap. */
function splitByAge(ask: Ask, window: Window, asked: Asked): CoverageRow[] {
  const rules = ask.endpoint.rules[ask.interval]
  const patience = toleranceOf(ask.endpoint, ask.interval)
  let border = window.until
  while (border > window.since) {
    const last = step(border, ask.interval, -1)
    if (asked.at - availableAt(rules, last, ask.interval) > patience) break
    border = last
  }
  const gap = { since: window.since, until: border }
  const awaited = { since: border, until: window.until }
  return [
    ...(gap.since < gap.until ? [row(ask, gap, 'covered', 'gap', asked)] : []),
    ...(awaited.since < awaited.until ? [row(ask, awaited, 'covered', 'awaiting', asked)] : []),
  ]
}

function row(ask: Ask, window: Window, state: CoverageState, reason: string | null, asked: Asked): CoverageRow {
  const { since, until } = window
  return { series: ask.series.id, since, until, state, reason, asked_at: asked.at, request: asked.request }
}
