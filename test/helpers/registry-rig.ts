import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { RegistryDeps, RegistrySummary } from '../../src/sources/registry/run.ts'
import { registrySnapshot, registrySync } from '../../src/sources/registry/snapshot-and-sync.ts'
import { type RegistryVerified, verifyRegistry } from '../../src/sources/registry/verify.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { recordTables, relation } from '../../src/sources/registry/columns.ts'
import { tableFiles } from '../../src/sources/registry/status.ts'
import { parseFault } from '../../src/sandbox/faults.ts'
import { type admitRequest, defaultLimits } from '../../src/sandbox/limits.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { serve } from '../../src/sandbox/server.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { filesIn } from './key-search.ts'
import { askingBy, leaping } from './leaping.ts'
import { catalogue } from './sandbox-client.ts'
import { makeFolder } from './folders.ts'

/** No written byte may hold it. */
export const registryKey = 'a-registry-key-that-stays-secret'
/** The same process's key for the metrics API. */
export const metricsKey = 'A/metrics+key~that%stays"secret'

/** What a run of a registry job may be given. */
export interface Extra {
  readonly acceptShrink?: boolean
  readonly maxRequests?: number
  readonly deps?: Partial<RegistryDeps>
  readonly key?: string
  readonly root?: string
}

/** A provider on a port, a lake beside it, and one clock for both (Unix seconds). */
export interface RegistryRig {
  readonly sandbox: Sandbox
  readonly root: string
  readonly url: string
  readonly clock: { now: number }
  faults(...texts: readonly string[]): void
  snapshot(extra?: Extra): Promise<RegistrySummary>
  sync(extra?: Extra): Promise<RegistrySummary>
  verify(
    scope?: Partial<Pick<Parameters<typeof verifyRegistry>[0], 'names' | 'budget'>>,
    extra?: Extra,
  ): Promise<RegistryVerified>
  /** The provider's paths that were asked since the last call. */
  asked(): string[]
}

/** Changes to the provider of a rig. */
export interface Provider {
  readonly registry?: Partial<Parameters<typeof admitRequest>[0]>
  /** Answers instead of the sandbox where it gives something. */
  readonly instead?: (request: Request) => Response | undefined | Promise<Response>
}

/** Runs the test against a provider on a port and takes everything down again. */
export async function withRegistryRig(now: number, test: (rig: RegistryRig) => Promise<void>, provider: Provider = {}) {
  const root = makeFolder('registry')
  const clock = { now }
  const limits: typeof defaultLimits = {
    ...defaultLimits,
    registry: { ...defaultLimits.registry, ...provider.registry },
  }
  const sandbox = createSandbox({
    catalogue,
    seed: 5,
    now: () => clock.now,
    sleep: async (ms) => await setTimeout(Math.min(ms, 50)),
    scale: 'demo',
    limits,
    metricsKey,
    registryKey,
  })
  const handle = async (request: Request): Promise<Response> => {
    const answer = await provider.instead?.(request)
    if (answer === undefined) return await sandbox.handle(request)
    if (!answer.headers.has('date')) answer.headers.set('date', new Date(clock.now * 1000).toUTCString())
    return answer
  }
  const served = await serve({ ...sandbox, handle }, { port: 0 })
  const url = `${served.url}/registry/v1`
  let seen = 0
  try {
    await test({
      sandbox,
      root,
      url,
      clock,
      faults: (...texts) => sandbox.setFaults(texts.map(parseFault)),
      snapshot: async (extra = {}) => await registrySnapshot(...jobOf(extra.root ?? root, url, clock, extra)),
      sync: async (extra = {}) => await registrySync(...jobOf(extra.root ?? root, url, clock, extra)),
      verify: async (scope = {}, extra = {}) => {
        const [input, deps] = jobOf(extra.root ?? root, url, clock, extra)
        return await verifyRegistry({ ...input, names: null, budget: 60, spreadDays: null, ...scope }, deps)
      },
      asked: () => {
        const all = sandbox.requests()
        const paths = all.slice(seen).map(({ path, status }) => `${path.replace('/registry/v1', '')} ${status}`)
        seen = all.length
        return paths
      },
    })
  } finally {
    await served.close()
    rmSync(root, { recursive: true, force: true })
  }
}

function jobOf(root: string, url: string, clock: { now: number }, extra: Extra): Parameters<typeof registrySnapshot> {
  const keys = { PITLAKE_REGISTRY_KEY: extra.key ?? registryKey, PITLAKE_METRICS_KEY: metricsKey }
  const env = { PITLAKE_REGISTRY_URL: url, ...keys, PITLAKE_DATA: root }
  const settings = resolveSettings({ flags: {}, env, cwd: root })
  const input = {
    settings,
    catalogue,
    acceptShrink: extra.acceptShrink ?? false,
    maxRequests: extra.maxRequests ?? null,
    providerMoved: false,
  }
  return [
    input,
    {
      ...askingBy(
        leaping(() => clock.now),
        'pitlake registry',
      ),
      ...extra.deps,
    },
  ]
}

/** What a lake holds of the registry, without instants: the steps of each id in their order, and the rest. */
export async function contentOf(root: string): Promise<Record<string, string[]>> {
  using ledger = await Ledger.openToRead(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  const content: Record<string, string[]> = {}
  for (const table of recordTables(catalogue.resources).keys()) {
    const rows = await engine.rows(
      `SELECT * EXCLUDE ("at", as_of, as_of_at, superseded_at) FROM ${relation(`history.${table}`, tableFiles(ledger, `history.${table}`))} ORDER BY id, "at"`,
    )
    content[table] = rows.map((row) => JSON.stringify(sorted(row)))
  }
  const keys = await engine.rows(
    `SELECT resource, path, initial FROM ${relation('schema_changes', tableFiles(ledger, 'schema_changes'))}`,
  )
  content['schema_changes'] = keys.map((row) => JSON.stringify(row)).toSorted()
  return content
}

/** Layouts may order keys differently: records are compared as values. */
function sorted(row: Readonly<Record<string, unknown>>): unknown {
  const { record, hash: _hash, source: _source, ...rest } = row
  return { ...rest, record: typeof record === 'string' ? ordered(JSON.parse(record)) : null }
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, held]) => [key, ordered(held)]),
  )
}

/** The version of a lake and its live data files. */
export async function standing(root: string): Promise<{ version: number; files: number }> {
  using ledger = await Ledger.openToRead(root)
  return { version: ledger.head().version, files: liveFiles(ledger).length }
}

/** Everything below a folder as Latin-1 text, for finding what must not be there. */
export function everyByte(root: string): string {
  return filesIn(root)
    .map((path) => readFileSync(join(root, path), 'latin1'))
    .join('\n')
}
