import { expect, test } from 'vitest'
import { isTriedAgain, type Standing } from '../../src/ledger/refusals.ts'

const [hour, day] = [3600, 86_400]
const now = Date.UTC(2026, 2, 4) / 1000

/** A refusal that stands since so many seconds, last answered so many seconds ago. */
const refusal = (since: number | null, asked: number, withdrawn = false): Standing => ({
  scope: 'series',
  words: '400: no',
  since: since === null ? null : now - since,
  withdrawn,
  state: 'failed',
  reason: '400: no',
  asked_at: now - asked,
  request: null,
})

test.each<readonly [string, Standing, boolean]>([
  ['no alarm, a day less a second short of 30 days', refusal(null, 30 * day - 1), false],
  ['no alarm, 30 days ago', refusal(null, 30 * day), true],
  ['withdrawn, asked yesterday', refusal(60 * day, day, true), false],
  ['withdrawn, asked 30 days ago', refusal(60 * day, 30 * day, true), true],
  ['an alarm of its first day, asked just now', refusal(day - 1, 0), true],
  ['an alarm of yesterday, asked less than 22 hours ago', refusal(day, 22 * hour - 1), false],
  ['an alarm of yesterday, asked 22 hours ago', refusal(day, 22 * hour), true],
  ['asked within a day of the future', refusal(null, -day), false],
  ['asked later than a day from now', refusal(null, -day - 1), true],
])('a refusal that is %s is tried again: %#', (_, standing, tried) => {
  expect(isTriedAgain(standing, now)).toBe(tried)
})
