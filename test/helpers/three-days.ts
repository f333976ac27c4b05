import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Lake, openLake } from '../../src/index.ts'
import type { Draft } from '../../src/lake/ledger/commit.ts'
import { trustTables } from './trust-lake.ts'
import { makeLake, makeViews, type PointRow } from './views.ts'

/** A metric of numbers, one of objects, one in two currencies. */
export const plain = 'indicators/sopr_adjusted_pit'
export const nested = 'indicators/cost_basis_distribution_quantiles_pit'
export const supply = 'supply/current_pit'

/** A point of a day of March 2024, known ten minutes after its end. */
export const point = (metric: string, day: number, rest: Partial<PointRow>): PointRow => ({
  metric,
  asset: 'BTC',
  interval: '24h',
  t: `2024-03-0${day}`,
  available_at: `2024-03-0${day + 1}T00:10:00Z`,
  ...rest,
})

/** A lake of three days that is open for questions; a test says what it holds of each day beside objects and supply. */
export async function threeDays(
  more: (day: number) => readonly PointRow[],
  draft: Partial<Draft> = {},
): Promise<{ readonly root: string; readonly lake: Lake; readonly remove: () => Promise<void> }> {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-days-'))
  const points = [1, 2, 3].flatMap((day) => [
    ...more(day),
    point(nested, day, { o: `{"a":{"b":${day * 10}},"c":"text"}` }),
    point(supply, day, { v: day, currency: 'native' }),
    point(supply, day, { v: day * 100, currency: 'usd' }),
  ])
  await makeLake(root, [{ at: '2024-04-01T12:00:00Z', points, tables: trustTables(), draft }])
  await makeViews(root)
  const lake = await openLake(root)
  const remove = async (): Promise<void> => {
    await lake.close()
    rmSync(root, { recursive: true, force: true })
  }
  return { root, lake, remove }
}
