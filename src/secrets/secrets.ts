import { type Alphabet, alphabetOf, escapedRanges, type View, viewsOf } from './spellings.ts'

/** What takes the place of a key. */
export const keyMark = '[key]'
/** The fewest characters of a key: a shorter one could be part of the data by chance. */
export const shortestKey = 8

/** One spelling of a key, found as it stands. */
interface Form {
  readonly bytes: Buffer
  /** Outside a string of JSON this could be a number. */
  readonly numeric: boolean
  readonly raw: boolean
}

/** The spellings of some keys, ready to be searched for. */
interface Wanted {
  readonly forms: readonly Form[]
  readonly numeric: boolean
  /** By how many bytes the search may go on after these two. */
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

const known = new WeakMap<readonly string[], Wanted | null>()

function wantedOf(keys: readonly string[]): Wanted | null {
  let wanted = known.get(keys)
  if (wanted === undefined) known.set(keys, (wanted = prepare(keys)))
  return wanted
}

/** A table says by two bytes how far the search may jump, so that most bytes are never looked at. */
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

function pairAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at - 1] ?? 0) << 8) | (bytes[at] ?? 0)
}

/** What is certain of a key inside a longer text in base64, at each of its three alignments, in both alphabets. */
function base64Forms(key: string): string[] {
  const bytes = Buffer.byteLength(key)
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.from(`${'\0'.repeat(before)}${key}`).toString('base64')
    const core = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes) * 8) / 6))
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')]
  })
}

