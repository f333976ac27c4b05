import type { Catalogue } from '../../catalog/catalogue.ts'
import { end, type Interval, intervals, longestSeconds, type Weekday } from '../../base/time.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import { quote, literalPath } from '../../lake/store/engine.ts'
import type { StoredFile } from '../../lake/ledger/index-queries.ts'
import { type EarlyPart, partPath } from './part-clocks.ts'
import { beyondAsked, beyondMistake, ruleLines, ruleText, unsettledText } from './joins-beyond.ts'
import { filled, linesOf, literal, lookUp, slot } from './joins-sql.ts'
import { followRenamesMistake, followsRenames, withIdentity } from './joins-identity.ts'
import { vintageMistake, vintageWords } from './joins-vintages.ts'
import { isRecent, type Share, sharesOf } from '../../sources/points/files.ts'
import { relationText } from './read-points.ts'

/** Everything that the macros of the joins depend on. */
export interface JoinSources {
  readonly root: string
  readonly catalogue: Catalogue
  /** The day on which weeks begin. */
  readonly weekStart: Weekday
  /** The live points files. */
  readonly files: readonly StoredFile[]
  /** Body of the view `points` over this relation; undefined if there are no files. */
  readonly points: (newest: string | undefined) => string
  /** The body of the view `price_usd`. */
  readonly price: () => string
  /** The body of the view `coverage`, and the relation of series that it does not tell of. */
  readonly coverage: () => string
  readonly uncovered: () => string
  /** Parts of values with separate clocks, and the body of the view `points` of each. */
  readonly parts: readonly EarlyPart[]
  readonly part: (part: EarlyPart) => string
  /** Metrics whose points may have several vintages: `points` returns all of them, with `last` after it the last. */
  readonly revisable: readonly string[]
  readonly last: () => string
  /** Text of the series that follows renames, see joins-identity; undefined if none can be made. */
  readonly stitched: () => string | undefined
}

/** The dimensions that a metric has one value of in a join. */
const joinDimensions = ['currency', 'exchange', 'network'] as const
/** One of these dimensions; derived, so that `joinDimensions` is the one list of them. */
export type JoinDimension = (typeof joinDimensions)[number]

/** The macro's parameter `metric`, a name that may end in a pointer. */
export const metricName = 'CAST(metric AS VARCHAR)'
const price = 'price_usd'
const priced = 'supply/current_pit'

/**
 * Facts about each metric, as SQL texts of lines `key TAB value`. Binding a macro costs time for every node of its
 * expressions: a text is cheaper than a map, and a split that gives NULL is cheaper than `nullif`, which doubles its
 * argument.
 */
export interface JoinFacts {
  /** metric -> its intervals by comma, then for each dimension that it takes `name=,default,others`; by tab. */
  readonly metrics: Sql
  /** `metric|interval` -> the files, by tab. */
  readonly files: Sql
  /**
   * `metric|interval` -> its smallest lag, its first end and its newest start (NULL if a file does not record it),
   * microseconds by tab.
   */
  readonly bounds: Sql
  /**
   * `metric|interval` of series without vintages -> whether their points are cached, and the condition that finds them,
   * by tab.
   */
  readonly plain: Sql
  /** `metric|interval` -> its rules, by tab. */
  readonly rules: Sql
}

/** Maximum points that a join of one metric reads from the file once and caches, a few megabytes. */
const mostKept = 250_000

