import { quote } from '../store/engine.ts'
import { instantSql, utcSql } from './template.ts'

/** An SQL expression. */
type Sql = string

/** The decisions of a join as a CTE: which, and the instant at which their points must be known. */
const own = `WITH own AS MATERIALIZED (
  SELECT n, asset, ts, ts - coalesce(CAST(latency AS INTERVAL), to_seconds(0)) AS known
  FROM (
    SELECT row_number() OVER () AS n, CAST(asset AS VARCHAR) AS asset, ${utcSql('ts')} AS ts, latency
    FROM (?decisions) AS given (asset, ts, latency)
  )
)`

/**
 * Of which assets and until when; and whether a decision may be late: behind the first hole in what `coverage` settles, of
 * a series without any, or behind `as_of`. That is told in a fifth of the time that `unsettled` takes.
 */
const extent = `${own}, assets AS (SELECT DISTINCT asset FROM own WHERE asset IS NOT NULL), ends AS (
  SELECT metric, asset, until FROM coverage
  WHERE list_contains(?paths, metric) AND "interval" = ?interval AND asset IN (FROM assets)
    AND state IN ('covered', 'empty', 'unsupported') AND reason IS DISTINCT FROM 'awaiting'
  QUALIFY lead(since) OVER (PARTITION BY metric, asset, currency, exchange, network ORDER BY since) IS DISTINCT FROM until
)
SELECT CAST(max(ts) AS VARCHAR) AS last, CAST(to_json((SELECT coalesce(list(asset ORDER BY asset), []) FROM assets)) AS VARCHAR) AS assets,
  coalesce(max(known) >= (SELECT min(until) FROM ends) OR max(known) > ${instantSql('as_of')}, false)
    OR (SELECT count(DISTINCT (metric, asset)) FROM ends) < len(?paths) * (SELECT count(*) FROM assets) AS late
FROM own`

const beyond = `${own}
SELECT u.metric, CAST(count(DISTINCT o.n) AS INTEGER) AS decisions, CAST(min(o.ts) AS VARCHAR) AS since
FROM own AS o JOIN unsettled(?metrics, ?interval?options) AS u
  ON u.asset = o.asset AND o.known >= u.since AND (u.until IS NULL OR o.known < u.until)
GROUP BY u.metric ORDER BY u.metric`

/** What stands in `question_asked`: texts of SQL, and of statements over the decisions of a join, each `?word` the column beside it. */
export const askedWords = {
  extent_text: () => filled(extent, ['interval', 'paths', 'decisions']),
  beyond_text: () => filled(beyond, ['options', 'interval', 'metrics', 'decisions']),
  /** The text of a literal. */
  literal_of: literalOf,
  /** The text of a list of literals. */
  list_of: (list: string) =>
    `('[' || array_to_string(list_transform(${list}, lambda word: ${literalOf('word')}), ', ') || ']')`,
  /** What a column is compared with. */
  said: (column: string) => `coalesce(list(DISTINCT text ORDER BY text) FILTER (named = ${quote(column)}), [])`,
} as const

function literalOf(text: Sql): Sql {
  return `('''' || replace(${text}, '''', '''''') || '''')`
}

/** The decisions come last: they are somebody's own words. */
function filled(text: string, words: readonly string[]): Sql {
  return words.reduce((sql, word) => `replace(${sql}, '?${word}', one."${word}")`, quote(text))
}
