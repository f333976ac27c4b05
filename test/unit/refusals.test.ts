import { expect, test } from 'vitest'
import { isTriedAgain, type StandingRefusal } from '../../src/lake/ledger/refusals.ts'
import type { Ask } from '../../src/sources/metrics/plan.ts'
import { halve, settleRefusal } from '../../src/sources/metrics/settle.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { coverageRow } from '../helpers/lakes/drafts.ts'

const hour = 3600
const day = 86_400
const now = Date.UTC(2026, 2, 4) / 1000

/** A refusal that stands since so many seconds, last answered so many seconds ago. */
const refusal = (since: number | null, asked: number, withdrawn = false): StandingRefusal => ({
  scope: 'series',
  words: '400: no',
  since: since === null ? null : now - since,
  withdrawn,
  state: 'failed',
  reason: '400: no',
  asked_at: now - asked,
  request: null,
})

test.each<readonly [string, StandingRefusal, boolean]>([
  ['no alarm, a day less a second short of 30 days', refusal(null, 30 * day - 1), false],
  ['no alarm, 30 days ago', refusal(null, 30 * day), true],
  ['withdrawn, asked yesterday', refusal(60 * day, day, true), false],
  ['withdrawn, asked 30 days ago', refusal(60 * day, 30 * day, true), true],
  ['an alarm of its first day, asked just now', refusal(day - 1, 0), true],
  ['an alarm of yesterday, asked less than 22 hours ago', refusal(day, 22 * hour - 1), false],
  ['an alarm of yesterday, asked 22 hours ago', refusal(day, 22 * hour), true],
  ['asked within a day of the future', refusal(null, -day), false],
  ['asked later than a day from now', refusal(null, -day - 1), true],
])('a refusal that is %s is tried again: %#', (_, standing, tried) => expect(isTriedAgain(standing, now)).toBe(tried))

const endpoint = catalogue.endpoints.get('supply/current_pit')
if (endpoint === undefined) throw new Error('no endpoint')
const since = now - 100 * day
const until = now - 90 * day
const own = { id: 's', metric: 'supply/current_pit', asset: 'BTC', interval: '24h', currency: 'native' } as const
const ask: Ask = {
  series: { ...own, exchange: null, network: null, params: {} },
  endpoint,
  interval: '24h',
  window: { since, until },
  settles: { since, until },
  points: 10,
  credits: 1,
}
const asked = { at: now, request: 'r', weekStart: 'monday' } as const
const row = (from: number, to: number, changes: object) => ({
  series: 's',
  since: now - from * day,
  until: now - to * day,
  asked_at: now,
  request: 'r',
  ...changes,
})

test('a refusal takes nothing back that is proven: covered without a doubt, or empty', () => {
  const coverage = [
    coverageRow(0, now - 100 * day, now - 98 * day),
    coverageRow(0, now - 98 * day, now - 96 * day, { reason: 'gap' }),
    coverageRow(0, now - 96 * day, now - 94 * day, { state: 'empty' }),
    coverageRow(0, now - 94 * day, now - 92 * day, { state: 'failed', reason: 'torn' }),
  ]
  const refused = { scope: 'series', words: '400: no' } as const
  const failed = { state: 'failed', reason: 'refused since 2026-03-04T00:00:00Z: 400: no' }
  expect(settleRefusal(ask, refused, { points: 5, coverage, standing: null }, asked)).toEqual([
    row(98, 96, failed),
    row(94, 90, failed),
  ])
  const none = { state: 'unsupported', reason: '400: no' }
  expect(settleRefusal(ask, refused, { points: 0, coverage, standing: null }, asked)).toEqual([row(100, 90, none)])
  const range = { scope: 'range', words: '400 to this range: no' } as const
  expect(settleRefusal(ask, range, { points: 5, coverage: [], standing: null }, asked)).toEqual([
    row(100, 90, { state: 'unsupported', reason: '400 to this range: no' }),
  ])
})

test('an alarm keeps its first words and its beginning, and is withdrawn after 30 days', () => {
  const reasons = (standing: StandingRefusal | null, scope: 'series' | 'path' = 'series'): (string | null)[] =>
    settleRefusal(ask, { scope, words: 'new' }, { points: 5, coverage: [], standing }, asked).map(
      ({ state, reason }) => `${state} ${reason}`,
    )
  const begun = (days: number, withdrawn = false): StandingRefusal => ({
    ...refusal(days * day, 0, withdrawn),
    words: 'old',
  })
  expect(reasons(null)).toEqual(['failed refused since 2026-03-04T00:00:00Z: new'])
  expect(reasons(begun(3))).toEqual(['failed refused since 2026-03-01T00:00:00Z: old'])
  expect(reasons(begun(3), 'path')).toEqual(['failed refused since 2026-03-01T00:00:00Z: new'])
  expect(reasons({ ...begun(3), since: null })).toEqual(['failed refused since 2026-03-04T00:00:00Z: new'])
  expect(reasons(begun(29))).toEqual(['failed refused since 2026-02-03T00:00:00Z: old'])
  expect(reasons(begun(30))).toEqual(['unsupported withdrawn, refused since 2026-02-02T00:00:00Z: old'])
  expect(reasons(begun(3, true))).toEqual(['unsupported withdrawn, refused since 2026-03-01T00:00:00Z: old'])
})

test('halves share a window in the middle, and each settles its share of what was to be settled', () => {
  const whole = { ...ask, settles: { since: since + 7 * day, until } }
  const middle = since + 5 * day
  expect(halve(whole)).toEqual([
    { ...whole, window: { since, until: middle }, settles: { since: since + 7 * day, until: middle }, points: 5 },
    { ...whole, window: { since: middle, until }, points: 5 },
  ])
  expect(halve({ ...ask, window: null })).toBeNull()
  expect(halve({ ...ask, window: { since, until: since + day } })).toBeNull()
})
