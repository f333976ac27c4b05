// @module-tag full
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect } from 'vitest'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { examine } from '../../src/maintenance/upkeep/doctor.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { type Manifest, readManifest } from '../../src/query/views/manifest.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { sample } from '../helpers/tiers.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import type { LakeCommit } from '../helpers/lakes/lake-recipe.ts'
import { reading, writing } from '../helpers/ledgers.ts'

const places = { database: 'lake.duckdb', script: 'lake.sql', manifest: 'lake.manifest.json' }
const at = Date.UTC(2024, 5, 1) / 1000

const stepAt = (n: number): LakeCommit => ({
  at: `2024-04-0${n}`,
  points: ['m/x', 'm/y'].map((metric) => ({
    metric,
    asset: 'BTC',
    interval: '24h',
    t: `2024-03-0${n}`,
    available_at: `2024-03-0${n + 1}`,
    v: n,
  })),
  tables: { 'history.products': [{ id: `p${n}`, op: 'created', record: '{}' }], snapshots: [{ resource: 'products' }] },
})

const readText = (root: string, name: keyof typeof places): string => readFileSync(join(root, places[name]), 'utf8')
const said = (root: string): Manifest => JSON.parse(readText(root, 'manifest')) as Manifest
const digest = (root: string, name: keyof typeof places): string =>
  createHash('sha256')
    .update(readFileSync(join(root, places[name])))
    .digest('hex')

/** What vacuum takes, or would take, of files that no version of today needs, long after. */
async function freed(root: string, really = true): ReturnType<typeof vacuum> {
  const deps = rewriteDeps({ nowMicros: () => at * 1_000_000 })
  return await vacuum(
    { root, keepSeconds: 0, really },
    { ...deps, buildViews: async () => await makeViews(root, { deps }) },
  )
}

/** Files of before: points that a commit replaced, and exports of its views. */
async function grow(root: string): Promise<void> {
  const [old] = await writing(root, (ledger) => liveFiles(ledger, { table: 'points' }))
  await makeLake(root, [{ ...stepAt(3), remove: [old?.path ?? ''] }])
}

