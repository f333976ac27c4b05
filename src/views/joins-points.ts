import type { Catalogue } from '../catalog/catalogue.ts'
import { type Interval, intervals, shortestSeconds, type Weekday } from '../time.ts'
import { micros, type Sql } from '../intervals-sql.ts'
import { quote } from '../store/engine.ts'
import type { HeldFile } from '../ledger/held.ts'
import { beyondAsked, beyondMistake, ruleLines, unsettledText } from './joins-beyond.ts'
import { isRecent, type Share, sharesOf } from '../points/files.ts'
import { literalPath, relationText } from './read-points.ts'

/** What the macros of the joins are made from. */
export interface JoinSources {
  readonly root: string
  readonly catalogue: Catalogue
  /** The day on which weeks begin. */
  readonly weekStart: Weekday
  /** The live points files. */
  readonly files: readonly HeldFile[]
  /** The body of the view `points` over this relation; undefined where there are no files. */
  readonly points: (newest: string | undefined) => string
  /** The body of the view `price_usd`. */
  readonly price: () => string
  /** The body of the view `coverage`, and the relation of series that it does not tell of. */
  readonly coverage: () => string
  readonly uncovered: () => string
}

/** The dimensions that a metric has one value of in a join. */
const joinDimensions = ['currency', 'exchange', 'network'] as const
/** One of them. */
export type JoinDimension = (typeof joinDimensions)[number]

/** The macro's parameter `metric`, a name that may end in a pointer. */
export const metricName = 'CAST(metric AS VARCHAR)'
const price = 'price_usd'
const priced = 'supply/current_pit'

/**
 * What is known of each metric, as texts of lines `key TAB value`. Binding a macro costs time for every node of its
 * expressions: a text is cheaper than a map, and a split that gives NULL is cheaper than `nullif`, which doubles its argument.
 */
export interface JoinFacts {
  /** metric -> its intervals by comma, then what each dimension takes: nothing, `,` for anything, `,default,others,`; by tab. */
  readonly metrics: Sql
  /** `metric|interval` -> the smallest lag in microseconds, its class, the files; by tab. */
  readonly held: Sql
  /** `metric|interval` -> its rules, by tab. */
  readonly rules: Sql
}

/** The facts of these sources. */
export function factsOf({ catalogue, files }: JoinSources): JoinFacts {
  const shares = files.flatMap((file) => sharesOf(file).map((share) => ({ ...share, path: file.path })))
  const held = [...Map.groupBy(shares, ({ metric, interval }) => `${metric}|${interval}`)].map(([key, own]) => {
    const [name, interval] = key.split('|') as [string, Interval]
    return { key, name, interval, lags: lagsOf(own, interval), paths: own.map(({ path }) => literalPath(path)) }
  })
  const prices = held
    .filter(({ name }) => name === priced)
    // A relation over no file at all is no SQL; the filter drops the rows of this one.
    .map((own) => ({ ...own, key: `${price}|${own.interval}`, paths: own.paths.slice(0, 1) }))
  const all = [...held, ...prices]
  const rules = all.map(({ key, name, interval }): [string, string] => [
    key,
    ruleLines(catalogue, name, interval, key.split('|')[0] ?? name),
  ])
  return {
    metrics: linesOf(metricsOf(catalogue, files)),
    held: linesOf(all.map(({ key, lags, paths }) => [key, [...lags, ...paths].join('\t')])),
    rules: linesOf(rules),
  }
}

/** The value behind a key, text; NULL where the key is not there. */
export function lookUp(lines: Sql, key: Sql): Sql {
  return `string_split(string_split(${lines}, concat('\n', ${key}, '\t'))[2], '\n')[1]`
}

/** Lines with a value behind a key, as the literal of a text. */
export function linesOf(pairs: readonly (readonly [string, string])[]): Sql {
  return quote(`\n${pairs.map(([key, value]) => `${key}\t${value}\n`).join('')}`)
}

