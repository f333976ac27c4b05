import { hashText } from '../world/noise.ts'
import {
  create,
  freshId,
  listIssuer,
  newAsset,
  newDeployment,
  newDerivative,
  newIssuer,
  newProduct,
  newVenue,
  noteSweep,
  noteUnseen,
  rates,
  type Happening,
  type RegistryDraft,
} from './growth.ts'
import {
  createStore,
  type EntityRow,
  type EntityType,
  entityTypes,
  idsOf,
  rowAt,
  rowNow,
  seqAt,
  type Store,
} from './store.ts'
import { day, floor, hour } from '../../base/time.ts'
import { furtherContracts, type SandboxNames } from '../provider/provider.ts'
import { dateAt, providerAssets, type WorldAsset, worldAssets } from '../world/assets.ts'
import { assetRow, chance, slug } from './entities.ts'

/** The registry as a reader sees it: the log up to an entry, at an instant. */
export interface RegistryView {
  readonly store: Store
  /** The last visible entry of the log. */
  readonly seq: number
  readonly at: number
  /** Returns the row that is shown instead of a row. */
  readonly edit?: (type: EntityType, id: string, row: EntityRow) => EntityRow
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

/** A registry that is written as time goes on. */
interface RegistryWorld {
  readonly draft: RegistryDraft
  /** Metric assets that are products in it. */
  readonly linked: readonly WorldAsset[]
  /** Time up to which it is written, Unix seconds. */
  nextMidnight: number
}

const worlds = new Map<string, RegistryWorld>()
const worldsKept = 6
const horizon = dateAt('2100-01-01')

/** Inputs from which a registry is made. */
interface RegistryOrigin {
  readonly seed: number
  readonly scale: RegistryScale
  /** Names in use; with real names, tokenized stocks of the metrics API are products too (default `placeholder`). */
  readonly names?: SandboxNames
}

/** Returns the registry at the instant; the first call writes the calendar up to then, later ones only what is new. */
export function viewAt(env: RegistryOrigin, at: number): RegistryView {
  const key = `${env.seed}/${env.scale}/${env.names ?? 'placeholder'}`
  const world = worlds.get(key) ?? startWorld(env)
  worlds.delete(key)
  worlds.set(key, world)
  for (const oldest of worlds.keys()) if (worlds.size > worldsKept) worlds.delete(oldest)
  const until = Math.min(at, horizon)
  for (; world.nextMidnight <= until; world.nextMidnight += day) {
    ingest(world, env.scale, env.seed)
  }
  return { store: world.draft.store, seq: seqAt(world.draft.store, at), at }
}

/** Fields that every record of a type shows from a Monday on, without an event. */
export const additions: readonly { type: EntityType; from: number; field: string; of: (id: string) => unknown }[] = [
  { type: 'product', from: dateAt('2025-03-03'), field: 'share_class', of: (id) => ['A', 'I', null][hashText(id) % 3] },
  { type: 'deployment', from: dateAt('2025-09-01'), field: 'decimals', of: (id) => [6, 8, 18][hashText(id) % 3] },
  { type: 'issuer', from: dateAt('2026-01-12'), field: 'lei', of: (id) => lei(id) },
  { type: 'venue', from: dateAt('2026-03-02'), field: 'country', of: (id) => ['US', 'SG', null][hashText(id) % 3] },
]

/** Returns the row of an entity as this reader sees it. */
export function shownRow({ store, seq, edit }: RegistryView, type: EntityType, id: string): EntityRow | undefined {
  const row = rowAt(store, type, id, seq)
  return row && edit ? edit(type, id, row) : row
}

/**
 * Returns the full record of an entity, deployments embedded in products unless `embed` is false; undefined if it does
 * not exist.
 */
export function recordOf(view: RegistryView, type: EntityType, id: string, embed = true): EntityRow | undefined {
  const row = shownRow(view, type, id)
  if (!row) return undefined
  const record: Record<string, unknown> = { ...row }
  for (const { type: owner, from, field, of } of additions)
    if (owner === type && from <= view.at) record[field] = of(id)
  if (type === 'product' && embed) record['deployments'] = deploymentsOf(view, id)
  return record
}

/** Yields the records of a type in id order. */
export function* recordsOf(view: RegistryView, type: EntityType, embed = true): Generator<EntityRow> {
  for (const id of idsOf(view.store, type)) {
    const record = recordOf(view, type, id, embed)
    if (record) yield record
  }
}

function deploymentsOf(view: RegistryView, product: string): EntityRow[] {
  const ids = view.store.deploymentsOf.get(product) ?? []
  return ids.map((id) => recordOf(view, 'deployment', id)).filter((record) => record !== undefined)
}

function startWorld(env: RegistryOrigin): RegistryWorld {
  const linked = env.names === 'real' ? [...usualLinked, ...stocks] : usualLinked
  const draft: RegistryDraft = {
    store: createStore(),
    pools: new Map(entityTypes.map((type) => [type, []])),
    source: chance(env.seed),
    at: registryStart,
  }
  populate(draft, env.scale, env.seed, linked)
  return { draft, linked, nextMidnight: floor(registryStart, '24h') + day }
}

function lei(id: string): string | null {
  const source = chance('lei', id)
  return source.yes(0.3) ? null : source.text('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', 20)
}

/** Size of the registry: about 400 products in late 2026, or 5,800. */
export type RegistryScale = 'demo' | 'full'

/** The instant of the first population, a Monday. */
const registryStart = dateAt('2024-01-01')

const size: Readonly<Record<RegistryScale, number>> = { demo: 1, full: 14.5 }

/** Kinds of metric assets that are themselves tokenized products. */
const productFamilies: ReadonlyMap<string, string> = new Map([
  ['stable', 'stablecoins'],
  ['gold', 'commodities'],
  ['fund', 'us-treasury-funds'],
  ['stock', 'stocks'],
])

const isProduct = ({ family, address }: WorldAsset): boolean => address !== undefined && productFamilies.has(family)

/** Metric assets that are products whatever the names. */
const usualLinked = worldAssets.filter(isProduct)

/** Metric assets that are products with real names only. */
const stocks = providerAssets.filter((asset) => isProduct(asset) && !worldAssets.includes(asset))

/** Tickers of companies that happen to be symbols of unrelated coins. */
const namesakes = ['COMP', 'UNI', 'LINK', 'ARB']

/** Writes the first population: one entry of the log per entity, all at the start. */
function populate(draft: RegistryDraft, scale: RegistryScale, seed: number, linked: readonly WorldAsset[]): void {
  draft.at = registryStart
  draft.source = chance('registry', seed, scale, 'start')
  const f = size[scale]
  repeat(12 * Math.sqrt(f), () => newVenue(draft))
  repeat(26 * f, () => newIssuer(draft))
  repeat(80 * f, () => newAsset(draft))
  for (const asset of linked) if (dateAt(asset.born) <= registryStart) linkProducts(draft, asset)
  for (const symbol of namesakes) newProduct(draft, { symbol, asset: newAsset(draft, 'stocks') })
  repeat(135 * f - 24, () => newProduct(draft))
  repeat(18 * f, () => newDerivative(draft))
  repeat(30 * f, () => listIssuer(draft))
}

/**
 * Writes what the ingestion finds on the morning of the world's next day, between 06:00 and 09:00; nothing on weekends.
 */
function ingest({ draft, linked, nextMidnight: midnight }: RegistryWorld, scale: RegistryScale, seed: number): void {
  if (!isWeekday(midnight)) return
  const source = chance('registry', seed, scale, midnight)
  draft.source = source
  const found = findings(draft, scale, midnight, linked)
  const offsets = found.map(() => 120 + source.int(3 * hour - 240)).sort((a, b) => a - b)
  draft.at = midnight + 6 * hour + source.int(120)
  noteUnseen(draft)
  for (const [index, find] of shuffled(found, source.next).entries()) {
    draft.at = midnight + 6 * hour + (offsets[index] as number)
    find(draft)
  }
  draft.at = midnight + 9 * hour - 1 - source.int(100)
  noteUnseen(draft)
}

function findings(
  draft: RegistryDraft,
  scale: RegistryScale,
  midnight: number,
  linked: readonly WorldAsset[],
): Happening[] {
  const happenings: Happening[] = []
  for (const [mean, find, from] of rates) {
    const certain = from === midnight ? 1 : 0
    const count = (from ?? 0) <= midnight ? certain + draft.source.times(mean * size[scale]) : 0
    for (let n = 0; n < count; n++) happenings.push(find)
  }
  if (draft.source.yes(0.08)) happenings.push(noteSweep)
  for (const asset of linked) {
    if (firstWeekday(dateAt(asset.born)) === midnight) happenings.push((target) => linkProducts(target, asset))
  }
  return happenings
}

/**
 * Writes the products that lead to a metric asset, in one of four ways: by address and symbol, by symbol alone, by a
 * symbol that two issuers use, by address under another symbol.
 */
function linkProducts(draft: RegistryDraft, asset: WorldAsset): void {
  const way = (asset.family === 'stock' ? stocks : usualLinked).indexOf(asset) % 4
  const kind = productFamilies.get(asset.family) as string
  const id = freshId(draft, 'asset', slug(asset.name))
  const { ticker, usual } = registrySymbols(asset)
  const row = assetRow(id, asset.name, kind, draft.source, ticker)
  create(draft, 'asset', row)
  const byAddress = way === 0 || way === 3
  const symbol = way === 3 ? `w${usual}` : usual
  const product = newProduct(draft, { asset: row, symbol, deployments: byAddress ? 1 : 3 })
  if (byAddress) {
    newDeployment(draft, product, contract(draft, asset))
    if (asset.family === 'stock') for (const further of furtherContracts(asset)) newDeployment(draft, product, further)
  }
  const issuer = rowNow(draft.store, 'product', product)?.['issuer_id'] as string
  if (way === 2) newProduct(draft, { asset: row, symbol, notIssuer: issuer })
}

/**
 * Returns ticker and usual product symbol of an asset: the registry writes `AAPLx` for what the metrics API calls
 * `AAPL.XS`.
 */
function registrySymbols({ symbol }: WorldAsset): { readonly ticker: string; readonly usual: string } {
  const ticker = symbol.replace(/\.XS$/, '')
  return { ticker, usual: ticker === symbol ? symbol : `${ticker}x` }
}

function contract(draft: RegistryDraft, { chain_id = 'eip155:1', address = '' }: WorldAsset) {
  const upper = (digit: string): string => (draft.source.yes(0.5) ? digit : digit.toUpperCase())
  const mixed = address.startsWith('0x') && draft.source.yes(0.5)
  return {
    chain: draft.source.yes(0.6) ? chain_id.replace('eip155:', '') : chain_id,
    address: mixed ? `0x${address.slice(2).replace(/[a-f]/g, upper)}` : address,
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item)
}

function isWeekday(midnight: number): boolean {
  const weekday = (midnight - floor(midnight, '1w')) / day
  return weekday < 5
}

function firstWeekday(at: number): number {
  let midnight = at
  while (!isWeekday(midnight)) midnight += day
  return midnight
}

function repeat(times: number, act: () => unknown): void {
  for (let n = 0; n < Math.round(times); n++) act()
}
