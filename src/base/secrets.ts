/** Bytes after decoding: `[0, length)` of `bytes` represents `[from, to)` of the original. */
interface View {
  readonly bytes: Uint8Array
  readonly length: number
  /** Maps positions in the view, or its end, to positions in the original; both lists are in rising order. */
  readonly placesOf: (rising: readonly number[]) => number[]
}

const backslash = 0x5c
const percent = 0x25
const none = -1

/**
 * The bytes that occur in the texts sought, 1 for each; an escape for any other byte ends a match and is not decoded.
 */
type Alphabet = Uint8Array

/** Builds the alphabet of some texts. */
function alphabetOf(texts: readonly Uint8Array[]): Alphabet {
  const letters = new Uint8Array(256)
  for (const text of texts) for (const byte of text) letters[byte] = 1
  return letters
}

/** A part `[from, to)` of some bytes. */
interface Range {
  readonly from: number
  readonly to: number
}

/**
 * Finds the parts in which a text of this alphabet, at most `longest` bytes long, may be spelt with JSON escapes or
 * percent-encoding. Most bodies have none, whatever else is escaped in them.
 */
function escapedRanges(bytes: Buffer, alphabet: Alphabet, longest: number): Range[] {
  if (!bytes.includes(backslash) && !bytes.includes(percent)) return []
  const ranges: Range[] = []
  const { length } = bytes
  let from = 0
  let to = 0
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] as number
    if (byte !== backslash && byte !== percent) continue
    const size = byte === backslash ? escapeSize(bytes, at, length) : 1
    if (size === 0 || !matters(bytes, at, byte, alphabet)) {
      at += Math.max(0, size - 1)
      continue
    }
    if (to > 0 && at - longest > to) ranges.push({ from, to })
    if (to === 0 || at - longest > to) from = Math.max(0, at - longest)
    to = Math.min(length, at + size + 2 + longest)
    at += size - 1
  }
  if (to > 0) ranges.push({ from, to })
  return ranges
}

/** Whether the byte at `at` may be part of a text of the alphabet; a percent sign may begin another escape. */
function matters(bytes: Uint8Array, at: number, byte: number, alphabet: Alphabet): boolean {
  const meant =
    byte === backslash ? meaning(bytes, at, bytes.length) : hex(bytes, at + 1, at + 3 <= bytes.length ? 2 : 9)
  // `%` before an escaped digit is not decided yet.
  if (byte === percent && meant === none) return bytes[at + 1] === backslash || bytes[at + 2] === backslash
  return meant === percent || alphabet[meant] === 1
}

const named: Readonly<Record<string, number>> = { b: 8, t: 9, n: 10, f: 12, r: 13, '"': 0x22, '\\': 0x5c, '/': 0x2f }
const short = Uint8Array.from({ length: 256 }, (_, byte) => named[String.fromCharCode(byte)] ?? 0)
/** Code for any character outside ASCII, which no key contains. */
const foreign = 0xff

/** Returns the length of the JSON escape in bytes; 0 if it is not a valid one. */
function escapeSize(bytes: Uint8Array, at: number, to: number): number {
  const after = at + 1 < to ? (bytes[at + 1] as number) : 0
  if (after === 0x75) return at + 6 <= to && hex(bytes, at + 2, 4) >= 0 ? 6 : 0
  return short[after] === 0 ? 0 : 2
}

/** Returns the byte that a JSON escape represents. */
function meaning(bytes: Uint8Array, at: number, to: number): number {
  const after = bytes[at + 1] as number
  if (after !== 0x75) return short[after] as number
  const code = at + 6 <= to ? hex(bytes, at + 2, 4) : none
  return code < 0x80 ? code : foreign
}

/**
 * Decodes the JSON escapes of a part and, if the result contains percent signs, its percent-encoding as a second view.
 */
function viewsOf(bytes: Buffer, range: Range): View[] {
  const plain = decoded(bytes, range, jsonStep)
  if (!plain.bytes.subarray(0, plain.length).includes(percent)) return [plain]
  const inner = decoded(plain.bytes, { from: 0, to: plain.length }, percentStep)
  return [plain, { ...inner, placesOf: (rising) => plain.placesOf(inner.placesOf(rising)) }]
}

/** Decodes the next character: its length in bytes, and the byte that it represents. */
type Step = (bytes: Uint8Array, at: number, to: number) => number

