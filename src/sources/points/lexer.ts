import { eachChunk } from '../../lake/store/files.ts'
import { type PointColumns, PointReader } from './point-columns.ts'

/** The findings of a strict reading of a body's tokens. */
export interface Lexed {
  /** Reason for which the body is not a JSON array of objects as in RFC 8259; null if it is. */
  readonly problem: string | null
  /** Number of elements of the outer array. */
  readonly elements: number
  /** Use of the known keys of the elements; all other keys count as `other`. */
  readonly keys: Readonly<Record<Key, KeyUse>>
  /** Byte offsets directly after each number that is spelled `-0`. */
  readonly negativeZeros: readonly number[]
  /** The points, if there are some and each consists of `t`, a number or null in `v`, and at most `computed_at`. */
  readonly columns: PointColumns | null
}

/** The keys that a point is known to have. */
type Key = 't' | 'v' | 'o' | 'computed_at' | 'other'

/** The number of occurrences of a key, and a mask of the kinds of its values. */
interface KeyUse {
  readonly count: number
  readonly kinds: number
}

/** Bits of `KeyUse.kinds`. */
export const kindBits = { number: 1, text: 2, literal: 4, nothing: 8, nested: 16 } as const

/** Whether a mask of kinds names nothing but numbers and null. */
export function isNumbers(kinds: number): boolean {
  return (kinds & ~(kindBits.number | kindBits.nothing)) === 0
}

/** Whether a mask of kinds names nothing but objects, arrays and null. */
export function isNested(kinds: number): boolean {
  return (kinds & ~(kindBits.nested | kindBits.nothing)) === 0
}

/** Maximum nesting, the outer array included. */
const deepest = 64
const longestToken = 512
/** One character more than the longest known key. */
const longestKey = 12
/** Maximum number of bytes of a point that two chunks share; a longer one is read byte by byte. */
const longestPoint = 4096

/** States of the lexer, named after what may follow. */
const next = { start: 0, value: 1, valueOrEnd: 2, key: 3, keyOrEnd: 4, colon: 5, more: 6, done: 7 } as const

/**
 * Reads a body once. Points of numbers go to columns. All else is read byte by byte to find what lenient parsers accept: NaN and Infinity, numbers beyond a double, a repeated
 * key in a nested object, trailing commas, nesting deeper than 64, a byte order mark, bytes that are not UTF-8. The
 * details of those numbers and of escapes are left to DuckDB, which is strict about them.
 */
export async function lexBody(file: string): Promise<Lexed> {
  const lexer = new Lexer()
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let invalid = false
  const size = await eachChunk(file, (chunk, offset) => {
    lexer.take(chunk, offset)
    if (lexer.problem !== null) return false
    invalid = lexer.foreign && !decodes(utf8, chunk, true)
    return !invalid
  })
  if (lexer.problem === null && (invalid || !decodes(utf8, undefined, false)))
    lexer.problem = 'bytes that are not UTF-8'
  lexer.finish(size)
  return lexer
}

function decodes(utf8: TextDecoder, chunk: Buffer | undefined, stream: boolean): boolean {
  try {
    utf8.decode(chunk, { stream })
    return true
  } catch {
    return false
  }
}

/** Classes of bytes outside of texts. */
const kinds = { other: 0, space: 1, token: 2, quote: 3, comma: 4, colon: 5, open: 6, close: 7 } as const
const kindOf = new Uint8Array(256)
for (const byte of ' \n\r\t') kindOf[byte.charCodeAt(0)] = kinds.space
for (let byte = 0x30; byte < 0x7b; byte++) if (/[\dA-Za-z]/.test(String.fromCharCode(byte))) kindOf[byte] = kinds.token
for (const byte of '+-.') kindOf[byte.charCodeAt(0)] = kinds.token
for (const [byte, kind] of Object.entries({ '"': 3, ',': 4, ':': 5, '[': 6, '{': 6, ']': 7, '}': 7 }))
  kindOf[byte.charCodeAt(0)] = kind

/**
 * Bytes that mean something inside a text: its end, an escape, a control character, the begin of a longer character.
 */
const inText = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte === 0x22 || byte === 0x5c || byte < 0x20 || byte >= 0x80 ? 1 : 0,
)

