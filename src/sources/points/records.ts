import { hash } from 'node:crypto'
import type { DuckDBDataChunk } from '@duckdb/node-api'
import { digestOfSum, type MonthDigest } from '../../lake/ledger/month-digests.ts'

/*
 * A point as digests take it (docs/explanation/proof.md tells the form for strangers): four numbers of eight bytes each, and a text,
 * where there is more to tell of it. Rows come in vectors of the engine and are never made values of.
 */

/** The points that one commit added to a month of a series. */
export interface MonthStep {
  /** When the commit was made, milliseconds, as published. */
  readonly seen: number
  readonly points: number
  /** SHA-256 of the records of these points. */
  readonly digest: string
}

/** The points of a month of a series, with the steps in which commits added them. */
export interface MonthSum extends MonthDigest {
  /** In the order of commits. */
  readonly steps: readonly MonthStep[]
}

const places = ['who', 't', 'available', 'seen', 'v', 'form', 'rest', 'named'] as const
type Place = (typeof places)[number]

/** The columns of `months` in a chunk. Whole numbers take two words a row, the lower one first. */
export interface ChunkColumns {
  readonly rows: number
  /** The number of the series. */
  readonly who: Int32Array
  /** Microseconds, as the next two. */
  readonly t: Int32Array
  readonly available: Int32Array
  /** When the commit was made that added the point. */
  readonly seen: Int32Array
  /** The value as a double. */
  readonly v: Float64Array
  /** The form of the value, and whether there is a text. */
  readonly form: Float64Array
  /** The text of a row in a column of texts; null if it has none. */
  readonly text: (name: Place, row: number) => string | null
}

/** Reads the columns of `months` from a chunk, without making values of its rows. */
export function chunkColumns(chunk: DuckDBDataChunk): ChunkColumns {
  const vector = (name: Place) => chunk.getColumnVector(places.indexOf(name))
  const numbers = (name: Place): Float64Array => Reflect.get(vector(name), 'items') as Float64Array
  const words = (name: Place): Int32Array => {
    const { buffer, byteOffset, length } = numbers(name)
    return new Int32Array(buffer, byteOffset, length * 2)
  }
  const who = words('who')
  const t = words('t')
  const available = words('available')
  const seen = words('seen')
  const text = (name: Place, row: number): string | null => vector(name).getItem(row) as string | null
  return { rows: chunk.rowCount, who, t, available, seen, v: numbers('v'), form: numbers('form'), text }
}

/** The microseconds of a row; exact where a double is. */
function micros(words: Int32Array, row: number): number {
  return (words[2 * row + 1] ?? 0) * 4_294_967_296 + ((words[2 * row] ?? 0) >>> 0)
}

/** Milliseconds of microseconds, rounded up; exact where the microseconds are. */
function millis(micros: number): number {
  const whole = Math.floor(micros / 1000)
  return micros > whole * 1000 ? whole + 1 : whole
}

/** Numbers of a record. */
const width = 4
/** From here on a form says that there is a text. */
const texted = 8

/** The points of one month of one series, which are added up while they come. */
export class MonthRecords {
  #numbers = new Float64Array(width * 1024)
  #lastSeen = new Float64Array(1024)
  readonly #texts = new Map<number, string>()
  #rows = 0
  #sum = 0n
  /** Whether all came with one commit, each behind the one before. */
  #plain = true
  /** What is mixed into the sum: the numbers of a point as words. */
  readonly #point = new Float64Array(width + 1)
  readonly #words = new Int32Array(this.#point.buffer)

  /** The month that is added up: its bounds in microseconds, and the hash of its series. */
  #month = { low: 0, high: 0, since: 0, until: 0 }

  /** Its name, `2024-06`. */
  get month(): string {
    return new Date(this.#month.since / 1000).toISOString().slice(0, 7)
  }

  /** Begins with the month of a row. */
  begin({ who, t }: ChunkColumns, row: number): void {
    const date = new Date(micros(t, row) / 1000)
    const [since = 0, until = 0] = [0, 1].map(
      (more) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + more) * 1000,
    )
    this.#month = { low: who[2 * row] ?? 0, high: who[2 * row + 1] ?? 0, since, until }
  }

