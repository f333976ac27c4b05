import type { Rule } from '../../catalog/availability.ts'
import { ruleRows } from '../../catalog/availability-sql.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { ruleKinds } from '../../catalog/rule-kinds.ts'
import { endSql, type Sql, startSql } from '../../base/intervals-sql.ts'
import { type Interval, type Weekday } from '../../base/time.ts'
import { quote } from '../../lake/store/engine.ts'
import { instantSql } from './template.ts'

/** Whether a join returns NULL for decisions later than the resolved range: its option `unresolved`. */
export const beyondAsked = `CAST(unresolved AS VARCHAR) = 'null'`

/** Problem with that option, as a branch of a CASE. */
export const beyondMistake =
  `WHEN coalesce(CAST(unresolved AS VARCHAR), '') NOT IN ('value', 'null') THEN error('unresolved is ''value'' ` +
  `or ''null''')`

/**
 * Formats the availability rules of a metric, a line each, for `unsettledText`: name, metric, begins, ends, kind,
 * seconds.
 */
export function ruleLines(catalogue: Catalogue, metric: string, interval: Interval, name: string): string {
  return ruleText(catalogue.endpoints.get(metric)?.rules[interval], metric, name)
}

/** Rules as lines, for `unsettledText`; undefined rules give one open rule without a lag. */
export function ruleText(rules: readonly Rule[] | undefined, metric: string, name: string): string {
  const open = { begins: -1e12, ends: 1e12, kind: 'lag', seconds: 0 } as const
  return (rules === undefined ? [open] : ruleRows(rules))
    .map(({ begins, ends, kind, seconds }) => [name, metric, begins, ends, kind, seconds].join(','))
    .join('\t')
}

/** Inputs of the texts below. */
interface UnsettledSources {
  readonly weekStart: Weekday
  /** Every window that was requested, as `coverage` shows it. */
  readonly coverage: string
  /** Series with points but without any window: metric to network, since and until, the start of the last. */
  readonly uncovered: string
  /** Whether the relation ends in `observed_at`. */
  readonly observed?: boolean
}

/**
 * Builds the SQL before and after a relation of points that adds one row for each gap in the resolved range: at the
 * first start of the gap for which no point is stored, from the instant at which its point should be known by the rule,
 * with neither value nor interval. Resolved is what was requested and answered, up to what is due at `as_of`. `rules`
 * and `interval` are the texts of literals. If `alone`, it returns only the gaps, with the times from and until which a
 * decision falls into one.
 */
export function unsettledText(
  sources: UnsettledSources,
  rules: Sql,
  interval: Sql,
  alone: boolean,
): readonly [before: Sql, behind: Sql] {
  const due = (t: Sql, rule = 's'): Sql =>
    `make_timestamptz(${byKind(({ sql }) => sql(t, endSql(t, '\u0002'), `${rule}.seconds`), `${rule}.kind`)} * 1000000)`
  const seriesCells = 's.name, s.asset, NULL, s.currency, s.exchange, s.network, make_timestamptz(s.t * 1000000)'
  const row = alone
    ? `s.name AS metric, s.asset, s.currency, s.exchange, s.network, ${due('s.t')} AS since, ` +
      `${due('s.until', 'e')} AS until`
    : `${seriesCells}, ${due('s.t')}, NULL, NULL${sources.observed === true ? ', NULL' : ''}`
  const ends =
    ' LEFT JOIN _pit_rules AS e ON e.name = s.name AND e.metric = s.metric AND s.until >= e.begins AND s.until < e.ends'
  const behind = `${holesText(sources)}
${alone ? '' : 'SELECT * FROM _pit_stored_points UNION ALL'}
SELECT DISTINCT ${row}
FROM (SELECT s.*, r.kind, r.seconds FROM _pit_gap_starts AS s JOIN _pit_rules AS r USING (name, metric)
  WHERE s.t < coalesce(s.until, s.t + 1) AND s.t >= r.begins AND s.t < r.ends) AS s${alone ? ends : ''}`
  return [
    quote('WITH _pit_stored_points AS MATERIALIZED ('),
    `replace(replace(${quote(behind)}, '\u0001', ${rules}), '\u0002', ${interval})`,
  ]
}