/**
 * The smallest lag: a file that does not tell could hold a point that was known at the end of its interval. And one not
 * above it that many metrics share: a 48th of the interval or a multiple of it, below that a microsecond. Zero stays: a
 * point may be known at the very end.
 */
function lagsOf(shares: readonly Share[], interval: Interval): readonly [own: number, common: number] {
  const own = Math.min(...shares.map(({ min_lag }) => min_lag ?? 0))
  const unit = Math.floor((shortestSeconds(interval) * micros) / 48)
  return [own, own < unit ? Math.min(own, 1) : own - (own % unit)]
}

function metricsOf(catalogue: Catalogue, files: readonly HeldFile[]): [string, string][] {
  const keys = { currency: 'currencies', exchange: 'exchanges', network: 'networks' } as const
  const values = (metric: string, dimension: JoinDimension): string => {
    const endpoint = catalogue.endpoints.get(metric)
    if (endpoint === undefined) return metric === price ? '' : ','
    const standard = endpoint.defaults[dimension]
    if (standard === null) return ''
    const others = endpoint[keys[dimension]].filter((value) => value !== standard)
    return `,${[standard, ...others].join(',')},`
  }
  return [...intervalsOf(catalogue, files)].map(([metric, own]) => [
    metric,
    [
      intervals.filter((interval) => own.size === 0 || own.has(interval)).join(','),
      ...joinDimensions.map((dimension) => values(metric, dimension)),
    ].join('\t'),
  ])
}

function intervalsOf(catalogue: Catalogue, files: readonly HeldFile[]): Map<string, ReadonlySet<Interval>> {
  const known = new Map<string, Set<Interval>>()
  for (const { path, intervals: own } of catalogue.endpoints.values()) known.set(path, new Set(own))
  for (const { metric, interval } of files.flatMap(sharesOf)) {
    known.set(metric, (known.get(metric) ?? new Set()).add(interval))
  }
  const prices = known.get(priced)
  if (prices) known.set(price, prices)
  return known
}

/**
 * The points of the macro's `metric` or `metrics`, for FROM: `metric, asset, "interval", currency, exchange, network, t,
 * available_at, v, o`, or the holes alone. The text of the query is put together while the macro is bound, so that only
 * what is needed is parsed and only the files of these metrics are opened; a mistake is an error even where no row is read.
 */
export function joinPointsSql(
  sources: JoinSources,
  facts: JoinFacts,
  names: string,
  interval: Sql,
  alone = false,
): Sql {
  const text = names === 'metric' ? textOfOne(sources, interval) : textOfMany(sources, facts, interval, alone)
  return queryOf(facts, names, interval, text, alone || interval !== '"interval"')
}

/** The answer to a text that an expression over `_pit_fact`, or over the list `_pit_facts`, gives once nothing is wrong with what was asked. */
export function queryOf(facts: JoinFacts, names: string, interval: Sql, text: Sql, settled = false): Sql {
  const wrong = `${mistakes(interval)}${settled ? '' : `\n      ${beyondMistake}`}`
  if (names === 'metric')
    return `query(list_transform(${factsFor(facts, names, interval)}, lambda _pit_fact: CASE ${wrong} ELSE ${text} END)[1])`
  return `query(list_transform([${factsFor(facts, names, interval)}], lambda _pit_facts: CASE
      WHEN coalesce(len(_pit_facts), 0) = 0 THEN error('the list of metrics is empty')
      WHEN len(list_filter(_pit_facts, lambda _pit_fact: CASE ${wrong} ELSE false END)) > 0 THEN NULL
      ELSE ${text} END)[1])`
}

/** The text for the one metric that `_pit_fact` is about. */
function textOfOne(sources: JoinSources, interval: Sql): Sql {
  const own = { names: "_pit_fact['name']", interval }
  return `CASE WHEN _pit_fact['name'] = '${price}' THEN ${said(priceText(sources), own)}
      ELSE ${said(storedText(sources, true), { ...own, [relation]: filesText(sources, filesOf(sources)) })} END`
}

