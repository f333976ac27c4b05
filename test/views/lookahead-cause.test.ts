import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { likelyCause, noCause, registryIsRead } from '../../src/trust/lookahead/cause.ts'
import type { CutStory, Dependence } from '../../src/trust/lookahead/runs.ts'
import { openWorlds } from '../../src/trust/lookahead/world.ts'
import { lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'
import type { TestLake } from '../helpers/lakes/lake-recipe.ts'
import { openTestLake } from '../helpers/lakes/make-lake.ts'

/* The cause of a leak comes from what the query reads and does, never from words in its text. */

let lake: TestLake
let session: Engine
beforeAll(async () => {
  lake = await openTestLake(lateDaysAndProducts)
  session = await openWorlds(lake.root, { threads: 1 })
})
afterAll(() => {
  session[Symbol.dispose]()
  lake.remove()
})

/** A leak of which one value of each row differs, the day before each cut-off. */
const story: CutStory = {
  at: '',
  cutoff: 200 * 86_400_000,
  earliest: 199 * 86_400_000,
  first: 0,
  differing: 2,
  missing: 0,
  extra: 0,
  rounding: false,
}

const ahead = 'lead(v) OVER (PARTITION BY asset ORDER BY t) AS v'
const cases: readonly (readonly [name: string, sql: string, dependsOn: readonly Dependence[], words: RegExp])[] = [
  [
    'a CTE named assets',
    `WITH assets AS (SELECT t AS ts, asset, ${ahead} FROM points) FROM assets`,
    ['values'],
    /^a window that reaches ahead/,
  ],
  [
    'a CTE named products',
    `WITH products AS (SELECT t AS ts, asset, ${ahead} FROM points) FROM products`,
    ['values'],
    /^a window that reaches ahead/,
  ],
  [
    'a CTE named universe, registry said to matter',
    `WITH universe AS (SELECT t AS ts, asset, ${ahead} FROM points) FROM universe`,
    ['registry'],
    /^a window that reaches ahead/,
  ],
  [
    'a text constant that says lead',
    `SELECT ts, 'lead products assets' AS v FROM calendar('2024-02-01', '2024-03-01', INTERVAL 1 DAY)`,
    ['existence'],
    /^cause not found/,
  ],
  [
    'the registry as it is now',
    `SELECT c.ts, count(*) AS v FROM calendar('2024-02-01', '2024-03-01', INTERVAL 1 DAY) c, products GROUP BY 1`,
    ['registry'],
    /^survivors only: the registry/,
  ],
  // The engine has no plan of a query with a function that it does not know: the text tells which tables are read.
  [
    'the registry as it is now, without a plan',
    `SELECT c.ts, unknown(p.product_id) AS v FROM calendar('2024-02-01', '2024-03-01', INTERVAL 1 DAY) c, Products p`,
    ['registry'],
    /^survivors only: the registry/,
  ],
  [
    'a CTE named products, without a plan',
    `WITH products AS (SELECT t AS ts, asset, ${ahead} FROM points) SELECT ts, unknown(v) AS v FROM products`,
    ['registry'],
    /^a window that reaches ahead/,
  ],
  [
    'the history of the registry, without a plan',
    `SELECT c.ts, unknown(p.id) AS v FROM calendar('2024-02-01', '2024-03-01', INTERVAL 1 DAY) c, history.products p`,
    ['registry'],
    /^cause not found/,
  ],
  [
    'the history of the registry',
    `SELECT c.ts, p.id AS v FROM calendar('2024-02-01', '2024-03-01', INTERVAL 1 DAY) c, history.products p`,
    ['registry'],
    /^cause not found/,
  ],
  [
    'a registry that is read and does not matter',
    `SELECT c.ts, p.product_id AS v FROM calendar('2024-02-01', '2024-03-01', INTERVAL 1 DAY) c, universe p`,
    ['values'],
    /^cause not found/,
  ],
]

test.each(cases)('%s: the cause comes from what the query reads', async (_, sql, dependsOn, words) => {
  expect(noCause).toMatch(/^cause not found/)
  expect(await likelyCause(session, { sql, ts: 'ts', stories: [story], dependsOn })).toMatch(words)
})

const registryReads: readonly (readonly [name: string, sql: string, isRead: boolean])[] = [
  ['points alone', 'SELECT t AS ts, rank() OVER (ORDER BY v) AS v FROM points', false],
  ['a CTE named products', 'WITH products AS (SELECT t AS ts, v FROM points) FROM products', false],
  ['a text that says universe', `SELECT 'universe' AS v, endpoints.* FROM endpoints`, false],
  ['a temporary table of the caller', 'FROM mine', false],
  ['products', 'SELECT count(*) FROM Products', true],
  ['pit_universe', `SELECT * FROM pit_universe((SELECT ts FROM calendar('2024-02-01', '2024-03-01')))`, true],
  ['a script', `SET VARIABLE m = (SELECT count(*) FROM history.products); SELECT getvariable('m')`, true],
  ['a query without a plan', 'SELECT unknown(1) FROM universe', true],
]

test.for(registryReads)(
  '%s: whether the registry is read comes from the plan, else from the tables named',
  async ([, sql, isRead]) => {
    expect(await registryIsRead(session, ['SELECT 1', sql])).toBe(isRead)
  },
)
