import type { Catalogue } from '../../catalog/catalogue.ts'
import { type Interval, intervals } from '../../time.ts'
import { quote } from '../engine.ts'
import type { HeldFile } from '../held.ts'
import { endSql, expectedSql, lagClassSql, lengthSql, missesSql, startSql } from './joins-grid.ts'
import { literalPath } from './relations.ts'
import { backfillSql, instantSql } from './template.ts'

/** What the macros of the joins are made from. */
export interface JoinSources {
  readonly root: string
  readonly catalogue: Catalogue
  /** The live points files. */
  readonly files: readonly HeldFile[]
  /** The body of the view `points` over the list of files that an SQL expression gives; undefined where there are none. */
  readonly points: (list: string | undefined) => string
  /** The body of the view `price_usd`. */
  readonly price: () => string
}

/** An SQL expression. */
type Sql = string

const price = 'price_usd'
const priced = 'supply/current_pit'

/**
 * The placeholders of the joins. All of it is made of constants and of the macro's own parameters, so that it folds
 * while the query is bound: only the files of the metrics in question are opened, and a mistake is an error even
 * where no row is read.
 *
 *   {{points_of NAMES INTERVAL}}  the points of these metrics and of this interval, price_usd among them, for FROM
 *   {{wanted DIMENSION NAME}}    the value of a dimension that a metric is joined on, NULL where it takes none
 *   {{lag NAME}}                 no point is known earlier than this after the end of its interval, microseconds
 *   {{lag_class NAME}} {{chunks}}   see joins-grid; how many sixties of names `metrics` holds
 *   {{leaf COLUMN NAME}}         v or o of a point, or of the part of its value that the name's pointer tells
 *   {{pointer NAME}}             the JSON pointer of a name, else `component`; NULL where there is none
 *   {{utc X}} {{micros X}}       an instant, zone-less meaning UTC; a duration in microseconds
 *   {{fresh}}                    whether a row is young enough for `max_age`
 *   {{start T INTERVAL}} {{end T INTERVAL}} {{length INTERVAL}} {{expected K LAG N}} {{misses KEYS}}   see joins-grid
 *
 * NAMES is the macro's parameter `metric` or `metrics`; NAME is `metric` or a column with a path (in `leaf`: with a
 * pointer).
 */
export function joinWords(sources: JoinSources): Readonly<Record<string, (argument: string) => string>> {
  const facts = factsOf(sources)
  const words: Readonly<Record<string, (...parts: string[]) => string>> = {
    points_of: (names = '', interval = '"interval"') => pointsOf(sources, facts, names, interval),
    wanted: (dimension = '', name = '') => wantedSql(facts, dimension as Dimension, pathOf(name)),
    lag: (name = '') => lagSql(facts, pathOf(name), '"interval"'),
    lag_class: (name = '') => lagClassSql(lagSql(facts, pathOf(name), '"interval"')),
    chunks: () => `((len(list_distinct(CAST(metrics AS VARCHAR[]))) + 59) // 60)`,
    leaf: (column = '', name = '') => leafSql(column, name === 'metric' ? pointerSql(metricName) : name),
    pointer: (name = '') => pointerSql(name),
    utc: (x = '') => utcSql(x),
    micros: (x = '') => microsSql(x),
    start: (t = '', interval = '') => startSql(t, interval),
    end: (t = '', interval = '') => endSql(t, interval),
    length: (interval = '') => lengthSql(interval),
    expected: (k = '', lag = '', n = '0') => expectedSql(k, lag, n),
    fresh: () => `(CAST(max_age AS INTERVAL) IS NULL OR _pit_age <= ${microsSql('max_age')})`,
    misses: (...keys) => missesSql(keys),
  }
  return Object.fromEntries(
    Object.entries(words).map(([word, make]) => [word, (argument) => make(...argument.split(' '))]),
  )
}

const metricName = 'CAST(metric AS VARCHAR)'

function pathOf(name: Sql): Sql {
  return name === 'metric' ? `split_part(${metricName}, '#', 1)` : name
}

function pathsOf(names: string): Sql {
  if (names === 'metric') return `[${pathOf(names)}]`
  return `list_transform(CAST(metrics AS VARCHAR[]), lambda name: split_part(name, '#', 1))`
}

/** True where a pointer does not begin with a slash; `resample` takes none. */
function badPointer(names: string, interval: Sql): Sql {
  if (interval !== '"interval"') return 'false'
  const list = names === 'metric' ? `[${metricName}]` : 'CAST(metrics AS VARCHAR[])'
  return `coalesce(NOT regexp_matches(CAST(component AS VARCHAR), '^(/|$)'), false) OR regexp_matches(coalesce(list_aggregate(${list}, 'string_agg', ' '), ''), '#[^/ ]')`
}

