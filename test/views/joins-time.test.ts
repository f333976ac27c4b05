import { describe, expect, test as base } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import type { Interval } from '../../src/base/time.ts'
import { withJoins } from '../helpers/joins.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { multiset, withViews } from '../helpers/views.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'

/** The worked cases of time that the joins answer, by number. */
const plain = 'indicators/sopr_adjusted_pit'
const long = 'addresses/min_1_count_pit'

function point(asset: string, t: string, known: string, v: number | null, more: Partial<PointRow> = {}): PointRow {
  const full = (text: string) =>
    text.length === 5 ? `2024-${text}T00:00:00Z` : `${text.length === 11 ? '2024-' : ''}${text.replace(' ', 'T')}:00Z`
  return { metric: plain, asset, interval: '24h', t: full(t), available_at: full(known), v, ...more }
}

const month = (interval: Interval) => ({ metric: long, network: 'eth', interval })
const hours = Array.from({ length: 24 }, (_, h) => String(h).padStart(2, '0'))

const points: PointRow[] = [
  ...['BTC', 'NULLS'].flatMap((asset) => [
    point(asset, '03-01', '03-02 00:10', 100),
    point(asset, '03-02', '03-03 00:10', 200),
  ]),
  point('MONTH', '02-01', '03-01', 4, month('1month')),
  point('WEEK', '02-26', '03-04', 5, month('1w')),
  point('WEEK', '2024-12-30 00:00', '2025-01-06 00:00', 6, month('1w')),
  ...['11:40', '11:50', '12:00'].map((at, n) =>
    point('TEN', `03-01 ${at}`, `03-01 12:${10 * n + 10}`, n, { interval: '10m' }),
  ),
  point('CLOCK', '02-29', '03-01 10:15', 29),
  point('CLOCK', '03-01', '03-02 10:15', 1),
  point('COMPUTED', '03-01', '03-02 00:20', 100),
  point('LATE', '03-01', '03-05', 100),
  point('LATE', '03-02', '03-03 00:10', 200),
  point('TIED', '03-02', '03-03 00:10', 200),
  point('TIED', '03-01', '03-03 00:10', 100),
  point('NULLS', '03-03', '03-04 00:10', null),
  point('ODD', '03-01', '03-02', 5e-324),
  point('ODD', '03-02', '03-03', 1.7976931348623157e308),
  point('ODD', '03-03', '03-04', 9007199254740992),
  point('MIX', '02-29', '03-01', 29),
  point('MIX', '03-01', '03-02', 1),
  ...['22:00', '23:00'].map((at, n) =>
    point('MIX', `03-01 ${at}`, n ? '03-02' : '03-01 23:00', 22 + n, { interval: '1h' }),
  ),
  ...hours.flatMap((h) => [
    point('PARTS', `03-01 ${h}:00`, h === '07' ? '03-09' : `03-02 00:${h}`, 1, { interval: '1h' }),
    ...(h === '05' ? [] : [point('PARTS', `03-02 ${h}:00`, `03-03 00:${h}`, 1, { interval: '1h' })]),
  ]),
  ...['03-09', '03-10', '03-11', '11-02', '11-03', '11-04'].map((day, n) =>
    point('DST', day, `2024-${day} 23:59`.slice(5), n),
  ),
  { ...point('BACK', '2020-01-01 00:00', '2023-06-01 00:00', 7), available_rule_at: '2020-01-02T00:30:00Z' },
  ...['native', 'usd'].map((currency, n) => ({
    ...point('CUR', '03-01', '03-02 00:10', n + 1),
    metric: 'supply/current_pit',
    currency,
  })),
]
// Daily points end a day after their t: those of the DST days become known then.
const stored = points.map((one) =>
  one.asset === 'DST' ? { ...one, available_at: new Date(Date.parse(one.t) + 86_400_000).toISOString() } : one,
)

const { root } = lakeOfFile({
  name: 'time',
  commits: [
    { at: '2030-01-01T00:00:00Z', points: stored },
    { at: '2030-02-01T00:00:00Z', points: [point('SEEN', '03-01', '03-02 00:10', 1)] },
  ],
})

