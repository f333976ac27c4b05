import { parquet } from '../store/parquet.ts'
import { seriesId } from '../catalog/series.ts'
import type { Catalogue } from '../catalog/catalogue.ts'
import { countSeries } from '../store/footers.ts'
import { sha256File } from '../ledger/commit.ts'
import { describe, readShares, shareOf } from '../points/write.ts'
import { statOf } from '../store/disk.ts'
import { type Engine, quote } from '../store/engine.ts'
import type { FileEntry, Json, Progress, SeriesRow } from '../ledger/entry.ts'
import { inLake } from '../store/layout.ts'
import { partitionSql, partitionsOf, sharesMeta } from '../points/files.ts'
import type { FoundFile } from './adopt-files.ts'
import type { Listing } from './adopt-registry.ts'

/** A file under a label as the journal keeps it. */
export async function entryOf(root: string, { file, label, meta }: Listing): Promise<FileEntry> {
  const { path, table, rows, digest } = file
  const full = inLake(root, path)
  const bytes = (await statOf(full))?.size ?? 0
  const range = { metric: null, interval: null, min_t: null, max_t: null }
  return { path, table, label, ...range, rows, bytes, digest, sha256: await sha256File(full), meta }
}

/** A points file as the journal keeps it, read back from its rows. */
export async function pointsEntry(engine: Engine, root: string, file: FoundFile): Promise<FileEntry> {
  const { metric, interval, datedAt } = file
  const own = metric !== null && interval !== null
  const names = own ? `${quote(metric)} AS metric, ${quote(interval)} AS "interval", ` : ''
  const shares = await readShares(engine, `(SELECT ${names}* FROM ${parquet([inLake(root, file.path)])})`)
  const { rows, digest, min_t, max_t, ...bounds } = describe(shares)
  const meta: Record<string, Json> = {
    ...bounds,
    ...(!own && { shares: sharesMeta(shares.map(shareOf)) }),
    ...(datedAt > 0 && { dated_at: datedAt }),
  }
  const entry = await entryOf(root, { file, label: '', meta })
  return { ...entry, metric, interval, rows, digest, min_t, max_t }
}

/** Every series of the points files, and what they hold of it. */
export async function seriesIn(
  engine: Engine,
  root: string,
  files: readonly FileEntry[],
  catalogue: Catalogue,
): Promise<{ readonly series: SeriesRow[]; readonly progress: Progress[] }> {
  const series: SeriesRow[] = []
  const progress: Progress[] = []
  for (const partition of partitionsOf(files).values()) {
    const { metric, interval } = partition
    const named = `(SELECT ${quote(metric)} AS metric, ${quote(interval)} AS "interval", * FROM ${partitionSql(root, partition)})`
    for (const { points, first, last, ...counted } of await countSeries(engine, named)) {
      const { asset, currency, exchange, network } = counted
      const params = counted.params === null ? {} : (JSON.parse(counted.params) as SeriesRow['params'])
      // Where the endpoint takes no interval the one under which its points stand was found out by their spacing.
      const asked = catalogue.endpoints.get(metric)?.intervals.length === 0 ? null : interval
      const identity = { metric, asset, interval: asked, currency, exchange, network, params }
      const id = seriesId(identity)
      series.push({ id, ...identity, settled: interval })
      progress.push({ series: id, points, first_t: first, last_t: last })
    }
  }
  return {
    series: series.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    progress: progress.toSorted((a, b) => (a.series < b.series ? -1 : 1)),
  }
}

/** The latest instant at which anything in a file was observed, in microseconds; 0 where it does not say. */
export async function observedIn(engine: Engine, root: string, { path, columns }: FoundFile): Promise<number> {
  const name = columns.find((column) => column.name === 'observed_at' || column.name === 'at')?.name
  if (name === undefined) return 0
  const [row] = await engine.rows(
    `SELECT CAST(coalesce(epoch_us(max("${name}")), 0) AS DOUBLE) AS at FROM ${parquet([inLake(root, path)])}`,
  )
  return Number(row?.['at'] ?? 0)
}
