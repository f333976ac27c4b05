import { countSql, endSql, fitsSql, lengthSql, micros, type Sql, startSql, stepSql } from '../../base/intervals-sql.ts'
import {
  factsOf,
  filesOfOne,
  type JoinDimension,
  type JoinFacts,
  joinPointsSql,
  type JoinSources,
  metricName,
  pathOf,
  pointerSql,
  seriesOf,
  wantedOf,
} from './joins-points.ts'
import { lookUp, spanSql } from './joins-sql.ts'
import { inText, joinText } from './joins-text.ts'
import { partPath } from './part-clocks.ts'
import { beyondAsked } from './joins-beyond.ts'
import { backSpan, type EarlierPlaces, earlierSql, soughtSql, textOfSpan } from './joins-earlier.ts'
import { type VintageWords, vintageWords } from './joins-vintages.ts'
import { backfillSql, unsetSql, utcSql } from './template.ts'
import type { Weekday } from '../../base/time.ts'

/**
 * Builds the placeholders of the joins. They consist of constants and of the macro's own parameters, so that they fold
 * while the query is bound: only the files of the metrics in question are opened, and a mistake is an error even if no
 * row is read.
 *
 *   {{points_of NAMES INTERVAL}}   points of these metrics and this interval, price_usd among them, for FROM
 *   {{unresolved_times_of NAMES}}  times at which decisions about these metrics are unresolved, for FROM
 *   {{series}}                     points of `metric` under the options, for FROM: asset, t, available_at, v, o
 *   {{line NAME}}                  facts known of a metric, see joins-points
 *   {{wanted DIMENSION LINE}}      value of a dimension that a metric is joined on, NULL if it takes none
 *   {{lag NAME}}                   no point is known earlier than this after the end of its interval, microseconds
 *   {{first_end NAME}} {{newest NAME}}   no point of it ends earlier than this, or starts later; NULL if unknown
 *   {{lag_class NAME}} {{chunks}}  see lagClassSql; how many sixties of names are in `metrics`
 *   {{leaf COLUMN POINTER}}        v or o of a point, or of the part of its value at a column's pointer
 *   {{path NAME}}                  path of a name; the name itself if it is a part that is known before the whole
 *   {{pointer NAME}}               JSON pointer of a name (`metric` is the macro's own), else `component`; NULL if none
 *   {{utc X}} {{micros X}}         an instant, zone-less meaning UTC; a duration in microseconds
 *   {{utc_text X}}                 an instant as text, `2024-03-01T00:00:00Z`
 *   {{span X}}                     a duration as an interval
 *   {{before X}}                   the instant `latency` before X
 *   {{back START N}}               start of the interval so many before
 *   {{fresh}} {{fresh SHIFT}}      whether a row is young enough for `max_age`, its age less SHIFT, and no gap in the
 *                                  resolved range
 *   {{sought SITE KEYS}} {{earlier SITE KEYS}}   how far a span reaches back, and the points there; see joins-earlier
 *   {{newest_known DECISIONS}}     the newest point of `metric` that was known at each decision
 *   {{unresolved}}                 whether gaps in the resolved range are requested; see joins-beyond
 *   {{start T INTERVAL}}           start of the interval that contains T, an instant
 *   {{first X INTERVAL}}           first start that is not before X, an instant
 *   {{end T INTERVAL}} {{length INTERVAL}}   its end, its length (months at their shortest), in microseconds
 *   {{count SINCE UNTIL INTERVAL}} number of intervals between two starts in microseconds
 *   {{fits PART WHOLE}}            whether intervals of the one make up intervals of the other
 *   {{expected K LAG NEWEST}} {{misses POINTS KEYS}}   see expectedSql and missesSql
 *   {{text BODY}} {{its PLACE}}    answer to a text over the points of `metric`, for FROM, and a place in it; see
 *                                  joins-text
 *   {{counted ROW REVISED}}        rows that count if nulls are skipped
 *   {{known}} {{known kept}} {{vintages KEYS REVISED}} {{current ROW K}} {{observed}} {{number}} {{revised NAME}}
 *                                  see joins-vintages
 *
 * SITE is `macro` or `text`. NAMES is the macro's parameter `metric` or `metrics`; NAME is `metric` or a column with a path.
 */
