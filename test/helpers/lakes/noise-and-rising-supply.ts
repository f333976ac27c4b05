import { catalogue } from '../sandbox-client.ts'
import type { LakeRecipe, PointRow } from './lake-recipe.ts'
import { thirtyProducts } from './late-days-and-products.ts'

const dayMs = 86_400_000
const start = Date.UTC(2024, 0, 1)
const days = 75
/** Noise: a metric without any trend, some of whose points are null or late. */
export const noisyMetric = 'addresses/active_count_pit'
/** A supply that rises every day. */
export const risingMetric = 'supply/current_pit'
/** A metric of objects. */
export const objectMetric = 'market/price_usd_ohlc'
const iso = (ms: number): string => new Date(ms).toISOString()

function usual(of: string): Pick<PointRow, 'currency' | 'exchange' | 'network'> {
  const { currency = null, exchange = null, network = null } = catalogue.endpoints.get(of)?.defaults ?? {}
  return { currency, exchange, network }
}

/** Noise with missing values and late points; a supply and its value that only ever rise; an object. */
function points(): PointRow[] {
  return Array.from({ length: days }, (_, day): PointRow[] => {
    const t = start + day * dayMs
    const own = { interval: '24h' as const, t: iso(t), available_at: iso(t + dayMs + 600_000) }
    const late = { ...own, available_at: iso(t + dayMs + 600_000 + (day % 23 === 7 ? 2 * dayMs : 0)) }
    const noise = 1000 + ((day * 7919) % 97)
    return [
      ...['BTC', 'ETH'].map((asset, n): PointRow => {
        const v = day % 19 === 11 && n === 0 ? null : noise * (n + 1)
        return { ...late, ...usual(noisyMetric), metric: noisyMetric, asset, v }
      }),
      { ...own, metric: risingMetric, asset: 'BTC', currency: 'native', v: 100 + day },
      { ...own, metric: risingMetric, asset: 'BTC', currency: 'usd', v: (100 + day) * (50 + day * 2) },
      {
        ...own,
        ...usual(objectMetric),
        metric: objectMetric,
        asset: 'BTC',
        o: JSON.stringify({ o: noise, c: noise + 3 }),
      },
      ...(day < 50 ? [{ ...own, ...usual(noisyMetric), metric: noisyMetric, asset: 'OLD', v: noise }] : []),
    ]
  }).flat()
}

/** 75 days of 2024 on which a look ahead changes something, and a registry of thirty products. */
export const noiseAndRisingSupply: LakeRecipe = {
  name: 'noise',
  commits: [{ at: '2024-12-01T00:00:00', points: points(), tables: thirtyProducts() }],
}
