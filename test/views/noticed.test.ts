// @module-tag full
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriesId } from '../../src/catalog/series.ts'
import { type Lake, lookahead, noted, openLake } from '../../src/index.ts'
import { judgeQuestion } from '../../src/query/question.ts'
import { openQuery } from '../../src/query/lake.ts'
import { pitlake } from '../helpers/command.ts'
import { plain, point, supply, threeDays } from '../helpers/lakes/three-days.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const day = (n: number): number => Date.UTC(2024, 2, n) / 1000
/** Asked for, and answered, up to the 4th. */
const covered = (metric: string, currency: string | null) => ({
  series: seriesId({ metric, asset: 'BTC', interval: '24h', currency, exchange: null, network: null, params: {} }),
  ...({ since: day(1), until: day(4), state: 'covered', reason: null, asked_at: day(30), request: null } as const),
})
let root = ''
let lake: Lake
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  const coverage = [covered(plain, null), covered(supply, 'native'), covered(supply, 'usd')]
  ;({ root, lake, remove } = await threeDays((n) => [point(plain, n, { v: n })], { coverage }))
})
afterAll(async () => await remove())

const decisions = (end: string): string =>
  `WITH d AS (SELECT 'BTC' AS asset, unnest([TIMESTAMPTZ '2024-03-04T00:10:00Z', TIMESTAMPTZ '${end}']) AS ts)`
const late = { code: 'unresolved-decisions', subject: plain, figures: { decisions: 1, since: '2024-06-01T00:00:00Z' } }
const lost = (code: string, subject: string) => [expect.objectContaining({ code, subject })]

test.each([
  [
    'count(*) of an asset that is none',
    `SELECT count(*) FROM points WHERE asset = 'BTX'`,
    lost('unknown-asset', 'BTX'),
  ],
  [
    'of a metric',
    `SELECT count(*) AS n FROM points WHERE metric = 'supply/curent'`,
    lost('unknown-metric', 'supply/curent'),
  ],
  ['NULL for an interval', `SELECT avg(v) FROM points WHERE "interval" = '1w'`, lost('no-interval', 'points')],
  [
    'of a currency',
    `SELECT sum(v) FROM points WHERE metric = '${supply}' AND currency = 'eur'`,
    lost('no-dimension', supply),
  ],
  ['of one without a metric', `SELECT max(v) FROM points WHERE currency = 'eur'`, lost('no-dimension', 'points')],
  ['before the first point', `FROM points WHERE metric = '${plain}' AND t < '2020-01-01'`, lost('held-between', plain)],
  [
    'behind the newest',
    `SELECT count(v) FROM points WHERE metric = '${plain}' AND t BETWEEN '2030-01-01' AND '2031-01-01'`,
    lost('held-between', plain),
  ],
  ['of prices', `SELECT max(v) FROM price_usd WHERE asset = 'BTX'`, lost('no-asset', 'price_usd')],
  ['of components', `FROM components WHERE metric = '${plain}' AND component = '/a'`, lost('plain-numbers', plain)],
  [
    'at an instant before it was known',
    `${decisions('2020-01-01').replace('2024', '2020')} FROM pit_join('d', '${plain}', '24h')`,
    lost('before-first', plain),
  ],
  [
    'with so many options that the eleventh argument is a text',
    `${decisions('2020-01-01').replace('2024', '2020')} FROM pit_join('d', '${plain}', '24h', latency := INTERVAL 0 DAY,
      max_age := INTERVAL 9 DAY, currency := NULL, exchange := NULL, network := NULL, component := NULL, skip_nulls := false,
      vintage := 'last', unresolved := 'value')`,
    lost('before-first', plain),
  ],
  ['decisions later than what is settled', `${decisions('2024-06-01')} FROM pit_join('d', '${plain}', '24h')`, [late]],
  [
    'in any order, in a CTE',
    `${decisions('2024-06-01')}, j AS (FROM pit_long("interval" := '24h', metrics := ['${plain}'], decisions := d)) SELECT count(*) FROM j`,
    [late],
  ],
  ['in a window', `${decisions('2024-06-01')} FROM pit_window('d', '${plain}', '24h', 2)`, [late]],
  [
    'once the latency is over',
    `${decisions('2024-06-01')} FROM pit_join('d', '${plain}', '24h', latency := INTERVAL 80 DAY)`,
    [late],
  ],
  [
    'within the latency',
    `${decisions('2024-06-01')} FROM pit_join('d', '${plain}', '24h', latency := INTERVAL 100 DAY)`,
    [],
  ],
  ['NULL on request', `${decisions('2024-06-01')} FROM pit_join('d', '${plain}', '24h', unresolved := 'null')`, []],
  ['what is settled', `${decisions('2024-03-04T12:00:00Z')} FROM pit_join('d', '${plain}', '24h')`, []],
  ['a count that may be 0', `SELECT count(*) FROM points WHERE metric = '${plain}' AND v < 0`, []],
  ['a value that is 0', `SELECT 0 AS n, 'btc' AS label`, []],
  ['a count in a list', `SELECT count(*) FILTER (v < 0) AS n, count(*) AS m FROM points WHERE asset = 'BTC'`, []],
] as const)('%s: %s', async (_, sql, owed) => {
  await lake.sql(sql)
  expect(noted(lake)).toEqual(owed)
})

