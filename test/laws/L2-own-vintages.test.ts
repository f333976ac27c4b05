// @module-tag full
import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'

const head = 'asset,t,value,told\n'
const given = ['--as', 'rate', '--interval', '1month', '--vintage', 'told'] as const

test('TIME 62, TIME 63, TIME 64: a table of vintages is known day by day; one that comes later goes where it belongs', async () => {
  await withDesk(async ({ put, take, rows, run }) => {
    const valuesAt = async (at: string, more = ''): Promise<unknown[]> =>
      (await rows('SELECT v FROM points ORDER BY t', `SET VARIABLE as_of = '${at}'${more}`)).map(
        (row) => Object.values(row)[0],
      )
    const file = put('rate.csv', `${head}US,2024-01-01,3.8,2024-02-05\nUS,2024-01-01,3.7,2024-05-10\n`)
    const one = await take([file, ...given])
    expect([one.code, one.message, one.told]).toMatchObject([
      0,
      '',
      { rows: 2, points_added: 1, vintages_added: 1, violations: 0 },
    ])
    expect(await valuesAt('2024-02-05T12:00:00Z')).toEqual([])
    expect(await valuesAt('2024-02-06T00:00:00Z')).toEqual([3.8])
    expect(await valuesAt('2024-05-10T23:59:59Z')).toEqual([3.8])
    expect(await valuesAt('2024-05-11T00:00:00Z')).toEqual([3.7])
    expect((await take([file, ...given], '2026-06-02T12:00:00Z')).told).toMatchObject({
      points_added: 0,
      vintages_added: 0,
    })
    put(
      'rate.csv',
      `${head}US,2024-01-01,3.75,2024-03-01\nUS,2024-01-01,3.8,2024-02-20\nUS,2024-01-01,3.7,2024-05-10\n`,
    )
    const later = await take([file, ...given], '2026-06-03T12:00:00Z')
    expect([later.code, later.told]).toMatchObject([0, { points_added: 0, vintages_added: 1, violations: 0 }])
    expect(await valuesAt('2024-03-02T00:00:00Z')).toEqual([3.75])
    expect(await valuesAt('2024-03-02T00:00:00Z', `; SET VARIABLE observed_as_of = '2026-06-02T18:00:00Z'`)).toEqual([
      3.8,
    ])
    const all = await rows('SELECT ordinal, v, previous FROM vintages ORDER BY ordinal')
    expect(all.map((row) => Object.values(row).map(Number))).toEqual([
      [1, 3.8, 0],
      [2, 3.75, 3.8],
      [3, 3.7, 3.75],
    ])
    put('rate.csv', `${head}US,2024-01-01,3.9,2024-02-05\n`)
    const rewritten = await take([file, ...given], '2026-06-04T12:00:00Z')
    expect([rewritten.code, rewritten.told]).toMatchObject([4, { points_added: 0, vintages_added: 0, violations: 1 }])
    expect((await run(['doctor'], '2026-06-05T12:00:00Z')).code).toBe(0)
  })
})

test('values without dates become vintages from their import on', async () => {
  await withDesk(async ({ put, take, rows }) => {
    const file = put('rate.csv', 'asset,t,value\nUS,2024-01-01,3.8\nUS,2024-02-01,3.9\n')
    const said = ['--as', 'rate', '--interval', '1month', '--revisable'] as const
    expect((await take([file, ...said])).told).toMatchObject({ points_added: 2, vintages_added: 0 })
    put('rate.csv', 'asset,t,value\nUS,2024-01-01,3.7\nUS,2024-02-01,3.9\n')
    const again = await take([file, ...said], '2026-06-02T12:00:00Z')
    expect([again.code, again.told]).toMatchObject([0, { points_added: 0, vintages_added: 1, violations: 0 }])
    const told = `SELECT v || ' ' || basis || ' ' || strftime(available_at, '%m-%d') AS x FROM vintages ORDER BY t, ordinal`
    const all = (await rows(told)).map((row) => Object.values(row)[0])
    expect(all).toEqual(['3.8 observed 06-01', '3.7 observed 06-02', '3.9 observed 06-01'])
    expect(await rows('FROM points', `SET VARIABLE backfill = 'rule'; SET VARIABLE as_of = '2024-03-05'`)).toHaveLength(
      2,
    )
  })
})

