// @module-tag slow
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { lateLeaks, leaks } from '../helpers/leaks.ts'
import { noiseAndRisingSupply } from '../helpers/lakes/noise-and-rising-supply.ts'
import { need } from '../helpers/needs.ts'
import { runReproduction, writeReproduction } from '../helpers/reproducing.ts'
import { sample } from '../helpers/tiers.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateDaysAndProducts, lateMetric } from '../helpers/lakes/late-days-and-products.ts'

const small = lakeOfFile(noiseAndRisingSupply)
const late = lakeOfFile(lateDaysAndProducts)
let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'pitlake-reproduce-'))
  return () => rmSync(home, { recursive: true, force: true })
})

const shown = [0, 'REPRODUCED'] as const

/** The text of all files of a folder but its data. */
const textsIn = (folder: string): string =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => readFileSync(join(folder, name), 'utf8'))
    .join('\n')

describe('the folder of a planted leak', () => {
  test.for(sample(leaks, 3, Math.ceil(leaks.length / 8)))(
    'shows %s in two DuckDBs, with few rows',
    async ([, sql], context) => {
      const folder = join(home, 'leak')
      const { rows, rowsBefore } = await writeReproduction(small.root, sql, folder)
      expect(rows).toBeLessThan(rowsBefore / 2)
      expect(textsIn(folder)).not.toContain(small.root)
      expect(runReproduction(need(context, 'peers'), folder)).toEqual(shown)
      expect(runReproduction(need(context, 'python-newest'), folder)).toEqual(shown)
    },
  )

  test.for(sample(lateLeaks, 2, Math.ceil(lateLeaks.length / 8)))(
    'shows %s in two DuckDBs',
    async ([, sql], context) => {
      const folder = join(home, 'leak')
      await writeReproduction(late.root, sql, folder, { cutoffs: 14 })
      expect(runReproduction(need(context, 'peers'), folder)).toEqual(shown)
      expect(runReproduction(need(context, 'python-newest'), folder)).toEqual(shown)
    },
  )
})

const grid = `WITH d AS (SELECT ts, 'BTC' AS asset FROM calendar('2024-02-01', '2024-03-01', '1 day'))`

test.for([
  [
    'later decisions of its calendar',
    `SELECT ts, count(*) OVER () AS n FROM calendar('2024-02-01', '2024-03-01', '1 day')`,
  ],
  [
    'later decisions of a series',
    `SELECT ts, count(*) OVER () AS n FROM generate_series(TIMESTAMPTZ '2024-02-01', TIMESTAMPTZ '2024-03-01', INTERVAL 1 DAY) s(ts)`,
  ],
  [
    'a table that a statement before it makes',
    `SET VARIABLE days = 1; CREATE TEMP TABLE later AS SELECT t, v FROM points WHERE asset = 'BTC' AND metric = '${lateMetric}';
     ${grid} SELECT d.ts, later.v FROM d JOIN later ON later.t = d.ts - to_days(getvariable('days')) -- the end`,
  ],
  ['a price', `${grid} SELECT d.ts, p.v FROM d JOIN price_usd p ON p.asset = d.asset AND p.t = d.ts`],
  ['a window of a join', `${grid} SELECT ts, lead(v) OVER (ORDER BY ts) AS v FROM pit_join('d', 'price_usd', '24h')`],
  ['several rows of a join', `${grid} SELECT ts, sum(v) OVER () AS v FROM pit_window('d', '${lateMetric}', '24h', 3)`],
  [
    'the registry of today',
    `SELECT c.ts, count(*) AS n FROM calendar('2024-02-01', '2024-08-01', '3 days') c, universe u GROUP BY c.ts`,
  ],
] as const)('the folder shows a leak of %s', async ([, sql], context) => {
  const folder = join(home, 'leak')
  await writeReproduction(small.root, sql, folder, { cutoffs: 12 })
  expect(runReproduction(need(context, 'peers'), folder)).toEqual(shown)
})

