// @module-tag full
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openTestLake } from '../helpers/lakes/make-lake.ts'
import { pitlake } from '../helpers/command.ts'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { leaks } from '../helpers/leaks.ts'
import { noiseAndRisingSupply } from '../helpers/lakes/noise-and-rising-supply.ts'
import { sample } from '../helpers/tiers.ts'

interface Told {
  readonly name: string
  readonly version: number
  readonly status: string
  readonly reason: string | null
  readonly difference: object | null
  readonly rows_added: number
  readonly until: string | null
  readonly waits_for: string | null
}

/** The text of a catalogue with features: each a SQL, and what else its row says. */
function yamlOf(features: Readonly<Record<string, readonly [sql: string, more?: string]>>): string {
  const rows = Object.entries(features).map(([name, [sql, more = '']]) => {
    const lines = [
      `why: a test`,
      'grid: 24h',
      ...(more === '' ? [] : [more]),
      'sql: |-',
      ...sql.split('\n').map((line) => `  ${line}`),
    ]
    return `  ${name}:\n${lines.map((line) => `    ${line}\n`).join('')}`
  })
  return `features:\n${rows.join('')}`
}

/** A desk with twenty days of a price, and a way to have features computed. */
async function withPrices(
  work: (
    desk: Desk,
    compute: (yaml: string, argv?: readonly string[], at?: string) => Promise<Features>,
  ) => Promise<void>,
): Promise<void> {
  await withDesk(async (desk) => {
    await bring(desk, 20)
    const config = desk.put('c.yaml', `catalogs: [${join(desk.folder, 'f.yaml')}]\n`)
    await work(desk, async (yaml, argv = [], at = '2024-03-21T01:00:00Z') => {
      desk.put('f.yaml', yaml)
      const ended = await desk.run(['features', '--config', config, '--json', ...argv], at)
      const { features = [] } = (ended.out === '' ? {} : JSON.parse(ended.out)) as { features?: readonly Told[] }
      return { ...ended, features }
    })
  })
}

interface Features {
  readonly code: number
  readonly message: string
  readonly features: readonly Told[]
}

async function bring(desk: Desk, days: number): Promise<void> {
  const rows = Array.from(
    { length: days },
    (_, i) => `BTC,${new Date(Date.UTC(2024, 2, 1 + i)).toISOString().slice(0, 10)},${i * i}`,
  )
  desk.put('p.csv', `asset,t,value\n${rows.join('\n')}\n`)
  const at = new Date(Date.UTC(2024, 2, 1 + days, 0, 30)).toISOString()
  expect(await desk.take([join(desk.folder, 'p.csv'), '--as', 'p', '--available', 'end'], at)).toMatchObject({
    code: 0,
  })
}

const step = `SELECT ts, asset, v - lag(v) OVER (PARTITION BY asset ORDER BY ts) AS v FROM pit_join('grid', 'own/p', '24h')`
const ofBtc = 'assets: [BTC]'

test('every known leak is refused as a feature, with the row', async () => {
  using lake = await openTestLake(noiseAndRisingSupply)
  const chosen = sample(leaks, 2, Math.ceil(leaks.length / 24))
  const features = Object.fromEntries(chosen.map(([, sql], n) => [`leak_${n}`, [sql]] as const))
  writeFileSync(join(lake.home, 'f.yaml'), yamlOf(features))
  const config = join(lake.home, 'c.yaml')
  writeFileSync(config, `catalogs: [${join(lake.home, 'f.yaml')}]\n`)
  const argv = ['features', '--config', config, '--data', lake.root, '--json']
  const { code, out, message } = await pitlake(lake.root, argv, {}, { now: () => Date.UTC(2024, 11, 2) })
  expect([code, message.split('\n').length]).toEqual([4, chosen.length])
  const { features: told } = JSON.parse(out) as { features: readonly Told[] }
  for (const [n, [what]] of chosen.entries()) {
    expect(told[n], what).toMatchObject({ name: `feature/leak_${n}`, status: 'refused', rows_added: 0, until: null })
    expect(told[n]?.difference, what).toMatchObject({
      as_of: expect.any(String),
      row: expect.objectContaining({ ts: expect.any(String) }),
    })
    expect(told[n]?.reason, what).toMatch(/(?:on|at) \d{4}-/)
  }
})

