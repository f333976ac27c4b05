import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseFault } from '../../src/sandbox/faults.ts'
import { defaultLimits, parseLimit } from '../../src/sandbox/limits.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { serve } from '../../src/sandbox/server.ts'
import { type Ended, pitlake } from './command.ts'
import { inFolder } from './folders.ts'
import { speaking } from './dialect.ts'
import { leaping } from './leaping.ts'
import { catalogue } from './sandbox-client.ts'

/** The keys that are sent to the providers of these tests. */
export const providerKeys = { metrics: 'preflight-metrics-key', registry: 'preflight-registry-key' }

/** One row of the answer, as a script reads it. */
interface Row {
  readonly api: string
  readonly assumption: string
  readonly verdict: string
  readonly evidence: string
  readonly yaml: string | null
}

/** What `doctor --provider --json` said. */
export interface Said extends Ended {
  readonly requests: number
  readonly rows: readonly Row[]
  readonly yaml: string | null
  /** `verdict: evidence` of an assumption. */
  readonly row: (assumption: string) => string
  /** Every assumption that is contradicted. */
  readonly against: readonly string[]
}

/** A folder, a clock, and a sandbox that speaks otherwise. */
export interface Foreign {
  readonly cwd: string
  /** Where it listens, before the prefix of the metrics API. */
  readonly url: string
  readonly clock: { now: number }
  readonly requests: () => ReturnType<Sandbox['requests']>
  readonly run: (...argv: string[]) => Promise<Ended>
  readonly ask: () => Promise<Said>
  readonly config: (text: string) => void
}

/** What makes a sandbox another one: dialects, faults and limits as on the command line, and options. */
export interface Otherwise {
  readonly dialect?: readonly string[]
  readonly faults?: readonly string[]
  readonly limits?: readonly string[]
  readonly options?: Partial<Parameters<typeof createSandbox>[0]>
}

/** Wednesday noon. */
export const wednesday = Date.UTC(2026, 2, 4, 12) / 1000

/** Runs the test beside a sandbox on a port. */
export async function withForeign(
  { dialect = [], faults = [], limits = [], options = {} }: Otherwise,
  test: (foreign: Foreign) => Promise<void>,
): Promise<void> {
  const clock = { now: wednesday }
  const sandbox = createSandbox({
    catalogue,
    seed: 5,
    now: () => clock.now,
    sleep: (ms) => setTimeout(ms),
    scale: 'demo',
    metricsKey: providerKeys.metrics,
    registryKey: providerKeys.registry,
    faults: faults.map(parseFault),
    limits: limits.reduce((onto, text) => parseLimit(text, onto), defaultLimits),
    ...options,
  })
  await using served = await serve(speaking(sandbox, catalogue, dialect), { port: 0 })
  const env = {
    PITLAKE_METRICS_URL: served.url,
    PITLAKE_METRICS_KEY: providerKeys.metrics,
    PITLAKE_REGISTRY_URL: `${served.url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: providerKeys.registry,
  }
  await inFolder(async (cwd) => {
    const run = async (...argv: string[]): Promise<Ended> =>
      await pitlake(
        cwd,
        argv,
        env,
        leaping(() => clock.now),
      )
    await test({
      cwd,
      url: served.url,
      clock,
      requests: sandbox.requests,
      run,
      ask: async () => said(await run('doctor', '--provider', '--json')),
      config: (text) => writeFileSync(join(cwd, 'pitlake.yaml'), text),
    })
  })
}

/** Reads what `doctor --provider --json` printed. */
export function said(ended: Ended): Said {
  const { requests, rows, yaml } = JSON.parse(ended.out) as Pick<Said, 'requests' | 'rows' | 'yaml'>
  const row = (assumption: string): string =>
    rows
      .filter((one) => one.assumption === assumption)
      .map(({ verdict, evidence }) => `${verdict}: ${evidence}`)
      .join('\n')
  const against = rows.filter(({ verdict }) => verdict === 'contradicted').map(({ assumption }) => assumption)
  return { ...ended, requests, rows, yaml, row, against }
}
