import type { DuckDBType } from '@duckdb/node-api'
import { type Cell, cell, type Engine, quote, quoteName, typeIds } from '../lake/store/engine.ts'
import { Filled } from './filled-columns.ts'
import type { Ready } from './gate.ts'
import { distinctNames, jsonForm } from './projection.ts'

/**
 * Maximum columns for which the engine makes the text of rows. For wider rows it keeps several beginnings in memory at
 * once, in addition to what it counts.
 */
const widest = 32

/** Rows of a result as JSON objects. */
export interface ResultLines {
  /** Names of the columns, each once. */
  readonly names: readonly string[]
  /** Contents of the rows so far, by column. */
  readonly filled: Filled
  /** The rows of each chunk, a JSON text each. */
  readonly lines: AsyncGenerator<readonly string[]>
}

/**
 * Formats the rows of a statement as JSON objects, a text each, those of a chunk together, and watches their content.
 * The engine makes the text of each row if it would be just that of `jsonForm`, which takes half the time; rows and
 * types of which that is not sure are made here, value by value.
 */
export async function jsonLines(
  engine: Engine,
  { text: statement, kind, columns }: Ready,
  by: string | undefined,
): Promise<ResultLines> {
  const called = distinctNames(columns.map(({ name }) => name))
  const keys = called.map((name) => JSON.stringify(name))
  const filled = new Filled(called, by)
  const forms = columns.map(({ type }, k) => sureForm(quoteName(`c${k}`), type))
  // Only a SELECT may be inside another one.
  const sure =
    kind === 'SELECT' && forms.length > 0 && forms.length <= widest && forms.every((form) => form !== undefined)
  const names = columns.map((_, k) => quoteName(`c${k}`))
  const parts = forms.map((form, k) => `${quote(`${k === 0 ? '{' : ','}${keys[k]}:`)} || ${form}`)
  const lines = `SELECT ${names.join(', ')}, ${joined(parts)} || '}' FROM (${statement}\n) AS answer(${names.join(', ')})`
  const { chunks } = await engine.vectors(sure ? lines : statement)
  const isJson = columns.map(({ type }) => type.alias === 'JSON')
  const lineOf = (row: readonly Cell[]): string =>
    `{${keys.map((key, k) => `${key}:${jsonForm(row[k] ?? null, isJson[k] ?? false)}`).join(',')}}`
  async function* texts(): AsyncGenerator<readonly string[]> {
    for await (const chunk of chunks) {
      const sureLines = sure ? (chunk.getColumnValues(columns.length) as readonly (string | null)[]) : []
      filled.addChunk(chunk)
      if (sure && !sureLines.includes(null)) yield sureLines as readonly string[]
      else {
        const cells = columns.map((_, k) => chunk.getColumnValues(k).map(cell))
        yield Array.from(
          { length: chunk.rowCount },
          (_, i) => sureLines[i] ?? lineOf(cells.map((column) => column[i] ?? null)),
        )
      }
    }
  }
  return { names: called, filled, lines: texts() }
}

/** Joins texts by halves: one by one the engine would keep as many beginnings of each row as it has columns. */
function joined(parts: readonly string[]): string {
  const half = Math.ceil(parts.length / 2)
  return parts.length < 2 ? (parts[0] ?? '') : `(${joined(parts.slice(0, half))} || ${joined(parts.slice(half))})`
}

/**
 * Builds the SQL of a value's JSON text, NULL if it is not sure to be that of `jsonForm`; undefined for types that are
 * left to it.
 */
function sureForm(place: string, type: DuckDBType): string | undefined {
  const form = sureForms[type.typeId]
  if (form === undefined || (type.alias !== undefined && type.alias !== 'JSON')) return undefined
  const ownSpelling =
    type.alias === 'JSON' ? `CASE WHEN NOT regexp_matches(${place}, '[\\r\\n]') THEN ${place} END` : form(place)
  return `CASE WHEN ${place} IS NULL THEN 'null' ELSE ${ownSpelling} END`
}

const plain = (place: string): string => `CAST(${place} AS VARCHAR)`
const quoted = (text: string): string => `'"' || ${text} || '"'`
const wholeSql = (place: string): string =>
  `CASE WHEN ${place} BETWEEN -9007199254740992 AND 9007199254740992 THEN ${plain(place)} ELSE ` +
  `${quoted(plain(place))} END`
/** Years of four digits. */
const usual = (place: string, type: string): string =>
  `${place} >= ${type} '1000-01-01' AND ${place} < ${type} '9999-12-31'`
const instant = (place: string, micros: string, type: string, zone: string): string =>
  `CASE WHEN ${usual(place, type)} THEN strftime(${micros}, '"%Y-%m-%dT%H:%M:%S.%f${zone}"') END`
/**
 * Builds the SQL of a double. JavaScript and the engine write the same digits, but exponents from different places on,
 * and the engine an end of `.0`.
 */
const double = (place: string): string =>
  `CASE WHEN abs(${place}) BETWEEN 1e-4 AND 1e15 THEN CASE WHEN ${place} = trunc(${place})
    THEN CAST(CAST(${place} AS BIGINT) AS VARCHAR) ELSE ${plain(place)} END WHEN ${plain(place)} = '0.0' THEN '0' END`

const sureForms: Readonly<Record<number, (place: string) => string>> = {
  [typeIds.VARCHAR]: (place) =>
    `CASE WHEN NOT regexp_matches(${place}, '["\\\\\\x00-\\x1f]') THEN ${quoted(place)} END`,
  [typeIds.BOOLEAN]: plain,
  [typeIds.TINYINT]: plain,
  [typeIds.SMALLINT]: plain,
  [typeIds.INTEGER]: plain,
  [typeIds.UTINYINT]: plain,
  [typeIds.USMALLINT]: plain,
  [typeIds.UINTEGER]: plain,
  [typeIds.BIGINT]: wholeSql,
  [typeIds.UBIGINT]: wholeSql,
  [typeIds.HUGEINT]: wholeSql,
  [typeIds.DECIMAL]: (place) => quoted(plain(place)),
  [typeIds.DOUBLE]: double,
  [typeIds.FLOAT]: (place) => double(`CAST(${place} AS DOUBLE)`),
  [typeIds.DATE]: (place) => `CASE WHEN ${usual(place, 'DATE')} THEN ${quoted(plain(place))} END`,
  [typeIds.TIMESTAMP]: (place) => instant(place, place, 'TIMESTAMP', ''),
  [typeIds.TIMESTAMP_TZ]: (place) =>
    instant(`make_timestamp(epoch_us(${place}))`, `make_timestamp(epoch_us(${place}))`, 'TIMESTAMP', 'Z'),
}
