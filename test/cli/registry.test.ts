// @module-tag full
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import type { Ended } from '../helpers/command.ts'
import { type RegistryDesk, withRegistryDesk } from '../helpers/registry-desk.ts'
import { standing } from '../helpers/registry-rig.ts'
import { refused } from '../helpers/small-registry.ts'

const day = 86_400

type Desk = RegistryDesk & { registry(...argv: readonly string[]): Promise<Ended> }

const withDesk = async (work: (desk: Desk) => Promise<void>): Promise<void> =>
  await withRegistryDesk(
    async (desk) => await work({ ...desk, registry: async (...argv) => await desk.run(['registry', ...argv]) }),
  )

const document = ({ out }: Ended): Record<string, unknown> => JSON.parse(out) as Record<string, unknown>

test('snapshot, sync and status: exit 0, and one document with --json', async () =>
  withDesk(async ({ small, registry }) => {
    const first = await registry('snapshot', '--json')
    expect(first.code).toBe(0)
    expect(document(first)).toMatchObject({
      version: 1,
      requests: 1,
      source: 'snapshot',
      snapshot_date: '2026-06-01',
      epoch: 1,
      records: { issuers: 30, products: 20, deployments: 40, provenance: 40 },
      stopped_by: null,
      resume_at: null,
    })
    small.world.put('issuers', 'i1', { name: 'renamed' })
    const behind = document(await registry('status', '--json'))
    expect(behind).toMatchObject({ behind: true, feed_at: null, first_snapshot: '2026-06-01', epoch: 1 })
    const synced = await registry('sync')
    expect(synced.code).toBe(0)
    expect(synced.out).toMatch(/^history +0 opened, 1 updated, 0 closed$/m)
    expect(document(await registry('sync', '--json'))).toMatchObject({ events: 0, updated: 0, files_added: 0 })
    const status = document(await registry('status', '--json'))
    expect(status).toMatchObject({ behind: false, records: { issuers: 30 }, versions: { issuers: 31 } })
    expect(status['events']).toEqual([{ type: 'issuer', known: true, op: 'updated', events: 1 }])
    expect(document(await registry('status', '--json', '--offline'))['behind']).toBeNull()
    expect((await registry('status')).out).toMatch(/^behind +no, at the head of the feed$/m)
  }))

test('a lake of the registry alone is healthy, whatever words its provider’s address has', async () =>
  withDesk(async ({ registry, run, env }) => {
    expect(env['PITLAKE_REGISTRY_URL']).toContain('/registry/')
    await registry('sync')
    expect(await run(['doctor'])).toMatchObject({ code: 0, message: '' })
  }))

test('exit 4: a snapshot that loses much waits for --accept-shrink, and --check names that until it is applied', async () =>
  withDesk(async ({ small, root, registry, run }) => {
    await registry('snapshot')
    const before = await standing(root)
    for (let n = 0; n < 12; n++) small.world.put('products', `p${n}`, null)
    const held = await registry('snapshot', '--json')
    expect([held.code, held.out]).toEqual([4, ''])
    expect(held.message).toMatch(/held back.*products 20 -> 8, deployments 40 -> 16.*--accept-shrink/)
    expect(await standing(root)).toEqual(before)
    const waiting = await run(['status', '--check'])
    expect(waiting.out).toMatch(/^integrity: a snapshot .* held back.*pitlake registry snapshot --accept-shrink$/m)
    const taken = await registry('snapshot', '--json', '--accept-shrink')
    expect(taken.code).toBe(0)
    expect((await run(['status', '--check'])).out).not.toMatch(/held back/)
    expect(document(taken)).toMatchObject({ closed: 36, records: { products: 8, deployments: 16 } })
  }))

