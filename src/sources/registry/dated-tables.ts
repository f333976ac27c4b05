import type { Resource } from '../../catalog/catalogue.ts'
import type { Resources } from './bodies.ts'
import { embeddedTables } from './columns.ts'
import { type Memory, type Poll, openIds } from './history.ts'
import type { Fields } from './json.ts'
import { childrenOf, typedFields } from './record.ts'
import type { PollChange, Lines } from './poll-lines.ts'
import { real, shape, orNull, type Proven, text } from '../../base/value-checks.ts'

/** The files of a dated table: a whole one, and at most one with all changes since. */
export const layersShape = shape({
  base: text,
  /** Time at which the base was observed, in microseconds. */
  base_at: real,
  delta: orNull(text),
  /** Rows of the table together; null if they were not counted. */
  rows: orNull(real),
})

export type Layers = Proven<typeof layersShape>

/** The form of the next date of a dated table: unchanged, a file of changes, or whole. */
export type LayerKind = 'same' | 'delta' | 'base'

/** The plan for the next date of one dated table. */
export interface LayerPlan {
  readonly table: string
  readonly kind: LayerKind
  /** The name of the lines to make it of; those of history if the whole table is new. */
  readonly lines: string
  /** Rows of the table; null if they were not counted. */
  readonly rows: number | null
}

/** Share of changed entities above which a new base is smaller in the long run. */
const deltaShare = 0.1

/** The input for planning dated tables. */
interface DatedInput {
  readonly poll: Poll
  readonly change: PollChange
  readonly memory: Memory
  /** The layers of the last snapshot, by table, and when it was observed. */
  readonly layers: Readonly<Record<string, Layers>>
  readonly lastAt: number
}

/** A table of records that occur in those of its parents; a resource is its own only parent. */
interface Dated {
  readonly table: string
  readonly parents: readonly Resource[]
  readonly kind: LayerKind
  /** Whether the lines of history already contain everything that it needs. */
  readonly shared: boolean
  readonly ids: (parent: Resource) => readonly string[]
}

/**
 * Decides for each table of a snapshot which files to write; writes lines for anything that the lines of history do not
 * contain.
 */
export function writeDated(lines: Lines, input: DatedInput): LayerPlan[] {
  const view = currentView(input)
  const tables = tablesOf(input, view)
  const embedded = new Map<string, number>()
  for (const resource of input.memory.resources.values()) {
    const childTables = tables.filter(
      ({ parents, kind, shared }) => parents.includes(resource) && kind !== 'same' && !shared,
    )
    const childIds = childTables.map((dated) => ({ dated, ids: new Set(dated.ids(resource)) }))
    const all = childIds.reduce((ids, child) => ids.union(child.ids), new Set<string>())
    for (const id of all) {
      const text = view.text(resource, id)
      const record = text === undefined ? undefined : (JSON.parse(text) as Fields)
      const inside = childIds.filter(({ ids }) => ids.has(id)).map(({ dated }) => dated)
      if (inside.some(({ table }) => table === resource.name))
        lines.add(`dated.${resource.name}`, rowOf(resource, id, text, record))
      const others = inside.filter(({ table }) => table !== resource.name)
      if (others.length > 0) addChildren(lines, others, resource, id, record, embedded)
    }
  }
  return tables.flatMap((dated) => planOf(lines, input, view, dated, embedded.get(dated.table) ?? 0))
}

function planOf(lines: Lines, input: DatedInput, view: PollView, dated: Dated, embedded: number): LayerPlan[] {
  const { table, kind, shared, parents } = dated
  const [resource] = parents
  const plan = { table, kind, lines: shared ? `history.${table}` : `dated.${table}` }
  if (resource?.name === table) return [{ ...plan, rows: view.open(resource).length }]
  if (kind === 'same') return [{ ...plan, rows: input.layers[table]?.rows ?? null }]
  if (kind === 'delta') return [{ ...plan, rows: null }]
  const rows = shared ? lines.size(plan.lines).rows : embedded
  return rows === 0 ? [] : [{ ...plan, rows }]
}

function rowOf(resource: Resource, id: string, text: string | undefined, record: Fields | undefined): object {
  if (!record) return { entity: id, removed: true, id }
  return { entity: id, removed: false, id, ...typedFields(resource, record), record: text }
}

