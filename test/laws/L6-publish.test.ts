// @module-tag full
// @module-tag slow
import fc from 'fast-check'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { seriesId } from '../../src/catalog/series.ts'
import { violationId } from '../../src/lake/ledger/entry.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { asPublished, deltaFiles, deltaRows, publishTo, unlike } from '../helpers/delta.ts'
import { inFolder, makeFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { withLag } from '../helpers/lags.ts'
import { day, everyKind, metrics, rewriteDeps, topUps } from '../helpers/lakes/top-ups.ts'
import { withRegistryRig } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { rounds } from '../helpers/tiers.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'

const buildViews = (): Promise<void> => Promise.resolve()
/** Small enough that these lakes have tables of many files. */
const portions = { few: 10, large: 60 }
const kinds = ['own', 'recent', 'merge', 'compact', 'vacuum', 'redate', 'publish'] as const

/** Does the steps and publishes at the end; the tables that ever said something else than the lake. */
async function live(home: string, steps: readonly (typeof kinds)[number][]): Promise<readonly string[]> {
  const wrong: string[] = []
  const root = join(home, 'lake')
  const out = join(home, 'out')
  const deps = rewriteDeps()
  using ledger = await Ledger.open(root)
  let days = 0
  let lag = 0
  for (const step of ['own', ...steps, 'publish'] as const) {
    deps.clock.now += 3600
    if (step === 'own' || step === 'recent') {
      const since = days
      const late = days > 0 ? [days - 3] : []
      days += 10
      const what = everyKind.map((metric) => ({ metric, since, days: 10, skip: [since + 7], late }))
      await topUps(ledger, deps, what, step)
    } else if (step === 'merge') await mergeSmallFiles(ledger, deps)
    else if (step === 'compact') await compact(root, deps)
    else if (step === 'vacuum') await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews })
    else if (step === 'redate') await redate(root, withLag(metrics[0], ++lag * 100), deps)
    else {
      await publishTo(root, out, { nowMicros: deps.nowMicros, portions })
      wrong.push(...(await unlike(root, out)))
    }
    await ledger.catchUp()
  }
  wrong.push(...Object.keys((await publishTo(root, out, { nowMicros: deps.nowMicros, portions })).tables))
  return wrong
}

test('TIME: redated points replace the published ones in one version of the table', async ({ root: home }) => {
  const steps = ['own', 'publish', 'recent', 'publish', 'redate', 'publish', 'compact', 'vacuum', 'recent'] as const
  expect(await live(home, steps)).toEqual([])
  const points = join(home, 'out/points')
  const before = await deltaRows(points, 1)
  const after = await deltaRows(points, 2)
  const dated = (rows: typeof before, metric: string): string[] =>
    asPublished(rows.filter((row) => row['metric'] === metric))
  expect(after).toHaveLength(before.length)
  expect(dated(after, metrics[0])).not.toEqual(dated(before, metrics[0]))
  expect(dated(after, metrics[1])).toEqual(dated(before, metrics[1]))
})

test('rows that were published stay where they are when the lake has merged them with newer ones', async ({
  root: home,
}) => {
  expect(await live(home, ['publish', 'own', 'compact'])).toEqual([])
  const points = join(home, 'out/points')
  const first = [...deltaFiles(points, 0).keys()]
  expect([...deltaFiles(points).keys()]).toEqual([...first, ...first.map(() => expect.any(String))])
})

test('after any order of top-ups, merges, redates, vacuums and publishes the tables say what the lake says', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...kinds), { minLength: 3, maxLength: 5 }),
      async (steps) => await inFolder(async (home) => expect(await live(home, steps)).toEqual([])),
    ),
    { numRuns: rounds('PITLAKE_ORDERS', 1, 2), endOnFailure: true },
  )
}, 300_000)

test('files that a publish reads are kept from vacuum meanwhile', async ({ root: home }) => {
  const root = join(home, 'lake')
  const out = join(home, 'out')
  const deps = rewriteDeps()
  using ledger = await Ledger.open(root)
  for (const since of [0, 10, 20]) await topUps(ledger, deps, [{ metric: metrics[0], since, days: 10 }])
  await publishTo(root, out, {
    nowMicros: deps.nowMicros,
    // Between the first file and the second nothing is left of the files that it reads but what is pinned.
    through: (to) => ({
      ...to,
      put: async (path, file) => {
        if (path.startsWith('points/')) {
          await compact(root, deps)
          expect((await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews })).data.files).toBe(0)
        }
        await to.put(path, file)
      },
    }),
  })
  expect(await unlike(root, out)).toEqual([])
  const freed = await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews })
  expect(freed.data.files).toBe(3)
})

