import { readInto, readStream, writeStream } from '../store/files.ts'
import { createHash } from 'node:crypto'
import { StringDecoder } from 'node:string_decoder'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { LakeError } from '../../base/errors.ts'
import { atOneInstant, type IndexCell, type Index, type IndexRow } from './index-rows.ts'
import { codeOf, type Disk, makeFolder } from '../store/disk.ts'
import { layoutNumber, putItBack, refuseOtherLayout } from './entry.ts'
import { checkpointFile, inLake, places } from '../store/layout.ts'
import { proveLive } from './live-digest.ts'

/** The source of a checkpoint: an index with exactly the versions up to its own. */
interface Foldable extends Index {
  readonly root: string
  head(): { readonly lake: string | null; readonly version: number }
  tables(): string[]
  rowsOf(table: string): Iterable<IndexRow>
}

const flushBytes = 1 << 20

/**
 * Folds everything up to the index's version into one file: a header line, then, compressed, a line for each row and a
 * last line with the SHA-256 of all before it. Entries up to that version are no longer needed to rebuild.
 */
export async function writeCheckpoint(disk: Disk, index: Foldable): Promise<number> {
  return await atOneInstant(index, async () => await foldNow(disk, index))
}

async function foldNow(disk: Disk, index: Foldable): Promise<number> {
  proveLive(index)
  const { lake, version } = index.head()
  const folder = inLake(index.root, places.journal)
  const temporary = inLake(index.root, `${places.journal}/.tmp-checkpoint-${version}`)
  await makeFolder(disk, folder)
  const written = index.statement('SELECT program FROM versions WHERE version = ?').get(version)
  const header = `${JSON.stringify({ schema_version: layoutNumber, lake, version, program: written?.['program'] })}\n`
  // The header is plain text, so that a program without this compression can still read which program wrote it.
  await disk.write(temporary, header)
  await pipeline(linesOfIndex(index, header), createZstdCompress(), writeStream(temporary, 'a'))
  await disk.sync(temporary)
  const claimed = await disk.claim(temporary, inLake(index.root, checkpointFile(version)))
  if (!claimed) await disk.remove(temporary)
  await disk.syncFolder(folder)
  return version
}

function* linesOfIndex(index: Foldable, header: string): Generator<string> {
  const hash = createHash('sha256').update(header)
  let chunk = ''
  // Stamps are recorded by their notes.
  for (const table of index.tables().filter((name) => name !== 'stamps'))
    for (const row of index.rowsOf(table)) {
      chunk += `${JSON.stringify([table, row])}\n`
      if (chunk.length <= flushBytes) continue
      hash.update(chunk)
      yield chunk
      chunk = ''
    }
  hash.update(chunk)
  yield `${chunk}${JSON.stringify({ sha256: hash.digest('hex') })}\n`
}

/**
 * Replaces the contents of an older index by a checkpoint; a damaged checkpoint leaves the index unchanged. `onRead`
 * adds further facts in the same transaction.
 */
export async function readCheckpoint(
  root: string,
  version: number,
  index: Foldable,
  onRead: () => void = () => undefined,
): Promise<void> {
  const name = checkpointFile(version)
  index.exec('BEGIN IMMEDIATE')
  try {
    // Another process may have updated the index this far, or further, while this one waited.
    if (index.head().version >= version) return index.rollBack()
    for (const table of index.tables()) index.exec(`DELETE FROM ${table}`)
    let first = true
    for await (const line of provedLines(root, name)) {
      takeLine(index, line, first, version)
      first = false
    }
    onRead()
    index.exec('COMMIT')
  } catch (error) {
    index.rollBack()
    throw error instanceof SyntaxError ? torn(name, error) : error
  }
}

/** Reads the first line of an undamaged checkpoint, as JSON text; a damaged one is an error of integrity. */
export async function checkpointHeader(root: string, version: number): Promise<string> {
  const name = checkpointFile(version)
  let header: string | undefined
  for await (const line of provedLines(root, name)) header ??= line
  if (header === undefined) throw torn(name)
  return header
}

/** Reads all lines but the last, which must be the SHA-256 of those before it. */
async function* provedLines(root: string, name: string): AsyncGenerator<string> {
  const hash = createHash('sha256')
  let newestText: string | undefined
  try {
    for await (const line of checkpointLines(inLake(root, name))) {
      if (newestText !== undefined) {
        hash.update(`${newestText}\n`)
        yield newestText
      }
      newestText = line
    }
  } catch (error) {
    throw isPacked(error) ? torn(name, error) : error
  }
  if (newestText !== JSON.stringify({ sha256: hash.digest('hex') })) throw torn(name)
}

/** Reads the lines of a checkpoint, the header first; only a line feed ends one. */
async function* checkpointLines(path: string): AsyncGenerator<string> {
  let rest = ''
  const decoder = new StringDecoder('utf8')
  for await (const chunk of unpacked(path)) {
    const parts = (rest + decoder.write(chunk)).split('\n')
    rest = parts.pop() ?? ''
    yield* parts
  }
  rest += decoder.end()
  if (rest !== '') yield rest
}

const compressed = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** Reads the bytes of a checkpoint and decompresses the compressed part. */
async function* unpacked(path: string): AsyncGenerator<Buffer> {
  const buffer = await readInto(path, Buffer.alloc(4096))
  const header = buffer.subarray(0, buffer.indexOf(0x0a) + 1)
  const packed = buffer.subarray(header.length, header.length + compressed.length).equals(compressed)
  const start = packed ? header.length : 0
  if (packed) yield header
  const bytes = readStream(path, start)
  const unpack = packed ? bytes.pipe(createZstdDecompress()) : bytes
  bytes.on('error', (error) => void unpack.destroy(error))
  yield* unpack as AsyncIterable<Buffer>
}

function takeLine(index: Index, line: string, first: boolean, version: number): void {
  const read = JSON.parse(line) as
    | { schema_version?: unknown; version?: unknown; program?: unknown }
    | [string, Record<string, IndexCell>]
  const name = checkpointFile(version)
  if (first === Array.isArray(read)) throw torn(name)
  if (!Array.isArray(read)) {
    refuseOtherLayout(read.schema_version, name, read.program)
    if (read.version !== version) throw torn(name)
    return
  }
  const [table, row] = read
  const columns = Object.keys(row)
  if (![table, ...columns].every((word) => /^[a-z_0-9]+$/.test(word))) throw torn(name)
  index
    .statement(`INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`)
    .run(...Object.values(row))
}

/** Whether an error means that decompression cannot read the bytes. */
function isPacked(error: unknown): boolean {
  return codeOf(error)?.startsWith('ZSTD_') === true || codeOf(error)?.startsWith('Z_') === true
}

function torn(name: string, cause?: unknown): LakeError {
  return new LakeError('integrity', { subject: `checkpoint ${name} is damaged`, next: putItBack, cause })
}
