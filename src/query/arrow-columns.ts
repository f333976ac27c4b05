import type {
  DuckDBBlobValue,
  DuckDBDecimalValue,
  DuckDBListVector,
  DuckDBStructVector,
  DuckDBType,
  DuckDBVector,
} from '@duckdb/node-api'
import { type Data, type DataType, makeData } from 'apache-arrow'
import { typeIds } from '../store/engine.ts'
import { arrowType } from './arrow-types.ts'
import { bitsOf, inside, isSet, type Numbers, partOf } from './vectors.ts'

/** Gathers the values of one column from vectors and gives them out as Arrow data. */
export interface ColumnBuilder {
  /** Takes `count` values of the vector, beginning with the one at `from`. */
  add(vector: DuckDBVector, from: number, count: number): void
  /** Takes one NULL. */
  skip(): void
  /** Everything taken since the last call. */
  take(): Data
}

/** The builder for a column of the DuckDB type. */
export function columnBuilder(type: DuckDBType): ColumnBuilder {
  const arrow = arrowType(type)
  const size = widths[type.typeId]
  if (size !== undefined) return fixed(arrow, size)
  if (type.typeId === typeIds.BOOLEAN) return booleans(arrow)
  if (type.typeId === typeIds.HUGEINT || type.typeId === typeIds.DECIMAL) return decimals(arrow)
  if (type.typeId === typeIds.LIST) return lists(arrow, columnBuilder(type.valueType))
  if (type.typeId === typeIds.ARRAY) {
    const { length, valueType } = type
    return arrays(arrow, columnBuilder(valueType), length)
  }
  if (type.typeId === typeIds.STRUCT) return structs(arrow, type.entryTypes.map(columnBuilder))
  if (type.typeId === typeIds.MAP) {
    const { keyType, valueType } = type
    return maps(arrow, structs(entriesOf(arrow), [columnBuilder(keyType), columnBuilder(valueType)]))
  }
  return bytes(arrow, type.typeId)
}

const widths: Readonly<Record<number, new (length: number) => Numbers>> = {
  [typeIds.TINYINT]: Int8Array,
  [typeIds.SMALLINT]: Int16Array,
  [typeIds.INTEGER]: Int32Array,
  [typeIds.BIGINT]: BigInt64Array,
  [typeIds.UTINYINT]: Uint8Array,
  [typeIds.USMALLINT]: Uint16Array,
  [typeIds.UINTEGER]: Uint32Array,
  [typeIds.UBIGINT]: BigUint64Array,
  [typeIds.FLOAT]: Float32Array,
  [typeIds.DOUBLE]: Float64Array,
  [typeIds.DATE]: Int32Array,
  [typeIds.TIME]: BigInt64Array,
  [typeIds.TIMESTAMP]: BigInt64Array,
  [typeIds.TIMESTAMP_S]: BigInt64Array,
  [typeIds.TIMESTAMP_MS]: BigInt64Array,
  [typeIds.TIMESTAMP_NS]: BigInt64Array,
  [typeIds.TIMESTAMP_TZ]: BigInt64Array,
}

/** One bit a value, set where there is one; remembers how many there are. */
class Presence {
  #bits = new Uint8Array(256)
  length = 0
  missing = 0