/** The values at these instants of an asset. */
async function at(
  engine: Engine,
  asset: string,
  instants: readonly string[],
  { metric = plain, interval = '24h', options = '', column = 'v' } = {},
): Promise<unknown[]> {
  const rows = instants.map(
    (ts, id) => `(${id}, '${asset}', TIMESTAMP '${ts.length < 16 || /^\d\d-/.test(ts) ? '2024-' : ''}${ts}')`,
  )
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE asked AS SELECT * FROM (VALUES ${rows.join(', ')}) AS asked (id, asset, ts)`,
  )
  const found = await engine.rows(
    `SELECT ${column} AS x FROM pit_join('asked', '${metric}', '${interval}'${options}) ORDER BY id`,
  )
  return found.map(({ x }) => x)
}

/** A test that may have the lake open as `engine`. */
const test = base.extend<{ engine: Engine }>({
  // oxlint-disable-next-line no-empty-pattern -- what a fixture needs of others is read from here
  engine: async ({}, use) => await withViews(root, use),
})

describe('cases', () => {
  test('TIME 4, TIME 5, TIME 6: months and weeks end where the calendar says', async ({ engine }) => {
    const monthly = { metric: long, interval: '1month' }
    expect(await at(engine, 'MONTH', ['02-29 23:59:59', '03-01 00:00'], monthly)).toEqual([null, 4])
    expect(await at(engine, 'MONTH', ['03-01 00:00'], { ...monthly, column: 'age' })).toEqual(['00:00:00'])
    const weekly = { metric: long, interval: '1w' }
    expect(await at(engine, 'WEEK', ['03-03 23:59:59', '03-04 00:00'], weekly)).toEqual([null, 5])
    expect(await at(engine, 'WEEK', ['2025-01-05 23:59:59', '2025-01-06 00:00:00'], weekly)).toEqual([5, 6])
  })

  test('TIME 7, TIME 8, TIME 9: lags longer than the interval, clock rules, computed_at', async ({ engine }) => {
    expect(await at(engine, 'TEN', ['03-01 12:25'], { interval: '10m', column: 't' })).toEqual([
      '2024-03-01T11:50:00.000000Z',
    ])
    expect(await at(engine, 'CLOCK', ['03-02 10:14:59', '03-02 10:15'])).toEqual([29, 1])
    expect(await at(engine, 'COMPUTED', ['03-02 00:15', '03-02 00:20'])).toEqual([null, 100])
  })

  test('TIME 11, TIME 12, TIME 13: late points and ties', async ({ engine }) => {
    expect(await at(engine, 'LATE', ['03-05 01:00'])).toEqual([200])
    await engine.run(
      `CREATE TEMP TABLE late AS SELECT 'LATE' AS asset, unnest(['2024-03-03 00:09', '2024-03-04', '2024-03-06']) AS ts`,
    )
    const known = await engine.rows(
      `SELECT ts, list(v ORDER BY t) FILTER (v IS NOT NULL) AS all FROM pit_window('late', '${plain}', '24h', 9) GROUP BY ts ORDER BY ts`,
    )
    expect(known.map((row) => row['all'])).toEqual([null, [200], [100, 200]])
    for (const threads of [1, 2, 4]) {
      await engine.run(`SET threads = ${threads}`)
      for (const n of [1, 64, 65])
        expect(new Set(await at(engine, 'TIED', Array(n).fill('03-03 00:10')))).toEqual(new Set([200]))
    }
  })

  test('TIME 18, TIME 19, TIME 20, TIME 21, TIME 22: every row comes back once; keys match whole', async ({
    engine,
  }) => {
    await engine.run(
      `CREATE TEMP TABLE odd AS SELECT * FROM (VALUES ('BTC', TIMESTAMPTZ '2024-03-02 00:20:00Z'), ('BTC', '2024-03-02 00:20:00Z'), (NULL, '2024-03-02 00:20:00Z'), ('BTC', NULL), ('nobody', '2024-03-02 00:20:00Z'), ('BTC_', '2024-03-02 00:20:00Z')) AS odd (asset, ts)`,
    )
    const rows = await engine.rows(
      `SELECT asset, v FROM pit_join('odd', '${plain}', '24h') ORDER BY v NULLS LAST, asset NULLS LAST`,
    )
    expect(rows.map((row) => [row['asset'], row['v']])).toEqual([
      ['BTC', 100],
      ['BTC', 100],
      ['BTC', null],
      ['BTC_', null],
      ['nobody', null],
      [null, null],
    ])
    const supply = { metric: 'supply/current_pit' }
    expect(await at(engine, 'CUR', ['03-04 00:00'], supply)).toEqual([1])
    expect(await at(engine, 'CUR', ['03-04 00:00'], { ...supply, options: `, currency := 'usd'` })).toEqual([2])
    expect(await at(engine, 'CUR', ['03-04 00:00'], { metric: 'price_usd' })).toEqual([2])
  })

  test('TIME 23, TIME 24: a null is the latest knowledge; doubles keep their bits', async ({ engine }) => {
    expect(await at(engine, 'NULLS', ['03-04 01:00'])).toEqual([null])
    expect(await at(engine, 'NULLS', ['03-04 01:00'], { column: 't' })).toEqual(['2024-03-03T00:00:00.000000Z'])
    expect(await at(engine, 'NULLS', ['03-04 01:00'], { options: ', skip_nulls := true' })).toEqual([200])
    expect(await at(engine, 'ODD', ['03-02 00:00', '03-03 00:00', '03-04 00:00'])).toEqual([
      5e-324, 1.7976931348623157e308, 9007199254740992,
    ])
  })

  test('TIME 28, TIME 30: four session zones, and days of 86,400 s when clocks change', async ({ engine }) => {
    const asked = ['03-10 23:59', '03-11 00:00', '03-12 00:00', '11-03 23:59', '11-04 00:00', '11-05 00:00']
    for (const zone of ['UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Kiritimati']) {
      await engine.run(`SET TimeZone = '${zone}'`)
      expect(await at(engine, 'DST', asked)).toEqual([0, 1, 2, 3, 4, 5])
      const [grid] = await engine.rows(
        `SELECT count(*) AS n, epoch(max(ts)) - epoch(min(ts)) AS s FROM calendar('2024-03-09', '2024-03-12', '1 day')`,
      )
      expect(grid).toEqual({ n: 3n, s: 172_800 })
    }
  })

  test('TIME 29, TIME 58: as_of of any type, far away too', async ({ engine }) => {
    const texts = [
      `'2024-03-03'`,
      `DATE '2024-03-03'`,
      `TIMESTAMP '2024-03-03 00:00'`,
      `TIMESTAMPTZ '2024-03-02 19:00:00-05'`,
      `'2024-03-03T05:30:00+05:30'`,
    ]
    for (const text of texts) {
      await engine.run(`SET TimeZone = 'Asia/Kolkata'; SET VARIABLE as_of = ${text}`)
      expect(await at(engine, 'BTC', ['03-09 00:00'])).toEqual([100])
    }
    await engine.run(`SET VARIABLE as_of = '2099-01-01'`)
    expect(await at(engine, 'BTC', ['03-09 00:00'])).toEqual([200])
    await engine.run(`SET VARIABLE as_of = '1970-01-01'`)
    expect(await at(engine, 'BTC', ['03-09 00:00'])).toEqual([null])
  })

  test('TIME 53: observed_as_of takes back what was not held yet', async ({ engine }) => {
    expect(await at(engine, 'SEEN', ['03-09 00:00'])).toEqual([1])
    await engine.run(`SET VARIABLE observed_as_of = '2030-01-31'`)
    expect(await at(engine, 'SEEN', ['03-09 00:00'])).toEqual([null])
    expect(await at(engine, 'BTC', ['03-09 00:00'])).toEqual([200])
  })
})

test('TIME 52: as_of answers like a lake that was cut', async () => {
  const held = stored.map((one) => ({ ...one, observed_at: '2030-01-01T00:00:00Z' }))
  for (const cut of ['2024-03-03T00:10:00Z', '2024-03-05T00:00:00Z']) {
    const whole = await withJoins(held, async (engine) => await everything(engine, cut))
    const before = held.filter((one) => Date.parse(one.available_at) <= Date.parse(cut))
    expect(whole).toEqual(await withJoins(before, async (engine) => await everything(engine)))
  }
})

test('TIME 57: points that were appended newest first give the same answers', async () => {
  const held = stored.map((one) => ({ ...one, observed_at: '2030-01-01T00:00:00Z' }))
  const newest = held.toSorted((a, b) => Date.parse(b.t) - Date.parse(a.t))
  const oldest = await withJoins(newest.toReversed(), async (engine) => await everything(engine))
  expect(await withJoins(newest, async (engine) => await everything(engine))).toEqual(oldest)
})

async function everything(engine: Engine, cut?: string): Promise<string[][]> {
  if (cut !== undefined) await engine.run(`SET VARIABLE as_of = '${cut}'`)
  const assets = [...new Set(stored.map(({ asset }) => asset))].map((asset) => `'${asset}'`).join(', ')
  await engine.run(
    `CREATE TEMP TABLE d AS SELECT asset, ts FROM (SELECT unnest([${assets}]) AS asset), calendar('2024-02-28', '2024-03-12', '7 hours')`,
  )
  const asked = [
    `pit_join('d', '${plain}', '24h', max_age := '3 days')`,
    `pit_long('d', ['${plain}', 'price_usd', 'supply/current_pit'], '24h', skip_nulls := true)`,
    `pit_window('d', '${plain}', '1h', 5)`,
    `resample('${plain}', '1h', '24h', 'sum')`,
    `resample('${plain}', '1h', '24h', 'sum', skip_nulls := true, min_parts := 5)`,
  ]
  const answers: string[][] = []
  for (const one of asked) answers.push(multiset(await engine.rows(`FROM ${one}`)))
  return answers
}

for (const weekday of ['01', '02', '03', '04', '05', '06', '07'])
  test(`a first week that begins on 2024-01-${weekday} is answered from the hour at which it is known`, async () => {
    const known = Date.parse(`2024-01-${weekday}T01:00:00Z`) + 7 * 86_400_000
    const week = point('A', `01-${weekday}`, '01-01', 1, {
      interval: '1w',
      metric: long,
      network: 'eth',
      available_at: new Date(known).toISOString(),
    })
    await withJoins([{ ...week, observed_at: '2030-01-01T00:00:00Z' }], async (engine) => {
      await engine.run(`CREATE TEMP TABLE hours AS SELECT 'A' AS asset, ts
        FROM generate_series(TIMESTAMPTZ '2024-01-01 00:00:00Z', TIMESTAMPTZ '2024-01-31 00:00:00Z', INTERVAL 1 HOUR) AS s (ts)`)
      for (const answer of [`pit_join('hours', '${long}', '1w')`, `pit_long('hours', ['${long}'], '1w')`]) {
        const wrong = await engine.rows(
          `SELECT ts, v FROM ${answer} WHERE (v IS NOT NULL) <> (ts >= make_timestamptz(${known} * 1000)) ORDER BY ts`,
        )
        expect(wrong, answer).toEqual([])
      }
    })
  })
