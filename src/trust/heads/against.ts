import { usage } from '../../base/errors.ts'
import { type StoredFile, liveFiles } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { logHashes } from '../../lake/ledger/log.ts'
import { Engine, quote, quoteName, quotePaths } from '../../lake/store/engine.ts'
import { inLake } from '../../lake/store/layout.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import type { Micros } from '../../base/time.ts'
import { readPoints } from '../../query/views/relations.ts'
import { growingTables, relation } from '../../sources/registry/columns.ts'
import { sharesOf } from '../../sources/points/files.ts'
import { damageOf } from './check.ts'

/** Rows of a table, or of the points of a metric, whose files the lake replaced after the copy was made. */
export interface ComparedRows {
  readonly table: string
  /** Null for tables without metrics. */
  readonly metric: string | null
  /** Rows in files of the copy that the lake no longer lists. */
  readonly rows: number
  /** Rows of the copy that the lake does not have in the files that replaced them. */
  readonly missing: number
  /** Rows that these files date back to the time of the copy, and that the copy does not have. */
  readonly added: number
}

/** Comparison of a lake with an earlier copy of it. */
export interface CopyComparison {
  /** Newest version of the copy. */
  readonly version: number
  /** Files that the copy and the lake list alike. */
  readonly files: number
  /** Whether `available_at` and its basis were compared; not if the lake was redated after the copy was made. */
  readonly dates: boolean
  readonly compared: readonly ComparedRows[]
}

/** Column that merging fills. */
const supersededColumn = 'superseded_at'

/** Columns that `redate` changes. */
const datingColumns: readonly string[] = ['available_at', 'basis', 'available_rule_at', 'computed_at']

/**
 * Compares the contents of a lake with a copy of an earlier version. Merging replaces files: the rows of the replaced
 * ones must be in the files that replaced them. The log of the copy must be the beginning of the lake's.
 */
export async function compareCopy(ledger: Ledger, copyRoot: string): Promise<CopyComparison> {
  using copy = await Ledger.inMemory(copyRoot)
  const { version, committed_at: at } = copy.head()
  const leaves = logHashes(ledger)
  const earlierLeaves = logHashes(copy)
  if (version === 0 || earlierLeaves.length > leaves.length || earlierLeaves.some((leaf, n) => leaf !== leaves[n]))
    throw usage('--against', {
      expected: 'a copy of an earlier version of this lake',
      got: version === 0 ? `${copyRoot}, which is no lake` : 'a copy with a different history',
      next: 'name a backup or a mirror of this lake',
    })
  const damage = await damageOf(copy)
  if (damage !== undefined)
    throw usage('--against', { expected: 'a sound copy', got: damage, next: `run pitlake doctor --data ${copyRoot}` })
  const now = liveFiles(ledger)
  const then = liveFiles(copy)
  const dates = !now.some(({ table, label }) => table === 'redated' && Number(label) > at)
  const namesNow = new Set(now.map(nameOf))
  const namesThen = new Set(then.map(nameOf))
  const goneFiles = then.filter((file) => !namesNow.has(nameOf(file)))
  const come = now.filter((file) => !namesThen.has(nameOf(file)))
  using engine = await Engine.open(':memory:')
  const compared: ComparedRows[] = []
  for (const part of partsOf(goneFiles))
    compared.push(await compareRows(engine, part, { ledger, copyRoot, gone: goneFiles, come, at, dates }))
  return { version, files: then.length - goneFiles.length, dates, compared }
}

/** Names a file as a live list does. */
const nameOf = ({ table, path, sha256, label }: StoredFile): string => JSON.stringify([table, path, sha256, label])

/** A table, or the points of a metric. */
type Part = Pick<ComparedRows, 'table' | 'metric'>

/**
 * Lists tables and metrics of files whose rows can be compared: points, the registry and the listing; other files have
 * no rows of time.
 */
function partsOf(files: readonly StoredFile[]): Part[] {
  const parts = files.flatMap((file): Part[] => {
    if (file.table === 'points') return sharesOf(file).map(({ metric }) => ({ table: 'points', metric }))
    return isCompared(file.table) ? [{ table: file.table, metric: null }] : []
  })
  return [...new Map(parts.map((part) => [`${part.table} ${part.metric}`, part])).values()]
}

const isCompared = (table: string): boolean =>
  table.startsWith('history.') || growingTables.includes(table) || table === listing

/** Table of the assets that the metrics API lists. */
const listing = 'metric_assets'

/** Files that differ between the copy and the lake. */
interface Difference {
  readonly ledger: Ledger
  readonly copyRoot: string
  readonly gone: readonly StoredFile[]
  readonly come: readonly StoredFile[]
  /** Commit time of the copy's newest version. */
  readonly at: Micros
  readonly dates: boolean
}

async function compareRows(engine: Engine, part: Part, difference: Difference): Promise<ComparedRows> {
  const { ledger, copyRoot, gone, come, at, dates } = difference
  const rowsOf = (root: string, files: readonly StoredFile[]): string => {
    const filesOfTable = files.filter(({ table }) => table === part.table)
    if (part.metric !== null) return `(FROM ${readPoints(root, filesOfTable)} WHERE metric = ${quote(part.metric)})`
    const paths = [...new Set(filesOfTable.map(({ path }) => inLake(root, path)))]
    return part.table === listing ? listingRelation(paths) : relation(part.table, paths)
  }
  const then = rowsOf(copyRoot, gone)
  const now = rowsOf(ledger.root, come)
  const left = new Set([supersededColumn, ...(dates ? [] : datingColumns)])
  const thenColumns = await namesOf(engine, then)
  const nowColumns = await namesOf(engine, now)
  const names = [...new Set([...thenColumns, ...nowColumns])].filter((name) => !left.has(name))
  const clock = names.includes('observed_at') ? 'observed_at' : 'at'
  const select = (rows: string, columns: readonly string[]): string => {
    // As text every bit of a value counts.
    const texts = names.map((name) => `CAST(${columns.includes(name) ? quoteName(name) : 'NULL'} AS VARCHAR)`)
    return `SELECT ${texts.join(', ')} FROM ${rows} WHERE ${clock} <= make_timestamptz(${at}::BIGINT)`
  }
  const a = select(then, thenColumns)
  const b = select(now, nowColumns)
  const [row] = await engine.rows<{ rows: bigint; missing: bigint; added: bigint }>(
    `SELECT (SELECT count(*) FROM (${a})) AS rows, (SELECT count(*) FROM (${a} EXCEPT ALL ${b})) AS missing,
      (SELECT count(*) FROM (${b} EXCEPT ALL ${a})) AS added`,
  )
  return { ...part, rows: Number(row?.rows), missing: Number(row?.missing), added: Number(row?.added) }
}

/** SQL of the rows of files of the listing, for FROM. */
function listingRelation(paths: readonly string[]): string {
  if (paths.length === 0) return '(SELECT CAST(NULL AS TIMESTAMPTZ) AS observed_at WHERE false)'
  return `read_parquet(${quotePaths(paths)}, hive_partitioning = false)`
}

async function namesOf(engine: Engine, rows: string): Promise<string[]> {
  return (await columnsOf(engine, rows)).map(({ name }) => name)
}
