import type { CoverageRow } from '../../../src/lake/ledger/entry.ts'
import { micros } from '../instants.ts'
import type { LakeRecipe, PointRow } from './lake-recipe.ts'
import { thirtyProducts } from './late-days-and-products.ts'
import { seriesOf } from './make-lake.ts'

/*
 * Five days of March 2024, each known half an hour after its end, as the rule of these metrics says, and asked for up
 * to their end. Of BTC the supply is n on the n-th day and 100 n in dollars, of ETH 10 n and 1000 n, but its second day
 * came on the sixth at noon. SOPR is n + 0.5, and null on the fifth day, which the second commit brought. AVIV is null
 * on all days. CDD was computed in June only. The registry is known since 2024-01-21: products p0 to p19, p0 has the
 * symbol BTC.
 */

const days = [1, 2, 3, 4, 5]
const day = 86_400

function point(metric: string, asset: string, n: number, rest: Partial<PointRow>): PointRow {
  const t = `2024-03-0${n}T00:00:00Z`
  const available_at = `2024-03-0${n + 1}T00:30:00Z`
  return { metric, asset, interval: '24h', t, available_at, ...rest }
}

const supply = 'supply/current_pit'
const points = days.flatMap((n) => [
  point(supply, 'BTC', n, { v: n, currency: 'native' }),
  point(supply, 'BTC', n, { v: 100 * n, currency: 'usd' }),
  ...['native', 'usd'].map((currency, k) =>
    point(supply, 'ETH', n, {
      v: 10 * n * 100 ** k,
      currency,
      ...(n === 2 && { available_at: '2024-03-06T12:00:00Z' }),
    }),
  ),
  point('indicators/aviv_pit', 'BTC', n, {}),
  point('indicators/cost_basis_distribution_quantiles_pit', 'BTC', n, { o: `{"a":{"b":${10 * n}},"c":"text"}` }),
  point('indicators/cvdd_pit', 'BTC', n, {
    v: n,
    basis: 'provider',
    available_at: '2024-06-01T00:00:00Z',
    computed_at: '2024-06-01T00:00:00Z',
    available_rule_at: `2024-03-0${n + 1}T00:30:00Z`,
  }),
])
const sopr = days.map((n) => point('indicators/sopr_adjusted_pit', 'BTC', n, n < 5 ? { v: n + 0.5 } : {}))

/** Coverage of all five days for each series of the points. */
function coverageOf(rows: readonly PointRow[]): CoverageRow[] {
  const since = micros('2024-03-01') / 1e6
  return seriesOf(rows).map(({ id }) => ({
    series: id,
    since,
    until: since + days.length * day,
    state: 'covered',
    reason: null,
    asked_at: micros('2024-04-01') / 1e6,
    request: null,
  }))
}

const firstPoints = [...points, ...sopr.slice(0, 4)]

/** The five days in two commits, and the registry. */
export const fiveDays: LakeRecipe = {
  name: 'five-days',
  commits: [
    {
      at: '2024-04-01T12:00:00Z',
      points: firstPoints,
      tables: thirtyProducts(['BTC', 'ETH']),
      coverage: coverageOf(firstPoints),
    },
    { at: '2024-05-01T12:00:00Z', points: sopr.slice(4) },
  ],
}
