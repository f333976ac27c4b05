import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Engine } from '../../src/store/engine.ts'
import { withDesk } from '../helpers/importing.ts'

/** Several row groups, which threads of the engine take by turns. */
const [assets, hours] = [90, 8000]

test('L4: a large import stands in the order of series and t', async () => {
  await withDesk(async (desk) => {
    using engine = await Engine.open()
    const file = join(desk.folder, 'p.parquet')
    const rows = `SELECT 'A' || a AS asset, make_timestamptz((1400000400 + h * 3600)::BIGINT * 1000000) AS t, (h * a)::DOUBLE AS value
      FROM range(${hours}) AS hours (h) CROSS JOIN range(${assets}) AS assets (a) ORDER BY h, a`
    await engine.run(`COPY (${rows}) TO '${file}' (FORMAT parquet)`)
    const { told } = await desk.take([file, '--as', 'p'])
    expect(told['points_added']).toBe(assets * hours)
    const [order] = await engine.rows(
      `SELECT count(*)::INTEGER AS points, (count(*) FILTER (WHERE (asset, t) <= before))::INTEGER AS back, max(row_group)::INTEGER AS groups
       FROM (SELECT *, file_row_number // 122880 AS row_group, lag((asset, t)) OVER (ORDER BY file_row_number) AS before
         FROM read_parquet('${join(desk.folder, 'lake/points/*/*/*.parquet')}', file_row_number = true))`,
    )
    expect(order).toEqual({ points: assets * hours, back: 0, groups: 5 })
  })
})
