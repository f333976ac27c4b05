import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MatchingCells } from '../../src/trust/dating/interval-sweep.ts'
import {
  CellList,
  type ClockInterval,
  compareStored,
  findAnswer,
  findKnowledge,
  type KeyHistory,
  type KnowledgeClock,
  type StoredValue,
  type TableCell,
} from '../../src/trust/dating/knowledge-intervals.ts'
import { matcherOf } from '../../src/trust/dating/value-matcher.ts'

const exact = matcherOf(null)
const clocks: readonly KnowledgeClock[] = ['availableAt', 'observedAt']

/** The answer by the definition: of all values that are known the largest, and NULL if it is too old. */
function answerByDefinition(
  { values, isNullBefore }: KeyHistory,
  cell: TableCell,
  clock: KnowledgeClock,
  moment: number,
): StoredValue['value'] {
  let answer: StoredValue | undefined
  for (const value of values) {
    if (value.availableAt > cell.at || value[clock] > moment) continue
    if (answer === undefined || compareStored(answer, value) <= 0) answer = value
  }
  if (answer === undefined) return isNullBefore ? null : undefined
  return answer.end < cell.staleBefore ? null : answer.value
}

function intervalsOf(history: KeyHistory, cells: readonly TableCell[], clock: KnowledgeClock, matcher = exact) {
  const intervals = cells.map((): ClockInterval[] => [])
  const list = new CellList()
  for (const cell of cells) list.add(cell)
  const ignore = (): void => undefined
  const push = (n: number, from: number, until: number): void => void intervals[n]?.push({ from, until })
  // The other clock is asked, too, as the dating of a table does: both may share their questions.
  findKnowledge(history, list, matcher, { availableAt: ignore, observedAt: ignore, [clock]: push })
  return new Map(cells.map((cell, n) => [cell, intervals[n] ?? []]))
}

const value = fc.record({
  t: fc.integer({ min: 0, max: 8 }),
  lag: fc.integer({ min: 0, max: 6 }),
  observedAt: fc.integer({ min: 0, max: 20 }),
  value: fc.oneof(
    fc.integer({ min: 1, max: 3 }),
    fc.constant(null),
    fc.constantFrom('active', 'inactive'),
    fc.constant(undefined),
  ),
})
const history = fc.record({ values: fc.array(value, { maxLength: 12 }), isNullBefore: fc.boolean() }).map(
  ({ values, isNullBefore }): KeyHistory => ({
    isNullBefore,
    values: values
      .map(({ t, lag, ...rest }) => ({ ...rest, t, end: t + 1, availableAt: t + 1 + lag }))
      .toSorted(compareStored),
  }),
)
const table = fc.record({
  cells: fc.array(
    fc.record({
      at: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.constant(Infinity)),
      value: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constant(null), fc.constantFrom('active', 'inactive')),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  maxAge: fc.oneof(fc.constant(undefined), fc.integer({ min: 0, max: 6 })),
})

describe('intervals of knowledge', () => {
  test('a cell matches exactly in its intervals, at every instant of both clocks', () => {
    fc.assert(
      fc.property(history, table, (known, { cells: drawn, maxAge }) => {
        const isAged = maxAge !== undefined && known.isNullBefore
        const cells = drawn.map(({ at, value }, n): TableCell => {
          const staleBefore = isAged && at < Infinity ? at - maxAge : -Infinity
          return { row: n + 1, at, value, staleBefore }
        })
        for (const clock of clocks) {
          const found = intervalsOf(known, cells, clock)
          for (const cell of cells) {
            const intervals = found.get(cell) ?? []
            for (let moment = -1; moment < 25; moment++) {
              const covering = intervals.filter(({ from, until }) => from <= moment && moment < until).length
              const answer = answerByDefinition(known, cell, clock, moment)
              expect(covering).toBe(answer === cell.value ? 1 : 0)
              expect(findAnswer(known, cell, clock, moment)).toBe(answer)
            }
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  test('ranges of all cells are the instants at which each of them matches', () => {
    const interval = fc.record({ from: fc.integer({ min: -1, max: 9 }), length: fc.integer({ min: 1, max: 6 }) })
    fc.assert(
      fc.property(fc.array(interval, { minLength: 1, maxLength: 5 }), (drawn) => {
        const cells = drawn.map(({ from, length }) => ({ from: from === -1 ? -Infinity : from, until: from + length }))
        const matching = new MatchingCells()
        for (const cell of cells) matching.add(cell.from, cell.until)
        const countAt = (moment: number) => cells.filter(({ from, until }) => from <= moment && moment < until).length
        const ranges = matching.rangesOf(cells.length)
        const counts = Array.from({ length: 20 }, (_, moment) => countAt(moment - 2))
        for (const [n, count] of counts.entries()) {
          const isInside = ranges.some(({ from, until }) => from <= n - 2 && n - 2 < until)
          expect(isInside).toBe(count === cells.length)
        }
        const best = matching.best()
        expect(best.matching).toBe(Math.max(...counts))
        expect(countAt(Math.max(best.at, -2))).toBe(best.matching)
      }),
    )
  })

  test('two ranges that touch are one', () => {
    const matching = new MatchingCells()
    matching.add(1, 3)
    matching.add(3, Infinity)
    expect(matching.rangesOf(1)).toEqual([{ from: 1, until: Infinity }])
  })
})
