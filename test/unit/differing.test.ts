import { expect, test } from 'vitest'
import type { RequestRow, Violation } from '../../src/lake/ledger/entry.ts'
import type { Answered, AnswerWithBody } from '../../src/sources/metrics/answers.ts'
import { findDoubted, manyAtOnce } from '../../src/sources/metrics/convert-batch.ts'
import { seriesRow } from '../helpers/lakes/drafts.ts'

const answer = (id: string, more: Partial<Answered> = {}): Answered =>
  ({ request: { id } as RequestRow, body: {}, again: false, ...more }) as Answered
const differing = (count: number, request = 'a') => {
  const one = { series: seriesRow(0).id, kind: 'changed', stored: '1', offered: '2', stored_at: 1, offered_at: 2 }
  const fresh = Array.from({ length: count }, (_, t): Violation => ({ ...one, t, request }))
  return { fresh, noted: [], statuses: [] }
}
const ids = (found: readonly AnswerWithBody[]): string[] => found.map(({ request }) => request.id)

test('a run requests differing answers again from the first point beyond the limit, recorded ones included', () => {
  const all = [answer('a'), answer('b')]
  const none = { recorded: 0, twice: 0 }
  expect(ids(findDoubted(all, differing(manyAtOnce), none))).toEqual([])
  expect(ids(findDoubted(all, differing(manyAtOnce + 1), none))).toEqual(['a'])
  expect(ids(findDoubted(all, differing(1), { recorded: manyAtOnce - 1, twice: 0 }))).toEqual([])
  expect(ids(findDoubted(all, differing(1), { recorded: manyAtOnce, twice: 0 }))).toEqual(['a'])
})

test('once a run doubts it goes on, but asks no answer a third time, nor more than two hundred', () => {
  const all = [answer('a'), answer('a', { again: true }), answer('a', { body: null }), answer('b')]
  expect(ids(findDoubted(all, differing(1), { recorded: 0, twice: 1 }))).toEqual(['a'])
  expect(ids(findDoubted(all, differing(1), { recorded: 0, twice: 199 }))).toEqual(['a'])
  expect(ids(findDoubted(all, differing(1), { recorded: 0, twice: 200 }))).toEqual([])
})
