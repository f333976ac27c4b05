import { decimalValue, mostDecimals, partDigits } from './decimal.ts'

/** The points of a body as columns, in the order of the body. */
export interface PointColumns {
  /** Number of points. */
  readonly rows: number
  /** `t` as sent, seconds. */
  readonly t: Float64Array
  /** Values; NaN for null. */
  readonly v: Float64Array
  /** `computed_at` as sent, seconds; NaN for null and where it is missing. Null if no point has it. */
  readonly computed: Float64Array | null
}

/** Reason for which reading ended: no point follows, the bytes end inside a point, or it has a different shape. */
export type PointEnd = 'whole' | 'cut' | 'unusual'

/** Maximum length of a number that is read here; a longer one might lie beyond a double without an exponent. */
const longestNumber = 300
/** Rows of the first columns; they show how long a point is. */
const firstRows = 64

/** Bits for the keys of a point. */
const keys = { t: 1, v: 2, computed: 4 } as const
const required = keys.t | keys.v

/**
 * Reads points that contain `t`, `v` and nothing else but `computed_at`, each once and in any order: `t` a number, the
 * others numbers or null. It accepts JSON as in RFC 8259 only; everything else is left to the lexer.
 */
export class PointReader {
  rows = 0
  /** Number of points with a `computed_at`, and of these and of `v` those that are null. */
  computedKeys = 0
  computedNulls = 0
  valueNulls = 0
  end: PointEnd = 'whole'
  /** Byte offsets directly after each number that is spelled `-0`. */
  readonly negativeZeros: number[]
  /** The number read last: a result of a method would be an object of its own. */
  readonly #value = new Float64Array(1)
  #t = new Float64Array(firstRows)
  #v = new Float64Array(firstRows)
  #computed: Float64Array | null = null

  constructor(negativeZeros: number[]) {
    this.negativeZeros = negativeZeros
  }