export function joinPlaceholders(sources: JoinSources): Readonly<Record<string, (argument: string) => string>> {
  const facts = factsOf(sources)
  const { weekStart } = sources
  const vintageTexts = vintageWords(sources.revisable)
  const words: Readonly<Record<string, (...parts: string[]) => string>> = {
    points_of: (names = '', interval = '"interval"') => joinPointsSql(sources, facts, names, interval),
    unresolved_times_of: (names = '') => joinPointsSql(sources, facts, names, '"interval"', true),
    wanted: (dimension = '', line = '') => wantedOf(dimension as JoinDimension, line),
    line: (name = '') => lookUp(facts.metrics, name),
    series: () => seriesOf(sources, facts, pointerSql(metricName), leafSql),
    lag: (name = '') => lagSql(facts, pathOf(sources, name)),
    first_end: (name = '') => startOf(facts, pathOf(sources, name), 2),
    newest: (name = '') => startOf(facts, pathOf(sources, name), 3),
    lag_class: (name = '') => lagClassSql(lagSql(facts, pathOf(sources, name))),
    chunks: () => `((len(list_distinct(CAST(metrics AS VARCHAR[]))) + 59) // 60)`,
    leaf: (column = '', pointer = '') => leafSql(column, pointer),
    path: (name = '') => partPath(sources.parts, `split_part(${name}, '#', 1)`, pointerSql(name)),
    pointer: (name = '') => pointerSql(name === 'metric' ? metricName : name),
    utc: (x = '') => utcSql(x),
    utc_text: (x = '') => `strftime(timezone('UTC', ${x}), '%Y-%m-%dT%H:%M:%SZ')`,
    micros: (x = '') => microsSql(x),
    span: (x = '') => spanSql(x),
    before: (x = '') => beforeSql(x),
    start: (t = '', interval = '') =>
      `make_timestamptz(${startSql(`epoch_us(${t})`, interval, { weekStart, ticks: micros })})`,
    first: (...words) => firstSql(words.slice(0, -1).join(' '), words.at(-1) ?? '', weekStart),
    end: (t = '', interval = '') => endSql(`epoch_us(${t})`, interval, micros),
    length: (interval = '') => lengthSql(interval, micros),
    count: (since = '', until = '', interval = '') =>
      countSql(`epoch_us(${since})`, `epoch_us(${until})`, interval, micros),
    fits: (part = '', whole = '') => fitsSql(part, whole),
    expected: (k = '', lag = '', newest = '') => expectedSql(k, lag, newest, weekStart),
    back: (start = '', n = '') => backSql(start, n),
    fresh: (shift = '') => `(max_age IS NULL OR _pit_age${shift && ` - ${shift}`} <= ${microsSql('max_age')})
      AND CASE WHEN ${beyondAsked} THEN _pit_point_o IS DISTINCT FROM '' ELSE true END`,
    its: (place = '') => inText(place),
    unresolved: () => beyondAsked,
    sought: (site = '', ...keys) => soughtSql(keys, earlierPlaces(site, sources, vintageTexts)),
    earlier: (site = '', ...keys) => earlierSql(keys, earlierPlaces(site, sources, vintageTexts)),
    newest_known: (...decisions) => newestKnownSql(decisions.join(' '), pathOf(sources, 'metric'), vintageTexts),
    misses: (points = '', ...keys) => missesSql(keys, points, vintageTexts),
    known: (kept = '') => vintageTexts.known(kept === 'kept'),
    observed: () => vintageTexts.observed('known'),
    number: () => vintageTexts.number,
    current: (row = '', at = '') => vintageTexts.current(row, at),
    seen: () => vintageTexts.observed('p'),
    among: (row = '', at = '') =>
      sources.revisable.length === 0 ? '' : ` AND ${row}.available_at <= ${at}${vintageTexts.current(row, at)}`,
    revised: (name = '') => vintageTexts.isRevised(pathOf(sources, name)) ?? 'false',
    flagged: () =>
      sources.revisable.length === 0
        ? ''
        : `${vintageTexts.observed('known')}, ${vintageTexts.isRevised('known.metric')} AS revised`,
    vintages: (keys = '', ...revised) =>
      vintageTexts.vintages(keys.replaceAll(/\w+/g, 'w.$&'), revised.join(' '), skipsNulls),
    counted: (row = '', ...revised) => vintageTexts.counted(row, { ...skipping, revised: revised.join(' ') }),
  }
  return {
    ...Object.fromEntries(
      Object.entries(words).map(([word, make]) => [word, (argument: string) => make(...argument.split(' '))]),
    ),
    text: (body) => textOf(sources, facts, body),
  }
}

function textOf(sources: JoinSources, facts: JoinFacts, body: string): Sql {
  const series = seriesOf(sources, facts, pointerSql(metricName), leafSql)
  const path = pathOf(sources, 'metric')
  const files = filesOfOne(sources, facts)
  return joinText({ ...facts, ...sources, path, files, series }, body)
}

