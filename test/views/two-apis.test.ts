import { expect, test } from 'vitest'
import { openQuery } from '../../src/query/lake.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

const lake = lakeOfFile(lateDaysAndProducts)

/** Products known and the metric's latest day at each instant. */
async function seen(instants: readonly string[], variables: Record<string, string> = {}): Promise<unknown[]> {
  using session = await openQuery(lake.root, { set: variables })
  const decisions = instants.map((at) => `(TIMESTAMPTZ '${at}')`).join(', ')
  return await session.rows(`
    WITH d (ts) AS (VALUES ${decisions}),
    u AS (SELECT ts, product_id, 'BTC' AS asset FROM pit_universe('d'))
    SELECT CAST(ts AS VARCHAR)[:16] AS at, count(*) AS products, bool_or(product_id = 'p0') AS first,
      strftime(any_value(t), '%m-%d') AS day
    FROM pit_join('u', '${lateMetric}', '24h') GROUP BY ts ORDER BY ts`)
}

// The first product is removed on 2024-07-19 00:00; a daily point is known at 00:10 of the next day.
const around = [
  '2024-07-18 12:00:00+00',
  '2024-07-18 23:59:59.999999+00',
  '2024-07-19 00:00:00+00',
  '2024-07-19 00:10:00+00',
]

test('TIME 60: each side of a question to both APIs is answered by the clock of its API', async () => {
  expect(await seen(around)).toEqual([
    { at: '2024-07-18 12:00', products: 30n, first: true, day: '07-17' },
    { at: '2024-07-18 23:59', products: 30n, first: true, day: '07-17' },
    { at: '2024-07-19 00:00', products: 29n, first: false, day: '07-17' },
    { at: '2024-07-19 00:10', products: 29n, first: false, day: '07-18' },
  ])
})

test('as_of between the two clocks hides later points and shows records closed later as open', async () => {
  const rows = await seen(['2024-07-19 12:00:00+00'], { as_of: '2024-07-18T23:00:00Z' })
  expect(rows).toEqual([{ at: '2024-07-19 12:00', products: 30n, first: true, day: '07-17' }])
})
