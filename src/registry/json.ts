import { isObject } from '../json.ts'

/** A parsed JSON value. */
export type Value = null | boolean | number | string | readonly Value[] | Fields
export interface Fields {
  readonly [key: string]: Value
}

/** Whether the value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return isObject(value)
}

/** Deeper nesting is taken for damage. */
export const deepest = 64

/** What must be known of a value before it is written as text. */
export interface Shape {
  /** How many arrays and objects stand inside each other; beyond `deepest` nobody looks. */
  depth: number
  /** It holds numbers that `JSON.stringify` would write as others: minus zero, and what overflows. */
  odd: boolean
}

/** Looks through a value once. */
export function shapeOf(value: Value): Shape {
  const shape = { depth: 0, odd: false }
  look(value, 0, shape)
  return shape
}

function look(value: Value, depth: number, shape: Shape): void {
  if (typeof value === 'number') {
    if (value === 0 ? Object.is(value, -0) : !Number.isFinite(value)) shape.odd = true
    return
  }
  if (typeof value !== 'object' || value === null) return
  if (depth > shape.depth) shape.depth = depth
  if (depth > deepest) return
  if (Array.isArray(value)) for (const item of value as readonly Value[]) look(item, depth + 1, shape)
  else for (const key in value as Fields) look((value as Fields)[key] as Value, depth + 1, shape)
}

/** JSON text of a value from which every double comes back as the same 64 bits; `odd` as its shape says. */
export function textOf(value: Value, odd: boolean): string {
  return odd ? exactText(value, Object.keys) : JSON.stringify(value)
}

function exactText(value: Value, keysOf: (fields: Fields) => readonly string[]): string {
  if (typeof value === 'number') return numberText(value)
  if (Array.isArray(value)) return `[${(value as readonly Value[]).map((item) => exactText(item, keysOf)).join(',')}]`
  if (!isFields(value)) return JSON.stringify(value)
  const members = keysOf(value).map((key) => `${JSON.stringify(key)}:${exactText(value[key] ?? null, keysOf)}`)
  return `{${members.join(',')}}`
}

function numberText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  if (Number.isFinite(value)) return String(value)
  return value > 0 ? '1e999' : '-1e999'
}

/** JSON text with sorted keys, so that equal values give equal texts. */
export function sortedText(value: Value): string {
  return exactText(value, (fields) => Object.keys(fields).toSorted())
}
