import { parquet } from '../store/parquet.ts'
import { describe, readShares, shareOf, type ShareRow } from '../points/write.ts'
import { type Engine, quote } from '../store/engine.ts'
import type { FileEntry } from '../ledger/entry.ts'
import { realDisk } from '../store/disk.ts'
import { inLake } from '../store/layout.ts'
import { inSession, type MergedFile, orderOf, refuseNewerFiles, unlikeLedger } from './merge.ts'
import { usualEncoding, writeParquet } from './encode.ts'
import { recentGroup, sharesMeta } from '../points/files.ts'

/** Recent files that are to become one. */
export interface RecentMergeJob {
  readonly root: string
  readonly files: readonly FileEntry[]
  /** From so many rows on, what they hold of a partition moves to a file of its own. */
  readonly portion: number
  /** Absolute path of the nth file to write. */
  readonly out: (n: number) => string
  readonly metadata: Readonly<Record<string, string>>
}

/** A file that was written, of a partition, or (both null) a recent one. */
export type PlacedFile = MergedFile & Pick<FileEntry, 'metric' | 'interval'>

/** What was written, or why nothing was: then the old files stay what they are. */
export type RecentMerged =
  | { readonly kind: 'merged'; readonly files: readonly PlacedFile[] }
  | { readonly kind: 'abandoned'; readonly reason: string }

/**
 * Writes the rows of recent files into one, and those of partitions that have become large into files of their own, and
 * proves that these hold exactly them, partition by partition.
 */
export async function mergeRecentFiles(engine: Engine, job: RecentMergeJob): Promise<RecentMerged> {
  const damaged = await unlikeLedger(job)
  if (damaged !== undefined) return { kind: 'abandoned', reason: damaged }
  const written: string[] = []
  return await inSession(engine, written, async (session) => {
    const merged = await rewrite(session, job, written)
    if (merged.kind === 'abandoned') for (const out of written) await realDisk.remove(out)
    return merged
  })
}

async function rewrite(session: Engine, job: RecentMergeJob, written: string[]): Promise<RecentMerged> {
  const paths = job.files.map((file) => inLake(job.root, file.path))
  await refuseNewerFiles(session, paths)
  const source = parquet(paths)
  const before = await readShares(session, source)
  const onRecord = job.files.reduce((sum, file) => sum + file.rows, 0)
  const held = before.reduce((sum, share) => sum + Number(share.rows), 0)
  if (held !== onRecord)
    return { kind: 'abandoned', reason: `the files hold ${held} rows instead of the ${onRecord} on record` }
  const large = before.filter(({ rows }) => Number(rows) >= job.portion)
  const small = before.filter(({ rows }) => Number(rows) < job.portion)
  const placed: { readonly shares: readonly ShareRow[]; readonly out: string; readonly own: ShareRow | null }[] = [
    ...(small.length === 0 ? [] : [{ shares: small, own: null }]),
    ...large.map((share) => ({ shares: [share], own: share })),
  ].map((one, n) => ({ ...one, out: job.out(n) }))
  for (const { shares, out, own } of placed) {
    written.push(out)
    const rows = `(SELECT ${own === null ? '*' : '* EXCLUDE (metric, "interval")'} FROM ${source} WHERE ${among(shares)})`
    const order = orderOf('points', [])
    const what =
      own === null
        ? { source: rows, order: order.replace('ORDER BY', 'ORDER BY metric, "interval",'), group: recentGroup }
        : { source: rows, order }
    const file = describe(shares)
    const encoding = usualEncoding(
      shares.some(({ minus_zeros }) => minus_zeros > 0n),
      file.rows,
    )
    await writeParquet(session, what, out, own === null ? { ...encoding, level: 1 } : encoding, {
      ...job.metadata,
      pitlake_digest: file.digest,
    })
  }
  const after = await readShares(
    session,
    `(${placed.map(({ out, own }) => `SELECT * FROM ${writtenSql(out, own)}`).join(' UNION ALL BY NAME ')})`,
  )
  const unlike = differing(before, after)
  if (unlike !== undefined) return { kind: 'abandoned', reason: `the written files differ in ${unlike}` }
  return { kind: 'merged', files: placed.map((one) => fileOf(one)) }
}

function fileOf({ shares, own }: { readonly shares: readonly ShareRow[]; readonly own: ShareRow | null }): PlacedFile {
  const { rows, digest, min_t, max_t, ...bounds } = describe(shares)
  const meta = own === null ? { ...bounds, shares: sharesMeta(shares.map(shareOf)) } : { ...bounds }
  return { metric: own?.metric ?? null, interval: own?.interval ?? null, rows, digest, min_t, max_t, meta }
}

function writtenSql(out: string, own: ShareRow | null): string {
  if (own === null) return parquet([out])
  return `(SELECT ${quote(own.metric)} AS metric, ${quote(own.interval)} AS "interval", * FROM ${parquet([out])})`
}

/** True for the rows of these partitions. */
function among(shares: readonly ShareRow[]): string {
  const pairs = shares.map(({ metric, interval }) => `(${quote(metric)}, ${quote(interval)})`)
  const [only] = shares
  if (shares.length === 1 && only) return `metric = ${quote(only.metric)} AND "interval" = ${quote(only.interval)}`
  return `(metric, "interval") IN (${pairs.join(', ')})`
}

/** The first partition of which both sides do not hold the very same rows. */
function differing(before: readonly ShareRow[], after: readonly ShareRow[]): string | undefined {
  const proof = ({ rows, digest }: ShareRow): string => `${rows} ${digest}`
  const held = new Map(after.map((share) => [`${share.metric} ${share.interval}`, proof(share)]))
  const known = new Set(before.map(({ metric, interval }) => `${metric} ${interval}`))
  const lost = before.find((share) => held.get(`${share.metric} ${share.interval}`) !== proof(share))
  const more = after.find(({ metric, interval }) => !known.has(`${metric} ${interval}`))
  const found = lost ?? more
  return found === undefined ? undefined : `${found.metric} ${found.interval}`
}