test('exit 2: nothing set, and another address until --provider-moved', async () =>
  withDesk(async ({ root, run, clock, registry }) => {
    for (const name of ['PITLAKE_REGISTRY_URL', 'PITLAKE_REGISTRY_KEY'])
      expect(await run(['registry', 'sync'], { [name]: undefined })).toMatchObject({
        code: 2,
        message: expect.stringContaining(name),
      })
    expect(await run(['registry', 'status'], { PITLAKE_DATA: join(root, 'none') })).toMatchObject({ code: 2 })
    await registry('sync')
    await withDesk(async ({ env: other, clock: theirs }) => {
      const moved = { PITLAKE_REGISTRY_URL: other['PITLAKE_REGISTRY_URL'] }
      const before = await standing(root)
      const refusal = await run(['registry', 'snapshot'], moved)
      expect([refusal.code, refusal.out]).toEqual([2, ''])
      expect(refusal.message).toMatch(/--provider-moved/)
      expect(await standing(root)).toEqual(before)
      clock.now += day
      theirs.now += day
      expect(await run(['registry', 'snapshot', '--provider-moved'], moved)).toMatchObject({ code: 0 })
      expect(await run(['registry', 'sync'], moved)).toMatchObject({ code: 0 })
      expect(await registry('sync')).toMatchObject({ code: 2 })
    })
  }))

test(
  'a bad key, an early end and an unreadable answer end with 3, 5 and 6 after the document is printed',
  {},
  async () =>
    withDesk(async ({ small, root, registry }) => {
      const answers = async (answer: () => Response, ...argv: readonly string[]): Promise<Ended> => {
        small.broken.set('/snapshot', answer)
        const ended = await registry('snapshot', '--json', ...argv)
        small.broken.clear()
        return ended
      }
      const key = await answers(refused(401, 'unauthorized'))
      expect([key.code, document(key)['stopped_by']]).toEqual([3, 'unauthorised'])
      expect(key.message).toMatch(/PITLAKE_REGISTRY_KEY/)
      const quota = await answers(refused(429, 'quota_exceeded', { 'retry-after': '40000' }))
      expect([quota.code, document(quota)['stopped_by']]).toEqual([5, 'quota'])
      expect(document(quota)['resume_at']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(quota.message).toMatch(/the quota is back at .*run the same command then/)
      const html = await answers(() => new Response('<html></html>'))
      expect([html.code, document(html)['stopped_by']]).toEqual([6, 'undecodable'])
      expect(html.message).toMatch(/HTML where JSON belongs/)
      const down = await answers(refused(500, 'internal_error'))
      expect([down.code, document(down)['stopped_by']]).toEqual([6, 'failed'])
      expect((await standing(root)).version).toBe(0)
      await registry('snapshot')
      for (let n = 0; n < 60; n++) small.world.put('issuers', `i${n % 30}`, { name: `name ${n}` })
      for (let n = 0; n < 60; n++) small.world.put('issuers', `j${n}`, { name: `name ${n}` })
      const early = await registry('sync', '--json', '--max-requests', '1')
      expect([early.code, document(early)['stopped_by']]).toEqual([5, 'max_requests'])
      expect(document(early)).toMatchObject({ pages: 1, requests: 1 })
      expect(early.message).toMatch(/run the same command again/)
      expect(document(await registry('sync', '--json'))).toMatchObject({ stopped_by: null, records: { issuers: 90 } })
    }),
)

test('an unchanged raw body is stored once, and each raw body for raw_days', async () =>
  withDesk(async ({ small, root, clock, registry }) => {
    writeFileSync(join(root, 'pitlake.yaml'), 'registry: { raw_days: 2 }\n')
    const kept: string[][] = []
    for (let n = 0; n < 6; n++) {
      if (n > 1) small.world.rows.set('issuers i1', { id: 'i1', name: `name ${n}` })
      expect(await registry('snapshot')).toMatchObject({ code: 0 })
      kept.push(await labelsOfRaw(root))
      clock.now += day
    }
    expect(kept).toEqual([
      ['06-01'],
      ['06-01 06-02'],
      ['06-01 06-02', '06-03'],
      ['06-01 06-02', '06-03', '06-04'],
      ['06-03', '06-04', '06-05'],
      ['06-04', '06-05', '06-06'],
    ])
  }))

/** The dates for which each raw body of the lake stands, oldest body first. */
async function labelsOfRaw(root: string): Promise<string[]> {
  using ledger = await Ledger.openToRead(root)
  const bodies = Map.groupBy(liveFiles(ledger, { table: 'raw' }), ({ path }) => path)
  return [...bodies.values()].map((files) =>
    files
      .map(({ label }) => label.slice(5))
      .toSorted()
      .join(' '),
  )
}
