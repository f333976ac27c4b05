/** Whether a value is an object as JSON has them: no list, and not null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Parses a text as JSON, with or without a byte order mark; undefined if it is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return undefined
  }
}

/** Serialises a value as JSON; integers that JSON readers may round (bigint) are written as text. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? String(member) : member))
}

/**
 * Finds a name that occurs twice in one object of a JSON text, of which readers see only the last; undefined if none
 * does.
 */
export function repeatedKey(text: string): string | undefined {
  const seenKeys: Set<string>[] = []
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{') seenKeys.push(new Set())
    else if (token === '}') seenKeys.pop()
    else if (name !== undefined) {
      const key = String(JSON.parse(name))
      if (seenKeys.at(-1)?.has(key) === true) return key
      seenKeys.at(-1)?.add(key)
    }
  }
  return undefined
}
