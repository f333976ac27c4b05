import { backfillAfter, type Rule } from '../catalog/availability.ts'
import { availableSql } from '../catalog/availability-sql.ts'
import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { endSql, stepSql } from '../intervals-sql.ts'
import { type Interval, unshownInterval } from '../time.ts'
import { Engine, quote, quoteList } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { computedSql, partitionsOf } from '../points/files.ts'
import type { SeenLags } from '../results/stress-delays.ts'
import { readPoints } from '../views/relations.ts'
import { rowsAs } from '../ledger/row.ts'
import { type Shaped, text, orNull, shape, count, real, listOf } from '../ledger/shape.ts'

const arrivalsFields = {
  points: count,
  /** Points whose arrival is known: the provider told `computed_at`, or (`seenLate`) an earlier answer lacked the point. */
  computed: count,
  seenLate: count,
  backfilled: count,
  /** Points without a known arrival that became due while the lake was watching their series: late ones would have been seen. */
  watched: count,
  /** Points that the rule dates: another rule would date them anew. */
  ruled: count,
  /** Quantiles of the known lags without backfilled points; null where none is known. */
  p05: orNull(real),
  p50: orNull(real),
  p95: orNull(real),
  p99: orNull(real),
  max: orNull(real),
  /** The lag that covers 99 of 100 points known or watched; null where the arrivals do not say how late the last of them were. */
  supported: orNull(real),
  /** Known arrivals after the rule's instant, and those of them that came less than `soonSeconds` after it. */
  late: count,
  soon: count,
  /** The point that arrived latest against the rule, as evidence; instants as ISO text. */
  worst: orNull(shape({ asset: text, t: text, arrived_at: text, rule_at: text })),
  /**
   * Known arrivals without backfilled points by their lag divided by the rule's, twelve bars a decade from a thousandth
   * to a thousand times it: bar n goes from 10^(n/12), which is not in it, to 10^((n+1)/12).
   */
  bars: listOf(shape({ bar: real, points: count })),
}

/** How the points of one partition arrived, against a rule. Lags in seconds from the end of the interval. */
export type Arrivals = Shaped<typeof arrivalsFields>

/** The arrivals of one endpoint and interval, and the rules that they are held against. */
export interface HeldArrivals {
  readonly endpoint: Endpoint
  readonly interval: Interval
  readonly rules: readonly Rule[]
  readonly arrivals: Arrivals
}

/** A point that comes later than this after its rule's instant is no matter of precision. */
const soonSeconds = 300

/** Above any lag: stands for points that were late by an unknown time. */
const unknownLag = 4_000_000_000_000_000_000n

/** The arrivals of everything that is held of the wanted endpoints of the catalogue. */
export async function heldArrivals(
  ledger: Ledger,
  catalogue: Catalogue,
  wanted: (path: string) => boolean,
): Promise<readonly HeldArrivals[]> {
  const parts = [...partitionsOf(liveFiles(ledger, { table: 'points' })).values()].flatMap((part) => {
    const endpoint = catalogue.endpoints.get(part.metric)
    return endpoint && wanted(endpoint.path) ? [{ ...part, endpoint, rules: endpoint.rules[part.interval] }] : []
  })
  const found = new Map<Interval, Map<string, Arrivals>>()
  const engine = await Engine.open()
  try {
    // Binding such a query takes longer than reading most endpoints: those of one rule are read together.
    for (const alike of Map.groupBy(parts, ({ interval, rules }) => JSON.stringify([interval, rules])).values()) {
      const [{ interval, rules } = { interval: unshownInterval, rules: [] }] = alike
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
  const rows = await rowsAs(
    engine,
    { metric: text, ...arrivalsFields },
    `${countedSql(points, interval, rules)}
    SELECT * EXCLUDE (quantiles, histogram), quantiles[1] / 1e6 AS p05, quantiles[2] / 1e6 AS p50, quantiles[3] / 1e6 AS p95,
      quantiles[4] / 1e6 AS p99,
      coalesce(list_transform(map_entries(histogram), lambda one: {'bar': one.key, 'points': one.value}), []) AS bars
    FROM (SELECT metric, count(*) AS points, count(arrived) FILTER (NOT seen_late) AS computed, count(*) FILTER (seen_late) AS "seenLate",
      count(*) FILTER (backfilled) AS backfilled, count(*) FILTER (watched) AS watched, count(*) FILTER (arrived IS NULL) AS ruled,
      quantile_disc(arrived - close, [0.05, 0.5, 0.95, 0.99]) FILTER (counts) AS quantiles, max(arrived - close) FILTER (counts) / 1e6 AS max,
      nullif(quantile_disc(lag, 0.99) FILTER (counts OR watched), ${unknownLag}) / 1e6 AS supported,
      count(*) FILTER (counts AND arrived > rule) AS late,
      count(*) FILTER (counts AND arrived > rule AND arrived < rule + ${soonSeconds * 1_000_000}) AS soon,
      arg_max({'asset': asset, 't': t, 'arrived_at': make_timestamptz(arrived), 'rule_at': make_timestamptz(rule)},
        arrived - rule) FILTER (counts AND arrived > rule) AS worst,
      histogram(ceil(12 * log10(greatest(0.001, least(1000, (arrived - close) / (rule - close))))) - 1)
        FILTER (counts AND rule > close) AS histogram
    FROM counted GROUP BY metric)`,
  )
  return new Map(rows.map(({ metric, ...arrivals }) => [metric, arrivals]))
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

/** How late the points of these metrics were seen to come, by the quantiles of the audit; of all metrics where none is named. */
export async function seenLags(
  ledger: Ledger,
  catalogue: Catalogue,
  metrics: readonly string[],
): Promise<readonly SeenLags[]> {
  const held = await heldArrivals(ledger, catalogue, (path) => metrics.length === 0 || metrics.includes(path))
  return held.map(({ endpoint, interval, arrivals: { p50, p95, p99, max } }) => {
    return { metric: endpoint.path, interval, p50, p95, p99, max }
  })
}
