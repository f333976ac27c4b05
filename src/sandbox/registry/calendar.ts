import { day, floor, hour, parseInstant } from '../../time.ts'
import { type WorldAsset, worldAssets } from '../world/assets.ts'
import { chance } from './chance.ts'
import {
  type Finding,
  addDeployment,
  correctAddress,
  deprecateDeployment,
  listIssuer,
  listProduct,
  meetCommittee,
  noteRunFacts,
  noteSweep,
  pauseDeployment,
  publishDocument,
  readDisclosure,
  readSources,
  removeProduct,
  retireDeployment,
  retireDerivative,
  retireIssuer,
  retireProduct,
  reuseSymbol,
  suspendProduct,
  verifyDeployment,
} from './changes.ts'
import { assetRow } from './entities.ts'
import {
  type Draft,
  create,
  freshId,
  newAsset,
  newDerivative,
  newDeployment,
  newIssuer,
  newProduct,
  newVenue,
} from './growth.ts'
import { slug } from './identity.ts'
import { rowNow } from './store.ts'
import { laterAssetClass, laterVenueType } from './vocabulary.ts'

/** How large the registry is: about 400 products in late 2026, or 5,800. */
export type RegistryScale = 'demo' | 'full'

/** The instant of the first population, a Monday. */
export const registryStart = instant('2024-01-01')

const size: Readonly<Record<RegistryScale, number>> = { demo: 1, full: 14.5 }

/** What a weekday morning brings on average at demo size; rates with a date begin on it, once for certain. */
interface Rate {
  readonly mean: number
  readonly find: Finding
  readonly from?: number
}

const rates: readonly Rate[] = [
  { mean: 0.36, find: (draft) => void newProduct(draft) },
  { mean: 0.03, find: (draft) => void newIssuer(draft) },
  { mean: 0.06, find: (draft) => void newAsset(draft) },
  { mean: 0.008, find: (draft) => void newVenue(draft) },
  { mean: 0.05, find: newDerivative },
  { mean: 0.255, find: addDeployment },
  { mean: 0.045, find: correctAddress },
  { mean: 0.04, find: retireProduct },
  { mean: 0.004, find: retireIssuer },
  { mean: 0.03, find: retireDerivative },
  { mean: 0.1, find: deprecateDeployment },
  { mean: 0.04, find: retireDeployment },
  { mean: 0.1, find: verifyDeployment },
  { mean: 0.7, find: readSources },
  { mean: 0.012, find: removeProduct },
  { mean: 0.12, find: readDisclosure },
  { mean: 0.35, find: publishDocument },
  { mean: 0.1, find: listIssuer },
  { mean: 0.2, find: listProduct },
  { mean: 0.012, find: reuseSymbol },
  { mean: 0.02, find: meetCommittee, from: instant('2025-02-10') },
  { mean: 0.006, find: classNoOneLists, from: instant('2025-06-16') },
  { mean: 0.001, find: (draft) => void newVenue(draft, laterVenueType), from: instant('2025-11-03') },
  { mean: 0.004, find: suspendProduct, from: instant('2026-02-09') },
  { mean: 0.006, find: pauseDeployment, from: instant('2026-05-04') },
]

/** Kinds of metric assets that are themselves tokenized products. */
const productFamilies: ReadonlyMap<string, string> = new Map([
  ['stable', 'stablecoins'],
  ['gold', 'commodities'],
  ['fund', 'us-treasury-funds'],
])

const linked = worldAssets.filter(({ family, address }) => address !== undefined && productFamilies.has(family))

/** Tickers of companies that happen to be symbols of unrelated coins. */
const namesakes = ['COMP', 'UNI', 'LINK', 'ARB']

