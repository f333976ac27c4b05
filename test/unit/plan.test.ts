import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { expand, type Selection, type Wanted } from '../../src/catalog/series.ts'
import type { WindowAnswer } from '../../src/lake/ledger/entry.ts'
import { type Plan, plan } from '../../src/sources/metrics/plan.ts'
import {
  day,
  end,
  floor,
  hour,
  type Instant,
  type Interval,
  intervals,
  longestSeconds,
  step,
} from '../../src/base/time.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { answered, heldOf, lagOf, rulesOf, wantedOf } from '../helpers/wanted.ts'

type PlanLimits = Parameters<typeof plan>[2]

const limits: PlanLimits = { requestsPerMinute: 600, credits: { BTC: 1, '*': 2 }, gapsOnly: false, blocked: () => null }
const at = (text: string): Instant => Date.parse(text.includes('T') ? text : `${text}T00:00:00Z`) / 1000
const now = at('2024-03-10T12:00:00Z')

const lagRules = (seconds: number): Endpoint['rules'] => rulesOf(lagOf(seconds))

function want(selection: Partial<Selection> = {}, change: Partial<Endpoint> = {}): Wanted {
  const one = wantedOf({ paths: ['indicators/asol_pit'], ...selection })
  return { ...one, endpoint: { ...one.endpoint, ...change } }
}

const planned = (
  wanted: Wanted,
  answers: readonly WindowAnswer[],
  change: Partial<PlanLimits> = {},
  when = now,
): Plan => plan([wanted], heldOf(wanted, answers), { ...limits, ...change }, when)

const answer = (since: string, until: string, rest: Partial<WindowAnswer> = {}): WindowAnswer =>
  answered(at(since), at(until), { asked_at: now - hour, ...rest })

const dates = (found: Plan) =>
  found.asks.map((ask) => [
    ask.window && [ask.window.since, ask.window.until].map(iso).join(' .. '),
    [ask.settles.since, ask.settles.until].map(iso).join(' .. '),
  ])
const iso = (t: Instant) => new Date(t * 1000).toISOString().slice(0, 16).replace('T00:00', '')

/** One slot of the grid as the rules of asking see it, written down again without window algebra. */
interface Slot {
  readonly t: Instant
  readonly due: boolean
  readonly covered: boolean
}

interface Case {
  readonly interval: Interval
  readonly lag: number
  readonly now: Instant
  readonly since: Instant | null
  readonly until: Instant | null
  readonly answers: readonly WindowAnswer[]
}

function standsFor(slot: WindowAnswer, c: Case): boolean {
  const last = step(slot.until, c.interval, -1)
  const age = c.now - (end(last, c.interval) + c.lag)
  const tolerance = Math.max(2 * day, 3 * longestSeconds(c.interval))
  const asked = c.now - slot.asked_at
  if (slot.state === 'failed') return false
  if (slot.state === 'unsupported') return asked < 30 * day
  if (slot.state === 'empty') return age > tolerance && asked < 30 * day
  if (slot.reason === null) return true
  return age > tolerance && (age > 90 * day || asked < 7 * day)
}

function slots(c: Case, from: Instant): Slot[] {
  const list: Slot[] = []
  for (let t = from; end(t, c.interval) <= c.now; t = end(t, c.interval)) {
    const said = c.answers.find((a) => a.since <= t && t < a.until)
    const wanted = (c.since === null || t >= c.since) && (c.until === null || t < c.until)
    const knowable = end(t, c.interval) + c.lag <= c.now
    list.push({ t, due: wanted && knowable && !(said && standsFor(said, c)), covered: said?.state === 'covered' })
  }
  return list
}

