import { statedByRows } from '../catalog/own-endpoint.ts'
import { bytesProblem } from '../lake/ledger/commit.ts'
import { storedRevisable } from '../sources/points/revisable.ts'
import { availableAt, backfillAfter, type Rule, type RuleBasis } from '../catalog/availability.ts'
import { availableSql } from '../catalog/availability-sql.ts'
import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { endSql, stepSql } from '../base/intervals-sql.ts'
import {
  day,
  floor,
  formatDuration,
  type Instant,
  type Interval,
  intervals,
  parseDuration,
  step,
  unshownInterval,
  type Weekday,
} from '../base/time.ts'
import { AnswerMemory } from '../lake/store/answer-memory.ts'
import { Engine, quote, quoteList } from '../lake/store/engine.ts'
import { places } from '../lake/store/layout.ts'
import { storedWeekStart, liveFiles } from '../lake/ledger/index-queries.ts'
import type { Ledger } from '../lake/ledger/ledger.ts'
import { computedSql, partitionsOf } from '../sources/points/files.ts'
import { readPoints } from '../query/views/relations.ts'
import { rowsAs } from '../lake/ledger/index-rows.ts'
import { count, listOf, orNull, real, shape, type Shaped, text } from '../base/value-checks.ts'
import { describeRule, lagOf } from '../catalog/rule-kinds.ts'
import { globTest } from '../catalog/globs.ts'
import type { Override } from '../catalog/config.ts'
import type { SeenLags } from './results/stress-delays.ts'

