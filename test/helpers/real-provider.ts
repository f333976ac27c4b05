import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseFault } from '../../src/sandbox/faults.ts'
import { createSandbox, type RequestRecord, type Sandbox, type SandboxOptions } from '../../src/sandbox/sandbox.ts'
import { serve, type ServedSandbox } from '../../src/sandbox/server.ts'
import { type Ended, pitlake } from './command.ts'
import { inFolder } from './folders.ts'
import { leaping } from './leaping.ts'
import { catalogue } from './sandbox-client.ts'

/**
 * How to use it: a provider with real names on a port of this machine, an empty folder, and keys in the environment.
 *
 *     await withRealProvider({}, async ({ run, requests, placeholdersSent }) => {
 *       expect((await run('init')).code).toBe(0)
 *       expect(placeholdersSent()).toEqual([])
 *     })
 *
 * Facts of that provider, which `src/sandbox/provider/provider.json` lists:
 * - futures take `aggregated` (the default) and 14 exchanges such as `binance`, `gate.io`, `bitcoin.de`;
 * - options take `binance`, `bybit`, `deribit`, `okx`, by default `deribit`; `options/iv_call_delta_50_pit` has no
 *   default;
 * - `lendingprotocol` is `aave`, `usexchange` is `coinbase`; `paymentapp` fits both `cashapp` and `strike`;
 * - it has no `signals/btc_bss_goldilocks_short_pit`; tier 2 refuses `signals/…`, `breakdowns/…`,
 *   `indicators/cost_basis_…`;
 * - it differs from the catalogue in intervals of `indicators/asol_pit`, networks of `addresses/min_10k_count_pit`,
 *   currencies of `supply/burned_pit`, and lists point-in-time paths beyond the catalogue;
 * - the registry has products for tokenized stocks: `AAPLX` and `GOOGLX` by contract and by the symbol `AAPLx`, `SPYX`
 *   by contract alone, `TSLAX` and `MSTRX` by the symbol alone, `NVDAX` by the symbol of two products;
 * - contracts stand only in `/v1/metadata/assets`, symbols differ from ids (`AAPLX`: `AAPL.XS`), ids are odd (`$CWIF`,
 *   `00`).
 *
 * The clock stands at Wednesday 2026-03-04 12:00 UTC; `clock.now = …` moves it.
 */
export async function withRealProvider(
  { faults = [], options = {}, proxied = false }: RealProviderSetup,
  test: (provider: RealProvider) => Promise<void>,
): Promise<void> {
  const clock = { now: Date.UTC(2026, 2, 4, 12) / 1000 }
  const sandbox = createSandbox({
    catalogue,
    names: 'real',
    seed: 5,
    now: () => clock.now,
    sleep: (ms) => setTimeout(ms),
    scale: 'demo',
    metricsKey: realKeys.metrics,
    registryKey: realKeys.registry,
    faults: faults.map(parseFault),
    ...options,
  })
  await using origin = await serve(sandbox, { port: 0 })
  await using served = await serve(proxied ? proxyOf(origin, sandbox) : sandbox, { port: 0 })
  const env = {
    PITLAKE_METRICS_URL: served.url,
    PITLAKE_METRICS_KEY: realKeys.metrics,
    PITLAKE_REGISTRY_URL: `${served.url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: realKeys.registry,
  }
  await inFolder(async (cwd) => {
    await test({
      cwd,
      url: served.url,
      env,
      clock,
      requests: sandbox.requests,
      placeholdersSent: () => sandbox.requests().map(addressOf).filter(isPlaceholder),
      run: async (...argv) => {
        const world = leaping(() => clock.now)
        return await pitlake(cwd, argv, env, world)
      },
      config: (text) => writeFileSync(join(cwd, 'pitlake.yaml'), text),
    })
  })
}

/** Keys that this provider accepts. */
export const realKeys = { metrics: 'real-metrics-key', registry: 'real-registry-key' }

/** What may differ about the provider: faults as on the command line, and options of the sandbox such as `tier: 3`. */
interface RealProviderSetup {
  readonly faults?: readonly string[]
  readonly options?: Partial<SandboxOptions>
  /** Puts a proxy on this machine in front of the provider (default false). */
  readonly proxied?: boolean
}

/** A provider with real names and a folder that knows its address and keys. */
interface RealProvider {
  /** An empty folder, removed after the test. */
  readonly cwd: string
  /** Base address of the metrics API, before its prefix; the registry is at `/registry/v1` below it. */
  readonly url: string
  /** The four variables that `run` sets. */
  readonly env: Readonly<Record<string, string>>
  /** The clock of both sides, Unix seconds. */
  readonly clock: { now: number }
  /** Every request so far, oldest first. */
  readonly requests: () => readonly RequestRecord[]
  /** Path and query of each request in which a placeholder of the catalogue stands. */
  readonly placeholdersSent: () => readonly string[]
  /** Runs a command in the folder. */
  readonly run: (...argv: string[]) => Promise<Ended>
  /** Writes `pitlake.yaml` into the folder. */
  readonly config: (text: string) => void
}

/** A proxy that passes on what it is asked, and every header but those of the connection. */
function proxyOf(origin: ServedSandbox, sandbox: Sandbox): Sandbox {
  return {
    ...sandbox,
    handle: async (request) => {
      const { pathname, search } = new URL(request.url)
      const headers = new Headers(request.headers)
      headers.set('accept-encoding', 'identity')
      for (const name of ['host', 'connection']) headers.delete(name)
      const answer = await fetch(`${origin.url}${pathname}${search}`, { headers })
      const passed = new Response(answer.body, answer)
      for (const name of ['connection', 'keep-alive', 'transfer-encoding']) passed.headers.delete(name)
      return passed
    },
  }
}

function addressOf({ path, query }: RequestRecord): string {
  return `${path}?${new URLSearchParams(query).toString()}`
}

const words = new Set([...catalogue.endpoints.values()].flatMap(({ placeholders }) => placeholders))

function isPlaceholder(address: string): boolean {
  return /\b(?:options_)?exchange_\d+\b/.test(address) || [...words].some((word) => address.includes(word))
}
