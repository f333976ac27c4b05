import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { proveQuery } from '../../src/interfaces/commands/lookahead.ts'
import { type LookaheadProof, proveNoLookahead } from '../../src/trust/lookahead/lookahead.ts'
import { prepareScript } from '../../src/trust/lookahead/script.ts'
import { openWorlds } from '../../src/trust/lookahead/world.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

/*
 * Statements before a query, in every form that a session takes: what they read of the lake is read again at each
 * cut-off. Each planted leak stands beside a twin of the same form that is honest.
 */

const lake = lakeOfFile(lateDaysAndProducts)

async function prove(script: string): Promise<LookaheadProof> {
  const run = { folder: lake.root, sleep: setTimeout }
  const first = await openWorlds(lake.root, { threads: 1 })
  const { sql, preparation, single } = await prepareScript(first, script, run)
  const input = { sql, preparation, planned: single, ts: 'ts', labels: [], cutoffs: 3, tolerance: 0 }
  return await proveNoLookahead(async () => first, input, run)
}

const d = `d AS (SELECT ts, 'BTC' AS asset FROM calendar('2024-02-01', '2024-02-09', '1 day'))`
const joined = `WITH ${d} SELECT ts, v`
const from = `FROM pit_join('d', '${lateMetric}', '24h')`
const best = 'SELECT max(v) AS v FROM points'
const known = `${best} WHERE available_at < '2024-02-01'`

/** Form, the script that leaks, its honest twin. */
const forms: readonly (readonly [form: string, leak: string, honest: string])[] = [
  ...(
    [
      ['SET VARIABLE', `SET VARIABLE m = (${best});`, `SET VARIABLE m = (${known});`, `getvariable('m')`],
      [
        'SET VARIABLE of a list',
        `SET VARIABLE m = (SELECT list(v) FROM (${best}));`,
        `SET VARIABLE m = [1.0, 2.0];`,
        `getvariable('m')[1]`,
      ],
      [
        'SET VARIABLE twice, of itself',
        `SET VARIABLE m = (${best}); SET VARIABLE m = getvariable('m') + 1;`,
        `SET VARIABLE m = coalesce(getvariable('m'), 3) + 1;`,
        `getvariable('m')`,
      ],
      ['TEMP TABLE', `CREATE TEMP TABLE m AS ${best};`, `CREATE TEMP TABLE m AS ${known};`, '(SELECT v FROM m)'],
      ['TEMP VIEW', `CREATE TEMP VIEW m AS ${best};`, `CREATE TEMP VIEW m AS ${known};`, '(SELECT v FROM m)'],
      [
        'TEMP TABLE that INSERT fills',
        `CREATE TEMP TABLE m (v DOUBLE); INSERT INTO m ${best};`,
        `CREATE TEMP TABLE m (v DOUBLE); INSERT INTO m ${known};`,
        '(SELECT v FROM m)',
      ],
      [
        'TEMP TABLE that UPDATE changes',
        `CREATE TEMP TABLE m AS SELECT 1.0::DOUBLE AS v; UPDATE m SET v = (${best});`,
        `CREATE TEMP TABLE m AS SELECT 1.0::DOUBLE AS v; UPDATE m SET v = (${known});`,
        '(SELECT v FROM m)',
      ],
      ['TEMP MACRO', `CREATE TEMP MACRO m() AS (${best});`, `CREATE TEMP MACRO m() AS (${known});`, 'm()'],
      [
        'TEMP MACRO AS TABLE',
        `CREATE TEMP MACRO m() AS TABLE ${best};`,
        `CREATE TEMP MACRO m() AS TABLE ${known};`,
        '(SELECT v FROM m())',
      ],
      [
        'TEMP MACRO in the place of a function of the engine',
        `CREATE TEMP MACRO pi() AS (${best});`,
        `CREATE TEMP MACRO pi() AS (${known});`,
        'pi()',
      ],
      [
        'a variable of a temporary table',
        `CREATE OR REPLACE TEMP TABLE m AS ${best}; SET VARIABLE m = (SELECT v FROM m);`,
        `CREATE OR REPLACE TEMP TABLE m AS ${known}; SET VARIABLE m = (SELECT v FROM m);`,
        `getvariable('m')`,
      ],
      [
        'a table in the place of a view of the lake',
        `CREATE TEMP TABLE series AS ${best};`,
        `CREATE TEMP TABLE series AS ${known};`,
        '(SELECT v FROM series)',
      ],
    ] as const
  ).map(([form, leak, honest, value]) => {
    const rest = ` ${joined} / ${value} AS v ${from}`
    return [form, leak + rest, honest + rest] as const
  }),
  [
    'a clock of its own',
    `SET VARIABLE as_of = '2024-12-01'; ${joined} - (${best}) AS v ${from}`,
    `SET VARIABLE as_of = '2024-12-01'; ${joined} ${from}`,
  ],
  [
    'a clock in other letters',
    `/* all of it */ SET VARIABLE "AS_OF" = '2024-12-01'; ${joined} - (${best}) AS v ${from}`,
    `RESET VARIABLE as_of; ${joined} ${from}`,
  ],
]

