// @module-tag slow
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { foldJournal } from '../../src/lake/ledger/checkpoint-writer.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import type { JobDeps } from '../../src/lake/ledger/job.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { openQuery } from '../../src/query/lake.ts'
import { replay, stamp } from '../../src/trust/results/stamp.ts'
import type { Disk } from '../../src/lake/store/disk.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { finishRun } from '../../src/maintenance/upkeep/finish.ts'
import { examine } from '../../src/maintenance/upkeep/doctor.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { storedPoints, withRig } from '../helpers/fetching.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { metrics, rewriteDeps, topUp } from '../helpers/lakes/top-ups.ts'
import { type Found, putBack, type Recorder, recorder } from './powercuts.ts'
import { contentOf, withRegistryRig } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { rounds } from '../helpers/tiers.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { seeded } from '../helpers/random.ts'

/*
 * A job is recorded once; then many of the states are made that a power cut may leave of it. In each of them: what had
 * been told is there, every file that the newest version names is whole, the same command again completes the work, and
 * the doctor finds nothing. `PITLAKE_POWERCUTS` is how many states, over all jobs;
 * `PITLAKE_POWERCUTS_SEED` draws others, too, `PITLAKE_POWERCUTS_STATE` makes a single one again.
 */
const states = rounds('PITLAKE_POWERCUTS', 12, 28)
const seed = Number(process.env['PITLAKE_POWERCUTS_SEED'] ?? 1)
const alone = process.env['PITLAKE_POWERCUTS_STATE']

const now = Date.UTC(2024, 5, 5, 12) / 1000
const day = 86_400

/** A job on a lake, told by what it needs of the disk; it says each version that it has told its caller. */
interface Job {
  readonly lake: string
  readonly run: (disk: Disk | undefined, told: (version: number) => void) => Promise<void>
  /** What the lake holds in the end, without the instants of its own clock. */
  readonly content: () => Promise<unknown>
  /** What else holds of whatever was told, before anything mends. */
  readonly kept?: () => Promise<void>
}

/** A generator of its own for each state, so that one can be made again alone. */
const randomOf = (number: number): (() => number) =>
  seeded(Math.imul(number + 1, 0x9e3779b1) ^ Math.imul(seed, 0x85ebca6b))

const headOf = async (lake: string): Promise<number> => {
  using ledger = await Ledger.openToRead(lake)
  return ledger.head().version
}

/** The files of each version as paths and checksums. */
async function versionsOf(lake: string): Promise<Map<number, string[]>> {
  using ledger = await Ledger.openToRead(lake)
  const versions = new Map<number, string[]>()
  for (let version = 1; version <= ledger.head().version; version++) versions.set(version, namedAt(ledger, version))
  return versions
}

const namedAt = (ledger: Ledger, version?: number): string[] =>
  liveFiles(ledger, version === undefined ? {} : { version })
    .map(({ path, sha256 }) => `${path} ${sha256}`)
    .toSorted()

/** Whoever reads before any job mends: the points of a version that was committed, or a word about the views. */
async function readAtOnce(lake: string): Promise<void> {
  if (!existsSync(join(lake, 'lake.duckdb'))) return
  try {
    using session = await openQuery(lake)
    await session.rows('SELECT count(*), sum(v), max(observed_at) FROM points')
    await session.rows('SELECT count(*) FROM versions')
  } catch (error) {
    expect(String(error)).toMatch(/pitlake views|pitlake doctor|No files found/)
  }
}

/** What the doctor calls damage, every byte read. */
async function damageOf(lake: string): Promise<string[]> {
  const deps = rewriteDeps({ nowMicros: () => (now + 400 * day) * 1e6 })
  const views = async (ledger: Ledger): Promise<unknown> => await buildViews(ledger, { catalogue, deps })
  const { findings } = await examine({ data: lake, thorough: true }, { ...deps, views })
  return findings.filter(({ severity }) => severity !== 'notice').map(({ kind, path }) => `${kind} ${path}`)
}

