import { expect, test } from 'vitest'
import { availableAt } from '../../src/catalog/availability.ts'
import type { CoverageRow } from '../../src/lake/ledger/entry.ts'
import type { StoredSeries } from '../../src/lake/ledger/index-queries.ts'
import { alarmReason, refusalWords, withdrawnReason } from '../../src/lake/ledger/refusals.ts'
import { toleranceOf } from '../../src/sources/metrics/plan.ts'
import { judgeSeries, rhythmOf, type SeriesStanding } from '../../src/interfaces/report/freshness.ts'
import { coverageRow, seriesRow } from '../helpers/lakes/drafts.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const day = 86_400
const start = Date.UTC(2024, 5, 1) / 1000
const at = (days: number): number => start + days * day

/**
 * A series with points of the first three days, of an endpoint that the catalogue does not have: due when its interval
 * ends.
 */
const held: StoredSeries = {
  ...seriesRow(0, { id: 's', metric: 'gone/long_ago', settled: null }),
  points: 3,
  first_t: at(0),
  last_t: at(2),
}

type Row = readonly [state: CoverageRow['state'], since: number, until: number, reason?: string]

/** Judges a series at an instant, in days, by what is known of it. */
const judge =
  (own: Partial<StoredSeries>) =>
  (now: number, ...rows: readonly Row[]): SeriesStanding => {
    const coverage = rows.map(([state, since, until, reason = null]) =>
      coverageRow(0, at(since), at(until), { series: 's', state, reason }),
    )
    const known = new Map([['s', coverage]])
    const [one] = judgeSeries([{ ...held, ...own }], known, new Map(), catalogue, at(now), 'monday')
    if (!one) throw new Error('no series')
    return one
  }
const judged = judge({})

const windows = (...days: (readonly [number, number])[]) =>
  days.map(([since, until]) => ({ since: at(since), until: at(until) }))

test('held is what was answered, failed what was not; a window that holds for another reason is neither', () => {
  const one = judged(4.5, ['covered', 0, 2], ['covered', 2, 3, 'assumed'], ['failed', 3, 4, 'html'])
  expect(one).toMatchObject({ due: { since: at(0), until: at(4) }, held: windows([0, 2]), failed: windows([3, 4]) })
})

test('a series is fresh, behind since the last request, or stopped after vain requests', () => {
  const freshness = (now: number, ...rows: readonly Row[]) => {
    const { fresh, overdue, late } = judged(now, ...rows)
    return [fresh, overdue / day, late / day]
  }
  expect(freshness(3.5, ['covered', 0, 3])).toEqual(['fresh', 0, 0])
  // The fourth day ended half a day ago.
  expect(freshness(4.5, ['covered', 0, 3])).toEqual(['behind', 0.5, 0.5])
  expect(freshness(4.5, ['covered', 0, 3], ['empty', 3, 4])).toEqual(['stopped', 0, 0.5])
  // What was asked for counts as far as the answers follow on one another.
  expect(freshness(6.25, ['covered', 0, 1], ['empty', 3, 4])).toEqual(['behind', 1.25, 2.25])
  expect(freshness(6.25, ['empty', 3, 4], ['empty', 5, 6])).toEqual(['behind', 1.25, 2.25])
  // A failed answer is none, but that of a refusal is.
  expect(freshness(4.5, ['covered', 0, 3], ['failed', 3, 4, 'html'])).toEqual(['behind', 0.5, 0.5])
  const refused = alarmReason(at(3), refusalWords('forbidden', 'not in the plan'))
  expect(freshness(4.5, ['covered', 0, 3], ['failed', 3, 4, refused])).toEqual(['stopped', 0, 0.5])
})

test('a withdrawn series and one without points have no due point', () => {
  const reason = withdrawnReason(at(3), refusalWords('gone', 'over'))
  const due = { since: at(0), until: at(3) }
  const over = judged(9, ['covered', 0, 3], ['unsupported', 3, 9, reason])
  expect(over).toMatchObject({ due, fresh: null, overdue: 0, late: 0 })
  // What was never asked for again, or for another reason, is due.
  expect(judged(9, ['covered', 0, 3], ['unsupported', 3, 9, 'x']).due).toEqual({ since: at(0), until: at(9) })
  const none = judge({ points: 0, first_t: null, last_t: null })
  expect(none(9, ['covered', 0, 3])).toMatchObject({ due: null, held: [], fresh: null })
})

test('a point requested in vain is pending as long as tolerated, and no second longer', () => {
  const endpoint = catalogue.endpoints.get('supply/current_pit')
  if (endpoint === undefined) throw new Error('no endpoint')
  const due = availableAt(endpoint.rules['24h'], at(3), '24h')
  const patience = toleranceOf(endpoint, '24h')
  const own = judge({ metric: endpoint.path })
  const fresh = [-1, 0, patience, patience + 1].map(
    (seconds) => own((due - start + seconds) / day, ['covered', 0, 3], ['covered', 3, 9, 'pending']).fresh,
  )
  expect(fresh).toEqual(['fresh', 'pending', 'pending', 'stopped'])
})

test('a rhythm is the second longest pause of two weeks, and none before two days of runs', () => {
  const atHours = (...hours: number[]): number[] => hours.map((one) => one * 3600)
  expect(rhythmOf([])).toBeNull()
  expect(rhythmOf(atHours(0, 24))).toBeNull()
  expect(rhythmOf(atHours(0, 0.1, 0.2, 0.3))).toBeNull()
  expect(rhythmOf(atHours(0, 24, 48))).toBe(day)
  // One outage is no habit, a weekend without runs is one.
  expect(rhythmOf(atHours(0, 24, 48, 144, 168))).toBe(day)
  expect(rhythmOf(atHours(0, 24, 96, 120, 144, 168, 192, 264))).toBe(3 * day)
  expect(rhythmOf(atHours(0, 1000, 1001, 1024, 1048))).toBe(23 * 3600)
})

test('monthly imports have a rhythm by their newest four, which runs of two weeks would not show', () => {
  const months = [0, 31, 59, 90].map((n) => n * day)
  expect(rhythmOf(months)).toBeNull()
  expect(rhythmOf(months, 4)).toBe(31 * day)
  expect(rhythmOf(months.slice(0, 2), 4)).toBeNull()
})
