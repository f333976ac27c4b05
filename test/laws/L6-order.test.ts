import { expect, test } from 'vitest'
import { openQuery } from '../../src/query/lake.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

const lake = lakeOfFile(lateDaysAndProducts)

/** A statistic of the whole sample, whose last bits follow the order of the rows, and that order. */
const sql = `WITH d AS (SELECT ts, asset FROM calendar('2024-02-01', '2024-10-01', '1 day'), (VALUES ('BTC'), ('ETH')) AS a (asset)),
  j AS (FROM pit_join(d, '${lateMetric}', '24h'))
  SELECT (SELECT md5(string_agg(asset || CAST(ts AS VARCHAR))) FROM j) AS "order", md5(string_agg(CAST(z AS VARCHAR) ORDER BY asset, ts)) AS z
  FROM (SELECT *, (v - avg(v) OVER (PARTITION BY asset)) / stddev(v) OVER (PARTITION BY asset) AS z FROM j)`

test('L6: on one thread a join gives its rows in one order, the first time and ever after', async () => {
  const seen = new Set<string>()
  for (let n = 0; n < 4; n++) {
    using engine = await openQuery(lake.root, { threads: 1 })
    for (let run = 0; run < 8; run++) seen.add(JSON.stringify(await engine.rows(sql)))
  }
  expect([...seen]).toHaveLength(1)
})