  /** Adds the rows of a chunk that are of its month, and gives the first one that is not. */
  add(columns: ChunkColumns, from: number): number {
    this.#grow(this.#rows + columns.rows - from)
    const { low: lower, high: higher, since, until } = this.#month
    const { who } = columns
    const numbers = this.#numbers
    const lastSeen = this.#lastSeen
    const point = this.#point
    const words = this.#words
    // One by one: an array a row is the most of what it costs.
    let low = 0
    let high = 0
    let n = this.#rows
    let row = from
    for (; row < columns.rows; row++, n++) {
      const at = micros(columns.t, row)
      if (at < since || at >= until || who[2 * row] !== lower || who[2 * row + 1] !== higher) break
      const v = columns.v[row] ?? 0
      const form = columns.form[row] ?? 0
      const place = n * width
      numbers[place] = point[0] = millis(at)
      numbers[place + 1] = point[1] = v
      numbers[place + 2] = point[2] = millis(micros(columns.available, row))
      numbers[place + 3] = point[3] = form
      lastSeen[n] = point[4] = millis(micros(columns.seen, row))
      this.#plain &&=
        lastSeen[n] === lastSeen[0] && at >= 0 && (n === 0 || (numbers[place] ?? 0) > (numbers[place - width] ?? 0))
      let a = columns.available[2 * row] ?? 0
      let b = 1
      for (let word = 0; word < words.length; word++) {
        a = Math.imul(a ^ (words[word] ?? 0), 0x85_eb_ca_6b)
        b = Math.imul(b ^ (a >>> 15), 0xc2_b2_ae_35)
        a ^= b >>> 13
      }
      if (form >= texted) {
        const rest = columns.text('rest', row) ?? ''
        this.#texts.set(n, rest)
        for (let sign = 0; sign < rest.length; sign++) {
          a = Math.imul(a ^ rest.charCodeAt(sign), 0x85_eb_ca_6b)
          b = Math.imul(b ^ (a >>> 15), 0xc2_b2_ae_35)
        }
      }
      low += a >>> 0
      high += b >>> 0
    }
    this.#rows = n
    this.#sum += (BigInt(high) << 32n) + BigInt(low)
    return row
  }

  #grow(rows: number): void {
    if (rows <= this.#lastSeen.length) return
    const numbers = this.#numbers
    const seen = this.#lastSeen
    this.#lastSeen = new Float64Array(2 ** Math.ceil(Math.log2(rows)))
    this.#numbers = new Float64Array(this.#lastSeen.length * width)
    this.#lastSeen.set(seen)
    this.#numbers.set(numbers)
  }

  /** What the month is made of; the next one begins. */
  end(): MonthSum {
    const points = this.#rows
    const digest = digestOfSum(this.#sum)
    const steps = this.#steps()
    this.#texts.clear()
    this.#rows = 0
    this.#sum = 0n
    this.#plain = true
    return { points, digest, steps }
  }

  #steps(): readonly MonthStep[] {
    const bytes = Buffer.from(this.#numbers.buffer, 0, this.#rows * width * 8).swap64()
    const [first = 0] = this.#lastSeen
    if (this.#plain) {
      const told =
        this.#texts.size === 0 ? bytes : Buffer.concat([bytes, Buffer.from([...this.#texts.values()].join(''))])
      return [{ seen: first, points: this.#rows, digest: hash('sha256', told) }]
    }
    const records = Array.from({ length: this.#rows }, (_, n) => {
      const text = Buffer.from(this.#texts.get(n) ?? '')
      return { seen: this.#lastSeen[n] ?? 0, bytes: bytes.subarray(n * width * 8, (n + 1) * width * 8), text }
    })
    const steps = [...Map.groupBy(records, ({ seen }) => seen)].toSorted(([a], [b]) => a - b)
    return steps.map(([seen, some]) => {
      some.sort((a, b) => Buffer.compare(a.bytes, b.bytes) || Buffer.compare(a.text, b.text))
      const told = Buffer.concat([...some.map((one) => one.bytes), ...some.map((one) => one.text)])
      return { seen, points: some.length, digest: hash('sha256', told) }
    })
  }
}
