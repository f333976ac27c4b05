import { quote } from '../../../lake/store/engine.ts'
import { textsIn } from '../../../lake/store/sql.ts'
import { day, intervals, longestSeconds, measureOf } from '../../../base/time.ts'
import { arrivalsSql } from '../../../query/views/joins.ts'
import { type ObjectText, readObjects, fillIn, utcSql } from '../../../query/views/template.ts'

/**
 * Builds the texts with which other engines query the published tables as our views query the lake. The SQL ones are
 * made from the very text of the view `points` and from two queries that every dialect understands. For `revisable`
 * metrics, whose points may have several vintages, `points` shows the last.
 */
export function readerTexts(uri: string, revisable: readonly string[] = []) {
  const textsFor = (name: string, dialect?: Dialect) => ({
    /** Relative to the destination. */
    path: `readers/${name}`,
    text: fillIn(name, readTemplate(name), (word, argument) => {
      const names = JSON.stringify(revisable)
      const plain = {
        uri,
        uri_text: JSON.stringify(uri),
        lengths: lengths('seconds'),
        months: lengths('months'),
        columns: columns(),
        revisable: names,
      }[word]
      return plain ?? (dialect && words(dialect, revisable)(word, argument))
    }),
  })
  return [
    textsFor('duckdb.sql', duckdb(uri, utcSql)),
    textsFor('clickhouse.sql', clickhouse(uri)),
    textsFor('spark.sql', spark(uri, false)),
    textsFor('trino.sql', trino()),
    textsFor('pitlake_pyspark.py', spark(uri, true)),
    textsFor('pitlake_polars.py'),
  ]
}

/** Formats the seconds of each interval of a constant length, or the months of the others, as a Python dictionary. */
function lengths(unit: 'seconds' | 'months'): string {
  const all = intervals.map((interval): [string, number] => [interval, measureOf(interval)[unit]])
  return JSON.stringify(Object.fromEntries(all.filter(([, length]) => length > 0)))
}

/** Formats the columns of the view `points`, from its header, as a Python list. */
function columns(): string {
  return JSON.stringify(columnNames())
}

function columnNames(): readonly string[] {
  const [, names = ''] = /^-- columns: ([\w, ]+)\.$/m.exec(pointsView().header) ?? []
  return names.split(', ')
}

function pointsView(): ObjectText {
  const view = readObjects([]).find(({ name }) => name === 'points')
  if (view === undefined) throw new RangeError('there is no view points')
  return view
}

/** Builds the replacement of the placeholders in the texts, in a dialect. */
function words(dialect: Dialect, revisable: readonly string[]): (word: string, argument: string) => string | undefined {
  const seconds = (option: string): string => dialect.wholeNumber(`${dialect.number(option)} * 1000000`)
  const functions: Readonly<Record<string, (...parts: string[]) => string>> = {
    table: (name = '') => dialect.table(name),
    decisions: () => dialect.decisions,
    option: (name = '') => dialect.text(name),
    flag: (name = '') => dialect.flag(name),
    micros: (instant = '') => dialect.micros(instant),
    seconds: (option = '') => `coalesce(${seconds(option)}, 0)`,
    intervals: () => intervals.map(quote).join(', '),
    end: (t = '') => endSql(dialect, t),
    dimension_value: (dimension = '') => dimensionValueSql(dialect, dimension),
    newest: (keys = '') => arrivalsSql(keys).newest,
    following: (keys = '') => arrivalsSql(keys).following,
    fresh: (x = '') =>
      `CASE WHEN ${dialect.number('max_age')} IS NULL OR ${dialect.micros('d.ts')} - f.end_us <= ` +
      `${seconds('max_age')} THEN ${x} END`,
    refuse: (condition = '', message = '') => dialect.refuse(condition, message),
    lacks_value: (parts = '') => lacksValueSql(dialect, parts),
    known: (resource = '') => versionsSql(dialect, resource),
    view: () => indented(pointsSql(dialect)),
    points: () => lastSql(dialect, revisable),
    text: (name = '') => bodyOf(name, dialect, revisable),
    rest: (name = '') => bodyOf(name, dialect, revisable).replace(/^WITH /, ''),
    option_check: () => dialect.optionCheck ?? '0',
    // Text that is included only if points may have several vintages, only if none may, or one of two.
    if_revisable: (sql = '') => (revisable.length > 0 ? sql : ''),
    if_not_revisable: (sql = '') => (revisable.length > 0 ? '' : sql),
    if_revisable_or_not: (several = '', single = '') => (revisable.length > 0 ? several : single),
  }
  return (word, argument) =>
    Object.hasOwn(functions, word) ? functions[word]?.(...argument.split('|').map((part) => part.trim())) : undefined
}

