import { posix } from 'node:path'
import type { CommitDeps, RewriteDeps } from '../../lake/ledger/commit.ts'
import { Engine, quote, quotePath } from '../../lake/store/engine.ts'
import { footerOf } from '../../lake/ledger/draft.ts'
import type { FileEntry } from '../../lake/ledger/entry.ts'
import type { StoredFile } from '../../lake/ledger/index-queries.ts'
import { encodeSegment, versionedName } from '../../lake/store/layout.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { openSpool, type Spool } from '../../lake/ledger/spool-sweep.ts'
import { compressionSql, fewRows, footerSql } from '../../lake/store/parquet.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { engineMemory } from '../../lake/store/memory.ts'
import { statementsIn } from '../../lake/store/sql.ts'

/** The facts of a written file that the journal keeps. */
export type MergedFile = Pick<FileEntry, 'rows' | 'min_t' | 'max_t' | 'digest' | 'meta'>

/** Context in which files are rewritten for a run. */
export interface Rewriting<D extends CommitDeps = RewriteDeps> {
  readonly ledger: Ledger
  readonly deps: D
  readonly run: string
  /** Prefix of the names of its files, unique within the run. */
  readonly name: string
  readonly spool: Spool
  readonly engine: Engine
}

/** Part of its memory with which an engine rewrites files: Parquet writers take more of it than the engine counts. */
const rewritingPart = 0.8

/** Opens a spool and an engine for rewriting files, and closes them whatever happens. */
export async function withRewriting<D extends CommitDeps & Pick<RewriteDeps, 'threads'>, T>(
  ledger: Ledger,
  deps: D,
  run: string,
  work: (rewriting: Rewriting<D>) => Promise<T>,
): Promise<T> {
  const name = `${run}-${Math.floor(deps.random() * 36 ** 4).toString(36)}`
  await using spool = await openSpool(ledger.root, name, deps)
  const threads = deps.threads === undefined ? {} : { threads: deps.threads }
  const memoryLimit = engineMemory(rewritingPart)
  using engine = await Engine.open(':memory:', { tempDirectory: spool.file('duckdb'), memoryLimit, ...threads })
  return await work({ ledger, deps, run, name, spool, engine })
}

/**
 * Builds the footer of a file that replaces others: it has the newest version whose rows it contains, and when a change
 * of rules dated them, if one did: without the journal nothing else shows which of two datings is the newer.
 */
export function mergedFooter(ledger: Ledger, files: readonly StoredFile[]): Record<string, string> {
  const version = Math.max(...files.map((file) => file.added_version))
  const dated = Math.max(0, ...files.map(({ meta }) => Number(meta['dated_at'] ?? 0)))
  const lake = ledger.head().lake ?? ''
  return { ...(dated > 0 && { pitlake_dated: String(dated) }), ...footerOf({ lake, version }) }
}

/** Stages a file of the spool in the folder of the first of those that it replaces. */
export function replacement({ name, spool }: Rewriting, n: number, files: readonly StoredFile[], merged: MergedFile) {
  const [first] = files
  if (!first) throw new RangeError('a file takes the place of at least one')
  const { table, label, metric, interval } = first
  const version = Math.max(...files.map((file) => file.added_version))
  const path = `${posix.dirname(first.path)}/${encodeSegment(versionedName(version, `${name}-${n}`))}.parquet`
  return { temporary: spool.path(`${n}.parquet`), path, table, label, metric, interval, ...merged }
}

/** Encoding of the columns of a file. */
interface Encoding {
  /**
   * The most distinct values of a column that get a dictionary; above a few, time columns lose their delta encoding.
   */
  readonly dictionary: number
  /** Compression level of zstd. */
  readonly level: number
  /** Whether the file is written to be opened fast: it has few rows, or every query reads it. */
  readonly few?: boolean
}

/** OrderedRows of a file, with their order. */
export interface OrderedRows {
  /** A relation for FROM. */
  readonly source: string
  /** `ORDER BY …`, or '' for rows that are in order. */
  readonly order: string
  /** Number of rows in a row group; fewer if rows are long. */
  readonly group?: number
}