/** The size in the upper bits, the byte in the lowest eight. */
const jsonStep: Step = (bytes, at, to) => {
  const byte = bytes[at] as number
  if (byte !== backslash) return 256 + byte
  const size = escapeSize(bytes, at, to)
  return size === 0 ? 256 + byte : size * 256 + meaning(bytes, at, to)
}

const percentStep: Step = (bytes, at, to) => {
  const byte = bytes[at] as number
  const code = byte === percent && at + 3 <= to ? hex(bytes, at + 1, 2) : none
  return code === none ? 256 + byte : 3 * 256 + code
}

function decoded(bytes: Uint8Array, { from, to }: Range, step: Step): View {
  const out = new Uint8Array(to - from)
  let length = 0
  for (let at = from; at < to; ) {
    const next = step(bytes, at, to)
    out[length++] = next & 0xff
    at += next >> 8
  }
  // Rarely called, because matches are rare.
  const placesOf = (rising: readonly number[]): number[] => {
    let at = from
    let n = 0
    return rising.map((wanted) => {
      for (; n < wanted; n++) at += step(bytes, at, to) >> 8
      return at
    })
  }
  return { bytes: out, length, placesOf }
}

/** Parses hexadecimal digits; -1 if one of them is not valid. */
function hex(bytes: Uint8Array, from: number, digits: number): number {
  let value = 0
  for (let at = from; at < from + digits; at++) {
    const byte = bytes[at] as number
    const low = byte | 0x20
    const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : low >= 0x61 && low <= 0x66 ? low - 0x57 : none
    if (digit === none) return none
    value = value * 16 + digit
  }
  return value
}

/** The text that replaces a key. */
export const keyMark = '[key]'
/** The fewest characters of a key: a shorter one could be part of the data by chance. */
export const shortestKey = 8

/** One spelling of a key, searched for byte by byte. */
interface Form {
  readonly bytes: Buffer
  /** Whether the spelling could be a number where it occurs outside a JSON string. */
  readonly numeric: boolean
  readonly raw: boolean
}

/** The spellings of some keys, ready to be searched for. */
interface Wanted {
  readonly forms: readonly Form[]
  readonly numeric: boolean
  /** Number of bytes that the search may skip after each pair of bytes. */
  readonly shift: Uint8Array
  readonly ends: ReadonlyMap<number, readonly Form[]>
  readonly alphabet: Alphabet
  readonly shortest: number
  readonly longest: number
}

/** Bytes `[start, end)` that spell a key. */
interface Match {
  readonly start: number
  readonly end: number
  readonly numeric: boolean
}

/** One character may be written as `\u0025\u0036\u0064`: percent-encoded, and that escaped as JSON does. */
const longestCharacter = 18

const knownPatterns = new WeakMap<readonly string[], Wanted | null>()

function wantedOf(keys: readonly string[]): Wanted | null {
  let wanted = knownPatterns.get(keys)
  if (wanted === undefined) knownPatterns.set(keys, (wanted = prepare(keys)))
  return wanted
}

/**
 * Prepares the spellings of the keys for the search, with a table that gives the skip for each pair of bytes, so that
 * most bytes are never read; null if no key is long enough.
 */
function prepare(keys: readonly string[]): Wanted | null {
  const forms = new Map<string, Form>()
  for (const key of keys) {
    if (key.length < shortestKey) continue
    for (const text of [key, ...base64Forms(key)])
      forms.set(text, { bytes: Buffer.from(text), numeric: /^[-+.\deE]+$/.test(text), raw: text === key })
  }
  if (forms.size === 0) return null
  const all = [...forms.values()].toSorted((a, b) => b.bytes.length - a.bytes.length)
  const sizes = all.map(({ bytes }) => bytes.length)
  const shortest = Math.min(...sizes, 200)
  const shift = new Uint8Array(65_536).fill(shortest - 1)
  const ends = new Map<number, Form[]>()
  for (const form of all) {
    for (let at = 1; at < shortest; at++) {
      const pair = pairAt(form.bytes, at)
      shift[pair] = Math.min(shift[pair] ?? 0, shortest - 1 - at)
      if (at === shortest - 1) ends.set(pair, [...(ends.get(pair) ?? []), form])
    }
  }
  const alphabet = alphabetOf(all.map(({ bytes }) => bytes))
  const numeric = all.some((form) => form.numeric)
  return { forms: all, numeric, shift, ends, alphabet, shortest, longest: Math.max(...sizes) }
}

