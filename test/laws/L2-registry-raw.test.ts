// @module-tag full
// @module-tag alone
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import type { Diagnosis } from '../../src/maintenance/upkeep/doctor.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import type * as Files from '../../src/lake/store/files.ts'
import { type StoredFile, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { examined } from '../helpers/looking.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { type RegistryRig, withRegistryRig } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { writing } from '../helpers/ledgers.ts'
import { scratch } from '../helpers/scratch.ts'

const machine = vi.hoisted(() => ({ lacksFiles: false }))
vi.mock('../../src/lake/store/files.ts', async (original) => {
  const real = await original<typeof Files>()
  const readBytes: typeof real.readBytes = async (path) => {
    if (machine.lacksFiles && path.includes('/registry/raw/')) throw Object.assign(new Error(path), { code: 'EMFILE' })
    return await real.readBytes(path)
  }
  return { ...real, readBytes }
})
afterEach(() => (machine.lacksFiles = false))

const now = Date.UTC(2026, 5, 1, 12) / 1000
const day = 86_400

/** Follows a changing registry for some days: snapshots, feeds of several pages, events, findings. */
async function follow(rig: RegistryRig, small: SmallRegistry): Promise<void> {
  const { world } = small
  world.put('venues', 'v1', { name: 'Venue' })
  await rig.sync()
  rig.clock.now += day
  for (let n = 0; n < 60; n++) world.put('issuers', `n${n}`, { name: `New "{${n}\n`, custodian: n % 2 ? 'c' : null })
  world.put('products', 'p3', null)
  await rig.sync()
  rig.clock.now += day
  world.put('issuers', 'i1', { name: 'Other', custodian: null, country: { code: 'x' } })
  world.put('issuers', 'i2', null)
  await rig.snapshot()
  rig.clock.now += day
  await rig.sync()
  rig.clock.now += day
  world.put('issuers', 'i2', { name: 'back' })
  world.put('deployments', 'd9', { product_id: 'p9', status: 'retired', verification_status: 'verified' })
  await rig.sync()
  rig.clock.now += day
  await rig.snapshot()
  // A new epoch, whose snapshot lacks a table and is believed all the same.
  rig.clock.now += day
  small.epoch++
  world.put('issuers', 'i5', { name: 'since when nobody knows' })
  const rest = await without('venues', small)
  small.broken.set('/snapshot', () => rest.clone())
  await rig.snapshot({ acceptShrink: true })
  small.broken.delete('/snapshot')
}

/** The provider's snapshot without the array of a table. */
async function without(table: string, small: SmallRegistry): Promise<Response> {
  const whole = (await small.answer(new Request('http://x/registry/v1/snapshot')).json()) as Record<string, unknown>
  return Response.json(Object.fromEntries(Object.entries(whole).filter(([name]) => name !== table)))
}

/** Says that it is a sandbox: a copy of the lake meets it under another address. */
const provided = (small: SmallRegistry) => ({
  instead: (request: Request): Response => {
    const answer = small.answer(request)
    answer.headers.set('x-pitlake-sandbox', '5')
    return answer
  },
})

const template = scratch('followed')
const followed = new SmallRegistry()
let then = now
beforeAll(async () => {
  await withRegistryRig(
    now,
    async (rig) => {
      await follow(rig, followed)
      then = rig.clock.now
      cpSync(rig.root, template, { recursive: true })
    },
    provided(followed),
  )
})

/** A copy of the lake that did, its provider and its clock. The last test alone tells the provider something new. */
async function withDays(work: (root: string, rig: RegistryRig, small: SmallRegistry) => Promise<void>): Promise<void> {
  await withRegistryRig(
    then,
    async (rig) => {
      cpSync(template, rig.root, { recursive: true })
      await work(rig.root, rig, followed)
    },
    provided(followed),
  )
}

async function live(root: string): Promise<StoredFile[]> {
  using ledger = await Ledger.open(root)
  const files = liveFiles(ledger).filter(({ table }) => table !== 'raw')
  return [...new Map(files.map((file) => [file.path, file])).values()]
}

/** Every row of every live file of each table, read from the files alone; the end that only merges fill is left out. */
async function rowsOf(root: string): Promise<Record<string, string[]>> {
  const engine = await Engine.open()
  const rows: Record<string, string[]> = {}
  try {
    for (const { path, table } of await live(root)) {
      const found = await engine.rows<{ line: string }>(
        `SELECT to_json(t)::VARCHAR AS line FROM read_parquet('${join(root, path)}') t`,
      )
      const lines = found.map(({ line }) => line.replace(/,?"superseded_at":[^,}]*/, ''))
      rows[table] = [...(rows[table] ?? []), ...lines]
    }
  } finally {
    engine.close()
  }
  return Object.fromEntries(Object.entries(rows).map(([table, lines]) => [table, lines.toSorted()]))
}

const repair = async (root: string, really = true): Promise<Diagnosis> =>
  await examined(root, now + 30 * day, { repair: really }, { resources: catalogue.resources })

const damages = ({ findings }: Diagnosis) =>
  findings.filter(({ severity, kind }) => severity === 'damage' && !kind.startsWith('views'))

