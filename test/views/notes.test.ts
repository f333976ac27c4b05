// @module-tag full
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Lake, openLake, type QueryOptions } from '../../src/index.ts'
import { type Ended, pitlake } from '../helpers/command.ts'
import { nested, plain, point, supply, threeDays } from '../helpers/lakes/three-days.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { temporaryFolder } from '../helpers/folders.ts'

let root = ''
let lake: Lake
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  const hours = (day: number): PointRow[] => [
    point(plain, day, { v: day }),
    point(plain, day, { v: day * 10, interval: '1h' }),
  ]
  ;({ root, lake, remove } = await threeDays(hours))
})
afterAll(async () => await remove())

const one = `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-03-04T00:10:00Z' AS ts)`
/** Beside what `test/golden/doors` has every door asked. */
const queries: readonly (readonly [sql: string, note: string | undefined])[] = [
  [`SELECT max(v) AS v FROM points WHERE asset = 'btc'`, `'btc' is no asset; did you mean 'BTC'?`],
  [
    `${one} SELECT v FROM pit_join('d', '${nested}', '24h', component := '/a/c')`,
    `'${nested}' has no part '/a/c'; did you mean '/a/b'?`,
  ],
  [
    `WITH d AS (SELECT TIMESTAMPTZ '2024-01-02' AS ts) SELECT * FROM pit_universe('d')`,
    'the registry knows nothing before its first snapshot, 2024-01-21',
  ],
  // What is found, or misses only what most points lack, is no reason to wonder.
  [`FROM points WHERE metric = '${supply}' AND asset = 'BTC'`, undefined],
  [`SELECT 'btc' AS label, count(*) AS n FROM points`, undefined],
  [`${one} SELECT v FROM pit_join('d', '${nested}#/a/b', '24h')`, undefined],
]

test.each(queries)('%s', async (sql, note) => {
  const table = await lake.sql(sql)
  if (note === undefined) expect([lake.notes, table.numRows > 0]).toEqual([[], true])
  else expect(lake.notes.join('\n')).toContain(note)
})

test('notes belong to the last answer, and as_of stays what it was', async () => {
  const late = await openLake(root, { asOf: '2024-03-02T12:00:00Z' })
  try {
    await late.sql(`SELECT max(v) AS v FROM points WHERE asset = 'btc'`)
    expect(late.notes).toHaveLength(1)
    const [row] = (await late.sql(`SELECT count(*) AS n FROM points WHERE metric = '${supply}'`)).toArray()
    expect([row?.n, late.notes]).toEqual([2n, []])
  } finally {
    await late.close()
  }
})

const mistakes: readonly (readonly [sql: string, words: RegExp, parameters: readonly Date[]])[] = [
  [`FROM resample('supply/curent_pit', '24h', '1w')`, /did you mean `supply\/current_pit`/, []],
  [
    `${one} FROM pit_join('d', 'nothing/like_it', '24h')`,
    /unknown metric nothing\/like_it.*endpoints lists them all/,
    [],
  ],
  [`FROM calendar('2024-01-01', '2024-01-02', '1 hou')`, /expected a time such as.*got '.*hou'/, []],
  [`${one} FROM pit_join('d', '${supply}', '24h', max_age := '1 hou')`, /expected a time such as.*got '.*hou'/, []],
  [
    `WITH d AS (SELECT 'BTC' AS asset, 1709510400 AS ts) FROM pit_join('d', '${supply}', '24h')`,
    /expected an instant.*got a number \(INTEGER\).*to_timestamp/s,
    [],
  ],
  ['SELECT $1 AS a', /parameter \$1: expected .*got an invalid Date/, [new Date('never')]],
]

test.each(mistakes)('the note %s is shown in words', async (sql, words, parameters) => {
  await expect(lake.sql(sql, parameters)).rejects.toThrow(words)
})

test('a Date is a parameter like others', async () => {
  const at = new Date('2024-03-02T00:00:00.123Z')
  const own = await lake.sql('SELECT epoch_ms($1) AS a, typeof($1) AS b', [at])
  expect([own.get(0)?.a, own.get(0)?.b]).toEqual([BigInt(at.getTime()), 'TIMESTAMP WITH TIME ZONE'])
  const named = await lake.sql('SELECT count(*) AS n FROM points WHERE available_at < $at', { at })
  expect(named.get(0)?.n).toBe(0n)
})

