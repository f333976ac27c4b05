import { expect } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { commit, noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { toState } from '../../src/lake/ledger/archived-rows.ts'
import {
  archivedState,
  storedAnswers,
  loadCoverage,
  storedSeries,
  storedStates,
  storedVersions,
  liveFiles,
  mergedFrom,
  summary,
} from '../../src/lake/ledger/index-queries.ts'
import { datedPointsSql, earlierDatings, redatedLabel } from '../../src/sources/points/datings.ts'
import { storedRuns, requestTotals, verifiedTotals, versionChanges } from '../../src/lake/ledger/run-queries.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { rowsAs } from '../../src/lake/ledger/index-rows.ts'
import { count, listOf, orNull, real, shape, text } from '../../src/base/value-checks.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { commitDeps, coverageRow, requestRow, seriesRow, stage, violationRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'

test.each([
  ['coverage', 'state', "'coverd'", loadCoverage],
  ['coverage', 'until', "'soon'", storedAnswers],
  ['series', 'interval', "'2h'", storedSeries],
  ['series', 'params', `'{"a":1}'`, storedSeries],
  ['files', 'meta', "'[]'", liveFiles],
  ['files', 'rows', '1.5', liveFiles],
  ['versions', 'provider', `'{"metrics":"x"}'`, storedVersions],
  ['runs', 'plan', "'{'", (ledger: Ledger) => storedRuns(ledger, 9)],
] as const)(
  'a row of %s with another %s than it can have (%s) is refused where it is read',
  (table, column, cell, read) =>
    inFolder(async (root) => {
      using ledger = await Ledger.open(root)
      const series = [seriesRow(0)]
      const draft = { job: 'fetch', run: 'a', provider: { metrics: 'x', synthetic: true }, series }
      const add = [stage(root, 'f', 'content')]
      await commit(ledger, { ...draft, add, coverage: [coverageRow(0, 0, 86_400)] }, commitDeps())
      await noteRunFacts(ledger, { id: 'a', job: 'fetch', plan: {} })
      expect(() => read(ledger)).not.toThrow()
      ledger.exec(`UPDATE ${table} SET ${column} = ${cell}`)
      expect(() => read(ledger)).toThrow(new RegExp(`holds .* in ${column}; run pitlake doctor --rebuild-ledger`))
      expect(() => read(ledger)).toThrow(LakeError)
    }),
)

test('windows, requests and repetitions are counted by their outcome', async ({ root }) => {
  using ledger = await Ledger.open(root)
  const now = 1_700_000_000
  const day = 86_400
  const said = [
    { state: 'covered', reason: null },
    { state: 'covered', reason: 'gap' },
    { state: 'covered', reason: 'gap' },
    { state: 'covered', reason: 'pending' },
    { state: 'empty', reason: null },
    { state: 'unsupported', reason: '400: no' },
    { state: 'unsupported', reason: '400: no' },
    { state: 'failed', reason: 'refused since 2024-01-01T00:00:00Z: 400: no' },
    { state: 'failed', reason: 'refused since 2024-01-01T00:00:00Z: 400: no' },
    { state: 'failed', reason: 'torn' },
  ] as const
  const coverage = said.map((one, n) => coverageRow(0, 2 * n * day, (2 * n + 1) * day, one))
  // One of before yesterday, two in one minute, one in another, and in that of the two one of another API and one for
  // metadata.
  const instants = [now - 2 * day, now - 60, now - 50, now - 180, now - 55, now - 55]
  const requests = instants.map((at, n) =>
    requestRow(`q-${n}`, {
      api: n === 4 ? 'registry' : 'metrics',
      series: n === 5 ? null : 'BTC',
      attempts: n === 0 ? 1 : 3,
      asked_at: Math.floor(at / 60) * 60_000_000,
    }),
  )
  const window = { series: seriesRow(0).id, since: 0, until: day }
  const results = ['identical', 'appended', 'changed', 'changed'] as const
  const verified = results.map((result, n) => ({ ...window, at: 5 + n, result }))
  // Of a series of its own: more than before is no other answer.
  verified.push({ ...window, series: seriesRow(1).id, at: 4, result: 'appended' })
  const provider = { metrics: 'sandbox:1', synthetic: true }
  const draft = { job: 'fetch', run: 'a', provider, series: [seriesRow(0)], coverage, requests, verified }
  await commit(ledger, draft, commitDeps())
  const windows = { covered: 4, empty: 1, unsupported: 2, failed: 3 }
  expect(summary(ledger)).toMatchObject({ series: 1, files: 0, bytes: 0, windows, gaps: 4, pending: 1, newest: null })
  const totals = { total: 6, credits: 12, day: 5, day_credits: 10, busiest_minute: 6 }
  expect(requestTotals(ledger, now * 1_000_000)).toEqual(totals)
  expect(verifiedTotals(ledger)).toEqual({ windows: 5, differing: 1, refused: 0, last_at: 8 })
})

test('sources of a merged file are the replaced files of its partition with at least its rows', async ({ root }) => {
  using ledger = await Ledger.open(root)
  const draft = { job: 'compact', run: 'a', provider: { metrics: 'x', synthetic: true } }
  const other = stage(root, 'other', 'o', { interval: '1h', path: 'points/metric=m/interval=1h/o.parquet' })
  const begun = { ...draft, add: [...['a', 'b', 'c'].map((name) => stage(root, name, name)), other] }
  await commit(ledger, begun, commitDeps())
  const paths = ['a', 'b', 'c', 'merged'].map((name) => stage(root, name, '').path)
  const add = [stage(root, 'merged', 'ab', { rows: 2 })]
  await commit(ledger, { ...draft, remove: [...paths.slice(0, 2), other.path], add }, commitDeps())
  const [, merged] = liveFiles(ledger)
  expect(liveFiles(ledger).map(({ path }) => path)).toEqual([paths[2], paths[3]])
  if (!merged) throw new Error('no merged file')
  expect(mergedFrom(ledger, merged).map(({ path }) => path)).toEqual(paths.slice(0, 2))
  expect(mergedFrom(ledger, { ...merged, rows: 3 })).toEqual([])
  expect(versionChanges(ledger).map(({ committed_at: _at, ...change }) => change)).toEqual([
    { ...nothingChanged, version: 1, added: { files: 4, rows: 4, bytes: 4 } },
    {
      ...nothingChanged,
      version: 2,
      added: { files: 1, rows: 2, bytes: 2 },
      replaced: { files: 3, rows: 3, bytes: 3 },
    },
  ])
})

const none = { files: 0, rows: 0, bytes: 0 }
const nothingChanged = {
  job: 'compact',
  run: 'a',
  points_added: 0,
  added: none,
  replaced: none,
  removed: none,
  violations: 0,
  stamps: 0,
  rules: false,
}

test('state is found by the beginning of its name, as it was committed', async ({ root }) => {
  using ledger = await Ledger.open(root)
  const state = { 'note:a': 'x', 'note:b%': 'y', note: 'z', 'not:a': 'w' }
  const rules = { digest: 'd', rules: {} }
  const draft = { job: 'fetch', run: 'a', provider: { metrics: 'x', synthetic: true } }
  await commit(ledger, { ...draft, state, rules }, commitDeps())
  const at = expect.any(Number)
  expect(storedStates(ledger, 'note:', text)).toEqual([
    { key: 'a', value: 'x', at },
    { key: 'b%', value: 'y', at },
  ])
  expect(() => storedStates(ledger, 'note:', count)).toThrow(LakeError)
  expect(versionChanges(ledger).map(({ rules: changed }) => changed)).toEqual([true])
})

test('rows written to files leave the index: requests at once, runs after a month, verify results never', async ({
  root,
}) => {
  using ledger = await Ledger.open(root)
  const month = 30 * 86_400_000_000
  const before = 2_000_000_000_000_000
  for (const [id, started_at, job] of [
    ['old', before - month - 1, 'fetch'],
    ['checked', before - month - 1, 'verify'],
    ['of the month', before - month, 'fetch'],
  ] as const)
    await noteRunFacts(ledger, { id, job, started_at })
  const requests = [before - 1, before].map((asked_at) => requestRow(`at ${asked_at}`, { asked_at }))
  const draft = { run: 'a', provider: { metrics: 'x', synthetic: true } }
  await commit(
    ledger,
    { ...draft, job: 'fetch', series: [seriesRow(0)], coverage: [coverageRow(0, 0, 9)], requests },
    commitDeps(),
  )
  expect(archivedState(ledger)).toEqual({ before: 0, requests: 0, credits: 0 })
  const archived = { before, requests: 1, credits: 2 }
  await commit(ledger, { ...draft, job: 'vacuum', state: toState(archived) }, commitDeps())
  expect((await readEntry(root, 2)).entry.state).toEqual({ archived })
  expect(archivedState(ledger)).toEqual(archived)
  expect([...ledger.rowsOf('requests')].map(({ id }) => id)).toEqual([`at ${before}`])
  expect([...ledger.rowsOf('runs')].map(({ id }) => id)).toEqual(['checked', 'of the month'])
})

test('earlier datings follow one another within their partition only', () => {
  const file = (metric: string | null, interval: '24h' | '1h', until: number, path: string, table = 'redated') =>
    ({ table, label: redatedLabel(until), metric, interval, path }) as const
  const files = [
    file('b', '24h', 9, 'b9'),
    file('a', '24h', 20, 'a20'),
    file('a', '1h', 7, 'h7'),
    file('a', '24h', 3, 'a3'),
    file('a', '24h', 20, 'a20 too'),
    file('a', '24h', 1, 'now', 'points'),
    file(null, '24h', 2, 'recent'),
  ]
  const a = { metric: 'a', interval: '24h' } as const
  expect(earlierDatings(files)).toEqual([
    { metric: 'a', interval: '1h', from: null, until: 7, paths: ['h7'] },
    { ...a, from: null, until: 3, paths: ['a3'] },
    { ...a, from: 3, until: 20, paths: ['a20', 'a20 too'] },
    { metric: 'b', interval: '24h', from: null, until: 9, paths: ['b9'] },
  ])
})

test('a partition is read as dated at the given instant, or by its newest dating without one', async () => {
  using engine = await Engine.open()
  await engine.run(`CREATE TABLE stored AS SELECT * FROM (VALUES ('now', 'a', '24h'), ('now', 'a', '1h'), ('now', 'b', '24h'),
    ('now', 'c', '24h'), ('a3', 'a', '24h'), ('a20', 'a', '24h'), ('h7', 'a', '1h'), ('b3', 'b', '24h')) AS s (path, metric, "interval")`)
  const of = (metric: string, interval: '24h' | '1h', from: number | null, until: number, path: string) => ({
    metric,
    interval,
    from,
    until,
    paths: [path],
  })
  const datings = [
    of('a', '1h', null, 7, 'h7'),
    of('a', '24h', null, 3, 'a3'),
    of('a', '24h', 3, 20, 'a20'),
    of('b', '24h', null, 3, 'b3'),
  ]
  const read = (paths: readonly string[]): string =>
    `(FROM stored WHERE path IN (${paths.map((path) => `'${path}'`).join(', ')}))`
  const seen = async (at: number | null, all = datings): Promise<string[]> => {
    const instant = at === null ? 'CAST(NULL AS TIMESTAMPTZ)' : `make_timestamptz(${at}::BIGINT)`
    const rows = await engine.rows<{ said: string }>(
      `SELECT path || ' ' || metric || ' ' || "interval" AS said FROM ${datedPointsSql(read(['now']), all, read, instant)} ORDER BY ALL`,
    )
    return rows.map(({ said }) => said)
  }
  const newest = ['now a 1h', 'now a 24h', 'now b 24h', 'now c 24h']
  for (const at of [null, 20, 99]) expect(await seen(at)).toEqual(newest)
  expect(await seen(2)).toEqual(['a3 a 24h', 'b3 b 24h', 'h7 a 1h', 'now c 24h'])
  expect(await seen(3)).toEqual(['a20 a 24h', 'h7 a 1h', 'now b 24h', 'now c 24h'])
  expect(await seen(7)).toEqual(['a20 a 24h', 'now a 1h', 'now b 24h', 'now c 24h'])
  expect(await seen(2, [])).toEqual(newest)
})

test('old requests stay while a live window or a violation names them', async ({ root }) => {
  using ledger = await Ledger.open(root)
  const requests = ['live', 'left', 'doubted', 'unnamed'].map((id) => requestRow(id))
  const draft = { run: 'a', job: 'fetch', provider: { metrics: 'x', synthetic: true } }
  const violation = violationRow(0, 5, { request: 'doubted' })
  const windows = [coverageRow(0, 0, 9, { request: 'left' }), coverageRow(0, 90, 99)]
  await commit(
    ledger,
    { ...draft, series: [seriesRow(0)], coverage: windows, violations: [violation], requests },
    commitDeps({ nowMicros: () => 10 }),
  )
  await commit(
    ledger,
    {
      ...draft,
      coverage: [coverageRow(0, 0, 9, { request: 'live', asked_at: 2000, state: 'failed', reason: 'torn' })],
    },
    commitDeps({ nowMicros: () => 20 }),
  )
  const kept = async (before: number): Promise<unknown[]> => {
    await commit(
      ledger,
      { ...draft, job: 'archive', state: toState({ before, requests: 0, credits: 0 }) },
      commitDeps({ nowMicros: () => 30 }),
    )
    return [...ledger.rowsOf('requests')].map((row) => String(row['id'])).toSorted()
  }
  expect(await kept(1)).toEqual(['doubted', 'left', 'live', 'unnamed'])
  expect(await kept(20)).toEqual(['doubted', 'live'])
})

test('the last by name is the newest of runs that began together', async ({ root }) => {
  using ledger = await Ledger.open(root)
  for (const [id, at] of [
    ['b', 5],
    ['d', 4],
    ['a', 5],
    ['c', 5],
  ] as const)
    await noteRunFacts(ledger, { id, job: 'fetch', started_at: at })
  const newest = (most: number): string[] => storedRuns(ledger, most).map(({ id }) => id)
  expect(newest(9)).toEqual(['c', 'b', 'a', 'd'])
  expect(newest(2)).toEqual(['c', 'b'])
  expect(newest(3)).toEqual(['c', 'b', 'a'])
})

test('live files are listed by table and partition, then by version, whatever their names', async ({ root }) => {
  using ledger = await Ledger.open(root)
  const provider = { metrics: 'sandbox:1', synthetic: true }
  for (const [run, names] of [
    ['a', ['z', 'c']],
    ['b', ['y', 'b']],
    ['c', ['x']],
  ] as const)
    await commit(
      ledger,
      { job: 'fetch', run, provider, add: names.map((name) => stage(root, name, name)) },
      commitDeps(),
    )
  const listed = (version?: number) =>
    liveFiles(ledger, version === undefined ? {} : { version }).map(({ path }) =>
      path.replace(/.*\/(.*)\.parquet/, '$1'),
    )
  expect(listed()).toEqual(['c', 'z', 'b', 'y', 'x'])
  expect(listed(2)).toEqual(['c', 'z', 'b', 'y'])
  expect(listed(1)).toEqual(['c', 'z'])
})

test('rows of data files are records of the requested columns, or an error of integrity', async () => {
  using engine = await Engine.open()
  const fields = { n: count, none: orNull(real), list: listOf(shape({ at: real })) }
  const row = (n: string): string => `SELECT ${n} AS n, NULL AS none, [{'at': 7::BIGINT}] AS list`
  expect(await rowsAs(engine, fields, row('3::HUGEINT'))).toEqual([{ n: 3, none: null, list: [{ at: 7 }] }])
  for (const [n, got] of [
    ["'3'", 'n: no count'],
    ['NULL', 'n: no count'],
    ['-1', 'n: no count'],
  ] as const)
    await expect(rowsAs(engine, fields, row(n))).rejects.toMatchObject({ kind: 'integrity', complaints: [{ got }] })
  await expect(rowsAs(engine, { further: text }, row('1'))).rejects.toThrow('further: no text')
})
