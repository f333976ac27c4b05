import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Engine } from '../../src/lake/store/engine.ts'
import { namesIn } from '../../src/lake/store/disk.ts'
import { type Desk, withDesk } from '../helpers/importing.ts'

/** Several row groups, which threads of the engine take by turns. */
const assets = 90
const hours = 8000

/** Imports the rows of a SELECT as Parquet; gives the file of points and what was told. */
async function imported(desk: Desk, rows: string, ...flags: readonly string[]) {
  using engine = await Engine.open()
  const file = join(desk.folder, 'p.parquet')
  await engine.run(`COPY (${rows}) TO '${file}' (FORMAT parquet)`)
  const { told } = await desk.take([file, '--as', 'p', ...flags])
  const folder = join(desk.folder, 'lake/points/metric=own%2Fp/interval=1h')
  const [name = ''] = await namesIn(folder)
  return { told, path: join(folder, name) }
}

const many = (
  more: string,
) => `SELECT 'A' || a AS asset${more}, make_timestamptz((1400000400 + h * 3600)::BIGINT * 1000000) AS t,
    (h * a)::DOUBLE AS value
  FROM range(${hours}) AS hours (h) CROSS JOIN range(${assets}) AS assets (a) ORDER BY h, a`

for (const [name, more, flags] of [
  ['a key', '', []],
  ['two keys', `, CASE a % 3 WHEN 0 THEN 'usd' ELSE 'eur' END AS cur`, ['--currency', 'cur']],
] as const)
  test(`L4: a large import with ${name} stands in the order of series and t, the same bytes each time`, async () => {
    const written = async (): Promise<Buffer> => {
      let bytes = Buffer.of()
      await withDesk(async (desk) => {
        const { told, path } = await imported(desk, many(more), ...flags)
        expect(told['points_added']).toBe(assets * hours)
        using engine = await Engine.open()
        const series = `(asset, coalesce(currency, ''), t)`
        const [order] = await engine.rows(
          `SELECT count(*)::INTEGER AS points, (count(*) FILTER (WHERE ${series} <= before))::INTEGER AS back, max(row_group)::INTEGER AS groups
           FROM (SELECT *, file_row_number // 122880 AS row_group, lag(${series}) OVER (ORDER BY file_row_number) AS before
             FROM read_parquet('${path}', file_row_number = true))`,
        )
        expect(order).toEqual({ points: assets * hours, back: 0, groups: 5 })
        const whole = readFileSync(path)
        // What lies behind are facts of the lake.
        bytes = whole.subarray(0, whole.length - 8 - whole.readUInt32LE(whole.length - 8))
      })
      return bytes
    }
    const first = await written()
    expect(first.equals(await written())).toBe(true)
  })

test('L4: names are numbered as files are sorted, and what is not finished is left', async () => {
  const names = ['a', 'B', 'A1', 'A10', 'A', '_', 'é', 'ﬀ', '𝔘', `o'clock`, 'Z z']
  await withDesk(async (desk) => {
    const rows = `SELECT name AS asset, make_timestamptz((1776704400 + h * 3600)::BIGINT * 1000000) AS t, len(name) * 1000 + unicode(name) AS value
      FROM unnest([${names.map((one) => `'${one.replaceAll("'", "''")}'`).join(', ')}]) AS names (name) CROSS JOIN range(1020) AS hours (h)`
    const { told, path } = await imported(desk, rows, '--available', 'end+90m')
    // At noon the last hour whose value is known began at 9:00.
    expect(told).toMatchObject({ points_added: names.length * 1001, left_because: { unfinished: names.length * 19 } })
    const found = await desk.rows(
      `SELECT asset, count(*)::INTEGER AS n FROM read_parquet('${path}', file_row_number = true)
       WHERE v = len(asset) * 1000 + unicode(asset) GROUP BY asset ORDER BY min(file_row_number)`,
    )
    const sorted = names.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    expect(found).toEqual(sorted.map((asset) => ({ asset, n: 1001 })))
  })
})
