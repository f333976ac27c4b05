// @module-tag full
// @module-tag slow
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { openWorlds } from '../../src/trust/lookahead/world.ts'
import { type LookaheadProof, proveNoLookahead } from '../../src/trust/lookahead/lookahead.ts'
import { lateFragments, lateLeaks } from '../helpers/leaks.ts'
import { sample } from '../helpers/tiers.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'
import { goldenQueries } from '../helpers/golden-queries.ts'

const lake = lakeOfFile(lateDaysAndProducts)

async function prove(sql: string, more: Partial<Parameters<typeof proveNoLookahead>[1]> = {}): Promise<LookaheadProof> {
  return await proveNoLookahead(
    async (threads) => await openWorlds(lake.root, { threads }),
    { sql, ts: 'ts', labels: [], cutoffs: 14, tolerance: 0, ...more },
    { folder: lake.root, sleep: setTimeout },
  )
}

const grid = `(SELECT ts, asset FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY), (VALUES ('BTC'), ('ETH')) a(asset))`
const onGrid = `WITH d AS (FROM ${grid})`
/** A third of it, where what is asked costs much and more days would say no more. */
const onFew = onGrid.replace('2024-10-01', '2024-04-21')
const daily = lateFragments.daily

const clean = goldenQueries('lookahead/clean', lateFragments).map(
  ({ what, queries: [sql = ''] }) => [what, sql] as const,
)

