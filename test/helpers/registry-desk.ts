import { expect } from 'vitest'
import { type Ended, pitlake } from './command.ts'
import { registryKey, withRegistryRig } from './registry-rig.ts'
import { SmallRegistry } from './small-registry.ts'

/** A small provider, a folder for a lake, and the command line in it, by one clock (Unix seconds). */
export interface RegistryDesk {
  readonly small: SmallRegistry
  readonly root: string
  readonly clock: { now: number }
  readonly env: Readonly<Record<string, string | undefined>>
  run(argv: readonly string[], changes?: RegistryDesk['env']): Promise<Ended>
}

/** Runs the work on the first of June. */
export async function withRegistryDesk(work: (desk: RegistryDesk) => Promise<void>): Promise<void> {
  const small = new SmallRegistry()
  await withRegistryRig(
    Date.UTC(2026, 5, 1, 12) / 1000,
    async ({ root, url, clock }) => {
      const env = { PITLAKE_REGISTRY_URL: url, PITLAKE_REGISTRY_KEY: registryKey, PITLAKE_DATA: root }
      const run: RegistryDesk['run'] = async (argv, changes = {}) => {
        const ended = await pitlake(root, argv, { ...env, ...changes }, { now: () => clock.now * 1000 })
        expect(ended.out + ended.notes + ended.message).not.toContain(registryKey)
        return ended
      }
      await work({ small, root, clock, env, run })
    },
    { instead: small.answer },
  )
}
