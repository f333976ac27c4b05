import { parquet } from '../../lake/store/parquet.ts'
import { describe, readShares, shareOf, type ShareRow } from '../../sources/points/write.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { inLake, pointsFile, recentFile, versionedName } from '../../lake/store/layout.ts'
import { inSession, orderOf, rowsOf, refuseUnsound, Unmergeable } from './merge-files.ts'
import { mergedFooter, type Rewriting, usualEncoding, writeEncoded } from './rewrite.ts'
import { recentGroup, sharesMeta } from '../../sources/points/files.ts'
import type { StoredFile } from '../../lake/ledger/index-queries.ts'
import type { StagedFile } from '../../lake/ledger/draft.ts'

/** A file that will be written. */
interface PlacedFile {
  /** Path of the file in the spool. */
  readonly out: string
  /** Partitions of the file. */
  readonly shares: readonly ShareRow[]
  /** The partition, for a file of one; null for a recent file of several partitions. */
  readonly own: ShareRow | null
}

/**
 * Writes the rows of recent files into one, and those of partitions that have become large, from `portion` rows on,
 * into files of their own, and proves that these contain exactly them, partition by partition.
 */
export async function mergeRecentFiles(
  { engine, ledger, spool, name }: Rewriting,
  n: number,
  files: readonly StoredFile[],
  portion: number,
): Promise<StagedFile[]> {
  const file = (i: number): string => `${n}-${i}.parquet`
  const written: string[] = []
  const version = Math.max(...files.map((file) => file.added_version))
  return await inSession(engine, written, async (session) => {
    await refuseUnsound(session, ledger.root, files)
    const source = parquet(files.map(({ path }) => inLake(ledger.root, path)))
    const before = await readShares(session, source)
    const storedRows = before.reduce((sum, share) => sum + share.rows, 0)
    if (storedRows !== rowsOf(files))
      throw new Unmergeable(`the files hold ${storedRows} rows instead of the ${rowsOf(files)} on record`)
    const placed = placesFor(before, portion, (i) => spool.file(file(i)))
    for (const file of placed) {
      written.push(file.out)
      await writePlaced(session, source, file, mergedFooter(ledger, files))
    }
    const all = placed.map((file) => `SELECT * FROM ${writtenSql(file)}`).join(' UNION ALL BY NAME ')
    const unlike = differing(before, await readShares(session, `(${all})`))
    if (unlike !== undefined) throw new Unmergeable(`the written files differ in ${unlike}`)
    return placed.map(({ shares, own }, i): StagedFile => {
      const { rows, digest, min_t, max_t, ...bounds } = describe(shares)
      const id = versionedName(version, `${name}-${n}-${i}`)
      const facts = { temporary: spool.path(file(i)), table: 'points', label: '', rows, digest, min_t, max_t }
      if (own === null) {
        const meta = { ...bounds, shares: sharesMeta(shares.map(shareOf)) }
        return { ...facts, path: recentFile(id), metric: null, interval: null, meta }
      }
      const { metric, interval } = own
      return { ...facts, path: pointsFile(metric, interval, id), metric, interval, meta: bounds }
    })
  })
}

function placesFor(all: readonly ShareRow[], portion: number, out: (i: number) => string): PlacedFile[] {
  const small = all.filter(({ rows }) => rows < portion)
  const large = all.filter(({ rows }) => rows >= portion)
  return [
    ...(small.length === 0 ? [] : [{ shares: small, own: null }]),
    ...large.map((share) => ({ shares: [share], own: share })),
  ].map((file, i) => ({ ...file, out: out(i) }))
}

async function writePlaced(
  session: Engine,
  source: string,
  { shares, own, out }: PlacedFile,
  metadata: Readonly<Record<string, string>>,
): Promise<void> {
  const rows = `(SELECT ${own === null ? '*' : '* EXCLUDE (metric, "interval")'} FROM ${source} WHERE ${among(shares)})`
  const order = orderOf('points', [])
  const what =
    own === null
      ? { source: rows, order: order.replace('ORDER BY', 'ORDER BY metric, "interval",'), group: recentGroup }
      : { source: rows, order }
  const { rows: count, digest } = describe(shares)
  const minusZero = shares.some(({ minus_zeros }) => minus_zeros > 0)
  const encoding = { ...usualEncoding(minusZero, count), ...(own === null && { few: true }) }
  await writeEncoded(session, what, out, encoding, { ...metadata, pitlake_digest: digest })
}

function writtenSql({ out, own }: PlacedFile): string {
  if (own === null) return parquet([out])
  return `(SELECT ${quote(own.metric)} AS metric, ${quote(own.interval)} AS "interval", * FROM ${parquet([out])})`
}

/** Builds the condition that is true for the rows of these partitions. */
function among(shares: readonly ShareRow[]): string {
  const pairs = shares.map(({ metric, interval }) => `(${quote(metric)}, ${quote(interval)})`)
  const [only] = shares
  if (shares.length === 1 && only) return `metric = ${quote(only.metric)} AND "interval" = ${quote(only.interval)}`
  return `(metric, "interval") IN (${pairs.join(', ')})`
}

/** Finds the first partition of which the two sides do not have the very same rows. */
function differing(before: readonly ShareRow[], after: readonly ShareRow[]): string | undefined {
  const proof = ({ rows, digest }: ShareRow): string => `${rows} ${digest}`
  const written = new Map(after.map((share) => [`${share.metric} ${share.interval}`, proof(share)]))
  const knownShares = new Set(before.map(({ metric, interval }) => `${metric} ${interval}`))
  const lostShare = before.find((share) => written.get(`${share.metric} ${share.interval}`) !== proof(share))
  const more = after.find(({ metric, interval }) => !knownShares.has(`${metric} ${interval}`))
  const found = lostShare ?? more
  return found === undefined ? undefined : `${found.metric} ${found.interval}`
}
