import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'
import { loadCatalogue } from '../../catalog/load.ts'
import { usage } from '../../base/errors.ts'
import { describeFaults, type Fault, parseFault, readFault } from '../../sandbox/faults.ts'
import { defaultLimits, limitSyntax, parseLimit } from '../../sandbox/limits.ts'
import { sandboxNames, usualTier } from '../../sandbox/provider/provider.ts'
import { createSandbox, runningClock } from '../../sandbox/sandbox.ts'
import { serve } from '../../sandbox/server.ts'
import { formatInstant } from '../../base/time.ts'
import { kinds } from '../../base/option-kinds.ts'
import { type Deps, talking } from '../cli/spec.ts'
import { untilStopped } from '../cli/world.ts'

/** The keys that every sandbox accepts; they open nothing else. */
const apiKeys = { metricsKey: 'sandbox-metrics-key', registryKey: 'sandbox-registry-key' } as const

const scales = ['demo', 'full'] as const

/** Size of a sandbox's world; derived, so that `scales` is the one list of them. */
export type SandboxScale = (typeof scales)[number]

/** The synthetic world that a sandbox serves. */
export interface SandboxWorld {
  /** Seed of its random numbers. */
  readonly seed: number
  readonly scale: SandboxScale
}

/** Runs a sandbox while the work lasts; the work gets the environment with its addresses. */
export async function withSandbox<T>(world: SandboxWorld, deps: Deps, work: (env: Deps['env']) => Promise<T>) {
  const { sleep } = deps
  const now = runningClock(deps.now, null, 1)
  const sandbox = createSandbox({ ...world, ...apiKeys, catalogue: loadCatalogue(), now, sleep })
  await using served = await serve(sandbox, { port: 0, grace: () => sleep(500) })
  const named = Object.entries(addressesOf(served.url)).map(([name, text]) => [`PITLAKE_${name.toUpperCase()}`, text])
  return await work(Object.fromEntries(named) as Deps['env'])
}

/** Returns the addresses of both APIs, and their keys. */
function addressesOf(url: string) {
  const { metricsKey: metrics_key, registryKey: registry_key } = apiKeys
  return { metrics_url: url, metrics_key, registry_url: `${url}/registry/v1`, registry_key }
}

/** Shown on stderr, because no answer may carry it. */
const unmarkedNote =
  'note: answers look like those of a provider, so a lake that you fill from them is not marked as synthetic\n'

const port = kinds.number('a port, 0 to 65535', (n) => Number.isInteger(n) && n >= 0 && n <= 65_535)
const tiers = kinds.number('a tier, 1 to 3', (n) => Number.isInteger(n) && n >= 1 && n <= 3)
const speeds = kinds.number('a number, 0 or more', (n) => Number.isFinite(n) && n >= 0)

export const sandboxCommand = talking({
  options: {
    '--port N': ['port to listen on; 0 takes a free one', port, '0'],
    '--seed N': ['which world: the same seed gives the same data', kinds.count(0), '1'],
    '--now TIME': 'start its clock at this instant instead of the real one',
    '--speed X': ['run its clock X times as fast; 0 stops it', speeds, '1'],
    '--registry-scale SIZE': ['demo (about 400 products) or full (5,800)', kinds.choice(scales), 'demo'],
    '--names NAMES': [
      'placeholder, as in the API description, or real: answer as a provider does',
      kinds.choice(sandboxNames),
      'placeholder',
    ],
    '--tier N': ['with --names real: refuse paths above this tier of the plan with 403 (default: 2)', tiers],
    '--no-metadata': 'leave out of the metadata which assets and values each path accepts',
    '--fault SPEC': { about: 'a fault, see below', repeatable: true },
    '--faults FILE': 'a JSON or YAML list of faults',
    '--limit SPEC': { about: 'the limits of one API, see below', repeatable: true },
  },
  details: `When it listens, it prints one JSON line with addresses and keys. It ends on SIGINT or SIGTERM.

Limits, written ${limitSyntax}.
Example: --limit metrics=fixed:600/60s,headers=seconds --limit registry=daily=1000,snapshots=4
Limits count real seconds, whatever --speed says; a refused request is not counted.

${describeFaults()}
Example: --fault status-500@indicators/*:first=2 --fault rewrite:t=2024-03-01,v=101,from=2024-03-10`,
  run: async (call) => {
    const { options, now: real, sleep, stdout, stderr } = call
    const { port, speed, now: start = null, limit, fault, faults, registryScale: scale, tier, ...shown } = options
    const isReal = shown.names === 'real'
    if (tier !== undefined && !isReal)
      throw usage('--tier', { expected: '--names real alongside it', got: `--names ${shown.names}` })
    const now = runningClock(real, start, speed)
    const sandbox = createSandbox({
      ...shown,
      ...apiKeys,
      ...(tier === undefined ? {} : { tier }),
      catalogue: loadCatalogue(),
      now,
      pace: runningClock(real, start, 1),
      sleep,
      scale,
      limits: limit.reduce((onto, text) => parseLimit(text, onto), defaultLimits),
      faults: [...(faults === undefined ? [] : faultsOfFile(call, faults)), ...fault.map(parseFault)],
    })
    const served = await serve(sandbox, { port, grace: () => sleep(500) })
    const at = formatInstant(Math.floor(now()))
    const named = isReal ? { names: shown.names, tier: tier ?? usualTier } : {}
    const line = { ...addressesOf(served.url), seed: shown.seed, now: at, port: served.port, ...named }
    if (isReal) stderr(unmarkedNote)
    stdout(`${JSON.stringify(line)}\n`)
    await untilStopped(call)
    await served.close()
  },
})

function faultsOfFile({ cwd }: Deps, file: string): readonly Fault[] {
  let content: unknown
  try {
    content = parse(readFileSync(resolve(cwd, file), 'utf8'))
  } catch (cause) {
    const got = cause instanceof Error ? (cause.message.split('\n')[0] ?? cause.name) : String(cause)
    throw usage(file, { expected: 'a JSON or YAML list of faults', got, cause })
  }
  if (!Array.isArray(content)) throw usage(file, { expected: 'a list of faults', got: typeof content })
  return content.map(readFault)
}