/** Builds one of the shared queries in a dialect, without its header. */
function bodyOf(name: string, dialect: Dialect, revisable: readonly string[]): string {
  const body = readTemplate(`${name}.sql`)
    .replace(/^(?:--[^\n]*\n)+/, '')
    .trimEnd()
  return named(fillIn(name, body, words(dialect, revisable)), dialect)
}

/** Builds the body of the view `points` over the published table. */
function pointsSql(dialect: Dialect): string {
  const view = pointsView()
  const clocks: Readonly<Record<string, string>> = {
    files: dialect.table('points'),
    as_of: dialect.instant('as_of'),
    observed_as_of: dialect.instant('observed_as_of'),
    backfill: `(coalesce(${dialect.text('backfill')}, 'strict') = 'rule')`,
    available_by_rule: 'stored.available_rule_at',
    computed_at: 'stored.computed_at',
    shown_in_proof: 'true',
  }
  const unset = (option: string): string => `${dialect.instant(option)} IS NULL`
  const body = fillIn(view.file, view.body, (word, argument) => {
    if (word === 'unset') return unset(argument)
    // No reader of published tables has `ledger_as_of`.
    return word === 'stored_by_then' ? argument : clocks[word]
  })
  return named(body.replaceAll(/\n\s+AND true/g, ''), dialect)
}

/** Builds the SQL of the published points, with the last vintage of each point only. */
function lastSql(dialect: Dialect, revisable: readonly string[]): string {
  const all = pointsSql(dialect)
  if (revisable.length === 0) return all
  const at = /CASE WHEN [^\n]* END(?= AS available_at)/.exec(all)?.[0] ?? 'stored.available_at'
  const keys = ['metric', 'asset', '"interval"', 'currency', 'exchange', 'network', 't'].map((name) => `stored.${name}`)
  const order = `PARTITION BY ${keys.join(', ')} ORDER BY ${at} DESC, stored.observed_at DESC`
  const numbered = all.replace(/\nFROM /, () => `,\n  row_number() OVER (${order}) AS nth\nFROM `)
  const names = columnNames().map((name) => (name === 'interval' ? 'p."interval"' : `p.${name}`))
  return named(`SELECT ${names.join(', ')}\nFROM (\n${indented(numbered)}\n) AS p WHERE p.nth = 1`, dialect)
}

/** Builds the SQL of the versions of a resource known at `as_of`, from what the lake had at `observed_as_of`. */
function versionsSql(dialect: Dialect, resource: string): string {
  const cut = (option: string): string => {
    const at = dialect.instant(option)
    return `(${at} IS NULL OR h.valid_from <= ${at})`
  }
  const open = ['as_of', 'observed_as_of'].map((option) => `coalesce(${dialect.instant(option)} < h.valid_to, false)`)
  return `SELECT h.* FROM ${dialect.table(`history_${resource}`)} AS h
  WHERE ${cut('as_of')} AND ${cut('observed_as_of')} AND (h.valid_to IS NULL OR ${open.join(' OR ')})`
}

/**
 * Builds the SQL of the end of the option `interval` that starts at an instant, both in microseconds, free of any
 * calendar of the session.
 */
function endSql(dialect: Dialect, t: string): string {
  const branches = intervals.map((interval) => {
    const { seconds, months } = measureOf(interval)
    if (months === 0) return `WHEN '${interval}' THEN ${t} + ${seconds * 1_000_000}`
    // Months and quarters begin at midnight of their first day: their longest length later is one of the first days of
    // the next.
    const later = `(${dialect.quotient(t, day * 1_000_000)} + ${longestSeconds(interval) / day})`
    return `WHEN '${interval}' THEN (${later} - ${dialect.monthDay(later)} + 1) * ${day * 1_000_000}`
  })
  return `CASE ${dialect.text('interval')} ${branches.join(' ')} END`
}

/**
 * Builds the SQL of the value of a dimension that a metric is joined on: the option, else the catalogue's; none if it
 * takes none.
 */
function dimensionValueSql(dialect: Dialect, dimension: string): string {
  const standard = `max(e.default_${dimension})`
  return `CASE WHEN ${standard} IS NOT NULL THEN coalesce(${dialect.text(dimension)}, ${standard}) END`
}

