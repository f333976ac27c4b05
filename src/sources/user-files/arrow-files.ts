import { machineLack } from '../../lake/store/file-errors.ts'
import { zstdDecompressSync } from 'node:zlib'
import {
  type Column,
  CompressionType,
  type DataType,
  setCompressionCodec,
  type Table,
  tableFromIPC,
  TimeUnit,
  Type,
} from '@uwdata/flechette'
import { LakeError, usage } from '../../base/errors.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { readBytes } from '../../lake/store/files.ts'
import { unpackLz4 } from '../../lake/store/lz4.ts'
import { appendTexts, createTextTable } from '../../lake/store/text-table.ts'
import { type FileColumn, refuseColumn } from './file-columns.ts'

/** Arrow files whose columns are read once it is known which of them a mapping uses. */
interface ArrowRelation {
  readonly relation: string
  readonly columns: readonly FileColumn[]
  /** Fills the relation with these columns; the others have no values. */
  readonly load: (names: readonly string[]) => Promise<void>
}

/** A value as a text, which is how CSV has it; null for none. */
type Spelling = (value: unknown) => string | null

/** A file, and how its columns are spelt; null for those that cannot be. */
interface ArrowFile {
  readonly path: string
  readonly spellings: ReadonlyMap<string, Spelling | null>
}

const notWritten = (): never => {
  throw new RangeError('nothing is compressed here')
}

setCompressionCodec(CompressionType.LZ4_FRAME, { encode: notWritten, decode: unpackLz4 })
setCompressionCodec(CompressionType.ZSTD, {
  encode: notWritten,
  decode: (bytes: Uint8Array, size: number) => {
    // A copy, because numbers must be aligned to their size.
    const unpacked = new Uint8Array(zstdDecompressSync(bytes, { maxOutputLength: size }))
    if (unpacked.length !== size) throw new RangeError(`zstd: ${unpacked.length} bytes instead of ${size}`)
    return unpacked
  },
})

const table = 'arrow_rows'

/** Reads the heads of Arrow files or streams; columns are matched by their names. */
export async function readArrowFiles(
  engine: Engine,
  paths: readonly string[],
  fileColumn: string,
): Promise<ArrowRelation> {
  const files: ArrowFile[] = []
  const columns = new Map<string, FileColumn>()
  for (const path of paths) {
    const { schema } = await openArrow(path)
    const spellings = new Map<string, Spelling | null>()
    for (const { name, type } of schema.fields) {
      const spelling = spellingOf(type)
      if (spellings.has(name)) throw usage(`${path}: column ${name}`, { expected: 'one column of a name', got: 'two' })
      spellings.set(name, spelling)
      const expected = 'numbers, texts, booleans, dates, instants, or lists and objects of such'
      const unreadable =
        columns.get(name)?.unreadable ??
        (spelling ? undefined : refuseColumn(path, name, expected, nameOf(type), 'write the column with such a type'))
      columns.set(name, { name, type: 'VARCHAR', ...(unreadable && { unreadable }) })
    }
    files.push({ path, spellings })
  }
  for (const { path, spellings } of files)
    for (const { name, unreadable } of columns.values())
      if (!unreadable && !spellings.has(name)) {
        const expected = `the columns of the other files, as ${files.find((file) => file.spellings.has(name))?.path}`
        const lacking = refuseColumn(path, name, expected, 'no such column', 'import these files apart')
        columns.set(name, { name, type: 'VARCHAR', unreadable: lacking })
      }
  const load = async (names: readonly string[]): Promise<void> => {
    await createTextTable(engine, table, [...names, fileColumn])
    for (const { path, spellings } of files) {
      const read = await openArrow(path)
      await appendTexts(engine, table, {
        rows: read.numRows,
        cells: [...names.map((name) => cellsOf(read.getChild(name), spellings.get(name) ?? null, path)), () => path],
      })
    }
  }
  return { relation: table, columns: [...columns.values()], load }
}

function cellsOf(column: Column<unknown>, spelling: Spelling | null, path: string): (row: number) => string | null {
  return (row) => {
    try {
      const value = column.at(row)
      return value === null || value === undefined || spelling === null ? null : spelling(value)
    } catch (error) {
      throw brokenFile(path, error)
    }
  }
}

/** Last bytes of a complete file; a stream has a different end. */
const fileEnd = Buffer.from('ARROW1')
const streamEnd = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])

/** Arrow files are read into memory whole. */
const mostBytes = 2 ** 31 - 1

async function openArrow(path: string): Promise<Table> {
  const bytes = await readBytes(path).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error
    throw usage(path, { expected: `at most ${mostBytes} bytes of Arrow`, got: 'more', next: 'write it as Parquet' })
  })
  const isFile = bytes.subarray(0, fileEnd.length).equals(fileEnd)
  if (bytes.subarray(0, 4).equals(Buffer.from('FEA1')))
    throw usage(path, { expected: 'an Arrow file or stream', got: 'version 1 of Feather', next: 'write version 2' })
  const end = isFile ? fileEnd : streamEnd
  if (bytes.length < 2 * end.length || !bytes.subarray(-end.length).equals(end))
    throw brokenFile(path, new RangeError(`no end of an Arrow ${isFile ? 'file' : 'stream'}`))
  try {
    return tableFromIPC(bytes, { useBigInt: true, useBigIntTimestamp: true, useDecimalInt: true })
  } catch (error) {
    throw brokenFile(path, error)
  }
}

