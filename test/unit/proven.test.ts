import fc from 'fast-check'
import { expect, test } from 'vitest'
import { keepingProven } from '../../src/sources/metrics/verify-findings.ts'
import { layOver } from '../../src/lake/ledger/coverage.ts'
import type { CoverageRow } from '../../src/lake/ledger/entry.ts'
import { seriesLedger } from './coverage-ledger.ts'
import { wantedOf } from '../helpers/wanted.ts'

const day = 86_400
const start = Date.UTC(2025, 0, 6) / 1000
const { id } = wantedOf({ paths: ['blockchain/block_count_pit'] }).series

const states = ['covered', 'gap', 'pending', 'empty', 'unsupported', 'failed'] as const
const said = fc.record({
  since: fc.integer({ min: 0, max: 60 }),
  length: fc.integer({ min: 1, max: 40 }),
  state: fc.constantFrom(...states),
})

function row({ since, length, state }: { since: number; length: number; state: (typeof states)[number] }): CoverageRow {
  const hole = state === 'gap' || state === 'pending'
  const window = { since: start + since * day, until: start + (since + length) * day }
  const reason = hole ? state : state === 'failed' ? 'no answer' : null
  return { series: id, ...window, state: hole ? 'covered' : state, reason, asked_at: start, request: null }
}

/** The days that are plainly covered. */
function plainDays(rows: readonly CoverageRow[]): Set<number> {
  const days = new Set<number>()
  for (const { since, until, state, reason } of rows)
    if (state === 'covered' && reason === null) for (let at = since; at < until; at += day) days.add(at)
  return days
}

function laid(live: readonly CoverageRow[], rows: readonly CoverageRow[]): CoverageRow[] {
  let held = [...live]
  for (const one of rows) {
    const { remove, add } = layOver(held, one)
    held = [...held.filter((old) => !remove.includes(old)), ...add].toSorted((a, b) => a.since - b.since)
  }
  return held
}

test('no answer removes a window whose points are all stored, not even within one batch', () => {
  fc.assert(
    fc.property(fc.array(said, { maxLength: 8 }), fc.array(said, { maxLength: 8 }), (before, after) => {
      const live = laid([], before.map(row))
      const offered = after.map(row)
      const kept = laid(live, keepingProven(seriesLedger(id, live), offered))
      const plain = plainDays(kept)
      for (const at of [...plainDays(live), ...plainDays(offered)]) expect(plain.has(at)).toBe(true)
      // And whatever else is said stands where nothing was proven.
      const whole = laid(live, offered)
      for (const { since, until, state, reason } of whole)
        for (let at = since; at < until; at += day) {
          if (plain.has(at)) continue
          const found = kept.find((one) => one.since <= at && at < one.until)
          expect([found?.state, found?.reason]).toEqual([state, reason])
        }
    }),
  )
})