const point = (asset: string, v: number): PointRow => ({
  metric: metrics[0],
  asset,
  interval: '24h',
  t: '2024-03-01',
  available_at: '2024-03-02',
  v,
})

test('rows that any commit changed without a new instant are published again', async ({ root: home }) => {
  const root = join(home, 'lake')
  const out = join(home, 'out')
  const files = async (): Promise<string[]> => {
    using ledger = await Ledger.open(root)
    return liveFiles(ledger, { table: 'points' }).map(({ path }) => path)
  }
  await makeLake(root, [{ at: '2024-05-01T00:00:00Z', points: [point('A', 1)] }])
  await publishTo(root, out)
  // A repair says so: as many rows as before.
  const first = await files()
  await makeLake(root, [{ at: '2024-05-02T00:00:00Z', points: [point('A', 2)], job: 'doctor', remove: first }])
  expect((await publishTo(root, out)).tables['points']).toMatchObject({ files_removed: 1, files_added: 1 })
  expect(await unlike(root, out)).toEqual([])
  // Whatever else loses a row shows by its number.
  await makeLake(root, [{ at: '2024-05-03T00:00:00Z', points: [point('B', 3)], remove: await files() }])
  await publishTo(root, out)
  expect(await unlike(root, out)).toEqual([])
})

test('an acknowledged violation and a new column are published', async ({ root: home }) => {
  const root = join(home, 'lake')
  const out = join(home, 'out')
  const dimensions = { interval: '24h', currency: null, exchange: null, network: null, params: {} } as const
  const series = seriesId({ metric: metrics[0], asset: 'A', ...dimensions })
  const about = { series, t: 1_709_251_200, kind: 'value', offered: '2' }
  const violation = { ...about, stored: '1', stored_at: 1_714_521_600_000_001, offered_at: 1, request: null }
  await makeLake(root, [
    { at: '2024-05-01T00:00:00Z', points: [point('A', 1)] },
    { at: '2024-05-02T00:00:00Z', violations: [violation] },
  ])
  // The catalogue of before knows one field less.
  const resources = new Map(catalogue.resources)
  const venues = resources.get('venues')
  if (!venues) throw new Error('no venues')
  resources.set('venues', { ...venues, fields: Object.fromEntries(Object.entries(venues.fields).slice(0, -1)) })
  await publishTo(root, out, { catalogue: { ...catalogue, resources } })
  await makeLake(root, [
    { at: '2024-05-03T00:00:00Z', accepted: [{ ...about, id: violationId(violation), why: 'known' }] },
  ])
  const { tables } = await publishTo(root, out)
  expect(Object.keys(tables)).toEqual(expect.arrayContaining(['violations', 'history_venues', 'versions']))
  expect(tables['points']).toBeUndefined()
  expect(await unlike(root, out)).toEqual([])
  expect(await deltaRows(join(out, 'violations'))).toMatchObject([
    { why: 'known', stored_at: '2024-05-01T00:00:00.001000Z' },
  ])
})

test('histories and dated snapshots follow the registry', async () => {
  const small = new SmallRegistry()
  const { world } = small
  const changes: readonly (() => void)[] = [
    () => undefined,
    () => world.put('issuers', 'i1', { name: 'renamed' }),
    () => {
      world.put('deployments', 'd2', null)
      world.put('products', 'p3', null)
    },
  ]
  await withRegistryRig(
    Date.UTC(2026, 5, 1, 12) / 1000,
    async (rig) => {
      const out = join(makeFolder('published'), 'out')
      for (const [n, change] of changes.entries()) {
        change()
        // The first of these days has two snapshots.
        rig.clock.now = Date.UTC(2026, 5, 1, 12) / 1000 + Math.floor(n / 2) * day + n * 60
        await rig.sync()
        await rig.snapshot()
        await publishTo(rig.root, out)
        expect(await unlike(rig.root, out)).toEqual([])
      }
      expect((await publishTo(rig.root, out)).tables).toEqual({})
      rmSync(dirname(out), { recursive: true })
    },
    { instead: small.answer },
  )
})