const skipsNulls = 'coalesce(CAST(skip_nulls AS BOOLEAN), false)'
const skipping = { skips: skipsNulls, last: `CAST(vintage AS VARCHAR) = 'last'` } as const

/**
 * Builds the lag bound. With clocks other than those of the files in view, or gaps, the end of the interval is the only
 * safe one.
 */
function lagSql(facts: JoinFacts, metric: Sql): Sql {
  return (
    `least(coalesce(CAST(${boundOf(facts, metric, 1)} AS BIGINT), 0), CASE WHEN ${backfillSql} OR NOT ` +
    `${unsetSql('observed_as_of')} OR ${beyondAsked} THEN 0 END)`
  )
}

/** Builds the start bound; gaps in the resolved range lie outside of all points. */
function startOf(facts: JoinFacts, metric: Sql, place: 2 | 3): Sql {
  return `make_timestamptz(CASE WHEN NOT ${beyondAsked} THEN TRY_CAST(${boundOf(facts, metric, place)} AS BIGINT) END)`
}

function boundOf(facts: JoinFacts, metric: Sql, place: 1 | 2 | 3): Sql {
  return `string_split(${lookUp(facts.bounds, `${metric}, '|', CAST("interval" AS VARCHAR)`)}, chr(9))[${place}]`
}

/** Builds the value of a leaf. Not by `IN (…)`: that would become a join of all points with a list of types. */
function leafSql(column: string, pointer: Sql): Sql {
  const number = `regexp_matches(json_type(known.o, ${pointer}), '^(DOUBLE|U?BIGINT|U?HUGEINT)$')`
  const part =
    column === 'v'
      ? `CASE WHEN ${number} THEN TRY_CAST(json_extract_string(known.o, ${pointer}) AS DOUBLE) END`
      : `CASE WHEN ${number} OR json_type(known.o, ${pointer}) = 'NULL' THEN NULL ELSE ` +
        `CAST(json_extract(known.o, ${pointer}) AS VARCHAR) END`
  return `CASE WHEN ${pointer} IS NULL THEN known.${column} ELSE ${part} END`
}

/** Builds the SQL of a duration in microseconds; a negative one, which would look ahead, is an error. */
function microsSql(parameter: Sql): Sql {
  const value = `epoch_us(${spanSql(parameter)})`
  return `CASE WHEN ${value} < 0 THEN CAST(error('${parameter} is negative') AS BIGINT) ELSE coalesce(${value}, 0) END`
}

/** Returns the SQL of a join with `back`, as it stands in a macro, or in a text that a macro puts together. */
function earlierPlaces(site: string, { weekStart }: JoinSources, vintageTexts: VintageWords): EarlierPlaces {
  const lapses = vintageTexts.mayLapse({ ...skipping, revised: 'p.revised' })
  return site === 'text'
    ? { ...textOfSpan, weekStart, lapses: lapses && inText('lapses'), vintageTexts }
    : { interval: '"interval"', span: backSpan, weekStart, lapses, vintageTexts }
}

function beforeSql(x: Sql): Sql {
  return `CASE WHEN isfinite(${x}) THEN make_timestamptz(epoch_us(${x}) - ${microsSql('latency')}) ELSE ${x} END`
}

/**
 * Builds the SQL of the start of the newest interval of a macro's `"interval"` that can be known at the instant `k` if
 * no point is known sooner than `lag` microseconds after its end, and none starts after `newest`.
 */
function expectedSql(k: Sql, lag: Sql, newest: Sql, weekStart: Weekday): Sql {
  const start = startSql(`(epoch_us(${k}) - ${lag})`, '"interval"', { weekStart, back: '1', ticks: micros })
  return `least(make_timestamptz(${start}), ${newest})`
}

function firstSql(x: Sql, interval: Sql, weekStart: Weekday): Sql {
  const first = startSql(`(epoch_us(first_bound) - 1)`, interval, { weekStart, back: '-1', ticks: micros })
  // The expression of the bound is bound once, not for every interval.
  return `list_transform([${x}], lambda first_bound: coalesce(make_timestamptz(${first}), first_bound))[1]`
}

/**
 * Rounds a lag down to one that many metrics share: a 48th of a macro's `"interval"` or a multiple of it, below that a
 * microsecond. Zero stays: a point may be known at the very end.
 */
