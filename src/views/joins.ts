import { countSql, endSql, fitsSql, lengthSql, micros, type Sql, startSql } from '../intervals-sql.ts'
import { expectedSql, lagClassSql, missesSql } from './joins-grid.ts'
import {
  type JoinDimension,
  type Facts,
  factsOf,
  type JoinSources,
  lookUp,
  metricName,
  pathOf,
  pointsOf,
  seriesOf,
  wantedOf,
} from './joins-points.ts'
import { beyondAsked } from './joins-beyond.ts'
import { backfillSql, unsetSql, utcSql } from './template.ts'

/**
 * The placeholders of the joins. All of it is made of constants and of the macro's own parameters, so that it folds
 * while the query is bound: only the files of the metrics in question are opened, and a mistake is an error even
 * where no row is read.
 *
 *   {{points_of NAMES INTERVAL}}  the points of these metrics and of this interval, price_usd among them, for FROM
 *   {{unsettled_of NAMES}}       where decisions about these metrics fall into holes of what is settled, for FROM
 *   {{series}}                   the points of `metric` under the options, for FROM: asset, t, available_at, v, o
 *   {{line NAME}}                what is known of a metric, see joins-points
 *   {{wanted DIMENSION LINE}}    the value of a dimension that a metric is joined on, NULL where it takes none
 *   {{lag NAME}}                 no point is known earlier than this after the end of its interval, microseconds
 *   {{lag_class NAME}} {{chunks}}   see joins-grid; how many sixties of names `metrics` holds
 *   {{leaf COLUMN POINTER}}      v or o of a point, or of the part of its value that a column's pointer tells
 *   {{pointer NAME}}             the JSON pointer of a name (`metric` is the macro's own), else `component`; NULL where there is none
 *   {{utc X}} {{micros X}}       an instant, zone-less meaning UTC; a duration in microseconds
 *   {{span X}}                   a duration as an interval
 *   {{before X}}                 the instant `latency` before X
 *   {{fresh}}                    whether a row is young enough for `max_age`, and no hole in what is settled
 *   {{beyond}}                   whether holes in what is settled are asked for; see joins-beyond
 *   {{start T INTERVAL}}         the start of the interval that holds T, an instant
 *   {{end T INTERVAL}} {{length INTERVAL}}   its end, its length (months at their shortest), in microseconds
 *   {{count SINCE UNTIL INTERVAL}}   how many intervals lie between two starts in microseconds
 *   {{fits PART WHOLE}}          whether intervals of the one make up intervals of the other
 *   {{expected K LAG N}} {{misses KEYS}}   see joins-grid
 *
 * NAMES is the macro's parameter `metric` or `metrics`; NAME is `metric` or a column with a path.
 */
