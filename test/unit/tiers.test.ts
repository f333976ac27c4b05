import { describe, expect, test } from 'vitest'
import { isFullTier, rounds, sample, seeds } from '../helpers/tiers.ts'

const cases = Array.from({ length: 97 }, (_, nth) => nth)

describe('a sample of cases', () => {
  test('has the wanted number of cases, each once, in their order, with both ends', () => {
    for (const wanted of [2, 3, 14, 96]) {
      const drawn = sample(cases, wanted, wanted)
      expect(new Set(drawn).size).toBe(wanted)
      expect(drawn.toSorted((a, b) => a - b)).toEqual(drawn)
      expect([drawn[0], drawn.at(-1)]).toEqual([0, 96])
    }
  })

  test('is the same in every run, and the whole list if it is short', () => {
    expect(sample(cases, 5, 5)).toEqual([0, 24, 48, 72, 96])
    expect(sample(cases, 1, 1)).toEqual([0])
    expect(sample([1, 2], 5, 5)).toEqual([1, 2])
    expect(sample(cases, 3)).toHaveLength(isFullTier ? 17 : 3)
    expect(sample(cases, 40)).toHaveLength(40)
  })
})

test('rounds and seeds follow the environment variable, else the tier', () => {
  process.env['PITLAKE_TIERS_TEST'] = '3'
  expect([rounds('PITLAKE_TIERS_TEST', 1, 9), seeds('PITLAKE_TIERS_TEST', 9, 5)]).toEqual([3, [5, 6, 7]])
  delete process.env['PITLAKE_TIERS_TEST']
  expect(rounds('PITLAKE_TIERS_TEST', 1, 9)).toBe(isFullTier ? 9 : 1)
  expect(seeds('PITLAKE_TIERS_TEST', 9)).toHaveLength(isFullTier ? 9 : 1)
})