  /** Returns the columns of all points so far. */
  columns(): PointColumns {
    const { rows } = this
    const computed = this.#computed?.subarray(0, rows) ?? null
    return { rows, t: this.#t.subarray(0, rows), v: this.#v.subarray(0, rows), computed }
  }

  /**
   * Reads points, separated by commas, from the `{` at `from` on; returns the position behind the last whole one. The
   * chunk begins at `offset` of the body.
   */
  read(chunk: Buffer, from: number, offset: number): number {
    // A point ends at a brace, so that no byte behind the last one is looked at while one is read.
    const last = chunk.lastIndexOf(0x7d)
    let behind = from
    let at = from
    while (chunk[at] === 0x7b) {
      if (at > last) {
        this.end = 'cut'
        return behind
      }
      if (this.rows === this.#t.length) this.#grow((chunk.length - at) / (offset + at))
      const zeros = this.negativeZeros.length
      at = this.#point(chunk, at, offset)
      if (at === 0) {
        this.negativeZeros.length = zeros
        this.end = 'unusual'
        return behind
      }
      behind = at
      at = toNext(chunk, at)
      if (at === chunk.length) break
    }
    this.end = 'whole'
    return behind
  }

  /** Reads one point; returns the position behind it, 0 if it is not as expected. */
  #point(chunk: Buffer, from: number, offset: number): number {
    let at = from + 1
    let seen = 0
    let t = 0
    let v = Number.NaN
    let computed = Number.NaN
    for (;;) {
      let byte = chunk[at] as number
      if (byte <= 0x20) byte = chunk[(at = skipSpace(chunk, at))] as number
      if (byte !== 0x22) return 0
      let key = 0
      const letter = chunk[at + 1]
      if (letter === 0x74 && chunk[at + 2] === 0x22) key = keys.t
      else if (letter === 0x76 && chunk[at + 2] === 0x22) key = keys.v
      else if (letter === 0x63 && isComputedAt(chunk, at + 1)) key = keys.computed
      if (key === 0 || (seen & key) !== 0) return 0
      seen |= key
      at += key === keys.computed ? 13 : 3
      if (chunk[at] !== 0x3a && chunk[(at = skipSpace(chunk, at))] !== 0x3a) return 0
      byte = chunk[++at] as number
      if (byte <= 0x20) byte = chunk[(at = skipSpace(chunk, at))] as number
      let value = Number.NaN
      if (byte === 0x6e && key !== keys.t) {
        if (chunk[at + 1] !== 0x75 || chunk[at + 2] !== 0x6c || chunk[at + 3] !== 0x6c) return 0
        at += 4
      } else {
        at = this.#number(chunk, at, offset)
        if (at === 0) return 0
        value = this.#value[0] as number
      }
      if (key === keys.t) t = value
      else if (key === keys.v) v = value
      else computed = value
      byte = chunk[at] as number
      if (byte <= 0x20) byte = chunk[(at = skipSpace(chunk, at))] as number
      if (byte === 0x7d) break
      if (byte !== 0x2c) return 0
      at++
    }
    if ((seen & required) !== required) return 0
    this.#add(t, v, computed, (seen & keys.computed) !== 0)
    return at + 1
  }

  #add(t: number, v: number, computed: number, hasComputed: boolean): void {
    const row = this.rows
    this.#t[row] = t
    this.#v[row] = v
    // Numbers of a body are never NaN.
    if (Number.isNaN(v)) this.valueNulls++
    if (hasComputed) {
      this.#computed ??= new Float64Array(this.#t.length).fill(Number.NaN, 0, row)
      this.computedKeys++
      if (Number.isNaN(computed)) this.computedNulls++
    }
    if (this.#computed !== null) this.#computed[row] = computed
    this.rows = row + 1
  }

  /** Makes room for the `more` times as many points that the rest of a chunk may contain, and for a tenth in addition. */
  #grow(more: number): void {
    const size = Math.ceil(this.rows * Math.max(1.25, 1.1 * (1 + more)))
    const wider = (column: Float64Array): Float64Array<ArrayBuffer> => {
      const wide = new Float64Array(size)
      wide.set(column)
      return wide
    }
    this.#t = wider(this.#t)
    this.#v = wider(this.#v)
    if (this.#computed !== null) this.#computed = wider(this.#computed)
  }

  /** Reads a number into `#value`; returns the position behind it, 0 if it is none. */
  #number(chunk: Buffer, from: number, offset: number): number {
    let at = from
    let byte = chunk[at] as number
    const negative = byte === 0x2d
    if (negative) byte = chunk[++at] as number
    // Two integers of at most nine digits, which the processor adds up faster than doubles.
    let whole = 0
    let further = 0
    let digits = 0
    let point = -1
    const first = at
    for (;;) {
      const digit = byte - 0x30
      if (digit >= 0 && digit <= 9) {
        if (digits < partDigits) whole = (whole * 10 + digit) | 0
        else if (digits < 2 * partDigits) further = (further * 10 + digit) | 0
        digits++
      } else if (byte === 0x2e && point < 0) point = at
      else break
      byte = chunk[++at] as number
    }
    const integers = (point < 0 ? at : point) - first
    const decimals = point < 0 ? 0 : at - point - 1
    if (integers === 0 || (integers > 1 && chunk[first] === 0x30) || (point >= 0 && decimals === 0)) return 0
    const exponent = byte === 0x65 || byte === 0x45
    if (exponent) {
      byte = chunk[++at] as number
      if (byte === 0x2b || byte === 0x2d) byte = chunk[++at] as number
      const power = at
      while (byte >= 0x30 && byte <= 0x39) byte = chunk[++at] as number
      if (at === power) return 0
    }
    let value = Number.NaN
    if (!exponent && digits <= 2 * partDigits && decimals <= mostDecimals)
      value = decimalValue(whole, further, Math.max(0, digits - partDigits), decimals)
    if (Number.isNaN(value)) return this.#spelled(chunk, from, at)
    if (negative && value === 0 && at === from + 2) this.negativeZeros.push(offset + at)
    this.#value[0] = negative ? -value : value
    return at
  }

  /** Reads a number from its text: one that is long, or has an exponent. */
  #spelled(chunk: Buffer, from: number, to: number): number {
    if (to - from >= longestNumber) return 0
    const value = Number(chunk.toString('latin1', from, to))
    this.#value[0] = value
    return Number.isFinite(value) ? to : 0
  }
}

function skipSpace(chunk: Buffer, from: number): number {
  let at = from
  for (;;) {
    const byte = chunk[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
}

/** Skips the comma behind a point; returns the position of what follows, the end of the chunk if nothing does. */
function toNext(chunk: Buffer, from: number): number {
  const size = chunk.length
  let at = from
  let commas = 0
  while (at < size) {
    const byte = chunk[at] as number
    if (byte === 0x2c && commas === 0) commas++
    else if (byte > 0x20) return commas === 1 ? at : size
    else if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return size
    at++
  }
  return size
}

const computedAt = Buffer.from('computed_at"')

function isComputedAt(chunk: Buffer, at: number): boolean {
  for (let i = 0; i < computedAt.length; i++) if (chunk[at + i] !== computedAt[i]) return false
  return true
}