const pairAt = (bytes: Uint8Array, at: number): number => ((bytes[at - 1] ?? 0) << 8) | (bytes[at] ?? 0)

/**
 * Returns the part of a key's base64 that does not depend on its neighbours, for each of the three alignments and both
 * alphabets.
 */
function base64Forms(key: string): string[] {
  const bytes = Buffer.byteLength(key)
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.from(`${'\0'.repeat(before)}${key}`).toString('base64')
    const core = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes) * 8) / 6))
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

/** Finds the spellings in these bytes, from left to right, without overlaps. */
function search(patterns: Wanted, bytes: Uint8Array, limit: number): Match[] {
  const { shift, ends, shortest } = patterns
  const matches: Match[] = []
  let at = shortest - 1
  while (at < limit) {
    const jump = shift[((bytes[at - 1] as number) << 8) | (bytes[at] as number)] as number
    if (jump > 0) {
      at += jump
      continue
    }
    const start = at - shortest + 1
    const form = ends.get(pairAt(bytes, at))?.find((ending) => standsAt(ending.bytes, bytes, start, limit))
    if (form === undefined) at++
    else {
      const end = start + form.bytes.length
      matches.push({ start, end, numeric: form.numeric })
      at = end + shortest - 1
    }
  }
  return matches
}

function standsAt(form: Uint8Array, bytes: Uint8Array, start: number, limit: number): boolean {
  return start + form.length <= limit && form.every((byte, i) => bytes[start + i] === byte)
}

/** Finds every spelling of a key in these bytes, sorted and without overlaps. */
function matchesIn(patterns: Wanted, bytes: Buffer): Match[] {
  const hits = search(patterns, bytes, bytes.length)
  for (const range of escapedRanges(bytes, patterns.alphabet, patterns.longest))
    for (const view of viewsOf(bytes, range)) hits.push(...searchView(patterns, view))
  hits.sort((a, b) => a.start - b.start || b.end - a.end)
  const matches: Match[] = []
  for (const match of hits) {
    const last = matches.at(-1)
    if (last === undefined || match.start >= last.end) matches.push(match)
    else if (match.end > last.end) matches[matches.length - 1] = { ...last, end: match.end }
  }
  return matches
}

/** Searches a view, and returns the matches with their positions in the original. */
function searchView(wanted: Wanted, view: View): Match[] {
  const seen = search(wanted, view.bytes, view.length)
  const places = seen.length === 0 ? [] : view.placesOf(seen.flatMap(({ start, end }) => [start, end]))
  return seen.map((_, n) => ({ start: places[2 * n] as number, end: places[2 * n + 1] as number, numeric: false }))
}

/** Replaces keys in a stream of bytes, even if they are cut between two chunks. */
interface Redactor {
  /** Takes the next chunk and returns the bytes that are complete; the rest waits for the next call. */
  readonly push: (chunk: Buffer) => Buffer
  /** Returns the bytes that are still waiting. */
  readonly end: () => Buffer
}

/**
 * The strictness of a redaction. `data`: JSON text that may be a number is left unchanged; `text`: every match of a key
 * is replaced.
 */
type RedactionKind = 'data' | 'text'

const nothing = Buffer.alloc(0)

/** Creates a redactor that replaces the keys, each of at least eight characters, in every spelling. */
export function createRedactor(keys: readonly string[], kind: RedactionKind): Redactor {
  const patterns = wantedOf(keys)
  if (patterns === null) return { push: (chunk) => chunk, end: () => nothing }
  const span = patterns.longest * longestCharacter
  const reading = kind === 'data' && patterns.numeric ? newReading() : null
  let waiting: Buffer = nothing
  const take = (bytes: Buffer, mayEnd: number): Buffer => {
    const [clean, consumed] = replaced(patterns, bytes, mayEnd, reading)
    waiting = bytes.subarray(consumed)
    return clean
  }
  return {
    push: (chunk) => {
      const bytes = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
      waiting = bytes
      return bytes.length <= span ? nothing : take(bytes, notInEscape(bytes, bytes.length - span))
    },
    end: () => take(waiting, waiting.length),
  }
}

/**
 * Returns the redacted bytes up to `mayEnd`, or to the end of a key that begins before it, and the number of bytes
 * consumed.
 */