test('user files, labels and variables go into the folder', async (context) => {
  const days = Array.from({ length: 28 }, (_, n) => `2024-02-${String(n + 1).padStart(2, '0')}`)
  const [decided, signal] = ['d.csv', 's.csv'].map((name) => join(home, name)) as [string, string]
  writeFileSync(decided, `asset,ts\n${days.map((day) => `BTC,${day}T07:00:00Z`).join('\n')}\n`)
  writeFileSync(
    signal,
    `day,available_at,score\n${days.map((day, n) => `${day},${day}T23:00:00Z,${n * n}`).join('\n')}\n`,
  )
  const sql = `SELECT d.ts, s.score * getvariable('k') AS score, s.score + 1 AS y FROM d JOIN s ON s.day = CAST(d.ts AS DATE)`
  const files = [
    ['d', decided],
    ['s', signal],
  ] as const
  const folder = join(home, 'leak')
  const set = { backfill: 'rule' }
  const { rows } = await writeReproduction(small.root, sql.replace("getvariable('k')", '2'), folder, {
    files,
    set,
    labels: ['y'],
  })
  expect(rows).toBeLessThanOrEqual(4)
  expect(readFileSync(join(folder, 'with.sql'), 'utf8')).toContain(`SET VARIABLE backfill = 'rule'`)
  expect(runReproduction(need(context, 'peers'), folder)).toEqual(shown)
})

describe('lookahead --reproduce', () => {
  const leak = `${grid} SELECT d.ts, p.v FROM d JOIN points p ON p.asset = d.asset AND p.t = d.ts AND p.metric = '${lateMetric}'`
  const honest = `${grid} SELECT ts, asset, v FROM pit_join('d', '${lateMetric}', '24h')`

  async function run(...words: readonly string[]): ReturnType<typeof pitlake> {
    return await pitlake(home, ['lookahead', ...words, '--data', small.root, '--cutoffs', '4', '--tries', '20'])
  }

  test('a leak leaves a folder and still ends with 4; a folder with files is refused', async (context) => {
    writeFileSync(join(home, 'q.sql'), leak)
    const first = await run('q.sql', '--reproduce', 'found')
    expect([first.code, first.notes]).toEqual([
      4,
      expect.stringMatching(/^wrote found: \d rows? of \d+ shows? the leak; python found\/reproduce\.py\n$/),
    ])
    const again = await run('q.sql', '--reproduce', 'found')
    expect([again.code, again.message]).toEqual([
      2,
      expect.stringMatching(/^--reproduce: expected a new or empty folder, got/),
    ])
    const python = need(context, 'peers')
    expect(runReproduction(python, join(home, 'found'))).toEqual(shown)
    const expected = join(home, 'found/expected.json')
    writeFileSync(expected, readFileSync(expected, 'utf8').replaceAll('"1', '"7').replaceAll('null', '"8"'))
    expect(runReproduction(python, join(home, 'found'))).toEqual([1, 'NOT REPRODUCED: the expected rows do not differ'])
  })

  test('a clean query leaves no folder', async () => {
    writeFileSync(join(home, 'q.sql'), honest)
    const { code, notes } = await run('q.sql', '--reproduce', 'found')
    expect([code, notes, readdirSync(home)]).toEqual([0, 'note: no leak, so nothing is written to found\n', ['q.sql']])
  })

  test('over several files each leak has its own folder, also one of an earlier run', async () => {
    writeFileSync(join(home, 'a.sql'), leak)
    writeFileSync(join(home, 'b.sql'), honest)
    await run('a.sql', 'b.sql', '--cache', 'c.json')
    const { code } = await run('a.sql', 'b.sql', '--cache', 'c.json', '--reproduce', 'found')
    expect([code, readdirSync(join(home, 'found'))]).toEqual([4, ['a.sql']])
  })
})
