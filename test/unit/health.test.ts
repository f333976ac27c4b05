import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { lateFor, usualCheck } from '../../src/catalog/health.ts'
import { applySettings, resolveSettings, type Settings } from '../../src/catalog/settings.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const hour = 3600
const catalogue = loadCatalogue()

function settingsOf(text: string, env: Readonly<Record<string, string>> = {}): Settings {
  using place = temporaryFolder('health')
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
  const all =
    'check: { max_late: { "indicators/*": 1h }, max_feed_age: 1d, max_violations: 1, max_failed: 2 }\nschedule: 12h\n'
  expect(settingsOf(all).check).toEqual({
    maxLate: [{ pattern: 'indicators/*', seconds: hour }],
    schedule: 12 * hour,
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

test('the tolerance that names a path most exactly applies, and the strictest of equals', () => {
  const maxLate = Object.entries({ '*': 5, 'a/*': 4, 'a/b*': 3, 'a/bc': 9 }).map(([pattern, seconds]) => ({
    pattern,
    seconds,
  }))
  expect(['x', 'a/x', 'a/bx', 'a/bc'].map((path) => lateFor({ maxLate }, path))).toEqual([5, 4, 3, 9])
  expect(lateFor({ maxLate: maxLate.slice(1) }, 'x')).toBe(null)
})
