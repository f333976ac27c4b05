import type { StoredFile } from '../../lake/ledger/index-queries.ts'
import { listName } from '../../lake/ledger/live-lists.ts'
import { sharesOf } from '../../sources/points/files.ts'
import { nodesOf } from '../../query/parse-tree.ts'
import { type Engine, quote, plainPath } from '../../lake/store/engine.ts'
import { ownFolders } from '../../lake/store/layout.ts'

/** The data that a query reads according to its bound and optimized plan. It never lists less than the query reads. */
export interface QueryReads {
  /** Names of the live lists whose files it reads, such as `points supply/current_pit`. */
  readonly lists: ReadonlySet<string>
  /** Metrics whose points it reads. */
  readonly metrics: ReadonlySet<string>
  /** Tables of the ledger and the catalogue (`endpoints`, `coverage` …); no live list has their files. */
  readonly ownTables: ReadonlySet<string>
  /** Whether the engine returned a plan; without one the query may read everything. */
  readonly complete: boolean
}

type Node = Readonly<Record<string, unknown>>

/**
 * Reads from the engine's plan of a SELECT which rows it reads: a filter that reached a scan is true of every row.
 * `files` are the live files of the version that it reads.
 */
export async function readsOf(
  engine: Engine,
  sql: string | undefined,
  files: readonly StoredFile[],
): Promise<QueryReads> {
  const lists = new Set<string>()
  const metrics = new Set<string>()
  const ownTables = new Set<string>()
  const named = Map.groupBy(files, ({ path }) => path)
  const names = new Set(files.map(listName))
  const addMetric = (metric: string): void => {
    metrics.add(metric)
    for (const name of listsOfMetric(metric)) if (names.has(name)) lists.add(name)
  }
  const ask = `SELECT CAST(system.main.json_serialize_plan(${quote(sql ?? '')}, optimize := true) AS VARCHAR) AS plan`
  const [row] = sql === undefined ? [] : await engine.rows<{ plan: string }>(ask)
  const plan = JSON.parse(row?.plan ?? '{}') as Node
  if (plan['error'] !== false) {
    for (const file of files) for (const metric of metricsOf(file)) addMetric(metric)
    return { lists: names, metrics, ownTables, complete: false }
  }
  for (const node of nodesOf(plan['plans'])) {
    const paths = (node['function_data'] as { files?: readonly string[] } | undefined)?.files
    if (node['type'] !== 'LOGICAL_GET' || node['name'] !== 'read_parquet' || paths === undefined) continue
    const found = new Set<string>()
    for (const path of paths.map((path) => lakePath(plainPath(path)))) {
      const listed = named.get(path)
      if (listed === undefined) ownTables.add(path.split('/').at(-1)?.split('-')[0] ?? path)
      for (const file of listed ?? []) {
        const metrics = metricsOf(file)
        if (metrics.length === 0) lists.add(listName(file))
        for (const metric of metrics) found.add(metric)
      }
    }
    if (found.size === 0) continue
    const wanted = boundOf(node, 'metric')
    for (const metric of found) if (wanted === null || wanted.has(metric)) addMetric(metric)
  }
  return { lists, metrics, ownTables, complete: true }
}

/** Lists the metrics whose points a file contains; none for a file of another table. */
function metricsOf(file: StoredFile): readonly string[] {
  return file.table === 'points' || file.table === 'redated' ? sharesOf(file).map(({ metric }) => metric) : []
}

/**
 * Names the live lists that may contain points of a metric: recent files have several metrics, `redated` earlier dates.
 */
function listsOfMetric(metric: string): readonly string[] {
  return ['points', 'redated'].flatMap((table) => [listName({ table, metric }), listName({ table, metric: null })])
}

/** Returns the path of a file relative to the lake, by the folders that a lake has. */
function lakePath(path: string): string {
  return path.slice(Math.max(...ownFolders.map((place) => path.lastIndexOf(`/${place}/`))) + 1)
}

/** Lists the texts to which the filters of a scan restrict a column; null if it may be any. */
function boundOf(scan: Node, column: string): ReadonlySet<string> | null {
  const names = scan['names'] as readonly string[]
  const columns = scan['column_indexes'] as readonly { index?: number }[]
  const { filters = [] } = (scan['table_filters'] ?? {}) as { filters?: readonly { key: number; value: Node }[] }
  const ownFilter = filters.find(({ key }) => names[columns[key]?.index ?? -1] === column)
  const texts = ownFilter && textsOf(ownFilter.value)
  return texts === undefined ? null : new Set(texts)
}

/** Lists the texts that a filter lets pass; undefined if it may be any. */
function textsOf(filter: Node): readonly string[] | undefined {
  const { filter_type: type, child_filter: child, child_filters: children } = filter
  if (type === 'OPTIONAL_FILTER') return textsOf(child as Node)
  if (type === 'CONJUNCTION_AND') return (children as readonly Node[]).map(textsOf).find((texts) => texts !== undefined)
  const equal = type === 'CONSTANT_COMPARISON' && filter['comparison_type'] === 'COMPARE_EQUAL'
  const values = (type === 'IN_FILTER' ? filter['values'] : equal ? [filter['constant']] : []) as readonly Node[]
  const texts = values.map((value) => value['value']).filter((value) => typeof value === 'string')
  return texts.length > 0 && texts.length === values.length ? texts : undefined
}
