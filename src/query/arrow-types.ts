import type { DuckDBStructType, DuckDBType } from '@duckdb/node-api'
import {
  Binary,
  Bool,
  type DataType,
  DateDay,
  Decimal,
  Field,
  FixedSizeList,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  List,
  Map_,
  Struct,
  TimeMicrosecond,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
} from 'apache-arrow'
import { typeIds } from '../store/engine.ts'

/** Types of one width that both sides lay out alike. */
const plain: Readonly<Record<number, () => DataType>> = {
  [typeIds.BOOLEAN]: () => new Bool(),
  [typeIds.TINYINT]: () => new Int8(),
  [typeIds.SMALLINT]: () => new Int16(),
  [typeIds.INTEGER]: () => new Int32(),
  [typeIds.BIGINT]: () => new Int64(),
  [typeIds.UTINYINT]: () => new Uint8(),
  [typeIds.USMALLINT]: () => new Uint16(),
  [typeIds.UINTEGER]: () => new Uint32(),
  [typeIds.UBIGINT]: () => new Uint64(),
  [typeIds.FLOAT]: () => new Float32(),
  [typeIds.DOUBLE]: () => new Float64(),
  [typeIds.DATE]: () => new DateDay(),
  [typeIds.TIME]: () => new TimeMicrosecond(),
  [typeIds.TIMESTAMP]: () => new TimestampMicrosecond(),
  [typeIds.TIMESTAMP_S]: () => new TimestampSecond(),
  [typeIds.TIMESTAMP_MS]: () => new TimestampMillisecond(),
  [typeIds.TIMESTAMP_NS]: () => new TimestampNanosecond(),
  [typeIds.TIMESTAMP_TZ]: () => new TimestampMicrosecond('UTC'),
  [typeIds.HUGEINT]: () => new Decimal(0, 38, 128),
  [typeIds.BLOB]: () => new Binary(),
}

/** The Arrow type that holds every value of the DuckDB type exactly; what Arrow has no such type for becomes text. */
export function arrowType(type: DuckDBType): DataType {
  const simple = plain[type.typeId]
  if (simple) return simple()
  if (type.typeId === typeIds.DECIMAL) {
    const { scale, width } = type
    return new Decimal(scale, width, 128)
  }
  if (type.typeId === typeIds.LIST) return new List(item(type.valueType))
  if (type.typeId === typeIds.ARRAY) {
    const { length, valueType } = type
    return new FixedSizeList(length, item(valueType))
  }
  if (type.typeId === typeIds.STRUCT) return new Struct(entries(type))
  if (type.typeId === typeIds.MAP) {
    const { keyType, valueType } = type
    const pair = new Struct<{ key: DataType; value: DataType }>([
      new Field('key', arrowType(keyType), false),
      new Field('value', arrowType(valueType), true),
    ])
    return new Map_(new Field('entries', pair, false), false)
  }
  return new Utf8()
}

function item(type: DuckDBType): Field {
  return new Field('item', arrowType(type), true)
}

function entries(type: DuckDBStructType): Field[] {
  return type.entryTypes.map((entry, i) => new Field(type.entryNames[i] ?? '', arrowType(entry), true))
}
