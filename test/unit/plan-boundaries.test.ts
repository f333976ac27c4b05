import { expect, test } from 'vitest'
import { availableAt } from '../../src/catalog/availability.ts'
import type { Selection, Wanted } from '../../src/catalog/series.ts'
import type { WindowAnswer } from '../../src/lake/ledger/entry.ts'
import { type Plan, plan, toleranceOf } from '../../src/sources/metrics/plan.ts'
import { day, type Instant } from '../../src/base/time.ts'
import { answered, heldOf, wantedOf } from '../helpers/wanted.ts'

const since = Date.UTC(2010, 0, 1) / 1000
const limits = { requestsPerMinute: 600, credits: { '*': 1 }, gapsOnly: false, blocked: () => null }

const want = (selection: Partial<Selection>): Wanted =>
  wantedOf({ paths: ['addresses/active_count_pit'], since, ...selection })

const planned = (wanted: Wanted, answers: readonly WindowAnswer[], now: Instant, gapsOnly = false): Plan =>
  plan([wanted], heldOf(wanted, answers), { ...limits, gapsOnly }, now)

test.each([
  [79_999, [79_999]],
  [80_000, [80_000]],
  [80_001, [80_000, 1]],
  [160_001, [80_000, 80_000, 1]],
])('%i points in a row are requested in answers of %j points', (points, told) => {
  const until = since + points * 600
  const { asks } = planned(want({ intervals: ['10m'], until }), [], until + day)
  expect(asks.map(({ settles }) => (settles.until - settles.since) / 600)).toEqual(told)
  expect(asks.at(-1)?.settles.until).toBe(until)
})

test.each([
  [5000, 1],
  [5001, 2],
])('missing points around %i stored ones are requested in %i requests', (points, requests) => {
  const stored = answered(since + 600, since + 600 + points * 600)
  const until = stored.until + 600
  expect(planned(want({ intervals: ['10m'], until }), [stored], until + day).asks).toHaveLength(requests)
})

test('a point missing for exactly the tolerated time is pending, a second longer it is a gap', () => {
  const wanted = want({ intervals: ['24h'], until: since + day })
  const { endpoint } = wanted
  const limit = availableAt(endpoint.rules['24h'], since, '24h') + toleranceOf(endpoint, '24h')
  const asks = (now: Instant, said: Partial<WindowAnswer>, gapsOnly = false): number => {
    const answer = answered(since, since + day, { asked_at: now, ...said })
    return planned(wanted, [answer], now, gapsOnly).asks.length
  }
  for (const said of [{ reason: 'pending' }, { state: 'empty' }] as const)
    expect([asks(limit, said), asks(limit + 1, said)]).toEqual([1, 0])
  expect([asks(limit, { reason: 'gap' }, true), asks(limit + 1, { reason: 'gap' }, true)]).toEqual([0, 1])
})
