import type { LakeRecipe, PointRow, TableRows } from '../helpers/lakes/lake-recipe.ts'

/* What pictures and copied texts are tried on: values below zero, a first value of zero, a late first value, products. */

const day = 86_400_000
const iso = (ms: number): string => new Date(ms).toISOString()
const start = Date.UTC(2024, 0, 1)

/** Metrics of that lake: daily values, and hourly ones of two weeks. */
export const dailyMetric = 'indicators/sopr_adjusted_pit'
export const hourlyMetric = 'addresses/active_count_pit'

/** Each asset as it tells something to an axis. */
const assets: Readonly<Record<string, (n: number) => number | null>> = {
  // Grows ten thousandfold.
  BTC: (n) => 3 * 10 ** (n / 50),
  // Below zero each sixth day, zero on others.
  ETH: (n) => (n % 6 === 4 ? -2 - n : n % 6 === 5 ? 0 : 7 + n),
  // Begins with nothing, then with zero.
  LTC: (n) => (n < 3 ? null : n - 3),
  // Begins below zero.
  XRP: (n) => n - 20,
  // Never has a value.
  DOGE: () => null,
}

/** Days of that lake. */
export const days = 200

function points(): PointRow[] {
  const daily = Object.entries(assets).flatMap(([asset, valueAt]) =>
    Array.from({ length: days }, (_, n): PointRow => {
      const t = start + n * day
      // The first value of BTC is known only after the second.
      const late = asset === 'BTC' && n === 0 ? 10 * day : 600_000
      const known = iso(t + day + late)
      return { metric: dailyMetric, asset, interval: '24h', t: iso(t), available_at: known, v: valueAt(n) }
    }),
  )
  const hourly = Array.from({ length: 14 * 24 }, (_, n): PointRow => {
    const t = start + n * 3_600_000
    const known = iso(t + 3_660_000)
    return { metric: hourlyMetric, asset: 'BTC', interval: '1h', t: iso(t), available_at: known, v: 100 + n }
  })
  return [...daily, ...hourly]
}

/** Twelve products with classes, issuers and chains; some are created later, some change their status. */
function products(): Record<string, TableRows> {
  const at = iso(start + 20 * day)
  const common = { at, op: 'snapshot', inferred: false, source: 'test' }
  const issuers = ['active', 'inactive', null].map((status, n) => ({
    ...common,
    id: `i${n}`,
    name: `Issuer ${n}`,
    status,
    record: `{"id":"i${n}"}`,
  }))
  const classes = ['stablecoins', 'treasuries', 'it’s "odd"']
  const kinds = classes.map((name, n) => ({
    ...common,
    id: `a${n}`,
    name,
    asset_class: name,
    record: `{"id":"a${n}"}`,
  }))
  const products = Array.from({ length: 12 }, (_, n) => n).flatMap((n) => {
    const first = {
      ...common,
      id: `p${n}`,
      name: `Product ${n}`,
      symbol: `P${n}`,
      status: n % 4 === 3 ? 'inactive' : 'active',
      issuer_id: `i${n % 3}`,
      asset_id: `a${n % 3}`,
      record: `{"id":"p${n}"}`,
      ...(n > 8 && { at: iso(start + 40 * day), op: 'created' }),
    }
    return n === 2 ? [first, { ...first, at: iso(start + 50 * day), op: 'updated', status: 'inactive' }] : [first]
  })
  const deployments = Array.from({ length: 18 }, (_, n) => ({
    ...common,
    id: `d${n}`,
    product_id: `p${n % 9}`,
    chain_id: ['ethereum', 'base', 'solana'][n % 5] ?? 'ethereum',
    address: `0x${n}`,
    status: 'active',
    record: `{"id":"d${n}"}`,
  }))
  const snapshot = { snapshot_date: '2024-01-21', observed_at: at, source: 'snapshot', resource: 'products', base: 'a' }
  return {
    snapshots: [{ ...snapshot, delta: null, rows: 9 }],
    'history.products': products,
    'history.issuers': issuers,
    'history.assets': kinds,
    'history.deployments': deployments,
  }
}

/** A lake of pictures. */
export const pictures: LakeRecipe = {
  name: 'pictures',
  commits: [
    { at: '2024-07-25T00:00:00Z', points: points().slice(0, 300), tables: products() },
    { at: '2024-07-26T00:00:00Z', points: points().slice(300) },
  ],
}
