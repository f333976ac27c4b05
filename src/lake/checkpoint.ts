import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { LakeError } from '../errors.ts'
import type { Cell, Index, Row } from './apply.ts'
import { type Disk, makeFolder } from './disk.ts'
import { journalSchema, refuseNewer } from './entry.ts'
import { checkpointFile, inLake, places } from './layout.ts'
import { isFromNote } from './stamps.ts'

/** What a checkpoint is folded from: an index that holds exactly the versions up to its own. */
export interface Foldable extends Index {
  readonly root: string
  head(): { readonly lake: string | null; readonly version: number }
  tables(): string[]
  rowsOf(table: string): Iterable<Row>
}

const flushBytes = 1 << 20

/**
 * Folds everything up to the index's version into one file: a header, a line for each row, and a last line
 * with the SHA-256 of all before it. Entries up to that version are no longer needed to rebuild.
 */
export async function writeCheckpoint(disk: Disk, index: Foldable): Promise<number> {
  const { lake, version } = index.head()
  const folder = inLake(index.root, places.journal)
  const temporary = inLake(index.root, `${places.journal}/.tmp-checkpoint-${version}`)
  await makeFolder(disk, folder)
  const file = await open(temporary, 'w')
  try {
    const hash = createHash('sha256')
    let chunk = `${JSON.stringify({ schema_version: journalSchema, lake, version })}\n`
    const flush = async (): Promise<void> => {
      hash.update(chunk)
      await file.appendFile(chunk)
      chunk = ''
    }
    for (const table of index.tables()) {
      for (const row of index.rowsOf(table)) {
        // A note tells of its stamp itself.
        if (table === 'stamps' && isFromNote(row)) continue
        chunk += `${JSON.stringify([table, row])}\n`
        if (chunk.length > flushBytes) await flush()
      }
    }
    await flush()
    await file.appendFile(`${JSON.stringify({ sha256: hash.digest('hex') })}\n`)
  } finally {
    await file.close()
  }
  await disk.sync(temporary)
  const claimed = await disk.claim(temporary, inLake(index.root, checkpointFile(version)))
  if (!claimed) await disk.remove(temporary)
  await disk.syncFolder(folder)
  return version
}

/** Puts a checkpoint in place of all that the index holds; a damaged one leaves the index as it was. */
export async function readCheckpoint(
  root: string,
  version: number,
  index: Index & Pick<Foldable, 'tables'>,
): Promise<void> {
  const name = checkpointFile(version)
  const hash = createHash('sha256')
  let held: string | undefined
  let proved = false
  let first = true
  index.exec('BEGIN IMMEDIATE')
  try {
    for (const table of index.tables()) index.exec(`DELETE FROM ${table}`)
    for await (const line of linesOf(inLake(root, name))) {
      if (held !== undefined) {
        hash.update(`${held}\n`)
        takeLine(index, held, first, version)
        first = false
      }
      held = line
    }
    proved = held !== undefined && !first && held === JSON.stringify({ sha256: hash.digest('hex') })
    if (!proved) throw torn(name)
    index.exec('COMMIT')
  } catch (error) {
    index.exec('ROLLBACK')
    throw error instanceof SyntaxError ? torn(name, error) : error
  }
}

/** The lines of a file; only a line feed ends one. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: flushBytes })) {
    const parts = (rest + String(chunk)).split('\n')
    rest = parts.pop() ?? ''
    yield* parts
  }
  if (rest !== '') yield rest
}

function takeLine(index: Index, line: string, first: boolean, version: number): void {
  const read = JSON.parse(line) as { schema_version?: unknown; version?: unknown } | [string, Record<string, Cell>]
  if (first) {
    const header = read as { schema_version?: unknown; version?: unknown }
    refuseNewer(header.schema_version, checkpointFile(version))
    if (header.version !== version) throw torn(checkpointFile(version))
    return
  }
  const [table, row] = read as [string, Record<string, Cell>]
  const columns = Object.keys(row)
  if (![table, ...columns].every((name) => /^[a-z_0-9]+$/.test(name))) throw torn(checkpointFile(version))
  index
    .statement(`INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`)
    .run(...Object.values(row))
}

function torn(name: string, cause?: unknown): LakeError {
  return new LakeError('integrity', {
    subject: `checkpoint ${name} is damaged`,
    next: 'run pitlake doctor, or put the file back from a copy of the lake',
    cause,
  })
}