  add(present: boolean): void {
    if (this.length >> 3 >= this.#bits.length) this.#bits = grown(this.#bits, this.#bits.length * 2)
    if (present) this.#bits[this.length >> 3] = (this.#bits[this.length >> 3] ?? 0) | (1 << (this.length & 7))
    else this.missing++
    this.length++
  }

  take(): { length: number; nullCount: number; nullBitmap: Uint8Array | null } {
    const taken = {
      length: this.length,
      nullCount: this.missing,
      nullBitmap: this.missing === 0 ? null : this.#bits.slice(0, (this.length + 7) >> 3),
    }
    this.#bits = new Uint8Array(256)
    this.length = 0
    this.missing = 0
    return taken
  }
}

function grown<T extends Uint8Array | Int32Array | Uint32Array>(array: T, length: number): T {
  const larger = new (array.constructor as new (length: number) => T)(length)
  larger.set(array)
  return larger
}

function fixed(type: DataType, Store: new (length: number) => Numbers): ColumnBuilder {
  const presence = new Presence()
  let store = new Store(2048)
  const reserve = (length: number): void => {
    if (length <= store.length) return
    const larger = new Store(Math.max(length, store.length * 2))
    larger.set(store as never)
    store = larger
  }
  return {
    add(vector, from, count) {
      const { items } = inside(vector)
      const bits = bitsOf(vector)
      reserve(presence.length + count)
      store.set(items.subarray(from, from + count) as never, presence.length)
      for (let i = from; i < from + count; i++) presence.add(isSet(bits, i))
    },
    skip() {
      reserve(presence.length + 1)
      presence.add(false)
    },
    take() {
      const { length, ...nulls } = presence.take()
      return makeData({ type, length, ...nulls, data: store.slice(0, length) } as never)
    },
  }
}

function booleans(type: DataType): ColumnBuilder {
  const presence = new Presence()
  const values = new Presence()
  const one = (value: unknown): void => {
    presence.add(value !== null)
    values.add(value === true)
  }
  return {
    add: (vector, from, count) => {
      for (let i = from; i < from + count; i++) one(vector.getItem(i))
    },
    skip: () => one(null),
    take() {
      const { length, ...nulls } = presence.take()
      const taken = values.take()
      const data = taken.nullBitmap ?? new Uint8Array((length + 7) >> 3).fill(255)
      return makeData({ type, length, ...nulls, data } as never)
    },
  }
}

/** 128 bits a value, lowest word first. */
function decimals(type: DataType): ColumnBuilder {
  const presence = new Presence()
  let words = new Uint32Array(1024)
  const one = (value: bigint | null): void => {
    const at = presence.length * 4
    if (at + 4 > words.length) words = grown(words, words.length * 2)
    const whole = BigInt.asUintN(128, value ?? 0n)
    for (let k = 0; k < 4; k++) words[at + k] = Number((whole >> BigInt(32 * k)) & 0xffff_ffffn)
    presence.add(value !== null)
  }
  return {
    add(vector, from, count) {
      for (let i = from; i < from + count; i++) {
        const value = vector.getItem(i) as bigint | DuckDBDecimalValue | null
        one(value === null || typeof value === 'bigint' ? value : value.value)
      }
    },
    skip: () => one(null),
    take() {
      const { length, ...nulls } = presence.take()
      return makeData({ type, length, ...nulls, data: words.slice(0, length * 4) } as never)
    },
  }
}

/** Positions where the variable parts begin and end. */
class Offsets {
  #at = new Int32Array(1025)

