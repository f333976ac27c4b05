import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { commit, noteRunFacts, sha256File } from '../../src/lake/ledger/commit.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { listedAs } from '../../src/lake/ledger/draft.ts'
import {
  loadCoverage,
  storedSeries,
  storedState,
  storedVersions,
  liveFiles,
} from '../../src/lake/ledger/index-queries.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { agreeProvider } from '../../src/lake/ledger/provider.ts'
import { openSpool, sweep } from '../../src/lake/ledger/spool-sweep.ts'
import { commitDeps, coverageRow, draftOf, dump, seriesRow, stage, violationRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test as it } from '../helpers/lake-test.ts'

const deps = commitDeps()
const synthetic = { metrics: 'sandbox:1', synthetic: true }

it('the digest of a file is that of all its bytes', async ({ root }) => {
  for (const length of [0, 1, 5000, 1 << 20, (1 << 20) + 1, 3_000_000]) {
    const bytes = Buffer.alloc(length, 'a text that does not fit into a block')
    writeFileSync(`${root}/file`, bytes)
    expect([length, await sha256File(`${root}/file`)]).toEqual([
      length,
      createHash('sha256').update(bytes).digest('hex'),
    ])
  }
})

describe('a commit', () => {
  it('moves files in, writes one entry and is seen by the index', async ({ root }) => {
    using ledger = await Ledger.open(root)
    const made = await commit(ledger, draftOf(root, 0), deps)
    expect(made).toMatchObject({ made: true, version: 1, points_added: 1, files_added: 1 })
    const [file] = liveFiles(ledger)
    expect(file?.sha256).toBe(await sha256File(inLake(root, file?.path ?? '')))
    expect(existsSync(inLake(root, 'spool/r/f-r-0'))).toBe(false)
    const { entry } = await readEntry(root, 1)
    expect(entry.files.add[0]).toMatchObject({ path: file?.path, bytes: 9 })
    expect(entry.committed_at).toBe(made.committed_at)
  })

  it('a commit without news makes no version but records its requests and their times', async ({ root }) => {
    const ledger = await Ledger.open(root)
    const empty = coverageRow(0, 0, 10, { state: 'empty', asked_at: 5 })
    const facts = violationRow(0, 0)
    const draft = { job: 'fetch', run: 'a', provider: synthetic, series: [seriesRow(0)], coverage: [empty] }
    const whole = { ...draft, violations: [facts, facts], state: { cursor: 'x' } }
    expect(await commit(ledger, whole, deps)).toMatchObject({ made: true, version: 1, violations_added: 1 })
    const again = { ...whole, run: 'b', coverage: [{ ...empty, asked_at: 99 }], passing: { polled: 1 } }
    expect(await commit(ledger, again, deps)).toMatchObject({ made: false, version: 1, violations_added: 0 })
    expect(loadCoverage(ledger, [empty.series]).get(empty.series)).toEqual([{ ...empty, asked_at: 99 }])
    expect(await commit(ledger, async () => null, deps)).toMatchObject({ made: false, version: 1 })
    const moved = { ...draft, run: 'c', state: { cursor: 'y' } }
    expect(await commit(ledger, moved, deps)).toMatchObject({ made: true, version: 2 })
    expect(storedState(ledger, 'cursor')).toBe('y')
    const before = dump(ledger)
    ledger.close()
    using rebuilt = await Ledger.rebuild(root)
    expect(dump(rebuilt)).toEqual(before)
  })

  it('has a clock that only goes forward', async ({ root }) => {
    using ledger = await Ledger.open(root)
    const clock = [5000, 100, 100, 6000, 5999]
    for (const [n, now] of clock.entries()) await commit(ledger, draftOf(root, n), commitDeps({ nowMicros: () => now }))
    expect(storedVersions(ledger).map((version) => version.committed_at)).toEqual([5000, 5001, 5002, 6000, 6001])
  })

  it('is not made at an instant that the lake could not keep, nor is a run written down then', async ({ root }) => {
    using ledger = await Ledger.open(root)
    const late = Date.UTC(2300, 0) * 1000
    const wrong = { kind: 'incomplete', message: expect.stringMatching(/before 2255-.*got 2300-01-01/) as string }
    await expect(commit(ledger, draftOf(root, 0), commitDeps({ nowMicros: () => late }))).rejects.toMatchObject(wrong)
    await expect(noteRunFacts(ledger, { id: 'r', started_at: late })).rejects.toMatchObject(wrong)
    expect([existsSync(inLake(root, 'journal')), existsSync(inLake(root, 'runs'))]).toEqual([false, false])
  })

  it('writes down only what it has to say', async ({ root }) => {
    using ledger = await Ledger.open(root)
    await commit(ledger, { ...draftOf(root, 0), uncovered: [], accepted: [] }, deps)
    const { entry } = await readEntry(root, 1)
    expect(Object.keys(entry).filter((key) => /uncovered|accepted/.test(key))).toEqual([])
    // A window that is plainly covered is never asked again because of when it was asked.
    const { coverage = [], series = [], provider } = draftOf(root, 0)
    const again = coverage.map((row) => ({ ...row, asked_at: 9999 }))
    const said = await commit(ledger, { job: 'fetch', run: 'again', provider, series, coverage: again }, deps)
    expect([said.made, existsSync(inLake(root, 'runs'))]).toEqual([false, false])
    // A window without length says nothing, also where it is told beside what is taken back.
    const none = coverageRow(0, 9 * 86_400, 9 * 86_400, { state: 'failed' })
    await commit(
      ledger,
      { ...draftOf(root, 1), series: [seriesRow(0), seriesRow(1)], uncovered: [], coverage: [none] },
      deps,
    )
    expect(loadCoverage(ledger, [none.series]).get(none.series)).toEqual(coverage)
  })

  it('names the interval of a series once it shows one', async ({ root }) => {
    using ledger = await Ledger.open(root)
    const draft = { job: 'fetch', run: 'a', provider: synthetic }
    const progress = [{ series: seriesRow(0).id, points: 1, first_t: 0, last_t: 0 }]
    for (const settled of [null, '1h', null] as const)
      await commit(ledger, { ...draft, series: [seriesRow(0, { settled })], progress }, deps)
    expect(storedSeries(ledger).get(seriesRow(0).id)).toMatchObject({ settled: '1h', points: 3 })
  })

  it('refuses to remove a file that has left the view, and to reuse a name', async ({ root }) => {
    using ledger = await Ledger.open(root)
    await commit(ledger, draftOf(root, 0), deps)
    const [file] = liveFiles(ledger)
    const merge = { job: 'compact', run: 'c', provider: synthetic, remove: [file?.path ?? ''] }
    await expect(commit(ledger, draftOf(root, 0), deps)).rejects.toThrow(/listed already/)
    await expect(commit(ledger, { ...merge, remove: [], drop: merge.remove }, deps)).rejects.toThrow(/live one/)
    await commit(ledger, { ...merge, add: [stage(root, 'merged', 'all')] }, deps)
    await expect(commit(ledger, merge, deps)).rejects.toThrow(/left it/)
    expect(liveFiles(ledger).map((f) => f.path)).toEqual(['points/metric=m%2Fx/interval=24h/merged.parquet'])
    expect(liveFiles(ledger, { version: 1 }).map((f) => f.path)).toEqual(merge.remove)
  })
})

