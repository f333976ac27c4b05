import { endSql, lengthSql, micros, type Sql, startSql, stepSql } from '../intervals-sql.ts'
import { quote } from '../store/engine.ts'
import { intervals, type Weekday } from '../time.ts'
import { beyondAsked } from './joins-beyond.ts'
import {
  filled,
  type JoinFacts,
  type JoinSources,
  linesOf,
  literal,
  lookUp,
  queryOf,
  slot,
  textOfLeaves,
  textOfMany,
  textOfNames,
  textOfSeries,
} from './joins-points.ts'
import { backfillSql, unsetSql, utcSql } from './template.ts'

/**
 * A whole join as a text that is put together while its macro is bound: of an interval, an option or a dimension only what
 * is asked for is bound, and what is made of the caller's words stands in it as a literal. Its places:
 *
 *   known                  the caller's rows with `_pit_k`, the instant at which their points must be known, for FROM
 *   latency fresh counted  microseconds; whether a row is young enough and no hole; which points count
 *   start back end         of the macro's `"interval"`: the start of the newest one that can be known at `_pit_at`
 *                          microseconds, the one `past.n` before `n._pit_e`, the end in microseconds of the one at `t`
 *   length whole size      how long it is, months at their shortest; of a window whether its newest is no hole, how many points
 *   series lag             of one metric its points and its smallest lag
 *   names points leaves chunks   of many their structs, their points, v and o; how many sixties of names there are
 */
export function askedSql(sources: JoinSources, facts: JoinFacts, names: string, text: string): Sql {
  const grid = linesOf(intervals.map((name): [string, string] => [name, gridOf(name, sources.weekStart).join('\t')]))
  const places = { ...placesOfAll, ...(names === 'metric' ? ofOne(sources, facts) : ofMany(sources, facts)) }
  const body = filled(text.slice(names.length), places)
  const own = `string_split(${lookUp(grid, 'CAST("interval" AS VARCHAR)')}, '\t')`
  return queryOf(facts, names, '"interval"', `list_transform([${own}], lambda _pit_grid: ${body})[1]`)
}

/** The texts of start, back, end and length. */
function gridOf(interval: string, weekStart: Weekday): readonly Sql[] {
  return [
    `make_timestamptz(${startSql('_pit_at', interval, { weekStart, back: '1', ticks: micros })})`,
    `make_timestamptz(${stepSql('epoch_us(n._pit_e)', interval, '-past.n', micros)})`,
    endSql('epoch_us(t)', interval, micros),
    lengthSql(interval, micros),
  ]
}

/** The text with what is given at its `?`, as a literal; another where nothing is. */
function given(parameter: Sql, text: Sql, absent: string): Sql {
  return `coalesce(replace(${quote(text)}, '?', ${literal(`CAST(${parameter} AS VARCHAR)`)}), ${quote(absent)})`
}

/** A name or a list of some, for `query_table`. */
const relation = `CASE WHEN typeof(decisions) LIKE '%]'
      THEN concat('[', array_to_string(list_transform(CAST(decisions AS VARCHAR[]), lambda one: ${literal('one')}), ', '), ']')
      ELSE ${literal('CAST(decisions AS VARCHAR)')} END`

const shifted = `(SELECT given.* REPLACE (CASE WHEN isfinite(given._pit_k) THEN make_timestamptz(epoch_us(given._pit_k) - ${microsSql('latency', '?')}) ELSE given._pit_k END AS _pit_k) FROM `