const arrivalsFields = {
  points: count,
  /**
   * Points whose arrival is known: the provider reported `computed_at`, or (`seenLate`) an earlier answer lacked the
   * point.
   */
  computed: count,
  seenLate: count,
  backfilled: count,
  /**
   * Points without a known arrival that became due while the lake was watching their series: late ones would have been
   * seen.
   */
  watched: count,
  /** Points that the rule dates: a different rule would redate them. */
  ruled: count,
  /** Quantiles of the known lags without backfilled points; null if none is known. */
  p05: orNull(real),
  p50: orNull(real),
  p95: orNull(real),
  p99: orNull(real),
  max: orNull(real),
  /**
   * The lag that covers 99 of 100 points known or watched; null where the arrivals do not say how late the last of them
   * were.
   */
  supported: orNull(real),
  /** Known arrivals after the rule's instant, and those of them less than `soonSeconds` after it. */
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

/**
 * Arrivals of the points of one partition, compared with a rule. Lags are seconds from the end of the interval.
 * Derived: `arrivalsFields` explains each field and also checks the rows.
 */
type Arrivals = Shaped<typeof arrivalsFields>

/** Arrivals of one endpoint and interval, with the rules that they are compared with. */
export interface StoredArrivals {
  readonly endpoint: Endpoint
  readonly interval: Interval
  /** The rules in the order of their dates; the last is in force. */
  readonly rules: readonly Rule[]
  readonly arrivals: Arrivals
}

/** Maximum seconds after its rule's instant at which a late point is a matter of precision. */
const soonSeconds = 300

/** Lag above any real one, for points that were late by an unknown time. */
const unknownLag = 4_000_000_000_000_000_000n

/** Columns that tell the series of an endpoint apart. */
const seriesKeys = ['metric', 'asset', 'currency', 'exchange', 'network', 'params'] as const

/** First vintages of points; later ones show no lag. */
const firstVintage = `row_number() OVER (PARTITION BY metric, asset, currency, exchange, network, params, t
  ORDER BY available_at, observed_at) = 1`

/** Measures the arrivals of all stored points of the wanted endpoints of the catalogue that a rule dates. */
export async function storedArrivals(
  ledger: Ledger,
  catalogue: Catalogue,
  isWanted: (path: string) => boolean,
): Promise<StoredArrivals[]> {
  const parts = [...partitionsOf(liveFiles(ledger, { table: 'points' })).values()].flatMap((part) => {
    const endpoint = catalogue.endpoints.get(part.metric)
    const rules = endpoint?.rules[part.interval] ?? []
    const isRuled = rules.every(({ reason }) => reason !== statedByRows)
    return endpoint && isRuled && isWanted(endpoint.path) ? [{ ...part, endpoint, rules }] : []
  })
  const found = new Map<Interval, Map<string, Arrivals>>()
  const memory = await AnswerMemory.open(ledger.root, places.arrivals)
  const engine = await Engine.open()
  try {
    // Binding such a query takes longer than reading most endpoints: those of one rule are read together.
    for (const alike of Map.groupBy(parts, ({ interval, rules }) => JSON.stringify([interval, rules])).values()) {
      const [{ interval, rules } = { interval: unshownInterval, rules: [] }] = alike
      const metrics = quoteList(alike.map(({ metric }) => metric))
      const files = [...new Set(alike.flatMap(({ files: partitionFiles, recent }) => [...partitionFiles, ...recent]))]
      const firsts = alike.some(({ metric }) => storedRevisable(ledger).includes(metric))
        ? ` QUALIFY ${firstVintage}`
        : ''
      const points =
        `(FROM ${readPoints(ledger.root, files)} WHERE "interval" = ${quote(interval)} AND ` +
        `list_contains(${metrics}, metric)${firsts})`
      // Cached arrivals must not hide that a file is lost or cut.
      const problems = await Promise.all(files.map(async (file) => await bytesProblem(ledger.root, file, false)))
      const isWhole = problems.every((problem) => !problem)
      const arrivals = await arrivalsOf(engine, points, interval, rules, isWhole ? memory : undefined)
      found.set(interval, new Map([...(found.get(interval) ?? []), ...arrivals]))
    }
    await memory.save()
  } finally {
    engine.close()
  }
  return parts.flatMap(({ endpoint, interval, rules, metric }) => {
    const arrivals = found.get(interval)?.get(metric)
    return arrivals ? [{ endpoint, interval, rules, arrivals }] : []
  })
}

/**
 * Reads the arrivals of each metric in points of one interval (for FROM) and compares them with the rules in force.
 * Backfilled points show nothing about lags: those that the provider computed long after their interval, those that
 * were complete more than an interval before the first point of their series arrived (the provider, or the lake, did
 * not look yet), and those computed together with these. A top-up more than an interval after the rule's instant shows
 * that a point was late, not how late.
 */
export async function arrivalsOf(
  engine: Engine,
  points: string,
  interval: Interval,
  rules: readonly Rule[],
  memory?: AnswerMemory,
): Promise<Map<string, Arrivals>> {
  const statement = arrivalsSql(points, interval, rules)
  const remembered = memory?.find(statement)
  const rows = isMetricArrivals(remembered) ? remembered : await rowsAs(engine, metricArrivalsFields, statement)
  if (rows !== remembered) memory?.store(statement, rows)
  return new Map(rows.map(({ metric, ...arrivals }) => [metric, arrivals]))
}

const metricArrivalsFields = { metric: text, ...arrivalsFields }
const metricArrivalsCheck = listOf(shape(metricArrivalsFields))

/** Whether these are rows of the arrivals of each metric. */
function isMetricArrivals(rows: unknown): rows is readonly Shaped<typeof metricArrivalsFields>[] {
  return metricArrivalsCheck(rows) === undefined
}

/** Builds the SQL of the arrivals of each metric, a row for each. */
function arrivalsSql(points: string, interval: Interval, rules: readonly Rule[]): string {
  return `${countedSql(points, interval, rules)}
    SELECT * EXCLUDE (quantiles, histogram), quantiles[1] / 1e6 AS p05, quantiles[2] / 1e6 AS p50,
      quantiles[3] / 1e6 AS p95,
      quantiles[4] / 1e6 AS p99,
      coalesce(list_transform(map_entries(histogram), lambda one: {'bar': one.key, 'points': one.value}), []) AS bars
    FROM (SELECT metric, count(*) AS points, count(arrived) FILTER (NOT seen_late) AS computed,
      count(*) FILTER (seen_late) AS "seenLate",
      count(*) FILTER (backfilled) AS backfilled, count(*) FILTER (watched) AS watched,
        count(*) FILTER (arrived IS NULL) AS ruled,
      quantile_disc(arrived - close, [0.05, 0.5, 0.95, 0.99]) FILTER (counts) AS quantiles,
        max(arrived - close) FILTER (counts) / 1e6 AS max,
      nullif(quantile_disc(lag, 0.99) FILTER (counts OR watched), ${unknownLag}) / 1e6 AS supported,
      count(*) FILTER (counts AND arrived > rule) AS late,
      count(*) FILTER (counts AND arrived > rule AND arrived < rule + ${soonSeconds * 1_000_000}) AS soon,
      arg_max({'asset': asset, 't': t, 'arrived_at': make_timestamptz(arrived), 'rule_at': make_timestamptz(rule)},
        arrived - rule) FILTER (counts AND arrived > rule) AS worst,
      histogram(ceil(12 * log10(greatest(0.001, least(1000, (arrived - close) / (rule - close))))) - 1)
        FILTER (counts AND rule > close) AS histogram
    FROM counted GROUP BY metric)`
}

/**
 * Builds the WITH of a relation `counted`: each point with its lag, and whether it counts as an arrival or as watched.
 */
function countedSql(points: string, interval: Interval, rules: readonly Rule[]): string {
  const micro = (seconds: string): string => `${seconds} * 1000000`
  const keys = seriesKeys.join(', ')
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
    ), series AS (
      SELECT ${keys}, row_number() OVER () AS series_id, min(observed) AS watch_from,
        min(computed) FILTER (computed >= close) AS first_computed
      FROM dated GROUP BY ${keys}
    ), begun AS (
      SELECT dated.*, series.series_id, series.watch_from,
        CASE WHEN dated.seen_late THEN series.watch_from ELSE series.first_computed END AS began
      FROM dated JOIN series ON ${seriesKeys.map((key) => `dated.${key} IS NOT DISTINCT FROM series.${key}`).join(' AND ')}
    ), old AS (
      SELECT *, coalesce(flagged OR next_close < began
          OR (seen_late AND arrived - close > ${longAfter}), false) AS history,
        arrived IS NULL AND rule > watch_from AS watched
      FROM begun
    ), with_history AS (
      SELECT DISTINCT series_id FROM old WHERE history
    ), judged AS (
      SELECT *, arrived IS NOT NULL AND (history OR coalesce(close <= began
        AND bool_or(next_close < began) OVER whole, false)
          OR coalesce(computed BETWEEN min(computed) FILTER (history) OVER before
            AND max(computed) FILTER (history) OVER before, false)) AS backfilled
      FROM old SEMI JOIN with_history USING (series_id)
      WINDOW whole AS (PARTITION BY series_id), before AS (whole ORDER BY t ROWS BETWEEN 30 PRECEDING AND CURRENT ROW)
      -- Most series have no history: their points need no order, and none is backfilled.
      UNION ALL BY NAME SELECT *, false AS backfilled FROM old ANTI JOIN with_history USING (series_id)
    ), counted AS (
      SELECT *, arrived IS NOT NULL AND NOT backfilled AS counts, CASE WHEN watched THEN rule - close
          WHEN seen_late AND arrived - rule > next_close - close THEN ${unknownLag} ELSE arrived - close END AS lag
      FROM judged
    )`
}

/**
 * Measures how late the points of these metrics arrived, by the quantiles of the audit; of all metrics if none is
 * named.
 */
export async function seenLags(ledger: Ledger, catalogue: Catalogue, metrics: readonly string[]): Promise<SeenLags[]> {
  const arrivals = await storedArrivals(ledger, catalogue, (path) => metrics.length === 0 || metrics.includes(path))
  return arrivals.map(({ endpoint, interval, arrivals: { p50, p95, p99, max } }) => {
    return { metric: endpoint.path, interval, p50, p95, p99, max }
  })
}

/** Verdict of the observed arrivals on a rule. */
export type RuleVerdict = 'contradicted' | 'imprecise' | 'kept' | 'conservative' | 'unconfirmed'

/** Overrides of availability rules in the configuration, by path. */
type RuleOverrides = Readonly<Record<string, Override>>

/** Input of an audit in addition to the lake. */
interface AuditInput {
  readonly catalogue: Catalogue
  /** Globs; undefined means all. */
  readonly paths: readonly string[] | undefined
  /** Rows that the configuration has already: a proposal keeps what they state for other intervals. */
  readonly overrides: RuleOverrides
  readonly now: Instant
}

/** Late points are dated by themselves; only where more than these are late is the rule itself wrong. */
const lateShare = 0.02
/**
 * Number of arrivals of which at most one may come five minutes after its time, or later, if a broken rule is only
 * imprecise.
 */
const arrivalsPerLate = 20
/** Longest lag that a configuration may set, in seconds. */
const longestLag = 366 * day
/** A rule this many times longer than nearly all arrivals could be shorter. */
const generousFactor = 4

/** Result of an audit of the availability rules. */
export interface AvailabilityAudit {
  /** One row for each endpoint and interval of which points are stored. */
  readonly rows: readonly AuditedRule[]
  /** Number of rules contradicted by arrivals. */
  readonly contradicted: number
  /** Number of rules that more than two points in a hundred missed by less than five minutes. */
  readonly imprecise: number
  /** Number of rules without any known arrival. */
  readonly unconfirmed: number
  /**
   * Block for `pitlake.yaml` with a rule for each contradicted or imprecise interval; null if no better rule is known.
   */
  readonly proposal: string | null
  /** Next step for contradicted and imprecise rules; null if there are none. */
  readonly next: string | null
  /** Effects of the proposed rules. */
  readonly changes: readonly RuleChange[]
}

/**
 * Compares every availability rule with the arrivals that the lake has seen; `proposal` is the block of `pitlake.yaml`
 * that corrects it.
 */
export async function auditAvailability(
  ledger: Ledger,
  { catalogue, paths, overrides, now }: AuditInput,
): Promise<AvailabilityAudit> {
  const globs = paths?.map(globTest)
  const isWanted = (path: string): boolean => globs === undefined || globs.some((matches) => matches(path))
  const rows: AuditedRule[] = []
  const changes: RuleChange[] = []
  for (const { endpoint, interval, rules, arrivals } of await storedArrivals(ledger, catalogue, isWanted)) {
    const row = judgeRule(endpoint.path, interval, rules, arrivals)
    rows.push(row)
    changes.push(...changeOf(row, rules, arrivals.ruled, { now, weekStart: storedWeekStart(ledger) }))
  }
  const broken = rows.filter(isBroken)
  const proposal = proposalOf(broken, overrides)
  const count = (verdict: RuleVerdict): number => rows.filter((row) => row.verdict === verdict).length
  return {
    rows,
    contradicted: count('contradicted'),
    imprecise: count('imprecise'),
    unconfirmed: count('unconfirmed'),
    proposal,
    next: broken.length === 0 ? null : proposal === null ? askMore : paste,
    changes,
  }
}

const askMore = 'the arrivals do not say which lag would hold; run fetch more often, so that they do'
const paste = 'put the proposed block into pitlake.yaml, then run pitlake redate'

/** Whether the arrivals break a rule: more of them came after its instant than may be late. */
export function isBroken({ verdict }: { readonly verdict: RuleVerdict }): boolean {
  return verdict === 'contradicted' || verdict === 'imprecise'
}

/**
 * The rule of one endpoint and interval, with the verdict of the audit. Lags are seconds after the end of the interval.
 */
export interface AuditedRule {
  /** Path of the endpoint. */
  readonly metric: string
  readonly interval: Interval
  /** The rule in words. */
  readonly rule: string
  /** Source of the rule: stated, assumed or overridden. */
  readonly basis: RuleBasis
  readonly verdict: RuleVerdict
  /** Number of stored points. */
  readonly points: number
  /** Number of points whose arrival is known, without backfilled ones. */
  readonly observations: number
  /** Number of backfilled points; they show no lag. */
  readonly backfilled: number
  /**
   * Points without a known arrival that became due while the lake was watching their series: no delay of them was seen.
   */
  readonly watched: number
  /** Number of known arrivals after the rule's instant. */
  readonly late: number
  /** Late arrivals less than five minutes after the rule's instant. */
  readonly soon: number
  /** Number of points dated by the rule: if it is too early, they count as known too early. */
  readonly ruled: number
  /** Quantiles of the known lags; null if no arrival is known. */
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number | null
  /** The point that arrived latest compared with the rule; null if none was late. */
  readonly worst: WorstArrival | null
  /**
   * Lag for the configuration, such as `30m`; null if the rule may stay or the arrivals do not show a lag that would
   * hold.
   */
  readonly proposed_lag: string | null
}

/** A late point, as evidence. Instants are ISO text. */
export interface WorstArrival {
  readonly asset: string
  /** Start of the interval of the point. */
  readonly t: string
  /** Instant at which the point arrived. */
  readonly arrived_at: string
  /** Instant at which the rule dates it. */
  readonly rule_at: string
}

/**
 * Judges a rule by its arrivals. Two late arrivals in a hundred are late points, more break the rule: it is imprecise
 * if at least 95 in a hundred came less than five minutes after its instant, else contradicted. Without any known
 * arrival nothing is proved: the provider reports no `computed_at`, and no top-up has found a point late.
 */
export function judgeRule(metric: string, interval: Interval, rules: readonly Rule[], arrivals: Arrivals): AuditedRule {
  const rule = rules.at(-1)
  if (!rule) throw new RangeError(`${metric} has no rule`)
  const { points, computed, seenLate, backfilled, watched, late, soon, ruled, supported, worst } = arrivals
  const { p50, p95, p99, max } = arrivals
  const counted = computed + seenLate - backfilled
  const all = counted + watched
  const broken = counted > 0 && late > all * lateShare
  const imprecise = broken && (late - soon) * arrivalsPerLate <= all
  const lag = lagOf(rule)
  const spare = lag !== null && p99 !== null && lag > generousFactor * Math.max(p99, 60)
  const proposed = broken && supported !== null ? roundLag(supported) : null
  const longer = proposed !== null && (lag === null || proposed > lag) && proposed <= longestLag ? proposed : null
  const verdict: RuleVerdict =
    counted === 0 ? 'unconfirmed' : imprecise ? 'imprecise' : broken ? 'contradicted' : spare ? 'conservative' : 'kept'
  return {
    metric,
    interval,
    rule: describeRule(rule),
    basis: rule.basis,
    verdict,
    points,
    observations: counted,
    backfilled,
    watched,
    late,
    soon,
    ruled,
    p50,
    p95,
    p99,
    max,
    worst,
    proposed_lag: longer === null ? null : lagText(longer),
  }
}

/** Effect of a proposed rule if it came into force now. */
export interface RuleChange {
  /** Path of the endpoint. */
  readonly metric: string
  readonly interval: Interval
  /** The proposed lag, such as `30m`. */
  readonly lag: string
  /** Number of stored points that would count as known later; the others keep the instants of their arrival. */
  readonly redated: number
  /** Newest `t` that counts as published under the rule in force, ISO to the minute. */
  readonly newest_before: string
  /** Newest `t` that would count as published under the proposed rule, ISO to the minute. */
  readonly newest_after: string
}

/** Computes the effect of the proposed lag on the points of an interval; undefined if no lag is proposed. */
function changeOf(
  { metric, interval, proposed_lag: lag }: AuditedRule,
  rules: readonly Rule[],
  /**
   * Stored points that the rule dates: they would count as known later. The others keep the instants that they arrived
   * at.
   */
  redated: number,
  at: Today,
): RuleChange[] {
  const rule = rules.at(-1)
  if (lag === null || !rule) return []
  const proposed: Rule = { ...rule, kind: 'lag', seconds: parseDuration(lag) ?? 0, basis: 'override', until: null }
  // The newest `t` that counts as published, an ISO date: what `plan` and `fetch` ask for.
  const newest = (ruleList: readonly Rule[]): string => dateOf(newestDue(ruleList, interval, at))
  return [{ metric, interval, lag, redated, newest_before: newest(rules), newest_after: newest([proposed]) }]
}

interface Today {
  readonly now: Instant
  readonly weekStart: Weekday
}

/** Finds the newest interval start whose point counts as published. */
function newestDue(rules: readonly Rule[], interval: Interval, { now, weekStart }: Today): Instant {
  let t = floor(now, interval, weekStart)
  while (availableAt(rules, t, interval) > now) t = step(t, interval, -1)
  return t
}

const dateOf = (t: Instant): string => `${new Date(t * 1000).toISOString().slice(0, 16)}Z`

const steps = [
  300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10_800, 14_400, 21_600, 28_800, 43_200, 64_800, 86_400,
]

/** Rounds a lag up to the next round one, in seconds. */
function roundLag(seconds: number): number {
  return steps.find((round) => round >= seconds) ?? Math.ceil(seconds / 86_400) * 86_400
}

const lagText = (seconds: number): string => (seconds % 3600 === 0 ? `${seconds / 3600}h` : `${seconds / 60}m`)

/**
 * Formats a block ready to paste into `pitlake.yaml`: for each endpoint what its row states already, and a rule for
 * each such interval.
 */
export function proposalOf(rows: readonly AuditedRule[], overrides: RuleOverrides): string | null {
  const proposed = rows.filter(({ proposed_lag }) => proposed_lag !== null)
  if (proposed.length === 0) return null
  const lines = [...Map.groupBy(proposed, ({ metric }) => metric)].map(([metric, auditedRules]) => {
    const mine = auditedRules.toSorted((a, b) => intervals.indexOf(a.interval) - intervals.indexOf(b.interval))
    const rules = new Map(mine.map(({ interval, proposed_lag }) => [interval, `${interval}: { lag: ${proposed_lag} }`]))
    const otherOverrides = Object.entries(overrides[metric] ?? {}).filter(([key]) => !rules.has(key as Interval))
    return `    "${metric}": { ${[...otherOverrides.map(written), ...rules.values()].join(', ')} }`
  })
  return ['metrics:', '  availability:', ...lines, ''].join('\n')
}

/** Formats a key of an override as the configuration spells it. */
function written([key, value]: readonly [string, unknown]): string {
  if (Array.isArray(value)) return `${key}: [${value.join(', ')}]`
  if (typeof value === 'object' && value !== null) return `${key}: { ${Object.entries(value).map(written).join(', ')} }`
  if (key === 'lag') return `lag: ${formatDuration(Number(value))}`
  if (key === 'until') return `until: ${new Date(Number(value) * 1000).toISOString()}`
  return `${key}: ${typeof value === 'string' ? `"${value}"` : String(value)}`
}
