import { expect, test } from 'vitest'
import { type Check, usualCheck } from '../../src/catalog/health.ts'
import { type Late, lateOf, type SeriesStanding } from '../../src/interfaces/report/freshness.ts'
import type { RunEnd } from '../../src/interfaces/report/facts.ts'
import { reasonsOf, trustOf } from '../../src/interfaces/report/trust.ts'
import { check, type LakeStanding } from '../../src/interfaces/report/status.ts'
import { madeAt as now, standing } from '../page/facts.ts'

const quiet = standing()
const day = 86_400

function judged(changes: Partial<LakeStanding>, limits: Partial<Check> = {}) {
  const facts = { ...quiet, ...changes }
  const { behind, stopped, overdue_seconds: seconds } = facts.freshness
  const late = { series: behind, inVain: 0, seconds, stopped }
  const reasons = reasonsOf(facts, now, { check: { ...usualCheck, ...limits }, late })
  const judgement = check({ ...facts, reasons })
  return { ...judgement, line: judgement.lines[0] ?? '', trust: trustOf(reasons) }
}

const contradicted = (findings: number | null, known = 0): Partial<LakeStanding> => ({
  registry: { ...quiet.registry, findings, findings_acknowledged: known },
})
const polled = (days: number): Partial<LakeStanding> => ({
  registry: { ...quiet.registry, feed_at: new Date((now - days * day) * 1000).toISOString() },
})

test('status --check prints one line with verdict, reason and command, and judges by its exit code', () => {
  const sound = judged({})
  expect(sound).toMatchObject({ code: 0, trust: 'yes' })
  expect(sound.lines).toEqual([
    'trusted: version 12, 99.17 % of what is due',
    'note: 50.0 % of the stored points were requested again and compared; pitlake verify',
    "note: 2 windows have gaps; pitlake sql 'FROM gaps'",
  ])
  const wrong: readonly (readonly [Partial<LakeStanding>, string, number])[] = [
    [{ version: 0 }, 'stale: nothing has been committed yet; pitlake fetch', 6],
    [{ files_damaged: 1 }, 'integrity: 1 file of the lake is lost or cut; pitlake doctor', 4],
    [{ violations: 2 }, 'integrity: 2 stored values differ upstream', 4],
    [
      contradicted(1),
      'integrity: 1 record of the registry contradicts what snapshot and feed gave; pitlake violations',
      4,
    ],
    [{ windows: { ...quiet.windows, failed: 3 } }, 'look: 3 windows failed', 6],
    [{ freshness: { ...quiet.freshness, behind: 2, overdue_seconds: 7200 } }, 'stale: 2 series have points due', 6],
    [{ freshness: { ...quiet.freshness, stopped: 1 } }, 'look: 1 series has had no new point', 6],
    [polled(41), 'stale: the registry was last polled 41 days ago (since 2024-04-25T12:00Z); pitlake registry sync', 6],
  ]
  for (const [changes, line, code] of wrong) {
    const said = judged(changes)
    expect(said.line).toContain(line)
    expect(said.lines).toHaveLength(1)
    expect([said.code, said.trust === 'yes']).toEqual([code, false])
  }
})

test('each kind of reason has a line with its count and oldest case, the gravest first', () => {
  const oldest = { ...quiet.oldest, violations: '2024-06-01T10:20:30Z', failed: '2024-06-04T00:00:00Z' }
  const refused = {
    series: 1,
    windows: 2,
    since: '2024-05-01T00:00:00Z',
    words: '403: no',
    withdrawn: 3,
    unacknowledged: 2,
  }
  const published = [
    { destination: '/a', at: '2024-06-05T00:00:00Z', exit_code: 0, missing: 0, changed: 0 },
    { destination: '/b', at: '2024-06-05T00:00:00Z', exit_code: 0, missing: 13, changed: 1 },
    { destination: '/c', at: '2024-06-04T00:00:00Z', exit_code: 6, missing: 0, changed: 0 },
    { destination: '/d', at: '2024-06-04T00:00:00Z', exit_code: null, missing: 0, changed: 0 },
  ]
  const said = judged({
    ...polled(41),
    violations: 9,
    windows: { ...quiet.windows, failed: 3 },
    oldest,
    refused,
    published,
  })
  expect(said.code).toBe(4)
  expect(said.lines.map((line) => line.replace(/;[^;]*$/, ''))).toEqual([
    'integrity: 9 stored values differ upstream; both are stored, and the stored one counts (since 2024-06-01T10:20Z)',
    'stale: the registry was last polled 41 days ago (since 2024-04-25T12:00Z)',
    'look: 1 series that has points is refused: 403: no (since 2024-05-01T00:00Z)',
    'look: 2 series that have points were withdrawn by the provider and not acknowledged',
    'look: 1 window failed (since 2024-06-04T00:00Z)',
    'look: 14 published files were gone or changed at /b, and copied again (since 2024-06-05T00:00Z)',
    'look: the last publish to /c did not finish (since 2024-06-04T00:00Z)',
    'look: the last publish to /d did not finish (since 2024-06-04T00:00Z)',
  ])
})

