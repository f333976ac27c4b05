import { describe, expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { didYouMean, nearPaths, spanHint, suggestion } from '../../src/base/suggestion.ts'
import { intervals } from '../../src/base/time.ts'

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

test('at most three suggestions contain the typed text, and nonsense gives none', () => {
  const found = nearPaths('count', paths)
  expect(found).toHaveLength(3)
  for (const path of found) expect(path).toContain('count')
  for (const typed of ['zzzz', '', 'x', '*', 'sopr volume']) expect(nearPaths(typed, paths)).toEqual([])
})

test('who holds every word as it was typed comes before who holds one like it, then the shorter path', () => {
  const known = ['market/price_pit', 'market/prices_of_everything_pit', 'market/priced_pit', 'a/prise_pit']
  expect(nearPaths('prices', known)).toEqual([
    'market/prices_of_everything_pit',
    'market/price_pit',
    'market/priced_pit',
  ])
  expect(nearPaths('price', known)).toEqual([
    'market/price_pit',
    'market/priced_pit',
    'market/prices_of_everything_pit',
  ])
})

test('suggestions are joined to one question', () => {
  expect(didYouMean(['a'], 'see the list')).toBe('did you mean `a`?')
  expect(didYouMean(['a', 'b', 'c'], 'see the list')).toBe('did you mean `a`, `b` or `c`?')
  expect(didYouMean([], 'see the list')).toBe('see the list')
})

test.each([
  ['1d', '24h'],
  ['day', '24h'],
  ['daily', '24h'],
  ['60m', '1h'],
  ['60min', '1h'],
  ['7d', '1w'],
  ['1M', '1month'],
  ['1m', '10m'],
  ['24', '24h'],
  ['MS', '1month'],
  ['ME', '1month'],
  ['QS', '3month'],
  ['quarterly', '3month'],
  ['3mo', '3month'],
  ['1D', '24h'],
  ['15min', '10m'],
  ['2d', '24h'],
  ['soon', undefined],
])('an interval of the same length is meant: %s → %s', (typed, meant) => {
  expect(suggestion(typed, intervals)).toBe(meant)
})

describe('the nearest word', () => {
  const shells = ['bash', 'zsh', 'fish']

  test.each([
    ['fsh', 'fish'],
    ['fih', 'fish'],
    ['ifsh', 'fish'],
    ['fissh', 'fish'],
    ['fisch', 'fish'],
    ['FISH', 'fish'],
    ['zhs', 'zsh'],
    ['zs', 'zsh'],
    ['zssh', 'zsh'],
    ['bahs', 'bash'],
    ['bsh', 'bash'],
    ['bassh', 'bash'],
    ['dash', 'bash'],
    ['powershell', undefined],
    ['', undefined],
  ])('%s: %s is meant', (typed, meant) => expect(suggestion(typed, shells)).toBe(meant))

  test.each(shells)('each slip in %s suggests that shell, whatever the order of the shells', (shell) => {
    const places = Array.from(shell, (_, at) => at)
    const slips = [
      ...places.map((at) => shell.slice(0, at) + shell.slice(at + 1)),
      ...places.map((at) => shell.slice(0, at) + shell.slice(at, at + 1).repeat(2) + shell.slice(at + 1)),
      ...places.slice(1).map((at) => shell.slice(0, at - 1) + shell[at] + shell[at - 1] + shell.slice(at + 1)),
    ]
    for (const order of [shells, shells.toReversed()])
      expect(slips.map((slip) => suggestion(slip, order))).toEqual(slips.map(() => shell))
  })

  test('of words that share as many letters the one that begins alike is meant, then the first', () => {
    expect(suggestion('cart', ['dart', 'care'])).toBe('care')
    expect(suggestion('ab', ['xb', 'yb'])).toBe('xb')
  })
})

test.each([
  ['15min', false, '15m'],
  ['15 mins', false, '15m'],
  ['1D', false, '1d'],
  ['H', false, '1h'],
  ['MS', true, '1month'],
  ['ME', true, '1month'],
  ['2mo', true, '2month'],
  ['2Q', true, '6month'],
  ['quarter', false, undefined],
  ['MS', false, undefined],
  ['15', false, undefined],
  ['soon', true, undefined],
])('a length of time is spelt as here: %s (months: %s) → %s', (typed, months, meant) => {
  expect(spanHint(typed, months)).toBe(meant && `did you mean \`${meant}\`?`)
})