/**
 * Builds the condition that a query requests a value that the metric does not take, though it takes others: `currency
 * currencies`.
 */
function lacksValueSql(dialect: Dialect, parts: string): string {
  const [dimension = '', values = ''] = parts.split(' ')
  const wanted = dialect.text(dimension)
  return `${wanted} IS NOT NULL AND max(e.default_${dimension}) IS NOT NULL
        AND max(CASE WHEN ${dialect.has(`e.${values}`, wanted)} THEN 1 ELSE 0 END) = 0`
}

const folder = new URL('./', import.meta.url)

function readTemplate(name: string): string {
  const found = ['.sql', '.py'].flatMap((ending) => textsIn(folder, ending)).find(([file]) => file === name)
  if (found === undefined) throw new RangeError(`no text of readers is named ${name}`)
  return found[1]
}

/** Names that are words of the language as the dialect quotes them. */
const named = (sql: string, { quote }: Dialect): string => sql.replaceAll(/"(\w+)"/g, `${quote}$1${quote}`)

const indented = (sql: string): string => sql.replaceAll(/^/gm, '    ')

/** An SQL expression. */
type Sql = string

/** Dialect of an engine, for what the shared texts leave open; options are what a person passes, NULL if not given. */
interface Dialect {
  /** Quotation mark around names that are words of the language. */
  readonly quote: '"' | '`'
  /** A published table, for FROM. */
  readonly table: (name: string) => Sql
  /** The caller's rows with `asset` and `ts`, for FROM. */
  readonly decisions: Sql
  /** Options of each type. */
  readonly text: (option: string) => Sql
  readonly number: (option: string) => Sql
  readonly flag: (option: string) => Sql
  readonly instant: (option: string) => Sql
  /** Whole microseconds of an instant, never rounded; BIGINT. */
  readonly micros: (instant: Sql) => Sql
  /** The nearest whole number, BIGINT. */
  readonly wholeNumber: (number: Sql) => Sql
  /** A quotient without its fraction. */
  readonly quotient: (dividend: Sql, other: number) => Sql
  /** The day of the month of a day counted from 1970-01-01. */
  readonly monthDay: (day: Sql) => Sql
  /** Builds the condition that an array contains a value. */
  readonly has: (array: Sql, value: Sql) => Sql
  /** 0, or an error where an option is passed that nothing takes; not needed where the engine itself refuses it. */
  readonly optionCheck?: Sql
  /** Builds 0, or an error if the condition is true. */
  readonly refuse: (condition: Sql, message: string) => Sql
}

/** Options of the queries, in addition to the metric and its interval. */
const options = 'currency exchange network max_age latency skip_nulls as_of observed_as_of backfill'.split(' ')

/** Macros with named options; needs the extension `delta`. */
function duckdb(uri: string, utc: (x: Sql) => Sql): Dialect {
  return {
    quote: '"',
    table: (name) => `delta_scan(${literal(`${uri}/${name}`)})`,
    decisions: 'query_table(decisions)',
    text: (option) => `CAST(${optionName(option)} AS VARCHAR)`,
    number: (option) => `CAST(${option} AS DOUBLE)`,
    flag: (option) => `coalesce(CAST(${option} AS BOOLEAN), false)`,
    instant: utc,
    micros: (instant) => `epoch_us(${instant})`,
    wholeNumber: (number) => `CAST(round(${number}) AS BIGINT)`,
    quotient: (dividend, other) => `(${dividend} // ${other})`,
    monthDay: (days) => `day(DATE '1970-01-01' + CAST(${days} AS INTEGER))`,
    has: (array, value) => `list_contains(${array}, ${value})`,
    refuse: (condition, message) => `CASE WHEN ${condition} THEN CAST(error(${literal(message)}) AS BIGINT) ELSE 0 END`,
  }
}

/**
 * Builds the dialect of ClickHouse: parameterised views; options are one text of JSON, tables the table functions of
 * the engine.
 */
