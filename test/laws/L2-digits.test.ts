import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'
import { readUserRows, refusalOf } from '../helpers/user-files.ts'

const csv = (value: string): string => `asset;t;value\nA;2024-03-01;${value}\n`

test('two integers that are one double differ: a violation, a vintage, or two values in one file', async () => {
  await withDesk(async (desk) => {
    for (const [name, before, after] of [
      ['plain', '9007199254740993', '9007199254740992'],
      ['object', '{"a":9007199254740993}', '{"a":9007199254740992}'],
    ] as const) {
      const file = desk.put(`${name}.csv`, csv(before))
      const mapping = ['--as', name, '--interval', '24h', '--available', 'end']
      expect((await desk.take([file, ...mapping])).code).toBe(0)
      expect((await desk.take([file, ...mapping])).told).toMatchObject({ violations: 0, points_added: 0 })
      desk.put(`${name}.csv`, csv(after))
      expect(await desk.take([file, ...mapping]), name).toMatchObject({ code: 4, told: { violations: 1 } })
    }
    expect(await desk.rows('SELECT stored, offered FROM violations ORDER BY stored')).toEqual([
      { stored: '9007199254740993', offered: '9007199254740992.0' },
      { stored: '{"a":9007199254740993}', offered: '{"a":9007199254740992}' },
    ])
    const twice = desk.put('twice.csv', `${csv('9007199254740993')}A;2024-03-01;9007199254740991.5\n`)
    expect(await refusalOf([twice], {})).toMatch(/row 2: value: expected one value for A at 2024-03-01/)
    const revised = [desk.put('r.csv', csv('9007199254740993')), '--as', 'r', '--interval', '24h', '--revisable']
    await desk.take(revised)
    desk.put('r.csv', csv('9007199254740992'))
    expect((await desk.take(revised, '2026-06-02T12:00:00Z')).told).toMatchObject({ vintages_added: 1, violations: 0 })
  })
})

test('-0.0 stays -0.0 in files, in joins whose newest expected point is not known yet, and in written Parquet', async () => {
  await withDesk(async (desk) => {
    const rows = ['1,2024-03-02', '-0.0,2024-03-03', '3,2024-03-09'].map((row, n) => `A,2024-03-0${n + 1},${row}`)
    const file = desk.put('z.csv', `asset,t,value,known\n${rows.join('\n')}\n`)
    expect((await readUserRows([file], {})).map(({ v }) => Object.is(v, -0))).toEqual([false, true, false])
    await desk.take([file, '--as', 'z', '--interval', '24h', '--available-at', 'known'])
    const decisions = `d AS (SELECT 'A' AS asset, TIMESTAMPTZ '2024-03-05 12:00:00Z' AS ts)`
    for (const join of [
      `pit_join('d', 'own/z', '24h')`,
      `pit_long('d', ['own/z'], '24h')`,
      `pit_window('d', 'own/z', '24h', 1)`,
    ]) {
      const [row] = await desk.rows(`WITH ${decisions} SELECT CAST(epoch_ms(t) AS DOUBLE) AS t, v FROM ${join}`)
      expect([row?.['t'], Object.is(row?.['v'], -0)], join).toEqual([Date.UTC(2024, 2, 2), true])
    }
    const out = join(desk.folder, 'out.parquet')
    const zeros = `SELECT CASE WHEN n % 2 = 0 THEN CAST('-0.0' AS DOUBLE) ELSE 0.0 END AS v FROM range(6) AS r (n)`
    expect((await desk.run(['sql', zeros, '--out', out])).code).toBe(0)
    const signs = `SELECT count(*) FILTER (signbit(v)) AS minus, count(*) AS n FROM '${out}'`
    expect(await desk.rows(signs)).toEqual([{ minus: 3n, n: 6n }])
  })
})
