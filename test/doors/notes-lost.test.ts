// @module-tag full
import { execFile } from 'node:child_process'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noted, openLake } from '../../src/index.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { need } from '../helpers/needs.ts'
import { thirtyProducts } from '../helpers/lakes/late-days-and-products.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import { session } from './command-line.ts'
import { library, mcp, serve } from './programs.ts'
import type { Ask, Door, Place } from './question.ts'
import { makeFolder } from '../helpers/folders.ts'

/*
 * Notes that the engine has no memory for. In these lakes one of the macros that find out notes asks for 4 GB at once,
 * more than any of these engines may take: the answer is given, and a note says that others are missing. `sql` on a
 * large machine may take as much, so it is asked as a session, which finds out notes in the same way.
 */

const supply = 'supply/current_pit'
const lost = { code: 'unnoted', subject: 'too little memory' }
const words = 'notes could not be worked out: too little memory'
const decisions = (asset: string): string =>
  `WITH d AS (SELECT '${asset}' AS asset, TIMESTAMPTZ '2024-03-05 00:00:00+00' AS ts)`
const nothingFound: Ask = { sql: `SELECT v FROM points WHERE asset = 'BTX'` }

const huge = `repeat('x', 4000000000 + CAST(random() AS BIGINT))`
const greedy = {
  question_notes: `question_notes(asked) AS TABLE SELECT 'unnoted' AS code, ${huge} AS subject, NULL AS figures, [] AS near, [] AS there, '' AS words`,
  question_asked: `question_asked(statements, parameters := '{}') AS TABLE SELECT ${huge} AS asked`,
  question_reach: `question_reach(decisions, asked_metrics, asked_interval) AS TABLE SELECT ${huge} AS last, '[]' AS assets, false AS late`,
} as const
type Greedy = keyof typeof greedy

const home = makeFolder('lost')
const lakes: Record<Greedy, Place> = {
  question_notes: { home, root: join(home, 'notes') },
  question_asked: { home, root: join(home, 'asked') },
  question_reach: { home, root: join(home, 'reach') },
}
beforeAll(async () => {
  const point = { metric: supply, asset: 'BTC', interval: '24h', currency: 'native', v: 1 } as const
  const at = { t: '2024-03-01T00:00:00Z', available_at: '2024-03-02T00:30:00Z' }
  for (const [name, { root }] of Object.entries(lakes)) {
    await makeLake(root, [
      { at: '2024-04-01T12:00:00Z', points: [{ ...point, ...at }], tables: thirtyProducts(['BTC']) },
    ])
    await makeViews(root)
    const macro = `CREATE OR REPLACE MACRO ${greedy[name as Greedy]}`
    appendFileSync(inLake(root, places.script), `\n${macro};\n`)
    using engine = await Engine.open(inLake(root, places.database))
    await engine.run(macro)
  }
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

test.each<readonly [string, (place: Place) => Promise<Door>]>([
  ['session', session],
  ['serve', serve],
  ['mcp', mcp],
  ['TypeScript', library],
])('notes that the engine has no memory for are named at %s', async (_, open) => {
  await using door = await open(lakes.question_notes)
  const said = await door.ask({ ask: nothingFound, knowledge: {} })
  expect(said.refused).toBeUndefined()
  expect(said.rows).toEqual([])
  expect(said.notes).toEqual([words])
})

test.each<readonly [Greedy, string]>([
  ['question_asked', `SELECT v FROM points WHERE asset = 'BTX'`],
  ['question_asked', `SELECT count(*) AS n FROM points WHERE asset = 'BTX'`],
  ['question_asked', `${decisions('BTC')} FROM pit_join('d', '${supply}', '24h')`],
  ['question_reach', `${decisions('BTC')} FROM pit_join('d', '${supply}', '24h')`],
  ['question_reach', `${decisions('BTC')} FROM pit_join('d', '${supply}', '24h', unresolved := 'null') WHERE v > 1`],
])('a lake whose %s has no memory: %s is answered, and the missing notes are named once', async (name, sql) => {
  const lake = await openLake(lakes[name].root)
  try {
    await lake.sql(sql)
    expect(noted(lake)).toEqual(expect.arrayContaining([lost]))
    expect(noted(lake).filter(({ code }) => code === 'unnoted')).toEqual([lost])
  } finally {
    await lake.close()
  }
})

test('a universe without members whose notes have no memory: they are named once', async () => {
  const lake = await openLake(lakes.question_asked.root)
  try {
    const calendar = { since: '2024-03-05', until: '2024-03-06', step: '1d' }
    await lake.panel({ calendar, universe: "status = 'activ'", metrics: [supply] })
    expect(noted(lake).filter(({ code }) => code === 'unnoted')).toEqual([lost])
  } finally {
    await lake.close()
  }
})

test.for(['question_notes', 'question_asked', 'question_reach'] as const)(
  'notes lost by %s are named in Python',
  async (name, context) => {
    const sql =
      name === 'question_reach' ? `${decisions('BTC')} FROM pit_join('d', '${supply}', '24h')` : nothingFound.sql
    const code = `import json, sys, warnings, pitlake
warnings.simplefilter("ignore")
lake = pitlake.open(sys.argv[1], memory="512MB")
lake.sql(sys.argv[2]).df()
print(json.dumps(lake.notes))`
    const env = { ...process.env, PYTHONPATH: fileURLToPath(new URL('../../python/', import.meta.url)) }
    const ran = await promisify(execFile)(need(context, 'peers'), ['-c', code, lakes[name].root, sql], { env })
    expect(JSON.parse(ran.stdout)).toEqual([words])
  },
)
