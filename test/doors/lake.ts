import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seriesId } from '../../src/catalog/series.ts'
import type { CoverageRow } from '../../src/lake/ledger/entry.ts'
import { trustTables } from '../helpers/trust-lake.ts'
import { makeLake, makeViews, micros, type PointRow } from '../helpers/views.ts'

/*
 * Five days of March 2024, each known half an hour after its end, as the rule of these metrics says, and asked for up to
 * their end. Of BTC the supply is n on the n-th day and 100 n in dollars, of ETH 10 n and 1000 n, but its second day came on
 * the sixth at noon. SOPR is n + 0.5, and null on the fifth day, which the second commit brought. AVIV is null on all days.
 * CDD was computed in June only. The registry is known since 2024-01-21: products p0 to p19, p0 has the symbol BTC.
 */

const days = [1, 2, 3, 4, 5]
const day = 86_400

function point(metric: string, asset: string, n: number, rest: Partial<PointRow>): PointRow {
  const [t, available_at] = [`2024-03-0${n}T00:00:00Z`, `2024-03-0${n + 1}T00:30:00Z`]
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

/** That all five days were asked for. */
function asked(rows: readonly PointRow[]): CoverageRow[] {
  const since = micros('2024-03-01') / 1e6
  const ids = rows.map(({ metric, asset, interval, currency = null, exchange = null, network = null }) =>
    seriesId({ metric, asset, interval, currency, exchange, network, params: {} }),
  )
  return [...new Set(ids)].map((series) => ({
    series,
    since,
    until: since + days.length * day,
    state: 'covered',
    reason: null,
    asked_at: micros('2024-04-01') / 1e6,
    request: null,
  }))
}

/** The lake that is asked at each door. */
export async function makeAskedLake() {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'pitlake-doors-')))
  const root = join(home, 'lake')
  const first = [...points, ...sopr.slice(0, 4)]
  await makeLake(root, [
    {
      at: '2024-04-01T12:00:00Z',
      points: first,
      tables: trustTables(['BTC', 'ETH']),
      draft: { coverage: asked([...first]) },
    },
    { at: '2024-05-01T12:00:00Z', points: sopr.slice(4) },
  ])
  await makeViews(root)
  return { home, root, remove: () => rmSync(home, { recursive: true, force: true }) }
}
