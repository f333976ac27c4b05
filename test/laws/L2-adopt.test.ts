// @module-tag full
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { loadCoverage, storedSeries, storedVersions } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { bytesOf, data, doctor, inFound, liveByJournal, lose, points, world } from '../helpers/adopting.ts'
import { pitlake } from '../helpers/command.ts'
import { journalEntries } from '../helpers/entries.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import { layoutNumber } from '../../src/lake/ledger/entry.ts'
import { answer, presetNames, questions, withPreset } from '../helpers/lakes/written-by-jobs.ts'
import { filesIn } from '../helpers/key-search.ts'
import { withLag } from '../helpers/lags.ts'
import { sample } from '../helpers/tiers.ts'
import { stepping } from '../helpers/stepping.ts'
import { withViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'
import { scratch } from '../helpers/scratch.ts'

const day = 86_400
const start = 1_709_272_800
const supply = 'supply/current_pit'
const selection = {
  assets: ['BTC', 'ETH'],
  paths: [supply, 'addresses/active_count_pit', 'addresses/supply_distribution_relative_pit'],
  intervals: ['24h' as const],
  since: 1_704_067_200,
}

/** Top-ups in small portions, between them a merge of what is small. */
async function grow({ fetch, clock, root }: Pick<Rig, 'fetch' | 'clock' | 'root'>, times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    clock.now += day
    await fetch(selection)
    if (n % 3 !== 2) continue
    using ledger = await Ledger.open(root)
    await mergeSmallFiles(ledger, world(clock.now + 60))
  }
}

const ways: Readonly<Record<string, (rig: Rig) => Promise<void>>> = {
  'topped up': async (rig) => await grow(rig, 5),
  compacted: async (rig) => {
    await grow(rig, 3)
    await compact(rig.root, world((rig.clock.now += 600)))
    await grow(rig, 2)
  },
  'dated anew twice, and the earlier datings merged': async (rig) => {
    await grow(rig, 2)
    await redate(rig.root, withLag(supply, 7200, 'rule'), world((rig.clock.now += 600)))
    await grow(rig, 2)
    await redate(rig.root, withLag(supply, 10_800, 'rule'), world((rig.clock.now += 600)))
    await grow(rig, 1)
    await compact(rig.root, world((rig.clock.now += 600)))
  },
}

describe.each(sample(Object.entries(ways), 2))('a lake that was %s and lost its journal', (_, live) => {
  test('is adopted with the points it had, and asks again without adding one', async () => {
    await withRig(start, async (rig) => {
      const { root, clock, fetch } = rig
      await live(rig)
      const before = await points(root)
      const versions = journalEntries(root)
      const series = await held(root)
      lose(root)
      const bytes = bytesOf(root)
      const seen = await doctor(root, clock.now, { adopt: false })
      expect(seen.findings[0]?.remedy).toMatch(/--adopt.*--repair/)
      const { findings, mended } = await doctor(root, clock.now, { synthetic: null })
      expect(findings).toEqual([])
      expect(mended[0]).toContain(`${before.length.toLocaleString('en-US')} points of 6 series`)
      expect(await points(root)).toEqual(before)
      expect(bytesOf(root)).toEqual(bytes)
      const [entry] = journalEntries(root)
      const observed = Math.max(
        ...before.map((line) => Date.parse(/"observed_at","([^"]+)"/.exec(line)?.[1] ?? '') * 1000),
      )
      expect(entry).toMatchObject({
        job: 'adopt',
        schema_version: layoutNumber,
        lake: versions[0]?.lake,
        provider: { synthetic: true },
      })
      expect(entry?.version).toBeGreaterThan(Math.max(...data(root).map((path) => Number(/(\d{10})-/.exec(path)?.[1]))))
      expect(entry?.committed_at).toBeGreaterThan(observed)
      expect(await held(root)).toEqual(series)
      const view = await withViews(root, async (engine) => await engine.rows('SELECT count(*) AS n FROM points'))
      expect(Number(view[0]?.['n'])).toBe(before.length)
      // The same day again: everything is asked for, nothing of it is new.
      const again = await fetch(selection)
      expect([again.points_added, again.violations]).toEqual([0, 0])
      expect(again.requests).toBeGreaterThan(0)
      expect(await points(root)).toEqual(before)
      clock.now += 2 * day
      const next = await fetch(selection)
      expect(next.points_added).toBeGreaterThan(0)
      expect(next.violations).toBe(0)
      const after = await rig.stored()
      const moments = after.map((line) => line.split(' ').slice(0, 7).join(' '))
      expect(new Set(moments).size).toBe(moments.length)
      expect(after).toEqual(rig.truth(selection))
      const { findings: left } = await doctor(root, clock.now, { adopt: false })
      expect(left).toEqual([expect.objectContaining({ kind: 'views_behind', severity: 'notice' })])
    })
  })
})

