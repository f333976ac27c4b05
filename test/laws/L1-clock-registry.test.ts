// @module-tag full
import { expect, test } from 'vitest'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { passingFacts, registryState } from '../../src/sources/registry/staging.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { storedPassing, storedVersions, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { parquet } from '../../src/lake/store/parquet.ts'
import { recordTables } from '../../src/sources/registry/columns.ts'
import { withRig } from '../helpers/fetching.ts'
import { dump } from '../helpers/lakes/drafts.ts'
import { examined } from '../helpers/looking.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { contentOf, type RegistryRig, withRegistryRig } from '../helpers/registry-rig.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { registryStateAt } from '../helpers/registry-truth.ts'
import { writing } from '../helpers/ledgers.ts'

const start = Date.UTC(2026, 5, 1, 12) / 1000
const day = 86_400
const ahead = 50 * 365 * day
const records = [...recordTables(catalogue.resources).keys()]
const others = ['snapshots', 'events', 'schema_changes', 'absorbed', 'registry_findings', 'metric_assets']
const tables = [...records, ...records.map((name) => `history.${name}`), ...others]

/** The latest instant and day that any live file of the registry or of the assets carries, in seconds. */
async function latest(root: string): Promise<number> {
  using ledger = await Ledger.openToRead(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  let most = 0
  for (const table of tables)
    for (const { path } of liveFiles(ledger, { table })) {
      const source = parquet([inLake(root, path)])
      const columns = (await engine.rows(`DESCRIBE FROM ${source}`)).map((row) => row['column_name'] as string)
      for (const name of ['at', 'observed_at', 'superseded_at', 'snapshot_date'])
        if (columns.includes(name)) {
          const [row] = await engine.rows(`SELECT coalesce(max(epoch("${name}")), 0)::DOUBLE AS at FROM ${source}`)
          most = Math.max(most, Number(row?.['at']))
        }
    }
  return most
}

async function mend(root: string, now: () => number): Promise<string[]> {
  const told = await examined(root, now(), { repair: true })
  expect(told.findings.filter(({ kind, severity }) => severity === 'damage' && kind !== 'views_missing')).toEqual([])
  return [...told.mended]
}

const asked = [
  ...records.flatMap((name) => [name, `history.${name}`, `snapshots.${name}`]),
  'schema_changes',
  'registry_findings',
  'registry_events',
  'registry_start',
]

/** Rows of each view of the registry with these settings, and their sum. */
async function answers(root: string, settings: Readonly<Record<string, number>>): Promise<Record<string, string>> {
  return await withViews(root, async (engine) => {
    for (const [name, at] of Object.entries(settings))
      await engine.run(`SET VARIABLE ${name} = make_timestamptz(${at * 1_000_000}::BIGINT)`)
    const told: Record<string, string> = {}
    for (const view of asked) {
      const [row] = await engine.rows(`SELECT concat(count(*), ' ', sum(hash(shown))) AS told FROM ${view} AS shown`)
      told[view] = row?.['told'] as string
    }
    return told
  })
}

function farOf({ clock }: RegistryRig) {
  const real = performance.now()
  const now = (): number => (clock.now + ahead) * 1000 + (performance.now() - real)
  return { deps: { now, nowMicros: () => Math.floor(now() * 1000) } }
}

/** The newest dated snapshot, without its dates. */
async function newest(root: string): Promise<unknown> {
  return await withViews(
    root,
    async (engine) =>
      await engine.rows(
        ['products', 'deployments', 'provenance']
          .map(
            (name) => `SELECT '${name}' AS name, count(*) AS n, sum(hash(rest)) AS told FROM (
              SELECT * EXCLUDE (snapshot_date, observed_at) FROM snapshots.${name}
              WHERE snapshot_date = (SELECT max(snapshot_date) FROM snapshots.${name})) AS rest`,
          )
          .join(' UNION ALL ')
          .concat(' ORDER BY name'),
      ),
  )
}

test('polls with the clock 50 years ahead are known from their mending on', async () =>
  withRegistryRig(start, async (rig) => {
    const { root, clock } = rig
    await rig.snapshot()
    await rig.sync()
    await makeViews(root)
    const good = await answers(root, {})
    clock.now += 3 * day
    await rig.snapshot(farOf(rig))
    clock.now += day
    await rig.sync(farOf(rig))
    await compact(root, rewriteDeps({ nowMicros: () => clock.now * 1_000_000 }))
    clock.now += 10 * day
    // The clock is right again, its commits are not: instants only grow.
    await rig.snapshot()
    const reached = clock.now
    await rig.sync()
    const content = await contentOf(root)
    await makeViews(root)
    const last = await newest(root)
    expect(await latest(root)).toBeGreaterThan(clock.now + ahead / 2)
    clock.now += 3600
    const [told] = await mend(root, () => clock.now)
    expect(told).toMatch(/points and \d+ rows of the registry and of assets are now seen/)
    expect(await latest(root)).toBeLessThan(clock.now + 1)
    expect(await contentOf(root)).toEqual(content)
    await makeViews(root)
    for (const name of ['as_of', 'observed_as_of']) expect(await answers(root, { [name]: clock.now - 1 })).toEqual(good)
    expect(await newest(root)).toEqual(last)
    const after = await answers(root, {})
    for (const view of ['products', 'deployments', 'history.products', 'snapshots.products', 'registry_events'])
      expect([view, after[view]]).not.toEqual([view, good[view]])
    expect(await answers(root, { as_of: clock.now + 1, observed_as_of: clock.now + 1 })).toEqual(after)
    const truth = registryStateAt({ seed: 5, scale: 'demo' }, reached)
    const days = [start, clock.now].map((at) => new Date(at * 1000).toISOString().slice(0, 10))
    await withViews(root, async (engine) => {
      for (const table of ['issuers', 'products', 'deployments', 'venues']) {
        const wanted = [...(truth.get(table) ?? new Map()).values()].map(({ id }) => id as string).toSorted()
        const ids = async (from: string): Promise<unknown[]> =>
          (await engine.rows(`SELECT id FROM ${from} ORDER BY id`)).map(({ id }) => id)
        expect(await ids(table)).toEqual(wanted)
      }
      const shown = await engine.rows('SELECT DISTINCT snapshot_date::VARCHAR AS d FROM snapshots.products ORDER BY d')
      expect(shown.map(({ d }) => d)).toEqual(days)
    })
    const ledger = await Ledger.open(root)
    const state = registryState(ledger)
    expect([state.first?.date, state.last?.date]).toEqual(days)
    const live = new Set(liveFiles(ledger).map(({ path }) => path))
    expect(Object.keys(state.layers)).toContain('products')
    for (const { base, delta, base_at } of Object.values(state.layers)) {
      expect([live.has(base), delta === null || live.has(delta)]).toEqual([true, true])
      expect(base_at).toBeLessThan((clock.now + 1) * 1_000_000)
    }
    expect(passingFacts(ledger).polled).toBeLessThanOrEqual(clock.now * 1000)
    expect(storedPassing(ledger, 'registry.polled')?.at).toBeLessThan((clock.now + 1) * 1_000_000)
    const committed = storedVersions(ledger).at(-1)?.committed_at ?? 0
    expect(committed).toBeGreaterThanOrEqual(clock.now * 1_000_000)
    const rebuilt = await Ledger.inMemory(root)
    expect(dump(rebuilt)).toEqual(dump(ledger))
    rebuilt.close()
    ledger.close()
    expect(await mend(root, () => clock.now)).toEqual([])
    clock.now += 5 * day
    expect((await rig.sync()).updated).toBeGreaterThan(0)
    await rig.snapshot()
    const later = await Ledger.open(root)
    expect(passingFacts(later).polled).toBeGreaterThanOrEqual(clock.now * 1000)
    expect(registryState(later).last?.observed_at).toBeGreaterThan(committed)
    later.close()
    await makeViews(root)
    expect(await answers(root, { observed_as_of: clock.now - day })).toEqual(after)
  }))

test('assets of a lake that began with a clock far ahead are known from the repair on and requested again in time', async () =>
  withRig(start, async ({ root, clock, fetch, ...rig }) => {
    const selection = { assets: ['BTC'], paths: ['blockchain/block_count_pit'], since: start - 20 * day }
    const { deps } = farOf({ clock } as RegistryRig)
    await fetch(selection, { deps, input: { now: clock.now + ahead } })
    clock.now += 3600
    expect(await latest(root)).toBeGreaterThan(clock.now)
    await mend(root, () => clock.now)
    await makeViews(root)
    const seen = async (at: number): Promise<unknown> =>
      await withViews(root, async (engine) => {
        await engine.run(`SET VARIABLE observed_as_of = make_timestamptz(${at * 1_000_000}::BIGINT)`)
        return (await engine.rows('SELECT count(*) AS n, max(epoch(changed_at)) AS last FROM metric_assets'))[0]
      })
    expect(await seen(clock.now - 1)).toEqual({ n: 0n, last: null })
    expect(await seen(clock.now + 1)).toMatchObject({ last: clock.now })
    await writing(root, (ledger) => expect(storedPassing(ledger, 'metrics.assets')?.at).toBe(0))
    clock.now += 2 * day
    await fetch(selection)
    await writing(root, (later) =>
      expect(storedPassing(later, 'metrics.assets')?.at).toBeGreaterThanOrEqual(clock.now * 1_000_000),
    )
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))
