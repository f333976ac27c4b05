import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { Rule } from '../../src/catalog/availability.ts'
import type { Selection, Wanted } from '../../src/catalog/series.ts'
import type { WindowAnswer } from '../../src/lake/ledger/entry.ts'
import { day, end, floor, hour, type Instant, type Interval, intervals, minute, step } from '../../src/base/time.ts'
import {
  type LearntArrivals,
  type NextPoint,
  nextPoints,
  nextRegistryPoll,
} from '../../src/maintenance/watch/next-points.ts'
import { learntOf } from '../../src/maintenance/watch/jobs.ts'
import { nextMorning } from '../helpers/converting.ts'
import { answered, heldOf, lagOf, rulesOf, wantedOf } from '../helpers/wanted.ts'
import { endOf } from '../helpers/time-twin.ts'

const at = (text: string): Instant => Date.parse(text.includes('T') ? text : `${text}T00:00:00Z`) / 1000
const iso = (t: Instant | null): string | null => (t === null ? null : new Date(t * 1000).toISOString().slice(0, 16))

function want(interval: Interval, rule: Rule = lagOf(600), selection: Partial<Selection> = {}): Wanted {
  const found = wantedOf({ paths: ['indicators/asol_pit'], intervals: ['24h'], ...selection })
  const series = { ...found.series, id: `x|${interval}`, interval }
  return { ...found, series, endpoint: { ...found.endpoint, rules: rulesOf(rule) } }
}

const told: LearntArrivals = { observations: 400, lag: { early: 125, usual: 300, late: 590 } }

function next(
  one: Wanted,
  answers: readonly WindowAnswer[],
  now: Instant,
  more: Partial<Parameters<typeof nextPoints>[1]> & { lag?: LearntArrivals } = {},
) {
  const { lag, ...rest } = more
  const held = heldOf(one, answers)
  const interval = one.series.interval ?? '24h'
  const learnt = new Map(lag ? [[`${one.endpoint.path} ${interval}`, lag]] : [])
  return nextPoints([one], { held: answers.length > 0 ? held : new Map(), learnt, at: now, ...rest })[0]
}

/** Held from long ago to `until`, all of it asked when it was there. */
const upTo = (until: Instant): WindowAnswer[] => [answered(at('2020-01-06'), until)]

function sure(point: NextPoint | undefined): NextPoint {
  if (!point) throw new Error('nothing is due')
  return point
}

const zone = process.env['TZ']
afterEach(() => {
  if (zone === undefined) delete process.env['TZ']
  else process.env['TZ'] = zone
})

