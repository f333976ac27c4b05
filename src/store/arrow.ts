import {
  BIGINT,
  BOOLEAN,
  DATE,
  DOUBLE,
  DuckDBDataChunk,
  DuckDBDateValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  type DuckDBValue,
  HUGEINT,
  TIMESTAMP,
  TIMESTAMPTZ,
  VARCHAR,
} from '@duckdb/node-api'
import { DataType, type Field, type RecordBatch, RecordBatchReader, type Vector } from 'apache-arrow'
import { usage } from '../errors.ts'
import { type Engine, quoteName } from './engine.ts'
import { readStream } from './files.ts'

/** How a column of Arrow becomes one of the engine: its type, and each of its values. */
interface Column {
  readonly type: DuckDBType
  readonly value: (held: unknown) => DuckDBValue
}

/** Microseconds of Arrow's units of time, by their numbers; nanoseconds have none. */
const perMicro: readonly (bigint | undefined)[] = [1_000_000n, 1000n, 1n]

function columnOf({ name, type }: Field, path: string): Column {
  const inner = (DataType.isDictionary(type) ? type.dictionary : type) as DataType
  if (DataType.isInt(inner)) {
    const wide = inner.bitWidth === 64 && !inner.isSigned
    return { type: wide ? HUGEINT : BIGINT, value: (held) => BigInt(String(held)) }
  }
  if (DataType.isFloat(inner)) return { type: DOUBLE, value: Number }
  if (DataType.isUtf8(inner) || DataType.isLargeUtf8(inner)) return { type: VARCHAR, value: String }
  if (DataType.isBool(inner)) return { type: BOOLEAN, value: Boolean }
  if (DataType.isDate(inner))
    return { type: DATE, value: (held) => new DuckDBDateValue(Math.floor(Number(held) / 86_400_000)) }
  if (DataType.isTimestamp(inner)) {
    const each = perMicro[inner.unit]
    const micros = (held: unknown): bigint => {
      const count = BigInt(String(held))
      if (each !== undefined) return count * each
      if (count % 1000n === 0n) return count / 1000n
      throw usage(`${path}: ${name}`, { expected: 'instants of whole microseconds', got: `${count} nanoseconds` })
    }
    return inner.timezone
      ? { type: TIMESTAMPTZ, value: (held) => new DuckDBTimestampTZValue(micros(held)) }
      : { type: TIMESTAMP, value: (held) => new DuckDBTimestampValue(micros(held)) }
  }
  const expected = 'a column of numbers, texts, booleans, dates or instants'
  throw usage(`${path}: ${name}`, { expected, got: String(type) })
}

/** The values of a column; instants as their file holds them, for Arrow's own reading makes milliseconds of them. */
function valuesOf(vector: Vector, { value }: Column): DuckDBValue[] {
  if (!DataType.isTimestamp(vector.type))
    return Array.from(vector, (held: unknown) => (held === null ? null : value(held)))
  return vector.data.flatMap((data) => {
    const held = data.values as ArrayLike<unknown>
    return Array.from({ length: data.length }, (_, row) => (data.getValid(row) ? value(held[row]) : null))
  })
}

const chunkRows = 2048

/** Reads Arrow files (or streams) into a temporary table of the engine, column by column, each row with its file; gives its name. */
export async function loadArrow(engine: Engine, paths: readonly string[], fileColumn: string): Promise<string> {
  const table = 'arrow_rows'
  for (const [n, path] of paths.entries()) {
    const reader = await RecordBatchReader.from(readStream(path))
    await reader.open()
    const { fields } = reader.schema
    const columns = fields.map((field) => columnOf(field, path))
    const declared = fields.map(({ name }, i) => `${quoteName(name)} ${String(columns[i]?.type)}`)
    if (n === 0) await engine.run(`CREATE TEMP TABLE ${table} (${[...declared, `${fileColumn} VARCHAR`].join(', ')})`)
    await engine.append(table, { columns: [], chunks: chunksOf(reader, columns, path) })
  }
  return table
}

async function* chunksOf(
  batches: AsyncIterable<RecordBatch>,
  columns: readonly Column[],
  path: string,
): AsyncGenerator<DuckDBDataChunk> {
  for await (const batch of batches)
    for (let from = 0; from < batch.numRows; from += chunkRows) {
      const some = batch.slice(from, from + chunkRows)
      const chunk = DuckDBDataChunk.create([...columns.map(({ type }) => type), VARCHAR], some.numRows)
      for (const [i, column] of columns.entries()) {
        const vector = some.getChildAt(i)
        if (vector) chunk.setColumnValues(i, valuesOf(vector, column))
      }
      chunk.setColumnValues(
        columns.length,
        Array.from({ length: some.numRows }, () => path),
      )
      yield chunk
    }
}
