import type { Rule } from '../catalog/availability.ts'
import { availableSql, endSql } from '../catalog/availability-sql.ts'
import type { Interval } from '../time.ts'
import { type Engine, quoteList } from './engine.ts'
import { computedSql } from './stored-clocks.ts'

/** How the points of one partition arrived, against a rule. Microseconds; lags count from the end of the interval. */
export interface Arrivals {
  readonly points: number
  /** Points whose arrival is known: the provider told `computed_at`, or an earlier answer lacked the point. */
  readonly told: number
  readonly seenLate: number
  readonly backfilled: number
  /** Quantiles of the known lags without backfilled points; null where none is known. */
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number | null
  /** Known arrivals after the rule's instant. */
  readonly late: number
  /** The point that arrived latest against the rule. */
  readonly worst: Worst | null
}

/** One point as evidence; instants as ISO text. */
export interface Worst {
  readonly asset: string
  readonly t: string
  readonly arrived_at: string
  readonly rule_at: string
}

/**
 * Reads the arrivals of a partition's files and holds them against the rules in force. Whatever was computed together
 * with backfilled points of its series counts as backfilled too: the last days before a metric began say nothing of lags.
 */
export async function arrivalsOf(
  engine: Engine,
  files: readonly string[],
  interval: Interval,
  rules: readonly Rule[],
): Promise<Arrivals> {
  const [row] = await engine.rows(`
    WITH points AS (
      SELECT asset, t, coalesce(computed <= max(computed) FILTER (available_rule_at < available_at) OVER series, false)
          AS backfilled, basis = 'observed' AS seen_late,
        epoch_us(coalesce(computed, CASE WHEN basis = 'observed' THEN observed_at END)) AS arrived,
        epoch_us(t) // 1000000 AS mark
      FROM (SELECT *, ${computedSql()} AS computed FROM read_parquet(${quoteList(files)}, hive_partitioning = false))
      WINDOW series AS (PARTITION BY asset, currency, exchange, network, params)
    ), dated AS (
      SELECT *, ${endSql('mark', interval)} * 1000000 AS close, ${availableSql(rules, 'mark', interval)} * 1000000 AS rule
      FROM points
    )
    SELECT count(*) AS points, count(arrived) FILTER (NOT seen_late) AS told, count(*) FILTER (seen_late) AS seen_late,
      count(*) FILTER (backfilled) AS backfilled,
      quantile_disc(arrived - close, 0.5) FILTER (counts) AS p50, quantile_disc(arrived - close, 0.95) FILTER (counts) AS p95,
      quantile_disc(arrived - close, 0.99) FILTER (counts) AS p99, max(arrived - close) FILTER (counts) AS max,
      count(*) FILTER (counts AND arrived > rule) AS late,
      arg_max({'asset': asset, 't': t, 'arrived_at': make_timestamptz(arrived), 'rule_at': make_timestamptz(rule)},
        arrived - rule) FILTER (counts AND arrived > rule) AS worst
    FROM (SELECT *, arrived IS NOT NULL AND NOT backfilled AS counts FROM dated)`)
  const number = (name: string): number => Number(row?.[name] ?? 0)
  const maybe = (name: string): number | null => (row?.[name] === null ? null : number(name))
  return {
    points: number('points'),
    told: number('told'),
    seenLate: number('seen_late'),
    backfilled: number('backfilled'),
    p50: maybe('p50'),
    p95: maybe('p95'),
    p99: maybe('p99'),
    max: maybe('max'),
    late: number('late'),
    worst: (row?.['worst'] ?? null) as unknown as Worst | null,
  }
}
