import world from './world.json' with { type: 'json' }
import { day, hour, minute } from '../../base/time.ts'
import { type AssetFamily, dateAt, providerAssets, type WorldAsset } from './assets.ts'
import { type Curve, hashText, octave, octaves } from './noise.ts'

/** The curves of one asset, all functions of Unix seconds; shared by its metrics, so that they move together. */
export interface AssetMarket {
  readonly asset: WorldAsset
  /** Unix seconds of its first day. */
  readonly born: number
  /** USD a coin. */
  readonly price: Curve
  /** Circulating coins; never falls. */
  readonly supply: Curve
  /** Users relative to those of BTC around 2024. */
  readonly size: Curve
  /** The mood of the whole market, about -1 (winter) to 1 (mania). */
  readonly mood: Curve
}

const year = 365.25 * day
const genesis = Date.UTC(2009, 0, 3) / 1000
/** Reference time at which `WorldAsset.prices[1]` and `supply` are true. */
const reference = Date.UTC(2024, 5, 1) / 1000

/** Turning points of the leading price, in years with fractions: enough for a history that has to look real. */
const turns = world.prices as [year: number, price: number][]
const turnTimes = turns.map(([when]) => (when - 1970) * year)
const turnLogs = turns.map(([, price]) => Math.log(price))
const lastTurn = turns.length - 1

/** Price noise: weights near the square root of the period, as a random walk has them. */
const walk: readonly (readonly [number, number])[] = [
  [210 * day, 0.3],
  [55 * day, 0.17],
  [16 * day, 0.1],
  [5 * day, 0.055],
  [1.6 * day, 0.032],
  [11 * hour, 0.018],
  [2.9 * hour, 0.009],
  [37 * minute, 0.004],
]

/** Computes the natural logarithm of the long-run trend of the leading price. */
function trend(at: number): number {
  const days = Math.max(1, (at - genesis) / day)
  return -39.144 + 5.82 * Math.log(days)
}

/**
 * Builds the logarithm of the leading price before noise: between turning points, four-year waves around the trend
 * after them.
 */
function turningCurve(): Curve {
  let k = 0
  return (at) => {
    const end = turnTimes[lastTurn] as number
    if (at >= end) {
      const since = (at - end) / year
      const gap = (turnLogs[lastTurn] as number) - trend(end)
      return trend(at) + gap * Math.exp(-since) - 0.55 * Math.sin((since * Math.PI) / 2)
    }
    if (!(at >= (turnTimes[k] as number) && at < (turnTimes[k + 1] as number))) {
      k = 0
      while (k < lastTurn - 1 && at >= (turnTimes[k + 1] as number)) k++
    }
    const from = turnTimes[k] as number
    const f = Math.min(1, Math.max(0, (at - from) / ((turnTimes[k + 1] as number) - from)))
    const left = turnLogs[k] as number
    return left + ((turnLogs[k + 1] as number) - left) * f * f * (3 - 2 * f)
  }
}

/** Movement of an asset's price: how it follows the market's wave, and how much it moves by itself. */
const motion: Readonly<Record<AssetFamily, { readonly beta: number; readonly own: number }>> = {
  bitcoin: { beta: 1, own: 0 },
  ethereum: { beta: 1.1, own: 0.5 },
  utxo: { beta: 0.8, own: 0.7 },
  chain: { beta: 1.1, own: 1 },
  token: { beta: 1.1, own: 1.2 },
  meme: { beta: 1.2, own: 2 },
  stable: { beta: 0, own: 0.003 },
  staked: { beta: 0, own: 0.006 },
  gold: { beta: 0, own: 0.12 },
  fund: { beta: 0, own: 0 },
  stock: { beta: 0.2, own: 0.3 },
}

/** Builds a saturating walk from 0 at `from` to 1 at `to`, rising slowly after it. */
function adoption(from: number, to: number): Curve {
  const span = Math.max(year, to - from)
  return (at) => {
    const u = Math.max(0, (at - from) / span)
    return u >= 1 ? 1 + 0.08 * Math.log(u) : (1 - Math.exp(-2.5 * u)) / (1 - Math.exp(-2.5))
  }
}

function leadingPrice(seed: number): { price: Curve; wave: Curve } {
  const base = turningCurve()
  const noise = octaves(hashText('price/BTC', seed), walk)
  const log: Curve = (at) => base(at) + 0.5 * noise(at)
  return { price: (at) => Math.exp(log(at)), wave: (at) => log(at) - trend(at) }
}

