import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { argueFromPlan } from '../../src/trust/lookahead/proof/prove.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { bareViews } from '../helpers/lakes/bare-views.ts'
import { grid, onGrid, proofRules } from '../helpers/proof-rules.ts'

let lake: Engine
beforeAll(async () => (lake = await bareViews()))
afterAll(() => lake.close())

async function argued(sql: string, labels: readonly string[] = []): Promise<Awaited<ReturnType<typeof argueFromPlan>>> {
  return await argueFromPlan(lake, { sql: onGrid(sql), ts: 'ts', labels })
}

describe('a rule of the proof from the plan', () => {
  test.for(proofRules)('%s', async ([, honest, leak, obstacle]) => {
    const right = await argued(honest)
    expect(right.unproved).toBeNull()
    expect(right).toMatchObject({
      proved: true,
      chain: expect.arrayContaining([expect.stringMatching(/^the result: /)]),
    })
    const wrong = await argued(leak)
    expect(wrong.proved, wrong.chain.join('\n')).toBe(false)
    expect(`${wrong.unproved?.what ?? ''}: ${wrong.unproved?.why ?? ''}`).toMatch(obstacle)
  })

  test.for([
    ['SELECT ts, asset, v FROM j ORDER BY ts LIMIT 5', 'LIMIT'],
    [
      'SELECT ts, row_number() OVER (PARTITION BY ts ORDER BY v) AS place FROM j',
      'row_number() OVER (PARTITION BY ts ORDER BY v to CURRENT ROW)',
    ],
    ['SELECT DISTINCT ON (ts) ts, asset FROM j ORDER BY ts, v', 'DISTINCT ON (ts)'],
    ['SELECT ts, any_value(v) AS v FROM j GROUP BY ts', 'any_value(v)'],
  ])('a choice of the engine among equals is reported as assumed: %s', async ([sql = '', what = '']) => {
    const { proved, chain } = await argued(sql)
    expect(proved).toBe(true)
    expect(chain).toContain(`assumed: ${what} takes one of equal values, or its rows in one order`)
    expect((await argued('SELECT ts, v FROM j ORDER BY v')).chain.join()).not.toContain('assumed')
  })

  test('labels may look ahead, other columns may not', async () => {
    const sql = 'SELECT ts, v, lead(v) OVER (PARTITION BY asset ORDER BY ts) AS reward FROM j'
    expect((await argued(sql)).proved).toBe(false)
    expect((await argued(sql, ['reward'])).proved).toBe(true)
    expect((await argued(`SELECT ts, reward + v AS v, reward FROM (${grid} ${sql})`, ['reward'])).proved).toBe(false)
  })

  test.for([
    ['SELECT ts FROM nowhere', /nowhere/],
    ['SELECT ts, nothing FROM points', /nothing|ts/],
    ['SELECT available_at AS ts FROM points WHERE v > $1', /parameter/],
    ["SELECT ts FROM read_parquet('x.parquet')", /read_parquet/],
    ["SELECT ts FROM 'x.parquet'", /plan of the query/],
    ['SELECT 1 AS a', /ts: no column/],
    ["SELECT 'x' AS ts", /not an instant/],
    ['CREATE TABLE x AS SELECT 1', /not one SELECT/],
    ['SELECT ts FROM', /not one SELECT/],
    ['SELECT available_at AS ts, rowid FROM points', /rowid/],
  ] as const)('no proof is given for %s', async ([sql, why]) => {
    const { proved, unproved } = await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })
    expect(proved).toBe(false)
    expect(`${unproved?.what ?? ''}: ${unproved?.why ?? ''}`).toMatch(why)
  })
})