const cases: fc.Arbitrary<Case> = fc
  .record({
    interval: fc.constantFrom(...intervals),
    lag: fc.integer({ min: 0, max: 3 * day }),
    now: fc.integer({ min: at('2023-01-01'), max: at('2024-12-31') }),
    start: fc.integer({ min: 5, max: 150 }),
    pieces: fc.array(
      fc.record({
        length: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 30 }) }, fc.constantFrom(4999, 5001, 5300)),
        state: fc.constantFrom('covered', 'covered', 'empty', 'unsupported', 'failed', 'pending', 'gap', 'none'),
        asked: fc.integer({ min: 0, max: 40 * day }),
      }),
      { maxLength: 8 },
    ),
    skip: fc.option(fc.integer({ min: 0, max: 20 * day })),
    cut: fc.option(fc.integer({ min: -day, max: 20 * day })),
  })
  .map(({ interval, lag, now: when, start, pieces, skip, cut }) => {
    const total = pieces.reduce((sum, piece) => sum + piece.length, 0)
    let t = step(floor(when, interval), interval, -Math.min(start, 150) - total)
    const origin = t
    const answers: WindowAnswer[] = []
    for (const { length, state, asked } of pieces) {
      const until = step(t, interval, length)
      const hole = state === 'pending' || state === 'gap'
      if (state !== 'none')
        answers.push({
          since: t,
          until,
          state: hole ? 'covered' : state,
          reason: hole ? state : null,
          asked_at: when - asked,
          request: null,
        })
      t = until
    }
    const since = skip === null ? origin : origin + skip
    return { interval, lag, now: when, since, until: cut === null ? null : when - cut, answers }
  })

test('compared with a bitmap, each missing and due range gets one request and no other is sent', () => {
  let dues = 0
  let requests = 0
  fc.assert(
    fc.property(cases, (c) => {
      const series = { ...want().series, interval: c.interval }
      const wanted = { ...want({}, { rules: lagRules(c.lag) }), series, since: c.since, until: c.until }
      const first = Math.min(c.since ?? Infinity, ...c.answers.map((a) => a.since))
      const grid = slots(c, floor(step(floor(first, c.interval), c.interval, -10), c.interval))
      const { asks, blocked } = planned(wanted, c.answers, {}, c.now)
      expect(blocked).toEqual([])
      for (const { t, due } of grid) {
        if (due) expect(asks.filter((ask) => ask.settles.since <= t && t < ask.settles.until)).toHaveLength(1)
        if (due) dues++
      }
      const bySlot = new Map(grid.map((slot, index) => [slot.t, index]))
      for (const [index, ask] of asks.entries()) {
        const { window, settles } = ask
        const place = bySlot.get(settles.since) ?? Number.NaN
        expect(grid[place]?.due, 'begins with something to settle').toBe(true)
        expect(grid[bySlot.get(step(settles.until, c.interval, -1)) ?? -1]?.due, 'ends with it, too').toBe(true)
        const back = grid.slice(0, place).toReversed()
        const stored = back.findIndex((slot) => !slot.covered)
        const overlap = Math.min(5, stored === -1 ? back.length : stored)
        expect(window?.since).toBe(step(settles.since, c.interval, -overlap))
        expect(window?.until).toBeGreaterThanOrEqual(settles.until)
        expect(window?.until).toBeLessThanOrEqual(floor(c.now, c.interval))
        if (c.until !== null) expect(step(window?.until ?? 0, c.interval, -1)).toBeLessThan(c.until)
        const gap = settles.since - (asks[index - 1]?.settles.until ?? Number.NEGATIVE_INFINITY)
        expect(gap, 'nearer ones are one request').toBeGreaterThan(5000 * longestSeconds(c.interval))
        const inside = grid.filter((slot) => slot.t >= (window?.since ?? 0) && slot.t < (window?.until ?? 0))
        expect(ask.points).toBe(inside.length)
        requests++
      }
    }),
    { numRuns: 150 },
  )
  expect(dues).toBeGreaterThan(1000)
  expect(requests).toBeGreaterThan(50)
})

test('an empty lake requests one window up to the newest ended interval', () => {
  const found = planned(want({ since: at('2024-01-01') }, { rules: lagRules(2 * day) }), [])
  expect(dates(found)).toEqual([['2024-01-01 .. 2024-03-10', '2024-01-01 .. 2024-03-08']])
  expect(found.totals).toEqual({ series: 1, windows: 1, requests: 1, credits: 1, points: 67, bytes: 3864, seconds: 1 })
})

test.each([...intervals])('an open end at %s is the newest ended interval', (interval) => {
  const wanted = { ...want(), series: { ...want().series, interval } }
  const ask = planned(wanted, []).asks.at(-1)
  expect(ask?.window?.until).toBe(floor(now, interval))
})

