import { expect, test } from 'vitest'
import { exitCode, gravestOf, LakeError } from '../../src/base/errors.ts'
import { type IngestSummary, verdict } from '../../src/sources/metrics/run-summary.ts'
import { finding as damageOf } from '../../src/maintenance/upkeep/findings.ts'
import { isUnreadable, type VerifySummary, verifyVerdict } from '../../src/maintenance/upkeep/verify.ts'

const quiet: IngestSummary = {
  run: 'r',
  version: 1,
  requests: 1,
  points_added: 0,
  vintages_added: 0,
  files_added: 0,
  windows: { covered: 1, empty: 0, unsupported: 0, failed: 0, not_requested: 0 },
  gaps: 0,
  violations: 0,
  incidents: 0,
  acknowledged: 0,
  refused: 0,
  begins_later: [],
  unmapped: [],
  mistyped_assets: [],
  stopped_by: null,
  resume_at: null,
  words: null,
}
const failed = (count: number) => ({ windows: { ...quiet.windows, failed: count } })
const back = '2024-06-06T00:00:00.000Z'

test.each<readonly [string, Partial<IngestSummary>, number, readonly RegExp[]]>([
  ['all well', {}, 0, []],
  ['an acknowledged violation', { acknowledged: 3 }, 0, []],
  [
    'windows that are answers',
    { windows: { covered: 0, empty: 2, unsupported: 3, failed: 0, not_requested: 0 } },
    0,
    [],
  ],
  ['a violation', { violations: 2 }, 4, [/^2 stored values differ upstream; .*pitlake violations list.*acknowledge$/]],
  ['a refused key', { stopped_by: 'unauthorised', words: '401' }, 3, [/refuses the key: 401; .*METRICS_KEY$/]],
  [
    'a spent quota',
    { stopped_by: 'quota', resume_at: back },
    5,
    [/^stopped early, because the provider's quota is spent; .* at 2024-06-06T00:00/],
  ],
  [
    'an interrupt',
    { stopped_by: 'signal' },
    5,
    [/^stopped early, because it was interrupted; run the same command again$/],
  ],
  [
    'its own limit',
    { stopped_by: 'max_requests' },
    5,
    [/^stopped early, because --max-requests allows no more requests; run the same/],
  ],
  ['nobody there', { stopped_by: 'unreachable', words: 'gone' }, 6, [/cannot be reached: gone; .*METRICS_URL/]],
  ['failed windows', failed(3), 6, [/^3 windows failed; run the same command again; .*coverage/]],
  ['a refused series', { refused: 1, ...failed(1) }, 6, [/^1 series that has points is refused; .*violations list/]],
  ['refused series', { refused: 2, ...failed(2) }, 6, [/^2 series that have points are refused; /]],
  [
    'a selected name that nobody mapped',
    { unmapped: [{ setting: 'metrics.exchanges', name: 'e_1', series: ['a/b|BTC|24h||e_1||'] }] },
    6,
    [/^1 selected series is never requested: a\/b BTC 24h e_1; .*metrics: \{ exchanges: \{ e_1: NAME \} \}/],
  ],
  ['violation and failure', { violations: 1, ...failed(1) }, 4, [/^1 stored value differs/, /^1 window failed/]],
  ['violation and key', { violations: 1, stopped_by: 'unauthorised' }, 4, [/differs? upstream/, /refuses the key/]],
  [
    'violation and quota',
    { violations: 1, stopped_by: 'quota' },
    4,
    [/differs? upstream/, /stopped early, because the provider's quota is spent/],
  ],
  ['violation, nobody there', { violations: 1, stopped_by: 'unreachable' }, 4, [/differs? upstream/, /be reached/]],
  ['key and failure', { stopped_by: 'unauthorised', ...failed(1) }, 3, [/refuses the key/, /windows? failed/]],
  [
    'failure and quota',
    { stopped_by: 'quota', ...failed(1) },
    6,
    [/windows? failed/, /stopped early, because the provider's quota is spent/],
  ],
  ['failure and interrupt', { stopped_by: 'signal', ...failed(4) }, 6, [/4 windows failed/, /stopped early/]],
])('a fetch with %s ends with the gravest code and a line for each reason', (_, changes, code, lines) => {
  const error = verdict({ ...quiet, ...changes })
  expect(error === null ? 0 : exitCode(error)).toBe(code)
  const said = error?.message.split('\n') ?? []
  expect(said).toEqual(lines.map((line) => expect.stringMatching(line) as string))
})

const finding = { kind: 'file_changed', path: 'points/a.parquet', found: 'changed', remedy: 'pitlake doctor' }
const sound: Partial<VerifySummary> = {
  damage: [],
  differences: [],
  incidents: 0,
  failures: [],
  registry: null,
  own: null,
  stopped_by: null,
  resume_at: null,
}

test.each<readonly [string, object, number, readonly RegExp[]]>([
  ['all well', {}, 0, []],
  ['damage', { damage: [finding] }, 4, [/^points\/a\.parquet: changed; pitlake doctor$/]],
  ['more damage', { damage: [finding, finding, finding] }, 4, [/changed \(and 2 more\)/]],
  [
    'differences',
    { differences: [{}, {}] },
    4,
    [/^2 stored values differ upstream; .*--report.*violations acknowledge$/],
  ],
  ['failures', { failures: [{ reason: 'html' }] }, 6, [/^1 window got no usable answer: html; run the same/]],
  ['a refused key', { stopped_by: 'unauthorised' }, 3, [/refuses the key/]],
  [
    'its own limit',
    { stopped_by: 'max_requests' },
    5,
    [/^stopped early, because --max-requests allows no more requests/],
  ],
  ['damage and key', { damage: [finding], stopped_by: 'unauthorised' }, 4, [/changed/, /refuses the key/]],
  ['all of it', { damage: [finding], differences: [{}], failures: [{}] }, 4, [/changed/, /differ/, /no usable/]],
  ['failure and limit', { failures: [{}], stopped_by: 'max_requests' }, 6, [/no usable/, /stopped early/]],
])('a verify with %s ends with the gravest code and a line for each reason', (_, changes, code, lines) => {
  const error = verifyVerdict({ ...sound, ...changes } as VerifySummary)
  expect(error === null ? 0 : exitCode(error)).toBe(code)
  expect(error?.message.split('\n') ?? []).toEqual(lines.map((line) => expect.stringMatching(line) as string))
})

test('several errors are joined under the kind of the gravest', () => {
  const next = 'see'
  const six = new LakeError('incomplete', [
    { subject: 'six', next },
    { subject: 'sixth', next },
  ])
  const four = new LakeError('integrity', { subject: 'four', next, cause: six })
  const two = new LakeError('usage', { subject: 'two' })
  expect(gravestOf([])).toBeNull()
  expect(gravestOf([null, null])).toBeNull()
  expect(gravestOf([null, six])).toBe(six)
  const all = gravestOf([six, null, two, four])
  expect(all?.message).toBe('four; see\ntwo\nsix; see\nsixth; see')
  expect([all?.kind, all?.cause]).toEqual(['integrity', six])
})

test.each([
  ['file_lost', true],
  ['head_lost', true],
  ['head_changed', true],
  ['stamp_torn', true],
  ['entry_lost', false],
  ['ledger_torn', false],
] as const)('a verify of a lake with damage of kind %s compares the history: %s', (kind, compares) => {
  const damage = [damageOf('file_changed', 'a', 'b'), damageOf(kind, 'c', 'd')]
  expect(isUnreadable({ damage })).toBe(!compares)
})
