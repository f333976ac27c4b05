import { type Columns, columnsOf, parquet } from '../../lake/store/parquet.ts'
import { LakeError } from '../../base/errors.ts'
import { bytesProblem } from '../../lake/ledger/commit.ts'
import { describe, digestSql, readShares } from '../../sources/points/write.ts'
import { diskError, realDisk } from '../../lake/store/disk.ts'
import { type Engine, quote, quoteName, quotePaths } from '../../lake/store/engine.ts'
import { type FileEntry, isUnreleased, layoutNumber, type Json, remakeHint } from '../../lake/ledger/entry.ts'
import { inLake } from '../../lake/store/layout.ts'
import {
  type MergedFile,
  type OrderedRows,
  encodingLike,
  mergedFooter,
  recordRows,
  replacement,
  type Rewriting,
  upkeepSql,
  writeEncoded,
  writeForGood,
} from './rewrite.ts'
import type { StoredFile } from '../../lake/ledger/index-queries.ts'
import type { StagedFile } from '../../lake/ledger/draft.ts'

/** Reason why files are not merged: the old ones then stay as they are. */
export class Unmergeable extends Error {}

/** Whether the files of a table have the columns of points. */
export const holdsPoints = (table: string): boolean => table === 'points' || table === 'redated'

/** Runs work in a separate session; removes the files that it was writing if it fails. */
export async function inSession<T>(engine: Engine, outs: readonly string[], work: (session: Engine) => Promise<T>) {
  using session = await engine.session()
  try {
    return await work(session)
  } catch (error) {
    for (const out of outs) await realDisk.remove(out)
    throw noRoom(error) ?? error
  }
}

/** Refuses files whose bytes are not those that were committed: rewriting them would make the damage permanent. */
export async function refuseUnsound(engine: Engine, root: string, files: readonly FileEntry[]): Promise<void> {
  for (const file of files) {
    const problem = await bytesProblem(root, file)
    if (problem?.kind === 'file_lost') throw new Unmergeable(`${file.path} is missing; run pitlake doctor`)
    if (problem) throw new Unmergeable(`${file.path} does not match its checksum; run pitlake verify`)
  }
  await refuseFilesOfOtherLayouts(
    engine,
    files.map((file) => inLake(root, file.path)),
  )
}

/**
 * Files of one partition that are to be rewritten, for FROM, with their columns, and the file that takes their place.
 */
interface PartitionRows {
  readonly session: Engine
  readonly source: string
  readonly columns: Columns
  readonly out: string
  readonly metadata: Readonly<Record<string, string>>
}

/**
 * Writes the nth file of a rewriting in place of others, by `write`, which may find (null) that nothing is to change.
 */
export async function rewriteFiles(
  rewriting: Rewriting,
  n: number,
  files: readonly StoredFile[],
  write: (rewritten: PartitionRows) => Promise<MergedFile | null>,
): Promise<StagedFile | null> {
  const { engine, ledger, spool } = rewriting
  const out = spool.file(`${n}.parquet`)
  return await inSession(engine, [out], async (session) => {
    const source = parquet(files.map((file) => inLake(ledger.root, file.path)))
    const columns = await columnsOf(session, source)
    const written = await write({ session, source, columns, out, metadata: mergedFooter(ledger, files) })
    return written && replacement(rewriting, n, files, written)
  })
}

/**
 * Writes the rows of several files of one partition into one, sorted, and proves that it contains exactly them. The
 * file is written for good if `measure`; else in the encoding of the largest of them.
 */
export async function mergeFiles(rewriting: Rewriting, n: number, files: readonly StoredFile[], measure: boolean) {
  const { table = '' } = files[0] ?? {}
  await refuseUnsound(rewriting.engine, rewriting.ledger.root, files)
  const merged = await rewriteFiles(rewriting, n, files, async ({ session, source, columns: all, out, metadata }) => {
    const history = isHistory(table)
    const columns = all.filter(({ name }) => name !== supersededColumn)
    const before = await prove(session, source, columns, table)
    const group = holdsPoints(table) ? {} : { group: recordRows }
    const shaped = history ? withSuperseded(source, columns) : source
    const rows: OrderedRows = { source: shaped, order: orderOf(table, columns), ...group }
    const footer = { ...metadata, pitlake_digest: before.digest }
    const { encoding, mark } = encodingLike(files, before, false)
    if (!measure) await writeEncoded(session, rows, out, encoding, footer)
    const measured = measure
      ? await writeForGood(session, rows, { out, minusZero: before.minusZero, metadata: footer })
      : mark
    const written = parquet([out])
    const after = await readBack(session, out, columns, files)
    if (history && (await countUnproved(session, written)) > 0) throw new Unmergeable('the merged file hides records')
    await refuseDifference(session, { source, written, columns, held: rowsOf(files), before, after })
    return mergedFile(files, after, measured)
  })
  if (merged === null) throw new RangeError('a merge without its file')
  return merged
}

