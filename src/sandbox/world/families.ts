import { chainFamilies, researchFamilies } from './families-chain.ts'
import { addressFamilies, derivativeFamilies } from './families-holders.ts'
import type { Family } from './family.ts'

/** What a path that no row names looks like, by its words. */
const unknown: readonly Family[] = [
  { match: /relative|ratio|rate|score|index|dominance|percent/, kind: 'band', level: 0, high: 1 },
  { match: /count|height|number/, kind: 'stock', level: 100_000, whole: true },
  { match: /price|_usd/, kind: 'price', level: 1, swing: 0.1 },
  { match: /balance|supply|volume|_sum|interest|liquidity/, kind: 'coins', level: 0.05 },
  { match: /(?:)/, kind: 'ratio', level: 1 },
]

/** The families in the order of asking: the first match holds, the last one matches everything. */
const families: readonly Family[] = [
  ...derivativeFamilies,
  ...addressFamilies,
  ...chainFamilies,
  ...researchFamilies,
  ...unknown,
]

/** The family of a metric's path. */
export function familyOf(path: string): Family {
  return families.find((family) => family.match.test(path)) as Family
}
