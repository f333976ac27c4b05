import { type Fields, type Value } from '../../src/sources/registry/json.ts'
import { type RegistryChange, type Records, readPage, readSnapshot } from '../../src/sources/registry/bodies.ts'
import {
  fold,
  type StoredEntities,
  type StoredEntity,
  type StoredTexts,
  type Poll,
} from '../../src/sources/registry/history.ts'
import { addKey, type KnownKeys, noKeys } from '../../src/sources/registry/keys.ts'
import { catalogue } from './sandbox-client.ts'

type Step = Parameters<Parameters<typeof fold>[2]>[0]

/** The registry's six resources. */
export const { resources } = catalogue

/** A small registry whose log can be read as the feed is: from a cursor, each entity with its current state. */
export class SmallWorld {
  readonly rows = new Map<string, Fields>()
  readonly log: string[] = []
  /** The entity type of each table. */
  readonly singular: Record<string, string> = { issuers: 'issuer', products: 'product', deployments: 'deployment' }

  /** Creates, changes or (null) removes; what embeds it is touched, too. */
  put(table: string, id: string, row: Fields | null): void {
    const key = `${table} ${id}`
    const before = this.rows.get(key)
    if (row === null && !before) return
    if (row === null) this.rows.delete(key)
    else this.rows.set(key, { id, ...row })
    this.log.push(key)
    const product = textOf((row ?? before)?.['product_id'])
    if (table === 'deployments') this.log.push(`products ${product}`)
    if (table === 'products' && row === null)
      for (const [held, { product_id }] of this.rows)
        if (held.startsWith('deployments ') && product_id === id) {
          this.rows.delete(held)
          this.log.push(held)
        }
  }

  record(key: string): Fields | null {
    const row = this.rows.get(key)
    if (!row || !key.startsWith('products ')) return row ?? null
    return { ...row, deployments: this.#deploymentsOf(textOf(row['id'])) }
  }

  #deploymentsOf(product: string): Value[] {
    const held = [...this.rows].filter(([key, row]) => key.startsWith('deployments ') && row['product_id'] === product)
    return held.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  }

  /** The events of the log entries in a range: each entity once, in the order of its last entry. */
  events(from: number, until: number): readonly RegistryChange[] {
    const touched = [...new Set(this.log.slice(from, until).toReversed())].toReversed()
    const data = touched.flatMap((key) => {
      const [table = '', id = ''] = key.split(' ')
      const record = this.record(key)
      if (!record && !this.log.includes(key)) return []
      return [{ entity_type: this.singular[table], entity_id: id, op: record ? 'updated' : 'deleted', record }]
    })
    const page = readPage(Buffer.from(JSON.stringify({ data, next_cursor: 'c', has_more: false })), resources)
    if (!page.ok) throw new Error(page.reason)
    return page.value.events
  }

  snapshot(): Records {
    const arrays = Object.keys(this.singular).map((table) => [table, this.#table(table)])
    const read = readSnapshot(Buffer.from(JSON.stringify({ ...Object.fromEntries(arrays), cursor: 'c' })), resources)
    if (!read.ok) throw new Error(read.reason)
    return read.value.records
  }

  #table(table: string): (Fields | null)[] {
    return [...this.rows.keys()].filter((key) => key.startsWith(`${table} `)).map((key) => this.record(key))
  }
}

const textOf = (value: Value | undefined): string => (typeof value === 'string' ? value : '')

/** What a poll comes to, its steps in their order. */
export interface Outcome extends ReturnType<typeof fold> {
  readonly steps: readonly Step[]
}

/** Settles a poll upon a memory that stays as it is. */
export function outcomeOf(poll: Poll, memory: Memory): Outcome {
  const steps: Step[] = []
  const rest = fold(poll, { resources, texts: memory.texts, keys: memory.keys() }, (step) => steps.push(step))
  return { ...rest, steps }
}

/** Keeps steps as the lake does, in memory. */
export class Memory {
  readonly held = new Map<string, Map<string, StoredEntity>>()
  readonly #texts = new Map<string, StoredTexts>()
  readonly steps: {
    at: number
    table: string
    id: string
    op: string | null
    closedBy: string | null
    hash: string | null
  }[] = []

  texts = (resource: string, id: string): StoredTexts | undefined => this.#texts.get(`${resource} ${id}`)

  readonly #keys: { resource: string; path: string; at: number }[] = []

  /** The keys learnt so far, as a later poll reads them. */
  keys(): Map<string, KnownKeys> {
    const known = new Map<string, KnownKeys>()
    for (const { resource, path, at } of this.#keys) {
      const keys = known.get(resource) ?? noKeys()
      known.set(resource, keys)
      addKey(keys, path, at)
    }
    return known
  }

  state(): StoredEntities {
    return this.held
  }

  apply(folded: Outcome, at: number): void {
    for (const { resource, path, kind } of folded.newKeys) if (kind === 'key') this.#keys.push({ resource, path, at })
    for (const { table, id, op, closedBy, hash, text, fields, child } of folded.steps) {
      this.steps.push({ at, table, id, op, closedBy, hash: child?.content_hash ?? hash })
      if (child) continue
      const entities = this.held.get(table) ?? new Map<string, StoredEntity>()
      const product = fields?.['product_id'] ?? null
      this.held.set(table, entities.set(id, { id, open: op !== null, hash, at, product, verified: false }))
      if (text === null) this.#texts.delete(`${table} ${id}`)
      else this.#texts.set(`${table} ${id}`, { version: text, latest: text })
    }
    for (const { resource, id, text, hash } of folded.absorbed) {
      const entity = this.held.get(resource)?.get(id)
      if (entity) this.held.get(resource)?.set(id, { ...entity, hash, at })
      const version = this.#texts.get(`${resource} ${id}`)?.version ?? text
      this.#texts.set(`${resource} ${id}`, { version, latest: text })
    }
  }

  /** Versions as `table id from to hash`, sorted. */
  versions(): string[] {
    const lines: string[] = []
    for (const list of Map.groupBy(this.steps, ({ table, id }) => `${table} ${id}`).values())
      for (const [i, { at, table, id, op, hash }] of list.entries())
        if (op !== null) lines.push([table, id, at, list[i + 1]?.at ?? null, hash].map(String).join(' '))
    return lines.toSorted()
  }
}
