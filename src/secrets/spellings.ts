/** Bytes as a reader of them understands them: `[0, length)` of the memory stand for `[from, to)` of what was read. */
export interface View {
  readonly bytes: Uint8Array
  readonly length: number
  /** Where these bytes of the view, or its end, stood; given and told in rising order. */
  readonly placesOf: (rising: readonly number[]) => number[]
}

const backslash = 0x5c
const percent = 0x25
const none = -1

/** Which bytes can stand in what is sought: an escape that means another one parts the text, and needs no reading. */
export type Alphabet = Uint8Array

/** The alphabet of some texts. */
export function alphabetOf(texts: readonly Uint8Array[]): Alphabet {
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
 * The parts in which a text of this alphabet, at most `longest` bytes long, may be spelt with escapes of JSON or with
 * percent-encoding. Most bodies have none, whatever else is escaped in them.
 */
export function escapedRanges(bytes: Buffer, alphabet: Alphabet, longest: number): Range[] {
  if (!bytes.includes(backslash) && !bytes.includes(percent)) return []
  const found: Range[] = []
  const { length } = bytes
  let [from, to] = [0, 0]
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] as number
    if (byte !== backslash && byte !== percent) continue
    const size = byte === backslash ? escapeSize(bytes, at, length) : 1
    if (size === 0 || !matters(bytes, at, byte, alphabet)) {
      at += Math.max(0, size - 1)
      continue
    }
    if (to > 0 && at - longest > to) found.push({ from, to })
    if (to === 0 || at - longest > to) from = Math.max(0, at - longest)
    to = Math.min(length, at + size + 2 + longest)
    at += size - 1
  }
  if (to > 0) found.push({ from, to })
  return found
}

/** Whether what stands there may be a part of a text of the alphabet; a percent sign may begin one once more. */
function matters(bytes: Uint8Array, at: number, byte: number, alphabet: Alphabet): boolean {
  const meant =
    byte === backslash ? meaning(bytes, at, bytes.length) : hex(bytes, at + 1, at + 3 <= bytes.length ? 2 : 9)
  // `%` with an escaped digit behind it says nothing yet.
  if (byte === percent && meant === none) return bytes[at + 1] === backslash || bytes[at + 2] === backslash
  return meant === percent || alphabet[meant] === 1
}

const named: Readonly<Record<string, number>> = { b: 8, t: 9, n: 10, f: 12, r: 13, '"': 0x22, '\\': 0x5c, '/': 0x2f }
const short = Uint8Array.from({ length: 256 }, (_, byte) => named[String.fromCharCode(byte)] ?? 0)
/** Stands for whatever is no ASCII: no key has it. */
const foreign = 0xff

/** How many bytes the escape takes; 0 where it is none. */
function escapeSize(bytes: Uint8Array, at: number, to: number): number {
  const after = at + 1 < to ? (bytes[at + 1] as number) : 0
  if (after === 0x75) return at + 6 <= to && hex(bytes, at + 2, 4) >= 0 ? 6 : 0
  return short[after] === 0 ? 0 : 2
}

/** What an escape of JSON means. */
function meaning(bytes: Uint8Array, at: number, to: number): number {
  const after = bytes[at + 1] as number
  if (after !== 0x75) return short[after] as number
  const code = at + 6 <= to ? hex(bytes, at + 2, 4) : none
  return code < 0x80 ? code : foreign
}

/** What the part says once the escapes of JSON are read, and what it says once percent-encoding is read, too. */
export function viewsOf(bytes: Buffer, range: Range): View[] {
  const plain = decoded(bytes, range, jsonStep)
  if (!plain.bytes.subarray(0, plain.length).includes(percent)) return [plain]
  const inner = decoded(plain.bytes, { from: 0, to: plain.length }, percentStep)
  return [plain, { ...inner, placesOf: (rising) => plain.placesOf(inner.placesOf(rising)) }]
}

/** How many bytes the next character takes, and what it means. */
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
  // Nearly never asked for: what is found is rare.
  const placesOf = (rising: readonly number[]): number[] => {
    let [at, n] = [from, 0]
    return rising.map((wanted) => {
      for (; n < wanted; n++) at += step(bytes, at, to) >> 8
      return at
    })
  }
  return { bytes: out, length, placesOf }
}

/** The number that these hexadecimal digits write; -1 where one of them is none. */
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
