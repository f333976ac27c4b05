import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openQuery } from '../../src/query/lake.ts'
import { runScript } from '../../src/query/run.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { thirtyProducts } from '../helpers/lakes/late-days-and-products.ts'

const text = readFileSync(new URL('../../docs/how-to/cookbook.md', import.meta.url), 'utf8')
const recipes = [...text.matchAll(/^\*\*(.+)\*\*\n\n```sql\n([\s\S]*?)```/gm)].map(
  ([, title = '', sql = '']): [string, string] => [title, sql],
)
/** Recipes about things that a sound small lake has none of. */
const maybeEmpty = new Set(['Gaps', 'The state of every window', 'Plan against actual'])

function rows(
  metric: string,
  more: Partial<PointRow>,
  value: (asset: number, day: number) => Partial<PointRow>,
): PointRow[] {
  const defaults = catalogue.endpoints.get(metric)?.defaults
  return ['BTC', 'ETH'].flatMap((asset, n) =>
    Array.from({ length: 240 }, (_, day): PointRow => {
      const t = Date.UTC(2024, 0, 1 + day)
      const late = day % 50 === 9 ? 2 * 86_400_000 : 0
      const available = new Date(t + 86_400_000 + 600_000 + late).toISOString()
      const { currency = null, exchange = null, network = null } = defaults ?? {}
      const series = { metric, asset, interval: '24h', currency, exchange, network } as const
      const clocks = {
        t: new Date(t).toISOString(),
        available_at: available,
        computed_at: available,
        basis: 'provider',
      }
      return { ...series, ...clocks, ...more, ...value(n, day) }
    }),
  )
}

const { root } = lakeOfFile({
  name: 'cookbook',
  commits: [
    {
      at: '2024-12-01T00:00:00',
      points: [
        ...rows('addresses/active_count_pit', {}, (n, day) => ({ v: 1000 + n + day })),
        ...rows('indicators/sopr_adjusted_pit', {}, (n, day) => ({ v: 1 + n + day / 100 })),
        ...rows('supply/current_pit', { currency: 'native' }, (n, day) => ({ v: 1e6 + n + day })),
        ...rows('supply/current_pit', { currency: 'usd' }, (n, day) => ({ v: (1e6 + n + day) * (40 + day) })),
        ...rows('addresses/supply_distribution_relative_pit', {}, (n, day) => ({
          v: null,
          o: `{"small":${day},"large":${n}}`,
        })),
      ],
    },
    { at: '2024-12-02T00:00:00', tables: thirtyProducts(['BTC', 'ETH']) },
  ],
})

test('the cookbook has at least twenty recipes with different titles', () => {
  expect(recipes.length).toBeGreaterThanOrEqual(20)
  expect(new Set(recipes.map(([title]) => title)).size).toBe(recipes.length)
  expect(text.match(/```sql/g)?.length).toBe(recipes.length)
})

test.for(recipes)('%s', async ([title, sql]) => {
  using session = await openQuery(root)
  const run = { folder: root, sleep: async () => await Promise.resolve() }
  const ready = await runScript(session, sql, run)
  const found = await session.rows(ready.text)
  if (!maybeEmpty.has(title)) expect(found.length).toBeGreaterThan(0)
  expect(ready.columns.length).toBeGreaterThan(1)
})
