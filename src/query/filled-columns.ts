import type { DuckDBDataChunk } from '@duckdb/node-api'
import type { Cell } from '../lake/store/engine.ts'
import { presenceIn } from './vectors.ts'

/** A column in which nothing was found. */
export interface Empty {
  readonly column: string
  /** The assets for which it holds nothing; none where the result was not watched by asset. */
  readonly assets: readonly string[]
  /** Whether it holds nothing in any row. */
  readonly everywhere: boolean
  /** Whether it holds 0 in the only row. */
  readonly zero?: true
}

/** As a number, or as its text. */
const zeros: ReadonlySet<unknown> = new Set([0, 0n, '0'])

/** Watches a result go by and tells in which columns it held nothing. */
export class Filled {
  rows = 0
  readonly #names: readonly string[]
  /** The place of the column that tells the rows apart; -1 where there is none. */
  readonly by: number
  readonly #places = new Map<string, number>()
  /** By column, by the asset's place. */
  readonly #valueSeen: boolean[][]
  /** Columns that hold 0 in the first row. */
  #zeros: readonly boolean[] = []

  /** `by` is the column whose texts tell the rows apart. */
  constructor(names: readonly string[], by?: string) {
    this.#names = names
    this.by = by === undefined ? -1 : names.findIndex((name) => name.toLowerCase() === by)
    this.#valueSeen = names.map(() => [])
  }

  /**
   * Looks at further rows: where columns hold something, the text that tells a row apart, and what the first row holds.
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

  /** The columns in which something is missing; none where there are no rows at all. */
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
