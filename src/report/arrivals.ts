import { backfillAfter, type Rule } from '../catalog/availability.ts'
import { availableSql } from '../catalog/availability-sql.ts'
import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { endSql, stepSql } from '../intervals-sql.ts'
import type { Interval } from '../time.ts'
import { type Cell, Engine, quote, quoteList, type Row } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { partitionsOf } from '../points/files.ts'
import { computedSql } from '../points/stored-clocks.ts'
import { readPoints } from '../views/relations.ts'

/** How the points of one partition arrived, against a rule. Microseconds; lags count from the end of the interval. */
export interface Arrivals {
  readonly points: number
  /** Points whose arrival is known: the provider told `computed_at`, or an earlier answer lacked the point. */
  readonly told: number
  readonly seenLate: number
  readonly backfilled: number
  /** Points without a known arrival that became due while the lake was watching their series: late ones would have been seen. */
  readonly watched: number
  /** Points that the rule dates: another rule would date them anew. */
  readonly ruled: number
  /** Quantiles of the known lags without backfilled points; null where none is known. */
  readonly p05: number | null
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number | null
  /** The lag that covers 99 of 100 points known or watched; null where the arrivals do not say how late the last of them were. */
  readonly supported: number | null
  /** Known arrivals after the rule's instant. */
  readonly late: number
  /** The point that arrived latest against the rule. */
  readonly worst: Worst | null
  /**
   * Known arrivals without backfilled points by their lag divided by the rule's, twelve bars a decade from a thousandth
   * to a thousand times it: bar n goes from 10^(n/12), which is not in it, to 10^((n+1)/12).
   */
  readonly bars: readonly { readonly bar: number; readonly points: number }[]
}

/** The arrivals of one endpoint and interval, and the rules that they are held against. */
export interface Held {
  readonly endpoint: Endpoint
  readonly interval: Interval
  readonly rules: readonly Rule[]
  readonly arrivals: Arrivals
}

/** One point as evidence; instants as ISO text. */
export interface Worst {
  readonly asset: string
  readonly t: string
  readonly arrived_at: string
  readonly rule_at: string
}

/** Above any lag: stands for points that were late by an unknown time. */
const unknownLag = 4_000_000_000_000_000_000n

/** The arrivals of everything that is held of the wanted endpoints of the catalogue. */
export async function heldArrivals(
  ledger: Ledger,
  catalogue: Catalogue,
  wanted: (path: string) => boolean,
): Promise<readonly Held[]> {
  const parts = [...partitionsOf(liveFiles(ledger, { table: 'points' })).values()].flatMap((part) => {
    const endpoint = catalogue.endpoints.get(part.metric)
    return endpoint && wanted(endpoint.path) ? [{ ...part, endpoint, rules: endpoint.rules[part.interval] }] : []
  })
  const found = new Map<Interval, Map<string, Arrivals>>()
  const engine = await Engine.open()
  try {
    // Binding such a query takes longer than reading most endpoints: those of one rule are read together.
    for (const alike of Map.groupBy(parts, ({ interval, rules }) => JSON.stringify([interval, rules])).values()) {
      const [{ interval, rules } = { interval: '24h' as const, rules: [] }] = alike
      const metrics = quoteList(alike.map(({ metric }) => metric))
      const files = [...new Set(alike.flatMap(({ own, recent }) => [...own, ...recent]))]
      const points = `(FROM ${readPoints(ledger.root, files)} WHERE "interval" = ${quote(interval)} AND list_contains(${metrics}, metric))`
      const own = await arrivalsOf(engine, points, interval, rules)
      found.set(interval, new Map([...(found.get(interval) ?? []), ...own]))
    }
  } finally {
    engine.close()
  }
  return parts.flatMap(({ endpoint, interval, rules, metric }) => {
    const arrivals = found.get(interval)?.get(metric)
    return arrivals ? [{ endpoint, interval, rules, arrivals }] : []
  })
}

/**
 * Reads the arrivals of each metric in points of one interval (for FROM) and holds them against the rules in force. Backfilled points say nothing of
 * lags: what the provider computed long after its interval, what was complete more than an interval before the first
 * point of its series arrived (the provider, or the lake, did not look yet), and what was computed together with these.
 * A top-up more than an interval after the rule's instant shows that a point was late, not how late.
 */
