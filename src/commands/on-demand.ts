import { existsSync } from 'node:fs'
import { loadCatalogue } from '../catalog/load.ts'
import { LakeError } from '../errors.ts'
import { registryStatus } from '../registry/status.ts'
import { inLake, places } from '../store/layout.ts'
import { Ledger } from '../ledger/ledger.ts'
import { runningClock } from '../sandbox/clock.ts'
import { createSandbox } from '../sandbox/sandbox.ts'
import { serve } from '../sandbox/server.ts'
import { readSettings } from './context.ts'
import { sandboxKeys } from './sandbox.ts'
import type { Deps, Input } from './spec.ts'

/** Whatever of these is set, the user has a provider in mind. */
const providerVariables = ['METRICS', 'REGISTRY'].flatMap((api) =>
  ['URL', 'KEY', 'KEY_FILE'].map((part) => `PITLAKE_${api}_${part}`),
)

interface World {
  readonly seed: number
  readonly scale: 'demo' | 'full'
}

/**
 * Runs work that asks a provider. Where none is named in the environment or the configuration and the lake is known to
 * hold a sandbox's data, that sandbox answers while the work lasts: never for a folder without a lake.
 */
export async function withProvider<T>(input: Input, deps: Deps, work: (deps: Deps) => Promise<T>): Promise<T> {
  const world = await worldFor(input, deps)
  if (world === undefined) return work(deps)
  const { seed, scale } = world
  await using served = await serve(
    createSandbox({
      catalogue: loadCatalogue(),
      seed,
      now: runningClock(deps.now, null, 1),
      sleep: deps.sleep,
      scale,
      metricsKey: sandboxKeys.metrics,
      registryKey: sandboxKeys.registry,
    }),
    { port: 0, grace: () => deps.sleep(500) },
  )
  deps.stderr(`note: no provider is set and this lake is synthetic: a sandbox with its seed ${seed} answers\n`)
  const env = {
    ...deps.env,
    PITLAKE_METRICS_URL: served.url,
    PITLAKE_METRICS_KEY: sandboxKeys.metrics,
    PITLAKE_REGISTRY_URL: `${served.url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: sandboxKeys.registry,
  }
  return await work({ ...deps, env })
}

/** The world that the ledger has on record; undefined where a provider is named or the lake is not a sandbox's. */
async function worldFor(input: Input, deps: Deps): Promise<World | undefined> {
  if (providerVariables.some((name) => (deps.env[name] ?? '').trim() !== '')) return undefined
  const { data, metrics, registry } = readSettings(input, deps)
  if (metrics.url !== null || registry.url !== null || !existsSync(inLake(data, places.journal))) return undefined
  return readWorld(data, deps)
}

/** A lake that cannot be read says so to the command itself. */
async function readWorld(data: string, deps: Deps): Promise<World | undefined> {
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
async function scaleOf(ledger: Ledger, deps: Deps): Promise<World['scale']> {
  if (ledger.head().provider?.registry === undefined) return 'demo'
  const { records } = await registryStatus(ledger, loadCatalogue(), deps.now(), null)
  return (records['products'] ?? 0) > 2000 ? 'full' : 'demo'
}
