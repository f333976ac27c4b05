import type { DuckDBType } from '@duckdb/node-api'
import { type Cell, type Prepared, quoteName, typeIds } from '../lake/store/engine.ts'

/** Output format with types of its own. */
type Target = 'parquet' | 'compat' | 'csv' | 'safe csv'

/** Builds the statement with its columns cast to types that the target stores without loss, and no name twice. */
export function projectStatement(
  statement: string,
  columns: readonly Prepared['columns'][number][],
  target: Target,
): string {
  const names = distinctNames(columns.map(({ name }) => (target === 'safe csv' ? spreadsheetName(name) : name)))
  const places = columns.map((_, i) => `c${i}`)
  const parts = columns.map(({ type }, i) => {
    const place = quoteName(places[i] ?? '')
    const form = forms[target](place, type)
    return `${form} AS ${quoteName(names[i] ?? '')}`
  })
  return `SELECT ${parts.join(', ')} FROM (${statement}\n) AS answer(${places.map(quoteName).join(', ')})`
}

const forms: Readonly<Record<Target, (place: string, type: DuckDBType) => string>> = {
  parquet: (place, type) => {
    const keptColumn = keptType(type)
    return keptColumn === undefined ? place : `CAST(${place} AS ${keptColumn})`
  },
  compat: (place, type) => {
    if (asMicros.has(type.typeId)) return `CAST(${place} AS TIMESTAMP)`
    if (nestedTypes.has(type.typeId)) return `CAST(to_json(${place}) AS VARCHAR)`
    return plainTypes.has(type.typeId) && type.alias === undefined ? place : `CAST(${place} AS VARCHAR)`
  },
  csv: (place, type) => (type.typeId === typeIds.TIMESTAMP_TZ ? instantText(place) : place),
  'safe csv': (place, type) =>
    type.typeId === typeIds.TIMESTAMP_TZ
      ? instantText(place)
      : figures.has(type.typeId)
        ? place
        : spreadsheetText(place),
}

/** Types whose text no spreadsheet takes for a formula, a leading minus included. */
const figures = typesOf(`BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT
  FLOAT DOUBLE DECIMAL DATE TIME TIMESTAMP`)

/**
 * Builds the SQL of text that a spreadsheet shows and does not run: no control signs but tab and line end, `'` before
 * what begins a formula.
 */
function spreadsheetText(place: string): string {
  const clean = `regexp_replace(CAST(${place} AS VARCHAR), '[\\x00-\\x08\\x0B-\\x1F\\x7F-\\x{9F}]', '', 'g')`
  return `regexp_replace(${clean}, '^(\\s*[=+\\-@＝＋－＠\\t])', '''\\1')`
}

/**
 * Formats the name of a column that a spreadsheet shows and does not run: no control signs, `'` before the beginning of
 * a formula.
 */
function spreadsheetName(name: string): string {
  const clean = name.replaceAll(/\p{Cc}/gu, '')
  return /^\s*[=+\-@＝＋－＠]/.test(clean) ? `'${clean}` : clean
}

/** Builds the SQL of an instant as `2024-03-01T00:00:00.000000Z`; the two infinities as DuckDB calls them. */
export function instantText(place: string): string {
  return (
    `CASE WHEN isfinite(${place}) THEN strftime(timezone('UTC', ${place}), '%Y-%m-%dT%H:%M:%S.%fZ') ELSE ` +
    `CAST(${place} AS VARCHAR) END`
  )
}

/**
 * Returns the type that Parquet keeps whole if it would change this one, or a part of it; undefined if it keeps it as
 * it is.
 */
