import type { SourceMapping } from '../../catalog/sources.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import { quote, quoteName } from '../../lake/store/engine.ts'

/** One thing that a mapping takes from each row: the column that it becomes, and when a row has none that can be used. */
export interface ColumnReading {
  readonly name: string
  /** The flag that names the column. */
  readonly flag: string
  readonly sql: Sql
  readonly bad: Sql
  /** What stands in the file. */
  readonly raw: Sql
  /** SQL of what was wanted instead. */
  readonly wanted: Sql
}

/** A column of the user's files. */
export interface Source {
  readonly column: string
  /** DuckDB's type; JSON where the files are JSON. */
  readonly type: string
  readonly json: boolean
}

/** How many of a unit are a second. */
const perSecond = { s: 1n, ms: 1000n, us: 1_000_000n, ns: 1_000_000_000n } as const

type Clock = Pick<SourceMapping, 'zone' | 'unit'> & {
  /** Whether a bare date names a day of the calendar, in whatever zone it lies. */
  readonly label?: boolean
}

const integers = /^(?:U?(?:TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT))$/
const numbers = /^(?:DOUBLE|FLOAT|DECIMAL)/
const nested = /^(?:STRUCT|MAP|JSON)|\]$/

/** SQL of what stands in a column. */
export const rawOf = ({ column, json }: Source): Sql =>
  json ? `json_extract(json, ${quote(`$.${JSON.stringify(column)}`)})` : quoteName(column)

/** The same as a text, where that is how files have it. */
const textOf = (source: Source): Sql | null =>
  source.json ? `(${rawOf(source)} ->> '$')` : source.type === 'VARCHAR' ? rawOf(source) : null

const zoned = (text: Sql): Sql => `regexp_matches(${text}, ':[0-9.]+ *([+-]|[A-Za-z])')`
const dashed = (text: Sql): Sql => `(contains(${text}, '-') OR contains(${text}, '/'))`

/** How an instant is spelt: 0 without a zone, 1 with one, 2 as a number; only texts can be of several kinds. */
export function spellingSql(source: Source): Sql | null {
  const text = textOf(source)
  return text && `CASE WHEN length(${text}) <> 10 AND ${zoned(text)} THEN 1 WHEN ${dashed(text)} THEN 0 ELSE 2 END`
}

/** An instant in microseconds, NULL for what is none; `last`: a bare date counts from its end. */
function instantOf(source: Source, { zone = 'UTC', unit, label = false }: Clock, last: boolean): Sql {
  const raw = rawOf(source)
  const local = (stamp: Sql): Sql =>
    zone === 'UTC' ? `epoch_us(${stamp})` : `epoch_us(timezone(${quote(zone)}, ${stamp}))`
  const dated = (date: Sql): Sql => {
    const stamp = `CAST(${date}${last ? ' + 1' : ''} AS TIMESTAMP)`
    return label ? `epoch_us(${stamp})` : local(stamp)
  }
  const counted = (x: Sql): Sql => (unit === undefined ? 'CAST(NULL AS BIGINT)' : countedSql(x, unit))
  const read = (text: Sql): Sql => `CASE
      WHEN length(${text}) = 10 AND ${dashed(text)} THEN ${dated(`TRY_CAST(${text} AS DATE)`)}
      WHEN regexp_matches(${text}, '\\.[0-9]{7}') OR NOT ${text}[1] BETWEEN '0' AND '9' THEN NULL
      WHEN ${zoned(text)} THEN epoch_us(TRY_CAST(${text} AS TIMESTAMPTZ))
      WHEN ${dashed(text)} THEN ${local(`TRY_CAST(${text} AS TIMESTAMP)`)}
      ELSE ${counted(`TRY_CAST(${text} AS DECIMAL(38, 6))`)} END`
  const told = textOf(source)
  if (told !== null) return read(told)
  if (source.type === 'DATE') return dated(raw)
  if (source.type === 'TIMESTAMP WITH TIME ZONE') return `epoch_us(${raw})`
  if (source.type === 'TIMESTAMP_NS')
    return `CASE WHEN epoch_ns(${raw}) % 1000 = 0 THEN ${local(`CAST(${raw} AS TIMESTAMP)`)} END`
  if (source.type.startsWith('TIMESTAMP')) return local(`CAST(${raw} AS TIMESTAMP)`)
  return integers.test(source.type) || numbers.test(source.type) ? counted(raw) : 'CAST(NULL AS BIGINT)'
}

function countedSql(x: Sql, unit: keyof typeof perSecond): Sql {
  const each = perSecond[unit]
  if (each > 1_000_000n)
    return `CASE WHEN ${x} % ${each / 1_000_000n} = 0 THEN TRY_CAST(${x} / ${each / 1_000_000n} AS BIGINT) END`
  const us = `${x} * ${1_000_000n / each}`
  return `CASE WHEN TRY_CAST(${us} AS BIGINT) = ${us} THEN TRY_CAST(${us} AS BIGINT) END`
}