  set(index: number, value: number): void {
    if (value > 0x7fff_ffff) throw new Error('more than 2 GB in one Arrow batch')
    if (index >= this.#at.length) this.#at = grown(this.#at, this.#at.length * 2)
    this.#at[index] = value
  }

  take(length: number): Int32Array {
    const taken = this.#at.slice(0, length + 1)
    this.#at = new Int32Array(1025)
    return taken
  }
}

const encoder = new TextEncoder()

function bytes(type: DataType, typeId: number): ColumnBuilder {
  const presence = new Presence()
  const offsets = new Offsets()
  let store = new Uint8Array(16_384)
  let used = 0
  const one = (value: Uint8Array | null): void => {
    if (value !== null) {
      if (used + value.length > store.length) store = grown(store, Math.max(store.length * 2, used + value.length))
      store.set(value, used)
      used += value.length
    }
    presence.add(value !== null)
    offsets.set(presence.length, used)
  }
  return {
    add(vector, from, count) {
      const read = readers[typeId]?.(vector) ?? ((i) => encoder.encode(String(vector.getItem(i))))
      const bits = bitsOf(vector)
      const overlay = inside(vector).validity === undefined
      for (let i = from; i < from + count; i++) {
        one(isSet(bits, i) && (!overlay || vector.getItem(i) !== null) ? read(i) : null)
      }
    },
    skip: () => one(null),
    take() {
      const { length, ...nulls } = presence.take()
      const data = store.slice(0, used)
      used = 0
      return makeData({ type, length, ...nulls, valueOffsets: offsets.take(length), data } as never)
    },
  }
}

type Reader = (index: number) => Uint8Array

const readers: Readonly<Record<number, (vector: DuckDBVector) => Reader>> = {
  [typeIds.BLOB]: (vector) => (i) => (vector.getItem(i) as DuckDBBlobValue).bytes,
  [typeIds.VARCHAR]: textReader,
}

/** Sixteen bytes stand for each text: its length, then itself if it is short, else its beginning and its address. */
function textReader(vector: DuckDBVector): Reader {
  const view = partOf(vector, 'dataView')
  let [low, high] = [-1n, -1n]
  let last: Uint8Array = new Uint8Array(0)
  return (i) => {
    const at = i * 16
    const length = view.getUint32(at, true)
    if (length <= 12) return new Uint8Array(view.buffer, view.byteOffset + at + 4, length)
    const [first, second] = [view.getBigUint64(at, true), view.getBigUint64(at + 8, true)]
    // The same text at the same address as in the row before, as in columns that repeat themselves.
    if (first !== low || second !== high) last = encoder.encode(String(vector.getItem(i)))
    low = first
    high = second
    return last
  }
}

function lists(type: DataType, child: ColumnBuilder): ColumnBuilder {
  const presence = new Presence()
  const offsets = new Offsets()
  let end = 0
  const close = (present: boolean): void => {
    presence.add(present)
    offsets.set(presence.length, end)
  }
  return {
    add(vector, from, count) {
      const list = vector as DuckDBListVector
      const bits = bitsOf(vector)
      for (let i = from; i < from + count; i++) {
        const present = isSet(bits, i)
        const length = present ? list.getEntryLength(i) : 0
        if (length > 0) child.add(list.childVector, list.getEntryOffset(i), length)
        end += length
        close(present)
      }
    },
    skip: () => close(false),
    take() {
      const { length, ...nulls } = presence.take()
      end = 0
      return makeData({ type, length, ...nulls, valueOffsets: offsets.take(length), child: child.take() } as never)
    },
  }
}

function maps(type: DataType, entries: ColumnBuilder): ColumnBuilder {
  const list = lists(type, entries)
  return { ...list, add: (vector, from, count) => list.add(listOf(vector), from, count) }
}

/** A map is a list of pairs inside. */
function listOf(vector: DuckDBVector): DuckDBVector {
  return partOf(vector, 'listVector')
}

function entriesOf(map: DataType): DataType {
  const pair = (map.children as readonly { readonly type: DataType }[])[0]?.type
  if (pair === undefined) throw new Error('a map without entries')
  return pair
}

function arrays(type: DataType, child: ColumnBuilder, length: number): ColumnBuilder {
  const presence = new Presence()
  const skipItems = (): void => {
    for (let k = 0; k < length; k++) child.skip()
  }
  return {
    add(vector, from, count) {
      const bits = bitsOf(vector)
      const childData = partOf(vector, 'childData')
      for (let i = from; i < from + count; i++) {
        const present = isSet(bits, i)
        if (present) child.add(childData, i * length, length)
        else skipItems()
        presence.add(present)
      }
    },
    skip() {
      skipItems()
      presence.add(false)
    },
    take: () => makeData({ type, ...presence.take(), child: child.take() } as never),
  }
}

function structs(type: DataType, children: readonly ColumnBuilder[]): ColumnBuilder {
  const presence = new Presence()
  return {
    add(vector, from, count) {
      const struct = vector as DuckDBStructVector
      for (let i = from; i < from + count; i++) presence.add(struct.isItemValid(i))
      for (const [k, child] of children.entries()) child.add(struct.entryVectorAt(k), from, count)
    },
    skip() {
      for (const child of children) child.skip()
      presence.add(false)
    },
    take: () => makeData({ type, ...presence.take(), children: children.map((child) => child.take()) } as never),
  }
}