function replaced(patterns: Wanted, bytes: Buffer, mayEnd: number, reading: JsonReading | null): [Buffer, number] {
  const parts: Buffer[] = []
  let takenBytes = 0
  for (const { start, end, numeric } of matchesIn(patterns, bytes)) {
    if (start >= mayEnd) break
    if (reading !== null) {
      read(reading, bytes, takenBytes, start)
      if (numeric && reading.json === true && !reading.inString) {
        parts.push(bytes.subarray(takenBytes, start))
        takenBytes = start
        continue
      }
    }
    parts.push(bytes.subarray(takenBytes, start), Buffer.from(keyMark))
    takenBytes = end
  }
  const end = Math.max(mayEnd, takenBytes)
  if (reading !== null) read(reading, bytes, takenBytes, end)
  if (parts.length === 0) return [bytes.subarray(0, end), end]
  return [Buffer.concat([...parts, bytes.subarray(takenBytes, end)]), end]
}

/** Returns the position, or the one before it if it would separate a backslash from the byte that it escapes. */
function notInEscape(bytes: Buffer, at: number): number {
  let first = at
  while (first > 0 && bytes[first - 1] === 0x5c) first--
  return at - ((at - first) % 2)
}

/** State of reading a body as JSON. */
interface JsonReading {
  /** Whether the body begins as JSON does; null before the first byte that is not white space. */
  json: boolean | null
  /** Whether the next byte is inside a text. */
  inString: boolean
  /** Whether a backslash escapes the next byte. */
  escaped: boolean
}

/** Creates the state of a reading before the first byte. */
const newReading = (): JsonReading => ({ json: null, inString: false, escaped: false })

function read(reading: JsonReading, bytes: Buffer, from: number, to: number): void {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number
    if (reading.json === null && byte > 0x20 && byte < 0x80) reading.json = byte === 0x5b || byte === 0x7b
    if (reading.escaped) reading.escaped = false
    else if (byte === 0x22) reading.inString = !reading.inString
    else if (reading.inString && byte === 0x5c) reading.escaped = true
  }
}

/** Redacts bytes at once, as a redactor does with a stream. */
export function redactBytes(bytes: Buffer, keys: readonly string[], kind: RedactionKind): Buffer {
  const wanted = wantedOf(keys)
  if (wanted === null) return bytes
  return replaced(wanted, bytes, bytes.length, kind === 'data' && wanted.numeric ? newReading() : null)[0]
}

const hiddenParameters = /([?&;](?:api[_-]?key|key|token)=)[^&\s"'<>]+/gi
const hiddenHeaders = /((?:x-api-key|authorization)["']?\s*[:=]\s*["']?(?:bearer\s+)?)[^\s"',}]+/gi

/** Replaces every given secret, key parameter and key header in a text by `[key]`. */
export function redact(text: string, secrets: readonly string[] = [], kind: RedactionKind = 'text'): string {
  const bytes = Buffer.from(text)
  const safe = redactBytes(bytes, secrets, kind)
  let clean = safe === bytes || safe.equals(bytes) ? text : safe.toString('utf8')
  // A secret too short to be sought in data is a proxy's password, which must not appear in words either.
  for (const secret of secrets)
    if (secret.length > 0 && secret.length < shortestKey)
      for (const form of new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]))
        clean = clean.replaceAll(form, keyMark)
  return clean.replaceAll(hiddenParameters, `$1${keyMark}`).replaceAll(hiddenHeaders, `$1${keyMark}`)
}

const fewest = { raw: 4, encoded: 8 } as const

/** Removes the first half of a key from the end of a text that was cut in the middle of it. */
export function withoutHalfKey(text: string, secrets: readonly string[]): string {
  const patterns = wantedOf(secrets)
  if (patterns === null) return text
  const bytes = Buffer.from(text)
  let shownBytes = bytes.length
  const tail = { from: Math.max(0, bytes.length - patterns.longest * longestCharacter), to: bytes.length }
  for (const view of [asItStands(bytes), ...viewsOf(bytes, tail)])
    for (const form of patterns.forms)
      for (
        let size = Math.min(form.bytes.length - 1, view.length);
        size >= fewest[form.raw ? 'raw' : 'encoded'];
        size--
      )
        if (standsAt(form.bytes.subarray(0, size), view.bytes, view.length - size, view.length)) {
          shownBytes = Math.min(shownBytes, ...view.placesOf([view.length - size]))
          break
        }
  return shownBytes === bytes.length ? text : bytes.subarray(0, shownBytes).toString('utf8')
}

const asItStands = (bytes: Buffer): View => ({ bytes, length: bytes.length, placesOf: (rising) => [...rising] })
