import { type Engine, quote } from '../../lake/store/engine.ts'
import { statementsIn } from '../../lake/store/sql.ts'

/** The statements of this room. */
export const statement = statementsIn(new URL('sql/', import.meta.url))

/**
 * SQL of the text at the position that the column `body` names, minus `from`; a constant if all texts are equal,
 * otherwise an enum. To look up and to write a small number is several times faster than a text, and every reader of
 * Parquet sees text.
 */
export function lookup(texts: readonly (string | null)[], from = 0): string {
  const first = texts[0] ?? null
  if (texts.every((text) => text === first)) return first === null ? 'CAST(NULL AS VARCHAR)' : quote(first)
  const list = texts.map((text) => (text === null ? 'NULL' : quote(text))).join(', ')
  const values = [...new Set(texts)].flatMap((text) => (text === null ? [] : [quote(text)])).join(', ')
  return `(CAST([${list}] AS ENUM (${values})[]))[body + ${1 - from}]`
}

/** SQL of the interval of a row; the name itself if all rows have the same, so that nothing is looked up. */
export function intervalSql(names: readonly string[]): string {
  const [first, ...others] = new Set(names)
  return first === undefined || others.length > 0 ? '"interval"' : first
}

/** SQL condition for points that their rule may date: first values, unless their source dates them. */
export function firstOf(revised: boolean): string {
  return revised ? ` AND NOT vintage AND revisable IS DISTINCT FROM 'told'` : ''
}

/** Formats rows as a SELECT; `columns` with their types as SQL declares them. */
export function rowsSql(columns: string, rows: readonly object[]): string {
  const types: unknown = Object.fromEntries(columns.split(', ').map((column) => column.split(' ')))
  return (
    `SELECT unnest(from_json(${quote(JSON.stringify(rows))}, ${quote(JSON.stringify([types]))}), recursive ` +
    ':= true)'
  )
}

/** Reads the rows of a statement with plain numbers; counts and timestamps are far below 2^53. */
export async function rowsAsNumbers<T extends object>(session: Engine, sql: string): Promise<T[]> {
  const plain = (cell: unknown): unknown => (typeof cell === 'bigint' ? Number(cell) : cell)
  const rows = await session.rows(sql)
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, plain(cell)])) as T)
}
