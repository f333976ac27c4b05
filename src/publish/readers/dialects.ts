/** An SQL expression. */
type Sql = string

/** How an engine says what the shared texts leave open; options are what a person passes, NULL where not given. */
export interface Dialect {
  /** What stands around names that are words of the language. */
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
  readonly whole: (number: Sql) => Sql
  /** A quotient without its fraction. */
  readonly quotient: (one: Sql, other: number) => Sql
  /** The day of the month of a day counted from 1970-01-01. */
  readonly monthDay: (day: Sql) => Sql
  /** Whether an array holds a value. */
  readonly has: (array: Sql, value: Sql) => Sql
  /** 0, or an error where an option is passed that nothing takes; not needed where the engine itself refuses it. */
  readonly strange?: Sql
  /** 0, or an error where the condition holds. */
  readonly refuse: (condition: Sql, message: string) => Sql
}

/** What may be passed to the queries, beside the metric and its interval. */
const options = 'currency exchange network max_age latency skip_nulls as_of observed_as_of backfill'.split(' ')

/** Macros with named options; needs the extension `delta`. */
export function duckdb(uri: string, utc: (x: Sql) => Sql): Dialect {
  return {
    quote: '"',
    table: (name) => `delta_scan(${literal(`${uri}/${name}`)})`,
    decisions: 'query_table(decisions)',
    text: (option) => `CAST(${named(option)} AS VARCHAR)`,
    number: (option) => `CAST(${option} AS DOUBLE)`,
    flag: (option) => `coalesce(CAST(${option} AS BOOLEAN), false)`,
    instant: utc,
    micros: (instant) => `epoch_us(${instant})`,
    whole: (number) => `CAST(round(${number}) AS BIGINT)`,
    quotient: (one, other) => `(${one} // ${other})`,
    monthDay: (days) => `day(DATE '1970-01-01' + CAST(${days} AS INTEGER))`,
    has: (array, value) => `list_contains(${array}, ${value})`,
    refuse: (condition, message) => `CASE WHEN ${condition} THEN CAST(error(${literal(message)}) AS BIGINT) ELSE 0 END`,
  }
}

/** Parameterised views; options are one text of JSON, tables the table functions of the engine. */
export function clickhouse(uri: string): Dialect {
  const json = (option: string, type: string): Sql =>
    `JSONExtract({options:String}, ${literal(option)}, 'Nullable(${type})')`
  const unread = (option: string): Sql => {
    const wanted = option === 'skip_nulls' ? "'Bool'" : "'Int64', 'UInt64', 'Double'"
    return `JSONHas({options:String}, ${literal(option)}) AND toString(JSONType({options:String}, ${literal(option)})) NOT IN (${wanted}, 'Null')`
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
    whole: (number) => `toInt64(round(${number}))`,
    quotient: (one, other) => `intDiv(${one}, ${other})`,
    monthDay: (days) => `toDayOfMonth(toDate32(toInt32(${days})))`,
    has: (array, value) => `has(${array}, ${value})`,
    strange: `throwIf(NOT isValidJSON({options:String}) OR NOT hasAll([${options.map(literal).join(', ')}], JSONExtractKeys({options:String})), 'no such option')
      + throwIf(${['max_age', 'latency', 'skip_nulls'].map(unread).join(' OR ')}, 'an option is of another type')`,
    refuse: (condition, message) => `throwIf(coalesce(${condition}, false), ${literal(message)})`,
  }
}

/** Views over session variables `pit_<option>`, or with `marked` a query over parameters `:<option>` and frames `{name}`. */
export function spark(uri: string, marked: boolean): Dialect {
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
    whole: (number) => `CAST(round(${number}) AS BIGINT)`,
    quotient: (one, other) => `(${one} div ${other})`,
    monthDay: (days) => `day(date_from_unix_date(CAST(${days} AS INT)))`,
    has: (array, wanted) => `array_contains(${array}, ${wanted})`,
    refuse: (condition, message) =>
      `CASE WHEN ${condition} THEN CAST(raise_error(${literal(message)}) AS BIGINT) ELSE 0 END`,
  }
}

/** Queries over a first relation `options` of one row; tables are registered in a catalogue of the engine. */
export function trino(): Dialect {
  const value = (option: string): Sql => `(SELECT options.${named(option)} FROM options)`
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
    whole: (number) => `CAST(round(${number}) AS bigint)`,
    quotient: (one, other) => `(${one} / ${other})`,
    monthDay: (days) => `day(date_add('day', ${days}, DATE '1970-01-01'))`,
    has: (array, wanted) => `contains(${array}, ${wanted})`,
    refuse: (condition, message) => `IF(${condition}, CAST(fail(${literal(message)}) AS bigint), 0)`,
  }
}

/** A text as SQL says it. */
function literal(text: string): Sql {
  return `'${text.replaceAll("'", "''")}'`
}

/** The one option that is a word of the language. */
function named(option: string): Sql {
  return option === 'interval' ? '"interval"' : option
}
