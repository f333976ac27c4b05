import { expect, test } from 'vitest'
import { availableAt } from '../../src/catalog/availability.ts'
import type { CoverageRow } from '../../src/ledger/entry.ts'
import type { HeldSeries } from '../../src/ledger/held.ts'
import { alarmReason, refusalWords, withdrawnReason } from '../../src/ledger/refusals.ts'
import { toleranceOf } from '../../src/metrics/plan.ts'
import { judgeSeries, type SeriesStanding } from '../../src/report/freshness.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const day = 86_400
const start = Date.UTC(2024, 5, 1) / 1000
const at = (days: number): number => start + days * day

/** A series with points of the first three days, of an endpoint that the catalogue does not have: due when its interval ends. */
const held: HeldSeries = {
  id: 's',
  metric: 'gone/long_ago',
  asset: 'A',
  interval: '24h',
  currency: null,
  exchange: null,
  network: null,
  params: {},
  settled: null,
  points: 3,
  first_t: at(0),
  last_t: at(2),
}

type Row = readonly [state: CoverageRow['state'], since: number, until: number, reason?: string]

function judged(rows: readonly Row[], now: number, own: Partial<HeldSeries> = {}): SeriesStanding {
  const coverage = rows.map(
    ([state, since, until, reason = null]): CoverageRow => ({
      series: 's',
      since: at(since),
      until: at(until),
      state,
      reason,
      asked_at: 1,
      request: null,
    }),
  )
  const [one] = judgeSeries([{ ...held, ...own }], new Map([['s', coverage]]), new Map(), catalogue, at(now), 'monday')
  if (!one) throw new Error('no series')
  return one
}

const windows = (...days: (readonly [number, number])[]) =>
  days.map(([since, until]) => ({ since: at(since), until: at(until) }))

test('held is what was answered, failed what was not; a window that holds for another reason is neither', () => {
  const one = judged(
    [
      ['covered', 0, 2],
      ['covered', 2, 3, 'assumed'],
      ['failed', 3, 4, 'html'],
    ],
    4.5,
  )
  expect(one).toMatchObject({ due: { since: at(0), until: at(4) }, held: windows([0, 2]), failed: windows([3, 4]) })
})

test('fresh, behind since when nobody asked, and stopped where it was asked for in vain', () => {
  const freshness = (rows: readonly Row[], now: number) => {
    const { fresh, overdue, late } = judged(rows, now)
    return [fresh, overdue / day, late / day]
  }
  expect(freshness([['covered', 0, 3]], 3.5)).toEqual(['fresh', 0, 0])
  // The fourth day ended half a day ago.
  expect(freshness([['covered', 0, 3]], 4.5)).toEqual(['behind', 0.5, 0.5])
  expect(
    freshness(
      [
        ['covered', 0, 3],
        ['empty', 3, 4],
      ],
      4.5,
    ),
  ).toEqual(['stopped', 0, 0.5])
  // What was asked for counts as far as the answers follow on one another.
  expect(
    freshness(
      [
        ['covered', 0, 1],
        ['empty', 3, 4],
      ],
      6.25,
    ),
  ).toEqual(['behind', 1.25, 2.25])
  expect(
    freshness(
      [
        ['empty', 3, 4],
        ['empty', 5, 6],
      ],
      6.25,
    ),
  ).toEqual(['behind', 1.25, 2.25])
  // A failed answer is none, but that of a refusal is.
  expect(
    freshness(
      [
        ['covered', 0, 3],
        ['failed', 3, 4, 'html'],
      ],
      4.5,
    ),
  ).toEqual(['behind', 0.5, 0.5])
  const refused = alarmReason(at(3), refusalWords('forbidden', 'not in the plan'))
  expect(
    freshness(
      [
        ['covered', 0, 3],
        ['failed', 3, 4, refused],
      ],
      4.5,
    ),
  ).toEqual(['stopped', 0, 0.5])
})

test('nothing is due of what was withdrawn, nor of a series without points', () => {
  const reason = withdrawnReason(at(3), refusalWords('gone', 'over'))
  expect(
    judged(
      [
        ['covered', 0, 3],
        ['unsupported', 3, 9, reason],
      ],
      9,
    ),
  ).toMatchObject({ due: { since: at(0), until: at(3) }, fresh: null, overdue: 0, late: 0 })
  // What was never asked for again, or for another reason, is due.
  expect(
    judged(
      [
        ['covered', 0, 3],
        ['unsupported', 3, 9, 'x'],
      ],
      9,
    ).due,
  ).toEqual({ since: at(0), until: at(9) })
  const none = { points: 0, first_t: null, last_t: null }
  expect(judged([['covered', 0, 3]], 9, none)).toMatchObject({ due: null, held: [], fresh: null })
})

test('a point that was asked for in vain is awaited as long as is tolerated, and no second longer', () => {
  const endpoint = catalogue.endpoints.get('supply/current_pit')
  if (endpoint === undefined) throw new Error('no endpoint')
  const due = availableAt(endpoint.rules['24h'], at(3), '24h')
  const patience = toleranceOf(endpoint, '24h')
  const fresh = (seconds: number) =>
    judged(
      [
        ['covered', 0, 3],
        ['covered', 3, 9, 'awaiting'],
      ],
      (due - start + seconds) / day,
      { metric: endpoint.path },
    ).fresh
  expect([fresh(-1), fresh(0), fresh(patience), fresh(patience + 1)]).toEqual([
    'fresh',
    'awaited',
    'awaited',
    'stopped',
  ])
})
