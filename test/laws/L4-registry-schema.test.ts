import { expect, test } from 'vitest'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { registryStatus } from '../../src/sources/registry/status.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type RegistryRig, standing, withRegistryRig } from '../helpers/registry-rig.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { makeViews } from '../helpers/views.ts'

const noon = Date.UTC(2026, 5, 1, 12) / 1000

async function withSmall(work: (small: SmallRegistry, rig: RegistryRig) => Promise<void>): Promise<void> {
  const small = new SmallRegistry()
  const serve = async (rig: RegistryRig): Promise<void> => {
    small.world.put('issuers', 'odd', { name: 'Odd', status: 'dormant', regulator: { name: 'told at first' } })
    await rig.sync()
    rig.clock.now += 3600
    await work(small, rig)
  }
  await withRegistryRig(noon, serve, { instead: (request) => small.answer(request) })
}

/** The rows as `resource path kind value`, as known at an instant. */
async function changes(root: string, at?: number): Promise<string[]> {
  await makeViews(root)
  using engine = await Engine.open(inLake(root, places.database), { readOnly: true, threads: 1 })
  if (at !== undefined) await engine.run(`SET VARIABLE as_of = '${new Date(at * 1000).toISOString()}'`)
  const rows = await engine.rows<{ line: string }>(
    "SELECT concat_ws(' ', resource, path, kind, value) AS line FROM schema_changes ORDER BY ALL",
  )
  return rows.map(({ line }) => line)
}

const counted = async ({ root }: RegistryRig): Promise<number> => {
  using ledger = await Ledger.openToRead(root)
  return (await registryStatus(ledger, catalogue, noon * 1000, null)).schema_changes
}

test('a value that no document lists and another type are one dated row each, hidden before, none on a rerun', async () =>
  withSmall(async (small, rig) => {
    expect(await changes(rig.root)).toEqual([])
    small.world.put('deployments', 'd1', { product_id: 'p1', status: 'paused', verification_status: 'verified' })
    small.world.put('deployments', 'd2', { product_id: 'p2', status: 'paused', verification_status: 'verified' })
    small.world.put('issuers', 'i1', { name: { legal: 'Issuer 1' }, custodian: { name: 'was null' } })
    small.world.put('issuers', 'i2', { name: { legal: 'Issuer 2' }, status: 'inactive' })
    small.world.put('issuers', 'i3', { name: 'Issuer 3', status: 'dormant' })
    const done = await rig.sync()
    const told = await changes(rig.root)
    const [values, types] = ['value', 'type'].map((kind) => told.filter((line) => line.split(' ')[2] === kind))
    expect(values).toEqual(['deployments status value paused'])
    expect(types).toEqual(['issuers name type string to object'])
    expect(done.schema_changes).toBe(told.length)
    expect(await counted(rig)).toBe(told.length)
    expect(await changes(rig.root, rig.clock.now - 60)).toEqual([])

    const { version } = await standing(rig.root)
    rig.clock.now += 3600
    await rig.sync()
    small.world.put('deployments', 'd3', { product_id: 'p3', status: 'paused', verification_status: 'verified' })
    small.world.put('issuers', 'i4', { name: { legal: 'Issuer 4' }, custodian: null })
    expect((await rig.sync()).schema_changes).toBe(0)
    expect((await standing(rig.root)).version).toBe(version + 1)
    expect(await changes(rig.root)).toEqual(told)
  }))

test('a schema change seen by a poll that stopped before its commit is committed by the next', async () =>
  withSmall(async (small, rig) => {
    small.world.put('issuers', 'i1', { name: 'Issuer 1', status: 'winding-up' })
    let moves = 0
    const move = async (): Promise<void> => {
      moves++
      await Promise.reject(new Error('stopped here'))
    }
    await expect(rig.sync({ deps: { disk: { ...realDisk, move } } })).rejects.toThrow('stopped here')
    expect(moves).toBeGreaterThan(0)
    expect(await changes(rig.root)).toEqual([])
    expect((await rig.sync()).schema_changes).toBe(1)
    expect(await changes(rig.root)).toEqual(['issuers status value winding-up'])
  }))
