import { posix } from 'node:path'
import type { CommitDeps, RewriteDeps, StagedFile } from '../ledger/commit.ts'
import { Engine } from '../store/engine.ts'
import { footerOf } from '../ledger/draft.ts'
import type { FileEntry } from '../ledger/entry.ts'
import type { HeldFile } from '../ledger/held.ts'
import { encodeSegment, versioned } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openSpool, type Spool } from '../ledger/sweep.ts'

/** The facts of a written file that the journal keeps. */
export type MergedFile = Pick<FileEntry, 'rows' | 'min_t' | 'max_t' | 'digest' | 'meta'>

/** Where files are rewritten for a run. */
export interface Rewriting<D extends CommitDeps = RewriteDeps> {
  readonly ledger: Ledger
  readonly deps: D
  readonly run: string
  /** Begins the names of its files: no other rewriting of the run bears it. */
  readonly name: string
  readonly spool: Spool
  readonly engine: Engine
}

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
  using engine = await Engine.open(':memory:', { lean: true, tempDirectory: spool.file('duckdb'), ...threads })
  return await work({ ledger, deps, run, name, spool, engine })
}

/**
 * The footer of a file that takes the place of others: it carries the newest version whose rows it holds, and when a
 * change of rules dated them, if one did: without the journal nothing else tells which of two datings is the newer.
 */
export function mergedFooter(ledger: Ledger, files: readonly HeldFile[]): Record<string, string> {
  const version = Math.max(...files.map((file) => file.added_version))
  const dated = Math.max(0, ...files.map(({ meta }) => Number(meta['dated_at'] ?? 0)))
  const lake = ledger.head().lake ?? ''
  return { ...(dated > 0 && { pitlake_dated: String(dated) }), ...footerOf({ lake, version }) }
}

/** A file of the spool that is to take its place beside the first of those that it replaces. */
export function replacement(
  { name, spool }: Rewriting,
  n: number,
  files: readonly HeldFile[],
  merged: MergedFile,
): StagedFile {
  const [first] = files
  if (!first) throw new RangeError('a file takes the place of at least one')
  const { table, label, metric, interval } = first
  const version = Math.max(...files.map((file) => file.added_version))
  const path = `${posix.dirname(first.path)}/${encodeSegment(versioned(version, `${name}-${n}`))}.parquet`
  return { temporary: spool.path(`${n}.parquet`), path, table, label, metric, interval, ...merged }
}
