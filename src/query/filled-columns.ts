import type { DuckDBDataChunk } from '@duckdb/node-api'
import type { Cell } from '../lake/store/engine.ts'
import { presenceIn } from './vectors.ts'

/** A column in which nothing was found. */
export interface Empty {
  readonly column: string
  /** Assets for which the column is empty; none if the result was not watched by asset. */
  readonly assets: readonly string[]
  /** Whether the column is empty in every row. */
  readonly everywhere: boolean
  /** Whether the column is 0 in the only row. */
  readonly zero?: true
}

/** Zeros, as numbers or as text. */
const zeros: ReadonlySet<unknown> = new Set([0, 0n, '0'])

/** Watches the rows of a result and reports its empty columns. */
export class Filled {
  rows = 0
  readonly #names: readonly string[]
  /** Index of the column that identifies a row's asset; -1 if there is none. */
  readonly by: number
  readonly #places = new Map<string, number>()
  /** Whether a value was seen, by column and by the asset's place. */
  readonly #valueSeen: boolean[][]
  /** Whether a column is 0 in the first row, by column. */
  #zeros: readonly boolean[] = []

  /** Starts without rows; `by` is the column whose texts identify the rows. */
  constructor(names: readonly string[], by?: string) {
    this.#names = names
    this.by = by === undefined ? -1 : names.findIndex((name) => name.toLowerCase() === by)
    this.#valueSeen = names.map(() => [])
  }

  /**
   * Records further rows: the columns with a value, the text that identifies a row, and the values of the first row.
   */
  #add(
    rows: number,
    holds: (column: number, row: number) => boolean,
    key: (row: number) => unknown,
    first: (column: number) => unknown,
  ): void {
    if (this.rows === 0 && rows === 1) this.#zeros = this.#names.map((_, k) => zeros.has(first(k)))
    this.rows += rows
    const places = this.by < 0 ? [] : Array.from({ length: rows }, (_, row) => this.#placeOf(key(row)))
    for (const [k, seen] of this.#valueSeen.entries())
      for (let row = 0; row < rows && (places.length > 0 || seen[0] !== true); row++)
        if (seen[places[row] ?? 0] !== true && holds(k, row)) seen[places[row] ?? 0] = true
  }

  /** Looks at a chunk of the engine; its values stay there. */
  addChunk(chunk: DuckDBDataChunk): void {
    const presence = this.#names.map((_, k) => presenceIn(chunk.getColumnVector(k)))
    const keys = this.by < 0 ? [] : chunk.getColumnValues(this.by)
    this.#add(
      chunk.rowCount,
      (k, row) => presence[k]?.(row) === true,
      (row) => keys[row],
      (k) => chunk.getColumnValues(k)[0],
    )
  }

  /** Adds a chunk of cells, column by column. */
  addCells(rows: number, columns: readonly (readonly (Cell | undefined)[])[]): void {
    this.#add(
      rows,
      (k, row) => (columns[k]?.[row] ?? null) !== null,
      (row) => columns[this.by]?.[row],
      (k) => columns[k]?.[0],
    )
  }

  /** Yields chunks unchanged, and adds each on the way. */
  async *over(chunks: AsyncIterable<DuckDBDataChunk>): AsyncGenerator<DuckDBDataChunk> {
    for await (const chunk of chunks) {
      this.addChunk(chunk)
      yield chunk
    }
  }

  /** Lists the columns in which something is missing; none if there are no rows at all. */
  empty(): readonly Empty[] {
    if (this.rows === 0) return []
    return this.#names.flatMap((column, k) => {
      const seen = this.#valueSeen[k] ?? []
      const everywhere = !seen.some(Boolean)
      const assets = [...this.#places].flatMap(([asset, place]) => (seen[place] === true ? [] : [asset]))
      if (this.rows === 1 && this.#zeros[k] === true) return [{ column, assets: [], everywhere: false, zero: true }]
      return everywhere || assets.length > 0 ? [{ column, assets: assets.toSorted(), everywhere }] : []
    })
  }

  #placeOf(key: unknown): number {
    const asset = typeof key === 'string' ? key : ''
    const place = this.#places.get(asset) ?? this.#places.size
    this.#places.set(asset, place)
    return place
  }
}