const placesOfAll: Readonly<Record<string, Sql>> = {
  known: `concat(${given('latency', shifted, '')}, ${quote(`(SELECT yours.*, ${utcSql('yours.ts')} AS _pit_k FROM query_table(`)}, ${relation},
      ') AS yours)', CASE WHEN latency IS NOT NULL THEN ' AS given)' ELSE '' END)`,
  latency: given('latency', microsSql('latency', '?'), '0'),
  fresh: `concat(${given('max_age', `_pit_age <= ${microsSql('max_age', '?')}`, 'true')}, CASE WHEN ${beyondAsked} THEN ' AND o IS DISTINCT FROM ''''' END)`,
  counted: `CASE WHEN CAST(skip_nulls AS BOOLEAN) THEN 'p.v IS NOT NULL OR p.o IS NOT NULL' ELSE 'true' END`,
  start: '_pit_grid[1]',
  back: '_pit_grid[2]',
  end: '_pit_grid[3]',
  length: '_pit_grid[4]',
  whole: `CASE WHEN ${beyondAsked} THEN '_pit_newest IS DISTINCT FROM ''''' ELSE 'true' END`,
  size: `coalesce(CAST(CAST(n AS BIGINT) AS VARCHAR), 'NULL')`,
}

function ofOne(sources: JoinSources, facts: JoinFacts): Readonly<Record<string, Sql>> {
  return {
    series: textOfSeries(sources, facts),
    lag: `CASE WHEN ${beyondAsked} THEN '0' ELSE coalesce(_pit_fact['held'][1], '0') END`,
  }
}

function ofMany(sources: JoinSources, facts: JoinFacts): Readonly<Record<string, Sql>> {
  return {
    names: textOfNames(),
    points: textOfMany(sources, facts, '"interval"'),
    leaves: textOfLeaves(),
    chunks: `CAST((len(list_distinct(CAST(metrics AS VARCHAR[]))) + 59) // 60 AS VARCHAR)`,
  }
}

/** With other clocks than those of the files in view the end of the interval is the only safe bound: 0, else NULL. */
export const otherClocks: Sql = `CASE WHEN ${backfillSql} OR NOT ${unsetSql('observed_as_of')} THEN 0 END`

/** What was found, NULL where it is not fresh. */
export const freshColumns = ['t', 'available_at', 'v', 'o']
  .map((one) => `CASE WHEN ${slot('fresh')} THEN ${one} END AS ${one}`)
  .join(', ')

/** The engine takes a text without a unit as seconds: none is needed by 0 alone. */
export function spanSql(parameter: Sql, said: Sql = parameter): Sql {
  const text = `CAST(${said} AS VARCHAR)`
  return `CAST(CASE WHEN TRY_CAST(${text} AS DOUBLE) <> 0 THEN error(concat('${parameter} has no unit: ', ${text})) ELSE ${text} END AS INTERVAL)`
}

/** Negative durations would look ahead. */
function microsSql(parameter: Sql, said: Sql = parameter): Sql {
  const value = `epoch_us(${spanSql(parameter, said)})`
  return `CASE WHEN ${value} < 0 THEN CAST(error('${parameter} is negative') AS BIGINT) ELSE coalesce(${value}, 0) END`
}

/**
 * The tail of a join, as further CTEs. `_pit_m (_pit_i, KEYS, _pit_k, _pit_e)` holds what the look-up of the expected start
 * left open, `_pit_p (KEYS, t, available_at, v, o)` the points, one a series and `t`; `_pit_r (_pit_i, the KEYS but
 * asset, t, available_at, v, o)` will hold the answers, no row where nothing was known.
 *
 * Before the first arrival of a series nothing was known, after the last its newest point. Else the newest known of the
 * three intervals before the expected one is the answer, because nothing in between is known. The rest is matched with
 * the strict frontier of the series concerned, the points that were the newest known when they arrived, one an instant.
 *
 * What is told of each series goes through a list: so the optimiser takes it for a single row, and lets the points, not the
 * few misses, pass by the small side of the joins that follow. And taken for few rows, the rest would be compared with
 * every point: a thousand rows that are not there say otherwise.
 */
export function missesSql(names: readonly string[]): Sql {
  const more = names.filter((name) => name !== 'asset')
  const each = (columns: readonly string[], alias: string): Sql => columns.map((name) => `${alias}.${name}`).join(', ')
  const equal = (columns: readonly string[], a: string, b: string): Sql =>
    columns.map((name) => `${a}.${name} = ${b}.${name}`).join(' AND ')
  const row = ['_pit_i', ...more]
  const found = ['t', 'available_at', 'v', 'o']
  const asked = ['_pit_i', ...names, '_pit_k']
  const { newest, following } = arrivalsSql(each(names, 'p'))
  return `_pit_n AS MATERIALIZED (
  SELECT ${['m._pit_i', each(names, 'f'), 'm._pit_k, m._pit_e'].join(', ')}, CASE WHEN m._pit_k >= f.hi THEN f.t END AS last
  FROM _pit_m AS m JOIN (SELECT unnest(list(f), recursive := true) FROM (
    SELECT ${each(names, 'p')}, min(p.available_at) AS lo, max(p.available_at) AS hi, max(p.t) AS t FROM _pit_p AS p GROUP BY ${each(names, 'p')}
  ) AS f) AS f ON ${[...more.map((name) => `m.${name} = f.${name}`), 'CAST(m.asset AS VARCHAR) = f.asset'].join(' AND ')} AND m._pit_k >= f.lo
),
_pit_back AS MATERIALIZED (
  SELECT ${each(row, 'n')}, max({${found.map((name) => `'${name}': p.${name}`).join(', ')}}) AS best
  FROM (SELECT n.*, coalesce(n.last, ${slot('back')}) AS t FROM _pit_n AS n, (VALUES (1), (2), (3)) AS past (n)) AS n
  JOIN _pit_p AS p ON ${equal(names, 'p', 'n')} AND p.t = n.t AND p.available_at <= n._pit_k
  GROUP BY ${each(row, 'n')}
),
_pit_rest AS MATERIALIZED (SELECT n.* FROM _pit_n AS n ANTI JOIN _pit_back AS b ON ${equal(row, 'n', 'b')}),
_pit_r AS (
  SELECT ${each(row, 'b')}, ${each(found, 'b.best')} FROM _pit_back AS b
  UNION ALL SELECT ${each(row, 'n')}, ${each(found, 'p')}
  FROM (
    SELECT ${each(asked, 'n')} FROM _pit_rest AS n
    UNION ALL SELECT ${asked.map(() => 'NULL').join(', ')} FROM range(1000) AS r (r) WHERE CAST(r.r AS VARCHAR) = ''
  ) AS n ASOF JOIN (
    SELECT p.* FROM _pit_p AS p SEMI JOIN _pit_rest AS n ON ${equal(names, 'p', 'n')}
    QUALIFY p.t >= ${newest}
      AND ${following} IS DISTINCT FROM p.available_at
  ) AS p ON ${equal(names, 'p', 'n')} AND n._pit_k >= p.available_at
)`
}

/**
 * Of points `p` in the order of their arrival: the newest start known with each, and when the next one arrives. What was
 * already overtaken is older than the newest; of those that arrive together only the last has a next that is later.
 */
export function arrivalsSql(keys: Sql): Readonly<Record<'newest' | 'following', Sql>> {
  // Not a named window: statements that are parsed together share the names of their windows.
  const arrivals = `PARTITION BY ${keys} ORDER BY p.available_at, p.t`
  return {
    newest: `max(p.t) OVER (${arrivals} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)`,
    following: `lead(p.available_at) OVER (${arrivals})`,
  }
}
