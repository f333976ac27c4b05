import {
  AsyncByteQueue,
  DataType,
  Field,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Table,
} from 'apache-arrow'
import type { Engine } from '../store/engine.ts'
import type { Parameters } from '../store/sql.ts'
import { columnBuilder } from './arrow-columns.ts'
import { arrowType } from './arrow-types.ts'
import type { Filled } from './filled.ts'
import { distinctNames } from './text-forms.ts'

/** Rows of one batch: large enough to be read fast, small enough to stay in memory. */
const batchRows = 65_536

/** A result as Arrow: its schema, then its batches in order. */
interface ArrowStream {
  readonly schema: Schema
  readonly batches: AsyncIterable<RecordBatch>
}

/** Runs a statement and gives its result as Arrow batches, each built from DuckDB's column chunks. */
export async function arrowStream(engine: Engine, sql: string, parameters?: Parameters): Promise<ArrowStream> {
  const { columns, chunks } = await engine.vectors(sql, parameters)
  const names = distinctNames(columns.map(({ name }) => name))
  const schema = new Schema(columns.map(({ type }, i) => new Field(names[i] ?? '', arrowType(type), true)))
  const builders = columns.map(({ type }) => columnBuilder(type))
  const batch = (rows: number): RecordBatch => {
    const children = builders.map((builder) => builder.take())
    return new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length: rows, nullCount: 0, children }))
  }
  async function* batches(): AsyncGenerator<RecordBatch> {
    let rows = 0
    for await (const chunk of chunks) {
      for (const [k, builder] of builders.entries()) builder.add(chunk.getColumnVector(k), 0, chunk.rowCount)
      rows += chunk.rowCount
      if (rows < batchRows) continue
      yield batch(rows)
      rows = 0
    }
    if (rows > 0) yield batch(rows)
  }
  return { schema, batches: batches() }
}

/** Runs a statement and gives its whole result as a typed Arrow table. */
export async function arrowTable(engine: Engine, sql: string, parameters?: Parameters): Promise<Table> {
  const { schema, batches } = await arrowStream(engine, sql, parameters)
  const held: RecordBatch[] = []
  for await (const batch of batches) held.push(batch)
  return new Table(schema, held)
}

/** Shows a batch to whoever wants to know which columns hold something. */
export function look(filled: Filled, batch: RecordBatch): void {
  const { numRows } = batch
  const columns = batch.schema.fields.map((_, k) => batch.getChildAt(k))
  filled.add(
    numRows,
    (k, row) => (columns[k]?.nullCount ?? numRows) < numRows && columns[k]?.isValid(row) === true,
    (row) => columns[filled.by]?.get(row),
    // A column of instants counts nothing, and Arrow fails at an infinite one.
    (k) => (DataType.isTimestamp(columns[k]?.type) ? undefined : columns[k]?.get(0)),
  )
}

/** Runs a statement and gives its result as the bytes of an Arrow IPC file or stream; one batch is in memory at a time. */
export async function* arrowBytes(
  engine: Engine,
  sql: string,
  form: 'file' | 'stream',
  onBatch: (batch: RecordBatch) => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  const { schema, batches } = await arrowStream(engine, sql)
  const writer = form === 'file' ? new RecordBatchFileWriter() : new RecordBatchStreamWriter()
  const parts = new Parts()
  writer.reset(parts, schema)
  yield* parts.taken()
  for await (const batch of batches) {
    onBatch(batch)
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
