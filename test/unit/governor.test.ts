import { describe, expect, test } from 'vitest'
import {
  currentRate,
  governor,
  type Headers,
  newGovernor,
  nextSlot,
  parkedUntil,
} from '../../src/sources/http/governor.ts'
import { fixedWindow, type Limiter, simulate, slidingWindow, tokenBucket } from './limiters.ts'

type Governor = Parameters<typeof nextSlot>[0]

const minute = 60_000
const hour = 3_600_000
const at = 1_700_000_000_000

function answered(state: Governor, status: number, headers: Headers, when = at, code: string | null = null): Governor {
  const sent = governor(state, { kind: 'request-sent', at: when })
  return governor(sent, { kind: 'response', at: when, ticket: sent.sent, status, headers, code })
}

const fresh = newGovernor({ perMinute: 600 })
const before = (limit: number): number[] =>
  Array.from({ length: limit }, (_, i) => at + 17_345 - minute + (i * minute) / limit)

describe('ten minutes with eight workers against', () => {
  const limiters: [string, number, () => Limiter][] = []
  for (const limit of [12, 60, 100, 600, 1200]) {
    for (const dialect of ['seconds', 'unix', 'none'] as const) {
      const name = `${limit} a minute, reset in ${dialect}`
      limiters.push([`a fixed window, ${name}`, limit, () => fixedWindow(limit, minute, dialect, 7_000)])
      limiters.push([
        `a sliding window, ${name}, reset of the whole`,
        limit,
        () => slidingWindow(limit, minute, dialect, 'whole'),
      ])
      limiters.push([
        `a sliding window, ${name}, reset of the oldest`,
        limit,
        () => slidingWindow(limit, minute, dialect, 'oldest'),
      ])
      limiters.push([`a full token bucket, ${name}`, limit, () => tokenBucket(limit, minute, limit, dialect)])
      limiters.push([
        `a small token bucket, ${name}`,
        limit,
        () => tokenBucket(limit, minute, Math.max(5, limit / 60), dialect),
      ])
    }
  }
  test.each(limiters)('%s: its limit is used to 98 % and never exceeded', (name, limit, make) => {
    // Where headers tell, the configured rate is wrong on purpose.
    const configured = name.includes('none') ? limit : 60
    const { allowed, refused } = simulate(make(), configured, 11 * minute)
    const steady = allowed.filter((when) => when >= minute)
    expect(refused.filter((when) => when >= minute)).toEqual([])
    expect(steady.length / (10 * limit)).toBeGreaterThanOrEqual(0.98)
    expect(refused).toEqual([])
  })

  test('one that refuses a third at random with Retry-After: 1: thirty requests a minute still pass', () => {
    let n = 0
    const third: Limiter = () => {
      n = (n * 1_103_515_245 + 12_345) % 2_147_483_648
      const allowed = n % 3000 >= 1000
      return { allowed, headers: allowed ? {} : { 'retry-after': '1' } }
    }
    const { allowed } = simulate(third, 600, 30 * minute)
    expect(allowed.filter((when) => when >= 20 * minute).length / 10).toBeGreaterThanOrEqual(30)
  })

  test('an hourly window, told by its reset', () => {
    const { allowed, refused } = simulate(fixedWindow(1000, hour, 'unix', 0), 600, 11 * hour)
    expect(refused).toEqual([])
    const whole = allowed.filter((when) => when >= hour)
    expect(whole.length / 10_000).toBeGreaterThanOrEqual(0.98)
  })

  test.each([
    ['fixed window', () => fixedWindow(600, minute, 'seconds', 0, 400)],
    ['fixed window, used up', () => fixedWindow(600, minute, 'unix', 0, 600)],
    ['sliding window', () => slidingWindow(600, minute, 'seconds', 'whole', before(400))],
    ['sliding window, used up', () => slidingWindow(600, minute, 'unix', 'oldest', before(600))],
    ['empty bucket', () => tokenBucket(600, minute, 600, 'seconds', 0)],
  ])('a %s that an earlier run has used', (_, make) => {
    const { allowed, refused } = simulate(make(), 600, 12 * minute)
    expect(refused.filter((when) => when >= 2 * minute)).toEqual([])
    expect(allowed.filter((when) => when >= 2 * minute).length / 6000).toBeGreaterThanOrEqual(0.98)
  })
})

test('timers that fire a little late do not lower the rate', () => {
  let state = fresh
  let when = at
  for (; when < at + minute; when += nextSlot(state, when) + 40) {
    const sent = governor(state, { kind: 'request-sent', at: when })
    state = governor(sent, { kind: 'response', at: when, ticket: sent.sent, status: 200, headers: {} })
  }
  expect(state.sent).toBeGreaterThanOrEqual(590)
  expect(state.sent).toBeLessThanOrEqual(600)
})

