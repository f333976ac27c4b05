import { type Columns, parquet } from '../store/parquet.ts'
import type { FileEntry } from '../ledger/entry.ts'
import type { Engine } from '../store/engine.ts'
import { encodingText, measuredEncoding, type Rows, usualEncoding, writeParquet } from './encode.ts'
import { digestOf, type MergedFile, type Proof, prove, rangeOf } from './merge.ts'
import { supersededColumn } from './merge-history.ts'

/** Rows of which some columns are to be changed. */
export interface ChangeJob {
  /** The files that hold them, of one partition. */
  readonly files: readonly FileEntry[]
  /** The rows as they are, for FROM, and their columns. */
  readonly source: string
  readonly columns: Columns
  /** The rows as they are to be. */
  readonly rows: Rows
  /** The columns that may change. */
  readonly changing: ReadonlySet<string>
  /** What of a relation must stay the same: all of its other columns, unless said. */
  readonly kept?: (relation: string) => string
  readonly out: string
  readonly metadata: Readonly<Record<string, string>>
}

/** A file of changed rows: what it holds, and the encoding that is worth remembering. */
export interface ChangedFile {
  readonly before: Proof
  readonly after: Proof
  readonly encoding: string | null
}

/** Writes rows of which some columns are changed, and proves that nothing else is. */
export async function writeChanged(session: Engine, job: ChangeJob): Promise<ChangedFile> {
  const { files, source, columns, rows, changing, kept = (relation) => relation, out } = job
  const [{ table, path }] = files as [FileEntry, ...FileEntry[]]
  const told = columns.filter(({ name }) => name !== supersededColumn)
  const before = await prove(session, source, told, table)
  const largest = files.toSorted((a, b) => b.rows - a.rows)[0]
  const known = largest && !before.minusZero ? measuredEncoding(largest) : undefined
  const { digest } = await prove(session, rows.source, told, table)
  const metadata = { ...job.metadata, pitlake_digest: digest }
  await writeParquet(session, rows, out, known ?? usualEncoding(before.minusZero, before.rows), metadata)
  const written = parquet([out])
  const after = await prove(session, written, told, table)
  const rest = digestOf(columns.filter(({ name }) => !changing.has(name)))
  const [old, fresh] = await Promise.all(
    [source, written].map(async (from) => await session.rows(`SELECT ${rest} AS digest FROM ${kept(from)}`)),
  )
  if (after.rows !== before.rows || after.digest !== digest || old?.[0]?.['digest'] !== fresh?.[0]?.['digest'])
    throw new Error(`${path} would change in more than ${[...changing].join(', ')}`)
  return { before, after, encoding: known ? encodingText(known) : null }
}

/** The same for points, as the journal is to know the file. */
export async function writeChangedPoints(session: Engine, job: ChangeJob): Promise<MergedFile> {
  const { after, encoding } = await writeChanged(session, job)
  const range = await rangeOf(session, parquet([job.out]), job.files)
  if (!range) throw new RangeError(`${job.out} holds no points`)
  const { min_t, max_t, ...bounds } = range
  return { rows: after.rows, digest: after.digest, min_t, max_t, meta: { ...bounds, encoding } }
}