class Lexer implements Lexed {
  problem: string | null = null
  elements = 0
  readonly keys: Record<Key, { count: number; kinds: number }> = {
    t: { count: 0, kinds: 0 },
    v: { count: 0, kinds: 0 },
    o: { count: 0, kinds: 0 },
    computed_at: { count: 0, kinds: 0 },
    other: { count: 0, kinds: 0 },
  }
  key: { count: number; kinds: number } = this.keys.other
  readonly nested = new NestedKeys()
  /** Position in the chunk at which a key began; -1 outside of a key. */
  keyStart = -1
  /** The beginning of a key that the end of a chunk cut. */
  keyHead = ''
  readonly negativeZeros: number[] = []
  state: number = next.start
  depth = 0
  readonly arrays = new Uint8Array(deepest + 1)
  inString = false
  /** Whether a byte beyond ASCII was seen. */
  foreign = false
  escaped = false
  /** The beginning of a token that the end of a chunk cut. */
  carry = ''
  columns: PointColumns | null = null
  /** Reader of points of numbers; null once a point is none. */
  points: PointReader | null = new PointReader(this.negativeZeros)
  /** The beginning of a point that the end of a chunk cut, and its offset. */
  held: Buffer | null = null
  heldAt = 0

  take(chunk: Buffer, offset: number): void {
    const size = chunk.length
    let i = this.rejoin(chunk)
    while (i < size && this.problem === null) {
      if (this.inString) {
        i = this.string(chunk, i, offset)
        if (this.keyStart >= 0 && !this.inString) this.named(chunk, i - 1, offset)
        continue
      }
      const byte = chunk[i] as number
      const kind = kindOf[byte] as number
      if (kind === kinds.token) {
        const start = i
        let letters = 0
        let ahead = byte
        do {
          letters |= ahead & 0x40
          ahead = chunk[++i] as number
        } while (i < size && kindOf[ahead] === kinds.token)
        if (i === size) this.cut(chunk, start)
        else this.token(chunk, start, i, offset, letters === 0)
        continue
      }
      if (this.carry !== '') this.scalar(this.carry, offset + i)
      if (byte === 0x7b && this.points !== null && this.depth === 1) {
        const behind = this.usualPoints(this.points, chunk, i, offset)
        if (behind > i) {
          i = behind
          continue
        }
        if (this.held !== null) return
      }
      if (kind !== kinds.space && this.problem === null) this.mark(byte, kind, i, offset + i)
      i++
    }
    if (this.keyStart >= 0) this.cutKey(chunk)
  }

  /**
   * Reads points of numbers from the `{` at `from` on; returns the position behind the last one. If there is none, either
   * its bytes are held until the next chunk, or this body has points of a different kind.
   */
  usualPoints(points: PointReader, chunk: Buffer, from: number, offset: number): number {
    if (this.problem !== null || (this.state !== next.value && this.state !== next.valueOrEnd)) return from
    const behind = points.read(chunk, from, offset)
    if (behind > from) {
      this.elements = points.rows
      this.state = next.more
      return behind
    }
    const rest = chunk.subarray(from)
    if (points.end === 'cut' && rest.length <= longestPoint && isAscii(rest)) {
      this.held = Buffer.from(rest)
      this.heldAt = offset + from
    } else this.leavePoints(points)
    return from
  }

  /** Reads the point that the last chunk began and this one continues; returns the position behind it. */
  rejoin(chunk: Buffer): number {
    const { held, points, heldAt } = this
    if (held === null || points === null) return 0
    this.held = null
    const joint = Buffer.concat([held, chunk.subarray(0, longestPoint)])
    const behind = this.usualPoints(points, joint, 0, heldAt)
    if (behind > 0) return behind - held.length
    // Nothing of the chunk may be held with it, because its rest would follow at once.
    this.held = null
    if (this.points !== null) this.leavePoints(points)
    this.take(held, heldAt)
    return 0
  }

  /** Counts the points that were read as columns; whatever follows is read byte by byte. */
  leavePoints({ rows, valueNulls, computedKeys, computedNulls }: PointReader): void {
    this.points = null
    this.count('t', rows, 0)
    this.count('v', rows, valueNulls)
    this.count('computed_at', computedKeys, computedNulls)
  }

  count(key: Key, count: number, nulls: number): void {
    const use = this.keys[key]
    use.count += count
    if (count > nulls) use.kinds |= kindBits.number
    if (nulls > 0) use.kinds |= kindBits.nothing
  }

  finish(size: number): void {
    if (this.held !== null) this.rejoin(Buffer.alloc(0))
    if (this.points !== null) {
      if (this.points.rows > 0) this.columns = this.points.columns()
      this.leavePoints(this.points)
    }
    if (this.problem !== null) return
    if (this.carry !== '') this.scalar(this.carry, size)
    if (this.problem !== null || this.state === next.done) return
    this.problem = this.state === next.start ? 'an empty body' : 'a body that breaks off'
  }

