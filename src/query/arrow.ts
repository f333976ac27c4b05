import type { DuckDBDataChunk } from '@duckdb/node-api'
import {
  AsyncByteQueue,
  Field,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Table,
} from 'apache-arrow'
import type { Engine } from '../lake/store/engine.ts'
import type { Parameters } from '../lake/store/sql.ts'
import { arrowType, dataOf } from './arrow-columns.ts'
import type { Filled } from './filled-columns.ts'
import { distinctNames } from './projection.ts'

/**
 * Chunks of the engine, of 2,048 rows at most, in one batch: large enough to be read fast, small enough to stay in
 * memory.
 */
const mostChunks = 32
/** Number of chunks that take some 32 MB with one column. */
const columnChunks = 2048

/**
 * Runs a statement and returns its schema and its batches in order, each built from DuckDB's column chunks, which
 * `filled` sees.
 */
async function arrowStream(engine: Engine, sql: string, filled: Filled | undefined, parameters?: Parameters) {
  const { columns, chunks } = await engine.vectors(sql, parameters)
  const names = distinctNames(columns.map(({ name }) => name))
  const schema = new Schema(columns.map(({ type }, i) => new Field(names[i] ?? '', arrowType(type), true)))
  const batch = (chunks: readonly DuckDBDataChunk[]): RecordBatch => {
    const children = columns.map(({ type }, k) =>
      dataOf(
        type,
        chunks.map((chunk) => ({ vector: chunk.getColumnVector(k), from: 0, count: chunk.rowCount })),
      ),
    )
    const length = chunks.reduce((sum, { rowCount }) => sum + rowCount, 0)
    return new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length, nullCount: 0, children }))
  }
  const batchChunks = Math.max(1, Math.min(mostChunks, Math.floor(columnChunks / columns.length)))
  async function* batches(): AsyncGenerator<RecordBatch> {
    let waiting: DuckDBDataChunk[] = []
    for await (const chunk of chunks) {
      filled?.addChunk(chunk)
      waiting.push(chunk)
      if (waiting.length < batchChunks) continue
      yield batch(waiting)
      waiting = []
    }
    if (waiting.length > 0) yield batch(waiting)
  }
  return { schema, batches: batches() }
}

/** Runs a statement and returns its whole result as a typed Arrow table. */
export async function arrowTable(engine: Engine, sql: string, filled: Filled, parameters?: Parameters): Promise<Table> {
  const { schema, batches } = await arrowStream(engine, sql, filled, parameters)
  const decoded: RecordBatch[] = []
  for await (const batch of batches) decoded.push(batch)
  return new Table(schema, decoded)
}

/**
 * Runs a statement and yields its result as the bytes of an Arrow IPC file or stream; one batch is in memory at a time.
 */
export async function* arrowBytes(engine: Engine, sql: string, form: 'file' | 'stream', filled?: Filled) {
  const { schema, batches } = await arrowStream(engine, sql, filled)
  const writer = form === 'file' ? new RecordBatchFileWriter() : new RecordBatchStreamWriter()
  const parts = new Parts()
  writer.reset(parts, schema)
  yield* parts.taken()
  for await (const batch of batches) {
    writer.write(batch)
    yield* parts.taken()
  }
  writer.finish()
  yield* parts.taken()
}

/** The library's writers queue what they write without end; this hands it over after each batch. */
class Parts extends AsyncByteQueue {
  #parts: Uint8Array[] = []

  override write(part: Uint8Array): void {
    this.#parts.push(part)
  }

  taken(): readonly Uint8Array[] {
    const parts = this.#parts
    this.#parts = []
    return parts
  }
}