/** The forms as they stand in these bytes, from left to right, none over another. */
function search(wanted: Wanted, bytes: Uint8Array, limit: number): Match[] {
  const { shift, ends, shortest } = wanted
  const matches: Match[] = []
  let at = shortest - 1
  while (at < limit) {
    const jump = shift[((bytes[at - 1] as number) << 8) | (bytes[at] as number)] as number
    if (jump > 0) {
      at += jump
      continue
    }
    const start = at - shortest + 1
    const form = ends.get(pairAt(bytes, at))?.find((one) => standsAt(one.bytes, bytes, start, limit))
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
  if (start + form.length > limit) return false
  for (let i = 0; i < form.length; i++) if (bytes[start + i] !== form[i]) return false
  return true
}

/** Every place of these bytes that spells a key in whatever form, sorted, none over another. */
function matchesIn(wanted: Wanted, bytes: Buffer): Match[] {
  const found = search(wanted, bytes, bytes.length)
  for (const range of escapedRanges(bytes, wanted.alphabet, wanted.longest))
    for (const view of viewsOf(bytes, range)) found.push(...searchView(wanted, view))
  found.sort((a, b) => a.start - b.start || b.end - a.end)
  const matches: Match[] = []
  for (const match of found) {
    const last = matches.at(-1)
    if (last === undefined || match.start >= last.end) matches.push(match)
    else if (match.end > last.end) matches[matches.length - 1] = { ...last, end: match.end }
  }
  return matches
}

/** What is found in a view, where it stood. */
function searchView(wanted: Wanted, view: View): Match[] {
  const seen = search(wanted, view.bytes, view.length)
  const places = seen.length === 0 ? [] : view.placesOf(seen.flatMap(({ start, end }) => [start, end]))
  return seen.map((_, n) => ({ start: places[2 * n] as number, end: places[2 * n + 1] as number, numeric: false }))
}

/** Replaces keys in a stream of bytes, also where they are cut between two chunks. */
interface Redactor {
  /** What can be handed on of all that has come; the rest waits for the next chunk. */
  readonly push: (chunk: Buffer) => Buffer
  /** What still waited. */
  readonly end: () => Buffer
}

/** `data`: what may be a number of JSON stays as it is; `text`: every place that reads like a key is replaced. */
export type RedactionKind = 'data' | 'text'

const nothing = Buffer.alloc(0)

/** Replaces the keys, each of at least eight characters, in whatever form they come. */
export function createRedactor(keys: readonly string[], kind: RedactionKind): Redactor {
  const wanted = wantedOf(keys)
  if (wanted === null) return { push: (chunk) => chunk, end: () => nothing }
  const span = wanted.longest * longestCharacter
  const reading = kind === 'data' && wanted.numeric ? newReading() : null
  let waiting: Buffer = nothing
  const take = (bytes: Buffer, mayEnd: number): Buffer => {
    const [clean, taken] = replaced(wanted, bytes, mayEnd, reading)
    waiting = bytes.subarray(taken)
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

/** The bytes up to `mayEnd`, or to the end of a key that begins before it; and how many they were. */
function replaced(wanted: Wanted, bytes: Buffer, mayEnd: number, reading: Reading | null): [Buffer, number] {
  const parts: Buffer[] = []
  let taken = 0
  for (const { start, end, numeric } of matchesIn(wanted, bytes)) {
    if (start >= mayEnd) break
    if (reading !== null) {
      read(reading, bytes, taken, start)
      if (numeric && reading.json === true && !reading.inString) {
        parts.push(bytes.subarray(taken, start))
        taken = start
        continue
      }
    }
    parts.push(bytes.subarray(taken, start), Buffer.from(keyMark))
    taken = end
  }
  const end = Math.max(mayEnd, taken)
  if (reading !== null) read(reading, bytes, taken, end)
  if (parts.length === 0) return [bytes.subarray(0, end), end]
  return [Buffer.concat([...parts, bytes.subarray(taken, end)]), end]
}

/** The place, or the one before it where it would part a backslash from what it escapes. */
function notInEscape(bytes: Buffer, at: number): number {
  let first = at
  while (first > 0 && bytes[first - 1] === 0x5c) first--
  return at - ((at - first) % 2)
}

/** How far a body was read as JSON. */
interface Reading {
  /** Whether it begins like JSON; null before the first byte that is no space. */
  json: boolean | null
  inString: boolean
  escaped: boolean
}

function newReading(): Reading {
  return { json: null, inString: false, escaped: false }
}

function read(reading: Reading, bytes: Buffer, from: number, to: number): void {
  for (let at = from; at < to; at++) {
    const byte = bytes[at] as number
    if (reading.json === null && byte > 0x20 && byte < 0x80) reading.json = byte === 0x5b || byte === 0x7b
    if (reading.escaped) reading.escaped = false
    else if (byte === 0x22) reading.inString = !reading.inString
    else if (reading.inString && byte === 0x5c) reading.escaped = true
  }
}

/** All at once what a redactor does to a stream. */
export function redactBytes(bytes: Buffer, keys: readonly string[], kind: RedactionKind): Buffer {
  const wanted = wantedOf(keys)
  if (wanted === null) return bytes
  return replaced(wanted, bytes, bytes.length, kind === 'data' && wanted.numeric ? newReading() : null)[0]
}

const hiddenParameters = /([?&;](?:api[_-]?key|key|token)=)[^&\s"'<>]+/gi
const hiddenHeaders = /((?:x-api-key|authorization)["']?\s*[:=]\s*["']?(?:bearer\s+)?)[^\s"',}]+/gi

/** The text with every given secret, key parameter and key header replaced by `[key]`. */
export function redact(text: string, secrets: readonly string[] = [], kind: RedactionKind = 'text'): string {
  const bytes = Buffer.from(text)
  const safe = redactBytes(bytes, secrets, kind)
  let clean = safe === bytes || safe.equals(bytes) ? text : safe.toString('utf8')
  // What is too short to be sought in data is a proxy's password, which has no business in words either.
  for (const secret of secrets)
    if (secret.length > 0 && secret.length < shortestKey)
      for (const form of new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]))
        clean = clean.replaceAll(form, keyMark)
  return clean.replaceAll(hiddenParameters, `$1${keyMark}`).replaceAll(hiddenHeaders, `$1${keyMark}`)
}

const fewest = { raw: 4, encoded: 8 } as const

/** A text that was left in the middle of a key, without the half that was read. */
export function withoutHalfKey(text: string, secrets: readonly string[]): string {
  const wanted = wantedOf(secrets)
  if (wanted === null) return text
  const bytes = Buffer.from(text)
  let shown = bytes.length
  const whole = { from: Math.max(0, bytes.length - wanted.longest * longestCharacter), to: bytes.length }
  for (const view of [asItStands(bytes), ...viewsOf(bytes, whole)])
    for (const form of wanted.forms)
      for (
        let size = Math.min(form.bytes.length - 1, view.length);
        size >= fewest[form.raw ? 'raw' : 'encoded'];
        size--
      )
        if (standsAt(form.bytes.subarray(0, size), view.bytes, view.length - size, view.length)) {
          shown = Math.min(shown, ...view.placesOf([view.length - size]))
          break
        }
  return shown === bytes.length ? text : bytes.subarray(0, shown).toString('utf8')
}

function asItStands(bytes: Buffer): View {
  return { bytes, length: bytes.length, placesOf: (rising) => [...rising] }
}
