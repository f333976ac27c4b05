import { formatDate, formatInstant, hour } from '../../time.ts'
import type { Chance } from './chance.ts'
import { documentHash, isin, slug, ticker } from './identity.ts'
import type { Row } from './store.ts'
import {
  assetClasses,
  assetTails,
  classWeights,
  custodians,
  firstWords,
  governingLaws,
  issuerForms,
  jurisdictions,
  noneReasons,
  regulators,
  secondWords,
} from './vocabulary.ts'

/** The three fields of an issuer that tell null, `not disclosed`, `None (…)` and a name apart. */
export const disclosures = ['custodian', 'governing_law', 'regulator'] as const
export type Disclosure = (typeof disclosures)[number]

const named: Readonly<Record<Disclosure, readonly string[]>> = {
  custodian: custodians,
  governing_law: governingLaws,
  regulator: regulators,
}

/** A pair of words as names begin. */
export function wordPair(source: Chance): string {
  return `${source.pick(firstWords)} ${source.pick(secondWords)}`
}

/** An answer to one of the three fields: not established, not disclosed, none with its reason, or a name. */
export function disclosure(field: Disclosure, source: Chance): string | null {
  const roll = source.next()
  if (roll < 0.18) return null
  if (roll < 0.36) return 'not disclosed'
  if (roll < 0.46) return source.pick(noneReasons[field])
  return source.pick(named[field])
}

/** One published document of an issuer or product. */
export function publishedDocument(owner: string, at: number, source: Chance): Row {
  const title = source.pick(['Prospectus', 'Final Terms', 'Key Information Document', 'Attestation', 'Annual Report'])
  const published = formatDate(at - source.int(200) * 24 * hour)
  return { title, url: `https://docs.example.org/${owner}/${slug(title)}-${published}.pdf`, published }
}

/** One source that an issuer published about a deployment; some are known by their digest alone. */
export function provenance(at: number, source: Chance): Row {
  const kind = source.pick(['issuer_site', 'prospectus', 'explorer', 'api'])
  const observed = { document_hash: documentHash(source), observed_at: formatInstant(at), kind }
  return source.yes(0.15)
    ? observed
    : { source_url: `https://example.org/${observed.document_hash.slice(7, 13)}`, ...observed }
}

/** A new issuer without listings. */
export function issuerRow(id: string, name: string, at: number, source: Chance): Row {
  const documents = Array.from({ length: source.int(3) }, () => publishedDocument(id, at, source))
  return {
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
}

/** What follows the word pair in the name of an issuer. */
export function issuerName(source: Chance): string {
  return `${wordPair(source)} ${source.pick(issuerForms)}`
}

/** An asset class as common as its weight. */
export function assetClass(source: Chance): string {
  let roll = source.int(classWeights.reduce((sum, weight) => sum + weight, 0))
  for (const [index, weight] of classWeights.entries()) {
    if (roll < weight) return assetClasses[index] as string
    roll -= weight
  }
  return 'stocks'
}

/** The name of an asset of the class. */
export function assetName(kind: string, source: Chance): string {
  return source.pick(assetTails[kind] ?? ['% Asset']).replace('%', wordPair(source))
}

/** A new asset. */
export function assetRow(id: string, name: string, kind: string, source: Chance, fixedTicker?: string): Row {
  const hasIsin = !['stablecoins', 'commodities', 'pe-vc', 'carbon-credits'].includes(kind) && source.yes(0.8)
  return {
    id,
    name,
    asset_class: kind,
    ticker: fixedTicker ?? (source.yes(0.85) ? ticker(source) : null),
    isin: hasIsin ? isin(source.pick(jurisdictions), source) : null,
  }
}

/** What a product is made of. */
export interface ProductParts {
  readonly id: string
  readonly name: string
  readonly issuer: string
  readonly asset: string
  readonly symbol: string
  readonly at: number
}

/** A new product; its deployments are rows of their own. */
export function productRow(parts: ProductParts, source: Chance): Row {
  return {
    id: parts.id,
    name: parts.name,
    issuer_id: parts.issuer,
    asset_id: parts.asset,
    status: 'active',
    symbol: parts.symbol,
    isin: source.yes(0.35) ? isin(source.pick(jurisdictions), source) : null,
    documents: source.yes(0.3) ? [publishedDocument(parts.id, parts.at, source)] : [],
    listings: [],
  }
}

/** What a deployment is made of. */
export interface DeploymentParts {
  readonly id: string
  readonly product: string
  readonly chain: string
  readonly address: string
  readonly verified: boolean
  readonly at: number
}

/** A new deployment with the sources that name it. */
export function deploymentRow(parts: DeploymentParts, source: Chance): Row {
  return {
    id: parts.id,
    product_id: parts.product,
    chain_id: parts.chain,
    status: 'active',
    verification_status: parts.verified ? 'verified' : 'unverified',
    address: parts.address,
    provenance: Array.from({ length: source.yes(0.15) ? 2 : 1 }, () => provenance(parts.at, source)),
  }
}

/** A new venue without listings. */
export function venueRow(id: string, name: string, type: string): Row {
  return { id, name, venue_type: type, url: `https://${id}.example.org`, listings: [] }
}

/** A new perpetual, or a future when it has an expiry date. */
export function derivativeRow(id: string, symbol: string, asset: string, venue: string, expiry: string | null): Row {
  const kind = expiry === null ? 'perpetual' : 'future'
  return { id, symbol, kind, status: 'active', asset_id: asset, venue_id: venue, expiry }
}
