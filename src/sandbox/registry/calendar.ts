import { day, floor, hour } from '../../time.ts'
import { dateAt, type WorldAsset, worldAssets } from '../world/assets.ts'
import { chance, assetRow, slug } from './entities.ts'
import {
  type Finding,
  listIssuer,
  noteRunFacts,
  noteSweep,
  rates,
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
import { rowNow } from './store.ts'

/** How large the registry is: about 400 products in late 2026, or 5,800. */
export type RegistryScale = 'demo' | 'full'

/** The instant of the first population, a Monday. */
export const registryStart = dateAt('2024-01-01')

const size: Readonly<Record<RegistryScale, number>> = { demo: 1, full: 14.5 }

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
  for (const asset of linked) if (dateAt(asset.born) <= registryStart) linkProducts(draft, asset)
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
  for (const [mean, find, from] of rates) {
    const certain = from === midnight ? 1 : 0
    const count = (from ?? 0) <= midnight ? certain + draft.source.times(mean * size[scale]) : 0
    for (let n = 0; n < count; n++) found.push(find)
  }
  if (draft.source.yes(0.08)) found.push(noteSweep)
  for (const asset of linked) {
    if (firstWeekday(dateAt(asset.born)) === midnight) found.push((target) => linkProducts(target, asset))
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
