import { beforeAll, expect, test } from 'vitest'
import { noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { type Finding, type Violation, violationId } from '../../src/lake/ledger/entry.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { coverageRow, requestRow, seriesRow, violationRow } from '../helpers/lakes/drafts.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { scratch } from '../helpers/scratch.ts'

// What the lake knows of its own work, as it stood at an instant: days of January 2024 throughout.

const iso = (day: number): string => `2024-01-${String(day).padStart(2, '0')}`
const seconds = (day: number): number => Date.parse(iso(day)) / 1000
const micros = (day: number): number => seconds(day) * 1_000_000
const days = (from: number, to: number, state: string, reason: string | null, asked: number, n = 1) =>
  coverageRow(n, from * 86_400, to * 86_400, { state: state as 'covered', reason, asked_at: seconds(asked) })

const violation = (t: number, offered: string, at: number): Violation =>
  violationRow(1, t * 86_400, { offered, stored_at: micros(1), offered_at: micros(at) })
const request = (id: string, at: number) => requestRow(id, { run: 'r', asked_at: micros(at) })
const finding = (t: number, at: number): Finding => ({
  series: seriesRow(1).id,
  t: t * 86_400,
  kind: 'before_end',
  detail: 1,
  at: micros(at),
})

const root = scratch('ledger-time')
beforeAll(async () => {
  const refused = `refused since ${iso(2)}T00:00:00Z: no`
  const seen = violation(0, '2', 3)
  const other = violation(1, '3', 6)
  const { series, t, kind, offered } = seen
  await makeLake(root, [
    {
      at: iso(3),
      series: [seriesRow(1), seriesRow(2)],
      coverage: [
        days(0, 10, 'covered', 'gap', 1),
        days(10, 12, 'failed', refused, 1),
        days(12, 14, 'unsupported', `withdrawn, ${refused}`, 1),
        days(14, 15, 'failed', 'gap', 1),
        days(15, 16, 'failed', `no, ${refused}`, 1),
        days(16, 17, 'covered', 'pending', 1),
        days(17, 18, 'empty', refused, 8),
        days(0, 10, 'covered', null, 1, 2),
      ],
      violations: [seen],
      findings: [finding(0, 3)],
      requests: [request('q1', 2)],
      verified: [{ series, since: 0, until: 86_400, at: micros(4), result: 'same' }],
    },
    {
      at: iso(6),
      coverage: [days(0, 10, 'covered', null, 5)],
      violations: [other],
      findings: [finding(1, 5)],
      requests: [request('q2', 5)],
      verified: [{ series, since: 11 * 86_400, until: 13 * 86_400, at: micros(6), result: 'same' }],
    },
    { at: iso(9), accepted: [{ id: violationId(seen), series, t, kind, offered, why: 'looked at' }] },
  ])
  const ledger = await Ledger.open(root)
  const actual = { done: 1 }
  await noteRunFacts(ledger, {
    id: 'run1',
    job: 'fetch',
    started_at: micros(2),
    ended_at: micros(5),
    exit_code: 4,
    stopped_by: 'x',
    plan: { a: 1 },
    actual,
  })
  await noteRunFacts(ledger, {
    id: 'run2',
    job: 'fetch',
    started_at: micros(5),
    ended_at: micros(7),
    exit_code: 0,
    stopped_by: 'y',
    plan: { a: 1 },
    actual,
  })
  ledger.close()
  await makeViews(root)
})

const date = (column: string): string => `coalesce(strftime(timezone('UTC', ${column}), '%d'), '-')`
const day = (column: string): string => `date_diff('day', DATE '1970-01-01', CAST(timezone('UTC', ${column}) AS DATE))`

/** What each view says in a line a row. */
const said: Readonly<Record<string, string>> = {
  coverage: `asset || ' ' || ${day('since')} || '-' || ${day('until')} || ' ' || state || ' asked ' || ${date('asked_at')} || ' verified ' || ${date('verified_at')}`,
  gaps: `asset || ' ' || ${day('since')} || '-' || ${day('until')} || ' ' || missing || ' ' || state || ' ' || left(reason, 9)`,
  violations: `${day('t')} || ' ' || offered || ' ' || ${date('acknowledged_at')} || ' ' || coalesce(why, '-')`,
  clock_findings: `CAST(${day('t')} AS VARCHAR)`,
  requests: 'id',
  runs: `concat_ws(' ', id, ${date('ended_at')}, stopped_by, exit_code, plan, actual)`,
  versions: 'CAST(version AS VARCHAR)',
}

async function read(engine: Engine, observed: string | null): Promise<Record<string, string[]>> {
  await engine.run(`SET VARIABLE observed_as_of = ${observed === null ? 'NULL' : `'${observed}'`}`)
  const found: Record<string, string[]> = {}
  for (const [name, line] of Object.entries(said)) {
    const rows = await engine.rows<{ line: string }>(`SELECT ${line} AS line FROM ${name}`)
    found[name] = rows.map((row) => row.line).toSorted()
  }
  return found
}

const always = [
  'A1 12-14 unsupported asked 01 verified ',
  'A1 14-15 failed asked 01 verified -',
  'A1 15-16 failed asked 01 verified -',
  'A1 16-17 covered asked 01 verified -',
  'A2 0-10 covered asked 01 verified -',
]
const standing = ['A1 10-12 2 failed refused s', 'A1 12-14 2 unsupported withdrawn']

test('before the first commit nothing was held; a request and a run that had begun were', () =>
  withViews(root, async (engine) => {
    expect(await read(engine, `${iso(2)} 23:59:59`)).toEqual({
      coverage: [],
      gaps: [],
      violations: [],
      clock_findings: [],
      requests: ['q1'],
      runs: ['run1 - {"a":1}'],
      versions: [],
    })
    expect(await read(engine, `${iso(1)} 23:59:59`)).toMatchObject({ requests: [], runs: [] })
  }))

test('a commit counts from its instant on, and a run that ends later has not ended', () =>
  withViews(root, async (engine) => {
    const [unsupported, ...rest] = always
    const first = {
      coverage: [
        'A1 0-10 covered asked 01 verified -',
        'A1 10-12 failed asked 01 verified -',
        `${unsupported}-`,
        ...rest.slice(0, 3),
        'A1 17-18 empty asked - verified -',
        ...rest.slice(3),
      ],
      gaps: ['A1 0-10 10 covered gap', ...standing],
      violations: ['0 2 - -'],
      clock_findings: ['0'],
      requests: ['q1'],
      versions: ['1'],
    }
    expect(await read(engine, iso(3))).toEqual({ ...first, runs: ['run1 - {"a":1}'] })
    expect(await read(engine, iso(4))).toMatchObject({
      coverage: ['A1 0-10 covered asked 01 verified 04', ...first.coverage.slice(1)],
    })
    expect(await read(engine, `${iso(5)} 23:59:59`)).toMatchObject({
      gaps: first.gaps,
      requests: ['q1', 'q2'],
      runs: ['run1 05 x 4 {"a":1} {"done":1}', 'run2 - {"a":1}'],
      versions: ['1'],
    })
    expect((await read(engine, iso(5)))['runs']).toEqual(['run1 05 x 4 {"a":1} {"done":1}', 'run2 - {"a":1}'])
    expect((await read(engine, iso(5)))['requests']).toEqual(['q1', 'q2'])
  }))

test('rows that a commit replaces are gone from its instant on, and an acknowledgement is known from its own on', () =>
  withViews(root, async (engine) => {
    const [unsupported, ...rest] = always
    const second = {
      coverage: [
        'A1 0-10 covered asked 05 verified 04',
        'A1 10-12 failed asked 01 verified 06',
        `${unsupported}06`,
        ...rest.slice(0, 3),
        'A1 17-18 empty asked - verified -',
        ...rest.slice(3),
      ],
      gaps: standing,
      violations: ['0 2 - -', '1 3 - -'],
      clock_findings: ['0', '1'],
      versions: ['1', '2'],
    }
    expect(await read(engine, iso(6))).toMatchObject(second)
    const last = {
      coverage: second.coverage.map((line) => line.replace('17-18 empty asked -', '17-18 empty asked 08')),
      violations: ['0 2 09 looked at', '1 3 - -'],
      runs: ['run1 05 x 4 {"a":1} {"done":1}', 'run2 07 y 0 {"a":1} {"done":1}'],
      versions: ['1', '2', '3'],
    }
    for (const observed of [iso(9), null]) expect(await read(engine, observed)).toMatchObject(last)
  }))

test('a window counts as requested from the instant of its request on', () =>
  withViews(root, async (engine) => {
    const window = async (at: string): Promise<string | undefined> =>
      (await read(engine, at))['coverage']?.find((line) => line.includes(' 17-18 '))
    expect(await window(`${iso(7)} 23:59:59.999999`)).toBe('A1 17-18 empty asked - verified -')
    expect(await window(iso(8))).toBe('A1 17-18 empty asked 08 verified -')
  }))
