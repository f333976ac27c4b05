import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test as plain, vi } from 'vitest'
import { readCheckpoint, writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { commit, type Draft, noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import {
  loadCoverage,
  storedSeries,
  storedVersions,
  liveFiles,
  summary,
  versionAt,
} from '../../src/lake/ledger/index-queries.ts'
import { foldedBefore, foldJournal } from '../../src/lake/ledger/checkpoint-writer.ts'
import { storedRuns } from '../../src/lake/ledger/run-queries.ts'
import { foldedFiles } from '../helpers/entries.ts'
import { checkpointFile, entryFile, inLake, places } from '../../src/lake/store/layout.ts'
import { pin } from '../../src/lake/store/lock.ts'
import { checkRuns } from '../../src/maintenance/upkeep/damage-journal.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { commitDeps, coverageRow, draftOf, dump, seriesRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test as it } from '../helpers/lake-test.ts'
import { need } from '../helpers/needs.ts'
import { writing } from '../helpers/ledgers.ts'

const deps = commitDeps()
const provider = { metrics: 'sandbox:1', synthetic: true }

/** A lake with files, merged and removed ones, all kinds of rows, and runs that made no version. */
async function fill(root: string): Promise<Ledger> {
  const ledger = await Ledger.open(root)
  await noteRunFacts(ledger, { id: 'r', job: 'fetch', started_at: 1, plan: { requests: 3 } })
  for (let n = 0; n < 8; n++) await commit(ledger, draftOf(root, n), deps)
  const empty = coverageRow(9, 0, 30, { state: 'empty', asked_at: 5 })
  const about = { job: 'fetch', provider, series: [seriesRow(9)] }
  await commit(ledger, { ...about, run: 's', coverage: [empty], state: { cursor: { at: 'ü\u2028' } } }, deps)
  await commit(ledger, { ...about, run: 't', coverage: [{ ...empty, since: 10, until: 20, asked_at: 7 }] }, deps)
  const late = { ...empty, state: 'covered', since: 5, until: 15, asked_at: 8 } as const
  const finding = { series: empty.series, t: 5, kind: 'before_end' as const, detail: [1], at: 3 }
  const rules = { digest: 'd', rules: { a: 1 } }
  await commit(
    ledger,
    { ...about, run: 'u', coverage: [late], findings: [finding], rules, passing: { polled: 4 } },
    deps,
  )
  const first = liveFiles(ledger)[0]?.path ?? ''
  await commit(ledger, { ...about, run: 'v', job: 'compact', remove: [first] }, deps)
  await commit(ledger, { ...about, run: 'w', job: 'vacuum', drop: [first] }, deps)
  await noteRunFacts(ledger, { id: 'r', ended_at: 9, exit_code: 0, stopped_by: null, actual: { requests: 3 } })
  return ledger
}

describe('the index', () => {
  it('is begun by two at once, the second a little later each time', async ({ root: home }) => {
    for (let lag = 0; lag < 60; lag++) {
      const root = join(home, String(lag))
      const open = async (turns: number): Promise<number> => {
        for (let turn = 0; turn < turns; turn++) await setImmediate()
        using ledger = await Ledger.open(root)
        return ledger.head().version
      }
      expect(await Promise.all([open(0), open(lag)])).toEqual([0, 0])
    }
  })

  it('lines of a run by any writer enter the index once they are forced to the disk', async ({ root, ledger }) => {
    await commit(ledger, draftOf(root, 0), deps)
    const line = { after: 1, run: { id: 'unforced', job: 'fetch', started_at: 7 } }
    mkdirSync(inLake(root, 'runs'), { recursive: true })
    writeFileSync(inLake(root, 'runs/unforced.jsonl'), `${JSON.stringify(line)}\n`)
    const forced: (readonly [string, number])[] = []
    const known = (): number => storedRuns(ledger, 9).filter(({ id }) => id === 'unforced').length
    const { sync } = realDisk
    const spy = vi.spyOn(realDisk, 'sync').mockImplementation(async (path) => {
      forced.push([path, known()])
      await sync(path)
    })
    try {
      await ledger.catchUp()
    } finally {
      spy.mockRestore()
    }
    expect(forced).toEqual([[inLake(root, 'runs/unforced.jsonl'), 0]])
    expect(known()).toBe(1)
  })

  it('is made again from the journal and the runs, row for row', async ({ root }) => {
    const ledger = await fill(root)
    const before = dump(ledger)
    expect(before['runs']).toMatchObject([{ id: 'r', started_at: 1, ended_at: 9, exit_code: 0 }])
    expect(before['coverage']?.length).toBeGreaterThan(10)
    ledger.close()
    for (const suffix of ['', '-wal', '-shm']) rmSync(inLake(root, `ledger.sqlite${suffix}`), { force: true })
    await expect(Ledger.open(root)).rejects.toMatchObject({
      kind: 'integrity',
      message: expect.stringContaining('--rebuild-ledger'),
    })
    const rebuilt = await Ledger.rebuild(root)
    expect(dump(rebuilt)).toEqual(before)
    rebuilt.close()
    const moved = `${root}-moved`
    renameSync(root, moved)
    await writing(moved, (there) => expect(dump(there)).toEqual(before))
    renameSync(moved, root)
  })

  it('reports a full disk, wherever a commit meets it', async ({ root, ledger }) => {
    await commit(ledger, draftOf(root, 0), deps)
    const [{ page_count: pages } = {}] = ledger.statement('PRAGMA page_count').all()
    ledger.exec(`PRAGMA max_page_count = ${String(pages)}`)
    const large = (): Draft => ({ ...draftOf(root, 1), state: { cursor: 'x'.repeat(100_000) } })
    // Twice: after the first one no transaction is left open.
    for (let n = 0; n < 2; n++) await expect(commit(ledger, large(), deps)).rejects.toThrow(/disk is full|ENOSPC/)
    ledger.exec('PRAGMA max_page_count = 1000000')
    await commit(ledger, large(), deps)
    expect(ledger.head().version).toBe(2)
  })

  it('reports a full disk while it reads a checkpoint', async ({ root, ledger }) => {
    for (let n = 0; n < 40; n++) await commit(ledger, draftOf(root, n), deps)
    await writeCheckpoint(realDisk, ledger)
    const small = await Ledger.inMemory(root, 0)
    const [{ page_count: pages } = {}] = small.statement('PRAGMA page_count').all()
    small.exec(`PRAGMA max_page_count = ${String(pages)}`)
    await expect(readCheckpoint(root, 40, small)).rejects.toThrow(/disk is full/)
    small.close()
  })

  it('is closed if it cannot be read, caught up or built', async ({ root }) => {
    using whole = await fill(root)
    whole.close()
    const path = inLake(root, places.ledger)
    const close = vi.spyOn(DatabaseSync.prototype, 'close')
    try {
      const sound = readFileSync(path)
      writeFileSync(path, 'x'.repeat(5000))
      expect(Ledger.asLeft(root)).toBeUndefined()
      expect(close).toHaveBeenCalledTimes(1)
      writeFileSync(path, sound)
      writeFileSync(inLake(root, entryFile(3)), 'torn')
      await expect(Ledger.inMemory(root)).rejects.toThrow(/damaged/)
      expect(close).toHaveBeenCalledTimes(2)
      await expect(Ledger.rebuild(root)).rejects.toThrow(/damaged/)
      expect(close).toHaveBeenCalledTimes(3)
    } finally {
      close.mockRestore()
    }
  })

  it('takes back all that failed half way, and says why', async ({ root }) => {
    using ledger = await fill(root)
    const before = dump(ledger)
    const half = (): void =>
      ledger.transaction(() => {
        ledger.exec('DELETE FROM coverage')
        throw new RangeError('half way')
      })
    expect(half).toThrow('half way')
    expect(dump(ledger)).toEqual(before)
    expect(half).toThrow('half way')
  })

  it('keeps what every version said', async ({ root }) => {
    const ledger = await fill(root)
    const versions = storedVersions(ledger)
    expect(versions.map((v) => v.job)).toEqual([...Array<string>(10).fill('fetch'), 'compact', 'vacuum'])
    expect(versionAt(ledger, versions[3]?.committed_at ?? 0)).toBe(4)
    expect(versionAt(ledger, (versions[0]?.committed_at ?? 0) - 1)).toBe(0)
    expect(liveFiles(ledger, { version: 8 })).toHaveLength(8)
    expect(liveFiles(ledger)).toHaveLength(7)
    const then = ledger
      .statement(
        `SELECT since, until, state FROM coverage c JOIN series s ON s.n = c.series WHERE s.id = ?
           AND c.added_version <= 9 AND (c.removed_version IS NULL OR c.removed_version > 9) ORDER BY since`,
      )
      .all(seriesRow(9).id)
    expect(then.map((row) => row['state'])).toEqual(['empty', 'empty', 'empty'])
    expect([then[0]?.['since'], then.at(-1)?.['until']]).toEqual([0, 30])
    const counts = { series: 6, points: 8, files: 7, windows: { covered: 9, empty: 3, unsupported: 0, failed: 0 } }
    expect(summary(ledger)).toMatchObject({ ...counts, version: 12, findings: 1, newest: 7 * 86_400 })
    ledger.close()
  })
})

describe('a damaged lake', () => {
  plain('on a read-only file system can still be read', async (context) => {
    need(context, 'mount')
    await inFolder(async (root) => {
      const mounted = `${root}/m`
      mkdirSync(mounted)
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', mounted]).status).toBe(0)
      try {
        const ledger = await fill(mounted)
        const before = dump(ledger)
        ledger.close()
        expect(spawnSync('mount', ['-o', 'remount,ro', mounted]).status).toBe(0)
        using reader = await Ledger.openToRead(mounted)
        expect(dump(reader)).toEqual(before)
        await expect(commit(reader, draftOf(root, 99, 'z'), deps)).rejects.toThrow(/EROFS|EACCES/)
      } finally {
        spawnSync('umount', [mounted])
      }
    })
  })
})

describe('checkpoints', () => {
  it('stand in for the entries behind them', async ({ root }) => {
    const ledger = await fill(root)
    const folded = await Ledger.inMemory(root)
    expect(await writeCheckpoint(realDisk, folded)).toBe(12)
    folded.close()
    expect(await foldedFiles(root)).toHaveLength(12)
    for (const file of await foldedFiles(root)) rmSync(inLake(root, file))
    await commit(ledger, draftOf(root, 20), deps)
    const before = dump(ledger)
    ledger.close()
    const again = await Ledger.open(root)
    again.close()
    const rebuilt = await Ledger.rebuild(root)
    expect(dump(rebuilt)).toEqual(before)
    rebuilt.close()
    truncateSync(inLake(root, checkpointFile(12)), 500)
    await expect(Ledger.rebuild(root)).rejects.toMatchObject({ kind: 'integrity' })
    expect(existsSync(inLake(root, 'ledger.sqlite'))).toBe(true)
  })

  it('a damaged checkpoint is skipped for an older one that the entries continue', async ({ root }) => {
    const ledger = await fill(root)
    await writeCheckpoint(realDisk, ledger)
    const folded = await foldedFiles(root)
    await commit(ledger, draftOf(root, 40), deps)
    await writeCheckpoint(realDisk, ledger)
    for (const file of folded) rmSync(inLake(root, file))
    truncateSync(inLake(root, checkpointFile(13)), 500)
    const before = dump(ledger)
    ledger.close()
    using rebuilt = await Ledger.rebuild(root)
    expect(dump(rebuilt)).toEqual(before)
  })

  it('free the files of runs that have ended, or surely have', async ({ root }) => {
    const began = 5_000_000_000_000
    using ledger = await Ledger.open(root)
    await noteRunFacts(ledger, { id: 'ended', started_at: began, ended_at: began + 1 })
    await noteRunFacts(ledger, { id: 'open', started_at: began })
    await commit(ledger, draftOf(root, 0), commitDeps({ nowMicros: () => began + 2 }))
    await writeCheckpoint(realDisk, ledger)
    await noteRunFacts(ledger, { id: 'later', started_at: began, ended_at: began + 3 })
    const day = 86_400_000_000
    expect(await foldedBefore(ledger, began + 30 * day)).toEqual([entryFile(1), 'runs/ended.jsonl'])
    expect(await foldedBefore(ledger, began + 30 * day + 1)).toEqual([
      entryFile(1),
      'runs/ended.jsonl',
      'runs/open.jsonl',
    ])
    expect(await foldedBefore(ledger, began + 1)).toEqual(['runs/ended.jsonl'])
  })

  it('let old runs that have ended go once two of them hold their lines, and an index that lags still learns of them', async ({
    root,
  }) => {
    const began = 5_000_000_000_000
    const day = 86_400_000_000
    const files = (): string[] => readdirSync(inLake(root, 'runs')).toSorted()
    const at = (days: number) => commitDeps({ nowMicros: () => began + days * day })
    const ended = async (id: string, days: number): Promise<void> =>
      await noteRunFacts(ledger, { id, job: 'fetch', started_at: began + days * day, ended_at: began + days * day + 1 })
    using ledger = await Ledger.open(root)
    await commit(ledger, draftOf(root, 0), at(0))
    ledger.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    cpSync(inLake(root, 'ledger.sqlite'), join(root, 'lagging'))
    await ended('old', 0)
    await noteRunFacts(ledger, { id: 'open', started_at: began })
    await commit(ledger, draftOf(root, 4), at(1))
    await foldJournal(ledger, at(1), 1)
    await ended('second', 1)
    await commit(ledger, draftOf(root, 8), at(2))
    await using pinned = await pin(root, 'copy', { ...at(20).holder, since: began })
    await foldJournal(ledger, at(20), 1)
    expect(files()).toEqual(['old.jsonl', 'open.jsonl', 'second.jsonl'])
    await pinned.release()
    await ended('late', 2)
    await commit(ledger, draftOf(root, 12), at(20))
    await foldJournal(ledger, at(20), 1)
    expect(files()).toEqual(['late.jsonl', 'open.jsonl'])
    await ended('young', 20)
    for (const n of [16, 20]) {
      await commit(ledger, draftOf(root, n), at(21))
      await foldJournal(ledger, at(21), 1)
    }
    expect(files()).toEqual(['open.jsonl', 'young.jsonl'])
    const before = dump(ledger)
    expect(storedRuns(ledger, 9).map(({ id }) => id)).toEqual(['young', 'late', 'second', 'open', 'old'])
    ledger.close()
    for (const end of ['', '-wal', '-shm']) rmSync(inLake(root, `ledger.sqlite${end}`), { force: true })
    cpSync(join(root, 'lagging'), inLake(root, 'ledger.sqlite'))
    using caught = await Ledger.open(root)
    expect(dump(caught)).toEqual(before)
    expect(await checkRuns(caught)).toEqual([])
    caught.close()
    truncateSync(inLake(root, checkpointFile(6)), 500)
    using rebuilt = await Ledger.rebuild(root)
    expect(dump(rebuilt)).toEqual(before)
  })

  it('gather the logs of old runs, one for each day, and nothing twice', async ({ root }) => {
    const now = Date.UTC(2026, 0, 20) * 1000
    const at = commitDeps({ nowMicros: () => now })
    using ledger = await Ledger.open(root)
    const logs = new Map(
      [0, 0, 1, 11, 12].map((days, n) => [
        `r${n}`,
        `{"at":"2026-01-${days + 1}T0${n}:00:00.000Z","event":"e${n}"}\n`.replace(/-(\dT)/, '-0$1'),
      ]),
    )
    mkdirSync(inLake(root, 'runs'), { recursive: true })
    for (const [run, text] of logs) writeFileSync(inLake(root, `runs/${run}.log`), text)
    // A run that was killed had gathered one of them.
    writeFileSync(inLake(root, 'runs/2026-01-01.log.gz'), gzipSync(logs.get('r0') ?? ''))
    writeFileSync(inLake(root, 'runs/odd.log'), 'no line of ours')
    for (const n of [0, 4]) {
      await commit(ledger, draftOf(root, n), at)
      await foldJournal(ledger, at, 1)
    }
    const left = Object.fromEntries(
      readdirSync(inLake(root, 'runs')).map((name) => {
        const bytes = readFileSync(inLake(root, `runs/${name}`))
        return [name, (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()]
      }),
    )
    const [r0 = '', r1 = '', r2 = '', r3 = '', r4 = ''] = logs.values()
    const days = { '2026-01-01.log.gz': r0 + r1, '2026-01-02.log.gz': r2, '2026-01-12.log.gz': r3 }
    expect(left).toEqual({ ...days, 'odd.log': 'no line of ours', 'r4.log': r4 })
    expect(statSync(inLake(root, 'runs/2026-01-02.log.gz')).mode & 0o777).toBe(0o600)
  })

  it('checkpoints of any writer are forced to the disk before their entries are removed', async ({ root, ledger }) => {
    await commit(ledger, draftOf(root, 0), deps)
    await writeCheckpoint(realDisk, ledger)
    const steps: string[] = []
    const told = async (step: 'syncFolder' | 'remove', path: string): Promise<void> => {
      steps.push(`${step} ${path}`)
      await realDisk[step](path)
    }
    const disk = {
      ...realDisk,
      syncFolder: async (path: string) => await told('syncFolder', path),
      remove: async (path: string) => await told('remove', path),
    }
    const { signal } = new AbortController()
    const own = { ...commitDeps({ disk }), signal, threads: 1, buildViews: async () => undefined }
    await vacuum({ root, keepSeconds: 0, really: true }, own)
    const forced = `syncFolder ${inLake(root, places.journal)}`
    const gone = `remove ${inLake(root, entryFile(1))}`
    expect(steps.filter((step) => step === forced || step === gone)).toEqual([forced, gone])
  })

  it('a damaged checkpoint is ignored while its entries exist', async ({ root }) => {
    const ledger = await fill(root)
    await writeCheckpoint(realDisk, ledger)
    truncateSync(inLake(root, checkpointFile(12)), 500)
    const before = dump(ledger)
    ledger.close()
    using rebuilt = await Ledger.rebuild(root)
    expect(dump(rebuilt)).toEqual(before)
  })

  it('bring an index forward whose entries are gone', async ({ root }) => {
    const ledger = await fill(root)
    const behind = await Ledger.inMemory(root, 3)
    expect(behind.head().version).toBe(3)
    await writeCheckpoint(realDisk, ledger)
    for (const file of await foldedFiles(root)) rmSync(inLake(root, file))
    await commit(ledger, draftOf(root, 30), deps)
    expect((await behind.catchUp()).version).toBe(13)
    expect(dump(behind)).toEqual(dump(ledger))
    const fresh = await Ledger.inMemory(root)
    expect(dump(fresh)).toEqual(dump(ledger))
    for (const open of [behind, ledger, fresh]) open.close()
  })
})

describe('size', () => {
  it('20,000 series: coverage comes back whole', async ({ root }) => {
    const count = 20_000
    using ledger = await Ledger.open(root)
    const numbers = Array.from({ length: count }, (_, n) => n)
    const draft = { job: 'fetch', run: 'big', provider }
    const series = numbers.map((n) => seriesRow(n))
    const whole = numbers.map((n) => coverageRow(n, 0, 864_000))
    await commit(ledger, { ...draft, series, coverage: whole }, deps)
    const next = numbers.map((n) => coverageRow(n, 777_600, 950_400, { asked_at: 2000 }))
    await commit(ledger, { ...draft, series, coverage: next }, deps)
    const coverage = loadCoverage(ledger)
    const held = storedSeries(ledger)
    expect(coverage.size).toBe(count)
    expect(held.size).toBe(count)
    expect(coverage.get(seriesRow(77).id)).toEqual([coverageRow(77, 0, 950_400, { asked_at: 2000 })])
  })
})
