import { expect, test } from 'vitest'
import { brief, bytes, instant, monthName, percent, several, span } from '../../src/base/figures.ts'

test.each<[number, number, string]>([
  [1, 0, 'none'],
  [0, 5, '0 %'],
  [5, 5, '100 %'],
  [6, 5, '100 %'],
  [9999, 10_000, '99.99 %'],
  [99_999, 100_000, '> 99.99 %'],
  [1, 10_000, '0.01 %'],
  [1, 10_001, '< 0.01 %'],
  [99, 100, '99.0 %'],
  [9901, 10_000, '99.01 %'],
  [1, 100, '1.0 %'],
  [99, 10_000, '0.99 %'],
  [2, 3, '66.6 %'],
])('%i of %i are %s', (part, all, words) => expect(percent(part, all)).toBe(words))

test.each<[number, string]>([
  [9999, '9,999'],
  [10_000, '10.0 k'],
  [100_000, '100 k'],
  [1_000_000, '1.00 M'],
  [12_345_678, '12.3 M'],
  [1_234_567_890, '1.23 G'],
])('%i is %s in a small place', (count, words) => expect(brief(count)).toBe(words))

test.each<[number, string]>([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [99_949, '99.9 kB'],
  [100_000, '100 kB'],
  [1_000_000, '1.0 MB'],
  [2e15, '2000 TB'],
])('%i bytes are shown as %s', (count, words) => expect(bytes(count)).toBe(words))

test.each<[number, string]>([
  [0, '0 s'],
  [9.4, '9.4 s'],
  [59, '59 s'],
  [60, '1 min'],
  [61, '1 min 1 s'],
  [3599, '59 min'],
  [3600, '1 h'],
  [3660, '1 h 1 min'],
  [86_399, '23 h'],
  [86_400, '1 d'],
  [-90_000, '-1 d 1 h'],
  [20 * 86_400 + 3600, '20 d'],
])('%d seconds are shown as %s', (seconds, words) => expect(span(seconds)).toBe(words))

test('instants, months and counts as people write them', () => {
  expect([instant(0), instant(86_400), instant(86_460)]).toEqual(['1970-01-01', '1970-01-02', '1970-01-02 00:01'])
  expect([monthName(0), monthName(11), monthName(12), monthName(-1)]).toEqual([
    '1970-01',
    '1970-12',
    '1971-01',
    '1969-12',
  ])
  expect([several(1, 'file'), several(0, 'file'), several(1200, 'series', 'series')]).toEqual([
    '1 file',
    '0 files',
    '1,200 series',
  ])
})
