import { day, hour } from '../../base/time.ts'
import { dateAt } from './assets.ts'
import { type Family, type FamilyKind, familyOf } from './families.ts'
import { type AssetMarket, chainHeight } from './market.ts'
import { type Curve, hashAt, hashText, octaves, unit } from './noise.ts'

/** Function to a number, or null if there is none, for the interval `[t, close)`. */
type Scalar = (t: number, close: number) => number | null

/** Inputs of a scalar. */
interface Ground {
  readonly family: Family
  readonly market: AssetMarket
  readonly seed: number
  /** Names the noise: equal keys move together. */
  readonly key: string
  /** The share of an exchange, a network or a component in amounts. */
  readonly share: Curve
  /** Moves the noise a little, for exchanges and networks that see the same thing slightly differently. */
  readonly shift: Curve
  readonly usd: boolean
}

const swings: readonly (readonly [number, number])[] = [
  [420 * day, 0.45],
  [110 * day, 0.35],
  [29 * day, 0.28],
  [8 * day, 0.2],
  [2.1 * day, 0.12],
  [7.3 * hour, 0.06],
  [0.9 * hour, 0.04],
]

/** Builds the noise of a key, with the part of the market's mood that the family takes. */
function swing({ family, market, seed, key, shift }: Ground): Curve {
  const noise = octaves(hashText(key, seed), swings)
  const mood = family.mood ?? 0
  if (mood === 0) return (at) => noise(at) + shift(at)
  const rest = 1 - 0.5 * Math.abs(mood)
  return (at) => rest * noise(at) + mood * market.mood(at) + shift(at)
}

const weekdays = [0.97, 1.04, 1.05, 1.06, 1.04, 0.95, 0.89] as const
/** Computes the season of the week and the day. 1970-01-01 was a Thursday; the list starts there. */
const season = (at: number, length: number): number => {
  const ofWeek = length <= day ? (weekdays[Math.floor(at / day) % 7] as number) : 1
  return length < day ? ofWeek * (1 + 0.15 * Math.sin(((at % day) / day - 0.4) * 2 * Math.PI)) : ofWeek
}

/** Computes `(length / day) ^ power`, remembered for the last length. */
function lengthFactor(power: number): (length: number) => number {
  let last = day
  let factor = 1
  return (length) => {
    if (length !== last) {
      factor = Math.pow(length / day, power)
      last = length
    }
    return factor
  }
}

/** The curves of which the kinds of values are made, all of them functions of Unix seconds. */
interface Parts extends AssetMarket {
  /** The family's level: at the size of BTC around 2024, or the lower end of a band. */
  readonly level: number
  /** The width of a band. */
  readonly width: number
  /** Rounds a value. */
  readonly finish: (x: number) => number
  /** First day of the family's history, Unix seconds. */
  readonly since: number
  /** The noise of the family. */
  readonly z: Curve
  /** The share of an exchange, a network or a component in amounts. */
  readonly share: Curve
  /** Blocks of the chain. */
  readonly height: Curve
  /** The factor by which the noise moves a level. */
  readonly wave: (at: number) => number
  /** Noise that moves slowly. */
  readonly lead: Curve
  /** Blocks in an interval `[t, close)`. */
  readonly blocks: (t: number, close: number) => number
  /** Computes the factor for an interval of so many seconds, 1 for a day. */
  readonly ofLength: (length: number) => number
  /** The place of a value in a band whose ends are 0 and 1. */
  readonly inBand: (at: number) => number
  /** The leading asset's share of the whole market, 0.36 to 0.78. */
  readonly dominance: (at: number) => number
  /** Coins that were worth one of the leading asset around 2024. */
  readonly scale: number
}

/** Makes the curves of a family for one asset. */
function partsOf(ground: Ground): Parts {
  const { family, market, seed, key, share } = ground
  const { level, high = 1, swing: amplitude = 0.2, whole = false, since = market.asset.born } = family
  const z = swing(ground)
  const height = chainHeight(market.asset.id, seed)
  const noise = octaves(hashText('market/dominance', seed), swings)
  const fixed = { level, width: high - level, finish: whole ? Math.round : usdDigits, since: dateAt(since) }
  return {
    ...market,
    ...fixed,
    z,
    share,
    height,
    wave: (at: number) => Math.exp(amplitude * z(at)),
    lead: octaves(hashText(key, seed), [[40 * day, 0.3]]),
    blocks: (t: number, close: number) => height(close) - height(t),
    ofLength: lengthFactor(family.unique ?? 1),
    inBand: (at: number) => logistic(2.4 * z(at)),
    dominance: (at: number) => 0.36 + 0.42 * logistic(1.6 * noise(at) - 0.6 * market.mood(at)),
    scale: leadingRecent / market.asset.prices[1],
  }
}

