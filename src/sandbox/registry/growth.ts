import tables from './entities.json' with { type: 'json' }
import { day, formatDate, formatInstant } from '../../base/time.ts'
import {
  address,
  assetClass,
  assetName,
  assetRow,
  chains,
  type Chain,
  type Chance,
  disclosure,
  disclosures,
  isin,
  jurisdictions,
  laterVenueType,
  provenance,
  publishedDocument,
  slug,
  venueTypes,
  wordPair,
} from './entities.ts'
import {
  createdSeq,
  type EntityRow,
  type EntityType,
  rowNow,
  write,
  type Ref,
  type RowChange,
  type Store,
} from './store.ts'
import { dateAt } from '../world/assets.ts'

/** The registry while it is being written. */
export interface RegistryDraft {
  readonly store: Store
  /** The ids to choose from, by type. */
  readonly pools: ReadonlyMap<EntityType, string[]>
  source: Chance
  /** Time when the next entry is written, Unix seconds. */
  at: number
}

/** Finds an id that no entity of the type ever had: the wanted one, or that with the next free number. */
export function freshId(draft: RegistryDraft, type: EntityType, wanted: string): string {
  let id = wanted
  for (let n = 2; createdSeq(draft.store, type, id) !== undefined; n++) id = `${wanted}-${n}`
  return id
}

/** Writes a new entity and makes it one to choose from. */
export function create(draft: RegistryDraft, type: EntityType, row: EntityRow, also: readonly Ref[] = []): string {
  const id = row['id'] as string
  write(draft.store, draft.at, [{ type, id, row }], also)
  draft.pools.get(type)?.push(id)
  return id
}

/** Writes a changed row of an existing entity. */
function change(draft: RegistryDraft, type: EntityType, row: EntityRow, fields: EntityRow): void {
  write(draft.store, draft.at, [{ type, id: row['id'] as string, row: { ...row, ...fields } }])
}

/** Draws an entity of the type whose row passes; undefined if a few draws find none. */
function choose(draft: RegistryDraft, type: EntityType, passes: (row: EntityRow) => boolean): EntityRow | undefined {
  const pool = draft.pools.get(type) ?? []
  for (let draw = 0; draw < 12 && pool.length > 0; draw++) {
    const row = rowNow(draft.store, type, draft.source.pick(pool))
    if (row && passes(row)) return row
  }
  return undefined
}

/** Whether the status is active. */
function isActive(row: EntityRow): boolean {
  return row['status'] === 'active'
}