test('each limit of a good verdict has a line with its command', () => {
  const coverage = { ...quiet.coverage, verified: 0 }
  const rules = { contradicted: 3, imprecise: 0, imprecise_points: 0 }
  expect(judged({ coverage, rules, gaps: 3304 }).lines.slice(1)).toEqual([
    'note: 0 % of the stored points were requested again and compared; pitlake verify',
    'note: 3 availability rules are contradicted by arrivals; pitlake audit availability',
    "note: 3,304 windows have gaps; pitlake sql 'FROM gaps'",
  ])
  expect(judged({ rules: null, gaps: 0 }).lines.slice(2)).toEqual([
    'note: availability rules were not compared with arrivals; pitlake audit availability',
  ])
  const tolerated = judged({ violations: 2 }, { maxViolations: 2 })
  expect(tolerated.line).toMatch(/^trusted: version 12, [\d.]+ % of what is due$/)
  expect(tolerated.lines[1]).toBe('note: 2 tolerated differences; pitlake violations list')
})

test('acknowledged violations, windows that once differed and a poll of yesterday are no alarm', () => {
  const verified = { ...quiet.verified, windows: 6, differing: 3 }
  expect(judged({ acknowledged: 4, verified })).toMatchObject({ code: 0, trust: 'yes' })
  expect(judged(polled(2))).toMatchObject({ code: 0, trust: 'yes' })
  expect(judged(polled(3.1)).code).toBe(6)
})

test('a registry that was only ever snapshotted counts from its last snapshot; none at all is no matter', () => {
  const registry = { ...quiet.registry, feed_at: null, last_snapshot: '2020-01-01' }
  expect(judged({ registry }).line).toMatch(/^stale: the registry was last polled/)
  expect(judged({ registry: { ...registry, first_snapshot: null, last_snapshot: null } }).code).toBe(0)
})

test('a delay up to a limit is a note, and one beyond it changes the verdict', () => {
  const failed = { windows: { ...quiet.windows, failed: 3 } }
  const cases: readonly (readonly [Partial<LakeStanding>, Partial<Check>, string, number])[] = [
    [{ violations: 2 }, { maxViolations: 2 }, 'trusted: ', 0],
    [{ violations: 3 }, { maxViolations: 2 }, 'integrity: 3 stored values differ upstream', 4],
    [contradicted(2), { maxFindings: 2 }, 'trusted: ', 0],
    [contradicted(3), { maxFindings: 2, maxViolations: 9 }, 'integrity: 3 records of the registry contradict', 4],
    [contradicted(0, 5), {}, 'trusted: ', 0],
    [contradicted(null), {}, 'trusted: ', 0],
    [failed, { maxFailed: 3 }, 'trusted: ', 0],
    [failed, { maxFailed: 2 }, 'look: 3 windows failed', 6],
    [{ gaps: 5 }, { maxGaps: 5 }, 'trusted: ', 0],
    [{ gaps: 6 }, { maxGaps: 5 }, 'look: points are missing for good in 6 windows, more than the 5', 6],
    [polled(5), { maxFeedAge: 6 * day }, 'trusted: ', 0],
    [polled(0.1), { maxFeedAge: 3600 }, 'stale: the registry was last polled 2 h ago', 6],
  ]
  for (const [changes, limits, line, code] of cases) {
    const said = judged(changes, limits)
    expect(said.line).toContain(line)
    expect([said.code, said.trust === 'yes']).toEqual([code, code === 0])
  }
})

/** What is told of these facts, word for word. */
function told(changes: Partial<LakeStanding>, limits: Partial<Check> = {}) {
  const late = { series: 0, inVain: 0, seconds: 0, stopped: 0 }
  return reasonsOf({ ...quiet, ...changes }, now, { check: { ...usualCheck, ...limits }, late })
}

test('a tolerated delay is a remark and no reason, a series that never had points is neither', () => {
  const quietly = quiet.verified.windows
  expect(quietly).toBeGreaterThan(0)
  const note = { level: 'note', word: null, since: null }
  const synthetic = {
    ...note,
    kind: 'synthetic',
    count: 1,
    text: 'the data are synthetic: for trying out, not for research',
    next: null,
  }
  expect(told({ violations: 2 }, { maxViolations: 2 })).toEqual([
    {
      ...note,
      kind: 'violations',
      count: 2,
      text: '2 stored values differ upstream; both are stored, and the stored one counts',
      next: 'pitlake violations list',
    },
    synthetic,
  ])
  expect(told({ windows: { ...quiet.windows, failed: 1 } }, { maxFailed: 1 })).toEqual([
    { ...note, kind: 'failed', count: 1, text: '1 window failed', next: expect.stringContaining('pitlake sql') },
    synthetic,
  ])
  const rule = { ...note, kind: 'rules', next: 'pitlake audit availability' }
  expect(told({ rules: { contradicted: 2, imprecise: 1, imprecise_points: 0 } })).toEqual([
    synthetic,
    { ...rule, count: 2, text: '2 availability rules are contradicted by arrivals' },
    { ...rule, count: 1, text: '1 availability rule is imprecise' },
  ])
  expect(told({ rules: { contradicted: 0, imprecise: 1, imprecise_points: 1 } }).at(-1)?.text).toBe(
    '1 availability rule is imprecise: 1 point without computed_at may count as known minutes too early',
  )
  const verified = { ...quiet.verified, windows: 0 }
  expect(told({ verified })).toEqual([
    synthetic,
    { ...note, kind: 'verified', count: 0, text: 'no stored point was verified yet', next: 'pitlake verify' },
  ])
  expect(told({ verified, coverage: { ...quiet.coverage, held: 0 } })).toEqual([synthetic])
})