/** Writes the rows of a record's embedded tables; if a delta must state that none are left, a row for that. */
function addChildren(
  lines: Lines,
  tables: readonly Dated[],
  parent: Resource,
  id: string,
  record: Fields | undefined,
  counts: Map<string, number>,
): void {
  const all = record ? childrenOf(parent, record) : []
  const entity = `${parent.entity}/${id}`
  const key = { parent_type: parent.entity, parent_id: id }
  for (const { table, kind } of tables) {
    const children = all.filter((child) => child.table === table)
    if (children.length === 0 && kind === 'delta')
      lines.add(`dated.${table}`, { entity, removed: true, id: entity, ...key })
    for (const { id: name, ordinal, content_hash, text } of children)
      lines.add(`dated.${table}`, { entity, removed: false, id: name, ...key, ordinal, content_hash, record: text })
    counts.set(table, (counts.get(table) ?? 0) + children.length)
  }
}

/** Returns the columns of a dated table that the lines of history lack, as SQL of those that they have. */
export function datedColumns(table: string, resources: Resources): Readonly<Record<string, string>> {
  const entity = resources.has(table) ? 'id' : `concat(parent_type, '/', parent_id)`
  return { entity, removed: 'false' }
}

function tablesOf(input: DatedInput, view: PollView): Dated[] {
  const resources = [...input.memory.resources.values()]
  const changedResources = resources.filter(
    (resource) => view.open(resource).length > 0 || input.layers[resource.name] || view.touched(resource, 0).size > 0,
  )
  const embedded = embeddedTables(input.memory.resources).map((table) => ({
    table,
    parents: resources.filter(({ embeds }) => Object.values(embeds).includes(table)),
  }))
  return [...changedResources.map((resource) => ({ table: resource.name, parents: [resource] })), ...embedded].map(
    (dated) => {
      const kind = kindOf(input, view, dated.table, dated.parents)
      const since = input.layers[dated.table]?.base_at ?? 0
      const ids = (parent: Resource): readonly string[] => {
        if (kind === 'same') return []
        return kind === 'base' ? view.open(parent) : [...view.touched(parent, since)].toSorted()
      }
      return { ...dated, kind, ids, shared: kind === 'base' && !dated.parents.some((parent) => isKnown(input, parent)) }
    },
  )
}

/** Whether any entity of a resource was open before the poll; otherwise the poll's own steps contain everything. */
function isKnown({ poll }: DatedInput, { name }: Resource): boolean {
  const entities = poll.storedEntities.get(name)?.values()
  return entities?.some(({ open }) => open) === true
}

function kindOf(input: DatedInput, view: PollView, table: string, resources: readonly Resource[]): LayerKind {
  const layersOfTable = input.layers[table]
  if (!layersOfTable) return 'base'
  const since = (at: number): number => resources.reduce((sum, resource) => sum + view.touched(resource, at).size, 0)
  if (since(input.lastAt) === 0) return 'same'
  const all = resources.reduce((sum, resource) => sum + view.open(resource).length, 0)
  return since(layersOfTable.base_at) > deltaShare * all ? 'base' : 'delta'
}

/** The registry as it is at the end of a poll. */
interface PollView {
  /** Returns the ids of open records, sorted. */
  readonly open: (resource: Resource) => readonly string[]
  /** Returns the ids of records that changed after a time (microseconds), including those that are gone. */
  readonly touched: (resource: Resource, since: number) => ReadonlySet<string>
  /** Returns the text of a record; undefined if it is gone. */
  readonly text: (resource: Resource, id: string) => string | undefined
}

function currentView({ poll, change, memory }: DatedInput): PollView {
  const opened = new Map<string, readonly string[]>()
  return {
    open: ({ name }: Resource): readonly string[] => {
      const ids = opened.get(name) ?? [...openIds(poll, name)].toSorted()
      opened.set(name, ids)
      return ids
    },
    touched: ({ name }: Resource, since: number): ReadonlySet<string> => {
      const ids = new Set(change.texts.get(name)?.keys())
      for (const entity of poll.storedEntities.get(name)?.values() ?? []) if (entity.at > since) ids.add(entity.id)
      return ids
    },
    text: ({ name }: Resource, id: string): string | undefined => {
      const now = change.texts.get(name)?.get(id)
      if (now !== undefined) return now ?? undefined
      const outlook = poll.outlook.get(name)?.get(id)
      if (outlook?.incoming && !outlook.incoming.bare) return outlook.incoming.text
      if (outlook && !outlook.incoming) return undefined
      return poll.storedEntities.get(name)?.get(id)?.open === true ? memory.texts(name, id)?.latest : undefined
    },
  }
}
