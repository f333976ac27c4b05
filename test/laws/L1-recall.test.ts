import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tryFutures } from '../../src/lookahead/trial.ts'
import { openWorlds, querySubject } from '../../src/lookahead/world.ts'
import type { Engine } from '../../src/store/engine.ts'
import { honest, leaks, makeLeakLake } from '../helpers/leaks.ts'

let lake: Awaited<ReturnType<typeof makeLeakLake>>
let database: Engine

beforeAll(async () => {
  lake = await makeLeakLake()
  database = await openWorlds(lake.root, { threads: 1 })
})

afterAll(() => {
  database.close()
  lake.remove()
})

/** What running tells, whatever the plan says. */
async function run(sql: string): ReturnType<typeof tryFutures> {
  using session = await database.session()
  const input = { ts: 'ts', labels: [], cutoffs: 50, tolerance: 1e-12 }
  return await tryFutures(querySubject(session, sql), input, [], { alone: true, isProved: async () => false })
}

describe('recall', () => {
  test('there are more than forty kinds of planted leaks', () => {
    expect(new Set(leaks.map(([, sql]) => sql)).size).toBeGreaterThanOrEqual(40)
  })

  // A third of them, unless somebody wants all.
  const all = process.env['PITLAKE_RECALL'] === '1'
  test.for(leaks.filter((_, n) => all || n % 3 === 0))('finds %s', async ([what, sql, turns]) => {
    const tested = await run(sql)
    expect(tested, what).toMatchObject({ verdict: 'leak', depends_on: expect.arrayContaining([...turns]) })
  })

  // Each runs a hundred times.
  test.for(honest.filter((_, n) => all || n % 3 === 0))('passes %s', async ([what, sql]) => {
    const tested = await run(sql)
    expect(tested, what).toMatchObject({ verdict: 'clean', differing: 0 })
    if (tested !== 'unsteady') expect(tested.changed, what).toBeGreaterThan(20)
  })
})