/** Facts that the journal keeps of a file, by name. */
type FileMeta = { readonly [key: string]: Json }

/** A written file as it can be read: its rows and, of points, what the ledger keeps of their instants. */
interface ReadBack extends Omit<MergedFile, 'meta' | 'digest'> {
  readonly digest: string
  readonly bounds: FileMeta
}

/**
 * Reads a file back that takes the place of others. The smallest lag of points is also the smallest of the files that
 * it replaces: the joins rely on it for earlier dates too.
 */
export async function readBack(session: Engine, out: string, columns: Columns, replaced: readonly FileEntry[]) {
  const [{ table, metric, interval }] = replaced as [FileEntry, ...FileEntry[]]
  const written = parquet([out])
  if (!holdsPoints(table) || metric === null || interval === null) {
    const { rows, digest } = await prove(session, written, columns, table)
    return { rows, digest, ...boundsOf(replaced), bounds: {} }
  }
  const named = `(SELECT ${quote(metric)} AS metric, ${quote(interval)} AS "interval", * FROM ${written})`
  const { rows, digest, min_t, max_t, ...bounds } = describe(await readShares(session, named))
  const lags = replaced.map(({ meta }) => meta['min_lag']).filter((lag) => typeof lag === 'number')
  return { rows, digest, min_t, max_t, bounds: { ...bounds, min_lag: Math.min(bounds.min_lag, ...lags) } }
}

/** Builds the facts of a file that replaces others, with the mark of how it was written. */
export function mergedFile(replaced: readonly FileEntry[], read: ReadBack, encoding: string | null): MergedFile {
  const { bounds, ...facts } = read
  const commonMeta = Object.assign({}, ...replaced.map((file) => file.meta)) as FileMeta
  return { ...facts, meta: { ...commonMeta, encoding, ...bounds } }
}

/** Sums the rows of files according to the journal. */
export const rowsOf = (files: readonly FileEntry[]): number => files.reduce((sum, { rows }) => sum + rows, 0)

/**
 * Builds the order in which the rows of a table are written. DuckDB sorts -0.0 and 0.0 into one value: no double is a
 * key. Whole records are none either: they would be in memory twice, and the columns that name a step are there in
 * addition.
 */
export function orderOf(table: string, columns: Columns): string {
  if (holdsPoints(table)) return 'ORDER BY asset, currency, exchange, network, params, t'
  const keys = columns
    .filter(({ name, type }) => !/DOUBLE|FLOAT/.test(type) && name !== 'record')
    .map(({ name }) => quoteName(name))
  if (keys.length === 0) return ''
  // Superseded steps are together at the end, so that whole row groups of them are skipped.
  const first = isHistory(table) ? [`${supersededColumn} IS NOT NULL`] : []
  return `ORDER BY ${[...first, ...keys].join(', ')}`
}

/** Counts and digests all rows of a relation. */
export async function prove(session: Engine, source: string, columns: Columns, table: string): Promise<RowsProof> {
  const digest = holdsPoints(table) ? digestSql : digestOf(columns)
  const doubles = columns.filter(({ type }) => isFloat(type)).map(({ name }) => name)
  const zeroes = doubles.map((name) => `(${quoteName(name)} = 0 AND signbit(${quoteName(name)}))`)
  const minus_zero = zeroes.length === 0 ? 'false' : zeroes.join(' OR ')
  const [row] = await session.rows<{ rows: bigint; digest: string; minus_zero: boolean }>(
    upkeepSql('content_digest', { source, digest, minus_zero }),
  )
  if (!row) throw new RangeError('a count without a row')
  return { rows: Number(row.rows), digest: row.digest, minusZero: row.minus_zero }
}

/** Builds the SQL of the sum of the hashes of some columns over all rows; doubles count with their sign. */
function digestOf(columns: Columns): string {
  const parts = columns.flatMap(({ name, type }) =>
    isFloat(type) ? [quoteName(name), `signbit(${quoteName(name)})`] : [quoteName(name)],
  )
  return `CAST(coalesce(sum(hash(${parts.join(', ')})), 0) AS VARCHAR)`
}

const isFloat = (type: string): boolean => type === 'DOUBLE' || type === 'FLOAT'

/** Facts about the rows of a relation that must not change if files are exchanged. */
interface RowsProof {
  readonly rows: number
  /** Digest of all rows, whatever their order. */
  readonly digest: string
  /** Whether a double is -0.0. */
  readonly minusZero: boolean
}

interface Exchange {
  readonly source: string
  readonly written: string
  readonly columns: Columns
  readonly held: number
  readonly before: RowsProof
  readonly after: Pick<RowsProof, 'rows' | 'digest'>
}

