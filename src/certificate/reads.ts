import type { HeldFile } from '../ledger/held.ts'
import { sharesOf } from '../points/files.ts'
import { type Engine, quote } from '../store/engine.ts'
import { parseRegistryFile, places } from '../store/layout.ts'
import { plainPath } from '../views/read-points.ts'
import { nodesOf } from '../query/tree.ts'

/** What a query reads of points: of these metrics, and of these assets where it names them. */
interface PointsRead {
  readonly metrics: ReadonlySet<string>
  /** Null: any. */
  readonly assets: ReadonlySet<string> | null
}

/** What a query reads, by its bound and optimized plan; at least that. */
export interface Reads {
  readonly points: readonly PointsRead[]
  /** Tables of the registry. */
  readonly tables: ReadonlySet<string>
  /** The lake's own tables (`endpoints`, `coverage` …), of which no state tells. */
  readonly own: ReadonlySet<string>
  /** Whether the engine told its plan: else everything may be read. */
  readonly told: boolean
}

type Node = Readonly<Record<string, unknown>>

/** Asks the engine for the plan of a SELECT: a filter that reached a scan holds of every row that it reads. */
export async function readsOf(engine: Engine, sql: string | undefined, files: readonly HeldFile[]): Promise<Reads> {
  const all = { points: [], tables: new Set<string>(), own: new Set<string>(), told: false }
  if (sql === undefined) return all
  const [row] = await engine.rows<{ plan: string }>(
    `SELECT CAST(system.main.json_serialize_plan(${quote(sql)}, optimize := true) AS VARCHAR) AS plan`,
  )
  const plan = JSON.parse(row?.plan ?? '{}') as Node
  if (plan['error'] !== false) return all
  const held = new Map(files.map((file) => [file.path, file]))
  const points: PointsRead[] = []
  for (const node of nodesOf(plan['plans'])) {
    const paths = (node['function_data'] as { files?: readonly string[] } | undefined)?.files
    if (node['type'] !== 'LOGICAL_GET' || node['name'] !== 'read_parquet' || paths === undefined) continue
    const inside = paths.map((path) => lakePath(plainPath(path)))
    const metrics = new Set<string>()
    for (const path of inside) {
      const file = held.get(path)
      const table = parseRegistryFile(path)?.table
      if (file && (file.table === 'points' || file.table === 'redated'))
        for (const { metric } of sharesOf(file)) metrics.add(metric)
      else if (table !== undefined) all.tables.add(table)
      else all.own.add(ownName(path))
    }
    if (metrics.size === 0) continue
    const bounds = boundsOf(node)
    const wanted = bounds.get('metric')
    points.push({
      metrics: wanted === undefined ? metrics : new Set([...metrics].filter((one) => wanted.has(one))),
      assets: bounds.get('asset') ?? null,
    })
  }
  return { ...all, points, told: true }
}

/** The path of a file relative to the lake, by the folders that a lake has. */
function lakePath(path: string): string {
  const at = [places.points, places.registry, places.assets, places.archive, places.stamps, places.exports].map(
    (place) => path.lastIndexOf(`/${place}/`),
  )
  return path.slice(Math.max(...at) + 1)
}

/** `exports/endpoints-<digests>.parquet` holds the table `endpoints`. */
function ownName(path: string): string {
  return path.split('/').at(-1)?.split('-')[0] ?? path
}

/** The columns of a scan that its filters hold to some texts. */
function boundsOf(scan: Node): Map<string, ReadonlySet<string>> {
  const names = scan['names'] as readonly string[]
  const columns = scan['column_indexes'] as readonly { readonly index?: number }[]
  const filters = (scan['table_filters'] as { filters?: readonly { key: number; value: Node }[] } | undefined)?.filters
  const found = new Map<string, ReadonlySet<string>>()
  for (const { key, value } of filters ?? []) {
    const texts = textsOf(value)
    const name = names[columns[key]?.index ?? -1]
    if (texts !== undefined && name !== undefined) found.set(name, new Set(texts))
  }
  return found
}

/** The texts that a filter lets pass; undefined where it may be any. */
function textsOf(filter: Node): readonly string[] | undefined {
  const { filter_type: type, child_filter: child, child_filters: children } = filter
  if (type === 'OPTIONAL_FILTER') return textsOf(child as Node)
  if (type === 'CONJUNCTION_AND') return (children as readonly Node[]).map(textsOf).find((texts) => texts !== undefined)
  const equal = type === 'CONSTANT_COMPARISON' && filter['comparison_type'] === 'COMPARE_EQUAL'
  const values = (type === 'IN_FILTER' ? filter['values'] : equal ? [filter['constant']] : []) as readonly Node[]
  const texts = values.map((value) => value['value']).filter((value) => typeof value === 'string')
  return texts.length > 0 && texts.length === values.length ? texts : undefined
}