/** Creates an issuer without listings. */
export function newIssuer(draft: RegistryDraft): EntityRow {
  const { source, at } = draft
  const name = `${wordPair(source)} ${source.pick(tables.issuerForms)}`
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

/** Creates an asset, of the class if one is given. */
export function newAsset(draft: RegistryDraft, kind = assetClass(draft.source)): EntityRow {
  const name = assetName(kind, draft.source)
  const row = assetRow(freshId(draft, 'asset', slug(name)), name, kind, draft.source)
  create(draft, 'asset', row)
  return row
}

/** Creates a venue without listings, of the type if one is given. */
export function newVenue(draft: RegistryDraft, type: string = draft.source.pick(venueTypes)): EntityRow {
  const name = `${wordPair(draft.source)} ${type === 'perp-dex' ? 'Perps' : 'Exchange'}`
  const id = freshId(draft, 'venue', slug(name))
  const row = { id, name, venue_type: type, url: `https://${id}.example.org`, listings: [] }
  create(draft, 'venue', row)
  return row
}

/** Creates a perpetual or future on an asset that has a ticker. */
export function newDerivative(draft: RegistryDraft): void {
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

/** Properties that a caller may fix about a new product. */
interface ProductWish {
  readonly asset?: EntityRow | undefined
  readonly symbol?: string
  readonly notIssuer?: string
  readonly deployments?: number
}

/** Creates a product of an active issuer with its first deployments; returns its id. */
export function newProduct(draft: RegistryDraft, wish: ProductWish = {}): string {
  const { source } = draft
  const issuer = choose(draft, 'issuer', (row) => isActive(row) && row['id'] !== wish.notIssuer) ?? newIssuer(draft)
  const existing = source.yes(0.55) ? choose(draft, 'asset', () => true) : undefined
  const asset = wish.asset ?? existing ?? newAsset(draft)
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

/** Creates a deployment of the product, on the chain and at the address if they are given; returns its id. */
export function newDeployment(draft: RegistryDraft, product: string, fixed: { chain?: string; address?: string } = {}) {
  const { source } = draft
  const chain = chainOf(fixed.chain) ?? chainByUse(source)
  const id = freshId(draft, 'deployment', `${product}-${chain.name}`)
  const chain_id = fixed.chain ?? source.pick(chain.ids)
  const contractAddress = fixed.address ?? address(chain, source)
  const verified = fixed.address !== undefined || source.yes(0.94)
  const sources = source.yes(0.15) ? 2 : 1
  return create(draft, 'deployment', {
    id,
    product_id: product,
    chain_id,
    status: 'active',
    verification_status: verified ? 'verified' : 'unverified',
    address: contractAddress,
    provenance: Array.from({ length: sources }, () => provenance(draft.at, source)),
  })
}

function chainByUse(source: Chance): Chain {
  return chains[Math.floor(source.next() ** 1.7 * chains.length)] as Chain
}

function chainOf(id: string | undefined): Chain | undefined {
  return chains.find(({ ids }) => id !== undefined && ids.includes(id))
}

function productSymbol(asset: EntityRow, issuer: EntityRow): string {
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

/** Something that the ingestion may find on a morning. */
export type Happening = (draft: RegistryDraft) => void

const any = (): boolean => true

/** Builds a happening that acts on an entity of the type whose row passes, if one is found. */
function on(
  type: EntityType,
  passes: (row: EntityRow) => boolean,
  act: (draft: RegistryDraft, row: EntityRow) => void,
): Happening {
  return (draft) => {
    const row = choose(draft, type, passes)
    if (row) act(draft, row)
  }
}

/** Builds a happening that sets the fields of an entity that passes the test. */
function turn(type: EntityType, passes: (row: EntityRow) => boolean, fields: EntityRow): Happening {
  return on(type, passes, (draft, row) => change(draft, type, row, fields))
}

const inactive = { status: 'inactive' }
const is = (field: string, value: string) => (row: EntityRow) => row[field] === value

/** An issuer with few products closes: it and all it issued become inactive. */
const retireIssuer: Happening = (draft) => {
  const few = (row: EntityRow): boolean => isActive(row) && productsOf(draft, row).length <= 4
  const close = on('issuer', few, (_, issuer) => {
    for (const product of productsOf(draft, issuer)) if (isActive(product)) windDown(draft, product)
    change(draft, 'issuer', issuer, inactive)
  })
  close(draft)
}

/** A wrong address: a new deployment, and the old one retired or, less often, removed. */
const correctAddress = on('deployment', isActive, (draft, old) => {
  newDeployment(draft, old['product_id'] as string, { chain: old['chain_id'] as string })
  if (!draft.source.yes(0.3)) change(draft, 'deployment', old, inactive)
  else write(draft.store, draft.at, [{ type: 'deployment', id: old['id'] as string, row: null }])
})

/** Happening by which the sources of a deployment are read again: one is added or redated. */
const readSources = on('deployment', isActive, (draft, row) => {
  const fresh = provenance(draft.at, draft.source)
  const provenanceRows = row['provenance'] as EntityRow[]
  change(draft, 'deployment', row, {
    provenance: provenanceRows.length > 2 ? [fresh, ...provenanceRows.slice(0, 2)] : [...provenanceRows, fresh],
  })
})

/** A duplicate is removed: the product and each of its deployments, in one entry of the log. */
const removeProduct = on('product', any, (draft, product) => {
  const id = product['id'] as string
  const goneDeployments = liveDeployments(draft, id).map(
    (row): RowChange => ({
      type: 'deployment',
      id: row['id'] as string,
      row: null,
    }),
  )
  write(draft.store, draft.at, [...goneDeployments, { type: 'product', id, row: null }])
})

/** Happening by which custodian, governing law or regulator becomes known or changes. */
const readDisclosure = on('issuer', isActive, (draft, issuer) => {
  const field = draft.source.pick(Object.keys(disclosures))
  const value = disclosure(field, draft.source)
  if (value !== issuer[field]) change(draft, 'issuer', issuer, { [field]: value })
})

/** An issuer or a product publishes a document. */
const publishDocument: Happening = (draft) => {
  const type = draft.source.yes(0.3) ? 'issuer' : 'product'
  const publish = on(type, isActive, (_, row) => {
    const fresh = publishedDocument(row['id'] as string, draft.at, draft.source)
    change(draft, type, row, { documents: [...(row['documents'] as EntityRow[]), fresh].slice(-6) })
  })
  publish(draft)
}

/** A venue lists an issuer or drops it: both records change in one entry of the log. */
export const listIssuer: Happening = (draft) => {
  const issuer = choose(draft, 'issuer', isActive)
  const venue = choose(draft, 'venue', any)
  if (!issuer || !venue) return
  const since = formatDate(draft.at)
  const toggle = (row: EntityRow, key: string, other: EntityRow): EntityRow => {
    const listings = row['listings'] as EntityRow[]
    const rest = listings.filter((listing) => listing[key] !== other['id'])
    return { ...row, listings: rest.length < listings.length ? rest : [...listings, { [key]: other['id'], since }] }
  }
  write(draft.store, draft.at, [
    { type: 'issuer', id: issuer['id'] as string, row: toggle(issuer, 'venue_id', venue) },
    { type: 'venue', id: venue['id'] as string, row: toggle(venue, 'issuer_id', issuer) },
  ])
}

/** A venue opens a market in a product. */
const listProduct: Happening = (draft) => {
  const product = choose(draft, 'product', isActive)
  const venue = choose(draft, 'venue', any)
  if (!product || !venue) return
  const pair = `${String(product['symbol'])}/${draft.source.pick(['USD', 'USDT', 'USDC', 'EUR'])}`
  const listings = product['listings'] as EntityRow[]
  if (listings.some((listing) => listing['venue_id'] === venue['id'])) return
  const fresh = { venue_id: venue['id'], pair, since: formatDate(draft.at) }
  change(draft, 'product', product, { listings: [...listings, fresh].slice(-5) })
}

/** Happening that reuses the symbol of a product that was wound down for a different issuer. */
const reuseSymbol = on('product', is('status', 'inactive'), (draft, old) => {
  newProduct(draft, { symbol: old['symbol'] as string, notIssuer: old['issuer_id'] as string })
})

/** A deployment on one more chain. */
const addDeployment = on('product', isActive, (draft, product) => {
  newDeployment(draft, product['id'] as string)
})

/** An entity of a kind that no document lists, new or changed. */
const meetCommittee: Happening = (draft) => {
  const committee = draft.source.yes(0.5) ? choose(draft, 'committee', any) : undefined
  const last_meeting = formatInstant(draft.at)
  if (committee) return change(draft, 'committee', committee, { last_meeting })
  const name = `${draft.source.pick(['Listing', 'Index', 'Verification', 'Collateral'])} Committee`
  create(draft, 'committee', { id: freshId(draft, 'committee', slug(name)), name, last_meeting })
}

/** Writes an entry of the log that no reader sees. */
export const noteUnseen: Happening = (draft) => {
  write(draft.store, draft.at, [])
}

/** A sweep over records that changed nothing a reader sees: many such entries in a row. */
export const noteSweep: Happening = (draft) => {
  for (let n = 20 + draft.source.int(220); n > 0; n--) noteUnseen(draft)
}

/** The asset class that no document lists. */
const laterAssetClass = 'carbon-credits'

/** Average numbers of happenings on a weekday morning at demo size; rates with a date begin on it, once for certain. */
export const rates: readonly (readonly [mean: number, find: Happening, from?: number])[] = [
  [0.36, (draft) => void newProduct(draft)],
  [0.03, (draft) => void newIssuer(draft)],
  [0.06, (draft) => void newAsset(draft)],
  [0.008, (draft) => void newVenue(draft)],
  [0.05, newDerivative],
  [0.255, addDeployment],
  [0.045, correctAddress],
  [0.04, on('product', isActive, windDown)],
  [0.004, retireIssuer],
  [0.03, turn('derivative', isActive, inactive)],
  [0.1, turn('deployment', isActive, { status: 'deprecated' })],
  [0.04, turn('deployment', (row) => row['status'] !== 'inactive', inactive)],
  [0.1, turn('deployment', is('verification_status', 'unverified'), { verification_status: 'verified' })],
  [0.7, readSources],
  [0.012, removeProduct],
  [0.12, readDisclosure],
  [0.35, publishDocument],
  [0.1, listIssuer],
  [0.2, listProduct],
  [0.012, reuseSymbol],
  [0.02, meetCommittee, dateAt('2025-02-10')],
  // Values that no document lists: a class of assets, a type of venues, a status of products and of deployments.
  [0.006, (draft) => void newProduct(draft, { asset: newAsset(draft, laterAssetClass) }), dateAt('2025-06-16')],
  [0.001, (draft) => void newVenue(draft, laterVenueType), dateAt('2025-11-03')],
  [0.004, turn('product', isActive, { status: 'suspended' }), dateAt('2026-02-09')],
  [0.006, turn('deployment', isActive, { status: 'paused' }), dateAt('2026-05-04')],
]

/** Winds a product down, as its issuer would: the product and its live deployments become inactive. */
function windDown(draft: RegistryDraft, product: EntityRow): void {
  for (const row of liveDeployments(draft, product['id'] as string)) {
    if (row['status'] !== 'inactive') change(draft, 'deployment', row, inactive)
  }
  change(draft, 'product', product, inactive)
}

function liveDeployments(draft: RegistryDraft, product: string): EntityRow[] {
  const ids = draft.store.deploymentsOf.get(product) ?? []
  return ids.map((id) => rowNow(draft.store, 'deployment', id)).filter((row) => row !== undefined)
}

function productsOf(draft: RegistryDraft, issuer: EntityRow): EntityRow[] {
  const ids = draft.pools.get('product') ?? []
  const rows = ids.map((id) => rowNow(draft.store, 'product', id))
  return rows.filter((row) => row !== undefined && row['issuer_id'] === issuer['id']) as EntityRow[]
}