const series = (metric: string, own: Partial<SeriesStanding>): SeriesStanding => ({
  metric,
  interval: '24h',
  points: 5,
  newest: now,
  due: null,
  held: [],
  failed: [],
  failing: false,
  verified: [],
  fresh: 'fresh',
  overdue: 0,
  late: 0,
  ...own,
})

test('late is what was due without a request for longer than the rhythm allows; with a limit whatever is due for longer', () => {
  const all = [
    series('a/x', { fresh: 'behind', overdue: 100, late: 500 }),
    series('a/x', { fresh: 'behind', overdue: 300, late: 400, failing: true }),
    series('a/y', { fresh: 'stopped', late: 9000 }),
    series('b/z', { fresh: 'pending', late: 700 }),
  ]
  const late = (metric: string, count: number, seconds: number, inVain = 0): Late => {
    return { metric, interval: '24h', series: count, inVain, seconds }
  }
  const stopped = [late('a/y', 1, 9000)]
  expect(lateOf(all, usualCheck, 99)).toEqual({ late: [late('a/x', 2, 300, 1)], stopped })
  expect(lateOf(all, usualCheck, 299)).toEqual({ late: [late('a/x', 1, 300, 1)], stopped })
  expect(lateOf(all, usualCheck, 300)).toEqual({ late: [], stopped })
  // A limit speaks of what is due, for the paths that it names.
  const limited = (seconds: number, pattern = '*') => ({ maxLate: [{ pattern, seconds }] })
  expect(lateOf(all, limited(500), 99)).toEqual({ late: [...stopped, late('b/z', 1, 700)], stopped: [] })
  expect(lateOf(all, limited(8999, 'a/*'), 99)).toEqual({ late: stopped, stopped: [] })
  expect(lateOf(all, limited(1, 'b/*'), 99)).toEqual({ late: [late('a/x', 2, 300, 1), late('b/z', 1, 700)], stopped })
})

test.each<readonly [string, Partial<LakeStanding>, string, number]>([
  ['a refused key', { last_ends: endedBy('unauthorised') }, 'look: the provider refused the key of the last fetch', 6],
  ['a spent quota', { last_ends: endedBy('quota') }, "look: the provider's quota was spent", 6],
  ['refused connections', { last_ends: endedBy('unreachable') }, 'look: the provider could not be reached', 6],
  [
    'answers of HTML',
    { windows: { ...quiet.windows, failed: 2 }, failed_most: 'body: html' },
    'look: 2 windows failed: the provider gave no usable answer, most often body: html',
    6,
  ],
  [
    'a snapshot that was held back',
    { last_ends: { fetch: null, held_back: runEnd('registry sync', 'held_back', 4) } },
    'integrity: a snapshot of the registry is held back, because too many records would disappear at once (since 2024-06-05T06:15Z); if they are gone: pitlake registry sync --accept-shrink',
    4,
  ],
  [
    'user data that stopped arriving',
    { user_data: [{ metric: 'own/x', last_at: '2024-06-01T00:00:00Z', every_seconds: day }] },
    'stale: 1 metric of user data got nothing new for longer than usual: own/x, usually every 24 h',
    6,
  ],
  [
    'a selected name that nobody mapped',
    { unmapped: { series: 1, words: '1 selected series is never requested: x/y BTC exchange_1', remedy: 'map it' } },
    'look: 1 selected series is never requested: x/y BTC exchange_1; map it',
    6,
  ],
])('%s is named as the reason, and no advice is to fetch what was requested', (_, changes, line, code) => {
  const said = judged({ ...changes, freshness: { ...quiet.freshness, behind: 0 } })
  expect([said.code, said.line]).toEqual([code, expect.stringContaining(line)])
  expect(said.lines.join('\n')).not.toMatch(/no fetch requested|; pitlake fetch$/m)
})

test('points that the last fetch requested in vain are not said to lack a request', () => {
  const changes = {
    freshness: { ...quiet.freshness, behind: 2, overdue_seconds: 9e4 },
    last_ends: endedBy('unauthorised'),
  }
  expect(judged(changes).lines.join('\n')).toMatch(/stale: 2 series lack points that were requested in vain/)
})

function endedBy(stopped_by: string): LakeStanding['last_ends'] {
  return { fetch: runEnd('fetch', stopped_by, 3), held_back: null }
}

function runEnd(job: string, stopped_by: string, exit_code: number): RunEnd {
  return { job, at: '2024-06-05T06:15:00Z', stopped_by, exit_code }
}
