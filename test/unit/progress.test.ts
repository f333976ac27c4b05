import { expect, test } from 'vitest'
import { number } from '../../src/base/figures.ts'
import { expand } from '../../src/catalog/series.ts'
import { fetchProgress } from '../../src/interfaces/commands/fetch.ts'
import type { IngestDeps } from '../../src/sources/metrics/run.ts'
import { type Ask, plan } from '../../src/sources/metrics/plan.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const now = Date.UTC(2026, 2, 4) / 1000
const limits: Parameters<typeof plan>[2] = {
  requestsPerMinute: 600,
  credits: { '*': 2 },
  gapsOnly: false,
  blocked: () => null,
}
const work = plan(expand(catalogue, [{ assets: ['BTC', 'ETH'], paths: ['blockchain/*'] }]), new Map(), limits, now)

/** Plays a run of one request a second; what was shown, cut at each write. */
function play(isTerminal: boolean, verbose: boolean): string[] {
  const shown: string[] = []
  const clock = { at: now * 1000 }
  const deps = {
    now: () => clock.at,
    stderr: (text: string) => void shown.push(text),
    live: (text: string) => void shown.push(`\r${text}`),
    isTerminal,
  }
  const { onEvent, end } = fetchProgress(deps, verbose)
  onEvent({ kind: 'planned', plan: work })
  for (const [i, ask] of work.asks.entries()) {
    clock.at += 1000
    for (const event of eventsOf(ask, i, clock.at)) onEvent(event)
  }
  const windows = { covered: 1, empty: 0, unsupported: 0, failed: 0, not_requested: 0 }
  onEvent({ kind: 'committed', version: 1, points: 1234567, files: 3, windows, violations: 0 })
  end()
  return shown
}

function eventsOf(ask: Ask, i: number, at: number): Parameters<IngestDeps['onEvent']>[0][] {
  const id = `r-${i}`
  const answer = { status: 200, at, date: null, age: 0, requestMs: 5, etag: null, requestId: null, sandbox: null }
  const outcome = { kind: 'body', file: 'f', bytes: 9, ...answer } as const
  return [
    { kind: 'request', id, ask },
    { kind: 'asking', event: { kind: 'sent', id, at, attempt: 1, sent: i + 1 } },
    { kind: 'asking', event: { kind: 'answered', id, at, attempt: 1, outcome, perMinute: 594 } },
    { kind: 'answered', ask, outcome },
    { kind: 'settled', ask },
  ]
}

const total = work.asks.length

test('a terminal shows one live line with everything a person wants to know', () => {
  const shown = play(true, false)
  const live = shown.filter((text) => text.startsWith('\r'))
  expect(live.length).toBeGreaterThanOrEqual(total)
  expect(live.every((text) => !text.includes('\n') && text.length <= 125)).toBe(true)
  const half = live[Math.floor(total / 2)] ?? ''
  expect(half).toMatch(
    /\d+\/\d+ series {2}0 points {2}\d+ requests?, 6\d\/min {2}\d+ credits? {2}about \d+ s left {2}blockchain\//,
  )
  expect(live.at(-1)).toContain(`${total}/${total} series  1,234,567 points`)
  expect(live.at(-1)).toMatch(/version 1 committed/)
  expect(shown.at(-1)).toBe('\n')
})

test('elsewhere plain lines come every few seconds', () => {
  const shown = play(false, false)
  expect(shown.join('')).not.toMatch(/[\r\u001b]/)
  expect(shown.every((text) => text.endsWith('\n'))).toBe(true)
  expect(shown.length).toBeLessThanOrEqual(2 + Math.ceil(total / 5))
  expect(shown[0]).toMatch(/^plan: \d+ requests?, \d+ credits?, about [\d,]+ points?/)
})

test('a verbose run prints each request and each try', () => {
  const shown = play(false, true).join('')
  expect(shown).toMatch(/r-0 asks blockchain\/\S+\n/)
  expect(shown).toMatch(/r-0 try 1: body 200, pace 594 a minute\n/)
})

test('the time left follows the pace of the last two minutes', () => {
  const shown: string[] = []
  const clock = { at: now * 1000 }
  const live = (text: string): void => void shown.push(text)
  const { onEvent } = fetchProgress({ now: () => clock.at, stderr: live, live, isTerminal: true }, false)
  const asks = Array.from({ length: 50 }, () => work.asks[0]).filter((ask) => ask !== undefined)
  onEvent({ kind: 'planned', plan: { ...work, asks } })
  const quick = 38
  for (const [i, ask] of asks.slice(0, quick + 4).entries()) {
    clock.at += i < quick ? 100 : 60_000
    for (const event of eventsOf(ask, i, clock.at)) onEvent(event)
  }
  const last = shown.findLast((text) => text.includes('left')) ?? ''
  // Eight are left, one or two a minute.
  expect(last).toMatch(/about ([4-9]|10) min( \d+ s)? left/)
})

test('three reasons for windows not requested are shown, with the number of further ones', () => {
  const [ask] = work.asks
  if (ask === undefined) throw new Error('nothing is asked')
  const told = (...reasons: readonly string[]): string => {
    const shown: string[] = []
    const say = (text: string): void => void shown.push(text)
    const { onEvent } = fetchProgress({ now: () => 0, stderr: say, live: say, isTerminal: false }, false)
    const blocked = reasons.map((reason) => ({ ...ask, window: { since: 0, until: 1 }, reason, recorded: null }))
    onEvent({ kind: 'planned', plan: { ...work, blocked } })
    return shown.find((text) => text.includes('not requested')) ?? ''
  }
  expect(told()).toBe('')
  expect(told('a', 'b', 'a', 'c')).toBe('note: 4 windows are not requested: a; b; c\n')
  expect(told('a', 'b', 'c', 'd', 'e')).toBe('note: 5 windows are not requested: a; b; c; and 2 more\n')
})

test('numbers are written as the locale writes them', () => {
  const ours = [0, 7, 999, 1000, 12_345, 999_999, 1_000_000, 123_456_789, -1234, 0.5, 1234.25, 2.7184, 1e15]
  expect(ours.map(number)).toEqual(ours.map((value) => value.toLocaleString('en-US')))
})