/** Collects the facts of these sources. */
export function factsOf({ catalogue, files, parts, revisable }: JoinSources): JoinFacts {
  const shares = files.flatMap((file) =>
    sharesOf(file).map((share) => ({ ...share, path: file.path, min_t: file.min_t, max_t: file.max_t })),
  )
  const sharesByPartition = Map.groupBy(shares, ({ metric, interval }) => `${metric}|${interval}`)
  const bounds = [...sharesByPartition].map(([key, sharesOfKey]): [string, string] => [
    key,
    `${smallestLag(sharesOfKey)}${extentOf(sharesOfKey)}`,
  ])
  const prices = bounds.flatMap(([key, bound]): [string, string][] =>
    key.startsWith(`${priced}|`) ? [[`${price}|${key.slice(priced.length + 1)}`, bound]] : [],
  )
  const rules = [...bounds, ...prices].map(([key]): [string, string] => {
    const [name, interval] = key.split('|') as [string, Interval]
    return [key, ruleLines(catalogue, name === price ? priced : name, interval, name)]
  })
  const early = parts.flatMap(({ name, metric, pointer, intervals: own }) =>
    own.map((interval) => {
      const rules = catalogue.endpoints.get(metric)?.clocks?.[pointer]?.[interval]
      // No part is known earlier than an interval before its end.
      return {
        key: `${name}|${interval}`,
        lag: String(-longestSeconds(interval) * 1_000_000),
        rule: ruleText(rules, metric, name),
      }
    }),
  )
  const lines = new Map(metricsOf(catalogue, files))
  return {
    metrics: linesOf([...lines, ...parts.map(({ name, metric }) => [name, lines.get(metric) ?? ''] as const)]),
    files: linesOf(
      [...sharesByPartition].map(([key, sharesOfKey]) => [
        key,
        sharesOfKey.map(({ path }) => literalPath(path)).join('\t'),
      ]),
    ),
    bounds: linesOf([...bounds, ...prices, ...early.map(({ key, lag }) => [key, `${lag}${untold}`] as const)]),
    plain: linesOf(
      [...sharesByPartition].flatMap(([key, sharesOfKey]) => plainOf(catalogue, key, sharesOfKey, revisable)),
    ),
    rules: linesOf([...rules, ...early.map(({ key, rule }) => [key, rule] as const)]),
  }
}

/**
 * Builds the key of a series, whether its points are cached and the condition that finds them; none if they have
 * vintages.
 */
function plainOf(
  { endpoints }: Catalogue,
  key: string,
  shares: readonly Share[],
  revisable: readonly string[],
): [string, string][] {
  const [metric = '', interval = ''] = key.split('|')
  if (revisable.includes(metric)) return []
  const rows = shares.reduce((sum, share) => sum + share.rows, 0)
  const valueSql = (dimension: JoinDimension): Sql => {
    const value = endpoints.get(metric)?.defaults[dimension] ?? null
    return `known.${dimension} IS NOT DISTINCT FROM ${value === null ? 'NULL' : quote(value)}`
  }
  const found = [
    `known.metric = ${quote(metric)}`,
    `known."interval" = ${quote(interval)}`,
    ...joinDimensions.map(valueSql),
  ]
  return [[key, `${rows <= mostKept ? '' : 'NOT '}MATERIALIZED\t${found.join(' AND ')}`]]
}

/**
 * Builds the SQL of the values of a dimension, each after a comma, the default first; '' if nothing is known, NULL if a
 * metric takes none.
 */
function valuesOf(line: Sql, dimension: JoinDimension): Sql {
  return `string_split(string_split(${line}, concat(chr(9), '${dimension}='))[2], chr(9))[1]`
}

/**
 * Computes the smallest lag of files, in seconds; 0 for a file without one, which could contain a point known at the
 * end of its interval.
 */
function smallestLag(shares: readonly Share[]): number {
  return Math.min(...shares.map(({ min_lag }) => min_lag ?? 0))
}

const untold = '\tNULL\tNULL'

/**
 * Formats the first end and the newest start of all points of an interval, each behind a tab; NULL if a file has no
 * such facts.
 */