test('TIME 65: a triangle with a column a vintage date, and exports of a day each, come as the vintages that they are', async () => {
  await withDesk(async ({ put, take, rows, run }) => {
    const told = (metric: string): string =>
      `SELECT strftime(t, '%m') || ' ' || ordinal || ' ' || v || ' ' || strftime(available_at, '%Y-%m-%d') AS x
       FROM vintages WHERE metric = '${metric}' ORDER BY t, ordinal`
    const said = async (metric: string): Promise<unknown[]> =>
      (await rows(told(metric))).map((row) => Object.values(row)[0])
    const file = put('triangle.csv', 't,2024-02-05,2024-03-05,2024-04-05\n2024-01-01,3.8,3.8,3.7\n2024-02-01,,3.9,4\n')
    const long = `SELECT 'US' AS asset, * FROM (UNPIVOT (FROM read_csv('${file}', all_varchar = true)) ON COLUMNS(* EXCLUDE (t)) INTO NAME told VALUE value)`
    const triangle = await take([long, '--as', 'wide', '--interval', '1month', '--vintage', 'told'])
    expect([triangle.code, triangle.message]).toEqual([0, ''])
    const vintages = ['01 1 3.8 2024-02-06', '01 2 3.7 2024-04-06', '02 1 3.9 2024-03-06', '02 2 4.0 2024-04-06']
    expect(await said('own/wide')).toEqual(vintages)
    // As it is, also with the days as the archives of the Fed name them.
    const named = put('named.csv', 't,R_20240205,R_20240305,R_20240405\n2024-01-01,3.8,3.8,3.7\n2024-02-01,,3.9,4\n')
    for (const [name, own] of [
      ['plain', file],
      ['named', named],
    ] as const) {
      const argv = [own, '--as', name, '--asset', '=US', '--interval', '1month']
      expect(await take(argv)).toMatchObject({
        message: '',
        told: { points_added: 2, vintages_added: 2, version: expect.any(Number) },
      })
      expect(await said(`own/${name}`)).toEqual(vintages)
      const again = await take(argv, '2026-06-02T12:00:00Z')
      expect(again.told).toMatchObject({ points_added: 0, vintages_added: 0, violations: 0 })
    }
    const verified = JSON.parse((await run(['verify', '--paths', 'own/*', '--json'], '2026-06-02T13:00:00Z')).out) as {
      own: { files: { state: string }[] }
    }
    expect(verified.own.files.map(({ state }) => state)).toEqual(['held', 'held', 'held'])
    expect((await run(['import', '--guess', file])).out).toMatch(
      / t: t\n {4}value: value\n {4}vintage: vintage\n[^]*# are columns that are days its vintages/,
    )
    // No rule dates them: there is none to be contradicted.
    expect(JSON.parse((await run(['audit', 'availability', '--json'])).out)).toMatchObject({ rows: [] })
    put('named.csv', 't,R_20240205,R_20240305\n2024-01-01,3.8,3.8\n2024-02-01,,x\n')
    const wrong = await take([named, '--as', 'named'], '2026-06-03T12:00:00Z')
    expect(wrong.message).toMatch(/named\.csv: row 2: value: expected a finite number, got "x"/)
    const day = (name: string, v: number): string => put(name, `asset,t,value\nUS,2024-01-01,3.8\nUS,2024-02-01,${v}\n`)
    const exports = [day('rate-2024-03-03.csv', 3.9), day('rate-2024-04-03.csv', 4.1)]
    const daily = await take([
      ...exports,
      '--as',
      'daily',
      '--interval',
      '1month',
      '--available',
      'export',
      '--revisable',
    ])
    expect([daily.code, daily.message]).toEqual([0, ''])
    expect(await said('own/daily')).toEqual(['01 1 3.8 2024-03-04', '02 1 3.9 2024-03-04', '02 2 4.1 2024-04-04'])
  })
})
