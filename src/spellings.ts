/** A part `[from, to)` of some bytes. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Bytes as a reader of them understands them, and where each of the first `length`, and the end, stood. */
export interface View {
  readonly bytes: Uint8Array
  readonly length: number
  readonly places: Uint32Array
}

const backslash = 0x5c
const percent = 0x25

/** The parts with escapes of JSON or percent-encoding in them, each with `around` bytes before and after them. */
export function clusters(bytes: Buffer, around: number): Range[] {
  const found: Range[] = []
  let [nextBackslash, nextPercent] = [bytes.indexOf(backslash), bytes.indexOf(percent)]
  while (nextBackslash >= 0 || nextPercent >= 0) {
    const first = nextPercent < 0 || (nextBackslash >= 0 && nextBackslash < nextPercent) ? nextBackslash : nextPercent
    let last = first
    const limit = bytes.length
    for (let at = first + 1; at < limit && at - last <= around + longestEscape; at++)
      if (bytes[at] === backslash || bytes[at] === percent) last = at
    const to = Math.min(limit, last + longestEscape + around)
    found.push({ from: Math.max(0, first - around), to })
    if (nextBackslash >= 0 && nextBackslash <= last) nextBackslash = bytes.indexOf(backslash, last + 1)
    if (nextPercent >= 0 && nextPercent <= last) nextPercent = bytes.indexOf(percent, last + 1)
  }
  return found
}

/** `\u0025` is the longest thing that stands for one character. */
const longestEscape = 6

/** What the part says once the escapes of JSON are read, and what it says once percent-encoding is read, too. */
export function viewsOf(bytes: Buffer, range: Range): View[] {
  const views: View[] = []
  let view: View | null = null
  if (within(bytes, backslash, range)) views.push((view = unescaped(bytes, range)))
  if (view === null) {
    if (within(bytes, percent, range)) views.push(unquoted(bytes, range, null))
  } else if (view.bytes.subarray(0, view.length).includes(percent))
    views.push(unquoted(view.bytes, { from: 0, to: view.length }, view.places))
  return views
}

function within(bytes: Buffer, byte: number, { from, to }: Range): boolean {
  const at = bytes.indexOf(byte, from)
  return at >= 0 && at < to
}

const named: Readonly<Record<string, number>> = { b: 8, t: 9, n: 10, f: 12, r: 13, '"': 0x22, '\\': 0x5c, '/': 0x2f }
const short = Uint8Array.from({ length: 256 }, (_, byte) => named[String.fromCharCode(byte)] ?? 0)
/** Stands for whatever is no ASCII: no key has it. */
const foreign = 0xff

function unescaped(bytes: Buffer, { from, to }: Range): View {
  const out = new Uint8Array(to - from)
  const places = new Uint32Array(to - from + 1)
  let length = 0
  for (let at = from; at < to; ) {
    places[length] = at
    const byte = bytes[at] as number
    const after = at + 1 < to ? (bytes[at + 1] as number) : 0
    if (byte === backslash && after === 0x75 && at + 6 <= to) {
      const code = hex(bytes, at + 2, 4)
      out[length++] = code < 0 ? byte : code < 0x80 ? code : foreign
      at += code < 0 ? 1 : 6
    } else if (byte === backslash && short[after] !== 0) {
      out[length++] = short[after] as number
      at += 2
    } else {
      out[length++] = byte
      at++
    }
  }
  places[length] = to
  return { bytes: out, length, places }
}

/** Percent-encoding read once; `origins` says where the given bytes stood themselves. */
function unquoted(bytes: Uint8Array, { from, to }: Range, origins: Uint32Array | null): View {
  const out = new Uint8Array(to - from)
  const places = new Uint32Array(to - from + 1)
  const origin = (at: number): number => (origins === null ? at : (origins[at] as number))
  let length = 0
  for (let at = from; at < to; ) {
    places[length] = origin(at)
    const code = bytes[at] === percent && at + 3 <= to ? hex(bytes, at + 1, 2) : -1
    out[length++] = code < 0 ? (bytes[at] as number) : code
    at += code < 0 ? 1 : 3
  }
  places[length] = origin(to)
  return { bytes: out, length, places }
}

/** The number that these hexadecimal digits write; -1 where one of them is none. */
function hex(bytes: Uint8Array, from: number, digits: number): number {
  let value = 0
  for (let at = from; at < from + digits; at++) {
    const byte = bytes[at] as number
    const low = byte | 0x20
    const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : low >= 0x61 && low <= 0x66 ? low - 0x57 : -1
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}
