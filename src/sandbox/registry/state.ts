import { day, floor } from '../../time.ts'
import { type RegistryScale, ingest, populate, registryStart } from './calendar.ts'
import { dateAt } from '../world/assets.ts'
import { hashText } from '../world/noise.ts'
import { chance } from './entities.ts'
import type { Draft } from './growth.ts'
import { type EntityType, type Row, type Store, createStore, entityTypes, idsOf, rowAt, seqAt } from './store.ts'

/** The registry as a reader sees it: the log up to an entry, at an instant. */
export interface RegistryView {
  readonly store: Store
  /** The last visible entry of the log. */
  readonly seq: number
  readonly at: number
  /** What is shown of a row instead of it. */
  readonly edit?: (type: EntityType, id: string, row: Row) => Row
}

/** The plural words of the document, which are the path segments and the arrays of a snapshot. */
export const tables = {
  issuers: 'issuer',
  assets: 'asset',
  products: 'product',
  deployments: 'deployment',
  venues: 'venue',
  derivatives: 'derivative',
} as const satisfies Readonly<Record<string, EntityType>>
export type Table = keyof typeof tables

interface World {
  readonly draft: Draft
  nextMidnight: number
}

const worlds = new Map<string, World>()
const worldsKept = 6
const horizon = dateAt('2100-01-01')

/** The registry at the instant; the first call writes the calendar up to then, later ones only what is new. */
export function viewAt(env: { seed: number; scale: RegistryScale }, at: number): RegistryView {
  const key = `${env.seed}/${env.scale}`
  const world = worlds.get(key) ?? startWorld(env)
  worlds.delete(key)
  worlds.set(key, world)
  for (const oldest of worlds.keys()) if (worlds.size > worldsKept) worlds.delete(oldest)
  const until = Math.min(at, horizon)
  for (; world.nextMidnight <= until; world.nextMidnight += day) {
    ingest(world.draft, env.scale, env.seed, world.nextMidnight)
  }
  return { store: world.draft.store, seq: seqAt(world.draft.store, at), at }
}

/** Fields that every record of a type shows from a Monday on, without an event. */
const additions: readonly { type: EntityType; from: number; field: string; of: (id: string) => unknown }[] = [
  { type: 'product', from: dateAt('2025-03-03'), field: 'share_class', of: (id) => ['A', 'I', null][hashText(id) % 3] },
  { type: 'deployment', from: dateAt('2025-09-01'), field: 'decimals', of: (id) => [6, 8, 18][hashText(id) % 3] },
  { type: 'issuer', from: dateAt('2026-01-12'), field: 'lei', of: (id) => lei(id) },
  { type: 'venue', from: dateAt('2026-03-02'), field: 'country', of: (id) => ['US', 'SG', null][hashText(id) % 3] },
]

/** The fields added to the records of a type by the instant; a stored row lacks them. */
export function addedFields(type: EntityType, at: number): readonly string[] {
  return additions.filter((addition) => addition.type === type && addition.from <= at).map(({ field }) => field)
}

/** The row of an entity as this reader is shown it. */
export function rowOf({ store, seq, edit }: RegistryView, type: EntityType, id: string): Row | undefined {
  const row = rowAt(store, type, id, seq)
  return row && edit ? edit(type, id, row) : row
}

/** The full record of an entity, deployments embedded in products unless told otherwise; undefined when it is not there. */
export function recordOf(view: RegistryView, type: EntityType, id: string, embed = true): Row | undefined {
  const row = rowOf(view, type, id)
  if (!row) return undefined
  const record: Record<string, unknown> = { ...row }
  for (const { type: owner, from, field, of } of additions)
    if (owner === type && from <= view.at) record[field] = of(id)
  if (type === 'product' && embed) record['deployments'] = deploymentsOf(view, id)
  return record
}

/** The records of a type in id order. */
export function* recordsOf(view: RegistryView, type: EntityType, embed = true): Generator<Row> {
  for (const id of idsOf(view.store, type)) {
    const record = recordOf(view, type, id, embed)
    if (record) yield record
  }
}

/** The truth at an instant: table → id → record; the kind that no document lists stands under `committees`. */
export function registryStateAt(
  env: { seed: number; scale: RegistryScale },
  at: number,
): ReadonlyMap<string, ReadonlyMap<string, Record<string, unknown>>> {
  const view = viewAt(env, at)
  const kinds = [...Object.entries(tables), ['committees', 'committee'] as const]
  return new Map(
    kinds.map(([table, type]) => {
      const records = [...recordsOf(view, type)]
      return [table, new Map(records.map((record) => [record['id'] as string, { ...record }]))]
    }),
  )
}

function deploymentsOf(view: RegistryView, product: string): Row[] {
  const ids = view.store.deploymentsOf.get(product) ?? []
  return ids.map((id) => recordOf(view, 'deployment', id)).filter((record) => record !== undefined)
}

function startWorld(env: { seed: number; scale: RegistryScale }): World {
  const draft: Draft = {
    store: createStore(),
    pools: new Map(entityTypes.map((type) => [type, []])),
    source: chance(env.seed),
    at: registryStart,
  }
  populate(draft, env.scale, env.seed)
  return { draft, nextMidnight: floor(registryStart, '24h') + day }
}

function lei(id: string): string | null {
  const source = chance('lei', id)
  return source.yes(0.3) ? null : source.text('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 20)
}
