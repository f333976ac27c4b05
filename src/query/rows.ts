import { DataType, type Field, type Table, type Vector } from 'apache-arrow'

/**
 * Turns an answer into plain objects of the type that you state.
 *
 * Timestamps and days are `Date`, an open end (`infinity` in SQL) is null. Whole numbers of 64 bits are `bigint`,
 * decimals exact texts, lists arrays, structs and maps objects.
 *
 * @param table Answer of a lake.
 * @returns An object for each row.
 * @example
 * ```ts
 * const lake = await openLake('data')
 * const table = await lake.sql(`SELECT t, v FROM points WHERE metric = 'supply/current_pit' AND asset = $1
 *   AND currency = 'native' AND "interval" = '24h' ORDER BY t LIMIT 1`, ['BTC'])
 * const [first] = rows<{ t: Date; v: number }>(table)
 * console.log(first?.t.getUTCFullYear(), typeof first?.v) // → 2019 number
 * await lake.close()
 * ```
 */
export function rows<T = Record<string, unknown>>(table: Table): T[] {
  const fields: readonly Field<DataType>[] = table.schema.fields
  const columns = fields.map(({ name, type }, k) => [name, reader(type, table.getChildAt(k))] as const)
  return Array.from(
    { length: table.numRows },
    (_, n) => Object.fromEntries(columns.map(([name, read]) => [name, read(n)])) as T,
  )
}

/**
 * Reads a column place by place. Arrow itself fails at an instant that has no number of milliseconds, such as infinity.
 */
function reader(type: DataType, column: Vector | null): (n: number) => unknown {
  if (!DataType.isTimestamp(type)) return (n) => plain(type, column?.get(n))
  const raw = column?.toArray() as BigInt64Array
  return (n) => (column?.isValid(n) ? dated(Number(raw[n]) * 1000 ** (1 - type.unit)) : null)
}

/** Converts a value of Arrow's to a plain value of a program. */
function plain(type: DataType, value: unknown): unknown {
  if (value === null || value === undefined) return null
  if (DataType.isTimestamp(type) || DataType.isDate(type)) return dated(Number(value))
  if (DataType.isDecimal(type)) return decimal(value as Uint32Array, type.scale)
  if (DataType.isList(type) || DataType.isFixedSizeList(type)) {
    const [item] = type.children as readonly Field<DataType>[]
    return item && [...(value as Vector)].map((element) => plain(item.type, element))
  }
  if (DataType.isStruct(type)) {
    const types = new Map(type.children.map((field) => [field.name, field.type]))
    const members = [...(value as Iterable<readonly [string, unknown]>)]
    return Object.fromEntries(members.map(([name, member]) => [name, plain(types.get(name) as DataType, member)]))
  }
  if (DataType.isMap(type)) {
    const entryType = type.children[0]?.type.children[1] as Field<DataType>
    return Object.fromEntries(
      [...(value as Iterable<readonly [string, unknown]>)].map(([key, entry]) => [key, plain(entryType.type, entry)]),
    )
  }
  return value
}

/** Converts a date; null for DuckDB's infinity, which lies beyond the calendar. */
function dated(milliseconds: number): Date | null {
  const date = new Date(milliseconds)
  return Number.isNaN(date.getTime()) ? null : date
}

/** Converts 128 bits, the lowest first, in two's complement. */
function decimal(words: Uint32Array, scale: number): bigint | string {
  const whole = BigInt.asIntN(
    128,
    words.reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n),
  )
  if (scale === 0) return whole
  const digits = String(whole < 0n ? -whole : whole).padStart(scale + 1, '0')
  return `${whole < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}
