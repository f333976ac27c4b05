import { DuckDBDataChunk, VARCHAR } from '@duckdb/node-api'
import { DataType, type Field, type RecordBatch, RecordBatchReader, type Vector } from 'apache-arrow'
import { usage } from '../../base/errors.ts'
import { formatMicros } from '../../base/time.ts'
import { type Engine, quoteName } from './engine.ts'
import { readStream } from './files.ts'

/** Microseconds of Arrow's units of time, by their numbers; nanoseconds have none. */
const perMicro: readonly (bigint | undefined)[] = [1_000_000n, 1000n, 1n]

/** How the values of a column are told as texts, which is how CSV has them. */
function spelling({ name, type }: Field, path: string): (held: unknown) => string {
  const inner = (DataType.isDictionary(type) ? type.dictionary : type) as DataType
  if (DataType.isDate(inner)) return (held) => new Date(Number(held)).toISOString().slice(0, 10)
  if (DataType.isTimestamp(inner)) {
    const each = perMicro[inner.unit]
    return (held) => {
      const count = BigInt(String(held))
      if (each === undefined && count % 1000n !== 0n)
        throw usage(`${path}: ${name}`, { expected: 'instants of whole microseconds', got: `${count} nanoseconds` })
      const told = formatMicros(Number(each === undefined ? count / 1000n : count * each))
      return inner.timezone ? told : told.slice(0, -1)
    }
  }
  const isPlain = [DataType.isInt, DataType.isFloat, DataType.isUtf8, DataType.isLargeUtf8, DataType.isBool]
  if (isPlain.some((is) => is(inner))) return (held) => (Object.is(held, -0) ? '-0' : String(held))
  const expected = 'a column of numbers, texts, booleans, dates or instants'
  throw usage(`${path}: ${name}`, { expected, got: String(type) })
}

/** The values of a column; instants as their file holds them, for Arrow's own reading makes milliseconds of them. */
function valuesOf(vector: Vector): unknown[] {
  if (!DataType.isTimestamp(vector.type)) return Array.from(vector as Iterable<unknown>)
  return vector.data.flatMap((data) => {
    const held = data.values as ArrayLike<unknown>
    return Array.from({ length: data.length }, (_, row) => (data.getValid(row) ? held[row] : null))
  })
}

const chunkRows = 2048

/** Reads Arrow files (or streams) into a temporary table of the engine as texts, each row with its file; gives its name. */
export async function loadArrow(engine: Engine, paths: readonly string[], fileColumn: string): Promise<string> {
  const table = 'arrow_rows'
  for (const [n, path] of paths.entries()) {
    const reader = await RecordBatchReader.from(readStream(path))
    await reader.open()
    const { fields } = reader.schema
    const names = [...fields.map(({ name }) => name), fileColumn]
    const declared = names.map((name) => `${quoteName(name)} VARCHAR`)
    if (n === 0) await engine.run(`CREATE TEMP TABLE ${table} (${declared.join(', ')})`)
    const told = fields.map((field) => spelling(field, path))
    await engine.append(table, { columns: [], chunks: chunksOf(reader, told, path) })
  }
  return table
}

async function* chunksOf(
  batches: AsyncIterable<RecordBatch>,
  told: readonly ReturnType<typeof spelling>[],
  path: string,
) {
  for await (const batch of batches)
    for (let from = 0; from < batch.numRows; from += chunkRows) {
      const some = batch.slice(from, from + chunkRows)
      const chunk = DuckDBDataChunk.create(
        [...told, path].map(() => VARCHAR),
        some.numRows,
      )
      for (const [i, text] of told.entries()) {
        const values = valuesOf(some.getChildAt(i) as Vector)
        chunk.setColumnValues(
          i,
          values.map((held) => (held === null ? null : text(held))),
        )
      }
      chunk.setColumnValues(
        told.length,
        Array.from({ length: some.numRows }, () => path),
      )
      yield chunk
    }
}
