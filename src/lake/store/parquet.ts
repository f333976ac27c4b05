import { requireFileError } from './file-errors.ts'
import { Engine, quote, quotePaths } from './engine.ts'
import { ownData } from './new-lake.ts'
import { statOf } from './disk.ts'
import { dataVersion, inLake } from './layout.ts'
import { readMarker } from './marker.ts'

/** The columns of a relation, with their DuckDB types. */
export type Columns = readonly { readonly name: string; readonly type: string }[]

/** Lists the columns of a relation for FROM, in order. */
export async function columnsOf(session: Engine, relation: string): Promise<Columns> {
  const rows = await session.rows<{ column_name: string; column_type: string }>(`DESCRIBE FROM ${relation}`)
  return rows.map(({ column_name: name, column_type: type }) => ({ name, type }))
}

/** SQL for Parquet files as a relation, ignoring their folder names; columns that a file lacks are NULL. */
export function parquet(paths: readonly string[]): string {
  return `read_parquet(${quotePaths(paths)}, union_by_name = true, hive_partitioning = false)`
}

/** SQL option of COPY that writes these pairs to the footer of a Parquet file; '' if there are none. */
export function footerSql(metadata: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(metadata).map(([key, value]) => `${quote(key)}: ${quote(value)}`)
  return pairs.length === 0 ? '' : `, KV_METADATA {${pairs.join(', ')}}`
}

/** Maximum number of rows of a small file, for which the time to open it matters more than its size. */
export const fewRows = 1000

/** Default level of zstd: a conversion is a tenth faster than at 3, and its files are no larger. */
const fast = 1

/**
 * SQL of the compression of a Parquet file, for COPY. zstd sets up a context for every column chunk that is read, as
 * long as reading ten thousand values; a lake has many small files between two merges, and those take snappy. So do
 * recent files of any size, which every question reads: a third larger, they are read in four fifths of the time.
 */
export function compressionSql(few: boolean, level = fast): string {
  return few ? 'COMPRESSION snappy' : `COMPRESSION zstd, COMPRESSION_LEVEL ${level}`
}

/** Facts in the footer of a Parquet file; null if the footer does not state them. */
interface Footer {
  readonly lake: string | null
  readonly version: string | null
  /** Digest of the content. */
  readonly digest: string | null
  /** Time at which a change of rules dated its points, in microseconds. */
  readonly dated: string | null
  readonly rows: number
}

/** Reads the footers of these files, by path. */
export async function footersOf(engine: Engine, paths: readonly string[]): Promise<Map<string, Footer>> {
  if (paths.length === 0) return new Map()
  const says = (key: string): string => `max(k.value) FILTER (k.name = 'pitlake_${key}') AS ${key}`
  const rows = await engine.rows<{ [K in keyof Footer]: Footer[K] } & { path: string }>(
    `WITH facts AS (SELECT file_name AS path, decode(key) AS name, decode(value) AS value
       FROM parquet_kv_metadata(${quotePaths(paths)}) WHERE starts_with(decode(key), 'pitlake_'))
     SELECT f.file_name AS path, f.num_rows::DOUBLE AS rows,
       ${['lake', 'version', 'digest', 'dated'].map(says).join(', ')}
     FROM parquet_file_metadata(${quotePaths(paths)}) f LEFT JOIN facts k ON k.path = f.file_name GROUP BY ALL`,
  )
  return new Map(rows.map(({ path, ...footer }) => [path, footer]))
}

/** Reads the footers of a folder's data files, without a journal or index; files that cannot be read are skipped. */
export async function dataFooters(root: string): Promise<Footer[]> {
  using engine = await Engine.open()
  const paths: string[] = []
  for await (const path of ownData(root)) if (path.endsWith('.parquet')) paths.push(inLake(root, path))
  const read = async (some: readonly string[]): Promise<Footer[]> => [...(await footersOf(engine, some)).values()]
  const unlessDamaged = async (some: readonly string[]): Promise<Footer[] | undefined> =>
    await read(some).catch((error: unknown) => {
      requireFileError(error, 'reading the footers of the data files')
      return undefined
    })
  const all = await unlessDamaged(paths)
  if (all) return all
  const readableFooters = await Promise.all(paths.map(async (path) => (await unlessDamaged([path])) ?? []))
  return readableFooters.flat()
}

/** Data files in a folder whose journal and ledger do not explain them. */
export interface StrayDataFiles {
  readonly files: number
  readonly bytes: number
  /** The lakes that their footers name, sorted; more than one if folders were mixed. */
  readonly lakes: readonly string[]
  /** The newest version that they name; 0 if none does. */
  readonly version: number
}

/** Counts the data files in a folder whose journal and ledger do not explain them. */
export async function countStrayDataFiles(root: string): Promise<StrayDataFiles> {
  const paths: string[] = []
  for await (const path of ownData(root)) paths.push(path)
  const sizes = await Promise.all(paths.map(async (path) => (await statOf(inLake(root, path)))?.size ?? 0))
  const footers = await dataFooters(root)
  const marker = await readMarker(root)
  const named = [...footers.flatMap(({ lake }) => lake ?? []), ...(marker === null ? [] : [marker])]
  return {
    files: paths.length,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    lakes: [...new Set(named)].toSorted(),
    version: Math.max(
      ...paths.map((path) => dataVersion(path) ?? 0),
      ...footers.map((footer) => Number(footer.version ?? 0)),
    ),
  }
}

/** Identity of a point's series in points files, in addition to metric and interval. */
export interface Identity {
  readonly asset: string
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  /** Parameters as JSON text with sorted keys. */
  readonly params: string | null
}

/** Columns of an identity, in the order in which files are sorted. */
export const identityColumns = ['asset', 'currency', 'exchange', 'network', 'params'] as const

/** The stored points of one series, counted in the files. */
export interface SeriesCount extends Identity {
  readonly metric: string
  /** The interval under which the points are stored. */
  readonly interval: string
  readonly points: number
  /** The first `t`, seconds. */
  readonly first: number
  /** The last `t`, seconds. */
  readonly last: number
}

/** Counts the points of every series in a relation over points files. */
export async function countSeries(engine: Engine, points: string): Promise<SeriesCount[]> {
  return await engine.rows<{ [K in keyof SeriesCount]: SeriesCount[K] }>(
    `SELECT metric, "interval", ${identityColumns.join(', ')}, count(*)::DOUBLE AS points,
       (epoch_us(min(t)) // 1000000)::DOUBLE AS first, (epoch_us(max(t)) // 1000000)::DOUBLE AS last
     FROM ${points} GROUP BY ALL`,
  )
}