/** Merges everything and lets go of what was merged. */
async function tidied(root: string, at: number): Promise<void> {
  const deps = rewriteDeps({ nowMicros: () => at * 1e6 })
  await compact(root, deps)
  await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews: async () => undefined })
}

/** Takes files away; some are torn instead. */
function harm(root: string, files: readonly StoredFile[]): void {
  for (const [n, { path }] of files.entries())
    if (n % 3 === 0) writeFileSync(join(root, path), 'torn')
    else rmSync(join(root, path))
}

const rounds = 3

test('L2: each live file of the registry, lost or torn, comes back byte for byte from the bodies', () =>
  withDays(async (root) => {
    const before = await rowsOf(root)
    const files = await live(root)
    const tables = new Set(files.map(({ table }) => table))
    for (const table of ['history.issuers', 'issuers', 'events', 'schema_changes', 'registry_findings', 'snapshots'])
      expect([...tables]).toContain(table)
    const bytes = new Map(files.map(({ path }) => [path, readFileSync(join(root, path))]))
    const { version } = await repair(root)
    for (let round = 0; round <= rounds; round++) {
      const lost = files.filter((_, n) => round === rounds || n % rounds === round)
      harm(root, lost)
      const done = await repair(root)
      expect(damages(done)).toEqual([])
      expect(done.version).toBe(version)
      for (const { path } of lost)
        expect(readFileSync(join(root, path)).equals(bytes.get(path) ?? Buffer.of()), path).toBe(true)
      expect(readFileSync(join(root, `${lost[0]?.path}.damaged`), 'utf8')).toBe('torn')
    }
    expect(await rowsOf(root)).toEqual(before)
  }))

test('L2: if a raw body is gone, records that need it are unresolved and the rest is unchanged', () =>
  withDays(async (root) => {
    const files = await live(root)
    const events = files.filter(({ table }) => table === 'events')
    const [, second] = events
    const raw = await writing(root, (ledger) =>
      liveFiles(ledger, { table: 'raw' }).find(({ added_version }) => added_version === second?.added_version),
    )
    rmSync(join(root, raw?.path ?? ''))
    harm(root, events)
    const done = await repair(root)
    const told = damages(done).filter(({ path }) => path !== raw?.path)
    expect(told.map(({ path }) => path)).toEqual(events.slice(1).map(({ path }) => path))
    expect(told[0]?.remedy).toMatch(/from a copy.*registry\/raw cannot make it \(.*is not there any more, or damaged/)
    // Nobody is sent in a circle by what only looks.
    const seen = damages(await repair(root, false)).find(({ path }) => path === second?.path)
    expect(seen?.remedy).toMatch(
      /registry\/raw cannot make it \(the bodies that made it are not there any more.*stay\)/,
    )
    expect((await live(root)).map(({ path }) => path)).toEqual(files.map(({ path }) => path))
  }))

test('L2: a repair that may open no more files calls no body damaged and can be repeated', () =>
  withDays(async (root) => {
    harm(root, await live(root))
    machine.lacksFiles = true
    await expect(repair(root)).rejects.toThrow(/registry\/raw.*too many open files; raise the limit/)
    machine.lacksFiles = false
    expect(damages(await repair(root))).toEqual([])
  }))

test('L2: a body that says something else makes no file of the lake', () =>
  withDays(async (root) => {
    const lost = (await live(root)).filter(
      ({ path }) => path.includes('/0000000005-') && !/provenance|findings/.test(path),
    )
    const raw = join(root, 'registry/raw/feed')
    const name = readdirSync(raw).find((file) => file.startsWith('0000000005-')) ?? ''
    const body = zstdDecompressSync(readFileSync(join(raw, name))).toString()
    writeFileSync(join(raw, name), zstdCompressSync(body.replaceAll('back', 'bent').replaceAll('retired', 'retried')))
    harm(root, lost)
    const told = damages(await repair(root)).filter(({ path }) => !path.includes('/raw/'))
    expect(told.map(({ path }) => path).toSorted()).toEqual(lost.map(({ path }) => path).toSorted())
    expect(told[0]?.remedy).toMatch(/other bytes than it had/)
  }))

test('L2: merged files come back as those that they were merged from, made again where vacuum took them', () =>
  withDays(async (root, rig, small) => {
    await tidied(root, rig.clock.now)
    rig.clock.now += day
    small.world.put('issuers', 'i3', { name: 'after the merge' })
    await rig.sync()
    await tidied(root, rig.clock.now)
    rig.clock.now += day
    small.world.put('issuers', 'i4', { name: 'after both' })
    await rig.sync()
    const before = await rowsOf(root)
    const files = await live(root)
    const merged = files.filter(({ path }) => /-compact-/.test(path))
    expect(merged.map(({ table }) => table)).toContain('history.issuers')
    harm(root, files)
    const done = await repair(root)
    expect(damages(done)).toEqual([])
    expect(await rowsOf(root)).toEqual(before)
    expect(damages(await repair(root))).toEqual([])
    await rig.sync()
    expect(await rowsOf(root)).toEqual(before)
  }))