function extentOf(files: readonly Pick<Share & StoredFile, 'interval' | 'min_t' | 'max_t'>[]): string {
  const ends = files.flatMap(({ min_t, interval }) => (typeof min_t === 'number' ? [end(min_t, interval)] : []))
  const starts = files.flatMap(({ max_t }) => (typeof max_t === 'number' ? [max_t] : []))
  if (Math.min(ends.length, starts.length) < files.length) return untold
  return [Math.min(...ends), Math.max(...starts)].map((at) => `\t${at * 1_000_000}`).join('')
}

function metricsOf(catalogue: Catalogue, files: readonly StoredFile[]): [string, string][] {
  const keys = { currency: 'currencies', exchange: 'exchanges', network: 'networks' } as const
  const values = (metric: string, dimension: JoinDimension): string[] => {
    const endpoint = catalogue.endpoints.get(metric)
    if (endpoint === undefined) return metric === price ? [] : [`${dimension}=`]
    const standard = endpoint.defaults[dimension]
    if (standard === null) return []
    const others = endpoint[keys[dimension]].filter((value) => value !== standard)
    return [`${dimension}=,${[standard, ...others].join(',')}`]
  }
  return [...intervalsOf(catalogue, files)].map(([metric, own]) => [
    metric,
    [
      intervals.filter((interval) => own.size === 0 || own.has(interval)).join(','),
      ...joinDimensions.flatMap((dimension) => values(metric, dimension)),
    ].join('\t'),
  ])
}

function intervalsOf(catalogue: Catalogue, files: readonly StoredFile[]): Map<string, ReadonlySet<Interval>> {
  const intervalsByMetric = new Map<string, Set<Interval>>()
  for (const { path, intervals: own } of catalogue.endpoints.values()) intervalsByMetric.set(path, new Set(own))
  for (const { metric, interval } of files.flatMap(sharesOf)) {
    intervalsByMetric.set(metric, (intervalsByMetric.get(metric) ?? new Set()).add(interval))
  }
  const prices = intervalsByMetric.get(priced)
  if (prices) intervalsByMetric.set(price, prices)
  return intervalsByMetric
}

/**
 * Builds the SQL of the points of the macro's `metric` or `metrics`, for FROM: `metric, asset, "interval", currency,
 * exchange, network, t, available_at, v, o`. The text of the query is put together while the macro is bound, so that
 * only what is needed is parsed and only the files of these metrics are opened; a mistake is an error even if no row is
 * read.
 */
export function joinPointsSql(
  sources: JoinSources,
  facts: JoinFacts,
  names: string,
  interval: Sql,
  alone = false,
): Sql {
  if (names === 'metric') {
    const stitched = sources.stitched()
    const whole = textOfOne(sources, facts, interval, true)
    // The first vintage of a point decides its name; the last one its value.
    const last =
      stitched && sources.revisable.length > 0
        ? `FROM (${stitched}) QUALIFY row_number() OVER (PARTITION BY metric, asset, "interval", currency, ` +
          'exchange, network, t ORDER BY available_at DESC, observed_at DESC) = 1'
        : stitched
    return `query(list_transform(${factsFor(sources, facts, names)}, lambda fact: CASE
      ${mistakes(names, interval)}
      ${followRenamesMistake}
      ELSE ${withIdentity(last, whole)} END)[1])`
  }
  const all = (relation: Sql): Sql =>
    `array_to_string(list_distinct(flatten(list_transform(facts, lambda fact: string_split(${relation}, ` +
    'chr(9))))), chr(9))'
  const chosen = all(`CASE
      ${mistakes(names, interval)}
      ${alone ? '' : `${beyondMistake}\n      ${vintageMistake}\n      ${followRenamesMistake}`}
      ELSE ${filesOf(sources, facts, interval)} END`)
  const paths = `array_to_string(list_transform(facts, lambda fact: fact['name']), chr(9))`
  const text = fillPlaces(storedText(sources, false), {
    [relation]: filesText(sources, chosen),
    names: paths,
    interval,
  })
  const also = (name: string, column: string): Sql =>
    `CASE WHEN len(list_filter(facts, lambda fact: fact['name'] = ${quote(name)})) > 0 THEN ` +
    `${fillPlaces(` UNION ALL ${column}`, { interval })} ELSE '' END`
  const more = [
    also(price, priceText(sources)),
    ...sources.parts.map((part) => also(part.name, partText(sources, part, part.name))),
  ].join(', ')
  return `query(list_transform([${factsFor(sources, facts, names)}], lambda facts: CASE
      WHEN coalesce(len(facts), 0) = 0 THEN error('the list of metrics is empty')
      ELSE ${withHoles(sources, all(rulesOf(facts, interval)), interval, `${text}, ${more}`, alone)} END)[1])`
}

