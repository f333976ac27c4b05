import { type Lake, openLake } from '../../../src/index.ts'
import type { LakeCommit, PointRow } from './lake-recipe.ts'
import { thirtyProducts } from './late-days-and-products.ts'
import { openTestLake } from './make-lake.ts'

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

/** A lake that is open for questions. */
export interface OpenedLake {
  readonly root: string
  readonly lake: Lake
  /** Closes the lake and removes it. */
  readonly remove: () => Promise<void>
}

/**
 * Opens a lake of three days of March 2024 with objects and supplies, and thirty products; a test adds points of each
 * day, and anything else that its one commit shall bring.
 */
export async function threeDays(
  morePoints: (day: number) => readonly PointRow[],
  more: Partial<LakeCommit> = {},
): Promise<OpenedLake> {
  const points = [1, 2, 3].flatMap((day) => [
    ...morePoints(day),
    point(nested, day, { o: `{"a":{"b":${day * 10}},"c":"text"}` }),
    point(supply, day, { v: day, currency: 'native' }),
    point(supply, day, { v: day * 100, currency: 'usd' }),
  ])
  const commits = [{ at: '2024-04-01T12:00:00Z', points, tables: thirtyProducts(), ...more }]
  const made = await openTestLake({ name: 'three-days', commits })
  const lake = await openLake(made.root)
  const remove = async (): Promise<void> => {
    await lake.close()
    made.remove()
  }
  return { root: made.root, lake, remove }
}