export async function arrivalsOf(
  engine: Engine,
  points: string,
  interval: Interval,
  rules: readonly Rule[],
): Promise<Map<string, Arrivals>> {
  const rows = await engine.rows<ArrivalsRow>(`
    ${countedSql(points, interval, rules)}
    SELECT metric, count(*) AS points, count(arrived) FILTER (NOT seen_late) AS told, count(*) FILTER (seen_late) AS seen_late,
      count(*) FILTER (backfilled) AS backfilled, count(*) FILTER (watched) AS watched, count(*) FILTER (arrived IS NULL) AS ruled,
      quantile_disc(arrived - close, [0.05, 0.5, 0.95, 0.99]) FILTER (counts) AS quantiles, max(arrived - close) FILTER (counts) AS max,
      nullif(quantile_disc(lag, 0.99) FILTER (counts OR watched), ${unknownLag}) AS supported,
      count(*) FILTER (counts AND arrived > rule) AS late,
      arg_max({'asset': asset, 't': t, 'arrived_at': make_timestamptz(arrived), 'rule_at': make_timestamptz(rule)},
        arrived - rule) FILTER (counts AND arrived > rule) AS worst,
      map_entries(histogram(ceil(12 * log10(greatest(0.001, least(1000, (arrived - close) / (rule - close))))) - 1)
        FILTER (counts AND rule > close)) AS bars
    FROM counted GROUP BY metric`)
  return new Map(rows.map((row) => [row.metric, arrivalsIn(row)]))
}

type ArrivalsRow = Row & { readonly metric: string; readonly worst: Worst | null }

function arrivalsIn(row: ArrivalsRow): Arrivals {
  const number = (name: string): number => Number(row[name] ?? 0)
  const quantile = (place: number): number | null => {
    const found = (row['quantiles'] as readonly Cell[] | null)?.[place] ?? null
    return found === null ? null : Number(found)
  }
  const maybe = (name: string): number | null => (row[name] === null ? null : number(name))
  return {
    points: number('points'),
    told: number('told'),
    seenLate: number('seen_late'),
    backfilled: number('backfilled'),
    watched: number('watched'),
    ruled: number('ruled'),
    p05: quantile(0),
    p50: quantile(1),
    p95: quantile(2),
    p99: quantile(3),
    max: maybe('max'),
    supported: maybe('supported'),
    late: number('late'),
    worst: row.worst,
    bars: ((row['bars'] ?? []) as readonly { readonly key: Cell; readonly value: Cell }[]).map(({ key, value }) => ({
      bar: Number(key),
      points: Number(value),
    })),
  }
}

/** The WITH of a relation `counted`: each point with its lag, and whether it counts as an arrival or as watched. */
function countedSql(points: string, interval: Interval, rules: readonly Rule[]): string {
  const micro = (seconds: string): string => `${seconds} * 1000000`
  const longAfter = backfillAfter(interval) * 1_000_000
  return `WITH points AS (
      SELECT metric, asset, currency, exchange, network, params, t, available_rule_at < available_at AS flagged,
        basis = 'observed' AS seen_late, epoch_us(observed_at) AS observed, epoch_us(computed) AS computed,
        epoch_us(coalesce(computed, CASE WHEN basis = 'observed' THEN observed_at END)) AS arrived,
        epoch_us(t) // 1000000 AS mark
      FROM (SELECT *, ${computedSql()} AS computed FROM ${points})
    ), dated AS (
      SELECT *, ${micro(endSql('mark', interval))} AS close, ${micro(stepSql('mark', interval, 2))} AS next_close,
        ${micro(availableSql(rules, 'mark', interval))} AS rule
      FROM points
    ), begun AS (
      SELECT *, min(observed) OVER series AS watch_from, CASE WHEN seen_late THEN min(observed) OVER series
          ELSE min(computed) FILTER (computed >= close) OVER series END AS began
      FROM dated WINDOW series AS (PARTITION BY metric, asset, currency, exchange, network, params)
    ), old AS (
      SELECT *, coalesce(flagged OR next_close < began
          OR (seen_late AND arrived - close > ${longAfter}), false) AS history
      FROM begun
    ), judged AS (
      SELECT *, arrived IS NOT NULL AND (history OR coalesce(close <= began AND bool_or(next_close < began) OVER series, false)
          OR coalesce(computed BETWEEN min(computed) FILTER (history) OVER before AND max(computed) FILTER (history) OVER before, false)) AS backfilled,
        arrived IS NULL AND rule > watch_from AS watched
      FROM old WINDOW series AS (PARTITION BY metric, asset, currency, exchange, network, params),
        before AS (series ORDER BY t ROWS BETWEEN 30 PRECEDING AND CURRENT ROW)
    ), counted AS (
      SELECT *, arrived IS NOT NULL AND NOT backfilled AS counts, CASE WHEN watched THEN rule - close
          WHEN seen_late AND arrived - rule > next_close - close THEN ${unknownLag} ELSE arrived - close END AS lag
      FROM judged
    )`
}