test('the manifest names the files of each object and its script and database', async ({ root }) => {
  await makeLake(root, [stepAt(1), stepAt(2)])
  await makeViews(root)
  const manifest = said(root)
  expect(manifest).toMatchObject({
    version: 2,
    folder: root,
    script: digest(root, 'script'),
    database: digest(root, 'database'),
  })
  expect(await readManifest(root)).toEqual(manifest)
  const files = await reading(root, (ledger) => liveFiles(ledger).map(({ path }) => path))
  const all = [...files, ...readdirSync(join(root, 'exports')).map((name) => `exports/${name}`)]
  expect(all.length).toBeGreaterThan(12)
  // The script by object: whatever file its text names is one of the tables that it is said to read.
  const sections = readText(root, 'script')
    .split(/^-- \d\d_\w+\.sql$/m)
    .slice(1)
  expect(sections.length).toBe(Object.keys(manifest.objects).length)
  for (const text of sections) {
    const name = (/^CREATE (?:OR REPLACE )?\w+ (?:IF NOT EXISTS )?([\w."]+)/m.exec(text)?.[1] ?? '').replaceAll('"', '')
    const tables = manifest.objects[name] ?? ['none']
    const named = all.filter((path) => text.includes(`/${basename(path)}`))
    expect(
      tables.flatMap((table) => manifest.tables[table] ?? []),
      name,
    ).toEqual(expect.arrayContaining(named))
  }
  expect(manifest.objects['pit_universe']).toEqual([
    ...['assets', 'deployments', 'issuers', 'products'].map((name) => `history.${name}`),
    'snapshots',
  ])
  expect(manifest.objects['calendar']).toEqual([])
})

/** What may be wrong with one. */
const damages: readonly (readonly [what: string, damage: (root: string) => void])[] = [
  ['none, as beside the views of earlier programs', (root: string) => rmSync(join(root, places.manifest))],
  ['torn', (root: string) => writeFileSync(join(root, places.manifest), readText(root, 'manifest').slice(0, 200))],
  [
    'of a later form',
    (root: string) => writeFileSync(join(root, places.manifest), JSON.stringify({ ...said(root), schema_version: 3 })),
  ],
  ['of another script', (root: string) => writeFileSync(join(root, places.script), `${readText(root, 'script')}\n`)],
  ['beside no script', (root: string) => rmSync(join(root, places.script))],
]

test.each(sample(damages, 5))(
  'a manifest that is %s protects no files and frees none, and the next build writes it again',
  (_, damage) =>
    inFolder(async (root) => {
      await makeLake(root, [stepAt(1), stepAt(2)])
      await makeViews(root)
      const whole = said(root)
      await grow(root)
      damage(root)
      expect(await readManifest(root)).toBeUndefined()
      expect(await freed(root, false)).toMatchObject({ data: { files: 0 }, exports: { files: 0 } })
      const names = readdirSync(join(root, 'exports'))
      expect(await freed(root)).toMatchObject({ data: { files: 0 }, exports: { files: 0 } })
      expect(readdirSync(join(root, 'exports'))).toEqual(expect.arrayContaining(names))
      expect(await readManifest(root)).toMatchObject({ version: 3 })
      // From now on it is known what they name.
      await makeLake(root, [stepAt(4)])
      const second = await freed(root)
      expect(second.data.files).toBe(1)
      expect(second.exports.files).toBeGreaterThan(0)
      expect(second.paths).not.toEqual(expect.arrayContaining([whole.tables['endpoints']?.[0]]))
    }),
)

test.each(sample([1, 2, 3], 3))(
  'a build killed before rename %i of three leaves files that are recognised, kept and rebuilt',
  (nth) =>
    inFolder(async (root) => {
      await makeLake(root, [stepAt(1), stepAt(2)])
      await makeViews(root)
      await grow(root)
      let moves = 0
      const move: typeof realDisk.move = async (from, to) => {
        if (!to.includes('/exports/') && ++moves >= nth) throw new Error('killed')
        await realDisk.move(from, to)
      }
      const deps = rewriteDeps({ nowMicros: () => at * 1_000_000 })
      await expect(makeViews(root, { deps: { ...deps, disk: { ...realDisk, move } } })).rejects.toThrow(/killed/)
      expect((await readManifest(root))?.version).toBe(nth === 1 ? 2 : undefined)
      // Whoever opens what stands there now can go on with it, whatever vacuum does behind.
      await withViews(root, async (open) => {
        await makeLake(root, [stepAt(4)])
        const { data, exports } = await freed(root)
        // Before the first rename nobody can have opened what was made.
        expect([data.files, nth === 1 ? 0 : exports.files]).toEqual([0, 0])
        for (const view of ['points', 'coverage', 'endpoints', 'versions', 'products', 'history.products', 'links'])
          expect((await open.rows(`SELECT count(*) AS n FROM ${view}`)).length, view).toBe(1)
      })
      expect(await readManifest(root)).toMatchObject({ version: 4, script: digest(root, 'script') })
      expect((await freed(root)).data.files).toBe(1)
    }),
)

test('doctor distinguishes a missing manifest, a moved lake and a lost export by the manifest alone', async ({
  root,
}) => {
  await makeLake(root, [stepAt(1)])
  await makeViews(root)
  const deps = {
    ...rewriteDeps({ nowMicros: () => at * 1_000_000 }),
    views: async () => undefined,
    space: async () => ({ free: 1e12, total: 1e12 }),
  }
  const findings = async (): Promise<string[]> => {
    const input = { data: root, thorough: true, rebuildLedger: false, repair: false, forgetLost: false, adopt: null }
    const found = await examine(input, deps)
    return found.findings
      .filter(({ kind }) => kind.startsWith('views_'))
      .map(({ kind, severity, path }) => `${kind} ${severity} ${path}`)
  }
  expect(await findings()).toEqual([])
  copyFileSync(join(root, places.manifest), join(root, 'kept'))
  rmSync(join(root, places.manifest))
  expect(await findings()).toEqual(['views_missing notice lake.manifest.json'])
  writeFileSync(join(root, places.manifest), JSON.stringify({ ...said0(root), folder: '/elsewhere' }))
  expect(await findings()).toEqual(['views_moved damage lake.duckdb'])
  copyFileSync(join(root, 'kept'), join(root, places.manifest))
  const [lost = ''] = said(root).tables['coverage'] ?? []
  rmSync(join(root, lost))
  expect(existsSync(join(root, lost))).toBe(false)
  expect(await findings()).toEqual([`views_missing damage ${lost}`])
})

const said0 = (root: string): Manifest => JSON.parse(readFileSync(join(root, 'kept'), 'utf8')) as Manifest