test('a window without room for a new point is not requested', () => {
  const wanted = want({ since: at('2024-01-01') }, { rules: lagRules(0) })
  const all = answer('2024-01-01', '2024-03-10')
  expect(planned(wanted, [all])).toMatchObject({
    asks: [],
    totals: { windows: 0, requests: 0, credits: 0, seconds: 0 },
  })
  expect(planned(wanted, [all], {}, at('2024-03-10T23:59:59Z')).asks).toEqual([])
  expect(dates(planned(wanted, [all], {}, at('2024-03-11')))).toEqual([
    ['2024-03-05 .. 2024-03-11', '2024-03-10 .. 2024-03-11'],
  ])
  expect(planned(want({ since: at('2024-03-10') }), []).asks).toEqual([])
  expect(planned(want({ since: at('2030-01-01') }), []).asks).toEqual([])
})

const lastYear = (rest: Partial<WindowAnswer>) => answer('2023-01-01', '2023-02-01', rest)
const winter = want({ since: at('2023-01-01'), until: at('2023-02-01') })
const daysAgo = (n: number) => ({ asked_at: now - n * day })

test.each<[string, boolean, Partial<WindowAnswer>]>([
  ['covered', false, daysAgo(300)],
  ['failed just now', true, { state: 'failed', asked_at: now }],
  ['unsupported, 29 days', false, { state: 'unsupported', reason: '404', ...daysAgo(29) }],
  ['unsupported, 30 days', true, { state: 'unsupported', reason: '404', ...daysAgo(30) }],
  ['a placeholder that is mapped by now', true, { state: 'unsupported', reason: 'placeholder x', ...daysAgo(0) }],
  ['empty, 29 days', false, { state: 'empty', ...daysAgo(29) }],
  ['empty, 30 days', true, { state: 'empty', ...daysAgo(30) }],
  ['a gap older than 90 days', false, { reason: 'gap', ...daysAgo(300) }],
])('an old window that is %s is requested again %s', (_, again, rest) => {
  expect(planned(winter, [lastYear(rest)]).asks).toHaveLength(again ? 1 : 0)
})

const recent = (since: string, rest: Partial<WindowAnswer>) =>
  planned(want({ since: at(since) }, { rules: lagRules(0) }), [answer(since, '2024-03-10', rest)]).asks.length

test('a young empty or pending tail is due at once, an older one is a gap and due weekly', () => {
  const young = { reason: 'pending', ...daysAgo(0) }
  expect(recent('2024-03-09', young)).toBe(1)
  expect(recent('2024-03-09', { state: 'empty', ...daysAgo(0) })).toBe(1)
  const gap = (asked: number, until: string) =>
    planned(want({ since: at('2024-02-01'), until: at(until) }, { rules: lagRules(0) }), [
      answer('2024-02-01', until, { reason: 'gap', ...daysAgo(asked) }),
    ]).asks.length
  expect([gap(6, '2024-02-20'), gap(7, '2024-02-20')]).toEqual([0, 1])
  expect(gap(0, '2024-03-08')).toBe(1)
  const patient = want({ since: at('2024-02-01'), until: at('2024-02-20') }, { tolerance: 60 * day })
  expect(planned(patient, [answer('2024-02-01', '2024-02-20', { reason: 'pending' })]).asks).toHaveLength(1)
})

test('--gaps asks for known gaps and for nothing else', () => {
  const wanted = want({ since: at('2023-06-01') }, { rules: lagRules(0) })
  const held = [
    answer('2023-08-01', '2023-08-05', { reason: 'gap' }),
    answer('2023-08-05', '2024-01-01', { state: 'failed' }),
    answer('2024-01-01', '2024-01-03', { reason: 'gap' }),
    answer('2024-03-09', '2024-03-10', { reason: 'pending' }),
  ]
  const found = planned(wanted, held, { gapsOnly: true })
  expect(dates(found)).toEqual([['2023-08-01 .. 2024-01-03', '2023-08-01 .. 2024-01-03']])
  expect(found.totals.windows).toBe(2)
  expect(planned(wanted, [answer('2023-06-01', '2024-01-01')], { gapsOnly: true }).asks).toEqual([])
  const pending = [answer('2024-03-01', '2024-03-02', { reason: 'pending' })]
  const older = (seconds: number) =>
    planned(wanted, pending, { gapsOnly: true }, at('2024-03-02') + seconds).asks.length
  expect([older(3 * day), older(3 * day + 1)]).toEqual([0, 1])
})

