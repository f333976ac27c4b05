import type { SourceMapping } from '../../catalog/sources.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import { quote, quoteName } from '../../lake/store/engine.ts'

/**
 * One thing that a mapping takes from each row: the column that it becomes, and when a row has none that can be used.
 */
export interface ColumnReading {
  /** Column of the table of rows; null for a check without a column. */
  readonly name: string | null
  /** The flag that names the column. */
  readonly flag: string
  /** SQL of the value in the table. */
  readonly sql: Sql
  /** SQL condition that the value cannot be used; `false` if it always can. */
  readonly bad: Sql
  /** Whether the value cannot be used if it is NULL, and only then. */
  readonly isNeeded?: true
  /** SQL of the value in the file. */
  readonly raw: Sql
  /** SQL of the expected value. */
  readonly wanted: Sql
}

/** A column of the user's files. */
export interface Source {
  readonly column: string
  /** DuckDB's type; JSON if the files are JSON. */
  readonly type: string
  readonly json: boolean
  /** The text that means a missing value. */
  readonly nullText?: string | undefined
}

/** Units per second. */
const perSecond = { s: 1n, ms: 1000n, us: 1_000_000n, ns: 1_000_000_000n } as const

type Clock = Pick<SourceMapping, 'zone' | 'unit' | 'ambiguous' | 'timestamp'> & {
  /** Whether a bare date names a day of the calendar, in any zone. */
  readonly label?: boolean
  /** Whether numbers are refused, because no unit of them can be named. */
  readonly noNumbers?: boolean
}

const integers = /^(?:U?(?:TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT))$/
const numbers = /^(?:DOUBLE|FLOAT|DECIMAL)/
/** Numbers that DuckDB casts to a double with an error of its own: their text becomes the nearest double. */
const roundedByEngine = /^(?:U?HUGEINT$|DECIMAL\((?:1[6-9]|[23]\d),)/
const nested = /^(?:STRUCT|MAP|JSON)|\]$/

/** SQL of the value in a column. */
export const rawOf = ({ column, json }: Source): Sql =>
  json ? `json_extract(json, ${quote(`$.${JSON.stringify(column)}`)})` : quoteName(column)

/** SQL of a column as text; null if the files have no texts in it. */
export const textOf = (source: Source): Sql | null =>
  source.json ? `(${rawOf(source)} ->> '$')` : source.type === 'VARCHAR' ? rawOf(source) : null

const dayPattern = '[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}'
/** A time of day, down to microseconds. */
const timePattern = String.raw`[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{0,6}0*)?)?`
const localPattern = `${dayPattern}[T ] *${timePattern}`
const offsetPattern = '(Z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2}(:?[0-9]{2})?)?)'

/**
 * Patterns for the spellings of timestamps in texts. Texts of no pattern are refused.
 * DuckDB itself takes `2024-03-01T10+02` for a date, reads `2024-3-1` as a midnight that was stated, and knows zones by
 * ambiguous names: `BST` is Bangladesh, and `PST` is the summer time of Los Angeles in summer.
 */
const spellings = {
  date: dayPattern,
  local: localPattern,
  zoned: `${localPattern} *${offsetPattern}`,
  whole: String.raw`-?[0-9]{1,18}(\.0*)?`,
  fraction: String.raw`-?[0-9]+(\.[0-9]{0,6}0*|(\.[0-9]+)?[eE][+-]?[0-9]+)?`,
} as const

/** SQL condition that a text is spelled like this, with or without blanks around it. */
export const isSpelled = (text: Sql, kind: keyof typeof spellings): Sql =>
  `regexp_full_match(${text}, ${quote(` *(${spellings[kind]}) *`)})`

/** SQL that uses a value several times and computes it once; DuckDB computes a repeated expression in a CASE again. */
const computeOnce = (value: Sql, name: string, use: (name: Sql) => Sql): Sql =>
  `list_transform([${value}], lambda ${name}: ${use(name)})[1]`

