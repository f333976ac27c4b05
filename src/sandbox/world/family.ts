import type { AssetFamily } from './assets.ts'

/**
 * What a value means, and so how it is made from the curves of its asset:
 * `flow` a number per interval, `stock` a number at the interval's end, `coins` / `coinFlow` the same as a
 * share of the supply, `each` a number of coins, `transfer` coins worth `level` BTC, `band` between `level`
 * and `high`, `ratio` around `level`, `price` a multiple of the price, `difference` of the two metrics in
 * `of`; the others stand for themselves.
 */
type Kind =
  | 'flow'
  | 'stock'
  | 'coins'
  | 'coinFlow'
  | 'each'
  | 'transfer'
  | 'band'
  | 'ratio'
  | 'binary'
  | 'price'
  | 'supply'
  | 'cumulative'
  | 'dominance'
  | 'altcoinCap'
  | 'blockHeight'
  | 'blockCount'
  | 'blockInterval'
  | 'blockBytes'
  | 'goldilocks'
  | 'difference'
  | 'heatmap'
  | 'quantiles'

/** How one family of metrics looks. */
export interface Family {
  readonly match: RegExp
  readonly kind: Kind
  /** At the size of BTC around 2024; the lower end of a band. */
  readonly level: number
  /** The upper end of a band. */
  readonly high?: number
  /** How far it swings, as a logarithm; 0.2 if not given. */
  readonly swing?: number
  /** How much of the market's mood is in it, -1 to 1. */
  readonly mood?: number
  readonly whole?: boolean
  /** Flows that count unique things grow slower than the interval: the exponent of its length. */
  readonly unique?: number
  /** Nested: an object beside `t` (`o`) or in `v`, with these names. */
  readonly form?: 'o' | 'v'
  readonly names?: readonly string[]
  /** Nested values that sum to this. */
  readonly total?: number
  /** First day of its history, where the asset is older. */
  readonly since?: string
  readonly families?: readonly AssetFamily[]
  readonly ids?: readonly string[]
  /** The path whose noise it shares, and which component of it. */
  readonly key?: string
  readonly part?: string
  /** Of a difference: from the first of these paths, less the second. */
  readonly of?: readonly [string, string]
}
