import { expect, test } from 'vitest'
import { comparedLine, compareFigure } from '../bench/compared.ts'

const base = [1, 1.1, 1.2, 1.05, 1.3]

test('a figure whose median and smallest value are more than a tenth above the base is slower', () => {
  const figure = { name: 'status', base, ours: base.map((seconds) => seconds * 1.12) }
  expect(compareFigure(figure).slower).toBe(true)
  expect(comparedLine(figure)).toBe(
    'status: 1.10 s before, 1.23 s now, ratio 1.12 (smallest 1.12), SLOWER by more than 10 %',
  )
})

test('a figure of which only the median or only the smallest value is above the base is kept', () => {
  expect(compareFigure({ name: 'noise', base, ours: [1, 1.4, 1.5, 1.6, 1.7] }).slower).toBe(false)
  expect(compareFigure({ name: 'noise', base, ours: [1.12, 1.12, 1.12, 1.13, 1.13] }).slower).toBe(false)
})

test('a figure a tenth above the base is kept', () => {
  expect(compareFigure({ name: 'edge', base: [10, 10, 10], ours: [11, 11, 11] }).slower).toBe(false)
})
