import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { admitRequest, defaultLimits, httpDate, limitHeaders, parseLimit, unused } from '../../src/sandbox/limits.ts'

type ApiLimit = Parameters<typeof admitRequest>[0]

const plain: ApiLimit = { rate: null, daily: null, snapshots: null, headers: 'seconds', retryAfter: 'seconds' }
const rated = (requests: number, seconds: number): ApiLimit => ({ ...plain, rate: { requests, seconds } })

/** Judges requests at these instants, in order. */
function run(limit: ApiLimit, instants: readonly number[], isSnapshot = false) {
  let usage: Parameters<typeof admitRequest>[1] = unused
  return instants.map((at) => {
    const judged = admitRequest(limit, usage, at, isSnapshot)
    usage = judged.usage
    return { at, ...judged.verdict }
  })
}

describe('rate rules', () => {
  test('a fixed window is aligned, and starts again at its end', () => {
    const verdicts = run(rated(2, 60), [650, 651, 652, 659.9, 660])
    expect(verdicts.map((v) => v.refused)).toEqual([null, null, 'rate_limited', 'rate_limited', null])
    expect(verdicts.map((v) => v.remaining)).toEqual([1, 0, 0, 0, 1])
    expect(verdicts[2]).toMatchObject({ wait: 8, reset: 8 })
  })

  test('a client that waits as advised passes, and no stretch has more than twice the limit of a window', () => {
    const steps = fc.array(fc.double({ min: 0, max: 20, noNaN: true }), { minLength: 5, maxLength: 80 })
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 6 }), (gaps, requests) => {
        const limit = rated(requests, 30)
        let usage: Parameters<typeof admitRequest>[1] = unused
        let at = 1000
        const passed: number[] = []
        for (const gap of gaps) {
          at += gap
          const judged = admitRequest(limit, usage, at, false)
          if (judged.verdict.refused === null) passed.push(at)
          else {
            expect(judged.verdict.wait).toBeGreaterThan(0)
            expect(admitRequest(limit, judged.usage, at + judged.verdict.wait + 1e-6, false).verdict.refused).toBeNull()
          }
          usage = judged.usage
        }
        for (const start of passed) {
          expect(passed.filter((p) => p >= start && p < start + 30 - 1e-6).length).toBeLessThanOrEqual(2 * requests)
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('quotas', () => {
  test('the daily quota ends at midnight UTC and a refused request is not counted', () => {
    const verdicts = run({ ...plain, daily: 2 }, [86_000, 86_100, 86_200, 86_300, 86_400])
    expect(verdicts.map((v) => v.refused)).toEqual([null, null, 'quota_exceeded', 'quota_exceeded', null])
    expect(verdicts[2]?.wait).toBe(200)
    expect(verdicts[4]?.dailyRemaining).toBe(1)
  })

  test('the snapshot limit refuses snapshots only', () => {
    const limit = { ...plain, snapshots: 1 }
    const first = admitRequest(limit, unused, 10, true)
    expect(admitRequest(limit, first.usage, 11, true).verdict.refused).toBe('snapshot_limit')
    expect(admitRequest(limit, first.usage, 11, false).verdict.refused).toBeNull()
    expect(admitRequest(limit, first.usage, 86_400, true).verdict.refused).toBeNull()
  })
})

describe('headers', () => {
  const at = 1_717_200_000.25
  const headersOf = (limit: ApiLimit) =>
    Object.fromEntries(limitHeaders(limit, admitRequest(limit, unused, at, false).verdict, at))
  const base = rated(600, 60)

  test('limits come in three header dialects, rounded so that no client returns too early', () => {
    expect(headersOf(base)).toEqual({
      'x-rate-limit-limit': '600',
      'x-rate-limit-remaining': '599',
      'x-rate-limit-reset': '60',
    })
    expect(headersOf({ ...base, headers: 'unix' })['x-ratelimit-reset']).toBe('1717200060')
    expect(headersOf({ ...base, headers: 'date' })['x-ratelimit-reset']).toBe('Sat, 01 Jun 2024 00:01:00 GMT')
    expect(headersOf({ ...base, headers: 'none', daily: 5 })).toEqual({})
    expect(headersOf({ ...base, daily: 5 })).toMatchObject({
      'x-quota-daily-limit': '5',
      'x-quota-daily-remaining': '4',
    })
  })

  test('Retry-After in seconds, as a date or not at all, on refusals only', () => {
    const limit = { ...plain, daily: 0 }
    const refused = (form: ApiLimit['retryAfter']) => headersOf({ ...limit, retryAfter: form })['retry-after']
    expect(refused('seconds')).toBe('86400')
    expect(refused('date')).toBe(httpDate(1_717_286_400))
    expect(refused('none')).toBeUndefined()
    expect(headersOf(base)['retry-after']).toBeUndefined()
  })
})

describe('the text form', () => {
  test('changes the named parts and keeps the others', () => {
    const once = parseLimit('metrics=fixed:10/1m,headers=date,retry-after=date', defaultLimits)
    const limits = parseLimit('registry=daily=50,snapshots=2', once)
    expect(limits.metrics).toMatchObject({ rate: { requests: 10, seconds: 60 }, headers: 'date', retryAfter: 'date' })
    expect(limits.registry).toMatchObject({
      daily: 50,
      snapshots: 2,
      headers: 'unix',
      rate: defaultLimits.registry.rate,
    })
    expect(parseLimit('metrics=none', defaultLimits).metrics).toMatchObject({
      rate: null,
      daily: null,
      headers: 'none',
    })
  })

  const bad = ['metrics', 'other=none', 'metrics=fixed:0/60s', 'metrics=fixed:5/0s', 'metrics=headers=loud', 'metrics=']
  test.each(bad)('%s is refused in one line', (text) => {
    expect(() => parseLimit(text, defaultLimits)).toThrow(LakeError)
    expect(() => parseLimit(text, defaultLimits)).toThrow(/^--limit[^\n]*expected[^\n]*$/)
  })
})
