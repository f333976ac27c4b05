/** A parsed JSON value. */
export type Value = null | boolean | number | string | readonly Value[] | Fields
export interface Fields {
  readonly [key: string]: Value
}

/** Whether the value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a body holds numbers that `JSON.stringify` would write as others: minus zero, and what overflows. */
export function hasOddNumbers(body: string): boolean {
  return /[[:,\s]-0(?:\.0*)?(?:[eE][+-]?\d+)?[\s,}\]]/.test(body) || /[[:,\s]-?\d+(?:\.\d+)?[eE]\+?\d{3}/.test(body)
}

/** JSON text of a value; `odd` says that it came from a body with odd numbers. */
export function textOf(value: Value, odd: boolean): string {
  return odd ? exactText(value) : JSON.stringify(value)
}

/** JSON text of a value from which every double comes back as the same 64 bits. */
export function exactText(value: Value): string {
  if (typeof value === 'number') return numberText(value)
  if (Array.isArray(value)) return `[${(value as readonly Value[]).map(exactText).join(',')}]`
  if (!isFields(value)) return JSON.stringify(value)
  const members = Object.entries(value).map(([key, held]) => `${JSON.stringify(key)}:${exactText(held)}`)
  return `{${members.join(',')}}`
}

function numberText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  if (Number.isFinite(value)) return String(value)
  return value > 0 ? '1e999' : '-1e999'
}

/** JSON text with sorted keys, so that equal values give equal texts. */
export function sortedText(value: Value): string {
  if (typeof value === 'number') return numberText(value)
  if (Array.isArray(value)) return `[${(value as readonly Value[]).map(sortedText).join(',')}]`
  if (!isFields(value)) return JSON.stringify(value)
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${sortedText(value[key] ?? null)}`)
  return `{${members.join(',')}}`
}
