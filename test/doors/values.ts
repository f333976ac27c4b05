import type { Value } from './question.ts'

const most = 2n ** 53n

/** A value as the table of questions writes it. */
export function canonical(value: unknown): Value {
  if (value === null || value === undefined) return null
  if (value instanceof Date) return value.toISOString().replace('Z', '000Z')
  if (typeof value === 'bigint') return value <= most && value >= -most ? Number(value) : String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  // A column of type JSON is nested at some doors, and a text at others.
  if (typeof value === 'string') return /^[[{]/.test(value) ? canonical(JSON.parse(value)) : value
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value === 'object') return rowOf(value)
  return value as number | boolean
}

/** A row of such values. */
export function rowOf(row: object): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, canonical(value)]))
}

/** The rows of JSON lines. */
export function linesOf(text: string): readonly Readonly<Record<string, Value>>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => rowOf(JSON.parse(line) as object))
}