test('a changed definition is a further version; the first one stays, and its stamps replay', async () => {
  await withPrices(async (desk, compute) => {
    const sql = `SELECT ts, asset, v FROM pit_join('d', 'feature/step', '24h') ORDER BY ts`
    const decisions = `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-03-03 00:20', '2024-03-20', '1 day')) `
    desk.put('q.sql', decisions + sql)
    const first = await compute(yamlOf({ step: [step, `${ofBtc}\n    latency: 15m`] }))
    expect([first.message, first.features]).toMatchObject([
      '',
      [{ version: 1, status: 'proved', rows_added: 21, until: '2024-03-21T00:00:00Z' }],
    ])
    const one = await desk.rows(decisions + sql)
    expect(one.map(({ v }) => v).slice(0, 3)).toEqual([1, 3, 5])
    expect(await desk.run(['stamp', 'q.sql', '--out', 'r.parquet'])).toMatchObject({ code: 0 })
    const other = await compute(yamlOf({ step: [step.replace('v - lag(v)', '-v + lag(v)'), ofBtc] }))
    expect(other.features).toMatchObject([{ version: 2, status: 'proved', rows_added: 21 }])
    expect((await desk.rows(decisions + sql)).map(({ v }) => v).slice(0, 3)).toEqual([-1, -3, -5])
    const old = sql.replace(`'24h')`, `'24h', network := 'v1')`)
    expect(await desk.rows(decisions + old)).toEqual(one)
    expect(await desk.run(['replay', 'r.parquet'])).toMatchObject({ code: 0 })
    // Back again: what is there counts at once.
    expect(await compute(yamlOf({ step: [step, `${ofBtc}\n    latency: 15m`] }))).toMatchObject({
      features: [{ version: 1, rows_added: 0 }],
    })
    expect(await desk.rows(decisions + sql)).toEqual(one)
    const check = await desk.run(['features', '--check', '--json'])
    expect([check.code, JSON.parse(check.out)]).toMatchObject([
      0,
      {
        features: [
          { version: 1, rows: 21, differing: 0 },
          { version: 2, rows: 21, differing: 0 },
        ],
      },
    ])
  })
})

test('a feature waits for what it reads, and features that read features come behind them', async () => {
  await withPrices(async (desk, compute) => {
    const yaml = yamlOf({
      twice: [`SELECT ts, asset, 2 * v AS v FROM pit_join('grid', 'feature/step', '24h')`, ofBtc],
      step: [step, ofBtc],
    })
    const at = '2024-03-22T12:00:00Z'
    const waiting = await compute(yaml, [], at)
    const waits = { until: '2024-03-21T00:00:00Z', waits_for: 'own/p BTC at 2024-03-22T00:00:00Z' }
    expect(waiting.features).toMatchObject([
      { name: 'feature/step', ...waits },
      { name: 'feature/twice', waits_for: 'feature/step BTC at 2024-03-22T00:00:00Z' },
    ])
    await bring(desk, 21)
    expect((await compute(yaml, [], at)).features).toMatchObject([
      { until: '2024-03-22T00:00:00Z', rows_added: 1, waits_for: null },
      { until: '2024-03-22T00:00:00Z', rows_added: 1, waits_for: null },
    ])
    // What nobody brings for days is a gap, which the value is told without.
    expect((await compute(yaml, ['step'], '2024-03-30T12:00:00Z')).features).toMatchObject([
      { until: '2024-03-27T00:00:00Z', rows_added: 5 },
    ])
    // Another version of what it reads makes another one of it.
    expect((await compute(yaml.replace('v - lag(v)', '-v + lag(v)'), [], at)).features).toMatchObject([
      { name: 'feature/step', version: 2, rows_added: 22 },
      { name: 'feature/twice', version: 2, rows_added: 22 },
    ])
    const sums = `SELECT network, sum(v) AS sum FROM points WHERE metric = 'feature/twice' AND t < '2024-03-22' GROUP BY ALL ORDER BY ALL`
    expect(await desk.rows(sums)).toEqual([
      { network: 'v1', sum: 800 },
      { network: 'v2', sum: -800 },
    ])
    const check = await desk.run(['features', '--check', '--json'])
    expect(JSON.parse(check.out)).toMatchObject({
      features: [
        { version: 1, differing: 0 },
        { version: 2, differing: 0 },
        { name: 'feature/twice', version: 2, differing: 0 },
      ],
    })
  })
})

