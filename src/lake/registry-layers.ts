import type { Resource } from '../catalog/catalogue.ts'
import type { Resources } from '../registry/bodies.ts'
import type { Memory, Poll, Settled } from '../registry/history.ts'
import type { Fields } from '../registry/json.ts'
import { childrenOf, typedFields } from '../registry/record.ts'
import type { Lines } from './registry-lines.ts'

/** The files of which a dated table was made: a whole one, and at most one with all that changed since. */
export interface Layers {
  readonly base: string
  /** When the base was observed, in microseconds. */
  readonly base_at: number
  readonly delta: string | null
  /** Rows of the table together; null where they were not counted. */
  readonly rows: number | null
}

/** How the next date of one table comes about. */
export interface LayerPlan {
  readonly table: string
  readonly kind: 'same' | 'delta' | 'base'
  readonly rows: number | null
}

/** Beyond this share of changed entities a new base is smaller in the long run. */
const deltaShare = 0.1

/** What dated tables are planned from. */
export interface DatedInput {
  readonly poll: Poll
  readonly settled: Settled
  readonly memory: Memory
  /** The layers of the last snapshot, by table, and when it was observed. */
  readonly layers: Readonly<Record<string, Layers>>
  readonly lastAt: number
}

/** Decides for each table of a snapshot what must be written, and writes it as lines named `dated.<table>`. */
export function writeDated(lines: Lines, input: DatedInput): LayerPlan[] {
  const view = currentView(input)
  const plans: LayerPlan[] = []
  for (const resource of input.memory.resources.values()) {
    if (view.open(resource).length === 0 && !input.layers[resource.name] && view.touched(resource, 0).size === 0)
      continue
    const kind = kindOf(input, view, resource.name, [resource])
    plans.push({ table: resource.name, kind, rows: view.open(resource).length })
    for (const id of idsFor(input, view, resource, kind, resource.name)) {
      const text = view.text(resource, id)
      const record = text === undefined ? undefined : (JSON.parse(text) as Fields)
      const fields = record ? { ...typedFields(resource, record), record: text } : {}
      lines.add(`dated.${resource.name}`, { entity: id, removed: !record, id, ...fields })
    }
  }
  for (const table of embeddedTables(input.memory.resources)) plans.push(...embeddedPlan(lines, input, view, table))
  return plans
}

function embeddedTables(resources: Resources): string[] {
  const tables = [...resources.values()].flatMap(({ embeds }) => Object.values(embeds))
  return [...new Set(tables)].filter((table) => !resources.has(table))
}

function embeddedPlan(lines: Lines, input: DatedInput, view: View, table: string): LayerPlan[] {
  const parents = [...input.memory.resources.values()].filter(({ embeds }) => Object.values(embeds).includes(table))
  const kind = kindOf(input, view, table, parents)
  let rows = 0
  for (const parent of parents)
    for (const id of idsFor(input, view, parent, kind, table)) {
      const text = view.text(parent, id)
      const all = text === undefined ? [] : childrenOf(parent, JSON.parse(text) as Fields)
      const children = all.filter((child) => child.table === table)
      const entity = `${parent.entity}/${id}`
      const key = { parent_type: parent.entity, parent_id: id }
      if (children.length === 0 && kind === 'delta')
        lines.add(`dated.${table}`, { entity, removed: true, id: entity, ...key })
      for (const { id: name, ordinal, content_hash, text: record } of children)
        lines.add(`dated.${table}`, { entity, removed: false, id: name, ...key, ordinal, content_hash, record })
      rows += children.length
    }
  if (kind === 'base' && rows === 0) return []
  return [{ table, kind, rows: kind === 'base' ? rows : kind === 'same' ? (input.layers[table]?.rows ?? null) : null }]
}

function kindOf(input: DatedInput, view: View, table: string, resources: readonly Resource[]): LayerPlan['kind'] {
  const held = input.layers[table]
  if (!held) return 'base'
  const since = (at: number): number => resources.reduce((sum, resource) => sum + view.touched(resource, at).size, 0)
  if (since(input.lastAt) === 0) return 'same'
  const all = resources.reduce((sum, resource) => sum + view.open(resource).length, 0)
  return since(held.base_at) > deltaShare * all ? 'base' : 'delta'
}

function idsFor(
  input: DatedInput,
  view: View,
  resource: Resource,
  kind: LayerPlan['kind'],
  table: string,
): Iterable<string> {
  if (kind === 'same') return []
  return kind === 'base' ? view.open(resource) : view.touched(resource, input.layers[table]?.base_at ?? 0)
}

/** The registry as it is by the end of the poll. */
interface View {
  readonly open: (resource: Resource) => readonly string[]
  /** Entities that changed after an instant, gone ones included. */
  readonly touched: (resource: Resource, since: number) => ReadonlySet<string>
  /** The text of an entity; undefined for one that is gone. */
  readonly text: (resource: Resource, id: string) => string | undefined
}

function currentView({ poll, settled, memory }: DatedInput): View {
  const changed = new Map<string, Map<string, string | null>>()
  const note = (table: string, id: string, text: string | null): void => {
    const texts = changed.get(table)
    if (texts) texts.set(id, text)
    else changed.set(table, new Map([[id, text]]))
  }
  for (const step of settled.steps) if (!step.child) note(step.table, step.id, step.text)
  for (const { resource, id, text } of settled.absorbed) note(resource, id, text)
  const opened = new Map<string, readonly string[]>()
  return {
    open: ({ name }) => {
      const known = opened.get(name)
      if (known) return known
      const made = openIds(poll, name)
      opened.set(name, made)
      return made
    },
    touched: ({ name }, since) => {
      const ids = new Set(changed.get(name)?.keys())
      for (const entity of poll.held.get(name)?.values() ?? []) if (entity.at > since) ids.add(entity.id)
      return ids
    },
    text: ({ name }, id) => {
      const now = changed.get(name)?.get(id)
      if (now !== undefined) return now ?? undefined
      const told = poll.outlook.get(name)?.get(id)
      if (told?.incoming && !told.incoming.bare) return told.incoming.text
      if (told && !told.incoming) return undefined
      return poll.held.get(name)?.get(id)?.open === true ? memory.texts(name, id)?.latest : undefined
    },
  }
}

function openIds(poll: Poll, resource: string): string[] {
  const told = poll.outlook.get(resource)
  const ids: string[] = []
  for (const [id, { incoming }] of told ?? []) if (incoming) ids.push(id)
  for (const entity of poll.held.get(resource)?.values() ?? [])
    if (entity.open && !told?.has(entity.id)) ids.push(entity.id)
  return ids.toSorted()
}

/** The entities whose texts a dated table needs beyond those that the poll itself brings. */
export function unseen(poll: Poll): Map<string, Set<string>> {
  const wanted = new Map<string, Set<string>>()
  for (const [resource, entities] of poll.held) {
    const told = poll.outlook.get(resource)
    const ids = [...entities.values()].filter(({ id, open }) => {
      const outlook = told?.get(id)
      return open && (!outlook || outlook.incoming?.bare === true)
    })
    if (ids.length > 0) wanted.set(resource, new Set(ids.map(({ id }) => id)))
  }
  return wanted
}
