import { expect, test } from 'vitest'
import { reportOf, verdictText } from '../../src/interfaces/commands/verify.ts'
import type { Difference } from '../../src/sources/metrics/verify-findings.ts'
import type { VerifySummary } from '../../src/maintenance/upkeep/verify.ts'
import { partOf } from '../helpers/part-of.ts'

const summary: VerifySummary = {
  ok: true,
  run: 'r',
  version: 7,
  provider: 'https://p',
  requests: 2,
  points_added: 0,
  vintages_added: 0,
  incidents: 0,
  acknowledged: 0,
  own: null,
  stopped_by: null,
  resume_at: null,
  words: null,
  checked: { files: 3, bytes: 2048, series: 2, points: 1500 },
  damage: [],
  observed_again: [],
  gaps: 1,
  windows: { held: 4, chosen: 3, verified: 2, refused: 0, failed: 0, left: 0 },
  results: {
    changed: 0,
    vanished: 0,
    'null filled': 0,
    'computed_at changed': 0,
    revised: 0,
    appended: 0,
    identical: 0,
  },
  budget: 9,
  credits: 3,
  differences: [],
  failures: [],
  registry: null,
}

const difference: Difference = {
  metric: 'm/x',
  asset: 'BTC',
  interval: '24h',
  currency: null,
  exchange: null,
  network: 'eth',
  t: 'T',
  result: 'changed',
  stored: '{"a|b":"`c`\n"}',
  offered: null,
  stored_at: null,
  offered_at: 'O',
  stored_request: null,
  offered_request: 'q',
  provider_request: 'their-q',
  address: null,
}
const failure = { series: 's', since: 'S', until: 'U', reason: 'html', refused: false }
const damage = partOf<VerifySummary['damage'][number]>({
  kind: 'file_changed',
  severity: 'damage',
  path: 'f',
  found: 'got others',
  remedy: 'pitlake doctor',
})

const head = [
  'files      3 read in full, 2.0 kB, all sound',
  'contents   1,500 points of 2 series, 1 known gaps',
  'windows    2 of 3 compared, 4 stored',
]
const asked = 'requested  2 requests, 3 credits'

test('the report for people lists files read and points compared, without empty parts', () => {
  expect(verdictText(summary).split('\n')).toEqual([...head, asked, ''])
  const results = { ...summary.results, identical: 1200, appended: 1 }
  expect(verdictText({ ...summary, results, points_added: 5, acknowledged: 2 }).split('\n')).toEqual([
    ...head,
    'results    1 appended, 1,200 identical',
    'appended   5 points',
    asked,
    'known      2 acknowledged differences, not reported again',
    '',
  ])
})

test('the report shows ten of each kind and the number of further ones', () => {
  const windows = { ...summary.windows, failed: 12, left: 1 }
  const told = verdictText({
    ...summary,
    windows,
    failures: Array.from({ length: 12 }, () => failure),
    differences: [{ ...difference, stored: '5' }],
  })
  expect(told.split('\n').slice(3)).toEqual([
    asked,
    'failed     12 windows without a usable answer',
    'left       1 window for the next run',
    '',
    'changed    m/x BTC 24h eth, t T',
    '           stored 5 at an unknown time',
    '           offered nothing at O',
    '           request q',
    ...Array.from({ length: 10 }, () => ['', 'failed     s: html']).flat(),
    '',
    'and 2 more: see --json or --report FILE',
    '',
  ])
  expect(verdictText({ ...summary, damage: [damage] }).split('\n')).toEqual([
    head[0]?.replace('all sound', '1 findings'),
    ...head.slice(1),
    asked,
    '',
    'damage     f: got others',
    '           remedy: pitlake doctor',
    '',
  ])
})

const top = [
  '# Verification of stored history',
  '',
  '- provider: https://p',
  '- run: r, lake version 7',
  '- windows compared: 2 of 3',
  ...Object.keys(summary.results).map((name) => `- ${name}: 0`),
  '',
  'All times are UTC. Values are compared bit for bit. `stored` is the value of an earlier answer, `offered` is',
  'the value that the same address returns now. No stored value was changed.',
  '',
]

test('the report says that nothing differs, or each difference in the table of its request', () => {
  expect(reportOf(summary).split('\n')).toEqual([...top, 'Nothing differs.', ''])
  const full = { ...summary, differences: [difference], failures: [failure], damage: [damage] }
  expect(reportOf(full).split('\n')).toEqual([
    ...top,
    '## m/x BTC 24h eth',
    '',
    '- address: `unknown`',
    "- requested at O, request `q`, the provider's id `their-q`",
    '',
    '| t | what | stored | offered | stored at | stored by request |',
    '| --- | --- | --- | --- | --- | --- |',
    '| T | changed | `{"a\\|b":" c  "}` | nothing |  |  |',
    '',
    '## Windows without a usable answer',
    '',
    '- `s`, S to U: html',
    '',
    '## Damage in this lake (not for the provider)',
    '',
    '- `f`: got others; pitlake doctor',
    '',
  ])
  expect(reportOf({ ...summary, failures: [failure] })).toMatch(
    /\n\n## Windows without a usable answer\n\n- .*: html\n$/,
  )
})
