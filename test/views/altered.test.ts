import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAltered } from '../../src/query/altered-lake.ts'
import { openQuery } from '../../src/query/lake.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { alteredScript } from '../../src/query/views/script.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, multiset } from '../helpers/views.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'

/* A lake whose points are altered answers as a second lake does that holds those points in its files. */

let home = ''
let root = ''
let twin = ''

const plain = 'addresses/active_count_pit'
const priced = 'supply/current_pit'
const whole = 'market/price_usd_ohlc'
const iso = (day: number, seconds: number): string =>
  new Date(Date.UTC(2024, 0, 1 + day) + seconds * 1000).toISOString()

/** The dimensions on which a metric is joined where none is named. */
const usual = (metric: string): Pick<PointRow, 'currency' | 'exchange' | 'network'> => {
  const { currency = null, exchange = null, network = null } = catalogue.endpoints.get(metric)?.defaults ?? {}
  return { currency, exchange, network }
}

/** Twenty days of a plain metric, a price and an object; some days late. */
const points = Array.from({ length: 20 }, (_, day): PointRow[] => {
  const t = iso(day, 0)
  const own = { interval: '24h' as const, t, available_at: iso(day + 1 + (day % 7 === 3 ? 3 : 0), 600) }
  return ['BTC', 'ETH'].flatMap((asset): PointRow[] => [
    { ...own, ...usual(plain), metric: plain, asset, v: day % 5 === 4 ? null : 100 + day },
    { ...own, metric: priced, asset, currency: 'usd', v: 1000 + day * day },
    { ...own, metric: priced, asset, currency: 'native', v: 10 },
    { ...own, ...usual(whole), metric: whole, asset, o: JSON.stringify({ o: day, c: day + 1 }) },
  ])
}).flat()

/** Every point a day later, twice as large, and none of one asset from the 15th on: in plain code, and as SQL. */
const altered = points.flatMap((row): PointRow[] => {
  if (row.asset === 'ETH' && row.t >= iso(14, 0)) return []
  const available_at = new Date(Date.parse(row.available_at) + 86_400_000).toISOString()
  return [{ ...row, available_at, v: typeof row.v === 'number' ? row.v * 2 : (row.v ?? null) }]
})
const sql = `SELECT real.* REPLACE (real.v * 2 AS v, real.available_at + INTERVAL 1 DAY AS available_at,
    real.available_rule_at + INTERVAL 1 DAY AS available_rule_at)
  FROM {{real}} AS real WHERE NOT (real.asset = 'ETH' AND real.t >= TIMESTAMPTZ '2024-01-15 00:00:00+00')`

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "pitlake-altered-it's-"))
  ;[root, twin] = [join(home, 'lake'), join(home, 'twin')]
  for (const [folder, rows] of [
    [root, points],
    [twin, altered],
  ] as const) {
    await makeLake(folder, [{ at: '2024-03-01T00:00:00Z', points: rows }])
    await makeViews(folder)
  }
}, 300_000)

afterAll(() => rmSync(home, { recursive: true, force: true }))

const grid = `CREATE TEMP TABLE d AS SELECT ts, asset FROM calendar('2024-01-01', '2024-02-01', '6 hours'), (VALUES ('BTC'), ('ETH')) a (asset)`
const queries = [
  'SELECT metric, asset, currency, t, available_at, v, o, basis FROM points',
  'SELECT asset, t, available_at, component, v FROM components',
  'SELECT asset, t, available_at, v FROM price_usd',
  'SELECT metric, asset, points, last_t, last_available_at FROM series',
  `FROM pit_join(d, '${plain}', '24h')`,
  `FROM pit_join(d, 'price_usd', '24h', latency := '1 hour', max_age := '3 days')`,
  `FROM pit_join(d, '${whole}#/c', '24h')`,
  `FROM pit_long(d, ['${plain}', 'price_usd'], '24h')`,
  `FROM pit_window(d, '${plain}', '24h', 3, skip_nulls := true)`,
  `SELECT asset, t, available_at, parts, complete, v FROM resample('${plain}', '24h', '1w', 'sum')`,
]
const variables = [{}, { asOf: '2024-01-12T00:10:00Z' }, { backfill: 'rule' as const, asOf: '2024-01-17' }]

test.for(variables)('answers as a lake with those points does: %o', async (options) => {
  using other = await openAltered(root, sql, options)
  using real = await openQuery(twin, options)
  using untouched = await openQuery(root, options)
  for (const engine of [other, real, untouched]) await engine.run(grid)
  for (const query of queries) {
    const rows = multiset(await other.rows(query))
    expect(rows.length, query).toBeGreaterThan(0)
    expect(rows, query).toEqual(multiset(await real.rows(query)))
    expect(rows, query).not.toEqual(multiset(await untouched.rows(query)))
  }
})

test('a throw-away database is one that any DuckDB opens, and the lake stays as it is', async () => {
  const before = filesOf(root)
  const database = join(home, 'away.duckdb')
  const made = await openAltered(root, sql, { into: database, threads: 1 })
  made.close()
  using plainly = await Engine.open(database, { readOnly: true })
  using other = await openAltered(root, sql, { asOf: '2024-01-12' })
  await plainly.run(`SET VARIABLE as_of = '2024-01-12'`)
  const query = 'SELECT metric, asset, t, v FROM points'
  expect(multiset(await plainly.rows(query))).toEqual(multiset(await other.rows(query)))
  expect(readdirSync(home).filter((name) => name.startsWith('away'))).toEqual(['away.duckdb'])
  expect(filesOf(root)).toEqual(before)
})

test('says so where the views are of another program, and where the SQL is not of the form', async () => {
  const script = readFileSync(join(root, 'lake.sql'), 'utf8')
  expect(alteredScript(script.replaceAll('stored.basis', 'stored.base'), sql)).toBeUndefined()
  expect(() => alteredScript(script, 'SELECT 1')).toThrow(/\{\{real\}\}/)
  const old = openAltered(root, sql, { script: script.replaceAll('proof_hidden', 'hidden') })
  await expect(old).rejects.toThrow(/pitlake views/)
  const shut = openAltered(join(home, 'none'), sql)
  await expect(shut).rejects.toThrow(/lake\.sql/)
})

function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .filter((name) => name.includes('.'))
    .map((name) => `${name} ${readFileSync(join(folder, name)).toString('base64')}`)
}