it('lists a file of the lake once more only under another label, and none that is not of the lake', async ({
  root,
}) => {
  using ledger = await Ledger.open(root)
  await commit(ledger, draftOf(root, 0), deps)
  const [file] = liveFiles(ledger)
  if (!file) throw new Error('no file')
  const again = { job: 'repair', run: 'r', provider: synthetic }
  const listed = (as: { readonly path?: string; readonly label?: string }) => ({
    ...again,
    add: [{ ...listedAs(file, {}), ...as }],
  })
  await expect(commit(ledger, listed({}), deps)).rejects.toThrow(/listed already/)
  await expect(commit(ledger, listed({ path: 'points/none.parquet', label: 'other' }), deps)).rejects.toThrow(
    /not listed/,
  )
  expect(await commit(ledger, listed({ label: 'other' }), deps)).toMatchObject({ made: true })
  await expect(commit(ledger, listed({ label: 'other' }), deps)).rejects.toThrow(/listed already/)
  await commit(ledger, draftOf(root, 1), deps)
  const second = liveFiles(ledger).find(({ path }) => path !== file.path)
  if (!second) throw new Error('no second file')
  const further = { ...again, add: [{ ...listedAs(second, {}), label: 'other' }] }
  expect(await commit(ledger, further, deps)).toMatchObject({ made: true })
  expect(
    liveFiles(ledger)
      .filter(({ path }) => path === file.path)
      .map(({ label }) => label),
  ).toEqual([file.label, 'other'])
})