function rulesOf(facts: JoinFacts, interval: Sql): Sql {
  return lookUp(facts.rules, `fact['name'], '|', CAST(${interval} AS VARCHAR)`)
}

/**
 * Builds the text of a relation, followed by the gaps in the resolved range if a join requests them, or of the gaps
 * alone.
 */
function withHoles(sources: JoinSources, rules: Sql, interval: Sql, text: Sql, alone = false): Sql {
  const { weekStart, coverage, uncovered, revisable } = sources
  const [before, behind] = unsettledText(
    { weekStart, coverage: coverage(), uncovered: uncovered(), observed: revisable.length > 0 },
    literal(`coalesce(${rules}, '')`),
    literal(`CAST(${interval} AS VARCHAR)`),
    alone,
  )
  if (alone) return `concat(${before}, ${text}, ${behind})`
  const whole = `CASE WHEN ${beyondAsked} THEN ${before} END, ${text}, CASE WHEN ${beyondAsked} THEN ${behind} END`
  return withIdentity(sources.stitched(), `concat(${whole})`)
}

/** Builds the text for the one metric that `fact` is about. */
function textOfOne(sources: JoinSources, facts: JoinFacts, interval: Sql, alone = false): Sql {
  const partition = { names: "fact['name']", interval }
  const files = filesText(sources, filesOf(sources, facts, interval))
  const early = sources.parts.map(
    (part) =>
      ` WHEN fact['name'] = ${quote(part.name)} THEN ` +
      fillPlaces(partText(sources, part, alone ? part.metric : part.name), partition),
  )
  const revised = alone ? vintageWords(sources.revisable).isRevised("fact['name']") : null
  // Stitched points choose their last vintage themselves.
  const renames = sources.stitched() === undefined ? '' : ` AND NOT ${followsRenames}`
  const last =
    revised === null
      ? ''
      : `WHEN ${revised}${renames} THEN ` +
        `${fillPlaces(storedText(sources, true, sources.last()), { ...partition, [relation]: files })}\n      `
  return `CASE WHEN fact['name'] = '${price}' THEN ${fillPlaces(priceText(sources), partition)}${early.join('')}
      ${last}ELSE ${fillPlaces(storedText(sources, true), { ...partition, [relation]: files })} END`
}

/**
 * Builds the SQL of the points of the macro's `metric` under its options `currency`, `exchange`, `network` and
 * `component`, for FROM: `asset, t, available_at, v, o`. Made like those above.
 */
export function seriesOf(
  sources: JoinSources,
  facts: JoinFacts,
  pointer: Sql,
  leaf: (column: string, at: Sql) => Sql,
): Sql {
  const dimensionTests = joinDimensions.flatMap((dimension) => [
    quote(` AND known.${dimension} IS NOT DISTINCT FROM `),
    `coalesce(${literal(wantedOf(dimension, "fact['line']"))}, 'NULL')`,
  ])
  const part = `${leaf('v', slot('pointer'))} AS v, ${marked(leaf('o', slot('pointer')))} AS o`
  const text = [
    quote(`SELECT known.asset, known.t, known.available_at${vintageWords(sources.revisable).observed('known')}, `),
    `coalesce(replace(${quote(part)}, ${quote(slot('pointer'))}, ${literal(pointer)}),
      CASE WHEN ${beyondAsked} THEN ${quote(`known.v, ${marked('known.o')} AS o`)} ELSE 'known.v, known.o' END)`,
    quote(' FROM ('),
    withHoles(sources, rulesOf(facts, '"interval"'), '"interval"', textOfOne(sources, facts, '"interval"')),
    quote(') AS known WHERE true'),
    ...dimensionTests,
  ]
  return `query(list_transform(${factsFor(sources, facts, 'metric')}, lambda fact: CASE
    ${mistakes('metric', '"interval"')}
    ${beyondMistake}
    ${vintageMistake}
    ${followRenamesMistake}
    ELSE concat(${text.join(',\n      ')}) END)[1])`
}