const noted = async (...argv: readonly string[]): Promise<Ended> => await pitlake(root, [...argv, '--data', root])

const outs = ['n.csv', 'n.parquet']
test.each(outs)('the command line says it on stderr, whatever the format: %s', async (name) => {
  using kept = temporaryFolder('noted')
  const folder = kept.path
  const out = join(folder, name)
  const sql = await noted('sql', `SELECT max(v) AS v FROM points WHERE asset = 'btc'`, '--out', out)
  expect(sql).toMatchObject({ code: 0, notes: `note: 'btc' is no asset; did you mean 'BTC'?\n` })
  const good = await noted('sql', `SELECT max(v) AS v FROM points WHERE asset = 'BTC'`, '--out', out)
  expect(good).toMatchObject({ code: 0, notes: '' })
  writeFileSync(join(folder, 'd.csv'), 'asset,ts\nBTC,2024-03-04T00:10:00Z\nbtc,2024-03-04T00:10:00Z\n')
  const panel = await noted('panel', '--decisions', join(folder, 'd.csv'), '--metrics', supply, '--out', out)
  const why = `note: nothing is stored of '${supply}' for asset 'btc'; did you mean 'BTC'?\n`
  expect(panel).toMatchObject({ code: 0, notes: why })
  expect(readFileSync(out).length).toBeGreaterThan(0)
})

test('a wrong value of a variable in capitals is refused at every interface', async () => {
  using folder = temporaryFolder('capitals')
  const file = join(folder.path, 'one.sql')
  const out = join(folder.path, 'one.parquet')
  writeFileSync(file, 'SELECT 1 AS one')
  const wrong = { code: 2, message: expect.stringContaining('--set backfill: expected rule, strict, got "ruel"') }
  expect(await noted('sql', 'SELECT 1', '--set', 'BACKFILL=ruel')).toMatchObject(wrong)
  expect(await noted('stamp', file, '--out', out, '--set', 'Backfill=ruel')).toMatchObject(wrong)
  const soon = { code: 2, message: expect.stringContaining('expected an instant such as') }
  expect(await noted('sql', 'SELECT 1', '--set', 'AS_OF=soon')).toMatchObject(soon)
  await expect(openLake(root, { set: { BACKFILL: 'ruel' } })).rejects.toThrow('expected rule, strict, got "ruel"')
})

test('an unknown variable is refused at every interface', async () => {
  using folder = temporaryFolder('variables')
  const file = join(folder.path, 'k.sql')
  const out = join(folder.path, 'k.parquet')
  writeFileSync(file, `SELECT getvariable('K') AS k`)
  const slip = { code: 2, message: expect.stringContaining('did you mean as_of?') }
  const grid = ['--calendar', '2024-03-01,2024-03-02,1d', '--assets', 'BTC', '--metrics', supply]
  expect(await noted('panel', ...grid, '--set', 'as_off=2024-03-01')).toMatchObject(slip)
  expect(await noted('sql', 'SELECT 1', '--set', 'as_off=2024-03-01')).toMatchObject(slip)
  expect(await noted('stamp', file, '--out', out, '--set', 'as_off=2024-03-01')).toMatchObject(slip)
  expect(await noted('stamp', file, '--out', out, '--set', 'other=1')).toMatchObject({ code: 2 })
  expect(await noted('stamp', file, '--out', out, '--set', 'k=1')).toMatchObject({ code: 0 })
  expect(await noted('replay', out)).toMatchObject({ code: 0 })
  await expect(openLake(root, { set: { as_off: '2024-03-01' } })).rejects.toThrow(/did you mean as_of/)
  await withLake({ set: { lucky: 5 } }, async (own) => {
    expect((await own.sql(`SELECT getvariable('lucky') AS k`)).get(0)?.k).toBe(5)
    expect((await own.sql('SELECT 1 AS a')).get(0)?.a).toBe(1)
  })
  await withLake({ set: { lucky: 5 } }, async (own) => {
    await expect(own.points({ metrics: supply })).rejects.toThrow(/--set lucky/)
  })
})

async function withLake(options: QueryOptions, work: (own: Lake) => Promise<void>): Promise<void> {
  const own = await openLake(root, options)
  try {
    await work(own)
  } finally {
    await own.close()
  }
}
