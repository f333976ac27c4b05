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
import { DataType, type Field, RecordBatchReader, type Vector } from 'apache-arrow'
import { usage } from '../errors.ts'
import { type Engine, quoteName } from '../store/engine.ts'
import { readStream } from '../store/files.ts'
import { fileColumn, unreadableFile } from './files.ts'

/** How a column of Arrow becomes one of the engine: its type, and each of its values. */
interface Column {
  readonly type: DuckDBType
  readonly value: (held: never) => DuckDBValue
}

/** Microseconds of Arrow's units of time, by their numbers; nanoseconds have none. */
const perMicro: readonly (bigint | undefined)[] = [1_000_000n, 1000n, 1n]

function columnOf({ name, type }: Field, path: string): Column {
  const inner = DataType.isDictionary(type) ? type.dictionary : type
  if (DataType.isInt(inner)) {
    const wide = inner.bitWidth === 64 && !inner.isSigned
    return { type: wide ? HUGEINT : BIGINT, value: (held: number | bigint) => BigInt(held) }
  }
  if (DataType.isFloat(inner)) return { type: DOUBLE, value: (held: number) => held }
  if (DataType.isUtf8(inner) || DataType.isLargeUtf8(inner)) return { type: VARCHAR, value: (held: string) => held }
  if (DataType.isBool(inner)) return { type: BOOLEAN, value: (held: boolean) => held }
  if (DataType.isDate(inner))
    return { type: DATE, value: (held: number | Date) => new DuckDBDateValue(Math.floor(Number(held) / 86_400_000)) }
  if (DataType.isTimestamp(inner)) {
    const each = perMicro[inner.unit]
    const micros = (held: bigint): bigint => (each === undefined ? held / 1000n : held * each)
    return inner.timezone
      ? { type: TIMESTAMPTZ, value: (held: bigint) => new DuckDBTimestampTZValue(micros(held)) }
      : { type: TIMESTAMP, value: (held: bigint) => new DuckDBTimestampValue(micros(held)) }
  }
  throw usage(`${path}: ${name}`, {
    expected: 'a column of numbers, texts, booleans, dates or instants',
    got: String(type),
  })
}

/** The values of a column as its file holds them: instants whole, which Arrow's own reading makes milliseconds. */
function valuesOf(vector: Vector, { value }: Column, path: string, name: string): DuckDBValue[] {
  const instants = DataType.isTimestamp(vector.type)
  const found: DuckDBValue[] = []
  for (const data of vector.data)
    for (let row = 0; row < data.length; row++) {
      const held: unknown = data.getValid(row)
        ? instants
          ? BigInt((data.values as BigInt64Array)[row] ?? 0n)
          : null
        : undefined
      if (held === undefined) found.push(null)
      else if (held === null) break
      else if (
        DataType.isTimestamp(vector.type) &&
        perMicro[vector.type.unit] === undefined &&
        (held as bigint) % 1000n !== 0n
      )
        throw usage(`${path}: ${name}`, {
          expected: 'instants of whole microseconds',
          got: `${String(held)} nanoseconds`,
        })
      else found.push(value(held as never))
    }
  if (instants) return found
  return Array.from(vector, (held: unknown) => (held === null ? null : value(held as never)))
}

const chunkRows = 2048

/** Reads Arrow files (or streams) into a temporary table of the engine, column by column; gives its name. */
export async function loadArrow(engine: Engine, paths: readonly string[]): Promise<string> {
  const table = 'own_arrow'
  let made = false
  for (const path of paths) {
    try {
      const reader = await RecordBatchReader.from(readStream(path))
      await reader.open()
      const { fields } = reader.schema
      const columns = fields.map((field) => columnOf(field, path))
      const declared = fields.map(({ name }, i) => `${quoteName(name)} ${String(columns[i]?.type)}`)
      if (!made) await engine.run(`CREATE TEMP TABLE ${table} (${[...declared, `${fileColumn} VARCHAR`].join(', ')})`)
      made = true
      async function* chunks(): AsyncGenerator<DuckDBDataChunk> {
        for await (const batch of reader)
          for (let from = 0; from < batch.numRows; from += chunkRows) {
            const some = batch.slice(from, from + chunkRows)
            const chunk = DuckDBDataChunk.create([...columns.map(({ type }) => type), VARCHAR], some.numRows)
            for (const [i, column] of columns.entries()) {
              const vector = some.getChildAt(i)
              if (vector) chunk.setColumnValues(i, valuesOf(vector, column, path, fields[i]?.name ?? ''))
            }
            chunk.setColumnValues(
              columns.length,
              Array.from({ length: some.numRows }, () => path),
            )
            yield chunk
          }
      }
      await engine.append(table, { columns: [], chunks: chunks() })
    } catch (error) {
      if (error instanceof Error && error.name === 'LakeError') throw error
      throw unreadableFile(path, error)
    }
  }
  return table
}
