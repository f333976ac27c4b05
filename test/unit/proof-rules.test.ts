import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Argument, argueFromPlan } from '../../src/query/proof/prove.ts'
import type { Engine } from '../../src/store/engine.ts'
import { bareLake } from '../helpers/bare-lake.ts'
import { groupRules } from '../helpers/proof-rules-groups.ts'
import { grid, onGrid, proofRules } from '../helpers/proof-rules.ts'

let lake: Engine
beforeAll(async () => {
  lake = await bareLake()
})
afterAll(() => lake.close())

async function argued(sql: string, labels: readonly string[] = []): Promise<Argument> {
  return await argueFromPlan(lake, {
    sql: onGrid(sql),
    ts: 'ts',
    labels,
  })
}

describe('a rule of the proof from the plan', () => {
  test.for([...proofRules, ...groupRules])('%s', async ([, honest, leak, obstacle]) => {
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

  test('labels may look ahead, what is beside them may not', async () => {
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
  ] as const)('nothing is proved of %s', async ([sql, why]) => {
    const { proved, unproved } = await argueFromPlan(lake, { sql, ts: 'ts', labels: [] })
    expect(proved).toBe(false)
    expect(`${unproved?.what ?? ''}: ${unproved?.why ?? ''}`).toMatch(why)
  })
})