/** Refuses a written file whose rows differ from those that it is to replace. */
async function refuseDifference(session: Engine, exchange: Exchange): Promise<void> {
  const { source, written, columns, held, before, after } = exchange
  if (before.rows !== held) throw new Unmergeable(`the files hold ${before.rows} rows instead of the ${held} on record`)
  if (after.rows !== before.rows)
    throw new Unmergeable(`the merged file holds ${after.rows} rows instead of ${before.rows}`)
  if (after.digest === before.digest) return
  const digests = columns.map((column) => `${digestOf([column])} AS ${quoteName(column.name)}`).join(', ')
  const [old] = await session.rows(`SELECT ${digests} FROM ${source}`)
  const [fresh] = await session.rows(`SELECT ${digests} FROM ${written}`)
  const unlike = columns.map(({ name }) => name).filter((name) => old?.[name] !== fresh?.[name])
  throw new Unmergeable(`the merged file differs in ${unlike.join(', ') || 'the pairing of columns'}`)
}

function boundsOf(files: readonly FileEntry[]): { min_t: number | null; max_t: number | null } {
  const first = files.flatMap(({ min_t }) => (min_t === null ? [] : [min_t]))
  const last = files.flatMap(({ max_t }) => (max_t === null ? [] : [max_t]))
  return { min_t: first.length === 0 ? null : Math.min(...first), max_t: last.length === 0 ? null : Math.max(...last) }
}

/** Refuses files whose footer names a different layout: they are not touched. */
export async function refuseFilesOfOtherLayouts(session: Engine, paths: readonly string[]): Promise<void> {
  const rows = await session.rows<{ file: string; schema: string }>(
    `SELECT file_name AS file, decode(value) AS schema FROM parquet_kv_metadata(${quotePaths(paths)})
     WHERE decode(key) = 'pitlake_schema' AND decode(value) <> '${layoutNumber}'`,
  )
  for (const { file, schema } of rows)
    throw new LakeError('usage', {
      subject: file,
      expected: `layout ${layoutNumber} in its footer`,
      got: schema,
      next: isUnreleased(Number(schema || Number.NaN))
        ? remakeHint
        : 'this file was written by a newer pitlake: update the program',
    })
}

/** Converts DuckDB's message about a full disk to an error of the file system. */
function noRoom(error: unknown): unknown {
  if (error instanceof LakeError || !/No space left|disk quota/i.test(String(error))) return undefined
  return diskError(Object.assign(new Error(String(error), { cause: error }), { code: 'ENOSPC' }), 'merging')
}

/** Rows of which some columns are to be changed. */
interface ChangeJob {
  /** Files with these rows, of one partition. */
  readonly files: readonly FileEntry[]
  /** The rows as they are, for FROM, and their columns. */
  readonly source: string
  readonly columns: Columns
  /** The rows as they are to be. */
  readonly rows: OrderedRows
  /** The columns that may change. */
  readonly changing: ReadonlySet<string>
  /** Columns of a relation that must stay the same: all of its other columns by default. */
  readonly kept?: (relation: string) => string
  readonly out: string
  readonly metadata: Readonly<Record<string, string>>
}

/** Writes rows of which some columns are changed, and proves that nothing else is. */
export async function writeChanged(session: Engine, job: ChangeJob): Promise<MergedFile> {
  const { files, source, columns, rows, changing, kept = (relation) => relation, out } = job
  const [{ table, path }] = files as [FileEntry, ...FileEntry[]]
  const compared = columns.filter(({ name }) => name !== supersededColumn)
  const before = await prove(session, source, compared, table)
  const { encoding, mark } = encodingLike(files, before, true)
  const { digest } = await prove(session, rows.source, compared, table)
  await writeEncoded(session, rows, out, encoding, { ...job.metadata, pitlake_digest: digest })
  const written = parquet([out])
  const after = await readBack(session, out, compared, files)
  const rest = digestOf(columns.filter(({ name }) => !changing.has(name)))
  const [old, fresh] = await Promise.all(
    [source, written].map(async (from) => await session.rows(`SELECT ${rest} AS digest FROM ${kept(from)}`)),
  )
  if (after.rows !== rowsOf(files) || after.digest !== digest || old?.[0]?.['digest'] !== fresh?.[0]?.['digest'])
    throw new Error(`${path} would change in more than ${[...changing].join(', ')}`)
  return mergedFile(files, after, mark)
}

/** The column of history files that merging fills; a commit leaves it NULL, and so may every file. */
export const supersededColumn = 'superseded_at'

/** Whether a table contains the steps of a history. */
export const isHistory = (table: string): boolean => table.startsWith('history.')

/**
 * Builds the steps of a relation, for FROM, with what is known of their end: a query about a later time need not read
 * them.
 */
export function withSuperseded(source: string, columns: readonly { readonly name: string }[]): string {
  const names = columns.map(({ name }) => `steps.${quoteName(name)}`).join(', ')
  return `(${upkeepSql('superseded', { columns: names, source })})`
}

/** Counts the steps of written files whose end is missing. */
export async function countUnproved(session: Engine, source: string): Promise<number> {
  const [row] = await session.rows<{ rows: bigint }>(upkeepSql('unproved', { source }))
  return Number(row?.rows)
}
