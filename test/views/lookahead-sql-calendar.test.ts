// @module-tag full
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type LookaheadProof, proveNoLookahead } from '../../src/trust/lookahead/lookahead.ts'
import { prepareScript } from '../../src/trust/lookahead/script.ts'
import { openWorlds } from '../../src/trust/lookahead/world.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

/*
 * Calendars that a query states in its text: a value that depends on how many of their rows come later is a leak, its
 * twin that depends on those so far is not.
 */

const lake = lakeOfFile(lateDaysAndProducts)

async function prove(script: string): Promise<LookaheadProof> {
  const run = { folder: lake.root, sleep: setTimeout }
  const first = await openWorlds(lake.root, { threads: 1 })
  const { sql, preparation, single } = await prepareScript(first, script, run)
  const planned = preparation.length > 0 ? { planned: single } : {}
  const input = { sql, preparation, ...planned, ts: 'ts', labels: [], cutoffs: 2, tolerance: 0 }
  return await proveNoLookahead(async () => first, input, run)
}

const since = `TIMESTAMPTZ '2024-03-02T00:00:00Z'`
const until = `TIMESTAMPTZ '2024-03-05T00:00:00Z'`
const step = `INTERVAL 4 HOUR`

/** The ways in which a query comes to its decisions. */
const calendars: Readonly<Record<string, string>> = {
  calendar: `SELECT ts FROM calendar('2024-03-02', '2024-03-05', '4 hours')`,
  'calendar in quotes': `SELECT ts FROM "calendar" ('2024-03-02', '2024-03-05', '4 hours')`,
  generate_series: `SELECT generate_series AS ts FROM generate_series(${since}, ${until}, ${step})`,
  range: `SELECT d.ts FROM range(TIMESTAMP '2024-03-02', TIMESTAMP '2024-03-05', ${step}) AS d(ts)`,
  'a list of instants': `SELECT unnest(generate_series(${since}, ${until}, ${step})) AS ts`,
}

/** Columns of rows `d` that depend on later rows, each with the same over the rows so far. */
const changes: Readonly<Record<string, readonly [leak: string, honest: string]>> = {
  'its share of all rows': [
    'row_number() OVER (ORDER BY ts) / count(*) OVER ()',
    'row_number() OVER (ORDER BY ts) / count(*) OVER (ORDER BY ts)',
  ],
  'the number of rows of its day': [
    `count(*) OVER (PARTITION BY date_trunc('day', ts))`,
    `count(*) OVER (PARTITION BY date_trunc('day', ts) ORDER BY ts)`,
  ],
  'the time until the next row': ['lead(ts) OVER (ORDER BY ts) - ts', 'ts - lag(ts) OVER (ORDER BY ts)'],
}

const pairs = Object.entries(calendars).flatMap(([source, calendar], n) =>
  Object.entries(changes)
    .filter((_, place) => n === 0 || place === n % 3)
    .map(([what, [leak, honest]]) => [source, what, calendar, leak, honest] as const),
)

test.for(pairs)(
  'from %s, %s is a leak by its calendar, the rows so far are proved',
  async ([, , calendar, leak, honest]) => {
    const found = await prove(`WITH d AS (${calendar}) SELECT ts, ${leak} AS v FROM d`)
    expect(found).toMatchObject({
      verdict: 'leak',
      proved: false,
      depends_on: ['calendar'],
      reason: expect.stringMatching(/calendar ends earlier/),
    })
    expect(found.differences[0]?.future).toBe('calendar')
    const clean = await prove(`WITH d AS (${calendar}) SELECT ts, ${honest} AS v FROM d`)
    expect(clean).toMatchObject({ verdict: 'clean', proved: true, depends_on: [], unproved: null })
  },
)

test('a share of all rows over joined points and in a temporary table is a leak by its calendar', async () => {
  const d = `SELECT ts, 'BTC' AS asset FROM calendar('2024-03-02', '2024-03-05', '4 hours')`
  const share = `SELECT ts, v, row_number() OVER (ORDER BY ts) / count(*) OVER () AS w FROM pit_join('d', '${lateMetric}', '24h')`
  for (const script of [`WITH d AS (${d}) ${share}`, `CREATE TEMP TABLE d AS ${d}; ${share}`])
    expect(await prove(script)).toMatchObject({ verdict: 'leak', depends_on: ['calendar'] })
})

const listed = Array.from({ length: 18 }, (_, n) => new Date(Date.UTC(2024, 2, 2, 4 * n)).toISOString())
/** Decisions that no run can end, so that the plan alone tells of them. */
const constants: Readonly<Record<string, string>> = {
  'numbers of a range': `SELECT ${since} + n * ${step} AS ts FROM range(18) AS r(n)`,
  'places of rows': `SELECT ${since} + row_number() OVER () * ${step} AS ts FROM range(18) AS r(n)`,
  'VALUES of instants': `SELECT ts FROM (VALUES ${listed.map((at) => `(TIMESTAMPTZ '${at}')`).join(', ')}) AS own(ts)`,
  'VALUES of texts': `SELECT CAST(text AS TIMESTAMPTZ) AS ts FROM (VALUES ${listed.map((at) => `('${at}')`).join(', ')}) AS own(text)`,
  'a list of texts': `SELECT CAST(unnest([${listed.map((at) => `'${at}'`).join(', ')}]) AS TIMESTAMPTZ) AS ts`,
}

test.for(Object.entries(constants))('from %s, a share of all rows is not proved', async ([name, calendar]) => {
  const share = await prove(`WITH d AS (${calendar}) SELECT ts, 1 / count(*) OVER () AS v FROM d`)
  expect(share.proved).toBe(false)
  expect(share.unproved?.what).toMatch(name === 'places of rows' ? /^row_number/ : /^count/)
  const soFar = await prove(`WITH d AS (${calendar}) SELECT ts, count(*) OVER (ORDER BY ts) AS v FROM d`)
  expect([soFar.verdict, soFar.proved]).toEqual(['clean', name !== 'places of rows'])
})

test('numbers, assets and a single instant in the text are no calendar and stay proved', async () => {
  const d = `SELECT ts, asset FROM calendar('2024-03-02', '2024-03-05', '4 hours'), (VALUES ('BTC'), ('ETH')) AS a(asset)`
  const query = `WITH d AS (${d}) SELECT d.ts, d.asset, back.n, d.ts - back.n * INTERVAL 1 DAY AS before,
    (SELECT count(*) FROM range(7)) AS week FROM d, range(3) AS back(n), (VALUES (DATE '2024-03-03')) AS p(first)
    WHERE d.ts >= p.first`
  expect(await prove(query)).toMatchObject({ verdict: 'clean', proved: true, unproved: null })
})