function lagClassSql(lag: Sql): Sql {
  const unit = `(${lengthSql('"interval"', micros)} // 48)`
  return (
    `(SELECT CASE WHEN bound.lag < ${unit} THEN least(bound.lag, 1) ELSE bound.lag - bound.lag % ${unit} END FROM ` +
    `(SELECT ${lag} AS lag) AS bound)`
  )
}

function backSql(start: Sql, n: Sql): Sql {
  return `make_timestamptz(${stepSql(`epoch_us(${start})`, '"interval"', `-${n}`, micros)})`
}

/**
 * Builds the tail of a join, as further CTEs. `_pit_misses (_pit_id, KEYS, _pit_known_by, _pit_expected_t, _pit_before_first)` holds what the look-up
 * of the expected start left open, and whether that lies before the first of all; `_pit_all_points (KEYS, t, available_at, v,
 * o)` the points, one a series and `t`, POINTS those of the intervals right before; `_pit_found_points (_pit_id, the KEYS but
 * asset, t, available_at, v, o)` will hold the answers, no row if nothing was known.
 *
 * The newest known of the three intervals before the expected one is the answer, because nothing in between is known.
 * For the rest it lies in the newest block of intervals of which anything was known, in none if nothing was. The strict
 * frontier shows what is the newest known: the blocks, and the points of those that were found, which were the newest
 * known when they arrived, one an instant.
 */
function missesSql(names: readonly string[], points: Sql, vintageTexts: VintageWords): Sql {
  const { list, same, row, sameRow, values } = wordsOf(names)
  const inBlock = wordsOf([...names, 'block'])
  // A value of the newest point, even if that is NULL.
  const newest = (column: string): Sql => `arg_max_null(p.${column}, p.t) AS ${column}`
  // If nothing is left, the engine reads no points.
  const isKnowable = 'n._pit_before_first IS NOT TRUE AND n.asset IS NOT NULL AND n._pit_known_by IS NOT NULL'
  // Out of a list, which counts as one row: else all points would be kept for the sake of many misses.
  const few = (cte: Sql, keys: readonly string[]): Sql =>
    '(SELECT unnest(keys, max_depth := 2) FROM (SELECT list(DISTINCT ' +
    `{${keys.map((name) => `'${name}': n.${name}`).join(', ')}}) AS keys FROM ${cte} AS n))`
  // If the engine expected few rows, it would compare them with every point: a thousand absent ones make it expect
  // many.
  const many = `SELECT ${inBlock.asked.map((name) => `n.${name}`).join(', ')} FROM _pit_tail_misses AS n
    UNION ALL SELECT ${inBlock.asked.map(() => 'NULL').join(', ')} FROM range(1000) AS r (r) WHERE CAST(r.r AS VARCHAR) = ''`
  const inNames = vintageTexts.mayLapse({ ...skipping, revised: 'p.revised' })
  const lapses = inNames !== null && names[0] === 'asset' ? inText('lapses') : inNames
  const [holding, lapsed] =
    lapses === null
      ? ['', '']
      : [
          ` WHERE NOT ${lapses}`,
          `
  UNION ALL SELECT ${row('l')}, ${values('l.best')} FROM (
    SELECT ${row('n')}, max({'t': p.t, 'available_at': p.available_at, 'v': p.v, 'o': p.o}) AS best
    FROM _pit_open_misses AS n JOIN _pit_all_points AS p ON ${same('p', 'n')} AND p.available_at <= n._pit_known_by${vintageTexts.current('p', 'n._pit_known_by')}
    WHERE ${lapses} GROUP BY ${row('n')}
  ) AS l`,
        ]
  const blocks =
    '(SELECT p.*, ' +
    `${names[0] === 'asset' ? inText('block') : `epoch_us(p.t) // (64 * ${lengthSql('"interval"', micros)})`} AS ` +
    'block FROM _pit_all_points AS p)'
  return `_pit_near_hits AS MATERIALIZED (
  SELECT ${row('n')}, max(p.t) AS t, ${newest('available_at')}, ${newest('v')}, ${newest('o')}
  FROM (
    SELECT n.*, ${names[0] === 'asset' ? inText('back') : backSql('n._pit_expected_t', 'past.n')} AS start
    FROM _pit_misses AS n, (VALUES (1), (2), (3)) AS past (n) WHERE ${isKnowable}
  ) AS n
  JOIN ${points} AS p ON ${same('p', 'n')} AND p.t = n.start AND p.available_at <= n._pit_known_by${vintageTexts.current('p', 'n._pit_known_by')}
  GROUP BY ${row('n')}
),
_pit_open_misses AS MATERIALIZED (
  SELECT n.* FROM _pit_misses AS n ANTI JOIN _pit_near_hits AS b ON ${sameRow('n', 'b')}
  WHERE ${isKnowable}
),
_pit_blocks AS (
  SELECT ${list('p')}, p.block, min(p.available_at) AS available_at FROM ${blocks} AS p
  SEMI JOIN ${few('_pit_open_misses', names)} AS n ON ${same('p', 'n')}${holding} GROUP BY ${list('p')}, p.block
),
_pit_tail_misses AS MATERIALIZED (
  SELECT n.*, p.block FROM _pit_open_misses AS n ASOF JOIN (SELECT p.* FROM _pit_blocks AS p ${frontierSql(list('p'), 'p.block')}) AS p
    ON ${same('p', 'n')} AND n._pit_known_by >= p.available_at
),
_pit_frontier AS (
  SELECT p.* FROM ${blocks} AS p SEMI JOIN ${few('_pit_tail_misses', [...names, 'block'])} AS n ON ${inBlock.same('p', 'n')}${vintageTexts.lived('p')}
  ${frontierSql(inBlock.list('p'), 'p.t')}
),
_pit_found_points AS (
  SELECT ${row('b')}, ${values('b')} FROM _pit_near_hits AS b
  UNION ALL SELECT ${row('n')}, ${values('p')} FROM (${many}) AS n ASOF JOIN _pit_frontier AS p
    ON ${inBlock.same('p', 'n')} AND n._pit_known_by >= p.available_at${lapsed}
)`
}