  /** Skips to the end of the text; returns the index after the last byte consumed. */
  string(chunk: Buffer, from: number, offset: number): number {
    const size = chunk.length
    let i = this.escaped ? from + 1 : from
    this.escaped = false
    for (; i < size; i++) {
      const byte = chunk[i] as number
      if (inText[byte] === 0) continue
      if (byte === 0x22) {
        this.inString = false
        return i + 1
      }
      if (byte >= 0x80) this.foreign = true
      else if (byte === 0x5c) {
        this.escaped = i + 1 === size
        i++
      } else {
        this.problem = `a control character in a text at byte ${offset + i}`
        return i
      }
    }
    return size
  }

  /** Stores the beginning of a token that continues in the next chunk. */
  cut(chunk: Buffer, start: number): void {
    this.carry += chunk.toString('latin1', start).slice(0, longestToken + 1 - this.carry.length)
  }

  /**
   * Handles a token. The usual one, a short number inside a point without an exponent, is not converted to text: it
   * cannot overflow, and DuckDB is strict about its grammar.
   */
  token(chunk: Buffer, start: number, end: number, offset: number, numeric: boolean): void {
    const minusZero = end - start === 2 && chunk[start] === 0x2d && chunk[start + 1] === 0x30
    const usual = numeric && !minusZero && end - start < 300 && this.carry === '' && this.depth > 1
    if (usual && this.state === next.value) {
      this.state = next.more
      if (this.depth === 2) this.key.kinds |= kindBits.number
    } else
      this.scalar(this.carry + chunk.toString('latin1', start, Math.min(end, start + longestToken + 1)), offset + end)
  }

  mark(byte: number, kind: number, index: number, at: number): void {
    const state = this.state
    if (state === next.start && byte !== 0x5b) this.problem = notArray(byte)
    else if (kind === kinds.quote) {
      if (state === next.key || state === next.keyOrEnd) {
        this.state = next.colon
        this.keyStart = index + 1
      } else if (!this.value(at, 'a text', kindBits.text)) return
      this.inString = true
    } else if (kind === kinds.comma && state === next.more) {
      this.state = this.arrays[this.depth] === 1 ? next.value : next.key
    } else if (kind === kinds.colon && state === next.colon) this.state = next.value
    else if (kind === kinds.open) this.open(byte === 0x5b, at)
    else if (kind === kinds.close) this.close(byte === 0x5d, at)
    else this.unexpected(at)
  }

  open(array: boolean, at: number): void {
    if (this.depth >= deepest) {
      this.problem = `nesting deeper than ${deepest} at byte ${at}`
      return
    }
    if (this.state !== next.start && !this.value(at, array ? 'an array' : null, kindBits.nested)) return
    this.depth++
    this.arrays[this.depth] = array ? 1 : 0
    if (!array && this.depth > 2) this.nested.begin(this.depth)
    this.state = array ? next.valueOrEnd : next.keyOrEnd
  }

  close(array: boolean, at: number): void {
    const empty = array ? next.valueOrEnd : next.keyOrEnd
    const fits = this.arrays[this.depth] === (array ? 1 : 0) && (this.state === next.more || this.state === empty)
    if (!fits) {
      this.unexpected(at)
      return
    }
    this.depth--
    this.state = this.depth === 0 ? next.done : next.more
  }

  /** Stores the beginning of a key that continues in the next chunk. */
  cutKey(chunk: Buffer): void {
    if (this.depth > 2) this.nested.cut(chunk, this.keyStart)
    else
      this.keyHead = (this.keyHead + chunk.toString('latin1', this.keyStart, this.keyStart + longestKey)).slice(
        0,
        longestKey,
      )
    this.keyStart = 0
  }

  /** Records the name of the key that ends here; a nested one may occur once in its object. */
  named(chunk: Buffer, end: number, offset: number): void {
    if (this.depth > 2) {
      const twice = this.nested.repeated(this.depth, chunk, this.keyStart, end)
      if (twice !== null) this.problem = `the key "${twice.slice(0, 40)}" twice in one object at byte ${offset + end}`
      this.keyStart = -1
      return
    }
    const length = end - this.keyStart
    const first = chunk[this.keyStart]
    this.key = this.keys.other
    if (this.keyHead !== '')
      this.key = this.countOf(this.keyHead + chunk.toString('latin1', 0, Math.min(end, longestKey)))
    else if (length === 1 && first === 0x74) this.key = this.keys.t
    else if (length === 1 && first === 0x76) this.key = this.keys.v
    else if (length === 1 && first === 0x6f) this.key = this.keys.o
    else if (length === 11) this.key = this.countOf(chunk.toString('latin1', this.keyStart, end))
    this.key.count++
    this.keyStart = -1
    this.keyHead = ''
  }

  countOf(name: string): { count: number; kinds: number } {
    return Object.hasOwn(this.keys, name) && name !== 'other' ? this.keys[name as Key] : this.keys.other
  }