test('columns of a feature in other letters are its keys, its instant and its value, as in SQL', async () => {
  await withPrices(async (desk, compute) => {
    const from = `FROM pit_join('grid', 'own/p', '24h')`
    const { features } = await compute(
      yamlOf({
        small: [`SELECT ts, asset, 'usd' AS currency, v, t AS other ${from}`, ofBtc],
        large: [`SELECT ts AS "TS", asset AS "Asset", 'usd' AS "CURRENCY", v AS "V", t AS other ${from}`, ofBtc],
      }),
    )
    expect(features.map(({ status, rows_added: rows }) => [status, rows])).toEqual([
      ['proved', 21],
      ['proved', 21],
    ])
    const points = `SELECT asset, currency, t, v, o FROM points WHERE metric = 'feature/`
    const small = await desk.rows(`${points}small' ORDER BY t`)
    expect(small[20]).toMatchObject({ asset: 'BTC', currency: 'usd', v: 361, o: null })
    expect(await desk.rows(`${points}large' ORDER BY t`)).toEqual(small)
    const check = await desk.run(['features', '--check', '--json'])
    expect(JSON.parse(check.out)).toMatchObject({ features: [{ differing: 0 }, { differing: 0 }] })
  })
})

test('a feature with several value columns stores them as components, at every interface', async () => {
  await withPrices(async (desk, compute) => {
    const parts = `SELECT ts, asset, v AS now, v / 0.0 AS never, v > 100 AS high FROM pit_join('grid', 'own/p', '24h')`
    expect((await compute(yamlOf({ parts: [parts, ofBtc] }))).features).toMatchObject([
      { status: 'proved', rows_added: 21 },
    ])
    const rows = await desk.rows(
      `SELECT component, v FROM components WHERE metric = 'feature/parts' AND t = '2024-03-19' ORDER BY 1`,
    )
    expect(rows).toEqual([
      { component: '/high', v: 1 },
      { component: '/never', v: null },
      { component: '/now', v: 324 },
    ])
    const listed = await desk.run(['catalog', 'list', 'feature/*', '--json'])
    expect(JSON.parse(listed.out)).toMatchObject([{ path: 'feature/parts', intervals: ['24h'], networks: ['v1'] }])
    for (const argv of [['doctor'], ['status'], ['publish', join(desk.folder, 'out')]])
      expect(await desk.run(argv, '2024-03-21T01:00:00Z'), argv[0]).toMatchObject({ code: 0, message: '' })
    desk.put('q.sql', `SELECT ts, asset, v FROM pit_join('d', 'feature/parts#/now', '24h')`)
    desk.put('d.csv', 'asset,ts\nMARKET,2024-03-05\nBTC,2024-03-06\nBTC,2024-03-07\n')
    const proof = await desk.run(['lookahead', 'q.sql', '--own', 'd=d.csv', '--json'])
    expect(JSON.parse(proof.out)).toMatchObject({ verdict: 'clean', rows: 3 })
    // What was lost with a file is computed again, and is what it was.
    const all = await desk.rows(`FROM points WHERE metric = 'feature/parts' ORDER BY t`)
    const points = join(desk.folder, 'lake', 'points')
    const own = readdirSync(points, { recursive: true }).filter((name) => String(name).endsWith('-features.parquet'))
    expect(own).toHaveLength(1)
    rmSync(join(points, String(own[0])))
    expect(await desk.run(['doctor', '--forget-lost'])).toMatchObject({ code: 0 })
    expect((await compute(yamlOf({ parts: [parts, ofBtc] }))).features).toMatchObject([{ rows_added: 21 }])
    expect(await desk.rows(`FROM points WHERE metric = 'feature/parts' ORDER BY t`)).toEqual(all)
  })
})