/** What the ledger keeps of each series. */
async function held(root: string): Promise<unknown[]> {
  const rows = await reading(root, (ledger) => [...storedSeries(ledger).values()])
  return rows
    .map(({ id, points: count, first_t, last_t, settled, interval }) => ({
      id,
      count,
      first_t,
      last_t,
      settled,
      interval,
    }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

describe.each(
  sample(
    presetNames.filter((name) => name !== 'stamped'),
    3,
  ),
)('a lake of kind %s', (preset) => {
  test('answers as it did, its registry included', async () => {
    await withPreset(preset, async (root, _home, told) => {
      lose(root)
      const bytes = bytesOf(root)
      const { findings, lake, version } = await doctor(root, told.committed_at / 1e6 + day)
      expect([findings, lake]).toEqual([[], told.lake])
      expect(bytesOf(root)).toEqual(bytes)
      const asked = { ...questions, snapshots: 'SELECT snapshot_date, id FROM snapshots.products' }
      const wanted = Object.fromEntries(Object.keys(asked).map((name) => [name, told.asked[name]]))
      expect(await withViews(root, async (engine) => await answer(engine, asked))).toEqual(wanted)
      using ledger = await Ledger.open(root)
      expect(storedVersions(ledger).map(({ job }) => job)).toEqual(['adopt'])
      expect([...loadCoverage(ledger).values()].flat()).toEqual([])
      expect(ledger.head().version).toBe(version)
    })
  })
})

const template = scratch('grown')
let grown: { readonly before: readonly string[]; readonly live: readonly string[]; readonly now: number }

/** A lake of fetched, merged and compacted files. */
beforeAll(async () => {
  await withRig(start, async (rig) => {
    await grow(rig, 2)
    await compact(rig.root, world((rig.clock.now += 600)))
    await grow(rig, 2)
    const live = liveByJournal(rig.root).map(({ path }) => path)
    grown = { before: await points(rig.root), live, now: rig.clock.now }
    cpSync(rig.root, template, { recursive: true })
  })
})

/** A copy of it whose journal is lost. */
async function withLost(
  work: (root: string, before: readonly string[], rig: Rig, live: readonly string[]) => Promise<void>,
): Promise<void> {
  await withRig(grown.now, async (rig) => {
    cpSync(template, rig.root, { recursive: true })
    lose(rig.root)
    await work(rig.root, grown.before, rig, grown.live)
  })
}

/** Puts a file beside another one of this lake that says something else of its points; its path. */
async function forge(root: string, from: string): Promise<string> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const { lake } = JSON.parse(readFileSync(join(root, 'lake.json'), 'utf8')) as { lake: string }
  const to = join(dirname(from), '0000000088-forged.parquet')
  await engine.run(
    `COPY (SELECT * REPLACE (coalesce(v, 0) + 1 AS v) FROM read_parquet('${join(root, from)}', hive_partitioning = false))
     TO '${join(root, to)}' (FORMAT parquet, KV_METADATA {pitlake_lake: '${lake}', pitlake_version: '88', pitlake_schema: '${layoutNumber}'})`,
  )
  return to
}

const compacted = (live: readonly string[]): string => live.find((path) => path.includes('supply_distribution')) ?? ''

describe('what somebody put or changed there', () => {
  test('a copy under another valid name is not adopted twice', async () => {
    await withLost(async (root, before, { clock }) => {
      for (const path of data(root).filter((one) => one.startsWith('points/')))
        copyFileSync(join(root, path), join(root, path.replace(/\/(\d{10})-/, '/0000000077-copied-')))
      const bytes = bytesOf(root)
      const { findings } = await doctor(root, clock.now)
      expect(findings).toEqual([])
      expect(await points(root)).toEqual(before)
      expect(journalEntries(root)[0]?.version).toBe(78)
      expect(bytesOf(root)).toEqual(bytes)
    })
  })

  test('a file with an altered byte moves to found-…, and its window is requested again', async () => {
    await withLost(async (root, before, { clock, fetch, stored, truth }, live) => {
      const path = compacted(live)
      // What it was merged from would stand in for it.
      for (const one of data(root)) if (!live.includes(one)) rmSync(join(root, one))
      const bytes = readFileSync(join(root, path))
      bytes[Math.floor(bytes.length / 3)]! ^= 0x10
      writeFileSync(join(root, path), bytes)
      const { mended } = await doctor(root, clock.now)
      expect(mended.join('\n')).toMatch(new RegExp(`(digest does not hold|cannot be read) .*${path.slice(-20)}`))
      expect(inFound(root)).toContain(path)
      expect((await points(root)).length).toBeLessThan(before.length)
      expect((await fetch(selection)).points_added).toBeGreaterThan(0)
      expect(await stored()).toEqual(truth(selection))
    })
  })

  test('a file that can be read, and whose digest is not that of its rows, moves to found-…', async () => {
    await withLost(async (root, _, { clock }, live) => {
      const path = compacted(live)
      const bytes = readFileSync(join(root, path))
      // The text of a number, 0 of which is never the first digit.
      const at = bytes.lastIndexOf('pitlake_digest') + 'pitlake_digest'.length
      const digit = bytes.subarray(at).findIndex((byte) => byte >= 0x31 && byte <= 0x38) + at
      bytes[digit + 3] = bytes[digit + 3] === 0x31 ? 0x32 : 0x31
      writeFileSync(join(root, path), bytes)
      const { mended } = await doctor(root, clock.now, { bare: true })
      expect(mended.find((line) => line.includes('its digest does not hold'))).toContain(path)
    })
  })

  test('files that say different things of a point: those with a digest win, without one all of them go', async () => {
    await withLost(async (root, before, { clock }, live) => {
      const proved = compacted(live)
      const fresh =
        data(root)
          .filter((path) => path.startsWith('points/recent/'))
          .at(-1) ?? ''
      const forged = [await forge(root, proved), await forge(root, fresh)]
      await doctor(root, clock.now)
      expect(inFound(root)).toEqual(expect.arrayContaining([...forged, fresh]))
      expect(inFound(root)).not.toContain(proved)
      const left = await points(root)
      expect(before).toEqual(expect.arrayContaining(left))
      expect(left.length).toBeLessThan(before.length)
    })
  })

  test('files of another lake, foreign files and links stay out; foreign ones stay where they are', async () => {
    await withLost(async (root, before, { clock }) => {
      const other = 'points/metric=supply%2Fcurrent_pit/interval=24h/0000000003-x.parquet'
      const engine = await Engine.open(':memory:', { threads: 1 })
      mkdirSync(dirname(join(root, other)), { recursive: true })
      await engine.run(
        `COPY (SELECT 1 AS t) TO '${join(root, other)}' (KV_METADATA {pitlake_lake: '${'e'.repeat(32)}'})`,
      )
      engine.close()
      writeFileSync(join(root, 'points/photo.jpg'), 'mine')
      writeFileSync(join(root, 'points/recent/table.parquet'), 'mine')
      await doctor(root, clock.now)
      expect(inFound(root)).toContain(other)
      expect(await points(root)).toEqual(before)
      for (const path of ['points/photo.jpg', 'points/recent/table.parquet'])
        expect(readFileSync(join(root, path), 'utf8')).toBe('mine')
    })
  })

  test('notes, requests and results of the lost versions move too', async () => {
    await withPreset('stamped', async (root) => {
      rmSync(join(root, 'journal'), { recursive: true })
      rmSync(join(root, 'ledger.sqlite'))
      mkdirSync(join(root, 'stamps'), { recursive: true })
      writeFileSync(join(root, 'stamps/note.txt'), 'x')
      await doctor(root, start + 900 * day)
      const [found = ''] = readdirSync(root).filter((name) => name.startsWith('found-'))
      expect(readdirSync(join(root, found))).toEqual(expect.arrayContaining(['stamps', 'runs', 'adopted.json']))
      expect(existsSync(join(root, 'stamps'))).toBe(false)
    })
  })
})

test('killed at any step and run again, it comes to the same', async () => {
  await withPreset('plain', async (root, _home, told) => {
    lose(root)
    const now = told.committed_at / 1e6 + day
    // Two that contradict each other without a digest: one of them alone would look sound.
    const fresh = data(root).find((path) => path.startsWith('points/')) ?? ''
    await forge(root, fresh)
    const whole = `${root}-whole`
    const steps = { left: Number.POSITIVE_INFINITY, used: 0 }
    const disk = stepping((_, kind) => {
      if (!['move', 'write', 'claim'].includes(kind)) return
      if (steps.left-- <= 0) throw new Error('killed')
      steps.used++
    })
    try {
      cpSync(root, whole, { recursive: true })
      await doctor(whole, now, { disk, bare: true })
      const all = steps.used
      const listed = await points(whole)
      const entry = journalEntries(whole)[0]
      expect(all).toBeGreaterThan(5)
      for (const kill of sample([...Array(all).keys()], 4, 4)) {
        const copy = `${root}-killed`
        cpSync(root, copy, { recursive: true })
        const bytes = bytesOf(copy)
        steps.left = kill
        await expect(doctor(copy, now, { disk, bare: true })).rejects.toThrow('killed')
        steps.left = Number.POSITIVE_INFINITY
        const { findings } = await doctor(copy, now + 5, { bare: true })
        expect(findings.map(({ kind }) => kind)).toEqual(['views_missing'])
        expect(filesIn(copy).filter((path) => path.endsWith('/adopted.json'))).toHaveLength(1)
        expect(await points(copy)).toEqual(listed)
        expect(bytesOf(copy)).toEqual(bytes)
        expect(journalEntries(copy)[0]).toMatchObject({ version: entry?.version, series: entry?.series })
        rmSync(copy, { recursive: true })
      }
      expect(listed.length).toBeLessThan(told.asked['points']?.rows ?? 0)
    } finally {
      for (const path of [whole, `${root}-killed`]) rmSync(path, { recursive: true, force: true })
    }
  })
})

describe('the command', () => {
  test('--adopt makes the lake answer again, exit 0; without it exit 4', async () => {
    await withLost(async (root) => {
      const env = { PITLAKE_DATA: root }
      expect((await pitlake(root, ['doctor'], env)).code).toBe(4)
      const done = await pitlake(root, ['doctor', '--adopt'], env)
      expect([done.code, done.message]).toEqual([0, ''])
      expect(done.out).toMatch(/a journal was made anew: version \d+/)
      expect((await pitlake(root, ['doctor', '--adopt'], env)).out).toContain('healthy')
    })
  })

  test('adopt asks for the provider if no file names it, and never mixes two lakes', async () => {
    await withPreset('plain', async (root) => {
      lose(root)
      rmSync(join(root, 'lake.json'))
      const before = filesIn(root)
      const refused = await pitlake(root, ['doctor', '--adopt'], { PITLAKE_DATA: root })
      expect([refused.code, refused.message]).toEqual([2, expect.stringContaining('PITLAKE_METRICS_URL')])
      expect(filesIn(root).filter((path) => !path.startsWith('locks/'))).toEqual(
        before.filter((path) => !path.startsWith('locks/')),
      )
      const env = { PITLAKE_DATA: root, PITLAKE_METRICS_URL: 'https://provider.example/v1' }
      // One of them is on this machine: nobody can say whose data these are.
      const both = { ...env, PITLAKE_REGISTRY_URL: 'http://127.0.0.1:9/registry/v1' }
      expect((await pitlake(root, ['doctor', '--adopt'], both)).code).toBe(2)
      const real = await pitlake(root, ['doctor', '--adopt'], env)
      expect([real.code, journalEntries(root)[0]?.provider]).toEqual([0, { synthetic: false }])
    })
    await withPreset('plain', async (root, home) => {
      lose(root)
      rmSync(join(root, 'lake.json'))
      await withPreset('both', async (second) => {
        for (const path of data(second).filter((one) => one.endsWith('.parquet'))) {
          const to = join(root, path.replace(/\/0/, '/1'))
          mkdirSync(dirname(to), { recursive: true })
          cpSync(join(second, path), to)
        }
      })
      const error = await doctor(root, start + 900 * day).then(
        () => undefined,
        (refusal: unknown) => refusal,
      )
      expect(exitCode(error)).toBe(4)
      expect(String(error)).toContain(' and ')
      expect(existsSync(home)).toBe(true)
    })
  })
})
