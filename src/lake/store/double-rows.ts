import { DOUBLE, DuckDBDataChunk, type DuckDBVector } from '@duckdb/node-api'
import type { Engine } from './engine.ts'

/** Maximum number of rows of a chunk, as in DuckDB's own vectors. */
const chunkRows = 2048

/** Chunks that are added to a table at a time, as many as a row group of a table has: smaller portions cost more. */
const portionChunks = 60

/** Numbers of a column: one for each row, or one for all; NaN and null stand for NULL. */
export type DoubleColumn = Float64Array | number | null

/** Rows as columns of numbers. */
export interface DoubleRows {
  readonly rows: number
  /** Columns in the order of the table. */
  readonly columns: readonly DoubleColumn[]
}

/**
 * Adds rows to a temporary table with `width` columns, block by block. The engine casts the numbers to the types of the
 * table, so that integers below 2^53 and NULL may go to a column of any type.
 */
export async function appendDoubles(
  engine: Engine,
  table: string,
  width: number,
  blocks: Iterable<DoubleRows>,
): Promise<void> {
  await engine.append(table, { columns: [], chunks: chunksOf(width, blocks) }, portionChunks)
}

/** Packs blocks into chunks; each chunk is valid until the next one is requested. */
async function* chunksOf(width: number, blocks: Iterable<DoubleRows>): AsyncGenerator<DuckDBDataChunk> {
  const chunk = DuckDBDataChunk.create(
    Array.from({ length: width }, () => DOUBLE),
    chunkRows,
  )
  const vectors = Array.from({ length: width }, (_, i) => new ColumnVector(chunk.getColumnVector(i)))
  let filled = 0
  for (const { rows, columns } of blocks)
    for (let from = 0; from < rows; ) {
      const size = Math.min(rows - from, chunkRows - filled)
      for (const [i, vector] of vectors.entries()) vector.set(filled, columns[i] ?? null, from, size)
      filled += size
      from += size
      if (filled < chunkRows) continue
      for (const { vector } of vectors) vector.flush()
      yield chunk
      filled = 0
    }
  if (filled === 0) return
  for (const { vector } of vectors) vector.flush()
  chunk.rowCount = filled
  yield chunk
}

/** A vector that is filled over and over. */
class ColumnVector {
  readonly vector: DuckDBVector
  /** Whether all its values are NULL: to set these again costs more than to set numbers. */
  #blank = false

  constructor(vector: DuckDBVector) {
    this.vector = vector
  }

  /** Sets values from `at` on, from those of a column from `from` on. */
  set(at: number, column: DoubleColumn, from: number, size: number): void {
    const { vector } = this
    if (column === null) {
      if (this.#blank) return
      // A chunk that begins without values may have none at all.
      this.#blank = at === 0
      for (let i = 0, rows = this.#blank ? chunkRows : size; i < rows; i++) vector.setItem(at + i, null)
    } else if (typeof column === 'number') {
      this.#blank = false
      for (let i = 0; i < size; i++) vector.setItem(at + i, column)
    } else {
      this.#blank = false
      for (let i = 0; i < size; i++) {
        const value = column[from + i] as number
        vector.setItem(at + i, Number.isNaN(value) ? null : value)
      }
    }
  }
}