describe('the next point', () => {
  test.each([
    ['1month', '2024-01-01', 26],
    ['1w', '2023-12-04', 60],
    ['24h', '2024-02-20', 30],
    ['24h', '2025-10-20', 20],
    ['1h', '2024-03-09T20:00:00Z', 60],
    ['1h', '2024-11-02T20:00:00Z', 60],
    ['10m', '2024-02-28T22:00:00Z', 300],
  ] as const)('%s from %s: one after the other, whatever the zone of the host', (interval, from, steps) => {
    for (const host of ['UTC', 'America/New_York', 'Pacific/Kiritimati', 'Asia/Kolkata']) {
      process.env['TZ'] = host
      const one = want(interval)
      let t = at(from)
      for (let i = 0; i < steps; i++) {
        const close = endOf(t, interval)
        for (const now of [t + 1, close, close + 599, close + 601, close + 9 * day]) {
          const point = sure(next(one, upTo(t), now))
          expect([iso(point.t), iso(point.due), point.by]).toEqual([iso(t), iso(close + 600), 'rule'])
          expect(sure(next(one, upTo(t), now, { lag: told })).due).toBe(close + 600)
        }
        t = close
      }
    }
  })

  test('the next point of a clock rule is due by the rule, whatever lag is known', () => {
    const point = next(want('24h', nextMorning), upTo(at('2024-02-29')), at('2024-02-29T12:00:00Z'), { lag: told })
    expect(iso(sure(point).due)).toBe('2024-03-01T10:15')
  })

  test('is due by the lag once ten arrivals are known, never before a stated rule', () => {
    const t = at('2024-03-01')
    const one = want('24h', lagOf(2 * hour))
    const few: LearntArrivals = { ...told, observations: 9 }
    const now = at('2024-03-01T12:00:00Z')
    expect(sure(next(one, upTo(t), now, { lag: few }))).toMatchObject({ due: end(t, '24h') + 2 * hour, by: 'rule' })
    for (const observations of [10, 400])
      expect(sure(next(one, upTo(t), now, { lag: { ...told, observations } }))).toMatchObject({
        due: end(t, '24h') + 600,
        by: 'learnt',
      })
    const stated = sure(next(want('24h', lagOf(2 * hour, 'stated')), upTo(t), now, { lag: told }))
    expect([stated.due, stated.poll]).toEqual([end(t, '24h') + 2 * hour, end(t, '24h') + 2 * hour])
  })

  test('the next point with a lag from the provider is due in its middle and at its end, never before a stated rule', () => {
    const t = at('2024-03-01')
    const few: LearntArrivals = { observations: 0, lag: null, reportedLags: { usual: 200, late: 1150 } }
    const now = at('2024-03-01T12:00:00Z')
    const first = end(t, '24h') + 240
    const second = end(t, '24h') + 1200
    const one = want('24h', lagOf(2 * hour))
    expect(sure(next(one, upTo(t), now, { lag: few }))).toMatchObject({ due: second, poll: first, by: 'told' })
    const polled = new Map([[one.series.id, first + 1]])
    expect(sure(next(one, upTo(t), first + 2, { lag: few, polled }))).toMatchObject({
      due: second,
      poll: second,
      by: 'told',
    })
    const stated = sure(next(want('24h', lagOf(2 * hour, 'stated')), upTo(t), now, { lag: few }))
    expect([stated.due, stated.poll]).toEqual([end(t, '24h') + 2 * hour, end(t, '24h') + 2 * hour])
    expect(sure(next(one, upTo(t), now, { lag: { ...few, ...told } }))).toMatchObject({ by: 'learnt' })
  })

  test('the next point of a new, empty, refused, withdrawn, ended or future series is due at its known time', () => {
    const now = at('2024-03-10T12:00:00Z')
    const t = at('2024-03-10')
    const empty = answered(at('2020-01-06'), t, { state: 'empty', asked_at: now - hour })
    const gone = answered(at('2020-01-06'), t, { state: 'unsupported', reason: '404, gone: no', asked_at: now - hour })
    const gap = answered(t - 5 * day, t, { reason: 'gap', asked_at: now - hour })
    expect(sure(next(want('24h'), [], now))).toMatchObject({ t: null, due: now, by: 'new', poll: now })
    expect(sure(next(want('10m'), [empty], now))).toMatchObject({ t: null, due: now + 23 * hour, by: 'quiet' })
    expect(sure(next(want('24h'), [gone], now))).toMatchObject({ due: now - hour + day, by: 'refused' })
    const stopped = sure(next(want('24h'), [...upTo(t - 5 * day), gap], now))
    expect(stopped).toMatchObject({ t: t - 5 * day, due: now + 23 * hour, by: 'quiet' })
    const over = { ...want('24h'), until: t }
    expect(next(over, upTo(t), now)).toBeUndefined()
    expect(sure(next(over, upTo(t - day), now)).t).toBe(t - day)
    const later = { ...want('24h'), since: at('2024-05-01') }
    expect(sure(next(later, [], now))).toMatchObject({ t: at('2024-05-01'), by: 'rule', due: at('2024-05-02') + 600 })
  })

  test('the list is sorted by what is due first', () => {
    const wanted = intervals.map((interval) => want(interval))
    const now = at('2024-03-10T12:00:30Z')
    const held = new Map(
      wanted.map(({ series, endpoint }) => {
        const until = floor(now, series.interval ?? '24h')
        return [series.id, { metric: endpoint.path, points: 1, answers: upTo(until), settled: null }]
      }),
    )
    const dues = nextPoints(wanted, { held, learnt: new Map(), at: now })
    expect(dues.map(({ interval, due }) => `${interval} ${iso(due)}`)).toEqual([
      '10m 2024-03-10T12:20',
      '1h 2024-03-10T13:10',
      '1w 2024-03-11T00:10',
      '24h 2024-03-11T00:10',
      '3month 2024-04-01T00:10',
      '1month 2024-04-01T00:10',
    ])
  })
})

