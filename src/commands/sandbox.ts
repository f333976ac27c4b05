import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'
import { loadCatalogue } from '../catalog/load.ts'
import { usage } from '../errors.ts'
import { describeFaults, type Fault, parseFault, readFault } from '../sandbox/faults.ts'
import { defaultLimits, limitSyntax, parseLimit } from '../sandbox/limits.ts'
import { createSandbox, runningClock } from '../sandbox/sandbox.ts'
import { serve } from '../sandbox/server.ts'
import { formatInstant } from '../time.ts'
import { kinds } from '../kinds.ts'
import { type Deps, talking } from './spec.ts'
import { untilStopped } from './world.ts'

/** The keys that every sandbox accepts; they open nothing else. */
const sandboxKeys = { metrics: 'sandbox-metrics-key', registry: 'sandbox-registry-key' } as const

const scales = ['demo', 'full'] as const

/** Which of its worlds a sandbox shows. */
export interface SandboxWorld {
  readonly seed: number
  readonly scale: (typeof scales)[number]
}

/** Has a sandbox answer while the work lasts, which is told how to reach it. */
export async function withSandbox<T>(
  { seed, scale }: SandboxWorld,
  deps: Deps,
  work: (env: Deps['env']) => Promise<T>,
): Promise<T> {
  const now = runningClock(deps.now, null, 1)
  const { metrics: metricsKey, registry: registryKey } = sandboxKeys
  const world = { catalogue: loadCatalogue(), seed, now, sleep: deps.sleep, scale, metricsKey, registryKey }
  await using served = await serve(createSandbox(world), { port: 0, grace: () => deps.sleep(500) })
  return await work({
    PITLAKE_METRICS_URL: served.url,
    PITLAKE_METRICS_KEY: metricsKey,
    PITLAKE_REGISTRY_URL: `${served.url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: registryKey,
  })
}

/** `sandbox`: serves the local provider until it is told to stop. */
export const sandboxCommand = talking({
  name: 'sandbox',
  ends: [],
  options: {
    '--port N': {
      kind: kinds.number('a port, 0 to 65535', (n) => Number.isInteger(n) && n >= 0 && n <= 65_535),
      about: 'port to listen on; 0 takes a free one',
      default: '0',
    },
    '--seed N': {
      kind: kinds.number('a whole number', (n) => Number.isSafeInteger(n) && n >= 0),
      about: 'which world: the same seed gives the same data',
      default: '1',
    },
    '--now TIME': { kind: kinds.instant, about: 'start its clock at this instant instead of the real one' },
    '--speed X': {
      kind: kinds.number('a number, 0 or more', (n) => Number.isFinite(n) && n >= 0),
      about: 'run its clock X times as fast; 0 stops it',
      default: '1',
    },
    '--registry-scale SIZE': {
      kind: kinds.choice(scales),
      about: 'demo (about 400 products) or full (5,800)',
      default: 'demo',
    },
    '--no-metadata': 'do not tell which assets and values each path takes',
    '--fault SPEC': { about: 'a fault, see below', repeatable: true },
    '--faults FILE': 'a JSON or YAML list of faults',
    '--limit SPEC': { about: 'the limits of one API, see below', repeatable: true },
  },
  details: [
    'Prints one JSON line with addresses and keys once it listens; ends on SIGINT or SIGTERM.',
    '',
    `Limits, written ${limitSyntax}.`,
    'Example: --limit metrics=fixed:600/60s,headers=seconds --limit registry=daily=1000,snapshots=4',
    'Limits count real seconds, whatever --speed says; a refused request is not counted.',
    '',
    describeFaults(),
    'Example: --fault status-500@indicators/*:first=2 --fault rewrite:t=2024-03-01,v=101,from=2024-03-10',
  ].join('\n'),
  run: async (input, deps) => {
    const { port, seed, speed, registryScale: scale, now: start = null } = input.options
    const { metadata, limit, fault, faults } = input.options
    const now = runningClock(deps.now, start, speed)
    const sandbox = createSandbox({
      catalogue: loadCatalogue(),
      seed,
      now,
      pace: runningClock(deps.now, start, 1),
      sleep: deps.sleep,
      scale,
      metadata,
      limits: limit.reduce((onto, text) => parseLimit(text, onto), defaultLimits),
      faults: [...(faults === undefined ? [] : faultsOfFile(faults, deps)), ...fault.map(parseFault)],
      metricsKey: sandboxKeys.metrics,
      registryKey: sandboxKeys.registry,
    })
    const served = await serve(sandbox, { port, grace: () => deps.sleep(500) })
    const line = {
      metrics_url: served.url,
      metrics_key: sandboxKeys.metrics,
      registry_url: `${served.url}/registry/v1`,
      registry_key: sandboxKeys.registry,
      seed,
      now: formatInstant(Math.floor(now())),
      port: served.port,
    }
    deps.stdout(`${JSON.stringify(line)}\n`)
    await untilStopped(deps)
    await served.close()
  },
})

function faultsOfFile(file: string, deps: Deps): readonly Fault[] {
  let content: unknown
  try {
    content = parse(readFileSync(resolve(deps.cwd, file), 'utf8'))
  } catch (cause) {
    const got = cause instanceof Error ? (cause.message.split('\n')[0] ?? cause.name) : String(cause)
    throw usage(file, { expected: 'a JSON or YAML list of faults', got, cause })
  }
  if (!Array.isArray(content)) throw usage(file, { expected: 'a list of faults', got: typeof content })
  return content.map(readFault)
}