/** The value of a kind for the interval `[t, close)`; null if it has none. */
type KindValue = (parts: Parts, t: number, close: number) => number | null

/** Price of a coin of the leading asset around 2024, in USD. */
const leadingRecent = 62_000
const logistic = (x: number): number => 1 / (1 + Math.exp(-x))

/** Computes the flow in an interval for something of this size. */
function flowOf(size: Curve, { level, share, wave, ofLength }: Parts, t: number, close: number): number {
  const at = (t + close) / 2
  const amount = size(at) * level * share(at) * wave(at)
  return amount * season(at, close - t) * ofLength(close - t)
}

/** The kinds that are amounts of the native coin. */
const coinKinds: { readonly [K in FamilyKind]?: KindValue } = {
  supply: ({ supply, share }, _, close) => supply(close) * share(close),
  coins: ({ supply, level, share, wave }, _, close) => supply(close) * level * share(close) * wave(close),
  coinFlow: (parts, t, close) => flowOf(parts.supply, parts, t, close),
  each: ({ level, wave }, _, close) => level * wave(close),
  transfer: ({ level, scale, wave }, _, close) => level * scale * wave(close),
  cumulative: ({ level, since, lead }, _, close) =>
    (level * Math.max(0, close - since + 40 * day * (lead(close) - lead(since)))) / day,
}

/** The others: counts and USD, blocks, and what stays between two values. */
const plainKinds: { readonly [K in FamilyKind]?: KindValue } = {
  stock: ({ finish, level, size, share, wave }, _, close) => finish(level * size(close) * share(close) * wave(close)),
  flow: (parts, t, close) => parts.finish(flowOf(parts.size, parts, t, close)),
  price: ({ price, level, wave }, _, close) => usdDigits(price(close) * level * wave(close)),
  ratio: ({ level, wave }, _, close) => level * wave(close),
  dominance: ({ dominance }, _, close) => 100 * dominance(close),
  altcoinCap: ({ price, supply, dominance }, _, close) =>
    usdDigits(price(close) * supply(close) * (1 / dominance(close) - 1)),
  blockHeight: ({ height }, _, close) => height(close),
  blockCount: ({ blocks }, t, close) => blocks(t, close),
  blockInterval: ({ level, blocks }, t, close) =>
    blocks(t, close) === 0 ? null : (level * (close - t)) / blocks(t, close),
  binary: ({ z, level }, _, close) => (z(close) > level ? 1 : 0),
}

/**
 * Builds the scalar of a family over its ground; amounts in coins become USD by the price at the interval's end. Coins
 * and USD have the digits of money; ratios and shares have all those of a double, as a quotient has.
 */
function scalarOf(ground: Ground): Scalar {
  const { family, usd } = ground
  const parts = partsOf(ground)
  if (family.kind === 'goldilocks') return goldilocks(ground)
  if (family.kind === 'blockBytes') return blockBytes(ground, parts)
  const coins = coinKinds[family.kind]
  if (coins) {
    return (t, close) => {
      const value = coins(parts, t, close) ?? 0
      return usd ? usdDigits(value * parts.price(close)) : coinDigits(value)
    }
  }
  const plain = plainKinds[family.kind]
  if (plain) return (t, close) => plain(parts, t, close)
  const { level, width, inBand } = parts
  if (family.whole) return (_, close) => Math.round(level + width * inBand(close))
  return (_, close) => level + width * inBand(close)
}

function goldilocks(ground: Ground): Scalar {
  const [profit, steadiness] = [1, 3].map((n) => {
    const path = `signals/btc_bss_indicator_${n}_pit`
    return scalarOf({ ...ground, family: familyOf(path), key: `${path}/${ground.market.asset.id}` })
  })
  return (t, close) => {
    const first = profit?.(t, close) ?? 0
    return first > 52 && first < 65 && (steadiness?.(t, close) ?? 100) < 4 ? 1 : 0
  }
}

function blockBytes(ground: Ground, { blocks }: Parts): Scalar {
  const size = scalarOf({ ...ground, family: { ...familyOf('blockchain/block_size_mean_pit'), whole: false } })
  return (t, close) => Math.round(blocks(t, close) * (size(t, close) ?? 0))
}

/** Rounds an amount of coins to eight decimals, the parts that most chains count in. */
const coinDigits = (amount: number): number => (Math.abs(amount) < 9e7 ? Math.round(amount * 1e8) / 1e8 : amount)

/** Rounds an amount or a price in USD: cents, and eight digits below a dollar. */
function usdDigits(amount: number): number {
  return Math.abs(amount) < 1 ? Number(amount.toPrecision(8)) : Math.round(amount * 100) / 100
}

/** Keys of a point next to `t`, in order. */
export type PointBody = Readonly<Record<string, unknown>>

/** The body of the interval `[t, close)`. */
export type Bodies = (t: number, close: number) => PointBody