/** Compression level: above 3 the size falls by 4 %, above 9 for a long way only the time grows. */
const level = 9
/**
 * Compression level for objects and arrays as text: they shrink by another sixth, and read faster; writing takes
 * fifteen times as long.
 */
const denseLevel = 16
/** A longer dictionary costs time columns their delta encoding. */
const dictionary = 1000
/** Large enough to compress, small enough that reading one series skips most of a large file. */
const groupRows = 65_536
/** Whole records are long, and a row group is in memory while it is written. */
export const recordRows = 4096

/**
 * Reads the mark with which a whole merge recorded how it wrote a file (`v2/1000`, `v2/1000/16`); null if none wrote
 * it.
 */
export function markOf({ meta }: Pick<FileEntry, 'meta'>): string | null {
  return typeof meta['encoding'] === 'string' ? meta['encoding'] : null
}

/** Writes one file; a -0.0 anywhere forbids dictionaries. */
export async function writeEncoded(
  session: Engine,
  rows: OrderedRows,
  out: string,
  encoding: Encoding,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  await session.run(
    upkeepSql('write_parquet', {
      source: rows.source,
      order: rows.order,
      dictionary: encoding.dictionary,
      compression: compressionSql(encoding.few === true, encoding.level),
      out: quote(out),
      group: rows.group ?? groupRows,
      metadata: footerSql(metadata),
    }),
  )
}

/**
 * Writes a file for good: as usual, and again as hard as zstd can where most of it turns out to be texts. Gives its
 * mark.
 */
export async function writeForGood(
  session: Engine,
  rows: OrderedRows,
  { out, minusZero, metadata }: { out: string; minusZero: boolean; metadata: Readonly<Record<string, string>> },
): Promise<string> {
  const encoding = { dictionary: minusZero ? 0 : dictionary, level }
  await writeEncoded(session, rows, out, encoding, metadata)
  if (!(await mostlyText(session, out))) return `v2/${encoding.dictionary}`
  const dense = { ...encoding, level: denseLevel }
  // A path of its own: DuckDB remembers files that it read.
  await writeEncoded(session, rows, `${out}.dense`, dense, metadata)
  await realDisk.move(`${out}.dense`, out)
  return `v2/${encoding.dictionary}/${denseLevel}`
}

/** Whether most bytes of a file are texts. */
async function mostlyText(session: Engine, path: string): Promise<boolean> {
  const [row] = await session.rows<{ text: boolean | null }>(
    `SELECT sum(total_compressed_size) FILTER (type = 'BYTE_ARRAY') > 0.5 * sum(total_compressed_size) AS text
     FROM parquet_metadata(${quotePath(path)})`,
  )
  return row?.text === true
}

/**
 * Chooses the encoding of a file that replaces others for now, and the mark that it keeps: that of the largest of them,
 * if that was written for good. The next compact rewrites one that is less dense than it could be, unless `hard`.
 */
export function encodingLike(
  files: readonly FileEntry[],
  { minusZero, rows }: { readonly minusZero: boolean; readonly rows: number },
  hard: boolean,
): { readonly encoding: Encoding; readonly mark: string | null } {
  const [largest] = files.toSorted((a, b) => b.rows - a.rows)
  const mark = largest && !minusZero ? markOf(largest) : null
  if (mark === null) return { encoding: usualEncoding(minusZero, rows), mark }
  const dense = mark.endsWith(`/${denseLevel}`)
  const encoding = { dictionary, level: dense && hard ? denseLevel : level }
  return { encoding, mark: dense && !hard ? null : mark }
}

/** Returns the encoding of a file that may soon be merged again. */
export function usualEncoding(minusZero: boolean, rows: number): Encoding {
  return { dictionary: minusZero ? 0 : dictionary, level, few: rows <= fewRows }
}

/** The statements of this room. */
export const upkeepSql = statementsIn(new URL('sql/', import.meta.url))