/** Writes the first population: one entry of the log per entity, all at the start. */
export function populate(draft: Draft, scale: RegistryScale, seed: number): void {
  draft.at = registryStart
  draft.source = chance('registry', seed, scale, 'start')
  const f = size[scale]
  repeat(12 * Math.sqrt(f), () => newVenue(draft))
  repeat(26 * f, () => newIssuer(draft))
  repeat(80 * f, () => newAsset(draft))
  for (const asset of linked) if (birthday(asset) <= registryStart) linkProducts(draft, asset)
  for (const symbol of namesakes) newProduct(draft, { symbol, asset: newAsset(draft, 'stocks') })
  repeat(135 * f - 24, () => newProduct(draft))
  repeat(18 * f, () => newDerivative(draft))
  repeat(30 * f, () => listIssuer(draft))
}

/** Writes what the ingestion finds on the morning of the day (its midnight is given), between 06:00 and 09:00; nothing on weekends. */
export function ingest(draft: Draft, scale: RegistryScale, seed: number, midnight: number): void {
  if (!isWeekday(midnight)) return
  const source = chance('registry', seed, scale, midnight)
  draft.source = source
  const found = findings(draft, scale, midnight)
  const offsets = found.map(() => 120 + source.int(3 * hour - 240)).sort((a, b) => a - b)
  draft.at = midnight + 6 * hour + source.int(120)
  noteRunFacts(draft)
  for (const [index, find] of shuffled(found, source.next).entries()) {
    draft.at = midnight + 6 * hour + (offsets[index] as number)
    find(draft)
  }
  draft.at = midnight + 9 * hour - 1 - source.int(100)
  noteRunFacts(draft)
}

function findings(draft: Draft, scale: RegistryScale, midnight: number): Finding[] {
  const found: Finding[] = []
  for (const { mean, find, from } of rates) {
    const certain = from === midnight ? 1 : 0
    const count = (from ?? 0) <= midnight ? certain + draft.source.times(mean * size[scale]) : 0
    for (let n = 0; n < count; n++) found.push(find)
  }
  if (draft.source.yes(0.08)) found.push(noteSweep)
  for (const asset of linked) {
    if (firstWeekday(birthday(asset)) === midnight) found.push((target) => linkProducts(target, asset))
  }
  return found
}

/**
 * Writes the products that lead to a metric asset, in one of four ways: by address and symbol, by symbol alone,
 * by a symbol that two issuers use, by address under another symbol.
 */
function linkProducts(draft: Draft, asset: WorldAsset): void {
  const way = linked.indexOf(asset) % 4
  const kind = productFamilies.get(asset.family) as string
  const id = freshId(draft, 'asset', slug(asset.name))
  const row = assetRow(id, asset.name, kind, draft.source, asset.symbol)
  create(draft, 'asset', row)
  const byAddress = way === 0 || way === 3
  const symbol = way === 3 ? `w${asset.symbol}` : asset.symbol
  const product = newProduct(draft, { asset: row, symbol, deployments: byAddress ? 1 : 3 })
  if (byAddress) newDeployment(draft, product, contract(draft, asset))
  const issuer = rowNow(draft.store, 'product', product)?.['issuer_id'] as string
  if (way === 2) newProduct(draft, { asset: row, symbol, notIssuer: issuer })
}

function contract(
  draft: Draft,
  { chain_id = 'eip155:1', address = '' }: WorldAsset,
): { chain: string; address: string } {
  const upper = (digit: string): string => (draft.source.yes(0.5) ? digit : digit.toUpperCase())
  const mixed = address.startsWith('0x') && draft.source.yes(0.5)
  return {
    chain: draft.source.yes(0.6) ? chain_id.replace('eip155:', '') : chain_id,
    address: mixed ? `0x${address.slice(2).replace(/[a-f]/g, upper)}` : address,
  }
}

function classNoOneLists(draft: Draft): void {
  newProduct(draft, { asset: newAsset(draft, laterAssetClass) })
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

function birthday({ born }: WorldAsset): number {
  return instant(born)
}

function repeat(times: number, act: () => unknown): void {
  for (let n = 0; n < Math.round(times); n++) act()
}

function instant(date: string): number {
  return parseInstant(date) ?? 0
}
