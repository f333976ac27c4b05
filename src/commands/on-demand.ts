import { loadCatalogue } from '../catalog/load.ts'
import { LakeError } from '../errors.ts'
import { isBegun } from '../store/begin.ts'
import { Ledger } from '../ledger/ledger.ts'
import { settingsOf } from './context.ts'
import type { SandboxWorld } from './sandbox.ts'
import type { Deps, Typed } from './spec.ts'

/** Whatever of these is set, the user has a provider in mind. */
const providerVariables = ['METRICS', 'REGISTRY'].flatMap((api) =>
  ['URL', 'KEY', 'KEY_FILE'].map((part) => `PITLAKE_${api}_${part}`),
)

/**
 * Runs work that asks a provider. Where none is named in the environment or the configuration and the lake is known to
 * hold a sandbox's data, that sandbox answers while the work lasts: never for a folder without a lake.
 */
export async function withProvider<T>(call: Typed, work: (call: Typed) => Promise<T>): Promise<T> {
  const world = await worldFor(call)
  if (world === undefined) return work(call)
  // A run that asks a provider pays for no sandbox.
  const { withSandbox } = await import('./sandbox.ts')
  return await withSandbox(world, call, async (env) => {
    call.stderr(`note: no provider is set and this lake is synthetic: a sandbox with its seed ${world.seed} answers\n`)
    return await work({ ...call, env: { ...call.env, ...env } })
  })
}

/** The world that the ledger has on record; undefined where a provider is named or the lake is not a sandbox's. */
async function worldFor(call: Typed): Promise<SandboxWorld | undefined> {
  if (providerVariables.some((name) => (call.env[name] ?? '').trim() !== '')) return undefined
  const { data, metrics, registry } = settingsOf(call)
  if (metrics.url !== null || registry.url !== null || !isBegun(data)) return undefined
  return readWorld(data, call)
}

/** A lake that cannot be read says so to the command itself. */
async function readWorld(data: string, deps: Deps): Promise<SandboxWorld | undefined> {
  try {
    using ledger = await Ledger.openToRead(data)
    const { provider } = ledger.head()
    if (provider?.synthetic !== true) return undefined
    const names = [provider.metrics, provider.registry].filter((name) => name !== undefined)
    const seed = /^sandbox:(\d+)$/.exec(names[0] ?? '')?.[1]
    if (seed === undefined || new Set(names).size > 1) return undefined
    return { seed: Number(seed), scale: await scaleOf(ledger, deps) }
  } catch (error) {
    if (error instanceof LakeError) return undefined
    throw error
  }
}

/** Nobody wrote down how large the registry was that filled the lake, but the two sizes are far apart. */
async function scaleOf(ledger: Ledger, deps: Deps): Promise<SandboxWorld['scale']> {
  if (ledger.head().provider?.registry === undefined) return 'demo'
  const { registryStatus } = await import('../registry/status.ts')
  const { records } = await registryStatus(ledger, loadCatalogue(), deps.now(), null)
  return (records['products'] ?? 0) > 2000 ? 'full' : 'demo'
}
