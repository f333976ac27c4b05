import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mergeYaml } from '../../src/sources/provider-check/finding.ts'
import type { HeardAnswer } from '../../src/sources/provider-check/answers.ts'
import { keysFrom, nextKeys, spelling, wrongKeys } from '../../src/sources/provider-check/keys.ts'
import { metricsJudges, rateHolds, resetHolds } from '../../src/sources/provider-check/metrics-rows.ts'
import { registryJudges } from '../../src/sources/provider-check/registry.ts'
import { isUnfinished, meaningOf } from '../../src/sources/provider-check/timestamp.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import type { MetricsSeen } from '../../src/sources/provider-check/metrics.ts'
import { type Part, partOf } from '../helpers/part-of.ts'

type Keys = Parameters<typeof spelling>[0]

const page = readFileSync(new URL('../../docs/how-to/another-provider.md', import.meta.url), 'utf8')

/** The first cells of the table under a heading. */
function rowsUnder(heading: string): string[] {
  const [section = ''] = (page.split(`## ${heading}\n`)[1] ?? '').split('\n## ')
  const lines = section.split('\n').filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) => line.split('|')[1]?.trim() ?? '')
}

test('every row of docs/how-to/another-provider.md has its judge, and every judge its row, in that order', () => {
  expect(Object.keys(metricsJudges)).toEqual(rowsUnder('Metrics API'))
  expect(Object.keys(registryJudges)).toEqual(rowsUnder('Registry API'))
  expect(rowsUnder('Metrics API').length + rowsUnder('Registry API').length).toBeGreaterThan(35)
})

test('parts of a config file become one, key by key', () => {
  const parts = [{ metrics: { a: 1, b: { c: 2 } } }, { registry: { d: 3 } }, { metrics: { b: { e: 4 } } }]
  expect(mergeYaml(parts)).toEqual({ metrics: { a: 1, b: { c: 2, e: 4 } }, registry: { d: 3 } })
})

const day = 86_400
const midnight = Date.UTC(2026, 2, 4) / 1000
const daysTo = (last: number, computed?: (t: number) => number) =>
  [3, 2, 1, 0].map((n) => {
    const t = last - n * day
    return { t, v: n, ...(computed && { computed_at: computed(t) }) }
  })

test.each([
  ['a day and minutes after t', daysTo(midnight - day, (t) => t + day + 300), 12, 'interval_start'],
  ['minutes after t', daysTo(midnight, (t) => t + 300), 12, 'interval_end'],
  // The newest point is one of a day that is not over: the others tell.
  [
    'minutes after the end but for the newest',
    daysTo(midnight, (t) => Math.min(t + day + 300, midnight + 600)),
    12,
    'interval_start',
  ],
  ['days after t', daysTo(midnight - day, (t) => t + 3 * day), 12, null],
  ['before t', daysTo(midnight - day, (t) => t - 5), 12, null],
  ['some here, some there', daysTo(midnight - day, (t) => t + (t % (2 * day) === 0 ? 300 : day + 300)), 12, null],
  ['nothing, and yesterday at noon', daysTo(midnight - day), 12, 'interval_start'],
  ['nothing, and yesterday soon after midnight', daysTo(midnight - day), 0.2, null],
  ['nothing, and yesterday once every day must be there', daysTo(midnight - day), 0.5, 'interval_start'],
  ['nothing, and the day before at noon', daysTo(midnight - 2 * day), 36, null],
] as const)('computed_at that is %s decides what t marks', (_, points, hours, meaning) => {
  expect(meaningOf(points, midnight + hours * 3600, 1800, null).meaning).toBe(meaning)
})

test('without computed_at the newest point marks a start once an end would be two days old', () => {
  const meant = (age: number) => meaningOf(daysTo(midnight), midnight + age, 1800, null).meaning
  const least = day + 1800
  const most = 2 * day + 1800
  expect([meant(least - 1), meant(least), meant(most - 1), meant(most)]).toEqual([
    null,
    'interval_start',
    'interval_start',
    null,
  ])
})

