import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bridge, intersect, minus, union, type Window } from '../../src/base/windows.ts'

const span = 64
const windows = fc.array(
  fc
    .tuple(fc.integer({ min: 0, max: span }), fc.integer({ min: 0, max: span }))
    .map(([since, until]) => ({ since, until })),
  { maxLength: 12 },
)

/** The twin: one bit per instant. */
function bitmap(list: readonly Window[]): boolean[] {
  return Array.from({ length: span }, (_, i) => list.some((w) => w.since <= i && i < w.until))
}

function proper(list: readonly Window[]): void {
  for (const [i, window] of list.entries()) {
    expect(window.since).toBeLessThan(window.until)
    const next = list[i + 1]
    if (next) expect(window.until).toBeLessThan(next.since)
  }
}

test('the algebra agrees with a bitmap and its results are sorted, disjoint, apart', () => {
  fc.assert(
    fc.property(windows, windows, (a, b) => {
      const left = bitmap(a)
      const right = bitmap(b)
      for (const [got, expected] of [
        [union([...a, ...b]), left.map((bit, i) => bit || right[i] === true)],
        [minus(a, b), left.map((bit, i) => bit && right[i] === false)],
        [intersect(a, b), left.map((bit, i) => bit && right[i] === true)],
      ] as const) {
        proper(got)
        expect(bitmap(got)).toEqual(expected)
      }
    }),
    { numRuns: 1000 },
  )
})

test('bridge closes holes up to the given size and no others', () => {
  const given = [
    { since: 0, until: 2 },
    { since: 5, until: 6 },
    { since: 10, until: 11 },
  ]
  expect(bridge(given, 3)).toEqual([
    { since: 0, until: 6 },
    { since: 10, until: 11 },
  ])
  expect(bridge(given, 2)).toEqual(given)
  expect(bridge(given, 4)).toEqual([{ since: 0, until: 11 }])
})