export function joinWords(sources: JoinSources): Readonly<Record<string, (argument: string) => string>> {
  const facts = factsOf(sources)
  const { weekStart } = sources
  const words: Readonly<Record<string, (...parts: string[]) => string>> = {
    points_of: (names = '', interval = '"interval"') => pointsOf(sources, facts, names, interval),
    unsettled_of: (names = '') => pointsOf(sources, facts, names, '"interval"', true),
    wanted: (dimension = '', line = '') => wantedOf(dimension as JoinDimension, line),
    line: (name = '') => lookUp(facts.metrics, name),
    series: () => seriesOf(sources, facts, pointerSql(metricName), leafSql),
    lag: (name = '') => lagSql(facts, pathOf(name)),
    lag_class: (name = '') => lagClassSql(lagSql(facts, pathOf(name))),
    chunks: () => `((len(list_distinct(CAST(metrics AS VARCHAR[]))) + 59) // 60)`,
    leaf: (column = '', pointer = '') => leafSql(column, pointer),
    pointer: (name = '') => pointerSql(name === 'metric' ? metricName : name),
    utc: (x = '') => utcSql(x),
    told: (x = '') => `strftime(timezone('UTC', ${x}), '%Y-%m-%dT%H:%M:%SZ')`,
    micros: (x = '') => microsSql(x),
    span: (x = '') => spanSql(x),
    before: (x = '') => beforeSql(x),
    start: (t = '', interval = '') =>
      `make_timestamptz(${startSql(`epoch_us(${t})`, interval, { weekStart, ticks: micros })})`,
    end: (t = '', interval = '') => endSql(`epoch_us(${t})`, interval, micros),
    length: (interval = '') => lengthSql(interval, micros),
    count: (since = '', until = '', interval = '') =>
      countSql(`epoch_us(${since})`, `epoch_us(${until})`, interval, micros),
    fits: (part = '', whole = '') => fitsSql(part, whole),
    expected: (k = '', lag = '', n = '0') => expectedSql(k, lag, n, weekStart),
    fresh: () => `(max_age IS NULL OR _pit_age <= ${microsSql('max_age')})
      AND CASE WHEN ${beyondAsked} THEN _pit_o IS DISTINCT FROM '' ELSE true END`,
    beyond: () => beyondAsked,
    misses: (...keys) => missesSql(keys, weekStart),
  }
  return Object.fromEntries(
    Object.entries(words).map(([word, make]) => [word, (argument) => make(...argument.split(' '))]),
  )
}

/** With other clocks than those of the files in view the end of the interval is the only safe bound. */
function lagSql(facts: Facts, metric: Sql): Sql {
  const own = lookUp(facts.lags, `${metric}, '|', CAST("interval" AS VARCHAR)`)
  return `least(coalesce(CAST(${own} AS BIGINT), 0), CASE WHEN ${backfillSql} OR NOT ${unsetSql('observed_as_of')} OR ${beyondAsked} THEN 0 END)`
}

/** A pointer that does not begin with a slash is found out while the files are chosen. */
function pointerSql(name: Sql): Sql {
  return `CASE WHEN instr(${name}, '#') = length(${name}) THEN NULL WHEN contains(${name}, '#') THEN substr(${name}, instr(${name}, '#') + 1)
    WHEN CAST(component AS VARCHAR) <> '' THEN CAST(component AS VARCHAR) END`
}

/** Not by `IN (…)`: that would become a join of all points with a list of types. */
function leafSql(column: string, pointer: Sql): Sql {
  const number = `regexp_matches(json_type(known.o, ${pointer}), '^(DOUBLE|U?BIGINT|U?HUGEINT)$')`
  const part =
    column === 'v'
      ? `CASE WHEN ${number} THEN TRY_CAST(json_extract_string(known.o, ${pointer}) AS DOUBLE) END`
      : `CASE WHEN ${number} OR json_type(known.o, ${pointer}) = 'NULL' THEN NULL ELSE CAST(json_extract(known.o, ${pointer}) AS VARCHAR) END`
  return `CASE WHEN ${pointer} IS NULL THEN known.${column} ELSE ${part} END`
}

/** The engine takes a text without a unit as seconds: none is needed by 0 alone. */
function spanSql(parameter: Sql): Sql {
  const text = `CAST(${parameter} AS VARCHAR)`
  return `CAST(CASE WHEN TRY_CAST(${text} AS DOUBLE) <> 0 THEN error(concat('${parameter} has no unit: ', ${text})) ELSE ${text} END AS INTERVAL)`
}

/** Negative durations would look ahead. */
function microsSql(parameter: Sql): Sql {
  const value = `epoch_us(${spanSql(parameter)})`
  return `CASE WHEN ${value} < 0 THEN CAST(error('${parameter} is negative') AS BIGINT) ELSE coalesce(${value}, 0) END`
}

function beforeSql(x: Sql): Sql {
  return `CASE WHEN isfinite(${x}) THEN make_timestamptz(epoch_us(${x}) - ${microsSql('latency')}) ELSE ${x} END`
}
