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
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? String(member) : member))
}

/** A name that stands twice in one object of a JSON text, of which readers see the last only. */
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
