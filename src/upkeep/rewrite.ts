import { posix } from 'node:path'
import type { CommitDeps, RewriteDeps, StagedFile } from '../ledger/commit.ts'
import { Engine } from '../store/engine.ts'
import { footerSchema } from '../ledger/entry.ts'
import type { HeldFile } from '../ledger/held.ts'
import { encodeSegment } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { MergedFile } from './merge.ts'
import { openSpool, type Spool } from '../ledger/sweep.ts'

/** Where rewritten files are made. */
export interface Bench {
  readonly ledger: Ledger
  readonly deps: RewriteDeps
  readonly run: string
  readonly spool: Spool
  readonly engine: Engine
}

/** Opens a spool and an engine for a rewriting job, and closes them whatever happens. */
export async function withBench<T>(
  ledger: Ledger,
  deps: RewriteDeps,
  job: string,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  const run = runName(deps, job)
  const spool = await openSpool(ledger.root, run, deps)
  try {
    const threads = deps.threads === undefined ? {} : { threads: deps.threads }
    const engine = await Engine.open(':memory:', { lean: true, tempDirectory: spool.file('duckdb'), ...threads })
    try {
      return await work({ ledger, deps, run, spool, engine })
    } finally {
      engine.close()
    }
  } finally {
    await spool.close()
  }
}

/** Unlike every other, also when two jobs of one process begin in the same millisecond. */
export function runName(deps: CommitDeps, job: string): string {
  const instant = new Date(deps.nowMicros() / 1000).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()
  const mark = Math.floor(deps.random() * 36 ** 4).toString(36)
  return `${instant}-${deps.holder.pid}-${job}-${mark}`
}

/**
 * The footer of a file that takes the place of others: it carries the newest version whose rows it holds, and when a
 * change of rules dated them, if one did: without the journal nothing else tells which of two datings is the newer.
 */
export function footerOf(ledger: Ledger, files: readonly HeldFile[]): Record<string, string> {
  const version = Math.max(...files.map((file) => file.added_version))
  const dated = Math.max(0, ...files.map(({ meta }) => Number(meta['dated_at'] ?? 0)))
  return {
    ...(dated > 0 && { pitlake_dated: String(dated) }),
    pitlake_lake: ledger.head().lake ?? '',
    pitlake_version: String(version),
    pitlake_schema: footerSchema,
  }
}

/** A file of the spool that is to take its place beside the first of those that it replaces. */
export function replacement(bench: Bench, n: number, files: readonly HeldFile[], merged: MergedFile): StagedFile {
  const [first] = files
  if (!first) throw new RangeError('a file takes the place of at least one')
  const { table, label, metric, interval } = first
  const name = `${String(Math.max(...files.map((file) => file.added_version))).padStart(10, '0')}-${bench.run}-${n}`
  const path = `${posix.dirname(first.path)}/${encodeSegment(name)}.parquet`
  return { temporary: bench.spool.path(`${n}.parquet`), path, table, label, metric, interval, ...merged }
}