function priceOf(asset: WorldAsset, born: number, seed: number, leading: { price: Curve; wave: Curve }): Curve {
  if (asset.family === 'bitcoin') return leading.price
  const noise = octaves(hashText(`price/${asset.id}`, seed), walk)
  const { beta, own } = motion[asset.family]
  const [first, recent] = asset.prices
  if (asset.family === 'staked') {
    const parent = marketOf(asset.id === 'WBTC' ? 'BTC' : 'ETH', seed)
    return (at) => (parent?.price(at) ?? recent) * Math.exp(own * noise(at))
  }
  if (asset.family === 'fund' || asset.family === 'gold' || asset.family === 'stable') {
    const rate = Math.log(recent / first) / Math.max(1, reference - born)
    return (at) => first * Math.exp(rate * (at - born) + own * noise(at))
  }
  const target = Math.max(reference, born + year)
  const path = adoption(born, target)
  const start = Math.log(first) - beta * leading.wave(born) - own * noise(born)
  const rise = Math.log(recent) - beta * leading.wave(target) - start
  return (at) => Math.exp(start + rise * path(at) + beta * leading.wave(at) + own * noise(at))
}

/** Families whose coins are issued against something else. */
const issuedOnDemand: ReadonlySet<AssetFamily> = new Set(['fund', 'stable', 'gold', 'staked', 'stock'])

function supplyOf(asset: WorldAsset, born: number, seed: number): Curve {
  if (asset.family === 'bitcoin') {
    const height = chainHeight(asset.id, seed)
    return (at) => coinsMined(height(at))
  }
  const grown = adoption(born, reference)
  if (issuedOnDemand.has(asset.family)) {
    // Issued on demand: nothing on the first days, then growth in waves whose slope stays positive.
    const period = 120 * day
    const wave = octave(hashText(`supply/${asset.id}`, seed), period)
    const first = born + 3 * day
    return (at) => {
      if (at <= first) return 0
      return asset.supply * grown(at + 0.25 * period * (wave(at) - wave(first)))
    }
  }
  return (at) => asset.supply * (0.45 + 0.55 * grown(at))
}

const markets = new Map<string, AssetMarket>()
const byId = new Map(providerAssets.map((asset) => [asset.id, asset]))

/** Returns the market of an asset under a seed, made once; undefined for an unknown id. */
export function marketOf(id: string, seed: number): AssetMarket | undefined {
  const key = `${seed}/${id}`
  const cached = markets.get(key)
  if (cached) return cached
  const asset = byId.get(id)
  if (!asset) return undefined
  const born = dateAt(asset.born)
  const leading = leadingPrice(seed)
  const scale = Math.pow((asset.prices[1] * asset.supply) / 1.22e12, 0.6)
  const grown = adoption(born, reference)
  const market: AssetMarket = {
    asset,
    born,
    price: priceOf(asset, born, seed, leading),
    supply: supplyOf(asset, born, seed),
    size: (at) => scale * (0.01 + 0.99 * Math.pow(grown(at), 1.6)),
    mood: (at) => Math.max(-1, Math.min(1, leading.wave(at))),
  }
  if (markets.size > 4000) markets.clear()
  markets.set(key, market)
  return market
}

/** First block (Unix seconds) and seconds a block of the chains whose blocks are counted. */
const chains: Readonly<Record<string, readonly number[]>> = world.blocks
const wobblePeriod = 3 * day

/**
 * Builds the height of the asset's chain as a whole number: rises with time, faster and slower by turns, never falls.
 */
export function chainHeight(asset: string, seed: number): Curve {
  const [genesis = 1_500_000_000, spacing = 12] = chains[asset] ?? []
  const wobble = octave(hashText(`height/${asset}`, seed), wobblePeriod)
  const fine = octave(hashText(`height/fine/${asset}`, seed), spacing * 7)
  // Slopes of both waves together stay below 1, which keeps the height from falling.
  return (at) => {
    const lead = 0.1 * wobblePeriod * wobble(at) + 0.2 * spacing * 7 * fine(at)
    return Math.max(0, Math.floor((at - genesis + lead) / spacing))
  }
}

/** Computes the coins of a chain that halves its reward of 50 every 210,000 blocks. */
function coinsMined(height: number): number {
  let coins = 0
  let reward = 50
  let left = height
  while (left > 0 && reward > 1e-8) {
    coins += Math.min(left, 210_000) * reward
    left -= 210_000
    reward /= 2
  }
  return coins
}