/** Builds `o` of a point; '', which is no JSON, if the row stands for a gap. */
function marked(o: Sql): Sql {
  return `CASE WHEN known."interval" IS NULL THEN '' ELSE ${o} END`
}

/** Builds the SQL of the value of a dimension that a metric is joined on, NULL if it takes none. */
export function wantedOf(dimension: JoinDimension, line: Sql): Sql {
  const lineValues = valuesOf(line, dimension)
  return `coalesce(CAST(${dimension} AS VARCHAR) || left(${lineValues}, 0), string_split(${lineValues}, ',')[2])`
}

/** Builds the SQL of the path of a name, without its pointer; a column has a path already. */
export function pathOf({ parts }: Pick<JoinSources, 'parts'>, name: Sql): Sql {
  return name === 'metric' ? partPath(parts, `split_part(${metricName}, '#', 1)`, pointerSql(metricName)) : name
}

/**
 * Builds the SQL of the pointer of a name; one that does not begin with a slash is detected while the files are chosen.
 */
export function pointerSql(name: Sql): Sql {
  return `CASE WHEN instr(${name}, '#') = length(${name}) THEN NULL WHEN contains(${name}, '#') THEN substr(${name}, instr(${name}, '#') + 1)
    WHEN CAST(component AS VARCHAR) <> '' THEN CAST(component AS VARCHAR) END`
}

/**
 * Builds the SQL of name and line of each metric, as a list; in the arguments of a table function `fact.name` would be
 * the text of that name.
 */
function factsFor(sources: JoinSources, facts: JoinFacts, names: string): Sql {
  const fact = (name: Sql): Sql => `{'name': ${name}, 'line': ${lookUp(facts.metrics, name)}}`
  if (names === 'metric') return `[${fact(pathOf(sources, names))}]`
  const path = partPath(sources.parts, "split_part(name, '#', 1)", pointerSql('name'))
  const list = `list_transform(CAST(metrics AS VARCHAR[]), lambda name: ${path})`
  return `list_transform(${list}, lambda metric_name: ${fact('metric_name')})`
}

/** Problems of a name, an interval or an option, as branches of a CASE over `fact`. */
function mistakes(names: string, interval: Sql): Sql {
  const firstField = `string_split(fact['line'], chr(9))[1]`
  const wrong = joinDimensions.map((dimension) => {
    const values = valuesOf("fact['line']", dimension)
    return `WHEN ${values} <> '' AND NOT contains(concat(${values}, ','), ',' || CAST(${dimension} AS VARCHAR) || ',')
      THEN error(concat(fact['name'], ' has no ${dimension} ', CAST(${dimension} AS VARCHAR), ', but ', substr(${values}, 2)))`
  })
  return `WHEN ${badPointer(names)} THEN error('a component is a JSON pointer: it begins with /')
      WHEN fact['name'] IS NULL THEN error('the name of a metric is NULL')
      WHEN fact['line'] IS NULL THEN error(concat('unknown metric ', fact['name'], ': the view endpoints lists them all'))
      WHEN NOT coalesce(list_contains(string_split(${firstField}, ','), CAST(${interval} AS VARCHAR)), false)
      THEN error(concat(fact['name'], ' has no interval ', coalesce(CAST(${interval} AS VARCHAR), 'NULL'), ', but ', ${firstField}))
      ${wrong.join('\n      ')}`
}

