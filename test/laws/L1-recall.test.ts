// @module-tag full
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tryFutures } from '../../src/trust/lookahead/trial.ts'
import { openWorlds, querySubject } from '../../src/trust/lookahead/world.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { honest, leaks } from '../helpers/leaks.ts'
import { noiseAndRisingSupply } from '../helpers/lakes/noise-and-rising-supply.ts'
import { sample } from '../helpers/tiers.ts'

const lake = lakeOfFile(noiseAndRisingSupply)
let database: Engine

beforeAll(async () => {
  database = await openWorlds(lake.root, { threads: 1 })
})

afterAll(() => {
  database.close()
})

/** What running tells, whatever the plan says. */
async function run(sql: string): ReturnType<typeof tryFutures> {
  using session = await database.session()
  const input = { ts: 'ts', labels: [], cutoffs: 50, tolerance: 1e-12 }
  return await tryFutures(querySubject(session, sql), input, [], { alone: true, isProved: async () => false })
}

describe('recall', () => {
  test('the list of planted leaks has at least forty kinds', () => {
    expect(new Set(leaks.map(([, sql]) => sql)).size).toBeGreaterThanOrEqual(40)
  })

  test.for(sample(leaks, leaks.length))(
    'the planted leak %s is found, with what it depends on',
    async ([what, sql, turns]) => {
      const tested = await run(sql)
      expect(tested, what).toMatchObject({ verdict: 'leak', depends_on: expect.arrayContaining([...turns]) })
    },
  )

  // Each runs a hundred times.
  test.for(sample(honest, 5, Math.ceil(honest.length / 3)))('the honest query %s is clean', async ([what, sql]) => {
    const tested = await run(sql)
    expect(tested, what).toMatchObject({ verdict: 'clean', differing: 0 })
    if (tested !== 'unsteady') expect(tested.changed, what).toBeGreaterThan(20)
  })
})
