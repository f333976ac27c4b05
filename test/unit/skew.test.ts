import { expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import type { Headers } from '../../src/sources/http/governor.ts'
import type { Outcome } from '../../src/sources/http/outcome.ts'
import { describeSkew, watchSkew } from '../../src/sources/http/skew.ts'

/** When the answers of this file were sent, by the provider: 2024-03-01T00:00:00Z. */
const sent = 1_709_251_200
const date = 'Fri, 01 Mar 2024 00:00:00 GMT'

function reply(headers: Headers, outcome: Partial<Outcome> = { kind: 'no_content', at: sent * 1000, sandbox: null }) {
  return { headers, outcome: outcome as Outcome }
}

/** A watch whose wall clock is so many seconds ahead of the clock that dates answers, and what it told. */
function watching(ahead: number, synthetic?: boolean) {
  const told: Parameters<typeof describeSkew>[0][] = []
  const watch = watchSkew({
    nowMicros: () => (sent + 77 + ahead) * 1_000_000,
    now: () => (sent + 77) * 1000,
    synthetic: () => synthetic,
    onSkew: (skew) => told.push(skew),
  })
  return { watch, told }
}

test.each([0, 600, -600])('a clock %s s off says nothing', (ahead) => {
  const { watch, told } = watching(ahead)
  const answer = reply({ date })
  expect(watch(answer)).toBe(answer)
  expect(told).toEqual([])
})

test.each([601, -601, 3600, -3600])('a clock %s s off is reported once a run, with both clocks', (ahead) => {
  const { watch, told } = watching(ahead)
  for (let n = 0; n < 3; n++) watch(reply({ date }))
  expect(told).toEqual([{ seconds: ahead, local: sent + ahead, provider: sent }])
})

test.each([3601, -3601])('a clock %s s off ends the run with the first answer', (ahead) => {
  const { watch, told } = watching(ahead)
  let thrown: unknown
  try {
    watch(reply({ date }))
  } catch (error) {
    thrown = error
  }
  expect(thrown).toBeInstanceOf(LakeError)
  expect((thrown as LakeError).kind).toBe('incomplete')
  expect(told).toEqual([])
})

test('after an answer with the right clock an older one is reported as a stale copy, and the run goes on', () => {
  const { watch, told } = watching(0)
  watch(reply({ date }))
  watch(reply({ date: 'Thu, 29 Feb 2024 00:00:00 GMT' }))
  expect(told.map(({ seconds }) => seconds)).toEqual([86_400])
})

test('synthetic data may be of any time: by the ledger, or where that says nothing by the answer', () => {
  const sandbox = { kind: 'no_content', at: sent * 1000, sandbox: '7' } as const
  expect(() => watching(9999, true).watch(reply({ date }))).not.toThrow()
  expect(() => watching(9999).watch(reply({ date }, sandbox))).not.toThrow()
  expect(() => watching(9999, false).watch(reply({ date }, sandbox))).toThrow(LakeError)
})

test('the time that an answer lay in a cache counts, and how long its body took does not', () => {
  const { watch, told } = watching(0)
  watch(reply({ date: 'Thu, 29 Feb 2024 22:00:00 GMT', age: '7200' }))
  expect(told).toEqual([])
})

test('an answer without a clock, or a request without an answer, says nothing', () => {
  const { watch, told } = watching(9999)
  watch(reply({}))
  watch(reply({ date: 'lately' }))
  watch(reply({ date }, { kind: 'stopped', by: 'signal' }))
  expect(told).toEqual([])
})

test('a Date beyond the last year counts as its end', () => {
  const { watch } = watching(0, true)
  expect(() => watch(reply({ date, age: '9999999999' }))).not.toThrow()
})

test('the report of two clocks names the one ahead', () => {
  const clocks = { local: sent + 700, provider: sent }
  expect(describeSkew({ seconds: 700, ...clocks })).toBe(
    "the local clock (2024-03-01T00:11:40Z) is 700 s ahead of the provider's (2024-03-01T00:00:00Z)",
  )
  expect(describeSkew({ ...clocks, seconds: -700 })).toContain('is 700 s behind the')
})