/** How a job ends that nothing disturbs. */
interface Undisturbed {
  readonly versions: ReadonlyMap<number, string[]>
  readonly content: unknown
  readonly damage: readonly string[]
}

/** The law, on one state. */
async function survives(job: Job, found: Found, whole: Undisturbed): Promise<void> {
  const { lake } = job
  if (existsSync(join(lake, 'journal')) || found.told > 0) {
    await readAtOnce(lake)
    using ledger = await Ledger.open(lake)
    const { version } = ledger.head()
    expect(version).toBeGreaterThanOrEqual(found.told)
    const named = namedAt(ledger)
    expect(named).toEqual(version === 0 ? [] : whole.versions.get(version))
    for (const line of named) {
      const [path = '', digest] = line.split(' ')
      expect(
        createHash('sha256')
          .update(readFileSync(inLake(lake, path)))
          .digest('hex'),
      ).toBe(digest)
    }
  }
  if (found.told > 0) await job.kept?.()
  await job.run(undefined, () => undefined)
  expect(await job.content()).toEqual(whole.content)
  expect(await damageOf(lake)).toEqual(whole.damage)
}

/** Records a job from the lake as it stands, then makes states of it; tells the first that breaks the law. */
async function firstLost(base: string, job: Job, share: number): Promise<string> {
  const watched: Recorder = recorder(base)
  await job.run(watched.disk, watched.told)
  const { lake } = job
  const whole = { versions: await versionsOf(lake), content: await job.content(), damage: await damageOf(lake) }
  expect(whole.damage.filter((line) => !line.startsWith('views_missing'))).toEqual([])
  expect(watched.events()).toBeGreaterThan(8)
  const numbers = alone === undefined ? Array.from({ length: share }, (_, n) => n) : [Number(alone)]
  for (const n of numbers) {
    const found = watched.cut(randomOf(n))
    putBack(base, found)
    try {
      await survives(job, found, whole)
    } catch (error) {
      return `state ${n}, cut behind event ${found.after}: ${error instanceof Error ? error.stack : String(error)}`
    }
  }
  return ''
}

const shareOf = (part: number): number => Math.max(1, Math.round(states * part))

