import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { didYouMean, nearPaths } from '../../src/suggestion.ts'

const paths = [...loadCatalogue().endpoints.keys()]

test.each([
  ['sopr', 'indicators/sopr_adjusted_pit'],
  ['SOPR', 'indicators/sopr_adjusted_pit'],
  ['sorp_adjusted', 'indicators/sopr_adjusted_pit'],
  ['indicators/sopr', 'indicators/sopr_adjusted_pit'],
  ['indicators/sopr_adjusted', 'indicators/sopr_adjusted_pit'],
  ['addresses active', 'addresses/active_count_pit'],
  ['suply/curent_pit', 'supply/current_pit'],
  ['supply/curent_pit', 'supply/current_pit'],
])('%s: %s comes first', (typed, path) => expect(nearPaths(typed, paths)[0]).toBe(path))

test('at most three, each holding what was typed; nonsense has none', () => {
  const found = nearPaths('count', paths)
  expect(found).toHaveLength(3)
  for (const path of found) expect(path).toContain('count')
  for (const typed of ['zzzz', '', 'x', '*', 'sopr volume']) expect(nearPaths(typed, paths)).toEqual([])
})

test('the advice in words', () => {
  expect(didYouMean(['a'], 'see the list')).toBe('did you mean `a`?')
  expect(didYouMean(['a', 'b', 'c'], 'see the list')).toBe('did you mean `a`, `b` or `c`?')
  expect(didYouMean([], 'see the list')).toBe('see the list')
})