test('a spent fixed window is waited for, to its end and a second more', () => {
  const headers = { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '120' }
  const state = answered(fresh, 200, headers)
  expect(nextSlot(state, at)).toBe(121_000)
  expect(nextSlot(state, at + 100_000)).toBe(21_000)
  expect(nextSlot(state, at + 120_000)).toBe(0)
})

test('a window of up to two hours is paced through, a longer one is a quota at the configured rate', () => {
  const told = (reset: string) => ({ 'x-ratelimit-limit': '24', 'x-ratelimit-reset': reset })
  expect(currentRate(answered(fresh, 200, told('7201')), at)).toBeCloseTo(600 * 0.99, 6)
  expect(currentRate(answered(fresh, 200, told('7200')), at)).toBeCloseTo((24 / 120) * 0.99, 6)
})

test('a reset without a limit does not change the configured rate', () => {
  expect(currentRate(answered(fresh, 200, { 'x-ratelimit-reset': '3600' }), at)).toBeCloseTo(600 * 0.99, 6)
})

test('a spent long window parks until it ends and a second more, and no shorter word shortens that', () => {
  const spent = answered(fresh, 200, {
    'x-ratelimit-limit': '50',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': '86400',
  })
  expect(parkedUntil(spent, at)).toBe(at + 86_401_000)
  const again = answered(spent, 429, { 'retry-after': '1000' }, at, 'quota_exceeded')
  expect(parkedUntil(again, at)).toBe(at + 86_401_000)
  expect(parkedUntil(again, at + 86_401_000)).toBeNull()
})

test('requests of other clients in a fixed window are counted as used', () => {
  const limiter = fixedWindow(600, minute, 'unix')
  let calls = 0
  const shared: Limiter = (when) => {
    if (calls++ % 2 === 0) limiter(when)
    return limiter(when)
  }
  const { allowed, refused } = simulate(shared, 600, 11 * minute)
  expect(refused.filter((when) => when >= minute)).toEqual([])
  expect(allowed.length / (11 * 400)).toBeGreaterThan(0.93)
})

test('requests are spread evenly, not in bursts', () => {
  const { sent } = simulate(fixedWindow(60, minute, 'seconds'), 60, 5 * minute)
  const gaps = sent.slice(1).map((when, i) => when - (sent[i] ?? 0))
  expect(Math.min(...gaps)).toBeGreaterThan(650)
  expect(Math.max(...gaps)).toBeLessThan(1_400)
})

test('a limit below the configured rate is found by backing off if headers are missing', () => {
  const { allowed, refused, state } = simulate(slidingWindow(300, minute, 'none', 'oldest'), 600, 30 * minute)
  expect(currentRate(state, at + 30 * minute)).toBeLessThan(330)
  expect(allowed.length / (30 * 300)).toBeGreaterThan(0.7)
  expect(refused.length / allowed.length).toBeLessThan(0.05)
})

test('after a refusal the rate comes back slowly', () => {
  let state = fresh
  for (let i = 0; i < 3; i++) state = answered(state, 429, {}, at + 120_000 * i)
  const low = currentRate(state, at)
  expect(low).toBeLessThan(300)
  let when = state.blockedUntil
  state = answered(state, 200, {}, when + 11_000)
  expect(currentRate(state, when)).toBeLessThan(low * 1.1)
  for (let i = 0; i < 400; i++) state = answered(state, 200, {}, (when += 11_000))
  expect(currentRate(state, when)).toBeCloseTo(594)
})

test('several refusals of one burst lower the rate once', () => {
  let state = fresh
  for (let i = 0; i < 8; i++) state = governor(state, { kind: 'request-sent', at: at + i })
  for (let i = 1; i <= 8; i++)
    state = governor(state, { kind: 'response', at: at + 100 + i, ticket: i, status: 429, headers: {} })
  expect(currentRate(state, at)).toBeCloseTo(594 * 0.7)
})