test('a refused series is not requested the next day, not even for its new window', () => {
  const wanted = want({ since: at('2024-03-01') }, { rules: lagRules(0) })
  const refused = { state: 'unsupported', reason: '400: no', asked_at: now - day } as const
  const answers = [answer('2024-03-01', '2024-03-09', refused)]
  const held = { metric: wanted.endpoint.path, points: 0, answers, settled: null }
  const when = (instant: Instant) => plan([wanted], new Map([[wanted.series.id, held]]), limits, instant)
  const next = when(now)
  expect([next.asks, next.blocked.length]).toEqual([[], 1])
  expect(next.blocked[0]).toMatchObject({ window: { since: at('2024-03-09') }, reason: '400: no', recorded: refused })
  expect(dates(when(now + 29 * day)).length).toBe(1)
})

test('a blocked series is listed with its reason, once; another block does not hold it', () => {
  const blocked = () => 'placeholder x in the path'
  const wanted = want({ since: at('2024-01-01') })
  const found = planned(wanted, [], { blocked })
  expect(found.asks).toEqual([])
  expect(found.totals).toMatchObject({ windows: 0, requests: 0 })
  expect(found.blocked).toMatchObject([{ window: { since: at('2024-01-01'), until: at('2024-03-10') } }])
  const said = answer('2024-01-01', '2024-03-10', { state: 'unsupported', reason: 'placeholder x in the path' })
  expect(planned(wanted, [said], { blocked }).blocked).toEqual([])
  expect(planned(wanted, [said]).asks).toHaveLength(1)
})

test('an endpoint without since and until is requested whole and once; with one of them in one request', () => {
  const held = [answer('2010-01-01', '2023-01-01'), answer('2023-02-01', '2024-03-01')]
  const range = { since: at('2010-01-01') }
  const whole = planned(want(range, { since: false, until: false, rules: lagRules(0) }), held)
  expect(dates(whole)).toEqual([[null, '2023-01-01 .. 2024-03-10']])
  expect(whole.totals).toMatchObject({ windows: 2, requests: 1 })
  expect(whole.asks[0]?.points).toBe((at('2024-03-10') - at('2009-01-03')) / day)
  expect(planned(want(range, { since: false, until: false }), [answer('2010-01-01', '2024-03-10')]).asks).toEqual([])
  const far = [answer('1990-01-01', '2020-01-01')]
  const early = want({ since: at('1960-01-01') }, { until: false, rules: lagRules(0) })
  expect(dates(planned(early, far))).toEqual([['1960-01-01 .. 2024-03-10', '1960-01-01 .. 2024-03-10']])
})

test('prices: per asset, by the star, by one', () => {
  const price = (credits: PlanLimits['credits']) => planned(want(), [], { credits }).totals.credits
  expect([price({ BTC: 3, '*': 2 }), price({ '*': 2 }), price({})]).toEqual([3, 2, 1])
})

test('a series without a fixed interval is planned on the interval that its points show', () => {
  const wanted = want({ paths: ['options/50delta_skew_call_put_all_pit'] })
  const known = { metric: 'm', points: 1, answers: [answer('2009-01-03', '2024-03-10')], settled: '1h' as const }
  const held = new Map([[wanted.series.id, known]])
  const [ask] = plan([wanted], held, limits, now).asks
  expect(ask).toMatchObject({ interval: '1h', window: null, settles: { since: at('2024-03-10') } })
})

test('a selection of supply in one currency only says what price_usd needs', () => {
  const supply = (currencies: string[]) =>
    plan(expand(catalogue, [{ assets: ['BTC'], paths: ['supply/current_pit'], currencies }]), new Map(), limits, now)
      .notes
  expect(supply(['native'])).toEqual([expect.stringContaining('price_usd also needs usd')])
  expect(supply(['usd'])).toEqual([expect.stringContaining('price_usd also needs native')])
  expect(supply(['native', 'usd'])).toEqual([])
})
