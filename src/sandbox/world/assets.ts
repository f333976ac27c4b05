import provider from '../provider/provider.json' with { type: 'json' }
import world from './world.json' with { type: 'json' }

/** Kind of an asset: it decides which endpoints know it and how its price moves. */
export type AssetFamily =
  | ('bitcoin' | 'ethereum' | 'utxo' | 'chain' | 'token' | 'meme')
  | ('stable' | 'staked' | 'gold' | 'fund' | 'stock')

/** Asset of the sandbox's metrics API; `chain_id` (CAIP-2) and `address` are set for tokens with a contract. */
export interface WorldAsset {
  readonly id: string
  readonly symbol: string
  readonly name: string
  readonly chain_id?: string
  readonly address?: string
  readonly family: AssetFamily
  /** The day of its first point, `YYYY-MM-DD`. */
  readonly born: string
  /** Price in USD on that day and around 2024: the ends of the asset's trend. */
  readonly prices: readonly [number, number]
  /** Circulating supply around 2024, in coins. */
  readonly supply: number
}

/**
 * Row of an asset: id, name, family, born, first and recent price, supply; then a contract, on Ethereum unless a chain
 * stands before it, and a symbol that differs from the id: two of them are shared with another asset, as real listings
 * have it.
 */
type Row = [string, string, AssetFamily, string, number, number, number, string?, string?]

function readRow(row: Row): WorldAsset {
  const [id, name, family, born, first, recent, supply, place = '', symbol = id] = row
  const [address = '', chain_id = 'eip155:1'] = place.split('/').toReversed()
  const contract = address === '' ? {} : { chain_id, address }
  return { id, symbol, name, ...contract, family, born, prices: [first, recent], supply }
}

/** Every asset that the sandbox's metrics API knows, in the order of its listing. */
export const worldAssets: readonly WorldAsset[] = (world.assets as Row[]).map(readRow)

/**
 * Every asset that the sandbox knows under real names: those of the default sandbox, then tokenized stocks and the
 * like.
 */
export const providerAssets: readonly WorldAsset[] = [...worldAssets, ...(provider.assets as Row[]).map(readRow)]

/** Converts a day, `YYYY-MM-DD`, to its first second. */
export const dateAt = (text: string): number => Date.parse(text) / 1000