describe('a wait that the provider names', () => {
  test.each<[string, Headers, number]>([
    ['Retry-After in seconds', { 'retry-after': '37' }, 37_000],
    ['Retry-After of 14 minutes, never capped', { 'retry-after': '840' }, 840_000],
    ['Retry-After before the reset', { 'retry-after': '20', 'x-ratelimit-reset': '50' }, 20_000],
    ['a reset in seconds left, one more for rounding', { 'x-rate-limit-reset': '50' }, 51_000],
    ['a reset in Unix time', { 'x-ratelimit-reset': String(at / 1000 + 50) }, 51_000],
    ['nothing at all', {}, 1_000],
  ])('%s', (_, headers, wait) => {
    const state = answered(fresh, 429, headers)
    expect(state.blockedUntil - at).toBe(wait)
    expect(nextSlot(state, at)).toBe(wait)
    expect(nextSlot(state, at + wait - 1)).toBe(1)
    expect(nextSlot(state, at + wait)).toBe(0)
    expect(parkedUntil(state, at)).toBeNull()
  })

  test('a 503 holds all workers with Retry-After and none without it', () => {
    expect(nextSlot(answered(fresh, 503, { 'retry-after': '120' }), at)).toBe(120_000)
    expect(nextSlot(answered(fresh, 503, {}), at)).toBeLessThan(200)
  })

  test('refusals one after the other are waited for longer and longer', () => {
    let state = fresh
    const waits: number[] = []
    for (let i = 0, when = at; i < 9; i++, when = state.blockedUntil + 500) {
      state = answered(state, 429, { 'retry-after': '0' }, when)
      waits.push(state.blockedUntil - when)
    }
    expect(waits).toEqual([0, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  test('no worker bursts when a wait is over', () => {
    const state = answered(fresh, 429, { 'retry-after': '60' })
    const sent = governor(state, { kind: 'request-sent', at: at + 60_000 })
    expect(nextSlot(sent, at + 60_000)).toBeGreaterThan(90)
  })
})

describe('parking', () => {
  const midnight = Math.ceil(at / 86_400_000) * 86_400_000
  test.each<[string, Headers, string | null, number]>([
    ['a quota code with Retry-After', { 'retry-after': '7200' }, 'quota_exceeded', at + 7_200_000],
    ['a quota code with a short Retry-After', { 'retry-after': '60' }, 'quota_exceeded', at + 60_000],
    ['a quota code without a time: midnight UTC', { 'x-ratelimit-reset': '30' }, 'quota_exceeded', midnight],
    ['no daily requests left', { 'x-quota-daily-remaining': '0' }, null, midnight],
    ['a very long Retry-After, in full', { 'retry-after': '172800' }, null, at + 172_800_000],
    ['a reset far away', { 'x-ratelimit-limit': '50', 'x-ratelimit-reset': '40000' }, null, at + 40_001_000],
  ])('%s', (_, headers, code, until) => {
    const state = answered(fresh, 429, headers, at, code)
    expect(parkedUntil(state, at)).toBe(until)
    expect(parkedUntil(state, until)).toBeNull()
    expect(nextSlot(state, until)).toBe(0)
  })

  test('fifty calls a day are spent at the configured rate, then the API is parked without a refusal', () => {
    const sent: number[] = []
    let state = fresh
    for (let when = at, n = 0; parkedUntil(state, when) === null && n < 60; n++) {
      when += nextSlot(state, when)
      sent.push(when)
      const headers = {
        'x-ratelimit-limit': '50',
        'x-ratelimit-remaining': String(49 - n),
        'x-ratelimit-reset': String(at / 1000 + 40_000),
      }
      state = answered(state, 200, headers, when)
    }
    expect(sent).toHaveLength(50)
    expect((sent.at(-1) ?? 0) - at).toBeLessThan(10_000)
  })

  test('a limited snapshot stops no other request', () => {
    const state = answered(fresh, 429, { 'retry-after': '86400' }, at, 'snapshot_limit')
    expect(parkedUntil(state, at)).toBeNull()
    expect(nextSlot(state, at)).toBeLessThan(200)
  })

  test('near the end of a daily quota no more are under way than it allows', () => {
    let state = answered(fresh, 200, { 'x-quota-daily-remaining': '2' })
    let sent = 0
    for (let when = at + 1_000; when < at + 10_000; when += 100) {
      if (nextSlot(state, when) === 0) {
        state = governor(state, { kind: 'request-sent', at: when })
        sent++
      }
    }
    expect(sent).toBe(2)
  })
})

test('a lost request is no longer under way, and says nothing about limits', () => {
  const sent = governor(fresh, { kind: 'request-sent', at })
  const lost = governor(sent, { kind: 'lost', at: at + 1, ticket: 1 })
  expect([sent.inFlight, lost.inFlight, lost.limit]).toEqual([1, 0, null])
})

test('the reducer changes nothing in place', () => {
  const frozen = Object.freeze(answered(fresh, 200, {}))
  expect(() => answered(frozen, 429, { 'x-ratelimit-limit': '5', 'x-ratelimit-reset': '4' })).not.toThrow()
})

test('a clock that steps back does not stop the pace', () => {
  const state = answered(fresh, 200, {})
  expect(nextSlot(state, at - hour)).toBeLessThan(200)
})

test('a refusal of the first window is explained by what was used before; a later one is not', () => {
  const refusedAt = (at: number, headers: Readonly<Record<string, string>>): number => {
    const sent = governor(newGovernor({ perMinute: 60 }), { kind: 'request-sent', at: 1_000_000 })
    return governor(sent, { kind: 'response', at: 1_000_000 + at, ticket: 1, status: 429, headers }).factor
  }
  const told = { 'retry-after': '5' }
  expect([refusedAt(0, told), refusedAt(60_000, told), refusedAt(60_001, told)]).toEqual([1, 1, 0.7])
  expect(refusedAt(60_000, {})).toBe(0.7)
})