/** The text for those of the list `_pit_facts`, and what of them is not settled where that is asked for. */
export function textOfMany(sources: JoinSources, facts: JoinFacts, interval: Sql, alone = false): Sql {
  const all = (one: Sql): Sql => `list_distinct(flatten(list_transform(_pit_facts, lambda _pit_fact: ${one})))`
  const paths = `array_to_string(list_transform(_pit_facts, lambda _pit_fact: _pit_fact['name']), '\t')`
  const places = { [relation]: filesText(sources, all(filesOf(sources))), names: paths, interval }
  const prices = `CASE WHEN len(list_filter(_pit_facts, lambda _pit_fact: _pit_fact['name'] = '${price}')) > 0 THEN ${said(` UNION ALL ${priceText(sources)}`, { interval })} END`
  const rules = `array_to_string(${all(`string_split(${rulesOf(facts, interval)}, '\t')`)}, '\t')`
  return withHoles(sources, rules, interval, `${said(storedText(sources, false), places)}, ${prices}`, alone)
}

function rulesOf(facts: JoinFacts, interval: Sql): Sql {
  return lookUp(facts.rules, `_pit_fact['name'], '|', CAST(${interval} AS VARCHAR)`)
}

/** The text of a relation, followed by the holes in what is settled where a join is asked for them, or of these alone. */
function withHoles(sources: JoinSources, rules: Sql, interval: Sql, text: Sql, alone = false): Sql {
  const { weekStart, coverage, uncovered } = sources
  const [before, behind] = unsettledText(
    { weekStart, coverage: coverage(), uncovered: uncovered() },
    literal(`coalesce(${rules}, '')`),
    literal(`CAST(${interval} AS VARCHAR)`),
    alone,
  )
  if (alone) return `concat(${before}, ${text}, ${behind})`
  return `concat(CASE WHEN ${beyondAsked} THEN ${before} END, ${text}, CASE WHEN ${beyondAsked} THEN ${behind} END)`
}

/**
 * The text of the points of the macro's `metric`, which `_pit_fact` is about, under its options `currency`, `exchange`, `network`
 * and `component`: `asset, t, available_at, v, o`.
 */
export function textOfSeries(sources: JoinSources, facts: JoinFacts): Sql {
  const part = `${leafSql('v', slot('pointer'))} AS v, ${marked(leafSql('o', slot('pointer')))} AS o`
  const wanted = `lambda one: concat(' AND known.', one[1], ' IS NOT DISTINCT FROM ', coalesce(${literal(wantedBy('one'))}, 'NULL'))`
  return `concat('SELECT known.asset, known.t, known.available_at, ',
      coalesce(replace(${quote(part)}, ${quote(slot('pointer'))}, ${literal(pointerSql(metricName))}), ${plainLeaves}),
      ' FROM (', ${withHoles(sources, rulesOf(facts, '"interval"'), '"interval"', textOfOne(sources, '"interval"'))},
      ') AS known WHERE true', array_to_string(list_transform(${dimensionsOf("_pit_fact['line']")}, ${wanted}), ''))`
}

/** The text of the list of structs of names: each with its path, its pointer, its class of lags and its dimensions. */
export function textOfNames(): Sql {
  return `array_to_string(list_distinct(list_transform(_pit_facts, lambda _pit_fact: concat('{''name'': ', ${literal("_pit_fact['given']")},
      ', ''path'': ', ${literal("_pit_fact['name']")}, ', ''pointer'': ', coalesce(${literal(pointerSql("_pit_fact['given']"))}, 'NULL'),
      ', ''lag'': ', CASE WHEN ${beyondAsked} THEN '0' ELSE coalesce(_pit_fact['held'][2], '0') END,
      array_to_string(list_transform(${dimensionsOf("_pit_fact['line']")}, lambda one: concat(', ''', one[1], ''': ', coalesce(${literal(wantedBy('one'))}, 'NULL'))), ''), '}'))), ', ')`
}

