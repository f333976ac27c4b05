import { day, formatDate } from '../../time.ts'
import type { Chance } from './chance.ts'
import {
  address,
  assetClass,
  assetName,
  assetRow,
  disclosure,
  isin,
  provenance,
  publishedDocument,
  slug,
  wordPair,
} from './entities.ts'
import { type EntityType, type Ref, type Row, type Store, createdSeq, rowNow, write } from './store.ts'
import { type Chain, chains, issuerForms, jurisdictions, venueTypes } from './vocabulary.ts'

/** The registry while it is being written: the log, the ids to choose from, the choices and the instant of writing. */
export interface Draft {
  readonly store: Store
  readonly pools: ReadonlyMap<EntityType, string[]>
  source: Chance
  at: number
}

/** An id that no entity of the type ever had: the wanted one, or that with the next free number. */
export function freshId(draft: Draft, type: EntityType, wanted: string): string {
  let id = wanted
  for (let n = 2; createdSeq(draft.store, type, id) !== undefined; n++) id = `${wanted}-${n}`
  return id
}

/** Writes a new entity and makes it one to choose from. */
export function create(draft: Draft, type: EntityType, row: Row, also: readonly Ref[] = []): string {
  const id = row['id'] as string
  write(draft.store, draft.at, [{ type, id, row }], also)
  draft.pools.get(type)?.push(id)
  return id
}

/** Writes a changed row of an entity that is there. */
export function change(draft: Draft, type: EntityType, row: Row, fields: Row): void {
  write(draft.store, draft.at, [{ type, id: row['id'] as string, row: { ...row, ...fields } }])
}

/** A random entity of the type whose row passes; undefined when a few draws find none. */
export function choose(draft: Draft, type: EntityType, passes: (row: Row) => boolean): Row | undefined {
  const pool = draft.pools.get(type) ?? []
  for (let draw = 0; draw < 12 && pool.length > 0; draw++) {
    const row = rowNow(draft.store, type, draft.source.pick(pool))
    if (row && passes(row)) return row
  }
  return undefined
}

/** Whether the status is active. */
export function isActive(row: Row): boolean {
  return row['status'] === 'active'
}

/** A new issuer without listings. */
export function newIssuer(draft: Draft): Row {
  const { source, at } = draft
  const name = `${wordPair(source)} ${source.pick(issuerForms)}`
  const id = freshId(draft, 'issuer', slug(name))
  const documents = Array.from({ length: source.int(3) }, () => publishedDocument(id, at, source))
  const row = {
    id,
    name,
    status: 'active',
    jurisdiction: source.yes(0.04) ? null : source.pick(jurisdictions),
    custodian: disclosure('custodian', source),
    governing_law: disclosure('governing_law', source),
    regulator: disclosure('regulator', source),
    website: `https://${id}.example.org`,
    documents,
    listings: [],
  }
  create(draft, 'issuer', row)
  return row
}

/** A new asset, of the class when one is given. */
export function newAsset(draft: Draft, kind = assetClass(draft.source)): Row {
  const name = assetName(kind, draft.source)
  const row = assetRow(freshId(draft, 'asset', slug(name)), name, kind, draft.source)
  create(draft, 'asset', row)
  return row
}

/** A new venue without listings, of the type when one is given. */
export function newVenue(draft: Draft, type: string = draft.source.pick(venueTypes)): Row {
  const name = `${wordPair(draft.source)} ${type === 'perp-dex' ? 'Perps' : 'Exchange'}`
  const id = freshId(draft, 'venue', slug(name))
  const row = { id, name, venue_type: type, url: `https://${id}.example.org`, listings: [] }
  create(draft, 'venue', row)
  return row
}

/** A new perpetual or future on an asset that has a ticker. */
export function newDerivative(draft: Draft): void {
  const asset = choose(draft, 'asset', (row) => row['ticker'] !== null)
  const venue = choose(draft, 'venue', () => true)
  if (!asset || !venue) return
  const expiry = draft.source.yes(0.25) ? formatDate(draft.at + (60 + draft.source.int(300)) * day) : null
  const symbol = `${String(asset['ticker'])}-${expiry === null ? 'PERP' : expiry.replaceAll('-', '')}`
  const id = freshId(draft, 'derivative', slug(`${String(venue['id'])}-${symbol}`))
  const kind = expiry === null ? 'perpetual' : 'future'
  const ids = { asset_id: asset['id'], venue_id: venue['id'] }
  create(draft, 'derivative', { id, symbol, kind, status: 'active', ...ids, expiry })
}

/** What a caller may fix about a new product. */
interface ProductWish {
  readonly asset?: Row | undefined
  readonly symbol?: string
  readonly notIssuer?: string
  readonly deployments?: number
}

/** A new product of an active issuer with its first deployments; its id. */
export function newProduct(draft: Draft, wish: ProductWish = {}): string {
  const { source } = draft
  const issuer = choose(draft, 'issuer', (row) => isActive(row) && row['id'] !== wish.notIssuer) ?? newIssuer(draft)
  const known = source.yes(0.55) ? choose(draft, 'asset', () => true) : undefined
  const asset = wish.asset ?? known ?? newAsset(draft)
  const symbol = wish.symbol ?? productSymbol(asset, issuer)
  const house = String(issuer['id']).split('-').slice(0, 2).join('-')
  const id = freshId(draft, 'product', slug(`${house}-${symbol}`))
  create(draft, 'product', {
    id,
    name: `${String(asset['name'])} Token`,
    issuer_id: issuer['id'],
    asset_id: asset['id'],
    status: 'active',
    symbol,
    isin: source.yes(0.35) ? isin(source.pick(jurisdictions), source) : null,
    documents: source.yes(0.3) ? [publishedDocument(id, draft.at, source)] : [],
    listings: [],
  })
  const count = wish.deployments ?? 1 + Math.min(source.times(2.2), 9)
  for (let n = 0; n < count; n++) newDeployment(draft, id)
  return id
}

/** A new deployment of the product, on the chain and at the address when they are given; its id. */
export function newDeployment(draft: Draft, product: string, fixed: { chain?: string; address?: string } = {}): string {
  const { source } = draft
  const chain = chainOf(fixed.chain) ?? chainByUse(source)
  const id = freshId(draft, 'deployment', `${product}-${chain.name}`)
  const chain_id = fixed.chain ?? source.pick(chain.ids)
  const own = fixed.address ?? address(chain, source)
  const verified = fixed.address !== undefined || source.yes(0.94)
  const sources = source.yes(0.15) ? 2 : 1
  return create(draft, 'deployment', {
    id,
    product_id: product,
    chain_id,
    status: 'active',
    verification_status: verified ? 'verified' : 'unverified',
    address: own,
    provenance: Array.from({ length: sources }, () => provenance(draft.at, source)),
  })
}

function chainByUse(source: Chance): Chain {
  return chains[Math.floor(source.next() ** 1.7 * chains.length)] as Chain
}

function chainOf(id: string | undefined): Chain | undefined {
  return chains.find(({ ids }) => id !== undefined && ids.includes(id))
}

function productSymbol(asset: Row, issuer: Row): string {
  const base = (asset['ticker'] as string | null) ?? initials(String(asset['name']))
  const style = String(issuer['id']).length % 4
  return [`${base}x`, `b${base}`, `${base}on`, base][style] as string
}

function initials(name: string): string {
  return name
    .split(/[^A-Za-z]+/)
    .map((word) => word.slice(0, 2).toUpperCase())
    .join('')
    .slice(0, 6)
}