function clickhouse(uri: string): Dialect {
  const json = (option: string, type: string): Sql =>
    `JSONExtract({options:String}, ${literal(option)}, 'Nullable(${type})')`
  const unread = (option: string): Sql => {
    const wanted = option === 'skip_nulls' ? "'Bool'" : "'Int64', 'UInt64', 'Double'"
    return (
      `JSONHas({options:String}, ${literal(option)}) AND toString(JSONType({options:String}, ` +
      `${literal(option)})) NOT IN (${wanted}, 'Null')`
    )
  }
  const source = /^s3:/i.test(uri) ? 'deltaLake' : 'deltaLakeLocal'
  return {
    quote: '"',
    table: (name) => `${source}(${literal(`${uri}/${name}`)})`,
    decisions: 'pit_decisions',
    text: (option) => (option === 'metric' || option === 'interval' ? `{${option}:String}` : json(option, 'String')),
    number: (option) => json(option, 'Float64'),
    flag: (option) => `coalesce(${json(option, 'Bool')}, false)`,
    instant: (option) => `parseDateTime64BestEffort(${json(option, 'String')}, 6, 'UTC')`,
    micros: (instant) => `toUnixTimestamp64Micro(toDateTime64(${instant}, 6))`,
    wholeNumber: (number) => `toInt64(round(${number}))`,
    quotient: (dividend, other) => `intDiv(${dividend}, ${other})`,
    monthDay: (days) => `toDayOfMonth(toDate32(toInt32(${days})))`,
    has: (array, value) => `has(${array}, ${value})`,
    optionCheck: `throwIf(NOT isValidJSON({options:String}) OR NOT hasAll([${options.map(literal).join(', ')}], JSONExtractKeys({options:String})), 'no such option')
      + throwIf(${['max_age', 'latency', 'skip_nulls'].map(unread).join(' OR ')}, 'an option is of another type')`,
    refuse: (condition, message) => `throwIf(coalesce(${condition}, false), ${literal(message)})`,
  }
}

/**
 * Builds the dialect of Spark: views over session variables `pit_<option>`, or with `marked` a query over parameters
 * `:<option>` and frames `{name}`.
 */
function spark(uri: string, marked: boolean): Dialect {
  const value = (option: string): Sql => (marked ? `:${option}` : `pit_${option}`)
  return {
    quote: '`',
    table: (name) => (marked ? `{${name}}` : `delta.\`${uri.replace(/^s3:/i, 's3a:').replaceAll('`', '``')}/${name}\``),
    decisions: marked ? '{decisions}' : 'pit_decisions',
    text: (option) => `CAST(${value(option)} AS STRING)`,
    number: (option) => `CAST(${value(option)} AS DOUBLE)`,
    flag: (option) => `coalesce(CAST(${value(option)} AS BOOLEAN), false)`,
    instant: (option) => `CAST(${value(option)} AS TIMESTAMP)`,
    micros: (instant) => `unix_micros(${instant})`,
    wholeNumber: (number) => `CAST(round(${number}) AS BIGINT)`,
    quotient: (dividend, other) => `(${dividend} div ${other})`,
    monthDay: (days) => `day(date_from_unix_date(CAST(${days} AS INT)))`,
    has: (array, wanted) => `array_contains(${array}, ${wanted})`,
    refuse: (condition, message) =>
      `CASE WHEN ${condition} THEN CAST(raise_error(${literal(message)}) AS BIGINT) ELSE 0 END`,
  }
}

/** Queries over a first relation `options` of one row; tables are registered in a catalogue of the engine. */
function trino(): Dialect {
  const value = (option: string): Sql => `(SELECT options.${optionName(option)} FROM options)`
  return {
    quote: '"',
    table: (name) => `delta.pitlake.${name}`,
    decisions: 'pit_decisions',
    text: value,
    number: value,
    flag: (option) => `coalesce(${value(option)}, false)`,
    instant: value,
    // Seconds as a double are exact to less than half a microsecond until the year 2106.
    micros: (instant) => `CAST(round(to_unixtime(${instant}) * 1e6) AS bigint)`,
    wholeNumber: (number) => `CAST(round(${number}) AS bigint)`,
    quotient: (dividend, other) => `(${dividend} / ${other})`,
    monthDay: (days) => `day(date_add('day', ${days}, DATE '1970-01-01'))`,
    has: (array, wanted) => `contains(${array}, ${wanted})`,
    refuse: (condition, message) => `IF(${condition}, CAST(fail(${literal(message)}) AS bigint), 0)`,
  }
}

/** Quotes a text as an SQL literal. */
const literal = (text: string): Sql => `'${text.replaceAll("'", "''")}'`

/** Quotes the one option that is a word of the language. */
const optionName = (option: string): Sql => (option === 'interval' ? '"interval"' : option)