/** The text of v and o, of the whole value where no name has a pointer. */
export function textOfLeaves(): Sql {
  return `CASE WHEN len(list_filter(_pit_facts, lambda _pit_fact: ${pointerSql("_pit_fact['given']")} <> '')) > 0
      THEN ${quote(`${leafSql('v', 'names.pointer')} AS v, ${marked(leafSql('o', 'names.pointer'))} AS o`)} ELSE ${plainLeaves} END`
}

/** What `o` of a point says; '', which is no JSON, where the row stands for a hole. */
function marked(o: Sql): Sql {
  return `CASE WHEN known."interval" IS NULL THEN '' ELSE ${o} END`
}

/** The three dimensions, each with what a metric takes and what is asked for, as a list. */
function dimensionsOf(line: Sql): Sql {
  const given = joinDimensions.map((one) => `CAST(${one} AS VARCHAR)`).join(', ')
  return `list_zip([${joinDimensions.map(quote).join(', ')}], string_split(${line}, '\t')[2:], [${given}])`
}

/** The value of a dimension that a metric is joined on, NULL where it takes none. */
function wantedBy(one: Sql): Sql {
  return `CASE WHEN ${one}[2] <> '' THEN coalesce(${one}[3], nullif(string_split(${one}[2], ',')[2], '')) END`
}

/** The same of a dimension by its name. */
export function wantedOf(dimension: JoinDimension, line: Sql): Sql {
  return wantedBy(`${dimensionsOf(line)}[${joinDimensions.indexOf(dimension) + 1}]`)
}

/** A pointer that does not begin with a slash is found out while the files are chosen. */
export function pointerSql(name: Sql): Sql {
  return `CASE WHEN instr(${name}, '#') = length(${name}) THEN NULL WHEN contains(${name}, '#') THEN substr(${name}, instr(${name}, '#') + 1)
    WHEN CAST(component AS VARCHAR) <> '' THEN CAST(component AS VARCHAR) END`
}

/** Not by `IN (…)`: that would become a join of all points with a list of types. */
export function leafSql(column: string, pointer: Sql): Sql {
  const number = `regexp_matches(json_type(known.o, ${pointer}), '^(DOUBLE|U?BIGINT|U?HUGEINT)$')`
  const part =
    column === 'v'
      ? `CASE WHEN ${number} THEN TRY_CAST(json_extract_string(known.o, ${pointer}) AS DOUBLE) END`
      : `CASE WHEN ${number} OR json_type(known.o, ${pointer}) = 'NULL' THEN NULL ELSE CAST(json_extract(known.o, ${pointer}) AS VARCHAR) END`
  return `CASE WHEN ${pointer} IS NULL THEN known.${column} ELSE ${part} END`
}

/** What is known of each name, as a list; in the arguments of a table function `_pit_fact.name` would be the text of that name. */
function factsFor(facts: JoinFacts, names: string, interval: Sql): Sql {
  const fact = (given: Sql): Sql => {
    const name = `split_part(${given}, '#', 1)`
    const held = lookUp(facts.held, `${name}, '|', CAST(${interval} AS VARCHAR)`)
    return `{'given': ${given}, 'name': ${name}, 'line': ${lookUp(facts.metrics, name)}, 'held': string_split(${held}, '\t')}`
  }
  if (names === 'metric') return `[${fact(metricName)}]`
  return `list_transform(CAST(metrics AS VARCHAR[]), lambda name: ${fact('name')})`
}

