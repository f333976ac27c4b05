import { availableAt } from '../../catalog/availability.ts'
import { beforeFirst, isPlain } from '../../lake/ledger/coverage.ts'
import type { CoverageRow, CoverageState } from '../../lake/ledger/entry.ts'
import { alarmPatience, alarmReason, type StandingRefusal, withdrawnReason } from '../../lake/ledger/refusals.ts'
import type { BodyResult } from '../points/conversion-types.ts'
import { count, end, type Instant, step, type Weekday } from '../../base/time.ts'
import { intersect, minus, union, type Window } from '../../base/windows.ts'
import { type Ask, horizonOf, toleranceOf } from './plan.ts'
import type { RefusedAsk } from './run-summary.ts'

/** The time and the request that answered a window. */
export interface AskedAt {
  /** The earlier of the local clock and the provider's, which bounds what the answer can include. */
  readonly at: Instant
  readonly request: string
  readonly weekStart: Weekday
}

/** Returns the time up to which an answer is informed: a cached copy includes nothing after its `Date`. */
export const knownAt = (local: Instant, date: Instant | null): Instant =>
  date === null ? local : Math.min(local, date)

/** Returns the part of its range that an answer resolves, without anything that was not due when it was made. */
function dueOf(ask: Ask, { at, weekStart }: AskedAt): Window {
  const { final } = horizonOf(ask.endpoint, ask.interval, at, weekStart)
  return { since: ask.settles.since, until: Math.min(ask.settles.until, final) }
}

/** Builds the one row of an answer without any points: nothing available, not allowed, or not understood. */
export function settleWhole(ask: Ask, state: CoverageState, reason: string | null, asked: AskedAt): CoverageRow[] {
  const due = dueOf(ask, asked)
  return due.since < due.until ? [row(ask, due, state, reason, asked)] : []
}

/**
 * Builds the coverage ranges that follow from a decoded body, within its window and beyond it: covered where points
 * are, `empty` before the first point of the series, `pending` or `gap` for missing points after it.
 */
export function coverageFromBody(
  ask: Ask,
  body: BodyResult,
  firstHeld: Instant | null,
  request: AskedAt,
): CoverageRow[] {
  const firstPoints = [firstHeld, body.first].filter((t) => t !== null)
  if (firstPoints.length === 0) return settleWhole(ask, 'empty', null, request)
  const beginning = Math.min(...firstPoints)
  const due = dueOf(ask, request)
  // A stored point covers its interval, even if this has ended only by the provider's clock; missing points there are
  // pending.
  const reached = body.last === null ? due.until : Math.max(due.until, end(body.last, ask.interval))
  // A point in the overlap fills a gap before the range that was to be resolved.
  const range = { since: Math.min(due.since, body.addedFirst ?? Infinity), until: reached }
  if (range.since >= range.until) return []
  const missing = intersect([range], body.missing)
  // An endpoint without `since` shows nothing about missing points before its first one.
  const before = intersect([range], [{ since: Number.NEGATIVE_INFINITY, until: beginning }])
  const holes = minus(missing, before)
  return [
    ...minus([range], [...missing, ...before]).map((window) => row(ask, window, 'covered', null, request)),
    ...before.map((window) => row(ask, window, 'empty', beforeFirst, request)),
    ...holes.flatMap((window) => splitByAge(ask, window, request)),
  ].toSorted((a, b) => a.since - b.since)
}

/** Builds rows for a failure, except where an earlier answer covers the range: a failure removes no knowledge. */
export function settleFailure(ask: Ask, reason: string, covered: readonly Window[], asked: AskedAt): CoverageRow[] {
  return minus([dueOf(ask, asked)], union(covered)).map((window) => row(ask, window, 'failed', reason, asked))
}

/** The ledger's record of a series before it is requested. */
export interface SeriesRecord {
  /** Stored points. */
  readonly points: number
  /** Live coverage ranges of the series. */
  readonly coverage: readonly CoverageRow[]
  /** The standing refusal of the series; null if there is none. */
  readonly standing: StandingRefusal | null
}

/**
 * Builds rows for a refusal of the requested range. A series that never had a point becomes `unsupported`. One that has
 * points becomes failed, an alarm since its first refusal, and withdrawn after 30 days; covered ranges stay covered.
 */
export function settleRefusal(
  ask: Ask,
  refusal: RefusedAsk,
  { points, coverage, standing }: SeriesRecord,
  request: AskedAt,
) {
  const provenRows = coverage.filter((row) => isPlain(row) || row.state === 'empty')
  const rows = (state: 'unsupported' | 'failed', reason: string): CoverageRow[] =>
    settleWhole(ask, state, reason, request).flatMap((row) =>
      minus([row], points > 0 ? provenRows : []).map((window) => ({ ...row, ...window })),
    )
  if (refusal.scope === 'range') return rows('unsupported', refusal.words)
  // The first words stay, so that a different request id in them does not count as news.
  const isSame = standing !== null && standing.scope === refusal.scope && (points <= 0 || standing.since !== null)
  const words = isSame ? standing.words : refusal.words
  if (points <= 0) return rows('unsupported', words)
  const since = standing?.since ?? request.at
  if (standing?.withdrawn === true || request.at - since >= alarmPatience)
    return rows('unsupported', withdrawnReason(since, words))
  return rows('failed', alarmReason(since, words))
}

/** Splits a hole by age: pending until it is older than the endpoint's tolerance, then a gap. */
function splitByAge(ask: Ask, window: Window, request: AskedAt): CoverageRow[] {
  const rules = ask.endpoint.rules[ask.interval]
  const patience = toleranceOf(ask.endpoint, ask.interval)
  let border = window.until
  while (border > window.since) {
    const last = step(border, ask.interval, -1)
    if (request.at - availableAt(rules, last, ask.interval) > patience) break
    border = last
  }
  const gap = { since: window.since, until: border }
  const awaited = { since: border, until: window.until }
  return [
    ...(gap.since < gap.until ? [row(ask, gap, 'covered', 'gap', request)] : []),
    ...(awaited.since < awaited.until ? [row(ask, awaited, 'covered', 'pending', request)] : []),
  ]
}

function row(ask: Ask, window: Window, state: CoverageState, reason: string | null, asked: AskedAt): CoverageRow {
  const { since, until } = window
  return { series: ask.series.id, since, until, state, reason, asked_at: asked.at, request: asked.request }
}

/** Splits a request that was too large for the provider into halves; null if it cannot be split. */
export function halve(ask: Ask): readonly [Ask, Ask] | null {
  const { window, interval } = ask
  if (window === null) return null
  const points = count(window.since, window.until, interval)
  if (points < 2) return null
  const middle = step(window.since, interval, Math.floor(points / 2))
  return [part(ask, window.since, middle), part(ask, middle, window.until)]
}

function part(ask: Ask, since: number, until: number): Ask {
  const settles = {
    since: Math.max(since, ask.settles.since),
    until: Math.max(since, Math.min(until, ask.settles.until)),
  }
  return { ...ask, window: { since, until }, settles, points: count(since, until, ask.interval) }
}
