import { requireFileError } from '../../lake/store/file-errors.ts'
import { type Columns, columnsOf, countSeries, footersOf, parquet } from '../../lake/store/parquet.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { LakeError } from '../../base/errors.ts'
import { dataVersion, inLake, parsePointsFile, parseRegistryFile, places } from '../../lake/store/layout.ts'
import { prove, refuseFilesOfOtherLayouts, supersededColumn } from './merge-files.ts'
import { type Interval, type Micros, parseMicros } from '../../base/time.ts'
import { seriesId } from '../../catalog/series.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { sha256File } from '../../lake/ledger/commit.ts'
import { describe, readShares, shareOf } from '../../sources/points/write.ts'
import { statOf } from '../../lake/store/disk.ts'
import type { FileEntry, Json, Progress, SeriesRow } from '../../lake/ledger/entry.ts'
import { withDigests } from '../../sources/points/month-changes.ts'
import { monthsIn, seriesKey } from '../../sources/points/month-sums.ts'
import { partitionsOf, partitionSql, sharesMeta } from '../../sources/points/files.ts'
import { withoutPoints } from '../../lake/ledger/draft.ts'

/** The folder of a lost lake, and what its files are read with. */
export interface LostFolder {
  readonly engine: Engine
  readonly root: string
  /** Metrics whose points may have several vintages. */
  readonly revisable?: ReadonlySet<string>
}

/** Content of a data file according to its path. */
interface FilePlace {
  /** Relative to the lake. */
  readonly path: string
  readonly table: string
  readonly metric: string | null
  readonly interval: Interval | null
}

/** A data file that can be read whole, and what its name and its footer say of it. */
export interface FoundFile extends FilePlace {
  readonly version: number
  readonly rows: number
  readonly columns: Columns
  /** Digest in its footer, which was correct; null if it has none. */
  readonly digest: string | null
  /** Time when a change of rules dated its points, in microseconds; 0 if its footer has none. */
  readonly datedAt: number
}

/** A file as the journal will list it. */
export interface FileListing {
  readonly file: FoundFile
  readonly label: string
  readonly meta: { readonly [key: string]: Json }
}

/** File that is not adopted, and why. */
export interface LeftOut {
  readonly path: string
  readonly why: string
}

/** Parses a path of the layout; undefined if it is of no table of this program. */
function placeOf(path: string): FilePlace | undefined {
  if (!path.endsWith('.parquet')) return undefined
  const { metric = null, interval = null } = parsePointsFile(path) ?? {}
  const points = metric !== null || path.startsWith(`${places.points}/recent/`)
  const listing = path.startsWith(`${places.assets}/`)
  const table = points ? 'points' : listing ? 'metric_assets' : parseRegistryFile(path)?.table
  return table === undefined ? undefined : { path, table, metric, interval }
}

/** Reads a file whole and compares it with its footer. A file of a newer program is refused with all the rest. */
export async function readFound(folder: LostFolder, path: string, lake: string): Promise<FoundFile | LeftOut> {
  const place = placeOf(path)
  if (!place) return { path, why: 'bodies as received and files of unknown tables are not taken up' }
  try {
    return await proveFound(folder, lake, place)
  } catch (error) {
    if (error instanceof LakeError) throw error
    requireFileError(error, `reading ${path}`)
    return { path, why: 'it cannot be read' }
  }
}

async function proveFound({ engine, root }: LostFolder, lake: string, place: FilePlace): Promise<FoundFile | LeftOut> {
  const { path, table } = place
  const full = inLake(root, path)
  const footer = (await footersOf(engine, [full])).get(full)
  if (!footer) return { path, why: 'it cannot be read' }
  // The listing of assets is written without a footer of ours.
  if (footer.lake !== lake && !(footer.lake === null && table === 'metric_assets'))
    return { path, why: footer.lake === null ? 'its footer names no lake' : `it is of the lake ${footer.lake}` }
  await refuseFilesOfOtherLayouts(engine, [full])
  const columns = (await columnsOf(engine, parquet([full]))).filter(({ name }) => name !== supersededColumn)
  const { rows, digest } = await prove(engine, parquet([full]), columns, table)
  if (rows !== footer.rows) return { path, why: 'it holds another number of rows than its footer says' }
  if (footer.digest !== null && footer.digest !== digest) return { path, why: 'its digest does not hold' }
  const version = Math.max(Number(footer.version ?? 0), dataVersion(path) ?? 0)
  return { ...place, version, rows, columns, digest: footer.digest, datedAt: Number(footer.dated ?? 0) }
}

