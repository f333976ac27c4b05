import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Disk } from '../../src/lake/store/disk.ts'
import { contentOf, registryKey, standing, withRegistryRig } from '../helpers/registry-rig.ts'
import { rounds } from '../helpers/tiers.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { stepping } from '../helpers/stepping.ts'
import { temporaryFolder } from '../helpers/folders.ts'

const now = Date.UTC(2026, 5, 1, 12) / 1000
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** A step of a record's history, as `contentOf` gives it. */
interface HistoryRow {
  readonly id: string
  readonly record: { readonly name?: string } | null
}

/** A disk that gives up at its n-th step. */
function failingAt(n: number): { disk: Disk; reached: () => boolean } {
  let taken = 0
  const disk = stepping((step) => {
    taken = step
    if (step >= n) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  })
  return { disk, reached: () => taken >= n }
}

test('a disk that fails at any step: the same command again gives what an undisturbed run gives', async () => {
  const small = new SmallRegistry()
  await withRegistryRig(
    now,
    async (rig) => {
      using otherFolder = temporaryFolder('undisturbed')
      const other = otherFolder.path
      await rig.sync({ root: other })
      let failures = 0
      for (let n = 1; n < 200; n += 1 + Math.floor(n / 2)) {
        const { disk, reached } = failingAt(n)
        const failed = await rig.sync({ deps: { disk } }).then(
          () => false,
          () => true,
        )
        if (failed) failures++
        if (!reached()) break
      }
      expect(failures).toBeGreaterThan(3)
      await rig.sync()
      expect(await contentOf(rig.root)).toEqual(await contentOf(other))
      small.world.put('products', 'p1', null)
      small.world.put('issuers', 'i1', { name: 'new' })
      await rig.sync({ root: other })
      await rig.sync()
      expect(await contentOf(rig.root)).toEqual(await contentOf(other))
    },
    { instead: small.answer },
  )
})

test('kills at random instants, then completion: the content is that of an undisturbed run', async () => {
  const small = new SmallRegistry()
  let onRequest: () => void = () => undefined
  const instead = (request: Request): Response => {
    onRequest()
    return small.answer(request)
  }
  // The process that dies has the clock of this machine.
  await withRegistryRig(
    Math.floor(Date.now() / 1000),
    async (rig) => {
      const env = { ...process.env, PITLAKE_REGISTRY_URL: rig.url, PITLAKE_REGISTRY_KEY: registryKey }
      let killed = 0
      const last = rounds('PITLAKE_KILLS', 2, 4)
      for (let n = 0; n < last; n++) {
        // Something new each time, so that there is always work to be killed in.
        small.world.put('issuers', 'i1', { name: `Issuer of round ${n}` })
        const child = spawn(process.execPath, [main, 'registry', 'sync', '--data', rig.root], { env, stdio: 'ignore' })
        // Every other time at a request, the first time at the first; else at any instant behind it.
        let left = n % 2 === 0 ? 1 + Math.floor(Math.random() * Math.min(n + 1, 3)) : 1
        onRequest = () => {
          if (--left === 0) setTimeout(() => child.kill('SIGKILL'), n % 2 === 0 ? 0 : Math.random() * 200)
        }
        const [, signal] = (await once(child, 'close')) as [number | null, string | null]
        if (signal === 'SIGKILL') killed++
      }
      onRequest = () => undefined
      expect(killed).toBeGreaterThan(0)
      await rig.sync()
      const { version } = await standing(rig.root)
      expect(version).toBeGreaterThan(0)
      const content = await contentOf(rig.root)
      const rowsOf = (table: string) => (content[table] ?? []).map((row) => JSON.parse(row) as HistoryRow)
      const idsOf = (table: string) => new Set(rowsOf(table).map(({ id }) => id))
      expect([idsOf('issuers').size, content['deployments']?.length]).toEqual([30, 40])
      // A run that died behind its commit has left a step of its own; no name comes twice, and the newest is the last.
      const names = rowsOf('issuers').flatMap(({ id, record }) => (id === 'i1' ? [record?.name] : []))
      expect([names.at(-1), new Set(names).size]).toEqual([`Issuer of round ${last - 1}`, names.length])
      await rig.sync()
      expect((await standing(rig.root)).version).toBe(version)
    },
    { instead },
  )
})