async function seesWhatItNames(): Promise<void> {
  await withPrices(async (desk, compute) => {
    const counted = (where = ''): readonly [string] => [
      `SELECT g.ts, count(p.t) AS v FROM grid g JOIN points p ON p.available_at <= g.ts${where} GROUP BY g.ts`,
    ]
    const texts = {
      all: counted(),
      named: counted(` AND p.metric IN ('feature/step', 'own/p')`),
      step: [step, ofBtc],
    } as const
    const sinceThen = (names: object): string =>
      yamlOf(names as typeof texts).replaceAll('grid: 24h', 'grid: 24h\n    since: 2024-03-14')
    expect((await compute(sinceThen(texts))).code).toBe(0)
    await bring(desk, 21)
    const { features } = await compute(sinceThen(texts), [], '2024-03-22T01:00:00Z')
    expect(features.map(({ rows_added: rows }) => rows)).toEqual([1, 1, 1])
    const anew = { all_anew: texts.all }
    expect((await compute(sinceThen({ ...texts, ...anew }), [], '2024-03-22T01:00:00Z')).code).toBe(0)
    const told = async (name: string): Promise<unknown[]> =>
      (await desk.rows(`SELECT v FROM points WHERE metric = 'feature/${name}' ORDER BY t`)).map(({ v }) => v)
    const days = Array.from({ length: 9 }, (_, n) => n + 13)
    for (const name of ['all', 'all_anew']) expect(await told(name), name).toEqual(days)
    // The step of a day is known with the price of that day.
    expect(await told('named')).toEqual(days.map((n, i) => n + i + 1))
  })
}

async function refusesRings(): Promise<void> {
  await withPrices(async (_, compute) => {
    const reads = (name: string): readonly [string, string] => [step.replace('own/p', `feature/${name}`), ofBtc]
    const ended = await compute(
      yamlOf({ a: reads('b'), b: reads('c'), c: reads('a'), d: reads('ab'), ab: [step, ofBtc] }),
    )
    expect(ended.code).toBe(2)
    expect(ended.message).toContain(
      'expected a query over other data than its own values, got a circle: feature/a reads feature/b reads feature/c reads feature/a',
    )
    const told = Object.fromEntries(ended.features.map(({ name, status }) => [name.slice(8), status]))
    expect(told).toEqual({ a: 'failed', b: 'failed', c: 'failed', d: 'proved', ab: 'proved' })
  })
}

async function waitsForWhatItNames(): Promise<void> {
  await withPrices(async (desk, compute) => {
    const rows = Array.from({ length: 21 }, (_, i) => `BTC,${new Date(Date.UTC(2024, 2, 1 + i)).toISOString()},${i}\n`)
    const argv = [desk.put('q.csv', `asset,t,value\n${rows.join('')}`), '--as', 'p_late', '--available', 'end']
    expect((await desk.take(argv, '2024-03-22T00:30:00Z')).code).toBe(0)
    const { features } = await compute(
      yamlOf({ x: [step.replace('own/p', 'own/p_late'), ofBtc] }),
      [],
      '2024-03-22T01:00:00Z',
    )
    expect(features).toMatchObject([{ waits_for: null, until: '2024-03-22T00:00:00Z' }])
  })
}

test.each(
  sample(
    [
      ['of features a feature sees those alone that it names: day by day it is what it is at once', seesWhatItNames],
      ['features that read one another in a ring are refused, with the ring', refusesRings],
      ['a feature waits for what it names, and for nothing whose name only begins it', waitsForWhatItNames],
    ] as const,
    1,
  ),
)('%s', async (_, work) => await expect(work()).resolves.toBeUndefined())

/** A grid, where it is said to begin, and what the series has of it by the calendar: first and last t, and how many. */
const grids = [
  ['1w', '2024-03-01', '2024-02-26T00:00:00', '2024-03-11T00:00:00', 3],
  ['1month', '2024-01-01', '2023-12-01T00:00:00', '2024-02-01T00:00:00', 3],
  ['10m', '2024-03-20T12:00:00Z', '2024-03-20T11:50:00', '2024-03-21T00:50:00', 79],
  ['1h', '2024-03-20T12:30:00Z', '2024-03-20T12:00:00', '2024-03-21T00:00:00', 13],
] as const

