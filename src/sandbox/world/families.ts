import tables from './families.json' with { type: 'json' }
import type { AssetFamily } from './assets.ts'

/**
 * Meaning of a value, and so how it is made from the curves of its asset: `flow` a number per interval, `stock` a
 * number at the interval's end, `coins` / `coinFlow` the same as a share of the supply, `each` a number of coins,
 * `transfer` coins worth `level` BTC, `band` between `level` and `high`, `ratio` around `level`, `price` a multiple of
 * the price, `difference` of the two metrics in `of`; the others mean what their names say.
 */
export type FamilyKind =
  | ('flow' | 'stock' | 'coins' | 'coinFlow' | 'each' | 'transfer' | 'band' | 'ratio' | 'binary' | 'price' | 'supply')
  | ('cumulative' | 'dominance' | 'altcoinCap' | 'blockHeight' | 'blockCount' | 'blockInterval' | 'blockBytes')
  | ('goldilocks' | 'difference' | 'heatmap' | 'quantiles')

/** Shape of one family of metrics. */
export interface Family {
  readonly kind: FamilyKind
  /** Level at the size of BTC around 2024; the lower end of a band. */
  readonly level: number
  /** The upper end of a band. */
  readonly high?: number
  /** Swing as a logarithm; 0.2 if not given. */
  readonly swing?: number
  /** Share of the market's mood in it, -1 to 1. */
  readonly mood?: number
  readonly whole?: boolean
  /** Flows that count unique things grow slower than the interval: the exponent of its length. */
  readonly unique?: number
  /** Form of nested values: an object next to `t` (`o`) or in `v`, with these names. */
  readonly form?: 'o' | 'v'
  readonly names?: readonly string[]
  /** Nested values that sum to this. */
  readonly total?: number
  /** First day of its history, where the asset is older. */
  readonly since?: string
  /** Whether it is published as estimates, which are revised: see `estimateAt`. */
  readonly revised?: true
  readonly families?: readonly AssetFamily[]
  readonly ids?: readonly string[]
  /** The path whose noise it shares, and which component of it. */
  readonly key?: string
  readonly part?: string
  /** Paths of a difference: the first less the second. */
  readonly of?: readonly [string, string]
}

type Row = [rest: string, kind: FamilyKind, level: number, more?: object]

/** Replaces the lists that a row names. */
function fillLists(more: object): object {
  const lists = new Map(Object.entries(tables.lists))
  return Object.fromEntries(Object.entries(more).map(([key, value]) => [key, lists.get(String(value)) ?? value]))
}

/**
 * Families by the pattern of paths, in the order of lookup: the first match counts, the last one matches everything.
 * Rows of paths that begin alike are together, by the pattern of what follows, with the defaults of all of them; the
 * last group describes, by its words, a path that no row names. A metric of holders of at least so much has their
 * number of addresses.
 */
const families = tables.families.flatMap(({ below, all, rows }) =>
  (rows as Row[]).map(([rest, kind, level, more = {}]): readonly [RegExp, Family] => {
    return [new RegExp(below + rest), { ...fillLists(all), kind, level, ...fillLists(more) }]
  }),
)

const found = new Map<string, Family>()
const remembered = 1000

/** Finds the family of a metric's path. */
export function familyOf(path: string): Family {
  // Nearly two hundred patterns: metadata ask this of every path for every asset.
  const familyOfPath = found.get(path)
  if (familyOfPath !== undefined) return familyOfPath
  const family = families.find(([pattern]) => pattern.test(path))?.[1] as Family
  if (found.size >= remembered) found.clear()
  found.set(path, family)
  return family
}