  /** Records a value; `kind` is null for an object, the only kind of element that the outer array may contain. */
  value(at: number, kind: string | null, bit: number): boolean {
    if (this.state !== next.value && this.state !== next.valueOrEnd) {
      this.unexpected(at)
      return false
    }
    if (this.depth === 1) {
      this.elements++
      if (kind !== null) this.problem = `a point that is ${kind} instead of an object (element ${this.elements})`
    }
    if (this.depth === 2) this.key.kinds |= bit
    this.state = next.more
    return this.problem === null
  }

  scalar(text: string, end: number): void {
    this.carry = ''
    const start = end - text.length
    if (this.state === next.start) this.problem = notArrayBut(text)
    else if (this.state === next.done) this.unexpected(start)
    else if (/^-?\d/.test(text)) {
      if (text === '-0') this.negativeZeros.push(end)
      if (text.length > longestToken) this.problem = `a number of more than ${longestToken} characters at byte ${start}`
      else if (Number.isNaN(Number(text))) this.problem = `${text.slice(0, 40)} at byte ${start}, which is no number`
      else if (!Number.isFinite(Number(text)))
        this.problem = `${text.slice(0, 40)} at byte ${start}, which is beyond a double`
      else this.value(start, 'a number', kindBits.number)
    } else if (text === 'null') this.value(start, text, kindBits.nothing)
    else if (text === 'true' || text === 'false') this.value(start, text, kindBits.literal)
    else this.problem = `${text.slice(0, 40)} at byte ${start}, which is no JSON`
  }

  unexpected(at: number): void {
    this.problem = this.state === next.done ? `something behind the array at byte ${at}` : `broken JSON at byte ${at}`
  }
}

function isAscii(bytes: Buffer): boolean {
  return bytes.every((byte) => byte < 0x80)
}

function notArrayBut(text: string): string {
  const isPlainValue = text === 'null' || text === 'true' || text === 'false' || /^-?\d/.test(text)
  return isPlainValue ? `${text.slice(0, 40)} instead of an array` : 'a body that is no JSON'
}

function notArray(byte: number): string {
  if (byte === 0x7b) return 'an object instead of an array'
  if (byte === 0x22) return 'a text instead of an array'
  if (byte === 0x3c) return 'HTML or XML instead of JSON'
  return 'a body that is no JSON'
}

/** The keys of the objects at one depth of a body: mostly the same ones in the same order, over and over. */
interface Row {
  /** Keys of the last object, as written; no two are equal. */
  readonly names: Buffer[]
  /** Number of leading keys of the current object that equal those of the last one. */
  same: number
  /** All keys of the current object, once one differs; null before. */
  own: Set<string> | null
}

/** Finds keys that occur twice in one object, at any depth. */
class NestedKeys {
  readonly #rows: Row[] = []
  /** The beginning of a key that the end of a chunk cut. */
  #head: Buffer | null = null

  /** Begins an object at this depth. */
  begin(depth: number): void {
    const row = (this.#rows[depth] ??= { names: [], same: 0, own: null })
    row.same = 0
    row.own = null
  }

  /** Stores the beginning of a key that continues in the next chunk. */
  cut(chunk: Buffer, start: number): void {
    const part = chunk.subarray(start)
    this.#head = Buffer.concat(this.#head === null ? [part] : [this.#head, part])
  }

  /**
   * Reads the key between two positions of the chunk; returns its text if its object already has it, otherwise null.
   */
  repeated(depth: number, chunk: Buffer, start: number, end: number): string | null {
    const row = this.#rows[depth]
    if (row === undefined) return null
    const head = this.#head
    this.#head = null
    const storedName = row.names[row.same]
    if (head === null && row.own === null && storedName !== undefined && isSame(storedName, chunk, start, end)) {
      row.same++
      return null
    }
    row.own ??= new Set(row.names.slice(0, row.same).map(textOf))
    const name = Buffer.concat(head === null ? [chunk.subarray(start, end)] : [head, chunk.subarray(start, end)])
    const text = textOf(name)
    if (row.own.has(text)) return text
    row.names.length = row.own.size
    row.names.push(name)
    row.own.add(text)
    return null
  }
}

function isSame(earlier: Buffer, chunk: Buffer, start: number, end: number): boolean {
  if (earlier.length !== end - start) return false
  for (let i = 0; i < earlier.length; i++) if (earlier[i] !== chunk[start + i]) return false
  return true
}

/**
 * Decodes the text of a key, however its characters are written; a key with invalid escapes is left for DuckDB to
 * refuse.
 */
function textOf(name: Buffer): string {
  const text = name.toString()
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}
