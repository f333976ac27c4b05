import { type Cell, type Engine, quoteName, type Row } from '../store/engine.ts'

/** A column of the result. */
export interface ColumnSpec {
  readonly name: string
  readonly type: string
  /** May look ahead, so it is not compared. */
  readonly label: boolean
  readonly ts: boolean
}

/** Rows that only one side has, each as often as it has it more: the latest of them, how many there are, the earliest instant. */
export interface Bags {
  readonly missing: readonly Row[]
  readonly extra: readonly Row[]
  readonly counts: { readonly missing: number; readonly extra: number }
  readonly earliest: string | null
}

/** One row or value that differs. */
export interface Mismatch {
  readonly key: Row
  readonly column: string | null
  readonly full: Cell
  readonly truncated: Cell
}

/** The rows of `proof_full` and `proof_cut` up to an instant that have no equal on the other side, up to `most` of each. */
export async function bagDifference(
  session: Engine,
  columns: readonly ColumnSpec[],
  where: string,
  most: number,
): Promise<Bags> {
  const names = columns.filter(({ label }) => !label).map(({ name }) => quoteName(name))
  const ts = quoteName(columns.find((column) => column.ts)?.name ?? '')
  const side = (table: string): string => `SELECT ${names.join(', ')} FROM ${table} WHERE ${where}`
  const only = async (
    left: string,
    right: string,
  ): Promise<{ rows: Row[]; count: number; earliest: string | null }> => {
    await session.run(`CREATE OR REPLACE TEMP TABLE proof_only AS ${side(left)} EXCEPT ALL ${side(right)}`)
    const [facts] = await session.rows(
      `SELECT count(*) AS n, strftime(min(${ts}), '%Y-%m-%dT%H:%M:%S.%fZ') AS earliest FROM proof_only`,
    )
    const count = Number(facts?.['n'])
    const earliest = facts?.['earliest']
    const rows =
      count === 0 ? [] : await session.rows(`FROM proof_only ORDER BY ${ts} DESC, ${names.join(', ')} LIMIT ${most}`)
    return { rows, count, earliest: typeof earliest === 'string' ? earliest : null }
  }
  const missing = await only('proof_full', 'proof_cut')
  const extra = await only('proof_cut', 'proof_full')
  return {
    missing: missing.rows,
    extra: extra.rows,
    counts: { missing: missing.count, extra: extra.count },
    earliest: [missing.earliest, extra.earliest].filter((at) => at !== null).toSorted()[0] ?? null,
  }
}

/**
 * Pairs the rows of both sides that are the same but for some values: first by everything that is not a double, then by
 * instant and texts. What finds no partner differs as a whole row.
 */
export function matchRows(columns: readonly ColumnSpec[], { missing, extra }: Bags, tolerance: number): Mismatch[] {
  const compared = columns.filter(({ label }) => !label)
  const exactly = compared.filter(({ type }) => !/^(DOUBLE|FLOAT|DECIMAL)/.test(type))
  const loosely = compared.filter(({ ts, type }) => ts || type === 'VARCHAR')
  const found: Mismatch[] = []
  let [left, right] = [missing, extra]
  for (const keys of [exactly, loosely]) {
    const rest = pairUp(left, right, keys, (full, cut) => found.push(...cells(compared, keys, full, cut, tolerance)))
    ;[left, right] = [rest.left, rest.right]
  }
  for (const row of left) found.push({ key: keyed(row, exactly), column: null, full: 'there', truncated: null })
  for (const row of right) found.push({ key: keyed(row, exactly), column: null, full: null, truncated: 'there' })
  return found
}

function pairUp(
  left: readonly Row[],
  right: readonly Row[],
  keys: readonly ColumnSpec[],
  onPair: (full: Row, cut: Row) => void,
): { left: Row[]; right: Row[] } {
  const waiting = new Map<string, Row[]>()
  for (const row of right) {
    const key = keyOf(row, keys)
    waiting.set(key, [...(waiting.get(key) ?? []), row])
  }
  const alone: Row[] = []
  for (const row of left) {
    const partner = waiting.get(keyOf(row, keys))?.shift()
    if (partner) onPair(row, partner)
    else alone.push(row)
  }
  return { left: alone, right: [...waiting.values()].flat() }
}

function cells(
  compared: readonly ColumnSpec[],
  keys: readonly ColumnSpec[],
  full: Row,
  cut: Row,
  tolerance: number,
): Mismatch[] {
  return compared.flatMap(({ name }) => {
    const [a, b] = [full[name] ?? null, cut[name] ?? null]
    if (text(a) === text(b) || near(a, b, tolerance)) return []
    return [{ key: keyed(full, keys), column: name, full: a, truncated: b }]
  })
}

/** Whether two doubles differ in their last digits only. */
export function isRounding({ full, truncated }: Mismatch): boolean {
  return near(full, truncated, 1e-12)
}

function near(a: Cell, b: Cell, tolerance: number): boolean {
  if (typeof a !== 'number' || typeof b !== 'number') return false
  return Math.abs(a - b) <= tolerance * Math.max(Math.abs(a), Math.abs(b))
}

function keyed(row: Row, keys: readonly ColumnSpec[]): Row {
  return Object.fromEntries(keys.map(({ name }) => [name, row[name] ?? null]))
}

function keyOf(row: Row, keys: readonly ColumnSpec[]): string {
  return keys.map(({ name }) => text(row[name] ?? null)).join('\u0000')
}

function text(cell: Cell): string {
  return typeof cell === 'number' && Number.isNaN(cell)
    ? 'NaN'
    : JSON.stringify(cell, (_key, held: unknown) => (typeof held === 'bigint' ? `${held}n` : held))
}
