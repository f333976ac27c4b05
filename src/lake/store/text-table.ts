import { DuckDBDataChunk, VARCHAR } from '@duckdb/node-api'
import { type Engine, quoteName } from './engine.ts'

/** Maximum number of rows of a chunk, as in DuckDB's own vectors. */
const chunkRows = 2048

/** Rows as columns of texts, `rows` of them; a text is made when it is needed. */
export interface TextColumns {
  readonly rows: number
  /** Functions for each column that return the text of a row; null for no value. */
  readonly cells: readonly ((row: number) => string | null)[]
}

/** Creates a temporary table whose columns are texts. */
export async function createTextTable(engine: Engine, table: string, names: readonly string[]): Promise<void> {
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE ${table} (${names.map((name) => `${quoteName(name)} VARCHAR`).join(', ')})`,
  )
}

/** Adds rows to such a table. */
export async function appendTexts(engine: Engine, table: string, columns: TextColumns): Promise<void> {
  await engine.append(table, { columns: [], chunks: chunksOf(columns) })
}

async function* chunksOf({ rows, cells }: TextColumns): AsyncGenerator<DuckDBDataChunk> {
  for (let from = 0; from < rows; from += chunkRows) {
    const size = Math.min(chunkRows, rows - from)
    const chunk = DuckDBDataChunk.create(
      cells.map(() => VARCHAR),
      size,
    )
    for (const [i, text] of cells.entries())
      chunk.setColumnValues(
        i,
        Array.from({ length: size }, (_, row) => text(from + row)),
      )
    yield chunk
  }
}