/** Builds the condition that a pointer does not begin with a slash. */
function badPointer(names: string): Sql {
  const list = names === 'metric' ? metricName : `array_to_string(CAST(metrics AS VARCHAR[]), ' ')`
  return (
    `coalesce(NOT regexp_matches(CAST(component AS VARCHAR), '^(/|$)'), false) OR ` +
    `coalesce(regexp_matches(${list}, '#[^/ ]'), false)`
  )
}

/**
 * Builds the SQL of the files of a metric; one without files names any file of the lake, whose rows the filter then
 * drops.
 */
function filesOf(sources: JoinSources, facts: JoinFacts, interval: Sql): Sql {
  return (
    `coalesce(${lookUp(facts.files, `fact['name'], '|', CAST(${interval} AS VARCHAR)`)}, ` +
    `${quote(fallback(sources))})`
  )
}

function fallback({ files: [first] }: JoinSources): string {
  return first ? literalPath(first.path) : ''
}

const columns = ['metric', 'asset', '"interval"', 'currency', 'exchange', 'network', 't', 'available_at', 'v', 'o']

/** The place that takes a text as it is. */
const relation = 'relation'

/** Builds the text of a relation over the files that an SQL expression lists, separated by tabs. */
function filesText({ root, files: storedFiles }: JoinSources, files: Sql): Sql {
  const paths = `string_split(${files}, chr(9))`
  const [before = '', after = ''] =
    `list_transform(string_split(\u0002, chr(9)), lambda file: ${quote(`${literalPath(root)}/`)} || file)`.split(
      '\u0002',
    )
  const listed = (list: Sql): Sql => {
    // Paths that were just split are not joined again: each call costs with every binding.
    const whole = list === paths ? files : `array_to_string(${list}, chr(9))`
    return `concat(${quote(before)}, ${literal(whole)}, ${quote(after)})`
  }
  return relationText(root, paths, listed, storedFiles.some(isRecent))
}

function storedText(sources: JoinSources, isSingle: boolean, last = ''): string {
  const { files, points } = sources
  const body = (files.length === 0 ? points(undefined) : points(slot(relation))) + last
  const linesText = isSingle
    ? `known_points.metric = ${slot('names')}`
    : `list_contains(string_split(${slot('names')}, chr(9)), known_points.metric)`
  return `${someOf(sources, body)} AND ${linesText}`
}

function priceText(sources: JoinSources): string {
  return someOf(sources, sources.price())
}

/** Builds the SQL of a part of values as points of a name. */
function partText(sources: JoinSources, early: EarlyPart, name: string): string {
  return someOf(sources, sources.part(early), quote(name))
}

function someOf({ revisable }: JoinSources, body: string, metric = 'known_points.metric'): string {
  const names = revisable.length === 0 ? columns : [...columns, 'observed_at']
  const all = [`${metric} AS metric`, ...names.slice(1).map((column) => `known_points.${column}`)].join(', ')
  return `SELECT ${all} FROM (${body}) AS known_points WHERE known_points."interval" = ${slot('interval')}`
}

/** Builds the text of a query as an SQL expression: each place receives the value of its expression as a literal. */
function fillPlaces(text: string, places: Readonly<Record<string, Sql>>): Sql {
  const literals = Object.entries(places).map(([name, place]): [string, Sql] => [
    name,
    name === relation ? place : literal(`CAST(${place} AS VARCHAR)`),
  ])
  return filled(text, Object.fromEntries(literals))
}

/** Builds the text of the relation over the files of the macro's metric, of which the lake has some. */
export function filesOfOne(sources: JoinSources, facts: JoinFacts): Sql {
  return filesText(sources, lookUp(facts.files, `metric, '|', "interval"`))
}
