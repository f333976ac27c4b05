import { countSql, endSql, fitsSql, lengthSql, micros, startSql } from '../intervals-sql.ts'
import {
  factsOf,
  type JoinDimension,
  joinPointsSql,
  type JoinSources,
  leafSql,
  lookUp,
  metricName,
  pointerSql,
  slot,
  wantedOf,
} from './joins-points.ts'
import { askedSql, freshColumns, missesSql, otherClocks, spanSql } from './joins-text.ts'
import { utcSql } from './template.ts'

/**
 * The placeholders of the joins. All of it is made of constants and of the macro's own parameters, so that it folds
 * while the query is bound: only the files of the metrics in question are opened, and a mistake is an error even
 * where no row is read.
 *
 *   {{asked NAMES TEXT}}         the answer to the text of a query over these metrics, for FROM, see joins-text. Of the text:
 *   {{the PLACE}}                what its caller gave; {{misses KEYS}} further CTEs; {{own_lag LAG}} the lag that holds
 *                                under the session's clocks; {{fresh_columns}} of the answer, NULL where `max_age` is over
 *   {{points_of NAMES INTERVAL}}  the points of these metrics and of this interval, price_usd among them, for FROM
 *   {{unsettled_of NAMES}}       where decisions about these metrics fall into holes of what is settled, for FROM
 *   {{line NAME}}                what is known of a metric, see joins-points
 *   {{wanted DIMENSION LINE}}    the value of a dimension that a metric is joined on, NULL where it takes none
 *   {{leaf COLUMN POINTER}}      v or o of a point, or of the part of its value that a column's pointer tells
 *   {{pointer NAME}}             the JSON pointer of a name (`metric` is the macro's own), else `component`; NULL where there is none
 *   {{utc X}}                    an instant, zone-less meaning UTC
 *   {{span X}}                   a duration as an interval
 *   {{start T INTERVAL}}         the start of the interval that holds T, an instant
 *   {{end T INTERVAL}} {{length INTERVAL}}   its end, its length (months at their shortest), in microseconds
 *   {{count SINCE UNTIL INTERVAL}}   how many intervals lie between two starts in microseconds
 *   {{fits PART WHOLE}}          whether intervals of the one make up intervals of the other
 *
 * NAMES is the macro's parameter `metric` or `metrics`; NAME is `metric` or a column with a path.
 */
export function joinWords(sources: JoinSources): Readonly<Record<string, (argument: string) => string>> {
  const facts = factsOf(sources)
  const { weekStart } = sources
  const words: Readonly<Record<string, (...parts: string[]) => string>> = {
    the: (place = '') => slot(place),
    misses: (...keys) => missesSql(keys),
    own_lag: (lag = '') => `least(CAST(${lag} AS BIGINT), ${otherClocks})`,
    fresh_columns: () => freshColumns,
    points_of: (names = '', interval = '"interval"') => joinPointsSql(sources, facts, names, interval),
    unsettled_of: (names = '') => joinPointsSql(sources, facts, names, '"interval"', true),
    wanted: (dimension = '', line = '') => wantedOf(dimension as JoinDimension, line),
    line: (name = '') => lookUp(facts.metrics, name),
    leaf: (column = '', pointer = '') => leafSql(column, pointer),
    pointer: (name = '') => pointerSql(name === 'metric' ? metricName : name),
    utc: (x = '') => utcSql(x),
    told: (x = '') => `strftime(timezone('UTC', ${x}), '%Y-%m-%dT%H:%M:%SZ')`,
    span: (x = '') => spanSql(x),
    start: (t = '', interval = '') =>
      `make_timestamptz(${startSql(`epoch_us(${t})`, interval, { weekStart, ticks: micros })})`,
    end: (t = '', interval = '') => endSql(`epoch_us(${t})`, interval, micros),
    length: (interval = '') => lengthSql(interval, micros),
    count: (since = '', until = '', interval = '') =>
      countSql(`epoch_us(${since})`, `epoch_us(${until})`, interval, micros),
    fits: (part = '', whole = '') => fitsSql(part, whole),
  }
  return {
    ...Object.fromEntries(
      Object.entries(words).map(([word, make]) => [word, (argument: string) => make(...argument.split(' '))]),
    ),
    asked: (argument) => askedSql(sources, facts, argument.slice(0, argument.search(/\s/)), argument),
  }
}
