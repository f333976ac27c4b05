import { afterAll, beforeAll, expect, test } from 'vitest'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { plain, supply, threeDays } from '../helpers/lakes/three-days.ts'

/* What `question_asked` finds in the text of statements, without a look at any point. */

let engine: Engine
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  const days = await threeDays(() => [])
  remove = days.remove
  engine = await Engine.open(inLake(days.root, places.database), { readOnly: true, threads: 1 })
})
afterAll(async () => {
  engine.close()
  await remove()
})

interface AskedMetric {
  readonly name: string
  readonly asset: readonly string[]
  readonly defaults: boolean
}

/** The fields of the answer of `question_asked` that are looked at here. */
interface Asked {
  readonly texts: readonly string[]
  readonly counts: boolean
  readonly members: readonly object[] | null
  readonly metrics: readonly AskedMetric[]
  readonly joins: readonly { readonly metrics: readonly AskedMetric[]; readonly decisions: string | null }[]
}

/** What a script of these statements asks. */
async function askedIn(...statements: readonly string[]): Promise<Asked> {
  const [row] = await engine.rows<{ asked: string }>(
    `SELECT CAST(asked AS VARCHAR) AS asked FROM question_asked(${quoteList(statements)})`,
  )
  return JSON.parse(row?.asked ?? 'null') as Asked
}

test.each([
  ['in the last statement', ['SELECT 1', 'SELECT count(*) FROM points'], true],
  ['in a CTE of it', ['WITH j AS (SELECT count(*) AS n FROM points) FROM j'], true],
  ['in an earlier statement', ['CREATE TEMP TABLE j AS SELECT count(*) AS n FROM points', 'SELECT 0 AS n'], false],
  ['in a subquery of a condition', ['SELECT v FROM points WHERE v < (SELECT count(*) FROM points)'], false],
] as const)('question_asked sees a count %s', async (_, statements, counts) => {
  expect((await askedIn(...statements)).counts).toBe(counts)
})

test.each(['TABLE', 'VIEW'])('question_asked reads the query of a temporary %s', async (kind) => {
  const made = `CREATE OR REPLACE TEMP ${kind} j AS SELECT * FROM points WHERE asset = 'BTX'`
  expect((await askedIn(made, 'FROM j')).texts).toEqual(['BTX'])
})

test.each(["asset = 'BTX'", "asset IN ('BTX')"])('question_asked reads the asset in %s', async (condition) => {
  const { metrics } = await askedIn(`FROM points WHERE metric = ${quote(plain)} AND ${condition}`)
  expect(metrics).toMatchObject([{ name: plain, asset: ['BTX'] }])
})

test.each([
  ['points', false],
  ['price_usd', true],
] as const)(
  'the dimensions of the catalogue stand in for those that a query of %s does not name: %s',
  async (...given) => {
    const [view, defaults] = given
    expect((await askedIn(`FROM ${view} WHERE asset = 'BTX'`)).metrics).toMatchObject([{ defaults }])
  },
)

test('question_asked lists members only if the registry is read', async () => {
  const members = async (relation: string): Promise<Asked['members']> =>
    (await askedIn(`FROM ${relation} WHERE status = 'activ'`)).members
  expect(await members('universe')).toEqual([{ column: 'status', value: 'activ' }])
  expect(await members("pit_universe('d')")).toEqual([{ column: 'status', value: 'activ' }])
  expect(await members('my_table')).not.toContainEqual(expect.anything())
})

test('question_asked finds the decisions of a join, whatever the case of their CTE, with the latency of the call', async () => {
  const decisions = `WITH Days AS (SELECT 'BTC' AS asset, now() AS ts)`
  const { joins } = await askedIn(
    `${decisions} FROM pit_join('dAYS', [${quote(plain)}, ${quote(supply)}], '24h', latency := INTERVAL 80 DAY, currency := 'usd')`,
  )
  expect(joins.map(({ metrics }) => metrics.map(({ name }) => name))).toEqual([[plain, supply]])
  expect(joins[0]?.decisions).toMatch(/^WITH "?Days"? AS .*80.* AS latency FROM "?dAYS"?$/)
})