test('an unknown metric among 5,000 further terms is noted', async () => {
  await lake.sql(`SELECT count(*) AS n FROM points WHERE metric = 'supply/curent' ${'AND true '.repeat(5000)}`)
  expect(noted(lake)).toEqual(lost('unknown-metric', 'supply/curent'))
})

test('texts of parameters are looked at, too', async () => {
  await lake.sql('SELECT count(*) FROM points WHERE asset = $1', ['BTX'])
  expect(noted(lake)).toEqual(lost('unknown-asset', 'BTX'))
})

test('panels and joins note late decisions with the names in the question', async () => {
  const late = { decisions: [{ asset: 'BTC', ts: '2024-06-01' }], metrics: [plain, 'price_usd'] }
  await lake.panel(late)
  expect(noted(lake).map(({ code, subject }) => [code, subject])).toEqual([
    ['unresolved-decisions', plain],
    ['unresolved-decisions', 'price_usd'],
  ])
  expect(lake.notes.join()).toContain("`unresolved: 'null'`")
  await lake.panel({ ...late, unresolved: 'null' })
  expect(noted(lake)).toEqual([])
  await lake.window({ decisions: late.decisions, metric: plain, n: 2 })
  expect(noted(lake)).toHaveLength(1)
  await lake.points({ metrics: plain, since: '2030-01-01' })
  expect(noted(lake)).toEqual(lost('held-between', plain))
  await lake.points({ assets: 'BTX' })
  expect(noted(lake)).toEqual(lost('unknown-asset', 'BTX'))
})

test('as_of moves what is settled, and nothing is known before it began', async () => {
  const then = await openLake(root, { asOf: '2024-03-03T00:20:00Z' })
  try {
    await then.panel({ decisions: [{ asset: 'BTC', ts: '2024-03-05' }], metrics: [plain] })
    expect(noted(then)).toEqual([{ ...late, figures: { decisions: 1, since: '2024-03-05T00:00:00Z' } }])
  } finally {
    await then.close()
  }
  const early = await openLake(root, { asOf: '2024-01-02' })
  try {
    await early.points({ metrics: plain })
    expect(noted(early)).toEqual(lost('before-first', plain))
    await early.history('products')
    expect(noted(early)).toEqual(lost('registry-unknown', 'registry'))
  } finally {
    await early.close()
  }
})

test('notes under a mandatory instant report only what was known then', async () => {
  using engine = await openQuery(root, { asOf: '2024-01-02', mark: 'mark_of_a_test' })
  const run = { folder: root, mark: 'mark_of_a_test', sleep: async () => undefined }
  const ask = async (sql: string) => {
    const { notes, doubts } = await judgeQuestion({ sql, knowledge: { asOf: '2024-01-02' } }, engine, run)
    return [...notes, ...(await doubts({ rows: 0, empty: [] }))]
  }
  expect(await ask(`FROM points WHERE metric = 'supply/curent_pit'`)).toMatchObject([
    { code: 'unknown-metric', near: expect.arrayContaining([supply]) },
  ])
  expect(await ask(`FROM points WHERE metric = '${supply}' AND asset = 'btc'`)).toEqual([
    { code: 'unknown-then', subject: supply },
  ])
  expect(await ask('FROM products')).toEqual([{ code: 'registry-empty', subject: 'registry' }])
  expect(await ask(`${decisions('2024-06-01')} FROM pit_join('d', '${plain}', '24h')`)).not.toContainEqual(
    expect.objectContaining({ code: 'before-first' }),
  )
})

test('lookahead, stamp and replay carry them', async () => {
  using folder = temporaryFolder('noticed')
  const own = folder.path
  const ask = async (...argv: string[]) => await pitlake(own, [...argv, '--data', root])
  writeFileSync(join(own, 'q.sql'), `${decisions('2024-06-01')} SELECT ts, v FROM pit_join('d', '${plain}', '24h')`)
  const words = `unresolved decisions of '${plain}' get its newest value: 1, from 2024-06-01T00:00:00Z on`
  expect((await ask('lookahead', 'q.sql', '--cutoffs', '3')).out).toContain(words)
  const stamped = await ask('stamp', 'q.sql', '--out', 'r.parquet', '--json')
  expect([JSON.parse(stamped.out).noted, stamped.notes]).toEqual([[late], expect.stringContaining(words)])
  expect((await ask('replay', 'r.parquet')).notes).toContain(words)
})

test('lookahead of a function shows each note of its questions on the whole lake once', async () => {
  const work = async (own: Lake) => {
    const calendar = { since: '2024-03-04', until: '2024-03-09', step: '1d' }
    const table = await own.panel({ metrics: { v: plain }, calendar, assets: ['BTC'] })
    await own.metrics()
    return table
  }
  const { verdict, notes } = await lookahead(work, root, { cutoffs: 1 })
  expect(verdict).toBe('clean')
  const words = `unresolved decisions of '${plain}' get its newest value: 3, from 2024-03-06T00:00:00Z on`
  expect(notes.filter((note) => note.includes('unresolved'))).toEqual([expect.stringContaining(words)])
})
