import type { Cell } from '../store/engine.ts'

/**
 * A cell as JSON: doubles in shortest round-trip form, NaN and the infinities as text, whole numbers beyond 2^53 and
 * decimals as text, instants as `…Z` with microseconds, bytes in base64. A column of type JSON is written as it is.
 */
export function jsonForm(cell: Cell, isJson = false): string {
  if (cell === null) return 'null'
  if (typeof cell === 'number') return number(cell)
  if (typeof cell === 'bigint') return whole(cell)
  if (typeof cell === 'boolean') return String(cell)
  // Line ends in JSON text can only stand between its parts.
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

function whole(value: bigint): string {
  const exact = value >= -9_007_199_254_740_992n && value <= 9_007_199_254_740_992n
  return exact ? String(value) : `"${value}"`
}

/** A text as a CSV field, quoted where DuckDB's own writer quotes; NULL is an empty field, the empty text is `""`. */
export function csvField(text: string | null): string {
  if (text === null) return ''
  return text === '' || /[",#\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Names that are each there once: the second `a` becomes `a_1`. */
export function distinctNames(names: readonly string[]): readonly string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    let free = name
    for (let n = 1; taken.has(free.toLowerCase()); n++) free = `${name}_${n}`
    taken.add(free.toLowerCase())
    return free
  })
}
