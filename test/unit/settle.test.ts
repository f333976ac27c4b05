import { expect, test } from 'vitest'
import { availableAt } from '../../src/catalog/availability.ts'
import type { CoverageRow } from '../../src/lake/ledger/entry.ts'
import { type AskedAt, coverageFromBody, settleFailure, settleWhole } from '../../src/sources/metrics/settle.ts'
import type { BodyResult } from '../../src/sources/points/conversion-types.ts'
import { type Ask, toleranceOf } from '../../src/sources/metrics/plan.ts'
import { parseInstant } from '../../src/base/time.ts'
import { wantedOf } from '../helpers/wanted.ts'

const at = (text: string): number => parseInstant(text) ?? Number.NaN
const settles = { since: at('2019-01-01'), until: at('2020-03-05') }
const wanted = wantedOf({ paths: ['addresses/active_count_pit'] })
const ask: Ask = { ...wanted, interval: '24h', window: null, settles, points: 0, credits: 0 }

const day = (t: number): string => new Date(t * 1000).toISOString().slice(0, 10)
const told = (rows: readonly CoverageRow[]): string[] =>
  rows.map((row) => `${day(row.since)} ${day(row.until)} ${row.state} ${row.reason ?? ''}`.trimEnd())
const askedAt = (text: string): AskedAt => ({ at: at(text), request: 'r', weekStart: 'monday' })

const first = at('2020-03-01')
const last = at('2020-03-04')
const answer = {
  request: 'r',
  series: ask.series.id,
  state: 'ok',
  reason: null,
  points: 4,
  added: 4,
  beyond: 0,
} as const
const found: BodyResult = { ...answer, first, last, addedFirst: first, addedLast: last, missing: [] }

function settled(body: Partial<BodyResult>, since: number | null): string[] {
  const missing = since === null ? [] : [{ since, until: first }]
  return told(coverageFromBody(ask, { ...found, missing, ...body }, null, askedAt('2024-01-01')))
}

const expected = ['2019-01-01 2020-03-01 empty before the first point', '2020-03-01 2020-03-05 covered']

test('the time before the first point is empty, whether the answer was bounded or not', () => {
  expect(settled({}, at('2019-01-01'))).toEqual(expected)
  expect(settled({}, null)).toEqual(expected)
})

test('a hole behind the first point is a gap', () => {
  const missing = [{ since: at('2020-03-02'), until: at('2020-03-03') }]
  expect(settled({ missing }, null)).toEqual([
    expected[0],
    '2020-03-01 2020-03-02 covered',
    '2020-03-02 2020-03-03 covered gap',
    '2020-03-03 2020-03-05 covered',
  ])
})

test('behind the earlier clock stored points are covered, and missing ones are pending', () => {
  const missing = [{ since: at('2020-03-03'), until: at('2020-03-04') }]
  expect(told(coverageFromBody(ask, { ...found, missing }, null, askedAt('2020-03-02T12:00:00')))).toEqual([
    expected[0],
    '2020-03-01 2020-03-03 covered',
    '2020-03-03 2020-03-04 covered pending',
    '2020-03-04 2020-03-05 covered',
  ])
})

// A day is due some minutes after its end.
test.each([
  ['2020-03-04', '2020-03-03'],
  ['2020-03-04T12:00:00', '2020-03-04'],
  ['2020-03-05T00:00:00', '2020-03-04'],
  ['2020-03-05T12:00:00', '2020-03-05'],
])('an answer of %s settles the days before %s and none that was not due yet', (asked, until) => {
  expect(told(settleWhole(ask, 'empty', null, askedAt(asked)))).toEqual([`2019-01-01 ${until} empty`])
  expect(told(settleFailure(ask, 'broken', [], askedAt(asked)))).toEqual([`2019-01-01 ${until} failed broken`])
})

test('an answer of before the first day settles nothing', () => {
  expect(settleWhole(ask, 'empty', null, askedAt('2019-01-01T23:00:00'))).toEqual([])
})

test('a failure takes no knowledge away: only what no earlier answer covers has failed', () => {
  const covered = [
    { since: at('2020-01-01'), until: at('2020-02-01') },
    { since: at('2019-06-01'), until: at('2020-01-01') },
  ]
  expect(told(settleFailure(ask, 'broken', covered, askedAt('2024-01-01')))).toEqual([
    '2019-01-01 2019-06-01 failed broken',
    '2020-02-01 2020-03-05 failed broken',
  ])
})

test('a hole exactly as old as is tolerated is pending, one a second older is a gap', () => {
  const missing = [{ since: at('2020-03-02'), until: at('2020-03-04') }]
  const limit = availableAt(ask.endpoint.rules['24h'], at('2020-03-02'), '24h') + toleranceOf(ask.endpoint, '24h')
  const holes = (now: number): string[] =>
    told(coverageFromBody(ask, { ...found, missing }, null, { at: now, request: 'r', weekStart: 'monday' })).filter(
      (row) => / (gap|pending)/.test(row),
    )
  expect(holes(limit)).toEqual(['2020-03-02 2020-03-04 covered pending'])
  expect(holes(limit + 1)).toEqual(['2020-03-02 2020-03-03 covered gap', '2020-03-03 2020-03-04 covered pending'])
})