describe('L3: whatever a power cut leaves of a job', () => {
  const selection = { assets: ['BTC'], paths: ['supply/current_pit', 'market/beta_btc_7d_pit'], since: now - 30 * day }

  test(
    'fetch into no lake, and a day later',
    () =>
      withRig(now, async (rig) => {
        const lake = join(rig.root, 'lake')
        const run: Job['run'] = async (disk, told) => {
          for (const later of [0, 1]) {
            rig.clock.now = now + later * day
            await rig.fetch(selection, { data: lake, deps: disk ? { disk } : {} })
            told(await headOf(lake))
          }
        }
        expect(
          await firstLost(rig.root, { lake, run, content: async () => await storedPoints(lake) }, shareOf(0.25)),
        ).toBe('')
      }),
    3_600_000,
  )

  test(
    'fetch with all that follows it: merging, folding and views',
    () =>
      withRig(now, async (rig) => {
        const lake = join(rig.root, 'lake')
        await rig.fetch(selection, { data: lake })
        const run: Job['run'] = async (disk, told) => {
          rig.clock.now = now + day
          const deps = rewriteDeps({ nowMicros: () => rig.clock.now * 1e6, ...(disk ? { disk } : {}) })
          const atEnd: JobDeps['atEnd'] = async (end) =>
            await finishRun(end, { catalogue, deps, note: (text) => void expect(text).toBe('') })
          await rig.fetch(selection, { data: lake, deps: { atEnd, ...(disk ? { disk } : {}) } })
          told(await headOf(lake))
        }
        expect(
          await firstLost(rig.root, { lake, run, content: async () => await storedPoints(lake) }, shareOf(0.1)),
        ).toBe('')
      }),
    3_600_000,
  )

  test.each(['snapshot', 'sync'] as const)(
    'registry %s',
    async (name) => {
      const small = new SmallRegistry()
      await withRegistryRig(
        now,
        async (rig) => {
          const lake = join(rig.root, 'lake')
          mkdirSync(lake)
          if (name === 'sync') {
            await rig.snapshot({ root: lake })
            small.world.put('products', 'p1', null)
            small.world.put('issuers', 'i1', { name: 'new' })
            rig.clock.now = now + 3600
          }
          const run: Job['run'] = async (disk, told) => {
            await rig[name]({ root: lake, ...(disk ? { deps: { disk } } : {}) })
            told(await headOf(lake))
          }
          expect(
            await firstLost(rig.root, { lake, run, content: async () => await contentOf(lake) }, shareOf(0.1)),
          ).toBe('')
        },
        { instead: small.answer },
      )
    },
    3_600_000,
  )

  const grown = async (root: string, days = 4): Promise<void> => {
    using ledger = await Ledger.open(root)
    for (let n = 0; n < days; n++) await topUp(ledger, rewriteDeps(), { metric: metrics[0], since: n * 10, days: 10 })
  }
  const depsOn = (disk: Disk | undefined): ReturnType<typeof rewriteDeps> => rewriteDeps(disk ? { disk } : {})
  const views =
    (deps: ReturnType<typeof rewriteDeps>) =>
    async (ledger: Ledger): Promise<unknown> =>
      await buildViews(ledger, { catalogue, deps })

  const upkeep: readonly (readonly [
    string,
    number,
    (root: string) => Promise<void>,
    (root: string, disk: Disk | undefined) => Promise<unknown>,
  ])[] = [
    ['compact', 0.12, grown, async (root, disk) => await compact(root, depsOn(disk))],
    [
      'vacuum',
      0.12,
      async (root) => {
        await grown(root)
        await compact(root, depsOn(undefined))
      },
      async (root, disk) => {
        const deps = depsOn(disk)
        deps.clock.now += 100
        return await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews: views(deps) })
      },
    ],
    [
      'views',
      0.08,
      async (root) => {
        await grown(root, 2)
        using ledger = await Ledger.open(root)
        await views(depsOn(undefined))(ledger)
        await topUp(ledger, rewriteDeps(), { metric: metrics[1], since: 0, days: 10 })
      },
      async (root, disk) => {
        using ledger = await Ledger.open(root)
        await views(depsOn(disk))(ledger)
      },
    ],
    [
      'folding of the journal',
      0.05,
      async (root) => await grown(root, 6),
      async (root, disk) => {
        using ledger = await Ledger.open(root)
        await foldJournal(ledger, depsOn(disk), 2)
      },
    ],
  ]

  test.each(upkeep)(
    '%s',
    (_, part, prepare, act) =>
      inFolder(async (root) => {
        const lake = join(root, 'lake')
        await prepare(lake)
        const run: Job['run'] = async (disk, told) => {
          await act(lake, disk)
          told(await headOf(lake))
        }
        expect(await firstLost(root, { lake, run, content: async () => await storedPoints(lake) }, shareOf(part))).toBe(
          '',
        )
      }),
    3_600_000,
  )

  test('stamp: what was stamped before the cut replays', async ({ root }) => {
    const lake = join(root, 'lake')
    const out = join(root, 'result.parquet')
    await grown(lake, 2)
    const query = 'SELECT asset, sum(v) AS v FROM points GROUP BY ALL ORDER BY ALL'
    const quick = { sleep: async () => await Promise.resolve() }
    const run: Job['run'] = async (disk, told) => {
      await stamp({ root: lake, catalogue, query, out, variables: {} }, quick, depsOn(disk))
      told(await headOf(lake))
    }
    const kept = async (): Promise<void> =>
      expect(await replay(lake, out, quick, 'pitlake test')).toMatchObject({ same: true, notes: [] })
    const content = async (): Promise<unknown> => {
      await kept()
      return await storedPoints(lake)
    }
    expect(await firstLost(root, { lake, run, content, kept }, shareOf(0.08))).toBe('')
  }, 3_600_000)
})
