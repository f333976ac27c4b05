import { formatDate, formatInstant } from '../../time.ts'
import { disclosure, disclosures, provenance, publishedDocument } from './entities.ts'
import { type Draft, change, choose, create, freshId, isActive, newDeployment, newProduct } from './growth.ts'
import { slug } from './identity.ts'
import { type Change, type Row, rowNow, write } from './store.ts'
import { laterDeploymentStatus, laterProductStatus } from './vocabulary.ts'

/** Something that the ingestion may find on a morning. */
export type Finding = (draft: Draft) => void

/** An issuer winds a product down: the product and its live deployments become inactive. */
export const retireProduct: Finding = (draft) => {
  const product = choose(draft, 'product', isActive)
  if (product) windDown(draft, product)
}

/** An issuer with few products closes: it and all it issued become inactive. */
export const retireIssuer: Finding = (draft) => {
  const few = (row: Row): boolean => isActive(row) && productsOf(draft, row).length <= 4
  const issuer = choose(draft, 'issuer', few)
  if (!issuer) return
  for (const product of productsOf(draft, issuer)) if (isActive(product)) windDown(draft, product)
  change(draft, 'issuer', issuer, { status: 'inactive' })
}

/** A derivative is delisted or expires. */
export const retireDerivative: Finding = (draft) => {
  const row = choose(draft, 'derivative', isActive)
  if (row) change(draft, 'derivative', row, { status: 'inactive' })
}

/** A deployment is superseded but still works. */
export const deprecateDeployment: Finding = (draft) => {
  const row = choose(draft, 'deployment', isActive)
  if (row) change(draft, 'deployment', row, { status: 'deprecated' })
}

/** A deployment ends. */
export const retireDeployment: Finding = (draft) => {
  const row = choose(draft, 'deployment', (candidate) => candidate['status'] !== 'inactive')
  if (row) change(draft, 'deployment', row, { status: 'inactive' })
}

/** A deployment gets the status that no document lists. */
export const pauseDeployment: Finding = (draft) => {
  const row = choose(draft, 'deployment', isActive)
  if (row) change(draft, 'deployment', row, { status: laterDeploymentStatus })
}

/** A product gets the status that no document lists. */
export const suspendProduct: Finding = (draft) => {
  const row = choose(draft, 'product', isActive)
  if (row) change(draft, 'product', row, { status: laterProductStatus })
}

/** A wrong address: a new deployment, and the old one retired or, less often, removed. */
export const correctAddress: Finding = (draft) => {
  const old = choose(draft, 'deployment', isActive)
  if (!old) return
  newDeployment(draft, old['product_id'] as string, { chain: old['chain_id'] as string })
  if (!draft.source.yes(0.3)) change(draft, 'deployment', old, { status: 'inactive' })
  else write(draft.store, draft.at, [{ type: 'deployment', id: old['id'] as string, row: null }])
}

/** A deployment that was waiting is verified. */
export const verifyDeployment: Finding = (draft) => {
  const row = choose(draft, 'deployment', (candidate) => candidate['verification_status'] === 'unverified')
  if (row) change(draft, 'deployment', row, { verification_status: 'verified' })
}

/** The sources of a deployment were read again: one is added or dated anew. */
export const readSources: Finding = (draft) => {
  const row = choose(draft, 'deployment', isActive)
  if (!row) return
  const fresh = provenance(draft.at, draft.source)
  const held = row['provenance'] as Row[]
  change(draft, 'deployment', row, { provenance: held.length > 2 ? [fresh, ...held.slice(0, 2)] : [...held, fresh] })
}

/** A duplicate is removed: the product and each of its deployments, in one entry of the log. */
export const removeProduct: Finding = (draft) => {
  const product = choose(draft, 'product', () => true)
  if (!product) return
  const id = product['id'] as string
  const gone: Change[] = liveDeployments(draft, id).map((row) => ({
    type: 'deployment',
    id: row['id'] as string,
    row: null,
  }))
  write(draft.store, draft.at, [...gone, { type: 'product', id, row: null }])
}

/** One of custodian, governing law, regulator becomes known or changes. */
export const readDisclosure: Finding = (draft) => {
  const issuer = choose(draft, 'issuer', isActive)
  if (!issuer) return
  const field = draft.source.pick(disclosures)
  const value = disclosure(field, draft.source)
  if (value !== issuer[field]) change(draft, 'issuer', issuer, { [field]: value })
}