test.for(forms)('%s: a leak in it is found and never proved, its honest twin is clean', async ([, leak, honest]) => {
  expect(await prove(leak)).toMatchObject({ verdict: 'leak', proved: false, depends_on: ['values'] })
  expect((await prove(honest)).verdict).toBe('clean')
})

test('tables and views before a query are proved with it; more than these is not, with the reason', async () => {
  const table = `CREATE TEMP TABLE d AS SELECT ts, 'BTC' AS asset FROM calendar('2024-02-01', '2024-02-09', '1 day');`
  expect(await prove(`${table} SELECT ts, v ${from}`)).toMatchObject({ verdict: 'clean', proved: true })
  const macro = await prove(`${table} CREATE TEMP MACRO one() AS 1; SELECT ts, v ${from}`)
  expect(macro).toMatchObject({
    verdict: 'clean',
    proved: false,
    unproved: { what: 'the statements before the query' },
  })
})

test.for([
  ['BEGIN; SELECT 1 AS ts', 'BEGIN'],
  ['CREATE TEMP TABLE proof_full AS SELECT 1; SELECT 1 AS ts', 'proof_full'],
  ['CREATE TEMP VIEW "Own_File_s" AS SELECT 1; SELECT 1 AS ts', 'Own_File_s'],
  ['DELETE FROM own_file_s; SELECT 1 AS ts', 'own_file_s'],
] as const)('%s is refused: it cannot run again, or changes what a proof keeps', async ([script, got]) => {
  await expect(prove(script)).rejects.toThrow(`got ${got}`)
})

const viewsOf = async (script?: string): Promise<readonly string[]> => {
  using session = await openWorlds(lake.root, { threads: 1 }, script)
  const rows = await session.rows<{ name: string }>(
    `SELECT view_name AS name FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'
     UNION SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY name`,
  )
  return rows.map(({ name }) => name)
}

test('a session for a script has the objects that its text names in any spelling, and those of a trial', async () => {
  const some = await viewsOf('SELECT v FROM "Price_USD" JOIN points USING (t)')
  expect(some).toEqual(expect.arrayContaining(['points', 'price_usd', 'endpoints', 'lake_info', 'question_notes']))
  expect(some).not.toContain('pit_join')
  expect(some).not.toContain('coverage')
})

test.each(['FROM duckdb_views()', 'SHOW TABLES', "FROM query_table('po' || 'ints')", 'FROM information_schema.tables'])(
  '%s may read anything, so its session has every object',
  async (script) => expect(await viewsOf(script)).toEqual(await viewsOf()),
)

test('a mistake in a query is explained with the names of all views', async () => {
  const run = { folder: lake.root, sleep: setTimeout }
  const mistake = 'SELECT * FROM covrage'
  using whole = await openWorlds(lake.root, { threads: 1 })
  const expected = await prepareScript(whole, mistake, run).catch((error: unknown) => String(error))
  expect(expected).toContain('coverage')
  const trial = { ts: 'ts', labels: [], cutoffs: 3, tolerance: 0 }
  const found = await proveQuery({ text: mistake, set: {} }, trial, run).catch((error: unknown) => String(error))
  expect(found).toBe(expected)
})
