import { isObject, jsonOf } from '../json.ts'

/** One asset of the metrics API's listing. */
export interface ListedAsset {
  readonly id: string
  readonly symbol: string | null
  /** Contracts of the asset, where the listing carries them. */
  readonly addresses: readonly { readonly chain_id: string; readonly address: string }[] | null
  /** The row as it was listed. */
  readonly record: unknown
}

/**
 * Reads a listing of assets: an array of ids, of objects with `id` or `symbol`, or such an array under `data` or
 * `assets`. Rows without a name are passed over, the first of equal ids stands; null for any other text.
 */
export function readAssets(text: string): ListedAsset[] | null {
  const list = listIn(jsonOf(text))
  if (list === null) return null
  const assets = new Map<string, ListedAsset>()
  for (const row of list) {
    const asset = assetOf(row)
    if (asset !== null && !assets.has(asset.id)) assets.set(asset.id, asset)
  }
  return list.length > 0 && assets.size === 0 ? null : [...assets.values()]
}

function listIn(value: unknown): readonly unknown[] | null {
  const places = isObject(value) ? [value['data'], value['assets']] : [value]
  return places.find((place): place is unknown[] => Array.isArray(place)) ?? null
}

function assetOf(row: unknown): ListedAsset | null {
  if (typeof row === 'string' || typeof row === 'number') {
    const id = String(row)
    return isId(id) ? { id, symbol: null, addresses: null, record: row } : null
  }
  if (!isObject(row)) return null
  const symbol = textOf(row['symbol'])
  const id = textOf(row['id']) ?? symbol
  return id === null || !isId(id) ? null : { id, symbol, addresses: addressesOf(row), record: row }
}

function isId(text: string): boolean {
  return text !== '' && text !== '*' && text.isWellFormed()
}

function addressesOf(row: Readonly<Record<string, unknown>>): ListedAsset['addresses'] {
  const own = contractOf(row, null)
  const listed = ['addresses', 'contracts', 'platforms'].flatMap((key) => contractsIn(row[key]))
  const all = [...(own === null ? [] : [own]), ...listed]
  return all.length === 0 ? null : all
}

/** A list of contracts, or an object from chain to address. */
function contractsIn(value: unknown): { chain_id: string; address: string }[] {
  if (Array.isArray(value)) return value.map((row) => contractOf(row, null)).filter((row) => row !== null)
  if (!isObject(value)) return []
  return Object.entries(value)
    .map(([chain, inner]) => contractOf(isObject(inner) ? inner : { address: inner }, chain))
    .filter((row) => row !== null)
}

function contractOf(row: unknown, key: string | null): { chain_id: string; address: string } | null {
  if (!isObject(row)) return null
  const chain = textOf(row['chain_id']) ?? textOf(row['chain']) ?? textOf(row['network']) ?? key
  const address = textOf(row['address']) ?? textOf(row['contract_address'])
  return chain === null || address === null ? null : { chain_id: chain, address }
}

function textOf(value: unknown): string | null {
  if (typeof value === 'string' && value !== '') return value
  return typeof value === 'number' ? String(value) : null
}
