import { day, hour } from '../../time.ts'
import { chainHeight } from './chain.ts'
import { coinDigits, usdDigits } from './digits.ts'
import { familyOf } from './families.ts'
import type { Family } from './family.ts'
import type { AssetMarket } from './market.ts'
import { type Curve, hashText, octaves } from './noise.ts'

/** A number, or null where it cannot be said, for the interval `[t, close)`. */
export type Scalar = (t: number, close: number) => number | null

/** What a scalar is made from. */
export interface Ground {
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

/** The noise of a key, with the part of the market's mood that the family takes. */
function swing({ family, market, seed, key, shift }: Ground): Curve {
  const noise = octaves(hashText(key, seed), swings)
  const mood = family.mood ?? 0
  if (mood === 0) return (at) => noise(at) + shift(at)
  const rest = 1 - 0.5 * Math.abs(mood)
  return (at) => rest * noise(at) + mood * market.mood(at) + shift(at)
}

const weekdays = [0.97, 1.04, 1.05, 1.06, 1.04, 0.95, 0.89] as const
/** 1970-01-01 was a Thursday; the list starts there. */
const season = (at: number, length: number): number => {
  const ofWeek = length <= day ? (weekdays[Math.floor(at / day) % 7] as number) : 1
  return length < day ? ofWeek * (1 + 0.15 * Math.sin(((at % day) / day - 0.4) * 2 * Math.PI)) : ofWeek
}

/** `(length / day) ^ power`, remembered for the last length. */
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

/**
 * The scalar of a family over its ground; amounts in coins become USD by the price at the interval's end. Coins and USD
 * have the digits of money; ratios and shares have all those of a double, as what is divided has.
 */
export function scalarOf(ground: Ground): Scalar {
  const coins = coinScalar(ground)
  const { market } = ground
  if (coins && ground.usd) return settled(coins, (amount, close) => usdDigits(amount * market.price(close)))
  if (coins) return settled(coins, coinDigits)
  return amountScalar(ground) ?? chainScalar(ground) ?? bandScalar(ground)
}

function settled(scalar: Scalar, settle: (value: number, close: number) => number): Scalar {
  return (t, close) => {
    const value = scalar(t, close)
    return value === null ? null : settle(value, close)
  }
}

/** What a coin of the leading asset cost around 2024, in USD. */
const leadingRecent = 62_000

/** The kinds that are amounts of the native coin; undefined for the others. */
function coinScalar(ground: Ground): Scalar | undefined {
  const { family, market, share } = ground
  const z = swing(ground)
  const amplitude = family.swing ?? 0.2
  const { level } = family
  switch (family.kind) {
    case 'supply':
      return (_t, close) => market.supply(close) * share(close)
    case 'coins':
      return (_t, close) => market.supply(close) * level * share(close) * Math.exp(amplitude * z(close))
    case 'coinFlow': {
      const factor = lengthFactor(1)
      return (t, close) => {
        const at = (t + close) / 2
        const amount = market.supply(at) * level * share(at) * Math.exp(amplitude * z(at))
        return amount * season(at, close - t) * factor(close - t)
      }
    }
    case 'each':
      return (_t, close) => level * Math.exp(amplitude * z(close))
    case 'transfer': {
      const scale = leadingRecent / market.asset.prices[1]
      return (_t, close) => level * scale * Math.exp(amplitude * z(close))
    }
    case 'cumulative': {
      const since = Date.parse(`${family.since ?? market.asset.born}T00:00:00Z`) / 1000
      const wave = octaves(hashText(ground.key, ground.seed), [[40 * day, 0.3]])
      const start = wave(since)
      return (_t, close) => (level * Math.max(0, close - since + 40 * day * (wave(close) - start))) / day
    }
    default:
      return undefined
  }
}

/** The kinds that are counts or USD; undefined for the others. */
function amountScalar(ground: Ground): Scalar | undefined {
  const { family, market, share } = ground
  const z = swing(ground)
  const amplitude = family.swing ?? 0.2
  const { level } = family
  const finish = family.whole ? Math.round : usdDigits
  switch (family.kind) {
    case 'stock':
      return (_t, close) => finish(level * market.size(close) * share(close) * Math.exp(amplitude * z(close)))
    case 'flow': {
      const factor = lengthFactor(family.unique ?? 1)
      return (t, close) => {
        const at = (t + close) / 2
        const amount = level * market.size(at) * share(at) * Math.exp(amplitude * z(at))
        return finish(amount * season(at, close - t) * factor(close - t))
      }
    }
    case 'price':
      return (_t, close) => usdDigits(market.price(close) * level * Math.exp(amplitude * z(close)))
    case 'ratio':
      return (_t, close) => level * Math.exp(amplitude * z(close))
    case 'dominance':
    case 'altcoinCap': {
      const part = dominance(ground)
      if (family.kind === 'dominance') return (_t, close) => 100 * part(close)
      return (_t, close) => usdDigits(market.price(close) * market.supply(close) * (1 / part(close) - 1))
    }
    default:
      return undefined
  }
}

/** The leading asset's share of the whole market, 0.36 to 0.78. */
function dominance({ seed, market }: Ground): Curve {
  const noise = octaves(hashText('market/dominance', seed), swings)
  return (at) => 0.36 + 0.42 * logistic(1.6 * noise(at) - 0.6 * market.mood(at))
}

/** The kinds that count blocks; undefined for the others. */
function chainScalar(ground: Ground): Scalar | undefined {
  const { family, market, seed } = ground
  const { kind, level } = family
  if (kind !== 'blockHeight' && kind !== 'blockCount' && kind !== 'blockInterval' && kind !== 'blockBytes')
    return undefined
  const height = chainHeight(market.asset.id, seed)
  if (kind === 'blockHeight') return (_t, close) => height(close)
  if (kind === 'blockCount') return (t, close) => height(close) - height(t)
  if (kind === 'blockInterval') {
    return (t, close) => {
      const blocks = height(close) - height(t)
      return blocks === 0 ? null : (level * (close - t)) / blocks
    }
  }
  const size = amountScalar({ ...ground, family: { ...familyOf('blockchain/block_size_mean_pit'), whole: false } })
  return (t, close) => Math.round((height(close) - height(t)) * (size?.(t, close) ?? 0))
}

const logistic = (x: number): number => 1 / (1 + Math.exp(-x))

/** The kinds that stay between two values. */
function bandScalar(ground: Ground): Scalar {
  const { family, seed, market } = ground
  const { level, high = 1 } = family
  const z = swing(ground)
  if (family.kind === 'binary') return (_t, close) => (z(close) > level ? 1 : 0)
  if (family.kind === 'goldilocks') {
    const [profit, steadiness] = [1, 3].map((n) => {
      const path = `signals/btc_bss_indicator_${n}_pit`
      return bandScalar({ ...ground, family: familyOf(path), key: `${path}/${market.asset.id}`, seed })
    })
    return (t, close) => {
      const first = profit?.(t, close) ?? 0
      return first > 52 && first < 65 && (steadiness?.(t, close) ?? 100) < 4 ? 1 : 0
    }
  }
  const width = high - level
  if (family.whole) return (_t, close) => Math.round(level + width * logistic(2.4 * z(close)))
  return (_t, close) => level + width * logistic(2.4 * z(close))
}