function byKind(each: (kind: (typeof ruleKinds)[keyof typeof ruleKinds]) => Sql, kind: Sql): Sql {
  const branches = Object.entries(ruleKinds).map(([name, kind]) => `WHEN '${name}' THEN ${each(kind)}`)
  return `(CASE ${kind} ${branches.join(' ')} END)`
}

/**
 * Builds further CTEs behind `_pit_stored_points`; instants are Unix seconds. The rules stand at `\u0001`, the interval at
 * `\u0002`.
 */
function holesText({ weekStart, coverage, uncovered }: UnsettledSources): string {
  const start = (at: Sql): Sql => startSql(at, '\u0002', { weekStart })
  const ceil = (at: Sql): Sql => startSql(`(${at} - 1)`, '\u0002', { weekStart, back: '-1' })
  const seconds = (at: Sql): Sql => `CAST(floor(epoch_us(${at}) / 1000000) AS BIGINT)`
  const identity = 'metric, asset, currency, exchange, network'
  const series = `name, ${identity}`
  const same = ['currency', 'exchange', 'network']
    .map((column) => `p.${column} IS NOT DISTINCT FROM h.${column}`)
    .join(' AND ')
  // price_usd is computed from a different metric; a part with a separate clock belongs to its metric, in all that
  // identifies it.
  const isOfItself = `split_part(r.name, '#', 1) = c.metric`
  // The first start that is not due yet at `as_of`.
  const undue = byKind(({ undue: first }) => first('r.now', 'r.seconds', start, ceil), 'r.kind')
  return `),
_pit_rules AS (
  SELECT one[1] AS name, one[2] AS metric, CAST(one[3] AS BIGINT) AS begins, CAST(one[4] AS BIGINT) AS ends, one[5] AS kind,
    CAST(one[6] AS BIGINT) AS seconds, ${seconds(instantSql('as_of'))} AS now
  FROM (SELECT string_split(line, ',') AS one FROM (SELECT unnest(string_split(\u0001, chr(9))) AS line) WHERE line <> '')
),
_pit_cut AS (
  SELECT name, min(first) AS t
  FROM (SELECT r.name, r.ends, greatest(${undue}, ${ceil('r.begins')}) AS first FROM _pit_rules AS r WHERE r.now IS NOT NULL)
  WHERE first < ends GROUP BY name
),
_pit_resolved AS (
  SELECT r.name, c.metric, c.asset, CASE WHEN ${isOfItself} THEN c.currency END AS currency,
    CASE WHEN ${isOfItself} THEN c.exchange END AS exchange, CASE WHEN ${isOfItself} THEN c.network END AS network,
    c.currency AS part, ${seconds('c.since')} AS since, least(${seconds('c.until')}, cut.t) AS until
  FROM (
    SELECT ${identity}, "interval", since, until FROM (${coverage}) AS asked
    WHERE state IN ('covered', 'empty', 'unsupported') AND reason IS DISTINCT FROM 'pending'
    UNION ALL SELECT ${identity}, "interval", since, until FROM ${uncovered}
  ) AS c JOIN (SELECT DISTINCT name, metric FROM _pit_rules) AS r ON r.metric = c.metric LEFT JOIN _pit_cut AS cut ON cut.name = r.name
  WHERE c."interval" = \u0002 AND (${isOfItself} OR c.currency IN ('usd', 'native'))
),
_pit_gaps AS (
  SELECT ${series}, until AS since, lead(since) OVER (PARTITION BY ${series}, part ORDER BY since) AS until
  FROM _pit_resolved WHERE since <= until
  QUALIFY lead(since) OVER (PARTITION BY ${series}, part ORDER BY since) IS DISTINCT FROM until
),
_pit_gap_starts AS (
  SELECT h.name, h.metric, h.asset, h.currency, h.exchange, h.network, h.until,
    greatest(${ceil('h.since')}, max(${endSql(`epoch_us(p.t) // 1000000`, '\u0002')})) AS t
  FROM _pit_gaps AS h LEFT JOIN _pit_stored_points AS p ON p.metric = h.name AND p.asset = h.asset AND ${same}
    AND epoch_us(p.t) >= h.since * 1000000 AND epoch_us(p.t) < coalesce(h.until, 1000000000000) * 1000000
  GROUP BY h.name, h.metric, h.asset, h.currency, h.exchange, h.network, h.since, h.until
)`
}
