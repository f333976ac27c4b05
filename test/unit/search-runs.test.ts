import { expect, test } from 'vitest'
import { searchRuns } from '../../src/trust/lookahead/masked-intervals.ts'
import type { CutStory, Trial } from '../../src/trust/lookahead/runs.ts'

const cutoffs = ['first', 'second', 'third', 'fourth', 'fifth']

/** Searches runs of a function, of which those at some cut-offs show a leak; returns the cut-offs that were examined. */
async function examinedOf(leaking: readonly string[]): Promise<readonly string[]> {
  const stories: CutStory[] = []
  // Casts: of a trial a search reads its stories, and that a function has no digest.
  const trial = { stories, subject: { kind: 'function' } } as unknown as Trial
  const examined: string[] = []
  let counted = 0
  await searchRuns(
    trial,
    cutoffs.map((cutoff) => ({ cutoff, world: { as_of: cutoff } })),
    {
      enough: 3,
      onRun: () => counted++,
      examine: async ({ cutoff }) => {
        examined.push(cutoff)
        if (leaking.includes(cutoff)) stories.push({ rounding: false } as CutStory)
      },
    },
  )
  expect(counted).toBe(examined.length)
  return examined
}

test('every run is examined until one shows a leak', async () => {
  expect(await examinedOf([])).toEqual(cutoffs)
  expect(await examinedOf(['fourth'])).toEqual(cutoffs.slice(0, 4))
  expect(await examinedOf(['fifth'])).toEqual(cutoffs)
})

test('after a leak at the first run as many are examined as its cause needs', async () => {
  expect(await examinedOf(['first'])).toEqual(cutoffs.slice(0, 3))
})