/** The reading of an instant of some role: `mark` in whole seconds, all others in microseconds. */
export function readInstant(name: string, flag: string, source: Source, clock: Clock): ColumnReading {
  const isMark = name === 'mark'
  const us = instantOf(source, clock, !isMark)
  const isCounted = (integers.test(source.type) || numbers.test(source.type)) && clock.unit === undefined
  const such = `a date such as 2024-03-01 or an instant${isMark ? ' of whole seconds' : ''}`
  return {
    name,
    flag,
    raw: rawOf(source),
    sql: isMark ? `(${us}) // 1000000` : us,
    bad: isMark ? `coalesce((${us}) % 1000000 <> 0, true)` : `(${us}) IS NULL`,
    wanted: quote(isCounted ? 'the unit of its numbers: --unit s, ms, us or ns' : such),
  }
}

/** The reading of a word: a column, or what `=` gives for all. */
export function readWord(name: string, source: Source): ColumnReading {
  const raw = rawOf(source)
  const sql = textOf(source) ?? `CAST(${raw} AS VARCHAR)`
  const bad = source.json ? `coalesce(json_type(${raw}) IN ('NULL', 'OBJECT', 'ARRAY'), true)` : `${sql} IS NULL`
  return { name, flag: name, raw, sql, bad: `(${bad} OR ${sql} = '')`, wanted: `'a name'` }
}

/** The number in a column, NULL where it is null or none. */
function numberOf(source: Source): Sql {
  const [raw, text] = [rawOf(source), textOf(source)]
  if (text !== null) {
    const number = `TRY_CAST(${text} AS DOUBLE)`
    const isOne = source.json ? `json_type(${raw}) IN ('UBIGINT', 'BIGINT', 'DOUBLE')` : `NOT contains(${raw}, '_')`
    return `CASE WHEN ${isOne} AND isfinite(${number}) THEN ${number} END`
  }
  if (numbers.test(source.type)) return `CASE WHEN isfinite(CAST(${raw} AS DOUBLE)) THEN CAST(${raw} AS DOUBLE) END`
  return integers.test(source.type) ? `CAST(${raw} AS DOUBLE)` : 'CAST(NULL AS DOUBLE)'
}

const isNull = (source: Source): Sql =>
  source.json ? `coalesce(json_type(${rawOf(source)}) = 'NULL', true)` : `${rawOf(source)} IS NULL`

/** A value that is an object or a list, as JSON text; NULL where it is none. */
function nestedOf(source: Source): Sql {
  const raw = rawOf(source)
  if (source.json) return `CASE WHEN json_type(${raw}) IN ('OBJECT', 'ARRAY') THEN CAST(${raw} AS VARCHAR) END`
  if (source.type === 'VARCHAR') return `CASE WHEN ${raw}[1] IN ('{', '[') AND json_valid(${raw}) THEN ${raw} END`
  return nested.test(source.type) ? `CAST(to_json(${raw}) AS VARCHAR)` : 'CAST(NULL AS VARCHAR)'
}

/** The text of an integer that a double does not hold. */
function beyondOf(source: Source): Sql {
  const text = textOf(source) ?? `CAST(${rawOf(source)} AS VARCHAR)`
  const whole = `TRY_CAST(${text} AS HUGEINT)`
  return `CASE WHEN abs(${numberOf(source)}) >= 9007199254740992 AND regexp_full_match(${text}, '-?[0-9]+')
    AND ${whole} IS DISTINCT FROM TRY_CAST(${numberOf(source)} AS HUGEINT) THEN '{"v":' || ${text} || '}' END`
}

/** The readings of the value: `v`, `o` where the column may hold any, `extra` where it may hold large integers. */
export function readValue(source: Source): ColumnReading[] {
  const [number, whole, raw] = [numberOf(source), nestedOf(source), rawOf(source)]
  const mixed = source.json || source.type === 'VARCHAR' || nested.test(source.type)
  const large = source.json || source.type === 'VARCHAR' || /BIGINT|HUGEINT/.test(source.type)
  const bad = `NOT (${isNull(source)}) AND (${number}) IS NULL AND (${whole}) IS NULL`
  const v = { name: 'v', flag: 'value', sql: number, bad, raw, wanted: `'a finite number'` }
  return [
    v,
    ...(mixed ? [{ ...v, name: 'o', sql: whole, bad: 'false' }] : []),
    ...(large ? [{ ...v, name: 'extra', sql: beyondOf(source), bad: 'false' }] : []),
  ]
}

/** The readings of a value of several parts: one object. */
export function readComponents(sources: readonly Source[]): ColumnReading[] {
  const parts = sources.map((source) => `${quote(source.column)}, ${numberOf(source)}`)
  const whole = {
    name: 'o',
    flag: 'components',
    sql: `CAST(json_object(${parts.join(', ')}) AS VARCHAR)`,
    bad: 'false',
  }
  const each = sources.map((source) => ({
    name: '',
    flag: source.column,
    sql: '',
    raw: rawOf(source),
    bad: `NOT (${isNull(source)}) AND (${numberOf(source)}) IS NULL`,
    wanted: `'a finite number'`,
  }))
  return [{ ...whole, raw: 'NULL', wanted: `''` }, ...each]
}