/**
 * SQL of the spelling of a timestamp that can be used: 0 without a zone, 1 with one, 2 as a number; null if the column
 * is not text, which alone can be of several kinds.
 */
export function spellingSql(source: Source): Sql | null {
  const text = textOf(source)
  const isZoned = `length(${text}) > 10 AND regexp_matches(${text}, ':[0-9.]+ *[-+A-Z]')`
  return text && `CASE WHEN ${isZoned} THEN 1 WHEN regexp_matches(${text}, '[0-9][-/]') THEN 0 ELSE 2 END`
}

/** SQL condition that a value is a bare date, which names a whole day. */
export function isBareDateSql(source: Source): Sql {
  const text = textOf(source)
  return text === null ? `${source.type === 'DATE'}` : isSpelled(text, 'date')
}

/**
 * Purpose of a timestamp: it names the interval of a row, the time from which the row was known, or the time of a
 * decision. A bare date is a decision at the beginning of its day, when nothing of that day is known.
 */
export type InstantRole = 'interval' | 'knowledge' | 'decision'

/** SQL of a timestamp in microseconds, NULL if it is invalid. */
function instantOf(source: Source, clock: Clock, role: InstantRole): Sql {
  const { zone = 'UTC', unit, label = false, ambiguous, timestamp } = clock
  const raw = rawOf(source)
  const local = (stamp: Sql): Sql => (zone === 'UTC' ? `epoch_us(${stamp})` : localTimeSql(stamp, zone, ambiguous))
  const isDayEnd = role === 'knowledge' || timestamp === 'interval_end'
  const dated = (date: Sql): Sql => {
    const stamp = `CAST(${date}${isDayEnd ? ' + 1' : ''} AS TIMESTAMP)`
    // A day has a beginning even if its midnight does not exist.
    return label || zone === 'UTC' ? `epoch_us(${stamp})` : `epoch_us(timezone(${quote(zone)}, ${stamp}))`
  }
  const counted = (x: Sql): Sql => (unit === undefined ? 'CAST(NULL AS BIGINT)' : countedSql(x, unit, role))
  const text = textOf(source)
  // DuckDB takes 50 microseconds to read a decimal of this width: only fractions are read so.
  if (text !== null)
    return `CASE
      WHEN length(${text}) < 16 AND ${isSpelled(text, 'date')} THEN ${dated(`TRY_CAST(${text} AS DATE)`)}
      WHEN ${isSpelled(text, 'zoned')} THEN epoch_us(TRY_CAST(trim(${text}) AS TIMESTAMPTZ))
      WHEN ${isSpelled(text, 'local')} THEN ${local(`TRY_CAST(trim(${text}) AS TIMESTAMP)`)}
      WHEN ${isSpelled(text, 'whole')} THEN ${counted(`CAST(split_part(${text}, '.', 1) AS BIGINT)`)}
      WHEN ${isSpelled(text, 'fraction')} THEN ${counted(`TRY_CAST(${text} AS DECIMAL(38, 6))`)} END`
  if (source.type === 'DATE') return dated(raw)
  if (source.type === 'TIMESTAMP WITH TIME ZONE') return `epoch_us(${raw})`
  if (source.type === 'TIMESTAMP_NS')
    return `CASE WHEN epoch_ns(${raw}) % 1000 = 0 THEN ${local(`CAST(${raw} AS TIMESTAMP)`)} END`
  if (source.type.startsWith('TIMESTAMP')) return local(`CAST(${raw} AS TIMESTAMP)`)
  if (integers.test(source.type)) return counted(`TRY_CAST(${raw} AS BIGINT)`)
  // As wide as the product with the microseconds of its unit.
  const wide = source.type.replace(/^DECIMAL\(\d+,/, 'DECIMAL(38,')
  return numbers.test(source.type) ? counted(`CAST(${raw} AS ${wide})`) : 'CAST(NULL AS BIGINT)'
}

const dayMicros = 86_400_000_000

/**
 * SQL of a local time in microseconds; NULL if the zone's clock never shows it, or shows it twice and `ambiguous` does
 * not decide. The offsets of the zone a day and a half before and after give the two candidates.
 */
function localTimeSql(stamp: Sql, zone: string, ambiguous: SourceMapping['ambiguous']): Sql {
  const offset = (at: Sql): Sql => `(epoch_us(timezone(${quote(zone)}, make_timestamptz(${at}))) - (${at}))`
  const shown = `epoch_us(${stamp})`
  const candidate = (days: number): Sql => `(${shown} - ${offset(`${shown} + ${days * dayMicros}`)})`
  const early = candidate(-1.5)
  const late = candidate(1.5)
  const isShown = (at: Sql): Sql => `(${at}) + ${offset(at)} = ${shown}`
  const chosen = ambiguous && `${ambiguous === 'earlier' ? 'least' : 'greatest'}(${early}, ${late})`
  return `CASE WHEN ${early} = ${late} THEN ${early}
    WHEN ${isShown(early)} AND ${isShown(late)} THEN ${chosen ?? 'CAST(NULL AS BIGINT)'}
    WHEN ${isShown(early)} THEN ${early} WHEN ${isShown(late)} THEN ${late} END`
}

/** Years in which timestamps are stored; in other years, microseconds are not exact numbers. */
const years = { first: 1700, last: 2199 }
const firstMicros = Date.UTC(years.first, 0, 1) * 1000
const endMicros = Date.UTC(years.last + 1, 0, 1) * 1000

/**
 * SQL of a number of units since 1970 in microseconds; NULL in other years than those that are stored. A year or a date
 * without dashes, such as 20240301, is no time of knowledge: as a number of seconds it would be known since 1970. The
 * grid of the interval refuses it in `t`.
 */
function countedSql(x: Sql, unit: keyof typeof perSecond, role: InstantRole): Sql {
  const each = perSecond[unit]
  const us = each > 1_000_000n ? `${x} / ${each / 1_000_000n}` : `${x} * ${1_000_000n / each}`
  const isWhole = each > 1_000_000n ? `${x} % ${each / 1_000_000n} = 0` : `TRY_CAST(${us} AS BIGINT) = ${us}`
  const isDate = `${x} BETWEEN ${years.first}0101 AND ${years.last}1231 AND ${x} % 100 BETWEEN 1 AND 31
    AND ${x} // 100 % 100 BETWEEN 1 AND 12 OR ${x} BETWEEN ${years.first} AND ${years.last}`
  const isTime = role === 'interval' ? isWhole : `${isWhole} AND NOT (${isDate})`
  // A number beyond these years could overflow in the inner expression.
  const inYears = `${x} BETWEEN ${(BigInt(firstMicros) * each) / 1_000_000n} AND ${(BigInt(endMicros) * each) / 1_000_000n}`
  return `CASE WHEN ${inYears} THEN CASE WHEN ${isTime} THEN TRY_CAST(${us} AS BIGINT) END END`
}

/** Columns of the readings of timestamps. */
const instantNames: Readonly<Record<InstantRole, string>> = {
  interval: 'mark',
  knowledge: 'computed',
  decision: 'decided',
}

/**
 * Builds the reading of a timestamp: the column `mark` in whole seconds for an interval, `computed` in microseconds for a
 * time of knowledge, `decided` for a decision. A bare date names a whole day. As a time of knowledge or the end of an
 * interval it counts from the end of the day, otherwise from its beginning, so that the close of a day is not known
 * before the day begins.
 */
export function readInstant(role: InstantRole, flag: string, source: Source, clock: Clock): ColumnReading {
  const isMark = role === 'interval'
  const us = instantOf(source, clock, role)
  const { zone = 'UTC', ambiguous, noNumbers = false } = clock
  const isNumber = integers.test(source.type) || numbers.test(source.type)
  const isCounted = isNumber && clock.unit === undefined && !noNumbers
  const once = ambiguous === undefined ? 'exactly once (else --ambiguous earlier or later)' : 'at all'
  const local =
    zone === 'UTC' ? '' : `, of the years ${years.first} to ${years.last}, which the clocks of ${zone} show ${once}`
  const such =
    'a date such as 2024-03-01 or an ' +
    `instant${isMark ? ' of whole seconds' : ''}${local || `, of the years ${years.first} to ${years.last}`}`
  const inYears = (at: Sql): Sql => `${at} >= ${firstMicros} AND ${at} < ${endMicros}`
  const used = (at: Sql): Sql =>
    isMark ? `${inYears(at)} AND ${at} % 1000000 = 0 THEN ${at} // 1000000` : `${inYears(at)} THEN ${at}`
  const sql = computeOnce(us, 'micros', (at) => `CASE WHEN ${used(at)} END`)
  const raw = rawOf(source)
  return {
    name: instantNames[role],
    flag,
    raw,
    sql,
    // A decision without a time is answered with NULL.
    bad: role === 'decision' ? `(${textOf(source) ?? raw}) IS NOT NULL AND (${sql}) IS NULL` : `(${sql}) IS NULL`,
    ...(role !== 'decision' && { isNeeded: true }),
    wanted: quote(isCounted ? 'the unit of its numbers: --unit s, ms, us or ns' : such),
  }
}

/** Builds the reading of a word: a column, or the constant after `=`. */
export function readWord(name: string, source: Source): ColumnReading {
  const raw = rawOf(source)
  const sql = textOf(source) ?? `CAST(${raw} AS VARCHAR)`
  const bad = source.json ? `coalesce(json_type(${raw}) IN ('NULL', 'OBJECT', 'ARRAY'), true)` : `${sql} IS NULL`
  return { name, flag: name, raw, sql, bad: `(${bad} OR ${sql} = '')`, wanted: `'a name'` }
}

/** SQL of the number in a column; NULL if it is null or not a number. */
function numberOf(source: Source): Sql {
  const raw = rawOf(source)
  const text = textOf(source)
  if (text !== null) {
    const number = `TRY_CAST(${text} AS DOUBLE)`
    // Some interfaces write numbers as texts; only DuckDB reads `1_000` as a number.
    const plain = `NOT contains(${text}, '_')`
    const isOne = source.json ? `json_type(${raw}) IN ('UBIGINT', 'BIGINT', 'DOUBLE', 'VARCHAR') AND ${plain}` : plain
    return `CASE WHEN ${isOne} AND NOT (${isNull(source)}) AND isfinite(${number}) THEN ${number} END`
  }
  if (roundedByEngine.test(source.type)) return `CAST(CAST(${raw} AS VARCHAR) AS DOUBLE)`
  if (numbers.test(source.type)) return `CASE WHEN isfinite(CAST(${raw} AS DOUBLE)) THEN CAST(${raw} AS DOUBLE) END`
  return integers.test(source.type) ? `CAST(${raw} AS DOUBLE)` : 'CAST(NULL AS DOUBLE)'
}

/** SQL condition for a missing value: null, an absent key, or the text that means a missing value. */
function isNull(source: Source): Sql {
  const { nullText, json } = source
  const plain = json ? `coalesce(json_type(${rawOf(source)}) = 'NULL', true)` : `${rawOf(source)} IS NULL`
  return nullText === undefined ? plain : `(${plain} OR coalesce(trim(${textOf(source)}) = ${quote(nullText)}, false))`
}

/**
 * Pattern for text, outside of strings, that DuckDB accepts as JSON and other readers do not: NaN, Infinity, a comma
 * before a bracket.
 */
const looseJson = String.raw`[iI][nN][fF]|[nN][aA][nN]|,\s*[}\]]`
const textsInJson = String.raw`"(?:\\.|[^"\\])*"`

/** SQL of a JSON text; NULL if a reader other than DuckDB would refuse it. */
function strictJsonSql(text: Sql): Sql {
  const bare = `regexp_replace(${text}, ${quote(textsInJson)}, '""', 'g')`
  return (
    `CASE WHEN NOT regexp_matches(${text}, ${quote(looseJson)}) OR NOT regexp_matches(${bare}, ` +
    `${quote(looseJson)}) THEN ${text} END`
  )
}

/** SQL of an object or a list as JSON text; NULL for other values. */
function nestedOf(source: Source): Sql {
  const raw = rawOf(source)
  if (source.json)
    return `CASE WHEN json_type(${raw}) IN ('OBJECT', 'ARRAY') THEN ${strictJsonSql(`CAST(${raw} AS VARCHAR)`)} END`
  if (source.type === 'VARCHAR')
    return `CASE WHEN ${raw}[1] IN ('{', '[') AND json_valid(${raw}) THEN ${strictJsonSql(raw)} END`
  return nested.test(source.type) ? strictJsonSql(`CAST(to_json(${raw}) AS VARCHAR)`) : 'CAST(NULL AS VARCHAR)'
}

/** SQL of the digits of an integer that no double is, as JSON spells it; NULL for any other number. */
function beyondOf(source: Source): Sql {
  const text = textOf(source) ?? `CAST(${rawOf(source)} AS VARCHAR)`
  const digits = String.raw`regexp_extract(${text}, '^-?0*([0-9]+)(\.0*)?$', 1)`
  const number = numberOf(source)
  const sign = `CASE WHEN ${number} < 0 THEN '-' ELSE '' END`
  return `CASE WHEN abs(${number}) >= 9007199254740992 AND ${digits} NOT IN ('', format('{:.0f}', abs(${number})))
    THEN ${sign} || ${digits} END`
}

/** Whether a column may contain integers that a double cannot represent. */
function mayBeBeyond({ json, type }: Source): boolean {
  if (json || type === 'VARCHAR' || /BIGINT|HUGEINT/.test(type)) return true
  const [, precision = '0', scale = '0'] = /^DECIMAL\((\d+),(\d+)\)$/.exec(type) ?? []
  return Number(precision) - Number(scale) >= 16
}

/**
 * Returns the readings of the value: `v`, `o` if the column may contain nested values, `extra` if it may contain large
 * integers.
 */
export function readValue(source: Source): ColumnReading[] {
  const number = numberOf(source)
  const nestedSql = nestedOf(source)
  const raw = rawOf(source)
  const mixed = source.json || source.type === 'VARCHAR' || nested.test(source.type)
  const bad = `NOT (${isNull(source)}) AND (${number}) IS NULL AND (${nestedSql}) IS NULL`
  const v = {
    name: 'v',
    flag: 'value',
    sql: number,
    bad,
    raw,
    wanted: `'a finite number'`,
  }
  return [
    v,
    ...(mixed ? [{ ...v, name: 'o', sql: nestedSql, bad: 'false' }] : []),
    ...(mayBeBeyond(source)
      ? [{ ...v, name: 'extra', sql: `'{"v":' || (${beyondOf(source)}) || '}'`, bad: 'false' }]
      : []),
  ]
}

/** Builds the readings of a value of several parts: one object. */
export function readComponents(sources: readonly Source[]): ColumnReading[] {
  const cell = (source: Source): Sql =>
    mayBeBeyond(source)
      ? `coalesce(CAST((${beyondOf(source)}) AS JSON), to_json(${numberOf(source)}))`
      : numberOf(source)
  const parts = sources.map((source) => `${quote(source.column)}, ${cell(source)}`)
  const wholeNumberSql = {
    name: 'o',
    flag: 'components',
    sql: `CAST(json_object(${parts.join(', ')}) AS VARCHAR)`,
    bad: 'false',
  }
  const each = sources.map((source) => ({
    name: null,
    flag: source.column,
    sql: '',
    raw: rawOf(source),
    bad: `NOT (${isNull(source)}) AND (${numberOf(source)}) IS NULL`,
    wanted: `'a finite number'`,
  }))
  return [{ ...wholeNumberSql, raw: 'NULL', wanted: `''` }, ...each]
}
