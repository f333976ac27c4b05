import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alreadySaid, askedAgain, layOver } from '../../src/lake/ledger/coverage.ts'
import type { CoverageRow } from '../../src/lake/ledger/entry.ts'
import { coverageRow } from '../helpers/lakes/drafts.ts'

const span = 40
const row = fc
  .record({
    since: fc.nat(span - 1),
    length: fc.integer({ min: 1, max: 15 }),
    state: fc.constantFrom('covered', 'empty', 'failed'),
    reason: fc.constantFrom(null, 'pending'),
    asked_at: fc.nat(3),
  })
  .map(({ since, length, ...rest }) => coverageRow(1, since, since + length, rest as Partial<CoverageRow>))

function apply(live: readonly CoverageRow[], next: CoverageRow, change: typeof layOver): CoverageRow[] {
  const { remove, add } = change(live, next)
  return [...live.filter((held) => !remove.includes(held)), ...add].toSorted((a, b) => a.since - b.since)
}

const said = (live: readonly CoverageRow[], at: number): string | undefined => {
  const held = live.find((r) => r.since <= at && at < r.until)
  return held && `${held.state} ${held.reason}`
}

describe('laying a window over what is known', () => {
  it('says at every instant what was said last, in sorted disjoint rows', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 12 }), (rows) => {
        let live: CoverageRow[] = []
        const expected = new Map<number, string>()
        for (const next of rows) {
          expect(alreadySaid(live, next)).toBe(
            Array.from({ length: next.until - next.since }, (_, i) => next.since + i).every(
              (at) => said(live, at) === `${next.state} ${next.reason}`,
            ),
          )
          live = apply(live, next, layOver)
          for (let at = next.since; at < next.until; at++) expected.set(at, `${next.state} ${next.reason}`)
          for (let at = 0; at < span + 15; at++) expect(said(live, at)).toBe(expected.get(at))
          for (let i = 1; i < live.length; i++)
            expect(live[i]?.since).toBeGreaterThanOrEqual(live[i - 1]?.until ?? Number.POSITIVE_INFINITY)
        }
      }),
    )
  })
  it('keeps a daily top-up at one row', () => {
    let live: CoverageRow[] = []
    for (let day = 0; day < 365; day++) live = apply(live, coverageRow(1, day - 3, day + 1, { asked_at: day }), layOver)
    expect(live).toEqual([coverageRow(1, -3, 365, { asked_at: 364 })])
  })
  it('a window joins equal neighbours on both sides, and the latest request counts', () => {
    const later = coverageRow(1, 10, 20, { asked_at: 9, request: 'later' })
    for (const [first, second] of [
      [later, coverageRow(1, 0, 10, { asked_at: 5 })],
      [coverageRow(1, 0, 10, { asked_at: 5 }), later],
      [{ ...later, since: 0, until: 10 }, coverageRow(1, 10, 20, { asked_at: 5 })],
    ] as const)
      expect(apply([first], second, layOver)).toEqual([{ ...later, since: 0, until: 20 }])
  })
  it('takes the place of a row that differs in the reason, the time or the request alone', () => {
    const held = coverageRow(1, 0, 10, { reason: 'gap', request: 'a' })
    for (const change of [{ reason: 'pending' }, { reason: null }, { asked_at: 1001 }, { request: 'b' }]) {
      const row = { ...held, ...change }
      expect(layOver([held], row)).toEqual({ remove: [held], add: [row] })
    }
    expect(layOver([held], held)).toEqual({ remove: [], add: [] })
  })
  it('joins two windows of one request that say the same, whatever they say', () => {
    const failed = coverageRow(1, 0, 10, { state: 'failed', reason: 'torn', request: 'a' })
    expect(apply([failed], { ...failed, since: 10, until: 20 }, layOver)).toEqual([{ ...failed, until: 20 }])
    const other = { ...failed, since: 10, until: 20, request: 'b' }
    expect(apply([failed], other, layOver)).toEqual([failed, other])
  })
  it('leaves a neighbour that says something else in its version', () => {
    const held = [coverageRow(1, 0, 10, { state: 'empty' }), coverageRow(1, 20, 30, { reason: 'gap' })]
    const between = coverageRow(1, 10, 20)
    expect(layOver(held, between)).toEqual({ remove: [], add: [between] })
  })
  it('empty windows requested at different times stay apart', () => {
    const first = coverageRow(1, 0, 10, { state: 'empty', asked_at: 5 })
    const second = coverageRow(1, 10, 20, { state: 'empty', asked_at: 6 })
    expect(apply([first], second, layOver)).toEqual([first, second])
  })
})

describe('asking again', () => {
  it('gives the same rows in whatever order it is noted', () => {
    const held = [coverageRow(1, 0, 30, { state: 'empty', asked_at: 0 })]
    const touch = fc.tuple(fc.nat(29), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 3 }))
    fc.assert(
      fc.property(fc.array(touch, { maxLength: 5 }), (touches) => {
        const rows = touches.map(([since, length, asked_at]) =>
          coverageRow(1, since, since + length, { state: 'empty', asked_at }),
        )
        const times = (order: CoverageRow[]): (number | undefined)[] => {
          const live = order.reduce((now, next) => apply(now, next, askedAgain), held)
          return Array.from({ length: 30 }, (_, at) => live.find((r) => r.since <= at && at < r.until)?.asked_at)
        }
        expect(times(rows)).toEqual(times(rows.toReversed()))
      }),
    )
  })
  it('of two equal answers in one second the request of the first stays', () => {
    const held = coverageRow(1, 0, 9, { state: 'empty', asked_at: 7, request: 'first' })
    expect(askedAgain([held], { ...held, request: 'second' })).toEqual({ remove: [], add: [] })
    const later = { ...held, asked_at: 8, request: 'second' }
    expect(askedAgain([held], later)).toEqual({ remove: [held], add: [later] })
  })
  it('leaves plainly covered windows alone', () => {
    expect(askedAgain([coverageRow(1, 0, 9)], coverageRow(1, 0, 9, { asked_at: 9999 }))).toEqual({
      remove: [],
      add: [],
    })
  })
})