/** Builds the QUALIFY clause that keeps the rows `p` that were the newest when they arrived, one an instant. */
function frontierSql(keys: Sql, t: Sql): Sql {
  const { newest, following } = arrivalsSql(keys, t)
  return `QUALIFY ${t} >= ${newest}
    AND ${following} IS DISTINCT FROM p.available_at`
}

/**
 * Builds the newest point that was known at each decision (`asset`, `_pit_known_by`) over all points `_pit_all_points` of the macro's
 * metric: the columns of the decision, t, o.
 */
function newestKnownSql(decisions: Sql, path: Sql, vintageTexts: VintageWords): Sql {
  const frontier = `(SELECT p.* FROM _pit_all_points AS p${vintageTexts.lived('p')} ${frontierSql('p.asset', 'p.t')})`
  const found = `SELECT x.*, p.t, p.o FROM ${decisions} AS x ASOF JOIN ${frontier} AS p ON p.asset = x.asset AND x._pit_known_by >= p.available_at`
  const lapses = vintageTexts.mayLapse({ ...skipping, revised: vintageTexts.isRevised(path) ?? 'false' })
  if (lapses === null) return found
  return `${found} WHERE NOT ${lapses}
    UNION ALL
    SELECT x._pit_id, x.asset, x._pit_known_by, x.best.t, x.best.o FROM (
      SELECT x.*, max({'t': p.t, 'o': p.o}) AS best FROM ${decisions} AS x
      JOIN _pit_all_points AS p ON p.asset = x.asset AND p.available_at <= x._pit_known_by${vintageTexts.current('p', 'x._pit_known_by')}
      WHERE ${lapses} GROUP BY ALL
    ) AS x`
}

/** Phrases that the statements of the tail repeat, each with one or two aliases. */
function wordsOf(names: readonly string[]) {
  const more = names.filter((name) => name !== 'asset')
  const each = (columns: readonly string[]) => (alias: string) => columns.map((name) => `${alias}.${name}`).join(', ')
  const equal = (columns: readonly string[]) => (a: string, b: string) =>
    columns.map((name) => `${a}.${name} = ${b}.${name}`).join(' AND ')
  return {
    list: each(names),
    same: equal(names),
    row: each(['_pit_id', ...more]),
    sameRow: equal(['_pit_id', ...more]),
    values: each(['t', 'available_at', 'v', 'o']),
    asked: ['_pit_id', ...names, '_pit_known_by'],
  }
}

/**
 * Builds two columns of points `p` in the order of their arrival: the newest start known with each, and when the next
 * one arrives. A point already overtaken is older than the newest; of those that arrive together only the last has a
 * later next one.
 */
export function arrivalsSql(keys: Sql, t = 'p.t'): Readonly<Record<'newest' | 'following', Sql>> {
  // Not a named window: statements that are parsed together share the names of their windows.
  const arrivals = `PARTITION BY ${keys} ORDER BY p.available_at, ${t}`
  return {
    newest: `max(${t}) OVER (${arrivals} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)`,
    following: `lead(p.available_at) OVER (${arrivals})`,
  }
}
