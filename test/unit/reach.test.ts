import { expect, test } from 'vitest'
import type { Outcome } from '../../src/sources/http/outcome.ts'
import { newReach, type Reach } from '../../src/sources/http/reach.ts'

const head = { at: 0, date: null, age: 0, requestMs: 5, etag: null, requestId: null, sandbox: null }
const words = { words: 'said', code: null, ...head }
const fault = (waitMs: number | null = null, requestMs = 0): Outcome => {
  return { kind: 'again', reason: 'reset', status: null, waitMs, words: 'ECONNRESET', requestMs }
}
const body: Outcome = { kind: 'body', file: 'f', bytes: 2, status: 200, ...head }

/** One request after the other, each of which ends so at once; how many went out before somebody gave up. */
function vain(reach: Reach, outcome: Outcome, most: number, stepMs: number, from = 0): { sent: number; now: number } {
  let now = from
  for (let sent = 0; sent < most; sent++) {
    const next = reach.next(now)
    if (typeof next !== 'number') return { sent, now }
    now += next + stepMs
    reach.sent()
    reach.landed(outcome, now)
  }
  return { sent: most, now }
}

test.each<readonly [string, Outcome]>([
  ['a reset', fault()],
  ['a page', { ...body, vain: 'a page' }],
  ['an object without anything in it', { ...body, vain: 'nothing' }],
  ['a redirect', { kind: 'unexpected', location: null, status: 302, ...words }],
  ['a gateway that waits for nobody', { kind: 'too_large', by: 'status', ...words, status: 504 }],
])('whom twenty requests find in vain is given up: %s', (_, outcome) => {
  const reach = newReach()
  expect(vain(reach, outcome, 99, 0).sent).toBe(20)
  expect(reach.gaveUp()).not.toBeNull()
})

test.each<readonly [string, Outcome]>([
  ['a limit', { kind: 'limited', waitMs: 1000, status: 429, ...words }],
  ['a refusal', { kind: 'forbidden', status: 403, ...words }],
  ['a window that is too long', { kind: 'too_large', by: 'status', ...words, status: 413 }],
  ['points', body],
])('a provider is not given up for %s', (_, outcome) => {
  const reach = newReach()
  expect(vain(reach, outcome, 99, 5_000).sent).toBe(99)
  expect(reach.gaveUp()).toBeNull()
})

test('two minutes without anything useful are enough, and no request outlasts them by its first byte', () => {
  const reach = newReach()
  expect(reach.leftMs(0)).toBe(120_000)
  reach.sent()
  reach.landed(fault(null, 100_000), 100_000)
  expect(reach.leftMs(100_000)).toBe(20_000)
  expect(reach.next(119_999)).toBe(0)
  expect(reach.next(120_000)).toEqual({ words: 'reset: ECONNRESET' })
})

test('a wait that the provider dictates is no time of trying', () => {
  const reach = newReach()
  reach.sent()
  reach.landed(fault(600_000), 1_000)
  expect(reach.next(601_000)).toBe(0)
  expect(reach.next(661_000)).toEqual({ words: 'reset: ECONNRESET' })
})

test('requests under way count until they land', async () => {
  const reach = newReach()
  for (let n = 0; n < 20; n++) reach.sent()
  const waiting = reach.next(0)
  expect(waiting).toBeInstanceOf(Promise)
  reach.landed(body, 0)
  await waiting
  expect(reach.next(0)).toBe(0)
})

test('who has answered is slowed down, and given up only after both', () => {
  const reach = newReach()
  reach.sent()
  reach.landed(body, 0)
  expect(reach.leftMs(0)).toBeNull()
  const waits: number[] = []
  for (let n = 0; n < 10; n++) {
    waits.push(Number(reach.next(0)))
    reach.sent()
    reach.landed(fault(), 0)
  }
  expect(waits).toEqual([0, 0, 0, 250, 500, 1000, 2000, 4000, 5000, 5000])
  expect(vain(reach, fault(), 15, 0).sent).toBe(15)
  expect(reach.gaveUp()).toBeNull()
  expect(typeof reach.next(120_000)).toBe('object')
  const other = newReach()
  other.sent()
  other.landed(body, 0)
  expect(vain(other, fault(), 19, 60_000).sent).toBe(19)
  other.sent()
  other.landed(body, 2_000_000)
  expect(other.next(2_000_000)).toBe(0)
  expect(vain(other, fault(), 19, 0, 2_000_000).sent).toBe(19)
})

test('a failure of the local network says nothing about the provider', () => {
  const reach = newReach()
  for (let n = 0; n < 99; n++) {
    reach.sent()
    reach.landed(null, 0)
  }
  expect(reach.next(0)).toBe(0)
})
