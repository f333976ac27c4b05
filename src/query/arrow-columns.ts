import type {
  DuckDBBlobValue,
  DuckDBDecimalValue,
  DuckDBListVector,
  DuckDBStructVector,
  DuckDBType,
  DuckDBVector,
} from '@duckdb/node-api'
import * as arrow from 'apache-arrow'
import { Map_ as ArrowMap } from 'apache-arrow'
import { typeIds } from '../lake/store/engine.ts'
import { type Numbers, insideOf, presenceIn } from './vectors.ts'

/** Types of one width that both sides lay out alike. */
const fixed: Readonly<Record<number, readonly [type: arrow.DataType, store: new (length: number) => Numbers]>> = {
  [typeIds.TINYINT]: [new arrow.Int8(), Int8Array],
  [typeIds.SMALLINT]: [new arrow.Int16(), Int16Array],
  [typeIds.INTEGER]: [new arrow.Int32(), Int32Array],
  [typeIds.BIGINT]: [new arrow.Int64(), BigInt64Array],
  [typeIds.UTINYINT]: [new arrow.Uint8(), Uint8Array],
  [typeIds.USMALLINT]: [new arrow.Uint16(), Uint16Array],
  [typeIds.UINTEGER]: [new arrow.Uint32(), Uint32Array],
  [typeIds.UBIGINT]: [new arrow.Uint64(), BigUint64Array],
  [typeIds.FLOAT]: [new arrow.Float32(), Float32Array],
  [typeIds.DOUBLE]: [new arrow.Float64(), Float64Array],
  [typeIds.DATE]: [new arrow.DateDay(), Int32Array],
  [typeIds.TIME]: [new arrow.TimeMicrosecond(), BigInt64Array],
  [typeIds.TIMESTAMP]: [new arrow.TimestampMicrosecond(), BigInt64Array],
  [typeIds.TIMESTAMP_S]: [new arrow.TimestampSecond(), BigInt64Array],
  [typeIds.TIMESTAMP_MS]: [new arrow.TimestampMillisecond(), BigInt64Array],
  [typeIds.TIMESTAMP_NS]: [new arrow.TimestampNanosecond(), BigInt64Array],
  [typeIds.TIMESTAMP_TZ]: [new arrow.TimestampMicrosecond('UTC'), BigInt64Array],
}

/** Maps a DuckDB type to the Arrow type that represents every value exactly; text if Arrow has none. */
export function arrowType(type: DuckDBType): arrow.DataType {
  const field = (name: string, of: DuckDBType, nullable = true): arrow.Field<arrow.DataType> =>
    new arrow.Field(name, arrowType(of), nullable)
  switch (type.typeId) {
    case typeIds.BOOLEAN:
      return new arrow.Bool()
    case typeIds.BLOB:
      return new arrow.Binary()
    case typeIds.HUGEINT:
      return new arrow.Decimal(0, 38, 128)
    case typeIds.DECIMAL:
      return new arrow.Decimal(type.scale, type.width, 128)
    case typeIds.LIST:
      return new arrow.List(field('item', type.valueType))
    case typeIds.ARRAY:
      return new arrow.FixedSizeList(type.length, field('item', type.valueType))
    case typeIds.STRUCT: {
      const { entryNames, entryTypes } = type
      return new arrow.Struct(entryTypes.map((entry, i) => field(entryNames[i] ?? '', entry)))
    }
    case typeIds.MAP: {
      const key = field('key', type.keyType, false)
      const value = field('value', type.valueType)
      const pair = new arrow.Struct<{ key: arrow.DataType; value: arrow.DataType }>([key, value])
      return new ArrowMap(new arrow.Field('entries', pair, false), false)
    }
    default:
      return fixed[type.typeId]?.[0] ?? new arrow.Utf8()
  }
}

/** Consecutive values of a vector; `count` NULLs if it has no vector. */
interface Run {
  readonly vector: DuckDBVector | null
  readonly from: number
  readonly count: number
}

