/** Whether a value is an object as JSON has them: no list, and not null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a text says as JSON, with a byte order mark before it or without; undefined for a text that is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return undefined
  }
}

/** A value as JSON; whole numbers that JSON's readers may round stand in it as text. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, held: unknown) => (typeof held === 'bigint' ? String(held) : held))
}
