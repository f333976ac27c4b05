import { type Columns, columnsOf, parquet } from '../store/parquet.ts'
import { footersOf } from '../store/footers.ts'
import { type Engine, quoteList } from '../store/engine.ts'
import { LakeError } from '../errors.ts'
import { dataVersion, inLake, parsePointsFile, parseRegistryFile, places } from '../store/layout.ts'
import { prove, refuseNewerFiles } from './merge.ts'
import { supersededColumn } from './merge-history.ts'
import { type Interval, parseMicros } from '../time.ts'

/** A data file that can be read whole, and what its name and its footer say of it. */
export interface FoundFile {
  /** Relative to the lake. */
  readonly path: string
  readonly table: string
  readonly metric: string | null
  readonly interval: Interval | null
  readonly version: number
  readonly rows: number
  readonly columns: Columns
  /** The digest that its footer tells, which held; null where it tells none. */
  readonly digest: string | null
  /** When a change of rules dated its points, in microseconds; 0 where its footer tells none. */
  readonly datedAt: number
}

/** A file that is not taken up, and why. */
export interface Unfit {
  readonly path: string
  readonly why: string
}

/** What a path of the layout holds; undefined where no table of this program does. */
function tableOf(path: string): Pick<FoundFile, 'table' | 'metric' | 'interval'> | undefined {
  const nothing = { metric: null, interval: null }
  if (!path.endsWith('.parquet')) return undefined
  const own = parsePointsFile(path)
  if (own) return { table: 'points', metric: own.metric, interval: own.interval }
  if (path.startsWith(`${places.points}/recent/`)) return { table: 'points', ...nothing }
  if (path.startsWith(`${places.assets}/`)) return { table: 'metric_assets', ...nothing }
  const table = parseRegistryFile(path)?.table
  return table === undefined ? undefined : { table, ...nothing }
}

/** Reads a file whole and holds it against its footer. A file of a newer program is refused with all the rest. */
export async function readFound(engine: Engine, root: string, path: string, lake: string): Promise<FoundFile | Unfit> {
  const about = tableOf(path)
  if (!about) return { path, why: 'bodies as received and files of unknown tables are not taken up' }
  try {
    return await proveFound(engine, inLake(root, path), lake, { path, ...about })
  } catch (error) {
    if (error instanceof LakeError) throw error
    return { path, why: 'it cannot be read' }
  }
}

async function proveFound(
  engine: Engine,
  full: string,
  lake: string,
  about: Pick<FoundFile, 'path' | 'table' | 'metric' | 'interval'>,
): Promise<FoundFile | Unfit> {
  const { path, table } = about
  const footer = (await footersOf(engine, [full])).get(full)
  if (!footer) return { path, why: 'it cannot be read' }
  // The listing of assets is written without a footer of ours.
  if (footer.lake !== lake && !(footer.lake === null && table === 'metric_assets'))
    return { path, why: footer.lake === null ? 'its footer names no lake' : `it is of the lake ${footer.lake}` }
  await refuseNewerFiles(engine, [full])
  const columns = (await columnsOf(engine, parquet([full]))).filter(({ name }) => name !== supersededColumn)
  const proof = await prove(engine, parquet([full]), columns, table)
  const { digest = null, dated = null } = await toldBy(engine, full)
  if (proof.rows !== footer.rows) return { path, why: 'it holds another number of rows than its footer says' }
  if (digest !== null && digest !== proof.digest) return { path, why: 'its digest does not hold' }
  const version = Math.max(Number(footer.version ?? 0), dataVersion(path) ?? 0)
  return { ...about, version, rows: proof.rows, columns, digest, datedAt: Number(dated ?? 0) }
}

async function toldBy(engine: Engine, full: string): Promise<{ digest?: string | null; dated?: string | null }> {
  const [row] = await engine.rows<{ digest: string | null; dated: string | null }>(
    `SELECT max(value) FILTER (name = 'pitlake_digest') AS digest, max(value) FILTER (name = 'pitlake_dated') AS dated
     FROM (SELECT decode(key) AS name, decode(value) AS value FROM parquet_kv_metadata(${quoteList([full])}))`,
  )
  return row ?? {}
}

/** When the run that wrote a file began, as its name tells, in microseconds, and whether it changed dates; 0 where none. */
export function writtenBy(path: string): { readonly at: number; readonly redate: boolean } {
  const match = /\/\d+-(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)(\d{3})z-\d+(-redate-)?/.exec(path)
  if (!match) return { at: 0, redate: false }
  const [, year, month, day, hour, minute, second, thousandth, redate] = match
  const at = parseMicros(`${year}-${month}-${day}T${hour}:${minute}:${second}.${thousandth}Z`) ?? 0
  return { at, redate: redate !== undefined }
}

/** The order in which files that hold the same are preferred: what was written later comes first. */
export function byPreference(a: FoundFile, b: FoundFile): number {
  const later = writtenBy(b.path).at - writtenBy(a.path).at
  if (a.datedAt !== b.datedAt) return b.datedAt - a.datedAt
  if (later !== 0) return later
  if (a.version !== b.version) return b.version - a.version
  return a.path < b.path ? 1 : -1
}