/** Converts the values of runs, one after the other, to Arrow data. */
export function dataOf(type: DuckDBType, runs: readonly Run[]): arrow.Data {
  const columnType = arrowType(type)
  switch (type.typeId) {
    case typeIds.BOOLEAN:
      return makeData(columnType, runs, { data: bits(runs, (vector) => (i) => vector.getItem(i) === true).set })
    case typeIds.HUGEINT:
    case typeIds.DECIMAL:
      return makeData(columnType, runs, { data: words(runs) })
    case typeIds.LIST: {
      const { valueOffsets, items } = listed(runs)
      return makeData(columnType, runs, { valueOffsets, child: dataOf(type.valueType, items) })
    }
    case typeIds.MAP: {
      // A map is a list of pairs inside.
      const lists = runs.map((run) => ({ ...run, vector: run.vector && insideOf(run.vector, 'listVector') }))
      const { valueOffsets, items } = listed(lists)
      const [pair] = columnType.children as readonly arrow.Field[]
      const child = structs(pair?.type as arrow.DataType, [type.keyType, type.valueType], items)
      return makeData(columnType, lists, { valueOffsets, child })
    }
    case typeIds.ARRAY: {
      const { length, valueType } = type
      const items = eachOf(
        runs,
        (vector, i): Run =>
          vector === null
            ? { vector, from: 0, count: length }
            : { vector: insideOf(vector, 'childData'), from: i * length, count: length },
      )
      return makeData(columnType, runs, { child: dataOf(valueType, items) })
    }
    case typeIds.STRUCT:
      return structs(columnType, type.entryTypes, runs)
    default: {
      const store = fixed[type.typeId]?.[1]
      return makeData(columnType, runs, store === undefined ? texts(runs, type.typeId) : { data: numbers(runs, store) })
    }
  }
}

/** Builds the data of a type with its validity bits. */
function makeData(type: arrow.DataType, runs: readonly Run[], parts: object): arrow.Data {
  const { set, length, count } = bits(runs, presenceIn)
  return arrow.makeData({
    type,
    length,
    nullCount: length - count,
    nullBitmap: count === length ? null : set,
    ...parts,
    // `makeData` has one overload per type; which parts belong to `type` is known to the callers only.
  } as never)
}

/** Builds a bitmap, one bit for each value, set if `holds` is true for it; never set for values without a vector. */
function bits(runs: readonly Run[], holds: (vector: DuckDBVector) => (index: number) => boolean) {
  const length = lengthOf(runs)
  const set = new Uint8Array((length + 7) >> 3)
  let at = 0
  let count = 0
  for (const run of runs) {
    const items = run.vector && holds(run.vector)
    for (let i = run.from; i < run.from + run.count; i++, at++)
      if (items?.(i)) {
        set[at >> 3] = (set[at >> 3] ?? 0) | (1 << (at & 7))
        count++
      }
  }
  return { set, length, count }
}

function lengthOf(runs: readonly Run[]): number {
  return runs.reduce((sum, { count }) => sum + count, 0)
}

/** Maps each value in order; `make` gets a null vector for a value that is NULL. */
function eachOf<T>(runs: readonly Run[], make: (vector: DuckDBVector | null, index: number) => T): T[] {
  return runs.flatMap(({ vector, from, count }) => {
    const presence = vector && presenceIn(vector)
    return Array.from({ length: count }, (_, i) => make(presence?.(from + i) ? vector : null, from + i))
  })
}

function numbers(runs: readonly Run[], Store: new (length: number) => Numbers): Numbers {
  const data = new Store(lengthOf(runs))
  let at = 0
  for (const { vector, from, count } of runs) {
    // The store has the same element type as the vector's items; their union has no common `set`.
    if (vector !== null) data.set(insideOf(vector, 'items').subarray(from, from + count) as never, at)
    at += count
  }
  return data
}

