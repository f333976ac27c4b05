import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { metricsText } from '../../src/interfaces/report/metrics.ts'
import { madeAt, standing } from '../page/facts.ts'
import { pitlake } from '../helpers/command.ts'
import { withRig } from '../helpers/fetching.ts'

const now = Date.UTC(2026, 2, 10, 12) / 1000
const sample = /^(pitlake_[a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?\d+(?:\.\d+)?(?:e[+-]\d+)?)$/

/** Reads the text as strictly as a scraper does: each family once, headed, no sample twice. */
function read(text: string): Map<string, number> {
  expect(text.endsWith('\n')).toBe(true)
  const found = new Map<string, number>()
  const heads: string[] = []
  for (const line of text.trimEnd().split('\n')) {
    const head = /^# (HELP|TYPE) (pitlake_[a-z_]+) (.+)$/.exec(line)
    if (head) {
      if (head[1] === 'HELP') heads.push(head[2] ?? '')
      else expect([head[2], head[3]]).toEqual([heads.at(-1), 'gauge'])
      continue
    }
    const [, name = '', labels = '', value] = sample.exec(line) ?? []
    expect(name, line).toBe(heads.at(-1))
    const key = labels === '' ? name : `${name} ${labels}`
    expect(found.has(key), key).toBe(false)
    found.set(key, Number(value))
  }
  expect(new Set(heads).size).toBe(heads.length)
  return found
}

test('says what status --json says, by endpoint too, and replaces the file', async () =>
  await withRig(now, async (rig) => {
    const selection = {
      assets: ['BTC', 'ETH'],
      paths: ['supply/current_pit'],
      intervals: ['24h'],
      since: now - 60 * 86_400,
    }
    await rig.fetch({ ...selection, until: now - 3 * 86_400 })
    const file = join(rig.root, 'lake.prom')
    writeFileSync(file, 'of another day')
    const world = { now: () => now * 1000 }
    const run = async (...argv: readonly string[]) =>
      await pitlake(rig.root, ['status', '--data', rig.root, '--metrics', file, ...argv], {}, world)
    const { out, code } = await run('--json')
    const told = JSON.parse(out)
    const found = read(readFileSync(file, 'utf8'))
    expect(code).toBe(0)
    const { version, points, files, bytes, windows, freshness, coverage, requests } = told
    const expected = {
      pitlake_version: version,
      pitlake_points: points,
      pitlake_files: files,
      pitlake_bytes: bytes,
      'pitlake_windows state="covered"': windows.covered,
      'pitlake_fresh_series state="behind"': freshness.behind,
      pitlake_overdue_seconds: freshness.overdue_seconds,
      'pitlake_coverage_points what="due"': coverage.due,
      'pitlake_coverage_points what="held"': coverage.held,
      pitlake_requests: requests.total,
      pitlake_credits_day: requests.day_credits,
      'pitlake_trust word="look"': 1,
      'pitlake_trust word="yes"': 0,
      'pitlake_endpoint_overdue_seconds metric="supply/current_pit",interval="24h"': freshness.overdue_seconds,
      'pitlake_endpoint_newest_t_seconds metric="supply/current_pit",interval="24h"': Date.parse(told.newest) / 1000,
    }
    for (const [key, value] of Object.entries(expected)) expect(found.get(key), key).toBe(value)
    expect(freshness.behind).toBe(2)
    const lag = (quantile: string): number =>
      found.get(`pitlake_endpoint_lag_seconds metric="supply/current_pit",interval="24h",quantile="${quantile}"`) ??
      Number.NaN
    expect(lag('0.5')).toBeGreaterThan(120)
    expect(lag('0.95')).toBeGreaterThanOrEqual(lag('0.5'))
    const checked = await run('--check')
    expect([checked.code, checked.out.slice(0, 6)]).toEqual([6, 'stale:'])
    const few = read(readFileSync(file, 'utf8'))
    expect([...few.keys()].filter((key) => key.startsWith('pitlake_endpoint_lag'))).toEqual([])
    expect(few.get('pitlake_points')).toBe(points)
    expect(await run('--metrics', join(rig.root, 'lake.json'))).toMatchObject({ code: 2 })
  }))

test('an unknown value has no line, and a label takes any text', () => {
  const facts = standing()
  const odd = 'a"b\\c\nd'
  const judged = {
    standing: {
      ...facts,
      newest: null,
      rules: null,
      registry: { ...facts.registry, feed_at: null, records: { [odd]: 3 } },
    },
    series: [],
    arrivals: null,
    findings: null,
  }
  const found = read(metricsText(judged, madeAt))
  expect(found.get('pitlake_registry_records table="a\\"b\\\\c\\nd"')).toBe(3)
  for (const name of [
    'newest_t_seconds',
    'rules_contradicted',
    'registry_feed_age_seconds',
    'endpoint_overdue_seconds',
  ])
    expect(found.has(`pitlake_${name}`)).toBe(false)
})
