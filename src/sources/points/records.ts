import type { DuckDBDataChunk } from '@duckdb/node-api'
import { digestOfSum, type MonthDigest } from '../../lake/ledger/month-digests.ts'

/*
 * A point in the form in which sums of months read it: numbers of eight bytes each, and a text if they are not enough.
 * Rows are read from vectors of the engine without creating values.
 */

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
  /** Time of the commit that added the point. */
  readonly seen: Int32Array
  /** The value as a double. */
  readonly v: Float64Array
  /** The form of the value; from `texted` on there is also a text. */
  readonly form: Float64Array
  /** Returns the text of a row in a column of texts; null if it has none. */
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

/** Returns the microseconds of a row; exact within the range of a double. */
function micros(words: Int32Array, row: number): number {
  return (words[2 * row + 1] ?? 0) * 4_294_967_296 + ((words[2 * row] ?? 0) >>> 0)
}

/** Converts microseconds to milliseconds, rounded up; exact if the microseconds are. */
function millis(micros: number): number {
  const whole = Math.floor(micros / 1000)
  return micros > whole * 1000 ? whole + 1 : whole
}

/** Smallest form of a value with a text. */
const texted = 8

/** The points of one month of one series, which are added up as they are read. */
export class MonthRecords {
  #rows = 0
  #sum = 0n
  /** Numbers of a point as words, which are mixed into the sum. */
  readonly #point = new Float64Array(5)
  readonly #words = new Int32Array(this.#point.buffer)

  /** The month that is added up: its bounds in microseconds, and the hash of its series. */
  #month = { low: 0, high: 0, since: 0, until: 0 }

  /** Name of the month, `2024-06`. */
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

  /** Adds the rows of a chunk that belong to its month, and returns the first one that does not. */
  add(columns: ChunkColumns, from: number): number {
    const { low: lower, high: higher, since, until } = this.#month
    const { who } = columns
    const point = this.#point
    const words = this.#words
    // One by one: an array per row would be most of the cost.
    let low = 0
    let high = 0
    let row = from
    for (; row < columns.rows; row++) {
      const at = micros(columns.t, row)
      if (at < since || at >= until || who[2 * row] !== lower || who[2 * row + 1] !== higher) break
      const form = columns.form[row] ?? 0
      point[0] = millis(at)
      point[1] = columns.v[row] ?? 0
      point[2] = millis(micros(columns.available, row))
      point[3] = form
      point[4] = millis(micros(columns.seen, row))
      let a = columns.available[2 * row] ?? 0
      let b = 1
      for (let word = 0; word < words.length; word++) {
        a = Math.imul(a ^ (words[word] ?? 0), 0x85_eb_ca_6b)
        b = Math.imul(b ^ (a >>> 15), 0xc2_b2_ae_35)
        a ^= b >>> 13
      }
      if (form >= texted) {
        const rest = columns.text('rest', row) ?? ''
        for (let sign = 0; sign < rest.length; sign++) {
          a = Math.imul(a ^ rest.charCodeAt(sign), 0x85_eb_ca_6b)
          b = Math.imul(b ^ (a >>> 15), 0xc2_b2_ae_35)
        }
      }
      low += a >>> 0
      high += b >>> 0
    }
    this.#rows += row - from
    this.#sum += (BigInt(high) << 32n) + BigInt(low)
    return row
  }

  /** Returns the number and the digest of the month's points, and begins the next month. */
  end(): MonthDigest {
    const month = { points: this.#rows, digest: digestOfSum(this.#sum) }
    this.#rows = 0
    this.#sum = 0n
    return month
  }
}
