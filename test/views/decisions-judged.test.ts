import { appendFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seriesId } from '../../src/catalog/series.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { openQuery } from '../../src/query/lake.ts'
import { judgeQuestion } from '../../src/query/question.ts'
import { plain, point, threeDays } from '../helpers/lakes/three-days.ts'

/*
 * Notes about decisions run the caller's own relation, as `question_asked` writes it anew. In this lake that macro
 * names a relation that the test chooses: a server runs it only if it would answer it as a question.
 */

const day = (n: number): number => Date.UTC(2024, 2, n) / 1000
const series = {
  metric: plain,
  asset: 'BTC',
  interval: '24h',
  currency: null,
  exchange: null,
  network: null,
  params: {},
}
let root = ''
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  const window = {
    since: day(1),
    until: day(4),
    state: 'covered',
    reason: null,
    asked_at: day(30),
    request: null,
  } as const
  const coverage = [{ series: seriesId({ ...series, interval: '24h' }), ...window }]
  ;({ root, remove } = await threeDays((n) => [point(plain, n, { v: n })], { coverage }))
})
afterAll(async () => await remove())

const asked = { interval: ['24h'], asset: [], currency: [], exchange: [], network: [], component: null }
const metric = { name: plain, ...asked, defaults: true, everywhere: true }
const dimensions = { currency: null, exchange: null, network: null }

/** Lets `question_asked` report a join of these decisions, whatever is asked. */
async function reportDecisions(decisions: string): Promise<void> {
  const join = { metrics: [metric], interval: '24h', ...dimensions, answers_unsettled: true, decisions }
  const report = quote(JSON.stringify({ tables: [], texts: [], counts: false, metrics: [], joins: [join] }))
  const macro = `CREATE OR REPLACE MACRO question_asked(statements, parameters := '{}') AS TABLE SELECT ${report} AS asked`
  appendFileSync(inLake(root, places.script), `\n${macro};\n`)
  using engine = await Engine.open(inLake(root, places.database))
  await engine.run(macro)
}

test.each([
  [
    'one SELECT is answered',
    "FROM (VALUES ('BTC', TIMESTAMPTZ '2024-06-01')) AS d (asset, ts)",
    ['unresolved-decisions'],
  ],
  ['a SELECT past the views of the lake is not run', 'FROM duckdb_settings() LIMIT 1', []],
  ['two statements are not run', "FROM (VALUES (1)) AS d; SELECT 'BTC', TIMESTAMPTZ '2024-06-01', NULL", []],
])('a question on the side about decisions: %s', async (_, relation, found) => {
  await reportDecisions(`SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-06-01' AS ts, NULL AS latency ${relation}`)
  using engine = await openQuery(root, { asOf: '2024-07-01', mark: 'mark_of_a_test' })
  const run = { folder: root, mark: 'mark_of_a_test', sleep: async () => undefined }
  const sql = `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-03-04' AS ts) FROM pit_join('d', '${plain}', '24h')`
  const { notes } = await judgeQuestion({ sql, knowledge: { asOf: '2024-07-01' } }, engine, run)
  expect(notes.map(({ code }) => code)).toEqual(found)
})