const noShare = (): number => 1
/** About 0.4 % of the leaves of nested values are null. */
const nullLeaves = 0.004

/** Builds the bodies of a series: a scalar in `v`, or what its family nests. */
export function bodiesOf(ground: Ground): Bodies {
  const { family } = ground
  if (family.kind === 'heatmap') return heatmap(ground)
  if (family.kind === 'quantiles') return quantiles(ground)
  if (family.form !== undefined && family.names !== undefined) return nested(ground, family.form, family.names)
  const scalar = scalarOf(family.part === undefined ? ground : { ...ground, key: partKey(ground.key, family.part) })
  return (t, close) => ({ v: scalar(t, close) })
}

/** Builds the body of a null point of this series. */
export function nullBody(body: PointBody): PointBody {
  const [key] = Object.keys(body)
  return key === 'o' ? { o: null } : { v: null }
}

const partKey = (key: string, part: string): string => `${key}/${part}`

const summed = new Set(['stock', 'flow', 'coins', 'coinFlow', 'difference'])

/** Builds an object of named numbers: parts of a whole, shares that sum to a total, or a value each. */
function nested(ground: Ground, form: 'o' | 'v', names: readonly string[]): Bodies {
  const { family, seed, key } = ground
  const weights = names.map((_, i) => Math.pow(0.72, i))
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  const isSum = summed.has(family.kind)
  const parts: readonly Scalar[] = names.map((name, i) => {
    const share = isSum ? (at: number): number => (ground.share(at) * (weights[i] as number)) / whole : noShare
    if (family.of === undefined) return scalarOf({ ...ground, share, key: partKey(key, name) })
    return difference({ ...ground, share }, family.of, name)
  })
  const holes = names.map((name) => hashText(`hole/${partKey(key, name)}`, seed))
  const { total } = family
  return (t, close) => {
    const values = parts.map((part) => part(t, close))
    if (total !== undefined) normalise(values, weights, total)
    const named: Record<string, number | null> = {}
    for (let i = 0; i < names.length; i++) {
      const hole = unit(hashAt(holes[i] as number, t)) < nullLeaves
      named[names[i] as string] = hole ? null : (values[i] as number | null)
    }
    return form === 'o' ? { o: named } : { v: named }
  }
}

/** Builds one component of a metric that is the difference of two others. */
function difference(ground: Ground, [plus, minus]: readonly [string, string], name: string): Scalar {
  const [more, less] = [plus, minus].map((path) => {
    const key = partKey(`${path}/${ground.market.asset.id}`, name)
    return scalarOf({ ...ground, family: familyOf(path), key })
  })
  return (t, close) => usdDigits((more?.(t, close) ?? 0) - (less?.(t, close) ?? 0))
}

function normalise(values: (number | null)[], weights: readonly number[], total: number): void {
  let sum = 0
  for (let i = 0; i < values.length; i++) sum += (values[i] ?? 0) * (weights[i] as number)
  for (let i = 0; i < values.length; i++) values[i] = (total * (values[i] ?? 0) * (weights[i] as number)) / sum
}

/** Levels of a heatmap are 13 % apart and the same on every day; each day shows those around its price. */
const gridStep = 0.12
const below = 17
const above = 6

/** Builds the supply by cost basis: price levels and the coins at each, two lists next to `t`. */
function heatmap({ family, market, seed, key }: Ground): Bodies {
  const bump = octaves(hashText(key, seed), [
    [300 * day, 0.6],
    [70 * day, 0.4],
  ])
  return (_t, close) => {
    const at = Math.floor(Math.log(market.price(close)) / gridStep)
    const prices: number[] = []
    const partitions: number[] = []
    let sum = 0
    for (let k = at - below; k <= at + above; k++) {
      prices.push(Number(Math.exp(k * gridStep).toPrecision(7)))
      const distance = (k - at + 4 + 3 * bump(close)) / 6
      const density = Math.exp(-distance * distance) * (1.1 + bump(close + k * 1e7))
      partitions.push(density)
      sum += density
    }
    const factor = (market.supply(close) * family.level) / (sum || 1)
    return { prices, partitions: partitions.map((density) => coinDigits(density * factor)) }
  }
}

const quantileCount = 100

/** Builds the realized prices below which 1 %, 2 % … 100 % of the supply were last moved: a rising list in `v`. */
function quantiles({ market, seed, key }: Ground): Bodies {
  const spread = octaves(hashText(key, seed), [
    [250 * day, 0.3],
    [60 * day, 0.15],
  ])
  return (_t, close) => {
    const price = market.price(close)
    const width = 3.4 + spread(close)
    const list: number[] = []
    for (let i = 1; i <= quantileCount; i++) {
      const x = i / quantileCount
      list.push(usdDigits(price * Math.exp(width * (x - 0.78) * (1.4 - 0.6 * x))))
    }
    return { v: list }
  }
}
