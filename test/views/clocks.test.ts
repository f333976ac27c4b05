import { describe, expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { withViews } from '../helpers/views.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { sample } from '../helpers/tiers.ts'

const point = (t: string, available_at: string, more: Partial<PointRow> = {}): PointRow => ({
  metric: 'm/x',
  asset: 'BTC',
  interval: '24h',
  t,
  available_at,
  v: 1,
  ...more,
})

const { root } = lakeOfFile({
  name: 'clocks',
  commits: [
    {
      at: '2024-04-01T00:00:00.000001Z',
      points: [
        point('2024-03-01', '2024-03-05T00:00:00Z', { basis: 'observed' }),
        point('2024-03-02', '2024-03-03T00:10:00Z', { basis: 'stated' }),
        point('2020-01-01', '2023-06-01T00:00:00Z', { basis: 'provider', available_rule_at: '2020-01-02T00:10:00Z' }),
      ],
    },
    { at: '2024-04-02', points: [point('2024-03-03', '2024-03-04T00:10:00Z')] },
  ],
})

const allOfIt = ['2020-01-01', '2024-03-01', '2024-03-02', '2024-03-03']

/** The dates of the points that the session knows. */
async function known(engine: Engine, prefix = ''): Promise<string[]> {
  const rows = await engine.rows<{ t: string }>(`SELECT t FROM ${prefix}points ORDER BY t`)
  return rows.map((row) => row.t.slice(0, 10))
}

async function plan(engine: Engine, sql: string): Promise<string> {
  const [row] = await engine.rows<{ explain_value: string }>(`EXPLAIN (FORMAT json) ${sql}`)
  return row?.explain_value ?? ''
}

const zones = sample(['UTC', 'America/New_York', 'Asia/Kolkata', 'Pacific/Kiritimati'], 2)
describe.each(zones)('in the zone %s', (zone) => {
  test.each([
    ["'2024-03-03 00:10'", 2],
    ["'2024-03-03 00:09:59.999999'", 1],
    ["'2024-03-03T00:10:00Z'", 2],
    ["'2024-03-03T00:09:59.999999Z'", 1],
    ["'2024-03-02T19:10:00-05:00'", 2],
    ["'2024-03-03 05:40:00+05:30'", 2],
    ["'2024-03-03 05:39:59.999999+0530'", 1],
    ["'2024-03-02 19:10:00 America/New_York'", 2],
    ["'2024-03-03'", 1],
    ["DATE '2024-03-04'", 2],
    ["TIMESTAMP '2024-03-03 00:10:00'", 2],
    ["TIMESTAMP '2024-03-03 00:09:59.999999'", 1],
    ["TIMESTAMP_NS '2024-03-03 00:10:00'", 2],
    ["TIMESTAMPTZ '2024-03-02 19:10:00-05'", 2],
    ["TIMESTAMPTZ '2024-03-02 19:09:59-05'", 1],
    ["'1970-01-01'", 0],
    ["'2099-01-01'", 4],
    ["'infinity'", 4],
    ['NULL', 4],
  ])('TIME 29, TIME 58: as_of = %s', (value, count) =>
    withViews(root, async (engine) => {
      await engine.run(`SET TimeZone = '${zone}'; SET VARIABLE as_of = ${value}`)
      expect(await known(engine)).toHaveLength(count)
      expect(await engine.rows('SELECT coalesce(sum(points), 0)::INTEGER AS n FROM series')).toEqual([{ n: count }])
    }),
  )
})

test.each(["'nonsense'", "'2024-06-01+02'", "''", '5', 'true', "'2024-03-01T12:00:00 Nowhere/Land'"])(
  'as_of = %s is an error, never a silent answer',
  (value) =>
    withViews(root, async (engine) => {
      await engine.run(`SET VARIABLE as_of = ${value}`)
      await expect(known(engine)).rejects.toThrow()
    }),
)

test('TIME 12: late points appear when they were known', () =>
  withViews(root, async (engine) => {
    await engine.run(`SET VARIABLE as_of = '2024-03-03T00:09:00Z'`)
    expect(await known(engine)).toEqual(['2020-01-01'])
    await engine.run(`SET VARIABLE as_of = '2024-03-04'`)
    expect(await known(engine)).toEqual(['2020-01-01', '2024-03-02'])
    await engine.run(`SET VARIABLE as_of = '2024-03-06'`)
    expect(await known(engine)).toEqual(allOfIt)
  }))

test('TIME 59: a backfilled point is known at its arrival, or by its rule if the session asks for it', () =>
  withViews(root, async (engine) => {
    await engine.run(`SET VARIABLE as_of = '2021-01-01'`)
    expect(await known(engine)).toEqual([])
    await engine.run(`SET VARIABLE backfill = 'strict'`)
    expect(await known(engine)).toEqual([])
    await engine.run(`SET VARIABLE backfill = 'rule'`)
    const rows = await engine.rows('SELECT t, available_at, basis FROM points')
    expect(rows).toEqual([
      { t: '2020-01-01T00:00:00.000000Z', available_at: '2020-01-02T00:10:00.000000Z', basis: 'backfilled' },
    ])
    await engine.run(`SET VARIABLE as_of = '2020-01-02 00:09:59.999999'`)
    expect(await known(engine)).toEqual([])
    await engine.run(`SET VARIABLE as_of = NULL`)
    const bases = await engine.rows('SELECT basis FROM points ORDER BY t')
    expect(bases.map((row) => row['basis'])).toEqual(['backfilled', 'observed', 'stated', 'assumed'])
    await engine.run(`SET VARIABLE backfill = 'Rule'`)
    await expect(engine.rows('SELECT available_at FROM points')).rejects.toThrow(
      /backfill is neither 'rule' nor 'strict'/,
    )
  }))

test('TIME 53: observed_as_of answers what the lake held', () =>
  withViews(root, async (engine) => {
    await engine.run(`SET VARIABLE observed_as_of = '2024-04-01'`)
    expect(await known(engine)).toEqual([])
    await engine.run(`SET VARIABLE observed_as_of = '2024-04-01T00:00:00.000001Z'`)
    expect(await known(engine)).toEqual(['2020-01-01', '2024-03-01', '2024-03-02'])
    expect(await engine.rows('SELECT count(*)::INTEGER AS n FROM versions')).toEqual([{ n: 1 }])
    await engine.run(`SET VARIABLE as_of = '2024-03-04'`)
    expect(await known(engine)).toEqual(['2020-01-01', '2024-03-02'])
    await engine.run(`SET VARIABLE observed_as_of = DATE '2024-04-02'`)
    expect(await known(engine)).toEqual(['2020-01-01', '2024-03-02'])
  }))

describe('the plan', () => {
  const scanned = 'SELECT v FROM points'
  const unset = /available_at|observed_at|getvariable|CASE|Filter/i

  test('has no filter while nothing is set', () =>
    withViews(root, async (engine) => {
      expect(await plan(engine, scanned)).not.toMatch(unset)
      expect(await plan(engine, 'SELECT avg(v) FROM components')).not.toMatch(/available_at|getvariable/)
    }))

  test.each([
    ["'2024-03-03 00:10'", 'strict', 'available_at'],
    ["DATE '2024-03-03'", 'strict', 'available_at'],
    ["TIMESTAMPTZ '2024-03-03 00:10:00+00'", 'rule', 't'],
    ["'2024-03-03T02:10:00+02:00'", 'rule', 't'],
  ])('reaches the Parquet scan for %s, backfill %s', (value, backfill, column) =>
    withViews(root, async (engine) => {
      await engine.run(`SET VARIABLE as_of = ${value}; SET VARIABLE backfill = '${backfill}'`)
      await engine.run(`SET VARIABLE observed_as_of = '2024-04-01 12:00'`)
      for (const sql of [
        scanned,
        `SELECT v FROM points WHERE metric = 'm/x' AND "interval" = '24h' AND asset = 'BTC'`,
      ]) {
        const [scan] = JSON.parse(await plan(engine, sql)) as [{ name: string; children: unknown[] }]
        const text = JSON.stringify(scan)
        expect(text).toMatch(new RegExp(`\\b${column}<='2024-03-03 00:[01]0:00\\+00'::TIMESTAMP WITH TIME ZONE`))
        expect(text).toContain("observed_at<='2024-04-01 12:00:00+00'::TIMESTAMP WITH TIME ZONE")
        expect(text).not.toContain('getvariable')
        expect(text.includes('"name":"FILTER"')).toBe(backfill === 'rule')
      }
    }),
  )

  test.each([
    `FROM pit_join('d', 'm/x', '24h')`,
    `FROM pit_long('d', ['m/x'], '24h')`,
    `FROM pit_window('d', 'm/x', '24h', 2)`,
    `FROM resample('m/x', '24h', '1w')`,
  ])('the plan of %s passes both instants to every scan', (sql) =>
    withViews(root, async (engine) => {
      await engine.run(`CREATE TEMP TABLE d AS SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-03-04 00:00:00+00' AS ts`)
      expect(await plan(engine, sql)).not.toMatch(/available_at<='|getvariable/)
      await engine.run(`SET VARIABLE as_of = '2024-03-03 00:10'; SET VARIABLE observed_as_of = '2024-04-01 12:00'`)
      const text = await plan(engine, sql)
      const scans = text.match(/"name": "READ_PARQUET"/g)?.length ?? 0
      expect(scans).toBeGreaterThan(0)
      const filters = [
        "available_at<='2024-03-03 00:10:00+00'::TIMESTAMP WITH TIME ZONE",
        "observed_at<='2024-04-01 12:00:00+00'::TIMESTAMP WITH TIME ZONE",
      ]
      for (const filter of filters) expect(text.split(filter)).toHaveLength(scans + 1)
      expect(text).not.toContain('getvariable')
    }),
  )

  test('prunes the files of other metrics, also through components', () =>
    withViews(root, async (engine) => {
      await engine.run(`SET VARIABLE as_of = '2024-03-03'`)
      for (const view of ['points', 'components']) {
        const whole = await plan(engine, `SELECT t FROM ${view}`)
        expect(whole).not.toContain('File Filters')
        expect(await plan(engine, `SELECT t FROM ${view} WHERE metric = 'm/none' AND t > '2024-01-01'`)).toMatch(
          /EMPTY_RESULT|Scanning Files": "[01]\/2/,
        )
      }
    }))
})