function keptType(type: DuckDBType): string | undefined {
  const wholeType = (part: DuckDBType): string => keptType(part) ?? String(part)
  const around = (text: string, ...parts: readonly DuckDBType[]): string | undefined =>
    parts.some((part) => keptType(part) !== undefined) ? text : undefined
  switch (type.typeId) {
    case typeIds.LIST:
    case typeIds.ARRAY:
      return around(`${wholeType(type.valueType)}[]`, type.valueType)
    case typeIds.STRUCT: {
      const { entryNames, entryTypes } = type
      const parts = entryTypes.map((entry, i) => `${quoteName(entryNames[i] ?? '')} ${wholeType(entry)}`)
      return around(`STRUCT(${parts.join(', ')})`, ...entryTypes)
    }
    case typeIds.MAP:
      return around(`MAP(${wholeType(type.keyType)}, ${wholeType(type.valueType)})`, type.keyType, type.valueType)
    default:
      return bentTypes[type.typeId]
  }
}

/** Parquet would round the first two to doubles, the interval to milliseconds, and drop the zone of a time. */
const bentTypes: Readonly<Record<number, string>> = {
  [typeIds.HUGEINT]: 'DECIMAL(38,0)',
  [typeIds.UHUGEINT]: 'DECIMAL(38,0)',
  [typeIds.INTERVAL]: 'VARCHAR',
  [typeIds.TIME_TZ]: 'VARCHAR',
  [typeIds.TIME_NS]: 'VARCHAR',
  [typeIds.BIGNUM]: 'VARCHAR',
  [typeIds.BIT]: 'VARCHAR',
  [typeIds.UNION]: 'VARCHAR',
}

/** Types that small Parquet readers know; everything else goes as text, nested values as JSON text. */
const plainTypes = typesOf(`BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER FLOAT DOUBLE
  TIMESTAMP TIMESTAMP_TZ DATE BLOB`)

const asMicros = typesOf('TIMESTAMP_S TIMESTAMP_MS')
const nestedTypes = typesOf('LIST ARRAY STRUCT MAP')

/** Looks up DuckDB's type ids by their names, separated by white space. */
export function typesOf(names: string): ReadonlySet<number> {
  return new Set(names.split(/\s+/).map((name) => typeIds[name as keyof typeof typeIds]))
}

/**
 * Formats a cell as JSON: doubles in shortest round-trip form, NaN and the infinities as text, whole numbers beyond
 * 2^53 and decimals as text, instants as `…Z` with microseconds, bytes in base64. A column of type JSON is written as
 * it is.
 */
export function jsonForm(cell: Cell, isJson = false): string {
  if (cell === null) return 'null'
  if (typeof cell === 'number') return number(cell)
  if (typeof cell === 'bigint') return wholeText(cell)
  if (typeof cell === 'boolean') return String(cell)
  // Line ends in JSON text can only be between its parts.
  if (typeof cell === 'string') return isJson ? cell.replaceAll(/[\r\n]/g, ' ') : JSON.stringify(cell)
  if (cell instanceof Uint8Array) return JSON.stringify(Buffer.from(cell).toString('base64'))
  if (Array.isArray(cell)) return `[${cell.map((item: Cell) => jsonForm(item)).join(',')}]`
  const parts = Object.entries(cell).map(([key, value]) => `${JSON.stringify(key)}:${jsonForm(value)}`)
  return `{${parts.join(',')}}`
}

function number(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  return Number.isFinite(value) ? String(value) : JSON.stringify(String(value))
}

function wholeText(value: bigint): string {
  const exact = value >= -9_007_199_254_740_992n && value <= 9_007_199_254_740_992n
  return exact ? String(value) : `"${value}"`
}

/**
 * Formats a text as a CSV field, quoted where DuckDB's own writer quotes; NULL is an empty field, the empty text is
 * `""`.
 */
export function csvField(text: string | null): string {
  if (text === null) return ''
  return text === '' || /[",#\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Makes names distinct: the second `a` becomes `a_1`. */
export function distinctNames(names: readonly string[]): readonly string[] {
  const takenNames = new Set<string>()
  return names.map((name) => {
    let free = name
    for (let n = 1; takenNames.has(free.toLowerCase()); n++) free = `${name}_${n}`
    takenNames.add(free.toLowerCase())
    return free
  })
}