describe('when to ask', () => {
  /** Asks whenever the next poll says so; an answer holds what is published by then. Returns the polls. */
  function watched(
    one: Wanted,
    from: Instant,
    until: Instant,
    lag: LearntArrivals | undefined,
    published: (t: Instant) => Instant,
    awake: (now: Instant) => boolean = () => true,
  ) {
    const interval = one.series.interval ?? '24h'
    let reached = from
    let asked = from
    const polls: Instant[] = []
    const seen = new Map<Instant, Instant>()
    for (let now = from; now < until; now += minute) {
      if (!awake(now)) continue
      const answers = [
        ...upTo(reached),
        ...(asked > reached ? [answered(reached, asked, { reason: 'pending', asked_at: asked })] : []),
      ]
      if (sure(next(one, answers, now, { ...(lag && { lag }) })).poll > now) continue
      polls.push(now)
      asked = now
      for (let t = reached; end(t, interval) <= now; t = step(t, interval, 1))
        if (published(t) <= now) {
          for (let s = reached; s <= t; s = step(s, interval, 1))
            if (published(s) <= now && !seen.has(s)) seen.set(s, now)
          reached = end(t, interval)
        }
    }
    return { polls, seen }
  }

  const from = at('2024-02-01')
  const until = at('2024-03-12')
  /** Within the known lags, by turns early and late. */
  const usual = (t: Instant): Instant => t + day + 130 + ((t / day) % 5) * 110

  test('a learnt lag costs one request a point, and up to three in one interval of twenty', () => {
    const { polls, seen } = watched(want('24h'), from, until, told, usual)
    expect(seen.size).toBe(39)
    expect(polls.length).toBeGreaterThan(seen.size)
    expect(polls.length).toBeLessThanOrEqual(seen.size + 2 * 2)
    for (const [t, when] of seen) expect(when - usual(t)).toBeLessThanOrEqual(600)
  })

  test('an unknown lag is searched for before the rule as well, with two requests a point', () => {
    const { polls, seen } = watched(
      want('24h', lagOf(40 * minute)),
      from,
      until,
      undefined,
      (t) => t + day + 30 * minute,
    )
    expect(seen.size).toBe(39)
    expect(polls.length).toBe(2 * seen.size)
  })

  test('a late point is requested less and less often, and no later point waits for it', () => {
    const late = at('2024-02-10')
    const slow = (t: Instant): Instant => (t === late ? t + day + 9 * hour : usual(t))
    const { polls, seen } = watched(want('24h'), from, until, told, slow)
    const own = polls.filter((poll) => poll >= late + day && poll < late + 2 * day)
    expect(own.length).toBeLessThanOrEqual(9)
    const when = seen.get(late) ?? Number.NaN
    expect(when - slow(late)).toBeLessThanOrEqual(9 * hour)
    expect(own.map((poll) => poll - (late + day))).toEqual(
      own.map((poll) => poll - (late + day)).toSorted((a, b) => a - b),
    )
    const gaps = own.slice(1).map((poll, i) => poll - (own[i] ?? 0))
    for (const [i, gap] of gaps.slice(1).entries()) expect(gap).toBeGreaterThanOrEqual((gaps[i] ?? 0) * 0.9)
  })

  test('the next point is requested when due, even if the one before is still missing', () => {
    const t = at('2024-03-10T12:20:00Z')
    const after = (asked: Instant): Instant => {
      const missing = answered(t, t + 600, { reason: 'pending', asked_at: asked })
      return sure(next(want('10m'), [...upTo(t), missing], asked, { lag: told })).poll - (t + 1200)
    }
    expect([0, 289, 290, 580, 599, 600].map((seconds) => after(t + 1200 + seconds))).toEqual([
      290, 290, 580, 600, 600, 890,
    ])
  })

  test('points that an outage of days left out are requested at once, and once', () => {
    const out = at('2024-02-14T09:00:00Z')
    const back = at('2024-02-19T09:00:00Z')
    const { polls, seen } = watched(
      want('1h'),
      from,
      until,
      { ...told },
      (t) => t + hour + 200,
      (now) => now < out || now >= back,
    )
    expect(polls.filter((poll) => poll >= back && poll < back + 9 * minute)).toEqual([back])
    for (let t = from; t < until - 2 * hour; t += hour) expect(seen.has(t)).toBe(true)
  })

  test('after any answer the next poll lies ahead, and an answer of the future says nothing', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...intervals),
        fc.integer({ min: 0, max: 40 * day }),
        fc.integer({ min: 0, max: 4000 * minute }),
        fc.constantFrom(undefined, told, { observations: 3, lag: null }, { observations: 50, lag: null }),
        fc.constantFrom(lagOf(0), lagOf(600), lagOf(2 * hour, 'stated'), lagOf(3 * day)),
        (interval, later, ago, lag, rule) => {
          const reached = floor(at('2024-02-20'), interval)
          const now = reached + later
          const asked = now - ago
          const one = want(interval, rule)
          const answers = [
            ...upTo(reached),
            answered(reached, step(reached, interval, 1), { reason: 'pending', asked_at: asked }),
          ]
          const more = lag ? { lag } : {}
          const point = sure(next(one, answers, now, more))
          expect(point.poll).toBeGreaterThan(asked)
          expect(point.poll - asked).toBeLessThanOrEqual(Math.max(day, end(reached, interval) - asked + day) + 40 * day)
          const ahead = answers.map((own) => (own.reason === null ? own : { ...own, asked_at: now + 365 * day }))
          expect(sure(next(one, ahead, now, more)).poll).toBe(sure(next(one, upTo(reached), now, more)).poll)
        },
      ),
    )
  })

  test('the registry is due hourly, also on a weekend, at once after a clock that ran ahead', () => {
    const saturday = at('2024-03-02T09:00:00Z')
    for (let now = saturday - 2 * day; now < saturday + 4 * day; now += hour)
      expect(nextRegistryPoll(now, now + 60)).toBe(now + hour)
    expect(nextRegistryPoll(null, saturday)).toBe(saturday)
    expect(nextRegistryPoll(saturday + 400 * day, saturday)).toBe(saturday)
  })
})

test('a lag comes from the provider, else from the rule as arrivals corrected it', () => {
  const arrivals = {
    points: 100,
    computed: 90,
    seenLate: 0,
    backfilled: 10,
    watched: 5,
    ruled: 10,
    p05: 60,
    p50: 120,
    p95: 300,
    p99: 900,
    max: 1000,
    supported: 900,
    late: 0,
    soon: 0,
    worst: null,
    bars: [],
  }
  const one = want('24h')
  const learn = (change: Partial<typeof arrivals>): LearntArrivals =>
    learntOf({
      endpoint: one.endpoint,
      interval: '24h',
      rules: one.endpoint.rules['24h'],
      arrivals: { ...arrivals, ...change },
    })
  expect(learn({})).toEqual({ observations: 85, lag: { early: 60, usual: 120, late: 300 } })
  expect(learn({ computed: 0, backfilled: 0, seenLate: 1, watched: 200 })).toEqual({ observations: 201, lag: null })
  const slow = { computed: 0, backfilled: 0, seenLate: 20, watched: 80, late: 20, supported: 1000 }
  expect(learn(slow)).toEqual({ observations: 100, lag: { early: 1200, usual: 1200, late: 1200 } })
})
