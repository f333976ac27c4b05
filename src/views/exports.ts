import { footerSql } from '../store/parquet.ts'
import { writeStream } from '../store/files.ts'
import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { sha256File } from '../ledger/commit.ts'
import { type Disk, makeFolder, namesIn } from '../store/disk.ts'
import { type Engine, quote } from '../store/engine.ts'
import { inLake, places } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Exported } from './ledger-tables.ts'

/** The folder of what is made for the views: the ledger's tables. The journal names none of it. */
export const exportsFolder = places.exports

/** A table's export: its file and whether it had to be written. */
export interface ExportedFile {
  readonly path: string
  readonly written: boolean
}

/** What writing exports needs. */
export interface ExportDeps {
  /** Opened with the first table that is written. */
  readonly engine: () => Promise<Engine>
  readonly disk: Disk
  /** Different for every builder at work. */
  readonly mark: string
}

/**
 * Writes the table as Parquet, unless a file with exactly these rows is there. Files are never overwritten or removed
 * here: an open session goes on reading the ones that it knows.
 */
export async function exportTable(
  ledger: Ledger,
  table: string,
  { columns, lines }: Exported,
  { engine, disk, mark }: ExportDeps,
): Promise<ExportedFile> {
  const folder = inLake(ledger.root, exportsFolder)
  await makeFolder(disk, folder)
  const text = inLake(ledger.root, `${exportsFolder}/.tmp-${mark}-${table}.jsonl`)
  const temporary = inLake(ledger.root, `${exportsFolder}/.tmp-${mark}-${table}.parquet`)
  const digest = digestOf(lines(ledger), columns)
  const held = await heldExport(ledger.root, table, digest)
  if (held !== undefined) return { path: inLake(ledger.root, `${exportsFolder}/${held}`), written: false }
  try {
    await writeLines(text, lines(ledger))
    await (await engine()).run(copySql(text, temporary, columns))
    const name = await placeExport(ledger, table, digest, temporary, disk)
    return { path: inLake(ledger.root, `${exportsFolder}/${name}`), written: true }
  } finally {
    await disk.remove(text)
    await disk.remove(temporary)
  }
}

/** What rows with these columns are known by; most tables are as they were, and writing them out would be for nothing. */
function digestOf(lines: Iterable<string>, columns: Exported['columns']): string {
  const hash = createHash('sha256').update(JSON.stringify(columns))
  for (const block of blocksOf(lines)) hash.update(block)
  return hash.digest('hex').slice(0, 16)
}

/**
 * The name of a table's file that stands for something and is as it was written: names begin with the checksum of the
 * bytes, so that one that a power cut has torn is not taken.
 */
export async function heldExport(root: string, table: string, stands: string): Promise<string | undefined> {
  for (const name of await namesIn(inLake(root, exportsFolder))) {
    if (!name.startsWith(`${table}-`) || !name.endsWith(`-${stands}.parquet`)) continue
    const checksum = await sha256File(inLake(root, `${exportsFolder}/${name}`))
    if (name.startsWith(`${table}-${checksum.slice(0, 16)}-`)) return name
  }
  return undefined
}

/** Gives a written file its name in the folder of exports, with the checksum of its bytes, the version and what it stands for. */
export async function placeExport(
  ledger: Ledger,
  table: string,
  stands: string,
  temporary: string,
  disk: Disk,
): Promise<string> {
  const bytes = (await sha256File(temporary)).slice(0, 16)
  const name = `${table}-${bytes}-${String(ledger.head().version).padStart(10, '0')}-${stands}.parquet`
  await disk.sync(temporary)
  await disk.move(temporary, inLake(ledger.root, `${exportsFolder}/${name}`))
  return name
}

/** Whether a name is one that `placeExport` gives. */
export function isExport(name: string): boolean {
  return /^[a-z_]+-[0-9a-f]{16}-\d{10,}-[0-9a-f]{16}\.parquet$/.test(name)
}

const blockCharacters = 1 << 20

/** Writes one line a row. */
export async function writeLines(path: string, lines: Iterable<string>): Promise<void> {
  await pipeline(blocksOf(lines), writeStream(path))
}

/** The lines, each with its end, in texts of some size. */
function* blocksOf(lines: Iterable<string>): Generator<string> {
  let block = ''
  for (const line of lines) {
    block += `${line}\n`
    if (block.length < blockCharacters) continue
    yield block
    block = ''
  }
  yield block
}

/** The statement that makes Parquet of written lines; instants stand in them as microseconds. */
export function copySql(
  from: string,
  to: string,
  columns: Exported['columns'],
  footer: Readonly<Record<string, string>> = {},
): string {
  const raw = columns.map(([name, type]) => `${quote(name)}: ${quote(type === 'TIMESTAMPTZ' ? 'BIGINT' : type)}`)
  const typed = columns.map(([name, type]) =>
    type === 'TIMESTAMPTZ' ? `make_timestamptz("${name}") AS "${name}"` : `"${name}"`,
  )
  return `COPY (SELECT ${typed.join(', ')} FROM read_json(${quote(from)}, format = 'newline_delimited', hive_partitioning = false,
    maximum_object_size = 268435456, columns = {${raw.join(', ')}}))
    TO ${quote(to)} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd${footerSql(footer)})`
}