test.each(sample(grids, 1))(
  'a feature on a grid of %s has a value at each of its instants',
  async (grid, since, first, last, rows) => {
    await withPrices(async (desk, compute) => {
      const yaml = yamlOf({ x: [`SELECT ts, asset, v FROM pit_join('grid', 'own/p', '24h')`, ofBtc] })
      const own = yaml.replace('grid: 24h', `grid: ${grid}\n    since: ${since}`)
      expect((await compute(own)).features).toMatchObject([{ status: 'proved', rows_added: rows }])
      expect(await desk.rows(`SELECT min(t) AS first, max(t) AS last FROM points WHERE metric = 'feature/x'`)).toEqual([
        { first: `${first}.000000Z`, last: `${last}.000000Z` },
      ])
    })
  },
)

test('a feature that cannot run is reported with its line, and other features are computed', async () => {
  await withPrices(async (desk, compute) => {
    const wrong: Readonly<Record<string, readonly [sql: string, said: RegExp]>> = {
      off: [
        'SELECT ts + INTERVAL 1 HOUR AS ts, 1 AS v FROM grid',
        /ts: expected instants on the grid of 24h, got 2024-03-01T01:/,
      ],
      bare: ['SELECT ts FROM grid', /feature\/bare is undecided: no column to compare beside the instant/],
      without: ['SELECT 1 AS v', /sql: expected a column ts with the instant of each row, got v/],
      clock: [
        'SELECT ts, 1 AS v FROM grid WHERE ts < current_timestamp',
        /sql: expected functions that give the same at any time, got now/,
      ],
      chance: [
        'SELECT ts, random() AS v FROM grid',
        /sql: expected functions that give the same at any time, got random/,
      ],
      two: ['SELECT 1 AS v; SELECT 1 AS ts, 2 AS v', /sql: expected one SELECT, got several statements/],
      three: [`SELECT error('it ran'); SELECT 1 AS v`, /sql: expected one SELECT, got several statements/],
      nowhere: ['SELECT ts, v FROM nowhere', /nowhere/],
      itself: [
        `SELECT ts, v FROM pit_join('grid', 'feature/itself', '24h')`,
        /sql: expected a query over other data than its own values, got feature\/itself itself/,
      ],
      unread: [`SELECT ts, v FROM 'f.yaml'`, /f\.yaml/],
      past: ['SELECT ts, (SELECT count(*) FROM main.points) AS v FROM grid', /sql: expected points without a schema/],
    }
    const yaml = yamlOf({
      ...Object.fromEntries(Object.entries(wrong).map(([name, [sql]]) => [name, [sql]])),
      good: [step, ofBtc],
    })
    const ended = await compute(yaml)
    expect(ended.code).toBe(2)
    const lines = yaml.split('\n')
    for (const [name, [, said]] of Object.entries(wrong)) {
      const line = lines.findIndex((text) => text.trim() === `${name}:`) + 1
      const own = ended.message
        .split('\n')
        .filter((text) => text.includes(`f.yaml:${line}: `) || text.includes(`feature/${name} `))
      expect(own.join('\n'), name).toMatch(said)
    }
    expect(ended.features.map(({ status }) => status).join(' ')).toMatch(/^failed undecided( failed){9} proved$/)
    expect(await desk.rows(`SELECT DISTINCT metric FROM points WHERE metric LIKE 'feature/%'`)).toEqual([
      { metric: 'feature/good' },
    ])
    const text =
      'features:\n  x: { grid: 2d, sql: SELECT 1 }\n  X: { grid: 24h, sql: SELECT 1, why: w }\n  y: { grid: 24h, sql: SELECT 1, wy: w, why: w }\n'
    const { message } = await compute(text)
    expect(message).toMatch(/f\.yaml:2: features\.x\.grid: expected one of 10m/)
    expect(message).toMatch(/f\.yaml:2: features\.x\.why: expected text, got nothing/)
    expect(message).toMatch(/f\.yaml:3: features\.X: .*small letters/)
    expect(message).toMatch(/f\.yaml:4: features\.y\.wy: .*unknown key `wy`/)
  })
})