test('without computed_at only a second request can tell an end from an unfinished day', () => {
  const now = midnight + day / 2
  const points = daysTo(midnight)
  expect(isUnfinished(points, now)).toBe(true)
  expect(isUnfinished(daysTo(midnight - day), now)).toBe(false)
  expect(
    isUnfinished(
      daysTo(midnight, (t) => t + 300),
      now,
    ),
  ).toBe(false)
  expect(meaningOf(points, now, 1800, null).meaning).toBeNull()
  expect(meaningOf(points, now, 1800, points).meaning).toBe('interval_end')
  const moved = points.map((point) => (point.t === midnight ? { ...point, v: 77 } : point))
  expect(meaningOf(points, now, 1800, moved).meaning).toBeNull()
})

const keys: Keys = catalogue.wire.queryKeys
const window = { since: midnight - 10 * day, until: midnight + day }
const frame = { headers: {}, bytes: null, at: midnight } as const

function refusal(words: string, parameter: string | null): HeardAnswer {
  const answer = { status: 400, at: 0, date: null, age: 0, requestMs: 1, etag: null, requestId: null, sandbox: null }
  return { ...frame, body: undefined, outcome: { kind: 'refused', parameter, words, code: null, ...answer } }
}

function bodyOf(body: unknown, headers: Readonly<Record<string, string>> = {}): HeardAnswer {
  const answer = { status: 200, at: 0, date: null, age: 0, requestMs: 1, etag: null, requestId: null, sandbox: null }
  return { ...frame, headers, body, outcome: { kind: 'body', file: '', bytes: 1, ...answer } }
}

test('a refusal names a key only where it speaks of the key, not of its value', () => {
  expect(wrongKeys(refusal("unknown parameter 's'", 'since'), window)).toEqual(['since'])
  expect(wrongKeys(refusal('asset is required', 'asset'), window)).toEqual(['asset'])
  expect(wrongKeys(refusal("asset 'BTC' is outside the plan", 'asset'), window)).toEqual([])
  expect(wrongKeys(refusal('no', null), window)).toEqual([])
})

test('keys without effect show in what comes', () => {
  expect(wrongKeys(bodyOf(daysTo(midnight)), window)).toEqual([])
  expect(wrongKeys(bodyOf([...daysTo(midnight - 400 * day), ...daysTo(midnight)]), window)).toEqual(['since', 'until'])
  // A day beside the window is one that is named by its other end.
  const { since, until } = window
  const one = (t: number) => wrongKeys(bodyOf([{ t }]), window)
  expect([one(since - day), one(since - day - 1), one(until + day), one(until + day + 1)]).toEqual([
    [],
    ['since', 'until'],
    [],
    ['since', 'until'],
  ])
  expect(wrongKeys(bodyOf([{ t: midnight }, { t: midnight + 3600 }]), window)).toEqual(['interval'])
  expect(wrongKeys(bodyOf([{ t: midnight }, { t: midnight }]), window)).toEqual([])
})

test('names that the refusal speaks of are tried first, each once, and then nothing', () => {
  const told = refusal("unknown parameter 's'; allowed: asset, from, to", 'since')
  expect(nextKeys(keys, told, window, new Set())).toMatchObject({ since: 'from', until: 'to' })
  const tried = new Set<string>()
  const seen: string[] = []
  for (
    let at: Keys | null = keys;
    (at = nextKeys(at, refusal("unknown parameter 's'", 'since'), window, tried)) !== null;
  ) {
    tried.add(spelling(at))
    seen.push(`${at.since} ${at.until}`)
  }
  expect(seen).toEqual([...new Set(seen)])
  expect(seen[0]).toBe('since until')
  expect(seen).toContain('start end')
})

test('lists name the keys of what they hold', () => {
  const endpoint = catalogue.endpoints.get('supply/current_pit')
  if (endpoint === undefined) throw new Error('supply/current_pit is in the catalogue')
  const lists = { coin: ['ETH', 'BTC'], i: ['24h'], money: ['usd'] }
  expect(keysFrom(lists, endpoint, 'BTC', keys)).toEqual({ ...keys, asset: 'coin', currency: 'money' })
})

