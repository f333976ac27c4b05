import { rmSync } from 'node:fs'
import { expect } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { commit, noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { lagsOfCopies } from '../../src/lake/ledger/derived.ts'
import type { Stamp } from '../../src/lake/ledger/entry.ts'
import { storedStamps } from '../../src/lake/ledger/index-queries.ts'
import { storedCopies, storedRuns } from '../../src/lake/ledger/run-queries.ts'
import { withLake } from '../../src/lake/ledger/job.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import type { RunFacts } from '../../src/lake/ledger/run-facts.ts'
import { lostStamps, stampSchema, writeStamp } from '../../src/lake/ledger/stamps.ts'
import { publishing } from '../../src/maintenance/publish/lake.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'

test('a stamp note enters the index and no checkpoint, and a missing one is noticed', async ({ root, ledger }) => {
  const provider = { metrics: 'x', synthetic: true }
  const stamp: Stamp = {
    id: 'f'.repeat(16),
    version: 1,
    digest: 'd',
    query_digest: 'q',
    path: null,
    at: 7,
    detail: { rows: 3 },
  }
  await commit(ledger, { job: 'fetch', run: 'a', provider, state: { a: 1 } }, commitDeps())
  await commit(ledger, { job: 'fetch', run: 'b', provider, state: { a: 2 } }, commitDeps())
  const { lake } = ledger.head()
  const about = { schema_version: stampSchema, program: 'p', rules: null, files: [] }
  const notes = [
    { ...stamp, id: '1'.repeat(16), version: 2, lake: lake ?? '' },
    { ...stamp, id: '2'.repeat(16), version: 3, lake: lake ?? '' },
    { ...stamp, id: '3'.repeat(16), version: 2, lake: 'another' },
  ]
  for (const note of notes) expect(await writeStamp(realDisk, root, `${root}/t`, { ...about, ...note })).toBe(true)
  await ledger.catchUp()
  const ids = (of: Ledger): string[] => storedStamps(of).map(({ id }) => id[0] ?? '')
  expect(ids(ledger)).toEqual(['1'])
  expect(storedStamps(ledger)[0]).toMatchObject({ ...stamp, id: '1'.repeat(16), version: 2 })
  expect(await lostStamps(ledger, root)).toEqual([])
  await writeCheckpoint(realDisk, ledger)
  using again = await Ledger.inMemory(root)
  expect(ids(again)).toEqual(['1'])
  rmSync(`${root}/stamps/${'1'.repeat(16)}.json`)
  expect(await lostStamps(ledger, root)).toEqual(['1'.repeat(16)])
  using without = await Ledger.inMemory(root)
  expect(ids(without)).toEqual([])
})

test.each([
  ['comes to its end', null, null, { stopped_by: null, exit_code: 0 }],
  [
    'stops early',
    'quota',
    new LakeError('stopped', { subject: 's', next: 'n' }),
    { stopped_by: 'quota', exit_code: 5 },
  ],
  ['fails', 'thrown', new LakeError('busy', { subject: 's', next: 'n' }), { stopped_by: 'error', exit_code: 7 }],
])('a run that %s is recorded with its result', (_, stopped_by, error, end) =>
  inFolder(async (root) => {
    const clock = { micros: 1_000_000_000 }
    const deps = commitDeps({ nowMicros: () => (clock.micros += 500_000) })
    const ends: number[] = []
    const job = withLake(
      { root, name: 'fetch' },
      { ...deps, atEnd: async ({ requests }) => void ends.push(requests) },
      async (run) => {
        await run.begin({ requests: 3 }, () => ({ requests: 2 }))
        if (stopped_by === 'thrown') throw error
        return { value: 'done', stopped_by, error }
      },
    )
    if (stopped_by === 'thrown') await expect(job).rejects.toBe(error)
    else expect(await job).toBe('done')
    using ledger = await Ledger.open(root)
    const [told] = storedRuns(ledger, 9)
    expect(told).toMatchObject({ job: 'fetch', plan: { requests: 3 }, actual: { requests: 2 }, ...end })
    expect([Number(told?.ended_at) > Number(told?.started_at), ends]).toEqual([
      true,
      stopped_by === 'thrown' ? [] : [2],
    ])
  }),
)

const copyRuns: readonly (readonly [result: string, version: number, end: Partial<RunFacts>])[] = [
  ['comes to its end', 2, { ended_at: 9, exit_code: 0 }],
  ['fails', 1, { ended_at: 9, exit_code: 1 }],
  ['stops early', 1, { ended_at: 9, exit_code: 5, stopped_by: 'signal' }],
  ['finds a full disk', 1, { ended_at: 9, exit_code: 6 }],
  ['is killed', 1, {}],
]

test.each(copyRuns)('a published or backed-up version 1 whose next run %s counts as version %i', (_, version, end) =>
  inFolder(async (root) => {
    using ledger = await Ledger.open(root)
    const provider = { metrics: 'x', synthetic: true }
    for (const run of ['a', 'b'])
      await commit(ledger, { job: 'fetch', run, provider, state: { [run]: 1 } }, commitDeps())
    for (const job of ['publish', 'backup']) {
      const facts = { job, command: `pitlake ${job}`, started_at: 1, plan: { version: 1, destination: '/to' } }
      await noteRunFacts(ledger, { ...facts, id: `${job}-1`, ended_at: 2, exit_code: 0 })
      await noteRunFacts(ledger, { ...facts, id: `${job}-2`, plan: { ...facts.plan, version: 2 }, ...end })
    }
    expect(storedCopies(ledger).map((copy) => `${copy.job} ${copy.version}`)).toEqual([
      `backup ${version}`,
      `publish ${version}`,
    ])
    const lags = await lagsOfCopies(ledger)
    expect(lags.map(({ thing }) => thing.version)).toEqual(version === 2 ? [] : [1, 1])
  }),
)

test('a publish that fails after it noted its version leaves no copy of that version', () =>
  inFolder(async (root) => {
    {
      using ledger = await Ledger.open(root)
      const provider = { metrics: 'x', synthetic: true }
      await commit(ledger, { job: 'fetch', run: 'a', provider, state: { a: 1 } }, commitDeps())
    }
    const failing = publishing({ root, name: 'publish' }, commitDeps(), async ({ begin }) => {
      await begin({ version: 1, destination: '/to', lake: false }, () => ({}))
      throw new LakeError('stopped', { subject: 's' })
    })
    await expect(failing).rejects.toThrow('s')
    using ledger = await Ledger.open(root)
    expect(storedRuns(ledger, 9)).toMatchObject([{ job: 'publish', exit_code: 5, plan: { version: 1 } }])
    expect(storedCopies(ledger)).toEqual([])
  }))