function brokenFile(path: string, error: unknown): LakeError {
  if (error instanceof LakeError) return error
  const lack = machineLack(error, `reading ${path}`)
  if (lack !== undefined) return lack
  const got = error instanceof Error ? error.message : String(error)
  return usage(path, {
    expected: 'a file that is whole',
    got: got.slice(0, 200),
    next: 'nothing of it was taken',
    cause: error,
  })
}

/** Returns the name of a type for people. */
function nameOf({ typeId }: DataType): string {
  return Object.entries(Type).find(([, id]) => id === typeId)?.[0] ?? `type ${typeId}`
}

/** Returns the formatter for values of a type; null for types that cannot be a value of a series. */
function spellingOf(type: DataType): Spelling | null {
  switch (type.typeId) {
    case Type.Null:
      return () => null
    case Type.Bool:
    case Type.Int:
    case Type.Utf8:
    case Type.LargeUtf8:
    case Type.Utf8View:
      return String
    case Type.Float:
      return (value) => (Object.is(value, -0) ? '-0.0' : String(value))
    case Type.Decimal:
      return (value) => decimalText(BigInt(String(value)), type.scale)
    case Type.Date:
      return (value) => instantText(BigInt(String(value)) * 1000n, 0n, '').slice(0, 10)
    case Type.Timestamp: {
      const { unit, timezone } = type
      return (value) => timestampText(BigInt(String(value)), unit, timezone ? 'Z' : '')
    }
    case Type.Dictionary:
      return spellingOf(type.dictionary)
    case Type.RunEndEncoded:
      return spellingOf(type.children[1].type)
    case Type.List:
    case Type.LargeList:
    case Type.ListView:
    case Type.LargeListView:
    case Type.FixedSizeList:
    case Type.Struct:
      return jsonOf(type)
    default:
      return null
  }
}

/** Microseconds of a unit, and how many of it are a microsecond. */
const units: Readonly<Record<number, readonly [micros: bigint, perMicro: bigint]>> = {
  [TimeUnit.SECOND]: [1_000_000n, 1n],
  [TimeUnit.MILLISECOND]: [1000n, 1n],
  [TimeUnit.MICROSECOND]: [1n, 1n],
  [TimeUnit.NANOSECOND]: [1n, 1000n],
}

function timestampText(count: bigint, unit: number, zone: string): string {
  const [micros, perMicro] = units[unit] ?? [1n, 1n]
  const rest = ((count % perMicro) + perMicro) % perMicro
  return instantText(((count - rest) / perMicro) * micros, rest, zone)
}

/** Formats a timestamp; nanoseconds below a microsecond are appended, so that the reader refuses them. */
function instantText(micros: bigint, nanos: bigint, zone: string): string {
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n
  const date = new Date(Number((micros - fraction) / 1000n))
  if (Number.isNaN(date.getTime())) return `beyond the calendar: ${micros} microseconds`
  const rest = nanos === 0n ? '' : String(nanos).padStart(3, '0')
  return `${date.toISOString().slice(0, -5)}.${String(fraction).padStart(6, '0')}${rest}${zone}`
}

/** Formats a scaled integer as a decimal with every digit. */
function decimalText(scaled: bigint, scale: number): string {
  if (scale <= 0) return String(scaled * 10n ** BigInt(-scale))
  const digits = String(scaled < 0n ? -scaled : scaled).padStart(scale + 1, '0')
  return `${scaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** Types that JSON spells without quotes. */
const bare: ReadonlySet<number> = new Set([Type.Bool, Type.Int, Type.Float, Type.Decimal])

/** Lists and objects as JSON; null if a part of them cannot be spelt. */
function jsonOf(type: DataType): Spelling | null {
  if (type.typeId === Type.Struct) {
    const parts = type.children.map(({ name, type: inner }) => ({ name, spell: jsonOf(inner) }))
    if (parts.some(({ spell }) => spell === null)) return null
    return (value) => {
      const record = value as Readonly<Record<string, unknown>>
      return `{${parts.map(({ name, spell }) => `${JSON.stringify(name)}:${jsonCell(record[name], spell)}`).join(',')}}`
    }
  }
  if (
    'children' in type &&
    type.typeId !== Type.RunEndEncoded &&
    type.typeId !== Type.Union &&
    type.typeId !== Type.Map
  ) {
    const spell = jsonOf((type.children as readonly { readonly type: DataType }[])[0]?.type ?? type)
    return (
      spell && ((value) => `[${Array.from(value as Iterable<unknown>, (member) => jsonCell(member, spell)).join(',')}]`)
    )
  }
  const spell = spellingOf(type)
  if (spell === null) return null
  return bare.has(innerOf(type).typeId) ? spell : (value) => JSON.stringify(spell(value))
}

function jsonCell(value: unknown, spell: Spelling | null): string {
  return value === null || value === undefined ? 'null' : (spell?.(value) ?? 'null')
}

/** Returns the type of the values behind indices or runs. */
function innerOf(type: DataType): DataType {
  if (type.typeId === Type.Dictionary) return innerOf(type.dictionary)
  return type.typeId === Type.RunEndEncoded ? innerOf(type.children[1].type) : type
}