/** Builds the data of 128-bit values, lowest word first. */
function words(runs: readonly Run[]): Uint32Array {
  const data = new Uint32Array(4 * lengthOf(runs))
  const values = eachOf(runs, (vector, i) => (vector?.getItem(i) ?? 0n) as bigint | DuckDBDecimalValue)
  for (const [at, value] of values.entries()) {
    const whole = BigInt.asUintN(128, typeof value === 'bigint' ? value : value.value)
    for (let k = 0; k < 4; k++) data[4 * at + k] = Number((whole >> BigInt(32 * k)) & 0xffff_ffffn)
  }
  return data
}

/** Builds the data of texts: bytes, and types that Arrow lacks as text. */
function texts(runs: readonly Run[], typeId: DuckDBType['typeId']) {
  const valueOffsets = new Int32Array(lengthOf(runs) + 1)
  let data = new Uint8Array(8 * valueOffsets.length)
  let at = 0
  let end = 0
  for (const { vector, from, count } of runs) {
    const isThere = vector ? presenceIn(vector) : () => false
    const read = vector && (typeId === typeIds.VARCHAR ? textReader(vector) : bytesReader(vector, typeId))
    for (let i = from; i < from + count; i++) {
      if (read && isThere(i)) {
        const part = read(i)
        const least = end + part.length
        if (least > data.length) data = new Uint8Array(data.buffer.transfer(Math.max(2 * data.length, least)))
        data.set(part, end)
        end = ended(least)
      }
      valueOffsets[++at] = end
    }
  }
  return { valueOffsets, data: data.subarray(0, end) }
}

/** Checks the end of data, up to which Arrow can count. */
function ended(end: number): number {
  if (end > 0x7fff_ffff) throw new Error('more than 2 GB in one Arrow batch')
  return end
}

const encoder = new TextEncoder()

function bytesReader(vector: DuckDBVector, typeId: DuckDBType['typeId']): (index: number) => Uint8Array {
  return typeId === typeIds.BLOB
    ? (i) => (vector.getItem(i) as DuckDBBlobValue).bytes
    : (i) => encoder.encode(String(vector.getItem(i)))
}

/**
 * Builds a reader of texts. Each text has an entry of sixteen bytes: its length, then itself if it is short, else its
 * beginning and its address.
 */
function textReader(vector: DuckDBVector): (index: number) => Uint8Array {
  const view = insideOf(vector, 'dataView')
  let low = -1n
  let high = -1n
  let last: Uint8Array = new Uint8Array(0)
  return (i) => {
    const at = i * 16
    const length = view.getUint32(at, true)
    if (length <= 12) return new Uint8Array(view.buffer, view.byteOffset + at + 4, length)
    const first = view.getBigUint64(at, true)
    const second = view.getBigUint64(at + 8, true)
    // The same text at the same address as in the row before, as in columns that repeat themselves.
    if (first !== low || second !== high) last = encoder.encode(String(vector.getItem(i)))
    low = first
    high = second
    return last
  }
}

/** Computes the offsets of lists and the runs of their items. */
function listed(runs: readonly Run[]): { readonly valueOffsets: Int32Array; readonly items: readonly Run[] } {
  const items = eachOf(runs, (vector, i): Run => {
    const list = vector as DuckDBListVector | null
    return { vector: list && list.childVector, from: list?.getEntryOffset(i) ?? 0, count: list?.getEntryLength(i) ?? 0 }
  })
  const valueOffsets = new Int32Array(items.length + 1)
  for (const [at, { count }] of items.entries()) valueOffsets[at + 1] = ended((valueOffsets[at] ?? 0) + count)
  return { valueOffsets, items }
}

function structs(type: arrow.DataType, entries: readonly DuckDBType[], runs: readonly Run[]): arrow.Data {
  const entryOf = (vector: DuckDBVector | null, k: number) => vector && (vector as DuckDBStructVector).entryVectorAt(k)
  const children = entries.map((entry, k) =>
    dataOf(
      entry,
      runs.map((run) => ({ ...run, vector: entryOf(run.vector, k) })),
    ),
  )
  return makeData(type, runs, { children })
}
