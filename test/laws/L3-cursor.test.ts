// @module-tag full
import { describe, expect, test } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { storedState } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { registryState } from '../../src/sources/registry/staging.ts'
import { parseInstant } from '../../src/base/time.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { everyByte, metricsKey, registryKey, withRegistryRig } from '../helpers/registry-rig.ts'
import { sample } from '../helpers/tiers.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'

const start = parseInstant('2026-06-01T12:00Z') as number
const unusable: readonly (readonly [string, string])[] = [
  ['half a surrogate', 'e0.\ud83d'],
  ['the key itself', registryKey],
  ['the key inside', `x${registryKey}y`],
  ['the other key, written with escapes', metricsKey],
  ['the mark of a key that was taken out', 'e0.[key]'],
  ['so long that no address holds it', 'e'.repeat(50_000)],
]

/** A small registry whose cursors are replaced while `bad` is set. */
function liar(): { answer: (request: Request) => Promise<Response>; bad: string | null; small: SmallRegistry } {
  const small = new SmallRegistry()
  const world = {
    small,
    bad: null as string | null,
    answer: async (request: Request): Promise<Response> => {
      const response = small.answer(request)
      if (world.bad === null || response.status !== 200) return response
      const body = (await response.json()) as Record<string, unknown>
      for (const key of ['cursor', 'next_cursor']) if (typeof body[key] === 'string') body[key] = world.bad
      const escaped = [...metricsKey].map((sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
      return new Response(JSON.stringify(body).replaceAll(JSON.stringify(metricsKey).slice(1, -1), () => escaped))
    },
  }
  return world
}

async function cursorOf(root: string): Promise<string | null> {
  using ledger = await Ledger.openToRead(root)
  return registryState(ledger).cursor
}

describe('a cursor that cannot be sent back', () => {
  test('is a body that cannot be read: nothing is committed, and the next poll goes on', async () => {
    const world = liar()
    await withRegistryRig(
      start,
      async ({ root, snapshot, sync, clock }) => {
        for (const [name, bad] of unusable) {
          world.bad = bad
          expect(await snapshot(), name).toMatchObject({ stopped_by: 'undecodable', version: 0 })
        }
        world.bad = null
        await sync()
        for (const [name, bad] of unusable) {
          const before = await cursorOf(root)
          world.small.world.put('products', 'p1', { name: `before ${name}`, issuer_id: 'i1' })
          clock.now += 3600
          world.bad = bad
          expect(await sync(), name).toMatchObject({ stopped_by: 'undecodable', updated: 0 })
          expect(await cursorOf(root), name).toBe(before)
          world.bad = null
          expect(await sync(), name).toMatchObject({ stopped_by: null, updated: 1 })
          expect(everyByte(root), name).not.toContain(registryKey)
        }
      },
      { instead: async (request) => await world.answer(request) },
    )
  })

  test.each(sample(['sync', 'snapshot'] as const, 2))(
    'a rejected cursor that an older program committed (%s) begins a new epoch',
    async (job) => {
      const world = liar()
      const { world: records } = world.small
      await withRegistryRig(
        start,
        async (rig) => {
          await rig.sync()
          for (const [name, bad] of unusable) {
            const ledger = await Ledger.open(rig.root)
            const provider = ledger.head().provider ?? { synthetic: true }
            const state = { 'registry.cursor': bad }
            await commit(ledger, { job: 'registry sync', run: 'old', provider, state }, commitDeps())
            expect(storedState(ledger, 'registry.cursor')).toBe(bad.toWellFormed())
            ledger.close()
            records.put('products', 'p1', { name: `before ${name}`, issuer_id: 'i1' })
            rig.clock.now += 3600
            expect(await rig[job](), name).toMatchObject({ stopped_by: null, updated: 1 })
            records.put('products', 'p2', { name: `after ${name}`, issuer_id: 'i2' })
            expect(await rig.sync(), name).toMatchObject({ stopped_by: null, updated: 1, source: null })
          }
        },
        { instead: async (request) => await world.answer(request) },
      )
    },
  )
})