describe('a failing disk', () => {
  const steps = ['sync', 'move', 'write', 'claim', 'syncFolder'] as const
  const codes = ['ENOSPC', 'EACCES', 'EROFS', 'ENOENT'] as const
  it.each(steps.flatMap((step) => codes.map((code) => [step, code] as const)))(
    '%s: %s is said clearly, loses nothing and is made good by the same command',
    (step, code) =>
      inFolder(async (root) => {
        using ledger = await Ledger.open(root)
        await commit(ledger, draftOf(root, 0), deps)
        const fail = async (path: string): Promise<never> => {
          throw Object.assign(new Error(code), { code, path })
        }
        const failing: Disk = { ...realDisk, [step]: fail }
        const failed = commit(ledger, draftOf(root, 1), { ...deps, disk: failing })
        await expect(failed).rejects.toSatisfy((e) => e instanceof LakeError && e.message.includes(code))
        const version = (await ledger.catchUp()).version
        expect(version).toBe(1)
        expect(liveFiles(ledger)).toHaveLength(1)
        expect(await sweep(ledger, deps)).toEqual([])
        expect(await commit(ledger, draftOf(root, 1), deps)).toMatchObject({ made: true, version: 2 })
        expect(liveFiles(ledger)).toHaveLength(2)
      }),
  )

  it('after the entry is visible takes nothing back', async ({ root }) => {
    using ledger = await Ledger.open(root)
    const syncFolder = async (path: string): Promise<void> => {
      if (path.endsWith('journal') && existsSync(inLake(root, 'journal/0000000001.json.gz')))
        throw Object.assign(new Error('EIO'), { code: 'EIO' })
    }
    await expect(commit(ledger, draftOf(root, 0), { ...deps, disk: { ...realDisk, syncFolder } })).rejects.toThrow(
      /EIO/,
    )
    expect((await ledger.catchUp()).version).toBe(1)
    expect(existsSync(inLake(root, liveFiles(ledger)[0]?.path ?? 'none'))).toBe(true)
  })
})

describe('sweeping', () => {
  it('sweeping removes files that no entry names and leaves those of a living run', async ({ root }) => {
    using ledger = await Ledger.open(root)
    await commit(ledger, draftOf(root, 0), deps)
    const spool = await openSpool(root, 'alive', deps)
    const orphans = [
      'points/metric=a/interval=24h/0000000002-x.parquet',
      'registry/products/0000000001-y.parquet',
      'spool/20240301t060000004z-7/z',
      'journal/.tmp-9-x',
    ]
    for (const path of [...orphans, spool.path('mine'), 'quarantine/q']) {
      mkdirSync(inLake(root, path.slice(0, path.lastIndexOf('/'))), { recursive: true })
      writeFileSync(inLake(root, path), 'x')
    }
    const locks = ['lock', 'json'].map((end) => inLake(root, `locks/spool-20240301t060000004z-7.${end}`))
    for (const lock of locks) writeFileSync(lock, '')
    const swept = await sweep(ledger, deps)
    expect(locks.filter((lock) => existsSync(lock))).toEqual([])
    expect(swept).toEqual(
      expect.arrayContaining([...orphans.slice(0, 2), 'spool/20240301t060000004z-7', 'journal/.tmp-9-x']),
    )
    for (const path of orphans) expect(existsSync(inLake(root, path))).toBe(false)
    expect(existsSync(spool.file('mine'))).toBe(true)
    expect(existsSync(inLake(root, 'quarantine/q'))).toBe(true)
    expect(existsSync(inLake(root, liveFiles(ledger)[0]?.path ?? 'none'))).toBe(true)
    await spool.close()
    expect(await sweep(ledger, deps)).toEqual([])
  })
})

describe('the provider', () => {
  const real = { metrics: 'https://a/v1', synthetic: false }
  it('the provider of a lake can change its address if told so, but not from real to synthetic', () => {
    expect(() => agreeProvider(real, { ...real, metrics: 'https://b/v1' }, false)).toThrow(
      /https:\/\/a\/v1.*https:\/\/b\/v1/,
    )
    expect(agreeProvider(real, { ...real, metrics: 'https://b/v1' }, true).metrics).toBe('https://b/v1')
    expect(() => agreeProvider(real, synthetic, true)).toThrow(/real.*synthetic/)
    const both = agreeProvider(real, { registry: 'https://r/v1', synthetic: false }, false)
    expect(both).toEqual({ ...real, registry: 'https://r/v1' })
  })
  it('is checked by every commit, before anything is moved', async ({ root }) => {
    using ledger = await Ledger.open(root)
    await commit(ledger, draftOf(root, 0), deps)
    const other = { ...draftOf(root, 1), provider: { metrics: 'sandbox:2', synthetic: true } }
    await expect(commit(ledger, other, deps)).rejects.toMatchObject({ kind: 'usage' })
    expect(existsSync(inLake(root, 'spool/r/f-r-1'))).toBe(true)
    expect(await commit(ledger, { ...other, providerMoved: true }, deps)).toMatchObject({ version: 2 })
  })
})