const dimensions = ['currency', 'exchange', 'network'] as const
type Dimension = (typeof dimensions)[number]

/** What is known of each metric, as maps of SQL: a few long constants are bound faster than thousands of short ones. */
interface Facts {
  /** metric -> its intervals, by comma. */
  readonly intervals: Sql
  /** metric -> its values by comma, the default first; `*` for a metric that the catalogue does not have. */
  readonly values: Readonly<Record<Dimension, Sql>>
  /** `metric|interval` -> the files, by tab. */
  readonly files: Sql
  /** `metric|interval` -> microseconds. */
  readonly lags: Sql
}

function factsOf({ catalogue, files }: JoinSources): Facts {
  const held = Map.groupBy(files, ({ metric, interval }) => `${metric}|${interval}`)
  const lags = [...held].map(([key, own]): [string, string] => [key, String(smallestLag(own))])
  const prices = lags.flatMap(([key, lag]): [string, string][] =>
    key.startsWith(`${priced}|`) ? [[`${price}|${key.slice(priced.length + 1)}`, lag]] : [],
  )
  const values = Object.fromEntries(
    dimensions.map((dimension) => [dimension, mapOf(valuesOf(catalogue, files, dimension))]),
  ) as Record<Dimension, Sql>
  return {
    intervals: mapOf(intervalsOf(catalogue, files)),
    values,
    files: mapOf([...held].map(([key, own]) => [key, own.map(({ path }) => literalPath(path)).join('\t')])),
    lags: mapOf([...lags, ...prices]),
  }
}

/** A file that does not tell could hold a point that was known at the end of its interval. */
function smallestLag(files: readonly HeldFile[]): number {
  const lags = files.map(({ meta }) => meta['min_lag']).map((lag) => (typeof lag === 'number' ? lag : 0))
  return Math.min(...lags)
}

function intervalsOf(catalogue: Catalogue, files: readonly HeldFile[]): [string, string][] {
  const known = new Map<string, Set<Interval>>()
  for (const { path, intervals: own } of catalogue.endpoints.values()) known.set(path, new Set(own))
  for (const { metric, interval } of files) {
    if (metric === null || interval === null) continue
    known.set(metric, (known.get(metric) ?? new Set()).add(interval))
  }
  const prices = known.get(priced)
  if (prices) known.set(price, prices)
  return [...known].map(([metric, own]) => [
    metric,
    intervals.filter((interval) => own.size === 0 || own.has(interval)).join(','),
  ])
}

function valuesOf(catalogue: Catalogue, files: readonly HeldFile[], dimension: Dimension): [string, string][] {
  const key = ({ currency: 'currencies', exchange: 'exchanges', network: 'networks' } as const)[dimension]
  const listed = [...catalogue.endpoints.values()].flatMap((endpoint): [string, string][] => {
    const standard = endpoint.defaults[dimension]
    if (standard === null) return []
    return [[endpoint.path, [standard, ...endpoint[key].filter((value) => value !== standard)].join(',')]]
  })
  const strangers = new Set(files.flatMap(({ metric }) => (metric === null ? [] : [metric])))
  for (const path of catalogue.endpoints.keys()) strangers.delete(path)
  return [...listed, ...[...strangers].map((metric): [string, string] => [metric, '*'])]
}

/** A map of texts as two constants; a key that it lacks gives NULL. */
function mapOf(pairs: readonly (readonly [string, string])[]): Sql {
  if (pairs.length === 0) return `CAST(MAP {} AS MAP(VARCHAR, VARCHAR))`
  const list = (texts: readonly string[]): Sql => `string_split(${quote(texts.join('\n'))}, chr(10))`
  return `map(${list(pairs.map(([key]) => key))}, ${list(pairs.map(([, value]) => value))})`
}

/**
 * The files of the metrics; an unknown metric, interval or dimension value ends the query while it is bound.
 * A metric without files names any file of the lake, whose rows the filter then drops. In the arguments of a table function `fact.name` would be the text of that name.
 */