/** What is wrong with a name, an interval or an option, as branches of a CASE over `_pit_fact`. */
function mistakes(interval: Sql): Sql {
  const own = `string_split(_pit_fact['line'], '\t')[1]`
  const wrong = `list_filter(${dimensionsOf("_pit_fact['line']")}, lambda one: one[2] > ',' AND NOT contains(one[2], ',' || one[3] || ','))`
  const told = `lambda one: concat(_pit_fact['name'], ' has no ', one[1], ' ', one[3], ', but ', trim(one[2], ','))`
  return `WHEN NOT regexp_matches(CAST(component AS VARCHAR), '^(/|$)') OR regexp_matches(_pit_fact['given'], '#[^/ ]') THEN error('a component is a JSON pointer: it begins with /')
      WHEN _pit_fact['name'] IS NULL THEN error('the name of a metric is NULL')
      WHEN _pit_fact['line'] IS NULL THEN error(concat('unknown metric ', _pit_fact['name'], ': the view endpoints lists them all'))
      WHEN NOT coalesce(list_contains(string_split(${own}, ','), CAST(${interval} AS VARCHAR)), false)
      THEN error(concat(_pit_fact['name'], ' has no interval ', coalesce(CAST(${interval} AS VARCHAR), 'NULL'), ', but ', ${own}))
      WHEN len(${wrong}) > 0 THEN error(list_transform(${wrong}, ${told})[1])`
}

/** A metric without files names any file of the lake, whose rows the filter then drops. */
function filesOf(sources: JoinSources): Sql {
  return `coalesce(_pit_fact['held'][3:], [${quote(fallback(sources))}])`
}

function fallback({ files: [first] }: JoinSources): string {
  return first ? literalPath(first.path) : ''
}

/** v and o of the whole value, o marked where holes are asked for. */
const plainLeaves = `CASE WHEN ${beyondAsked} THEN ${quote(`known.v, ${marked('known.o')} AS o`)} ELSE 'known.v, known.o' END`

const columns = ['metric', 'asset', '"interval"', 'currency', 'exchange', 'network', 't', 'available_at', 'v', 'o']

/** The place that takes a text as it is. */
const relation = 'relation'

/** The text of a relation over a list of files. */
function filesText({ root, files: held }: JoinSources, files: Sql): Sql {
  const [before = '', after = ''] =
    `list_transform(string_split(\u0002, '\t'), lambda file: ${quote(`${literalPath(root)}/`)} || file)`.split('\u0002')
  const listed = (list: Sql): Sql =>
    `concat(${quote(before)}, ${literal(`array_to_string(${list}, '	')`)}, ${quote(after)})`
  return relationText(root, files, listed, held.some(isRecent))
}

/** The place of a literal in the text of a query. */
export function slot(name: string): string {
  return `\u0001${name}\u0001`
}

function storedText({ files, points }: JoinSources, one: boolean): string {
  const body = files.length === 0 ? points(undefined) : points(slot(relation))
  const own = one
    ? `known_points.metric = ${slot('names')}`
    : `list_contains(string_split(${slot('names')}, '	'), known_points.metric)`
  return `${someOf(body)} AND ${own}`
}

function priceText({ price: body }: JoinSources): string {
  return someOf(body())
}

function someOf(body: string): string {
  const all = columns.map((column) => `known_points.${column}`).join(', ')
  return `SELECT ${all} FROM (${body}) AS known_points WHERE known_points."interval" = ${slot('interval')}`
}

/** The text of a query as an SQL expression: each place holds, as a literal of the text, what its expression gives. */
function said(text: string, places: Readonly<Record<string, Sql>>): Sql {
  const told = Object.entries(places).map(([name, place]) => [
    name,
    name === relation ? place : literal(`CAST(${place} AS VARCHAR)`),
  ])
  return filled(text, Object.fromEntries(told) as typeof places)
}

/** The text of a query as an SQL expression: each place holds the text that its expression gives. */
export function filled(text: string, places: Readonly<Record<string, Sql>>): Sql {
  const pieces = text.split('\u0001').map((name, n) => {
    if (n % 2 === 0) return quote(name)
    const place = places[name]
    if (place === undefined) throw new RangeError(`nothing stands for ${name} in a query`)
    return place
  })
  return `concat(${pieces.join(', ')})`
}

/** The literal of a text, NULL of NULL. */
export function literal(text: Sql): Sql {
  return `'''' || replace(${text}, '''', '''''') || ''''`
}
