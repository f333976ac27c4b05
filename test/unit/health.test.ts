import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { type Check, lateFor, usualCheck } from '../../src/config/health.ts'
import { applySettings, resolveSettings, type Settings } from '../../src/config/settings.ts'
import { lateOf, type SeriesStanding } from '../../src/report/freshness.ts'
import { ownFolder } from '../helpers/own-folder.ts'

const hour = 3600
const catalogue = loadCatalogue()

function settingsOf(text: string, env: Readonly<Record<string, string>> = {}): Settings {
  using place = ownFolder('health')
  const cwd = place.path
  writeFileSync(join(cwd, 'pitlake.yaml'), text)
  const settings = resolveSettings({ flags: {}, env, cwd })
  applySettings(catalogue, settings)
  return settings
}

test('limits of the config: one span for all, or one for each pattern; what is left out is usual', () => {
  expect(settingsOf('data: d\n').check).toEqual(usualCheck)
  expect(settingsOf('check: { max_late: 2h, max_gaps: 0, max_findings: 7 }\n').check).toEqual({
    ...usualCheck,
    maxLate: [{ pattern: '*', seconds: 2 * hour }],
    maxGaps: 0,
    maxFindings: 7,
  })
  const all = 'check: { max_late: { "indicators/*": 1h }, max_feed_age: 1d, max_violations: 1, max_failed: 2 }\n'
  expect(settingsOf(all).check).toEqual({
    maxLate: [{ pattern: 'indicators/*', seconds: hour }],
    maxFeedAge: 24 * hour,
    maxViolations: 1,
    maxFindings: 0,
    maxFailed: 2,
    maxGaps: null,
  })
})

test.each([
  ['check: { max_lat: 2h }', /pitlake.yaml:1: check.max_lat: .*did you mean `max_late`/],
  ['check: { max_late: soon }', /pitlake.yaml:1: check.max_late: expected a duration such as 20m/],
  ['check:\n  max_late: { "indicator/*": 2h }', /pitlake.yaml:2: check.max_late.indicator\/\*: .*matches an endpoint/],
  ['check: { max_gaps: -1 }', /pitlake.yaml:1: check.max_gaps: /],
  ['hooks: { token: a-secret-of-mine }', /pitlake.yaml:1: hooks.token: expected no key in the config file, got one/],
])('a wrong limit is one line: %s', (text, words) => expect(() => settingsOf(`${text}\n`)).toThrow(words))

test('the token is a key: of eight characters at least, and among what may not be written', () => {
  expect(settingsOf('', { PITLAKE_TOKEN: 'open-sesame' })).toMatchObject({
    token: 'open-sesame',
    secrets: ['open-sesame'],
  })
  expect(settingsOf('').token).toBe(null)
  expect(() => settingsOf('', { PITLAKE_TOKEN: 'short' })).toThrow(/PITLAKE_TOKEN: expected a key of at least 8/)
})

test('what names a path most exactly holds, of equals the strictest', () => {
  const maxLate = Object.entries({ '*': 5, 'a/*': 4, 'a/b*': 3, 'a/bc': 9 }).map(([pattern, seconds]) => ({
    pattern,
    seconds,
  }))
  expect(['x', 'a/x', 'a/bx', 'a/bc'].map((path) => lateFor({ maxLate }, path))).toEqual([5, 4, 3, 9])
  expect(lateFor({ maxLate: maxLate.slice(1) }, 'x')).toBe(null)
})

const of = (fresh: SeriesStanding['fresh'], late: number, overdue = 0, metric = 'm'): SeriesStanding => ({
  metric,
  interval: '24h',
  points: 1,
  newest: 0,
  due: null,
  held: [],
  failed: [],
  verified: [],
  fresh,
  overdue,
  late,
})

test('without a limit what nobody asked for is late; with one whatever is due for longer', () => {
  const series = [
    of('fresh', 0),
    of('awaited', 3 * hour),
    of('behind', 9 * hour, 2 * hour),
    of('behind', 1, 1),
    of('stopped', 99 * hour),
    of(null, 0),
  ]
  const judged = (maxLate: Check['maxLate'], patience?: number) => lateOf(series, { maxLate }, patience)
  const late = (count: number, seconds: number) => [{ metric: 'm', interval: '24h', series: count, seconds }]
  expect(judged([])).toEqual({ late: late(2, 2 * hour), stopped: 1 })
  expect(judged([], hour)).toEqual({ late: late(2, 99 * hour), stopped: 1 })
  expect(judged([{ pattern: 'm', seconds: 3 * hour }])).toEqual({ late: late(2, 99 * hour), stopped: 0 })
  expect(judged([{ pattern: 'm', seconds: 3 * hour - 1 }])).toEqual({ late: late(3, 99 * hour), stopped: 0 })
  expect(judged([{ pattern: '*', seconds: 100 * hour }])).toEqual({ late: [], stopped: 0 })
})
