import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Outcome } from '../../src/sources/http/outcome.ts'
import { afterTry, noTries, type RetryPolicy, usualRetries } from '../../src/sources/http/retry.ts'

const policy: RetryPolicy = {
  attempts: 4,
  limitedAttempts: 6,
  baseMs: 100,
  capMs: 300,
  totalMs: 10_000,
  faultMs: 10_000,
}
const again = (waitMs: number | null = null, requestMs = 5): Outcome => ({
  kind: 'again',
  reason: 'status',
  status: 503,
  waitMs,
  words: '',
  requestMs,
})
const head = { at: 0, date: null, age: 0, requestMs: 5, etag: null, requestId: null, sandbox: null }
const limited = (waitMs: number | null, code: string | null = null): Outcome => ({
  kind: 'limited',
  status: 429,
  waitMs,
  words: '',
  code,
  ...head,
})

/** The waits until the policy gives up. */
function waits(outcome: Outcome, random: number, rules = policy): number[] {
  const all: number[] = []
  let tries: Parameters<typeof afterTry>[1] = noTries
  for (let i = 0; i < 100; i++) {
    const next = afterTry(rules, tries, outcome, () => random)
    if (next.kind === 'stop') return all
    all.push(next.waitMs)
    tries = next.tries
  }
  return all
}

test('the backoff doubles up to its cap, with full jitter', () => {
  expect(waits(again(), 0.999999)).toEqual([100, 200, 300])
  expect(waits(again(), 0.5)).toEqual([50, 100, 150])
  expect(waits(again(), 0)).toEqual([0, 0, 0])
})

test('refusals by a limit have a retry budget apart', () => expect(waits(limited(null), 0.999999)).toHaveLength(5))

test('the total time is a budget too, and waits that the provider asks for are not in it', () => {
  expect(waits(again(null, 4_900), 0.5)).toHaveLength(2)
  expect(waits(again(600_000), 0.5)).toEqual([600_050, 600_100, 600_150])
})

test('faults are waited for less long than limits', () => {
  const rules = { ...policy, attempts: 100, limitedAttempts: 100, totalMs: 10_000, faultMs: 1_000 }
  expect(waits(again(null, 400), 0, rules)).toHaveLength(2)
  expect(waits(again(null, 500), 0, rules)).toHaveLength(2)
  expect(waits({ ...limited(null), requestMs: 400 } as Outcome, 0, rules)).toHaveLength(25)
})

test('the wait that the provider names is the minimum and never capped', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e9 }), fc.double({ min: 0, max: 0.999, noNaN: true }), (asked, random) => {
      for (const outcome of [again(asked), limited(asked)]) {
        const own = waits(outcome, random, usualRetries)
        expect(own.length).toBeGreaterThan(2)
        for (const wait of own) {
          expect(wait).toBeGreaterThanOrEqual(asked)
          expect(wait).toBeLessThanOrEqual(asked + usualRetries.capMs)
        }
      }
    }),
  )
})

test('outcomes of other kinds are never repeated', () => {
  const words = { words: '', code: null, ...head }
  const final: Outcome[] = [
    { kind: 'body', file: 'f', bytes: 1, status: 200, ...head },
    { kind: 'no_content', status: 204, ...head },
    { kind: 'refused', parameter: null, status: 400, ...words },
    { kind: 'unauthorised', status: 401, ...words },
    { kind: 'forbidden', status: 403, ...words },
    { kind: 'gone', status: 404, ...words },
    { kind: 'too_large', by: 'status', status: 504, ...words },
    { kind: 'parked', until: 1, words: '' },
    { kind: 'unexpected', location: null, status: 301, ...words },
    { kind: 'stopped', by: 'signal' },
    limited(1_000, 'snapshot_limit'),
  ]
  for (const outcome of final) expect(waits(outcome, 0.5)).toEqual([])
})
