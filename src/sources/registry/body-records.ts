import { isFields, type Value } from './json.ts'

const [quote, backslash, openArray, closeArray, openObject, closeObject, comma] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d, 0x2c,
] as const

/** Key that marks the replacement of a record; no valid text contains it unescaped. */
const standIn = '\u0000'

/**
 * Cuts a large body, so that its records can be parsed one by one: objects in an array that is a member of the body, or
 * a member of such a member. Frame and records together are exactly as valid as the body: a `SyntaxError` of either is
 * one of the body.
 */
export function cutBody(bytes: Buffer) {
  const { frame, bounds } = cut(bytes)
  const parsed = new Uint8Array(bounds.length / 2)
  const parse = (n: number): Value => {
    parsed[n] = 1
    return JSON.parse(bytes.toString('utf8', bounds[2 * n], bounds[2 * n + 1])) as Value
  }
  return {
    /** The body with a replacement for each record. */
    frame: JSON.parse(frame) as unknown,
    /** Returns the elements of an array of the frame, parsed on demand. */
    elements: (array: readonly Value[]): Iterable<Value> => ({
      *[Symbol.iterator]() {
        for (const element of array) {
          const n = isFields(element) ? element[standIn] : undefined
          yield typeof n === 'number' && n in parsed ? parse(n) : element
        }
      },
    }),
    /** Parses the records that were not requested: the whole body is valid JSON only if this throws nothing. */
    finish: (): void => {
      for (const [n, done] of parsed.entries()) if (done === 0) parse(n)
    },
  }
}

/** Cuts a sequence of bodies, each an object, and returns them unchanged. */
export function cutApart(bytes: Buffer): Buffer[] {
  const bodies: Buffer[] = []
  for (let start = 0; start < bytes.length; ) {
    const open = bytes.indexOf(openObject, start)
    const end = open < 0 ? -1 : endOfObject(bytes, open)
    if (end < 0) break
    bodies.push(bytes.subarray(open, end))
    start = end
  }
  return bodies
}

/** Returns the frame as text, and the bounds of each record. */
function cut(bytes: Buffer): { frame: string; bounds: number[] } {
  const pieces: string[] = []
  const bounds: number[] = []
  const arrays: boolean[] = []
  let at = textStart(bytes)
  let written = at
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === quote) at = endOfText(bytes, at)
    else if (byte === openObject && isRecordPlace(arrays)) {
      const end = endOfObject(bytes, at)
      if (end < 0) break
      pieces.push(between(bytes, written, at), `{"\\u0000":${bounds.length / 2}}`)
      bounds.push(at, end)
      written = end
      at = end
      continue
    } else if (byte === openObject || byte === openArray) arrays.push(byte === openArray)
    else if (byte === closeObject || byte === closeArray) arrays.pop()
    at++
  }
  pieces.push(bytes.toString('utf8', written))
  return { frame: pieces.join(''), bounds }
}

/** Returns the position at which a text begins, after any byte order mark. */
export const textStart = (bytes: Buffer): number =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0

function between(bytes: Buffer, from: number, until: number): string {
  return until - from === 1 && bytes[from] === comma ? ',' : bytes.toString('utf8', from, until)
}

/** Whether the containers around are one or two objects and an array. */
function isRecordPlace(arrays: readonly boolean[]): boolean {
  return (arrays.length === 2 || arrays.length === 3) && arrays.indexOf(true) === arrays.length - 1
}

/** Returns the position of the quote that ends a text; beyond the end if there is none. */
function endOfText(bytes: Buffer, start: number): number {
  let at = start + 1
  while (at < bytes.length) {
    const byte = bytes[at]
    if (byte === quote) return at
    at += byte === backslash ? 2 : 1
  }
  return at
}

/** Returns the position after the bracket that ends an object; -1 if there is none. */
function endOfObject(bytes: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) at = endOfText(bytes, at)
    else if (byte === openObject || byte === openArray) depth++
    else if (byte === closeObject || byte === closeArray) {
      depth--
      if (depth === 0) return at + 1
    }
  }
  return -1
}
