import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { openQuery } from '../../src/query/lake.ts'
import { judgeQuestion } from '../../src/query/question.ts'
import { isOneExpression } from '../../src/query/parse-tree.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const { root: folder } = lakeOfFile(hundredFetchedDays)
let lake: Engine
beforeAll(async () => {
  lake = await openQuery(folder, { asOf: '2024-03-01', mark: 'mark_of_this_test' })
})
afterAll(async () => {
  lake.close()
})

const endings = [
  'true) UNION SELECT (1',
  'true) GROUP BY (product_id',
  'true) ORDER BY (1',
  'true) LIMIT (1',
  'true) QUALIFY (count(*) OVER () > 0',
]

test.each([
  ["status = 'active'", true],
  ["(status = 'active') OR (symbol IS NULL) -- why\n", true],
  ["symbol LIKE '%)%'", true],
  ...endings.map((text) => [text, false] as const),
  ['true), (false', false],
  ['true) FROM points WHERE (true', false],
  ['true); SELECT (1', false],
  ['', false],
] as const)('%j is one expression: %s', async (text, wanted) => {
  expect(await isOneExpression(lake, text)).toBe(wanted)
})

test.each(endings)('a panel refuses the universe %j, which ends the brackets around it', async (universe) => {
  const panel = {
    decisions: { kind: 'calendar', since: '2024-02-10', until: '2024-02-12', step: '86400 seconds' },
    metrics: [{ name: 'supply', metric: 'supply/current_pit' }],
    interval: '24h',
    universe,
  } as const
  const run = { folder, sleep: setTimeout, mark: 'mark_of_this_test', door: 'fields' } as const
  await expect(judgeQuestion({ panel, knowledge: {} }, lake, run)).rejects.toThrow(
    /^universe: expected one condition, got true\)/,
  )
})

const breakingOut = 'true); CREATE TEMP TABLE slipped_in AS SELECT 1; SELECT (true'

test('a universe that ends its statement is refused before any of it runs', async () => {
  using open = await openQuery(folder)
  const panel = {
    decisions: { kind: 'calendar', since: '2024-02-10', until: '2024-02-12', step: '86400 seconds' },
    metrics: [{ name: 'supply', metric: 'supply/current_pit' }],
    interval: '24h',
    universe: breakingOut,
  } as const
  const judged = judgeQuestion({ panel, knowledge: {} }, open, { folder, sleep: setTimeout })
  await expect(judged).rejects.toThrow('--universe: expected one condition, got true)')
  expect(await open.rows("SELECT 1 FROM duckdb_tables() WHERE table_name = 'slipped_in'")).toEqual([])
})

test.each([...endings, breakingOut])('a query with the condition %j of a caller is refused', async (condition) => {
  const sql = `SELECT * FROM universe WHERE (\n${condition}\n)`
  const run = { folder, sleep: setTimeout, mark: 'mark_of_this_test', door: 'fields' } as const
  await expect(judgeQuestion({ sql, condition, knowledge: {} }, lake, run)).rejects.toThrow(
    /^condition: expected one condition, got true\)/,
  )
})