test('limits of headers are reported as read, unread or missing', () => {
  const of = (headers: Readonly<Record<string, string>>) => rateHolds([bodyOf([], headers)], 600)
  expect(of({ 'x-ratelimit-limit': '50' })).toMatchObject({ verdict: 'holds', yaml: null })
  expect(of({ 'x-calls-allowed': '50' })).toMatchObject({
    verdict: 'contradicted',
    yaml: { metrics: { requests_per_minute: 50 } },
  })
  expect(of({ 'x-calls-allowed': '5000' })).toMatchObject({ verdict: 'holds' })
  expect(of({ 'x-limit-class': 'gold' })).toMatchObject({ verdict: 'contradicted', yaml: null })
  expect(of({})).toMatchObject({ verdict: 'unknown' })
  expect(resetHolds([bodyOf([], { 'x-ratelimit-reset': 'soon' })])).toMatchObject({ verdict: 'contradicted' })
  expect(resetHolds([bodyOf([], { 'x-ratelimit-reset': '30' })])).toMatchObject({ verdict: 'holds' })
})

test('a list that refuses the limit is requested with the largest accepted one', () => {
  const judge = registryJudges['`limit` of a page']
  const seen = {
    resources: catalogue.resources,
    pageLimit: 500,
    snapshotDate: null,
    again: null,
    snapshot: null,
    changes: null,
    unlimited: null,
    ended: null,
    needed: [],
  }
  const list = refusal("invalid parameter 'limit': 1 to 250", 'limit')
  expect(judge?.({ ...seen, list })).toMatchObject({ verdict: 'contradicted', yaml: { registry: { page_limit: 250 } } })
})

/** The endpoint of a path in the catalogue. */
function endpointOf(path: string): Endpoint {
  const endpoint = catalogue.endpoints.get(path)
  if (endpoint === undefined) throw new Error(`no endpoint ${path}`)
  return endpoint
}

/** A judge of the metrics API, for answers of which it reads a few only. */
const judgeOf =
  (name: keyof typeof metricsJudges) =>
  (seen: Part<MetricsSeen>): unknown =>
    metricsJudges[name]?.(partOf<MetricsSeen>(seen))

test('one missing point is a gap, and a `since` that no window confirms is left out', () => {
  const judge = judgeOf('since, until')
  const windows = { days: window, hours: { since: midnight - day, until: midnight } }
  const of = (spacing: number, from: number, n: number, left: number) =>
    bodyOf(Array.from({ length: n }, (_, at) => ({ t: from + at * spacing, v: at })).slice(left))
  const seen = (daily: number, hourly: number, hours = 24) => ({
    windows,
    days: of(day, window.since, 10, daily),
    hours: of(3600, midnight - day, hours, hourly),
  })
  expect(judge(seen(0, 0))).toMatchObject({ verdict: 'holds', evidence: expect.stringMatching(/did not$/) })
  expect(judge(seen(0, 0, 25))).toMatchObject({
    verdict: 'holds',
    evidence: expect.stringMatching(/too: it is dropped$/),
  })
  expect(judge(seen(0, 1))).toMatchObject({ verdict: 'holds' })
  expect(judge(seen(1, 0))).toMatchObject({ verdict: 'holds' })
  expect(judge(seen(1, 1))).toMatchObject({ verdict: 'contradicted', yaml: null })
  expect(judge(seen(5, 5))).toMatchObject({ verdict: 'unknown' })
  expect(judge({ ...seen(0, 0), hours: null })).toMatchObject({
    verdict: 'holds',
    evidence: expect.stringMatching(/nothing tells$/),
  })
})

test('a late point now and then contradicts no rule', () => {
  const endpoint = endpointOf('supply/current_pit')
  const judge = judgeOf('publication lag')
  const of = (late: number) => {
    const points = Array.from({ length: 10 }, (_, n) => {
      const t = midnight - (10 - n) * day
      return { t, v: n, computed_at: t + day + (n < late ? 5 * 3600 : 300) }
    })
    return judge({ days: { ...bodyOf(points), at: midnight + day }, endpoint, settings: { availability: {} } })
  }
  expect(of(2)).toMatchObject({ verdict: 'holds' })
  expect(of(3)).toMatchObject({ verdict: 'contradicted' })
})

test('a lag beyond the rule comes with a rule that holds', () => {
  const endpoint = endpointOf('supply/current_pit')
  const days = bodyOf(daysTo(midnight - day, (t) => t + day + 5 * 3600))
  const seen = { days: { ...days, at: midnight + day }, endpoint, settings: { availability: {} } }
  const judge = judgeOf('publication lag')
  expect(judge(seen)).toMatchObject({
    verdict: 'contradicted',
    yaml: { metrics: { availability: { 'supply/current_pit': { lag: '450m' } } } },
  })
})
