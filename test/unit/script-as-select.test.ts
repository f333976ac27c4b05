import { afterAll, beforeAll, expect, test } from 'vitest'
import { scriptAsSelect } from '../../src/query/script-as-select.ts'
import { type PanelSpec, panelSql, specOf } from '../../src/query/panel.ts'
import { argueFromPlan } from '../../src/trust/lookahead/proof/prove.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { bareViews } from '../helpers/lakes/bare-views.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

let lake: Engine
beforeAll(async () => (lake = await bareViews()))
afterAll(() => lake.close())

test('temporary tables are folded into one SELECT in which every word keeps its place', async () => {
  const script = `-- of two; tables
SET VARIABLE mine = ';';
CREATE OR REPLACE TEMP TABLE d AS -- the days
  SELECT x AS a FROM range(3) r (x);
CREATE TEMPORARY TABLE "e e" AS SELECT a + 1 AS b FROM d
; WITH f AS (SELECT b * 10 AS c FROM "e e") SELECT c, 'x;y' AS t FROM f ORDER BY c;
`
  const { sql, sets } = scriptAsSelect(script) ?? { sql: '', sets: [] }
  expect(sets).toEqual(["SET VARIABLE mine = ';'"])
  expect(sql.split('\n')).toHaveLength(6)
  for (const word of ['range(3)', 'a + 1', 'b * 10', "'x;y'", 'ORDER BY c'])
    expect(sql.indexOf(word)).toBe(script.indexOf(word))
  expect((await lake.rows(sql)).map(({ c }) => Number(c))).toEqual([10, 20, 30])
})

test.each([
  [
    'a word of a comment',
    'CREATE TEMP TABLE x AS SELECT 1 AS b; -- compare with last\nWITH a AS (SELECT 2 AS c) SELECT b, c FROM x, a',
  ],
  ['two semicolons', 'CREATE TEMP TABLE x AS SELECT 1 AS b;; SELECT b, 2 AS c FROM x'],
  ['a semicolon alone in front', '; CREATE TEMP TABLE x AS SELECT 1 AS b -- a; b\n; SELECT b, 2 AS c FROM x'],
])('%s leaves a script foldable', async (_, script) => {
  const { sql } = scriptAsSelect(script) ?? { sql: '' }
  expect(await lake.rows(sql)).toEqual([{ b: 1, c: 2 }])
})

test.for([
  ['CREATE TABLE x AS SELECT 1; SELECT 1'],
  ['CREATE TEMP TABLE x AS SELECT 1; WITH RECURSIVE y AS (SELECT 1) FROM y'],
  ['SELECT 1; SELECT 2'],
  [''],
])('a script that is no single SELECT is not folded: %s', ([script]) =>
  expect(scriptAsSelect(String(script))).toBeUndefined(),
)

test('a script of one statement folds into itself', () => {
  expect(scriptAsSelect('SELECT 1 AS a ;')).toEqual({ sql: 'SELECT 1 AS a', sets: [] })
})

const grid: PanelSpec = specOf({
  decisions: { kind: 'calendar', since: '2024-01-01', until: '2024-02-01', step: '1 day', assets: ['BTC', 'ETH'] },
  metrics: ['supply/current_pit', 'price_usd'],
  fields: ['v', 'age'],
  latency: '15m',
})

async function proved(spec: PanelSpec, change = (sql: string): string => sql) {
  const { decisions, query } = panelSql(spec)
  const { sql = '' } = scriptAsSelect(change(`${decisions};\n${query};\n`)) ?? {}
  return await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })
}

test('the script of a panel is proved; one that joins at a different time is not', async () => {
  expect(await proved(grid)).toMatchObject({ proved: true, unproved: null })
  const list = JSON.stringify([{ asset: 'BTC', ts: '2024-01-01T00:00:00Z' }])
  const given = { kind: 'list', text: list, types: { asset: 'VARCHAR', ts: 'VARCHAR' } } as const
  // No run can end a list, and its rows are numbered by their place: tested, not proved.
  expect(await proved({ ...grid, decisions: given })).toMatchObject({
    proved: false,
    unproved: { what: 'row_number() OVER ()' },
  })
  const many = {
    ...grid,
    metrics: [...catalogue.endpoints.keys()].slice(0, 17).map((metric) => ({ name: metric, metric })),
  }
  expect(await proved(many)).toMatchObject({ proved: true, unproved: null })
  const loose = (sql: string): string => sql.replace(' AND wide.ts IS NOT DISTINCT FROM own.ts', '')
  const late = (sql: string): string =>
    sql.replace('asset, ts FROM "decisions"', 'asset, ts + INTERVAL 1 DAY AS ts FROM "decisions"')
  for (const [spec, change] of [grid, many].flatMap((one) =>
    [loose, (sql: string): string => late(loose(sql))].map((how) => [one, how] as const),
  )) {
    const { proved: told, unproved } = await proved(spec, change)
    expect(told).toBe(false)
    expect(unproved?.why).toMatch(/nothing holds to be at or before ts|join/)
  }
})