function filesOf(facts: Facts, names: string, interval: Sql, fallback: string): Sql {
  const list = pathsOf(names)
  const named = `list_transform(${list}, lambda metric_name: {'name': metric_name, 'intervals': ${facts.intervals}[metric_name]${dimensions
    .map((dimension) => `, '${dimension}': ${facts.values[dimension]}[metric_name]`)
    .join('')}})`
  const wrong = dimensions.map(
    (dimension) => `WHEN CAST(${dimension} AS VARCHAR) IS NOT NULL AND fact['${dimension}'] <> '*'
        AND NOT list_contains(string_split(fact['${dimension}'], ','), CAST(${dimension} AS VARCHAR))
      THEN error(fact['name'] || ' has no ${dimension} ' || CAST(${dimension} AS VARCHAR) || ', but ' || fact['${dimension}'])`,
  )
  return `list_distinct(flatten(list_transform(${named}, lambda fact: string_split(CASE
      WHEN ${badPointer(names, interval)} THEN error('a component is a JSON pointer: it begins with /')
      WHEN fact['name'] IS NULL THEN error('the name of a metric is NULL')
      WHEN fact['intervals'] IS NULL THEN error('unknown metric ' || fact['name'] || ': the view endpoints lists them all')
      WHEN NOT coalesce(list_contains(string_split(fact['intervals'], ','), CAST(${interval} AS VARCHAR)), false)
      THEN error(fact['name'] || ' has no interval ' || coalesce(CAST(${interval} AS VARCHAR), 'NULL') || ', but ' || fact['intervals'])
      ${wrong.join('\n      ')}
      ELSE coalesce(${facts.files}[fact['name'] || '|' || CAST(${interval} AS VARCHAR)], ${quote(fallback)}) END, chr(9)))))`
}

function pointsOf(sources: JoinSources, facts: Facts, names: string, interval: Sql): Sql {
  const list = pathsOf(names)
  const columns = ['metric', 'asset', '"interval"', 'currency', 'exchange', 'network']
  const values = ['t', 'available_at', 'observed_at', 'v', 'o']
  const all = [...columns, ...values].map((column) => `known_points.${column}`).join(', ')
  const [first] = sources.files
  const chosen = filesOf(facts, names, interval, first ? literalPath(first.path) : '')
  const some = (body: string, of: string): Sql =>
    `SELECT ${all} FROM (${body}) AS known_points
    WHERE list_contains(${of}, known_points.metric) AND known_points."interval" = CAST(${interval} AS VARCHAR)`
  if (!first) {
    return `(SELECT ${all} FROM (${sources.points(undefined)}) AS known_points, range(len(${chosen})) AS none WHERE false)`
  }
  const paths = `list_transform(${chosen}, lambda file: ${quote(`${literalPath(sources.root)}/`)} || file)`
  return `(${some(sources.points(paths), list)}
    UNION ALL ${some(sources.price(), list)} AND list_contains(${list}, '${price}'))`
}

function wantedSql(facts: Facts, dimension: Dimension, metric: Sql): Sql {
  const own = `${facts.values[dimension]}[${metric}]`
  return `coalesce(CAST(${dimension} AS VARCHAR) || left(${own}, 0), nullif(split_part(${own}, ',', 1), '*'))`
}

/** With other clocks than those of the files in view the end of the interval is the only safe bound. */
function lagSql(facts: Facts, metric: Sql, interval: Sql): Sql {
  const lag = `coalesce(CAST(${facts.lags}[${metric} || '|' || CAST(${interval} AS VARCHAR)] AS BIGINT), 0)`
  return `CASE WHEN ${backfillSql} OR ${instantSql('observed_as_of')} IS NOT NULL THEN least(${lag}, 0) ELSE ${lag} END`
}

/** A pointer that does not begin with a slash is found out while the files are chosen. */
function pointerSql(name: Sql): Sql {
  return `nullif(CASE WHEN contains(${name}, '#') THEN substr(${name}, instr(${name}, '#') + 1) ELSE CAST(component AS VARCHAR) END, '')`
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

/** The same reading as that of the session variables, for a column or parameter of any type. */
function utcSql(x: Sql): Sql {
  return `CASE WHEN typeof(${x}) = 'TIMESTAMP WITH TIME ZONE' THEN CAST(${x} AS TIMESTAMPTZ)
    WHEN typeof(${x}) = 'VARCHAR' AND regexp_matches(CAST(${x} AS VARCHAR), ':[0-9.]+ *([+-]|[A-Za-z])') THEN CAST(CAST(${x} AS VARCHAR) AS TIMESTAMPTZ)
    ELSE timezone('UTC', CAST(${x} AS TIMESTAMP)) END`
}

/** Negative durations would look ahead. */
function microsSql(parameter: Sql): Sql {
  const value = `epoch_us(CAST(${parameter} AS INTERVAL))`
  return `CASE WHEN ${value} < 0 THEN CAST(error('${parameter} is negative') AS BIGINT) ELSE coalesce(${value}, 0) END`
}
