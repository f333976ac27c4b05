import fc from 'fast-check'
import type { Interval } from '../../src/base/time.ts'
import { later, lengths } from './calendar.ts'
import { micros } from './instants.ts'
import type { PointRow } from './lakes/lake-recipe.ts'

/** A point as the oracle sees it; instants in Unix microseconds. */
export interface OraclePoint {
  readonly asset: string
  readonly t: number
  readonly end: number
  readonly available: number
  readonly observed: number
  readonly v: number | null
  readonly o: string | null
}

/** What bounds the knowledge of a question. */
export interface Question {
  readonly asOf?: number
  readonly observedAsOf?: number
  readonly latency?: number
  readonly maxAge?: number
  readonly skipNulls?: boolean
}

/** Everything knowable at an instant, newest `t` first: by definition, without any index. */
export function knowable(points: readonly OraclePoint[], asset: string | null, ts: number | null, question: Question) {
  const { asOf = Infinity, observedAsOf = Infinity, latency = 0, skipNulls = false } = question
  if (ts === null || asset === null) return []
  return points
    .filter((p) => p.asset === asset && p.available <= asOf && p.observed <= observedAsOf)
    .filter((p) => p.available <= ts - latency && !(skipNulls && p.v === null && p.o === null))
    .toSorted((a, b) => b.t - a.t || b.available - a.available || b.observed - a.observed)
}

/** The row that a join owes a decision. */
export function owed(
  points: readonly OraclePoint[],
  asset: string | null,
  ts: number | null,
  question: Question,
): OraclePoint | undefined {
  const [best] = knowable(points, asset, ts, question)
  if (best === undefined || ts === null || ts - best.end > (question.maxAge ?? Infinity)) return undefined
  return best
}

/** A metric's points as they are stored, in two commits. */
export interface Story {
  readonly early: readonly PointRow[]
  readonly late: readonly PointRow[]
}

/** The commits of a story. */
export const commits = ['2031-01-01T00:00:00Z', '2031-02-01T00:00:00.000123Z'] as const

const starts: Readonly<Partial<Record<Interval, number>>> = {
  '10m': Date.UTC(2024, 1, 28, 22) * 1000,
  '1h': Date.UTC(2024, 1, 28) * 1000,
  '24h': Date.UTC(2024, 1, 20) * 1000,
  '1w': Date.UTC(2023, 11, 18) * 1000,
  '1month': Date.UTC(2023, 9, 1) * 1000,
  '3month': Date.UTC(2022, 3, 1) * 1000,
}

/** Unix microseconds as ISO text. */
export function iso(us: number): string {
  const whole = Math.floor(us / 1_000_000)
  return `${new Date(whole * 1000).toISOString().slice(0, 19)}.${String(us - whole * 1_000_000).padStart(6, '0')}Z`
}

/** Series of three assets with gaps, punctual, late and tied arrivals, nulls, in any order of insertion. */
export function stories(metric: string, interval: Interval): fc.Arbitrary<Story> {
  const length = lengths[interval] / 1e6
  const network = metric.startsWith('addresses/') ? 'eth' : null
  const delay = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 60_000_000, max: 90_000_000 }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 6 }).map((n) => n * length * 1_000_000 + 60_000_000) },
    { weight: 2, arbitrary: fc.integer({ min: 60, max: 8 * length }).map((s) => s * 1_000_000) },
  )
  const cell = fc.record({
    there: fc.integer({ min: 0, max: 9 }).map((n) => n > 1),
    delay,
    v: fc.option(fc.integer({ min: -1000, max: 1000 }), { freq: 6 }),
    late: fc.boolean(),
    place: fc.nat(),
  })
  const series = (asset: string) =>
    fc.array(cell, { maxLength: 14 }).map((cells) =>
      cells.flatMap((one, n) => {
        if (!one.there) return []
        const t = later(starts[interval] ?? Number.NaN, interval, n)
        const available_at = iso(later(t, interval) + one.delay)
        return [{ ...one, row: { metric, asset, interval, t: iso(t), available_at, v: one.v, network } }]
      }),
    )
  return fc.tuple(series('A'), series('B_C'), series('B')).map((all) => {
    const cells = all.flat().toSorted((a, b) => a.place - b.place)
    const side = (late: boolean) => cells.filter((one) => one.late === late).map(({ row }) => row)
    return { early: side(false), late: side(true) }
  })
}

/** A point as the oracle sees it; with `rule`, the rule stands in for backfilled ones. */
export function oraclePoint(row: PointRow, observed: number, rule = false): OraclePoint {
  const t = micros(row.t)
  return {
    asset: row.asset,
    t,
    end: later(t, row.interval),
    available: micros((rule ? row.available_rule_at : undefined) ?? row.available_at),
    observed,
    v: row.v ?? null,
    o: row.o ?? null,
  }
}

/** The points of a story for the oracle. */
export function oraclePoints(story: Story): OraclePoint[] {
  const told = (rows: readonly PointRow[], at: string) => rows.map((row) => oraclePoint(row, micros(at)))
  return [...told(story.early, commits[0]), ...told(story.late, commits[1])]
}

/** Decisions at, just before and just after arrivals, and anywhere else, some without asset or instant. */
export function decisionsFor(
  points: readonly OraclePoint[],
  count: number,
  seed: number,
): [string | null, number | null][] {
  let state = seed
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const arrivals = points.map(({ available }) => available)
  const [low, high] = [
    Math.min(...arrivals, Date.UTC(2024, 0, 1) * 1000),
    Math.max(...arrivals, Date.UTC(2024, 3, 1) * 1000),
  ]
  const assets = ['A', 'B', 'B_C', 'A', 'B', 'B_C', 'unknown', null]
  return Array.from({ length: count }, () => {
    const asset = assets[Math.floor(random() * assets.length)] ?? null
    const kind = random()
    const near = arrivals[Math.floor(random() * arrivals.length)] ?? low
    if (kind < 0.05) return [asset, null]
    if (kind < 0.6) return [asset, near + Math.floor(random() * 3) - 1]
    if (kind < 0.8) return [asset, Math.floor((low + random() * (high - low)) / 86_400_000_000) * 86_400_000_000]
    return [asset, Math.floor(low - 1e12 + random() * (high - low + 2e12))]
  })
}

/** A span of calendar months and microseconds. */
export interface CalendarSpan {
  readonly months: number
  readonly us: number
}

/** The instant a span before another; a day that the earlier month does not have is its last. */
export function instantBefore(at: number, { months, us }: CalendarSpan): number {
  const date = new Date(Math.floor(at / 1000))
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() - months)
  const next = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0))
  date.setUTCDate(Math.min(day, next.getUTCDate()))
  return date.getTime() * 1000 + (at % 1000) - us
}

/**
 * Of the points known at a decision, newest first, those that ended a span before the newest did or earlier, and how
 * far before.
 */
export function earlierPoints(known: readonly OraclePoint[], span: CalendarSpan) {
  const [newest] = known
  if (newest === undefined) return { earlier: [], shift: 0 }
  const until = instantBefore(newest.end, span)
  return { earlier: known.filter(({ end }) => end <= until), shift: newest.end - until }
}
