import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countDigits, listRoundings, matcherOf, type Rounding } from '../../src/trust/dating/value-matcher.ts'

const isMatch = (rounding: Rounding | null, cell: number, stored: number): boolean => {
  const matcher = matcherOf(rounding)
  return matcher.classesOf(stored).includes(matcher.classOf(cell))
}
const number = fc.double({ min: -1e9, max: 1e9, noNaN: true })

describe('rounded values', () => {
  test('a number matches what it was rounded to, by digits behind the point', () => {
    fc.assert(
      fc.property(number, fc.integer({ min: 0, max: 5 }), (stored, digits) => {
        expect(isMatch({ kind: 'decimals', digits }, Number(stored.toFixed(digits)), stored)).toBe(true)
        const further = Number(stored.toFixed(digits)) + 2 * 10 ** -digits
        expect(isMatch({ kind: 'decimals', digits }, further, stored)).toBe(false)
      }),
    )
  })

  test('a number matches what it was rounded to, by significant digits', () => {
    fc.assert(
      fc.property(number, fc.integer({ min: 1, max: 15 }), (stored, digits) => {
        expect(isMatch({ kind: 'significant', digits }, Number(stored.toPrecision(digits)), stored)).toBe(true)
      }),
    )
  })

  test('a number half way between two matches both, for programs round it differently', () => {
    const tenths: Rounding = { kind: 'decimals', digits: 1 }
    expect([2.2, 2.3, 2.4].map((cell) => isMatch(tenths, cell, 2.25))).toEqual([true, true, false])
    const two: Rounding = { kind: 'significant', digits: 2 }
    expect([2.2, 2.3, 2.4].map((cell) => isMatch(two, cell, 2.25))).toEqual([true, true, false])
  })

  test.each([
    [1.25, { decimals: 2, significant: 3 }],
    [-0.001, { decimals: 3, significant: 1 }],
    [123_000, { decimals: -3, significant: 3 }],
    [1e-7, { decimals: 7, significant: 1 }],
    [2.5e21, { decimals: -20, significant: 2 }],
    [0, undefined],
  ])('the digits of %d are counted', (value, digits) => {
    expect(countDigits(value)).toEqual(digits)
  })

  const stored = [1234.567_89, 2.345_678_9, 77.123_456_7, 901_234.5, 0.012_345_678]

  test.each([
    [(value: number) => Number(value.toFixed(2)), { kind: 'decimals', digits: 2 }],
    [(value: number) => Number(value.toPrecision(4)), { kind: 'significant', digits: 4 }],
    [Math.fround, { kind: 'single', digits: null }],
  ] as const)(
    'the first way of rounding by which all numbers match is the one that was used, case %#',
    (rounded, used) => {
      const cells = stored.map(rounded)
      const fits = (way: Rounding | null) => cells.every((cell, n) => isMatch(way, cell, stored[n] ?? 0))
      expect([...listRoundings(() => cells)].find(fits)).toEqual(used)
    },
  )

  test('the commonest number of digits is tried, too, for one number may have been changed', () => {
    const cells = [...stored.map((value) => Number(value.toFixed(2))), 5.123_456_789]
    expect([...listRoundings(() => cells)]).toContainEqual({ kind: 'decimals', digits: 2 })
  })
})
