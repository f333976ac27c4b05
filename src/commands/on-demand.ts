import { existsSync } from 'node:fs'
import { loadCatalogue } from '../catalog/load.ts'
import { LakeError } from '../errors.ts'
import { inLake, places } from '../lake/layout.ts'
import { Ledger } from '../lake/ledger.ts'
import { runningClock } from '../sandbox/clock.ts'
import { createSandbox } from '../sandbox/sandbox.ts'
import { serve } from '../sandbox/server.ts'
import { resolveSettings } from '../settings.ts'
import { sandboxKeys } from './sandbox.ts'
import { type Deps, type Input, textOption } from './spec.ts'

/** Whatever of these is set, the user has a provider in mind. */
const providerVariables = ['METRICS', 'REGISTRY'].flatMap((api) =>
  ['URL', 'KEY', 'KEY_FILE'].map((part) => `PITLAKE_${api}_${part}`),
)

/**
 * Runs work that asks a provider. Where none is named in the environment or the configuration and the lake is known to
 * hold a sandbox's data, that sandbox answers while the work lasts: never for a folder without a lake.
 */
export async function withProvider<T>(input: Input, deps: Deps, work: (deps: Deps) => Promise<T>): Promise<T> {
  const seed = await seedFor(input, deps)
  if (seed === undefined) return work(deps)
  const served = await serve(
    createSandbox({
      catalogue: loadCatalogue(),
      seed,
      now: runningClock(deps.now, null, 1),
      sleep: deps.sleep,
      scale: 'demo',
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
  try {
    return await work({ ...deps, env })
  } finally {
    await served.close()
  }
}

/** The seed that the ledger has on record; undefined where a provider is named or the lake is not a sandbox's. */
async function seedFor(input: Input, deps: Deps): Promise<number | undefined> {
  if (providerVariables.some((name) => (deps.env[name] ?? '').trim() !== '')) return undefined
  const flags = { config: textOption(input, 'config'), data: textOption(input, 'data') }
  const { data, metrics, registry } = resolveSettings({ flags, env: deps.env, cwd: deps.cwd })
  if (metrics.url !== null || registry.url !== null || !existsSync(inLake(data, places.journal))) return undefined
  const provider = await providerOf(data)
  if (provider?.synthetic !== true) return undefined
  const seeds = new Set([provider.metrics, provider.registry].filter((name) => name !== undefined))
  const [seed] = [...seeds].map((name) => /^sandbox:(\d+)$/.exec(name)?.[1])
  return seeds.size === 1 && seed !== undefined ? Number(seed) : undefined
}

/** A lake that cannot be read says so to the command itself. */
async function providerOf(data: string) {
  try {
    const ledger = await Ledger.openToRead(data)
    try {
      return ledger.head().provider
    } finally {
      ledger.close()
    }
  } catch (error) {
    if (error instanceof LakeError) return null
    throw error
  }
}
