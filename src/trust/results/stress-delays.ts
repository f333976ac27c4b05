import { endSql, micros } from '../../base/intervals-sql.ts'
import { formatDuration, type Interval } from '../../base/time.ts'
import { computedSql } from '../../sources/points/files.ts'
import { quote, quoteList } from '../../lake/store/engine.ts'
import { realPoints } from '../../query/views/script.ts'

/** Quantiles of how late points came, as in the audit of the rules. */
export const quantiles = ['p50', 'p95', 'p99', 'max'] as const
/** One of these quantiles; derived, so that `quantiles` is the one list of them. */
export type Quantile = (typeof quantiles)[number]

/** Observed lags of the points of an endpoint and interval: seconds after the end; null if no arrival was observed. */
export interface SeenLags extends Readonly<Record<Quantile, number | null>> {
  readonly metric: string
  readonly interval: Interval
}

/** An earlier version of the lake. */
export interface LakeVintage {
  readonly version: number
  /** Instant of its commit, ISO. */
  readonly at: string
}

/** Columns of a query with its instants, and those that may look ahead. */
export interface DecidedColumns {
  /** Column with the time of each row. Default: `ts`. */
  readonly ts: string
  /** Columns that may look ahead, such as the return after a decision. */
  readonly labels: readonly string[]
}

/** Delays that a query must withstand under stress. */
export interface DelaySpec extends DecidedColumns {
  /** SQL of one number over the table `result`, which contains the rows of the query. */
  readonly statistic: string
  /** How much later points become known: seconds, and `p50`, `p95`, `p99`, `max` of the observed lags. */
  readonly lags: readonly (number | Quantile)[]
  /** How much more time you need to act, in seconds. */
  readonly latencies: readonly number[]
  /** Share by which the statistic may move. Default: 0.5. */
  readonly within: number
}

/** Everything that is needed to repeat a stress test. */
export interface StressAgain extends DelaySpec {
  readonly seen: readonly SeenLags[]
  readonly vintages: readonly LakeVintage[]
}

/** An instant before which no point of an endpoint and interval is known: seconds after the end of its interval. */
interface Floor {
  readonly metric: string
  readonly interval: Interval
  readonly seconds: number
}

/** Kind of a delay: a longer lag of arrivals, or more time between knowing and acting. */
export type DelayKind = 'lag' | 'latency'

/** A delay: points count as known later than the lake records. */
export interface Delay {
  /** `lag` or `latency`. */
  readonly kind: DelayKind
  /** The delay as given, such as `30m` or `p95`. */
  readonly name: string
  /** Seconds added to every instant; 0 if `floors` are given. */
  readonly seconds: number
  /** Earliest instants for endpoints; empty if `seconds` are given. */
  readonly floors: readonly Floor[]
}

/** Builds a delay by which each point is known later by a fixed time. */
export function laterBy(kind: DelayKind, seconds: number): Delay {
  return { kind, name: formatDuration(seconds), seconds, floors: [] }
}

/**
 * Builds a delay by observed lags: no point arrives before so many of its endpoint did; an endpoint without known
 * arrivals stays as it is.
 */
export function asLateAs(quantile: Quantile, seen: readonly SeenLags[]): Delay {
  const floors = seen.flatMap(({ metric, interval, [quantile]: seconds }) =>
    seconds === null ? [] : [{ metric, interval, seconds }],
  )
  return { kind: 'lag', name: quantile, seconds: 0, floors }
}

/**
 * Builds the stored points as they would be known under a delay, of these metrics alone if some are named: a SELECT for
 * `alteredScript`. The time when a point was computed stays that of the provider. Nothing is known earlier than it was.
 */
export function delayedPoints(delay: Delay, metrics?: readonly string[]): string {
  const later = (at: string): string => {
    const whole = delay.floors.length > 0 ? floorSql(at, delay.floors) : added(at, delay.seconds)
    return metrics === undefined
      ? whole
      : `CASE WHEN list_contains(${quoteList(metrics)}, told.metric) THEN ${whole} ELSE ${at} END`
  }
  return `SELECT told.* REPLACE (${later('told.available_at')} AS available_at,
    ${later('told.available_rule_at')} AS available_rule_at, ${computedSql('told')} AS computed_at)
      FROM ${realPoints} AS told`
}

function added(at: string, seconds: number): string {
  return `make_timestamptz(epoch_us(${at}) + ${seconds * micros})`
}

/** Builds the SQL of a timestamp that is not earlier than the floor of its endpoint and interval; NULL stays NULL. */
function floorSql(at: string, floors: readonly Floor[]): string {
  const branches = floors.map(({ metric, interval, seconds }) => {
    const from = `${endSql('epoch_us(told.t)', interval, micros)} + ${Math.ceil(seconds * micros)}`
    return (
      `WHEN told.metric = ${quote(metric)} AND told."interval" = ${quote(interval)} THEN ` +
      `make_timestamptz(greatest(epoch_us(${at}), ${from}))`
    )
  })
  return `CASE WHEN ${at} IS NULL THEN NULL ${branches.join(' ')} ELSE ${at} END`
}
