import { expect, test } from 'vitest'
import { removeRows, type RowRange } from '../../src/trust/reproduction/removal.ts'

const rowsIn = (kept: readonly RowRange[]): number[] =>
  kept.flatMap(([from, until]) => Array.from({ length: until - from }, (_, nth) => from + nth))

/** Whether all of these rows are kept. */
const needs =
  (...wanted: readonly number[]) =>
  async (kept: readonly RowRange[]): Promise<boolean> =>
    wanted.every((row) => rowsIn(kept).includes(row))

test.for([
  [1, [0]],
  [7, [6]],
  [300, [0, 151, 299]],
  [1000, [400, 401, 402]],
] as const)('of %i rows only those stay that are needed', async ([count, wanted]) => {
  const { kept, tries } = await removeRows(count, 200, needs(...wanted))
  expect(rowsIn(kept)).toEqual(wanted)
  expect(tries).toBeLessThan(200)
})

test('rows of which none is needed all go at the first try', async () => {
  expect(await removeRows(1_000_000, 50, needs())).toEqual({ kept: [], tries: 1 })
})

test('it ends after so many tries with rows of which it still holds', async () => {
  let calls = 0
  const holds = needs(3, 500, 900)
  const { kept, tries } = await removeRows(1000, 6, async (rows) => {
    calls++
    return await holds(rows)
  })
  expect([calls, tries]).toEqual([6, 6])
  expect(await holds(kept)).toBe(true)
})

test('an empty table needs no try', async () => {
  expect(await removeRows(0, 5, needs())).toEqual({ kept: [], tries: 0 })
})
