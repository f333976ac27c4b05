// @module-tag full
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

const lake = lakeOfFile(lateDaysAndProducts)

const grid = `WITH d AS (SELECT ts, asset FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY), (VALUES ('BTC'), ('ETH')) a(asset))`

async function proved(sql: string, ...options: readonly string[]): ReturnType<typeof pitlake> {
  const file = join(lake.root, '..', 'query.sql')
  writeFileSync(file, sql)
  return await pitlake(lake.root, ['lookahead', file, '--data', lake.root, '--cutoffs', '6', ...options])
}

test('columns of whole numbers differ as numbers, as text beyond 2^53', async () => {
  const forms: Readonly<Record<string, readonly [sql: string, form: RegExp]>> = {
    small: ['q', /^number [1-5]$/],
    beyond: ['q + 9007199254740993', /^string 90071992547409\d\d$/],
    huge: ['CAST(q AS HUGEINT) * 100000000000000000000', /^string \d00000000000000000000$/],
    unsigned: ['CAST(q AS UBIGINT)', /^number [1-5]$/],
    counted: ['count(DISTINCT v) OVER ()', /^number \d{1,3}$/],
  }
  const columns = Object.entries(forms).map(([name, [sql]]) => `${sql} AS ${name}`)
  const sql = `${grid} SELECT ts, ${columns.join(', ')}
    FROM (SELECT *, ntile(5) OVER (ORDER BY v) AS q FROM pit_join('d', '${lateMetric}', '24h')) WHERE asset = 'BTC'`
  const ended = await proved(sql, '--json')
  expect([ended.code, ended.message]).toEqual([4, expect.stringMatching(/looks ahead/)])
  const proof = JSON.parse(ended.out) as {
    readonly differences: readonly { readonly column: string; readonly full: unknown; readonly truncated: unknown }[]
  }
  for (const [name, [, form]] of Object.entries(forms)) {
    const own = proof.differences.find(({ column }) => column === name)
    for (const side of [own?.full, own?.truncated]) expect(`${typeof side} ${String(side)}`, name).toMatch(form)
  }
  expect((await proved(sql)).out).toMatch(/differs in beyond\n {2}with the future {5}"?90071992547409\d\d"?\n/)
})

test('the obstacle to a proof is reported with its line and column in the file', async () => {
  const select = `${grid}\nSELECT ts, v,\n  lead(t) OVER (PARTITION BY asset ORDER BY ts) IS NULL AS last FROM pit_join('d', '${lateMetric}', '24h') WHERE ts < '2024-02-02'`
  const sql = `-- a note\nSET VARIABLE mine = 1; ${select};`
  const ended = JSON.parse((await proved(sql, '--json')).out) as { readonly unproved: object | null }
  expect(ended.unproved).toMatchObject({ what: expect.stringMatching(/^lead\(t\)/), line: 4, column: 3 })
  expect((await proved(sql, '--labels', 'nothing')).out).toMatch(/undecided/)
  const own = JSON.parse(
    (await proved('SELECT ts,\n n FROM (SELECT now() AS ts, count(*) AS n\nFROM coverage)', '--json')).out,
  ) as typeof ended
  expect(own.unproved).toMatchObject({ what: 'coverage', line: 3, column: 6 })
  const chance = `${grid} SELECT ts,\n v + 0 * random() AS v FROM pit_join('d', '${lateMetric}', '24h')`

  expect((await proved(chance)).out).toMatch(/tested, not proved: line 2 column 10, random\(\): /)
})

test('a panel is proved as panel --explain prints it, and as it was stamped', async () => {
  const asked = ['--calendar', '2024-02-01,2024-03-01,1d', '--assets', 'BTC,ETH', '--metrics', lateMetric]
  const { out: sql } = await pitlake(lake.root, ['panel', '--data', lake.root, ...asked, '--explain'])
  const clean = await proved(sql, '--json')
  expect(JSON.parse(clean.out)).toMatchObject({ verdict: 'clean', proved: true, rows: 58 })
  const [from, to] = ['query.sql', 'panel.parquet'].map((name) => join(lake.root, '..', name))
  await pitlake(lake.root, ['stamp', from ?? '', '--out', to ?? '', '--data', lake.root])
  const stamped = await pitlake(lake.root, ['lookahead', to ?? '', '--data', lake.root, '--cutoffs', '6'])
  expect([stamped.code, stamped.out]).toEqual([
    0,
    expect.stringMatching(/clean, proved for every lake and every instant/),
  ])
})

test('a proved query runs five times or --cutoffs times, an unproved one at every cut-off', async () => {
  const honest = `${grid} SELECT ts, asset, v FROM pit_join('d', '${lateMetric}', '24h')`
  const file = join(lake.root, '..', 'runs.sql')
  const told = async (sql: string, ...options: readonly string[]): Promise<Record<string, unknown>> => {
    writeFileSync(file, sql)
    const { out } = await pitlake(lake.root, ['lookahead', file, '--data', lake.root, '--json', ...options])
    return JSON.parse(out) as Record<string, unknown>
  }
  expect(await told(honest)).toMatchObject({ proved: true, cutoffs: 5, changed: 0, notes: [] })
  const asked = await told(honest, '--cutoffs', '12')
  expect(asked).toMatchObject({ proved: true })
  expect(asked['cutoffs']).toBeGreaterThan(9)
  const unknown = await told(
    honest.replace(' v FROM', ` v + CAST(getvariable('none') IS NOT NULL AS INTEGER) AS v FROM`),
  )
  expect(unknown).toMatchObject({ verdict: 'clean', proved: false })
  expect(unknown['cutoffs']).toBeGreaterThan(30)
})

test('variables that a script sets hold in every run; other statements are refused', async () => {
  const set = `SET VARIABLE mine = 3; ${grid} SELECT ts, v * getvariable('mine') AS v FROM pit_join('d', '${lateMetric}', '24h')`
  const whole = JSON.parse((await proved(`${set} WHERE getvariable('mine') = 3`, '--json')).out) as {
    readonly rows: number
  }
  expect(whole.rows).toBeGreaterThan(100)
  const refused = await proved('BEGIN; SELECT 1 AS ts')
  expect([refused.code, refused.message]).toEqual([2, expect.stringMatching(/set variables or make temporary tables/)])
})
