import type { HeldFile } from '../../lake/ledger/index-queries.ts'
import { sharesOf } from '../../sources/points/files.ts'
import { nodesOf } from '../../query/parse-tree.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import { ownFolders, parseRegistryFile } from '../../lake/store/layout.ts'
import { plainPath } from '../../query/views/read-points.ts'

/** The data that a query reads according to its bound and optimized plan. It never lists less than the query reads. */
export interface QueryReads {
  /** Scans of points. */
  readonly points: readonly PointsRead[]
  /** Tables of the registry. */
  readonly tables: ReadonlySet<string>
  /** Tables of the ledger and the catalogue (`endpoints`, `coverage` …); the state tree does not cover them. */
  readonly own: ReadonlySet<string>
  /** Whether the engine returned a plan; without one the query may read everything. */
  readonly told: boolean
}

/** One scan of points. */
interface PointsRead {
  readonly metrics: ReadonlySet<string>
  /** Assets to which a filter limits the scan; null if there is no such filter. */
  readonly assets: ReadonlySet<string> | null
}

type Node = Readonly<Record<string, unknown>>

/** Asks the engine for the plan of a SELECT: a filter that reached a scan holds of every row that it reads. */
export async function readsOf(
  engine: Engine,
  sql: string | undefined,
  files: readonly HeldFile[],
): Promise<QueryReads> {
  const points: PointsRead[] = []
  const [tables, own] = [new Set<string>(), new Set<string>()]
  const ask = `SELECT CAST(system.main.json_serialize_plan(${quote(sql ?? '')}, optimize := true) AS VARCHAR) AS plan`
  const [row] = sql === undefined ? [] : await engine.rows<{ plan: string }>(ask)
  const plan = JSON.parse(row?.plan ?? '{}') as Node
  if (plan['error'] !== false) return { points, tables, own, told: false }
  const held = new Map(files.map((file) => [file.path, file]))
  for (const node of nodesOf(plan['plans'])) {
    const paths = (node['function_data'] as { files?: readonly string[] } | undefined)?.files
    if (node['type'] !== 'LOGICAL_GET' || node['name'] !== 'read_parquet' || paths === undefined) continue
    const found = new Set<string>()
    for (const path of paths.map((one) => lakePath(plainPath(one)))) {
      const [file, table] = [held.get(path), parseRegistryFile(path)?.table]
      if (file && (file.table === 'points' || file.table === 'redated'))
        for (const { metric } of sharesOf(file)) found.add(metric)
      else if (table !== undefined) tables.add(table)
      else own.add(path.split('/').at(-1)?.split('-')[0] ?? path)
    }
    if (found.size === 0) continue
    const wanted = boundOf(node, 'metric')
    const metrics = wanted === null ? found : new Set([...found].filter((one) => wanted.has(one)))
    points.push({ metrics, assets: boundOf(node, 'asset') })
  }
  return { points, tables, own, told: true }
}

/** The path of a file relative to the lake, by the folders that a lake has. */
function lakePath(path: string): string {
  return path.slice(Math.max(...ownFolders.map((place) => path.lastIndexOf(`/${place}/`))) + 1)
}

/** The texts to which the filters of a scan hold a column; null where it may be any. */
function boundOf(scan: Node, column: string): ReadonlySet<string> | null {
  const [names, columns] = [scan['names'] as readonly string[], scan['column_indexes'] as readonly { index?: number }[]]
  const { filters = [] } = (scan['table_filters'] ?? {}) as { filters?: readonly { key: number; value: Node }[] }
  const own = filters.find(({ key }) => names[columns[key]?.index ?? -1] === column)
  const texts = own && textsOf(own.value)
  return texts === undefined ? null : new Set(texts)
}

/** The texts that a filter lets pass; undefined where it may be any. */
function textsOf(filter: Node): readonly string[] | undefined {
  const { filter_type: type, child_filter: child, child_filters: children } = filter
  if (type === 'OPTIONAL_FILTER') return textsOf(child as Node)
  if (type === 'CONJUNCTION_AND') return (children as readonly Node[]).map(textsOf).find((one) => one !== undefined)
  const equal = type === 'CONSTANT_COMPARISON' && filter['comparison_type'] === 'COMPARE_EQUAL'
  const values = (type === 'IN_FILTER' ? filter['values'] : equal ? [filter['constant']] : []) as readonly Node[]
  const texts = values.map((value) => value['value']).filter((value) => typeof value === 'string')
  return texts.length > 0 && texts.length === values.length ? texts : undefined
}