/** Parses from a file's name when the run that wrote it began, in microseconds; 0 if the name does not show it. */
export function writtenAt(path: string): Micros {
  const match = /\/\d+-(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)(\d{3})z-\d+/.exec(path)
  if (!match) return 0
  const [, year, month, day, hour, minute, second, thousandth] = match
  return parseMicros(`${year}-${month}-${day}T${hour}:${minute}:${second}.${thousandth}Z`) ?? 0
}

/** Builds the journal's entry of a file under a label. */
export async function entryOf(root: string, { file, label, meta }: FileListing): Promise<FileEntry> {
  const { path, table, rows, digest } = file
  const full = inLake(root, path)
  const bytes = (await statOf(full))?.size ?? 0
  return { ...withoutPoints, path, table, label, rows, bytes, digest, sha256: await sha256File(full), meta }
}

/** Builds the journal's entry of a points file, read back from its rows. */
export async function pointsEntry({ engine, root }: LostFolder, file: FoundFile): Promise<FileEntry> {
  const { metric, interval, datedAt } = file
  const isPlaced = metric !== null && interval !== null
  const names = isPlaced ? `${quote(metric)} AS metric, ${quote(interval)} AS "interval", ` : ''
  const shares = await readShares(engine, `(SELECT ${names}* FROM ${parquet([inLake(root, file.path)])})`)
  const { rows, digest, min_t, max_t, ...bounds } = describe(shares)
  const meta: Record<string, Json> = {
    ...bounds,
    ...(!isPlaced && { shares: sharesMeta(shares.map(shareOf)) }),
    ...(datedAt > 0 && { dated_at: datedAt }),
  }
  const entry = await entryOf(root, { file, label: '', meta })
  return { ...entry, metric, interval, rows, digest, min_t, max_t }
}

/** Lists every series in the points files, and its stored points. */
export async function seriesIn({ engine, root }: LostFolder, files: readonly FileEntry[], catalogue: Catalogue) {
  const series: SeriesRow[] = []
  const progress: Progress[] = []
  const ids = new Map<string, string>()
  for (const partition of partitionsOf(files).values()) {
    const { metric, interval } = partition
    const named =
      `(SELECT ${quote(metric)} AS metric, ${quote(interval)} AS "interval", * FROM ` +
      `${partitionSql(root, partition)})`
    for (const { points, first, last, ...counted } of await countSeries(engine, named)) {
      const { asset, currency, exchange, network } = counted
      const params = counted.params === null ? {} : (JSON.parse(counted.params) as SeriesRow['params'])
      // If the endpoint takes no interval, the one of its points was derived from their spacing.
      const shownInterval = catalogue.endpoints.get(metric)?.intervals.length === 0 ? null : interval
      const identity = { metric, asset, interval: shownInterval, currency, exchange, network, params }
      const id = seriesId(identity)
      series.push({ id, ...identity, settled: interval })
      ids.set(seriesKey(metric, interval, counted), id)
      progress.push({ series: id, points, first_t: first, last_t: last })
    }
  }
  const months = await monthsIn(engine, root, files, (key) => ids.get(key))
  const withMonths = progress.map((line) => withDigests(line, months.get(line.series)))
  series.sort((a, b) => (a.id < b.id ? -1 : 1))
  return { series, progress: withMonths.toSorted((a, b) => (a.series < b.series ? -1 : 1)) }
}

/** Finds the latest instant at which anything in a file was observed, in microseconds; 0 if the file has none. */
export async function observedIn({ engine, root }: LostFolder, { path, columns }: FoundFile): Promise<number> {
  const name = columns.find((column) => column.name === 'observed_at' || column.name === 'at')?.name
  if (name === undefined) return 0
  const [row] = await engine.rows(
    `SELECT CAST(coalesce(epoch_us(max("${name}")), 0) AS DOUBLE) AS at FROM ${parquet([inLake(root, path)])}`,
  )
  return Number(row?.['at'] ?? 0)
}
