import { expect, test } from 'vitest'
import { availableAt } from '../../src/catalog/availability.ts'
import { expand, type Selection, type Wanted } from '../../src/catalog/series.ts'
import type { WindowAnswer } from '../../src/ledger/entry.ts'
import { type Plan, plan, toleranceOf } from '../../src/metrics/plan.ts'
import { day, type Instant, step } from '../../src/time.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const since = Date.UTC(2010, 0, 1) / 1000
const limits = { requestsPerMinute: 600, credits: { '*': 1 }, gapsOnly: false, blocked: () => null }

function want(selection: Partial<Selection>): Wanted {
  const [one] = expand(catalogue, [{ assets: ['BTC'], paths: ['addresses/active_count_pit'], since, ...selection }])
  if (one === undefined) throw new Error('no series')
  return one
}

function planned(wanted: Wanted, answers: readonly WindowAnswer[], now: Instant, gapsOnly = false): Plan {
  const held = { metric: wanted.endpoint.path, points: 1, answers, settled: null }
  return plan([wanted], new Map([[wanted.series.id, held]]), { ...limits, gapsOnly }, now)
}

test.each([
  [79_999, [79_999]],
  [80_000, [80_000]],
  [80_001, [80_000, 1]],
  [160_000, [80_000, 80_000]],
])('of %i points in a row answers hold %j', (points, told) => {
  const until = since + points * 600
  const { asks } = planned(want({ intervals: ['10m'], until }), [], until + day)
  expect(asks.map(({ settles }) => (settles.until - settles.since) / 600)).toEqual(told)
  expect(asks.at(-1)?.settles.until).toBe(until)
})

test('what is missing for exactly as long as is tolerated is still awaited, a second longer it is a gap', () => {
  const wanted = want({ intervals: ['24h'], until: since + day })
  const { endpoint } = wanted
  const limit = availableAt(endpoint.rules['24h'], since, '24h') + toleranceOf(endpoint, '24h')
  const asks = (now: Instant, said: Partial<WindowAnswer>, gapsOnly = false): number => {
    const answer = { since, until: step(since, '24h', 1), reason: null, request: null, asked_at: now } as const
    return planned(wanted, [{ state: 'covered', ...answer, ...said }], now, gapsOnly).asks.length
  }
  for (const said of [{ reason: 'awaiting' }, { state: 'empty' }] as const)
    expect([asks(limit, said), asks(limit + 1, said)]).toEqual([1, 0])
  expect([asks(limit, { reason: 'gap' }, true), asks(limit + 1, { reason: 'gap' }, true)]).toEqual([0, 1])
})