/** An issuer or a product publishes a document. */
export const publishDocument: Finding = (draft) => {
  const type = draft.source.yes(0.3) ? 'issuer' : 'product'
  const row = choose(draft, type, isActive)
  if (!row) return
  const fresh = publishedDocument(row['id'] as string, draft.at, draft.source)
  change(draft, type, row, { documents: [...(row['documents'] as Row[]), fresh].slice(-6) })
}

/** A venue lists an issuer or drops it: both records change in one entry of the log. */
export const listIssuer: Finding = (draft) => {
  const issuer = choose(draft, 'issuer', isActive)
  const venue = choose(draft, 'venue', () => true)
  if (!issuer || !venue) return
  const since = formatDate(draft.at)
  const toggle = (row: Row, key: string, other: Row): Row => {
    const held = row['listings'] as Row[]
    const rest = held.filter((listing) => listing[key] !== other['id'])
    return { ...row, listings: rest.length < held.length ? rest : [...held, { [key]: other['id'], since }] }
  }
  write(draft.store, draft.at, [
    { type: 'issuer', id: issuer['id'] as string, row: toggle(issuer, 'venue_id', venue) },
    { type: 'venue', id: venue['id'] as string, row: toggle(venue, 'issuer_id', issuer) },
  ])
}

/** A venue opens a market in a product. */
export const listProduct: Finding = (draft) => {
  const product = choose(draft, 'product', isActive)
  const venue = choose(draft, 'venue', () => true)
  if (!product || !venue) return
  const pair = `${String(product['symbol'])}/${draft.source.pick(['USD', 'USDT', 'USDC', 'EUR'])}`
  const held = product['listings'] as Row[]
  if (held.some((listing) => listing['venue_id'] === venue['id'])) return
  const fresh = { venue_id: venue['id'], pair, since: formatDate(draft.at) }
  change(draft, 'product', product, { listings: [...held, fresh].slice(-5) })
}

/** Another issuer takes up the symbol of a product that was wound down. */
export const reuseSymbol: Finding = (draft) => {
  const old = choose(draft, 'product', (row) => row['status'] === 'inactive')
  if (old) newProduct(draft, { symbol: old['symbol'] as string, notIssuer: old['issuer_id'] as string })
}

/** A deployment on one more chain. */
export const addDeployment: Finding = (draft) => {
  const product = choose(draft, 'product', isActive)
  if (product) newDeployment(draft, product['id'] as string)
}

/** An entity of a kind that no document lists, new or changed. */
export const meetCommittee: Finding = (draft) => {
  const known = draft.source.yes(0.5) ? choose(draft, 'committee', () => true) : undefined
  const last_meeting = formatInstant(draft.at)
  if (known) return change(draft, 'committee', known, { last_meeting })
  const name = `${draft.source.pick(['Listing', 'Index', 'Verification', 'Collateral'])} Committee`
  create(draft, 'committee', { id: freshId(draft, 'committee', slug(name)), name, last_meeting })
}

/** An entry of the log that no reader is told of. */
export const noteRunFacts: Finding = (draft) => {
  write(draft.store, draft.at, [])
}

/** A sweep over records that changed nothing a reader sees: many such entries in a row. */
export const noteSweep: Finding = (draft) => {
  for (let n = 20 + draft.source.int(220); n > 0; n--) noteRunFacts(draft)
}

function windDown(draft: Draft, product: Row): void {
  for (const row of liveDeployments(draft, product['id'] as string)) {
    if (row['status'] !== 'inactive') change(draft, 'deployment', row, { status: 'inactive' })
  }
  change(draft, 'product', product, { status: 'inactive' })
}

function liveDeployments(draft: Draft, product: string): Row[] {
  const ids = draft.store.deploymentsOf.get(product) ?? []
  return ids.map((id) => rowNow(draft.store, 'deployment', id)).filter((row) => row !== undefined)
}

function productsOf(draft: Draft, issuer: Row): Row[] {
  const ids = draft.pools.get('product') ?? []
  const rows = ids.map((id) => rowNow(draft.store, 'product', id))
  return rows.filter((row) => row !== undefined && row['issuer_id'] === issuer['id']) as Row[]
}
