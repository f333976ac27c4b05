import { catalogue } from '../sandbox-client.ts'
import type { LakeCommit, LakeRecipe, PointRow } from './lake-recipe.ts'
import { makeLake } from './make-lake.ts'

const dayMs = 86_400_000
const start = Date.UTC(2024, 0, 1)
const days = 300
/** The metric of that lake: every 41st day is known three days late. */
export const lateMetric = 'addresses/active_count_pit'
const { currency, exchange, network } = catalogue.endpoints.get(lateMetric)?.defaults ?? {
  currency: null,
  exchange: null,
  network: null,
}

/** The value of an asset on a day: a slow wave and some noise, never the same twice. */
function valueOf(asset: number, day: number): number {
  return 1000 * (asset + 1) + 200 * Math.sin(day / 20) + ((day * 7919 + asset * 104_729) % 97)
}

const iso = (ms: number): string => new Date(ms).toISOString()

function points(from: number, until: number): PointRow[] {
  return ['BTC', 'ETH'].flatMap((asset, n) =>
    Array.from({ length: until - from }, (_, i): PointRow => {
      const day = from + i
      const t = start + day * dayMs
      const late = day % 41 === 7 ? 3 * dayMs : 0
      const available_at = iso(t + dayMs + 600_000 + late)
      return {
        metric: lateMetric,
        asset,
        interval: '24h',
        currency,
        exchange,
        network,
        t: iso(t),
        available_at,
        v: valueOf(n, day),
      }
    }),
  )
}

/** Thirty products: twenty from the first snapshot, ten created later, every third removed later. */
function products(symbols: readonly string[]) {
  return Array.from({ length: 30 }, (_, i) => i).flatMap((i) => {
    const born = i < 20 ? 20 : 20 + i * 5
    const id = `p${i}`
    const fields = {
      inferred: false,
      source: 'test',
      status: 'active',
      symbol: symbols[i] ?? id.toUpperCase(),
      issuer_id: 'i0',
      record: JSON.stringify({ id }),
    }
    const opened = { id, at: iso(start + born * dayMs), op: i < 20 ? 'snapshot' : 'created', ...fields }
    const removed = { ...opened, at: iso(start + (200 + i) * dayMs), op: null, closed_by: 'deleted' }
    return i % 3 === 0 ? [opened, removed] : [opened]
  })
}

/**
 * A registry of thirty products and an issuer; with symbols, those of its first products and a listing of their assets.
 */
export function thirtyProducts(symbols: readonly string[] = []): NonNullable<LakeCommit['tables']> {
  const at = iso(start + 20 * dayMs)
  const snapshot = { snapshot_date: '2024-01-21', observed_at: at, source: 'snapshot', resource: 'products', base: 'a' }
  const issuer = { id: 'i0', at, op: 'snapshot', inferred: false, source: 'test', status: 'active' }
  const answer = { custodian_answer: 'not_disclosed', custodian: 'not disclosed' }
  return {
    'history.products': products(symbols),
    'history.issuers': [{ ...issuer, ...answer, record: '{"id":"i0"}' }],
    snapshots: [{ ...snapshot, delta: null, rows: 20 }],
    ...(symbols.length > 0 && {
      metric_assets: symbols.map((id) => ({ id, symbol: id, record: '{}', observed_at: at })),
    }),
  }
}

/** Two assets with 300 days of 2024, some of which are known late, and a registry of thirty products. */
export const lateDaysAndProducts: LakeRecipe = {
  name: 'late-days',
  commits: [
    { at: '2024-12-01T00:00:00', points: points(0, 200) },
    { at: '2024-12-02T00:00:00', tables: thirtyProducts() },
    { at: '2024-12-03T00:00:00', points: points(200, days) },
  ],
}

/** Commits thirty further days to that lake. */
export async function addThirtyDays(root: string): Promise<void> {
  await makeLake(root, [{ at: '2025-02-01T00:00:00', points: points(days, days + 30) }])
}