describe('look-ahead', () => {
  test.for(sample(lateLeaks, 5, Math.ceil(lateLeaks.length / 2)))(
    'TIME 55: the leak %s is found with its cause',
    async ([, sql, cause]) => {
      const proof = await prove(sql)
      expect(proof.verdict).toBe('leak')
      expect(proof.reason).toMatch(cause)
      expect(proof.differing).toBeGreaterThan(0)
      const [difference] = proof.differences
      expect(difference?.as_of).toMatch(/^2024-/)
      expect(difference?.row['ts']).toMatch(/^2024-/)
      expect(difference?.full).not.toEqual(difference?.truncated)
    },
  )

  test.for(sample(clean, 5, Math.ceil(clean.length / 2)))('TIME 55: the honest query %s is clean', async ([, sql]) => {
    const proof = await prove(sql)
    expect(proof).toMatchObject({ verdict: 'clean', differing: 0, differences: [] })
    expect(proof.cutoffs).toBeGreaterThanOrEqual(12)
    expect(proof.rows).toBeGreaterThan(400)
  })

  test('a label may look ahead, the features next to it may not', async () => {
    const sql = `${onGrid}, j AS (FROM pit_join(d, '${lateMetric}', '24h'))
      SELECT ts, asset, v, lead(v, 5) OVER (PARTITION BY asset ORDER BY ts) - v AS reward FROM j`
    expect((await prove(sql)).verdict).toBe('leak')
    expect((await prove(sql, { labels: ['reward'] })).verdict).toBe('clean')
  })

  test('a query without ts, rows or determinism is undecided with the reason', async () => {
    expect(await prove('SELECT 1 AS a')).toMatchObject({
      verdict: 'undecided',
      reason: expect.stringContaining('no column ts'),
    })
    expect(await prove("SELECT TIMESTAMPTZ '2024-05-01 00:00:00+00' AS ts, 1 AS a")).toMatchObject({
      verdict: 'undecided',
      reason: expect.stringContaining('too few rows'),
    })
    expect(await prove(`SELECT ts, random() AS v FROM ${grid}`)).toMatchObject({
      verdict: 'undecided',
      reason: expect.stringContaining('not deterministic'),
    })
    expect(await prove(`SELECT ts, 1 AS v FROM ${grid}`, { labels: ['w'] })).toMatchObject({ verdict: 'undecided' })
  })

  test.for(['read_parquet(FILES)', 'FILES', 'query_table(FILES)', 'pit_join(FILES, METRIC, INTERVAL)'])(
    'is undecided where a query reads files: %s',
    async (relation) => {
      const names = { FILES: `${lake.root}/points/recent/*.parquet`, METRIC: lateMetric, INTERVAL: '24h' }
      const from = Object.entries(names).reduce((text, [name, value]) => text.replace(name, `'${value}'`), relation)
      const proof = await prove(`SELECT t AS ts, asset, v FROM ${from}`)
      expect(proof).toMatchObject({ verdict: 'undecided', reason: expect.stringContaining('reads files directly') })
    },
  )

  test.for(['violations', 'coverage', 'gaps', 'requests', 'runs', 'versions', 'clock_findings'])(
    'is undecided where a query reads %s, which only observed_as_of cuts',
    async (view) => {
      const proof = await prove(`${onGrid} SELECT ts, asset, (SELECT count(*) FROM ${view}) AS n FROM d`)
      expect(proof).toMatchObject({ verdict: 'undecided', reason: expect.stringContaining(`reads ${view}`) })
    },
  )

  test('a single leaked decision among hundreds is found at the default cut-offs', async () => {
    const joined = `${onGrid}, j AS (FROM pit_join(d, '${lateMetric}', '24h'))`
    const ahead = (when: string, steps = 1): string =>
      `${joined} SELECT ts, asset, CASE WHEN ${when} THEN lead(v, ${steps}) OVER (PARTITION BY asset ORDER BY ts) ELSE v END AS v FROM j`
    const mean = `${onGrid} SELECT ts, asset, avg(v ORDER BY nth) + CASE WHEN ts = '2024-08-14' THEN
      (SELECT max(p.v) FROM ${daily} p WHERE p.asset = w.asset AND p.t = w.ts) ELSE 0 END AS v
      FROM pit_window(d, '${lateMetric}', '24h', 7) w GROUP BY ts, asset`
    const filled = `${joined}, n AS (SELECT ts, asset, CASE WHEN ts = '2024-07-23' THEN NULL ELSE v END AS v FROM j)
      SELECT ts, asset, coalesce(v, lead(v) OVER (PARTITION BY asset ORDER BY ts)) AS v FROM n`
    const rare = [
      mean,
      ...['2024-02-03', '2024-06-30'].map((day) => ahead(`ts = '${day}'`)),
      ahead(`ts = '2024-04-18' AND asset = 'ETH'`, 2),
      ahead(`ts = '2024-06-11'`, 5),
      filled,
    ]
    for (const sql of sample(rare, 2)) {
      const { verdict, differences, cutoffs } = await prove(sql, { cutoffs: 50 })
      expect([verdict, cutoffs <= 50], sql).toEqual(['leak', true])
      expect(differences[0]?.full, sql).not.toEqual(differences[0]?.truncated)
    }
  })

  test('a clean verdict notes how many states were tried and how rare a missed leak may be', async () => {
    const met = /^(\d+) of (\d+) states of knowledge were tried.* a leak of one row would have been met$/
    const missed = /^(\d+) of (\d+) .* a leak in one of \d+ would have been met with 95 %, a rarer one perhaps not/
    const note = async (sql: string, cutoffs = 50): Promise<string> => {
      const proof = await prove(sql, { cutoffs })
      expect([proof.verdict, proof.cutoffs <= cutoffs], sql).toEqual(['clean', true])
      return proof.notes.at(-1) ?? ''
    }
    const join = `${onGrid} FROM pit_join(d, '${lateMetric}', '24h')`
    const [, tried, all] = met.exec(await note(join)) ?? []
    expect([Number(tried) > 200, tried]).toEqual([true, all])
    expect(
      await note(`${onFew} SELECT ts, asset, avg(v ORDER BY nth) AS v FROM pit_window(d, '${lateMetric}', '24h', 20)
      GROUP BY ts, asset`),
    ).toMatch(met)
    // What remembers everything changes everywhere when anything is hidden: only cut-offs tell.
    const long = `SELECT ts, asset, sum(v) OVER (PARTITION BY asset ORDER BY ts) AS v FROM (${join})`
    for (const cutoffs of sample([12, 50], 1)) {
      const [, cut] = missed.exec(await note(long, cutoffs)) ?? []
      expect(Number(cut)).toBeGreaterThan(0.9 * cutoffs - 1)
    }
    expect(await note(join.replace("'2024-02-01', '2024-10-01'", "'2024-02-01', '2024-02-04'"))).toMatch(met)
    // Between two points nothing changes: days of one month are one state of what is known of its weeks.
    expect(
      await note(`SELECT ts, 'BTC' AS asset, 1 AS one FROM calendar('2024-02-01', '2024-02-04', INTERVAL 1 DAY)`),
    ).toMatch(met)
  })

  test('a rolling mean on several threads is decided with a tolerance', async () => {
    const sql = `${onFew} SELECT ts, asset, avg(v / 3) AS mean, stddev_samp(v / 7) AS spread
      FROM pit_window(d, '${lateMetric}', '24h', 20) GROUP BY ts, asset`
    for (const tolerance of [0, 1e-9]) expect(await prove(sql, { tolerance })).toMatchObject({ verdict: 'clean' })
    const shaken = `SELECT ts, asset, v * (1 + 1e-15 * random()) AS v FROM (${onFew} FROM pit_join(d, '${lateMetric}', '24h'))`
    expect(await prove(shaken)).toMatchObject({ verdict: 'undecided', reason: expect.stringContaining('--tolerance') })
    expect(await prove(shaken, { tolerance: 1e-9 })).toMatchObject({ verdict: 'clean' })
  })

  test('a ts without a zone or of dates means UTC, under any name', async () => {
    const leaky = `SELECT day, v FROM (SELECT CAST(t AS DATE) + 1 AS day, max(v) AS v FROM ${daily} GROUP BY ALL)`
    expect((await prove(leaky, { ts: 'day' })).verdict).toBe('leak')
    const safe = `SELECT CAST(timezone('UTC', ts) AS TIMESTAMP) AS naive, asset, v FROM pit_join(d, '${lateMetric}', '24h')`
    expect((await prove(`${onGrid} ${safe}`, { ts: 'naive' })).verdict).toBe('clean')
  })

  test('sums that differ in their last digits are undecided, not a leak', async () => {
    const sql = `${onGrid} SELECT ts, asset, v * (1 + 1e-16 * (SELECT count(*) FROM ${daily})) AS v
      FROM pit_join('d', '${lateMetric}', '24h')`
    const proof = await prove(sql)
    expect(proof).toMatchObject({ verdict: 'undecided', reason: expect.stringContaining('last digits') })
    expect(await prove(sql, { tolerance: 1e-12 })).toMatchObject({ verdict: 'clean' })
  })
})
