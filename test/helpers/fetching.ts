import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import type { Selection } from '../../src/catalog/series.ts'
import { fetchSeries } from '../../src/sources/metrics/fetch.ts'
import type { IngestSummary } from '../../src/sources/metrics/run-summary.ts'
import type { IngestDeps } from '../../src/sources/metrics/run.ts'
import { loadCoverage } from '../../src/lake/ledger/index-queries.ts'
import { createSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { parseFault } from '../../src/sandbox/faults.ts'
import { worldPoints } from '../../src/sandbox/world/points.ts'
import { resolveSettings, type Settings } from '../../src/catalog/settings.ts'
import type { Interval } from '../../src/base/time.ts'
import { askingBy, leaping } from './leaping.ts'
import { mounts } from './mounts.ts'
import { catalogue } from './sandbox-client.ts'
import { meant } from './series-twin.ts'
import { computedByFormat } from './stored-twin.ts'
import { heldPoints, reading } from './ledgers.ts'
import { makeFolder } from './folders.ts'

/** What may differ from the usual fetch. */
export interface Changes {
  readonly input?: Partial<Omit<Parameters<typeof fetchSeries>[0], 'settings'>>
  readonly deps?: Partial<IngestDeps>
  readonly metrics?: Partial<Settings['metrics']>
  readonly data?: string
}

/** A sandbox on a port and a lake in a folder of its own. */
export interface Rig {
  readonly sandbox: Sandbox
  readonly root: string
  readonly url: string
  /** The clock of both, Unix seconds. */
  readonly clock: { now: number }
  /** Orders faults by their text form. */
  faults(...texts: readonly string[]): void
  /** What is done, and waited for, before each request is answered. */
  onRequest(hook: (request: Request) => unknown): void
  fetch(selection: Selection, changes?: number | Changes): Promise<IngestSummary>
  /** Every stored point as `series t value computed_at`, sorted. */
  stored(): Promise<string[]>
  /** Series and reason of every window that is failed now. */
  failures(): Promise<string[]>
  /** What the sandbox would show now of the selection, in the same form. */
  truth(selection: Selection): string[]
}

/** The key of every sandbox here; no written byte may hold it. */
export const fetchKey = 'a-key-that-must-not-be-written'
/** The same process's key for the registry. */
export const otherKey = 'Other/key+that~must"not.be_written'

/** What a command finds of both APIs of a sandbox in its environment. */
export const apisAt = (url: string): Readonly<Record<string, string>> => ({
  PITLAKE_METRICS_URL: url,
  PITLAKE_METRICS_KEY: fetchKey,
  PITLAKE_REGISTRY_URL: `${url}/registry/v1`,
  PITLAKE_REGISTRY_KEY: otherKey,
})

/** Runs the test and takes everything down again. */
export async function withRig(now: number, test: (rig: Rig) => Promise<void>): Promise<void> {
  const root = makeFolder('fetch')
  const clock = { now }
  const sandbox = createSandbox({
    catalogue,
    seed: 7,
    now: () => clock.now,
    sleep: async (ms) => await setTimeout(Math.min(ms, 500)),
    scale: 'demo',
    metricsKey: fetchKey,
    registryKey: otherKey,
  })
  let hook: (request: Request) => unknown = () => undefined
  const handle = async (request: Request): Promise<Response> => {
    await hook(request)
    return await sandbox.handle(request)
  }
  const port = mounts.find((mount) => mount.name === 'port')
  const mounted = await port?.start({ ...sandbox, handle })
  if (!mounted) throw new Error('no port mount')
  const url = mounted.metricsUrl
  try {
    await test({
      sandbox,
      root,
      url,
      clock,
      faults: (...texts) => sandbox.setFaults(texts.map(parseFault)),
      onRequest: (next) => void (hook = next),
      fetch: async (selection, changes = {}) =>
        await fetchOnce(
          { root, url, now: () => clock.now },
          selection,
          typeof changes === 'number' ? { input: { maxRequests: changes } } : changes,
        ),
      stored: async () => await storedPoints(root),
      failures: async () => await failedWindows(root),
      truth: (selection) => truthOf(selection, clock.now),
    })
  } finally {
    await mounted.stop()
    rmSync(root, { recursive: true, force: true })
  }
}

/** Where and when a fetch takes place. */
export interface Place {
  readonly root: string
  readonly url: string
  /** Unix seconds. */
  readonly now: () => number
}

/** The catalogue of a fetch that finds out by trying what a provider takes. */
export const trying: Catalogue = { ...catalogue, wire: { ...catalogue.wire, metadata: null } }

/** One fetch by the real job, in this process; by trying, unless the changes name the whole catalogue. */
export async function fetchOnce(place: Place, selection: Selection, changes: Changes = {}): Promise<IngestSummary> {
  const { now } = place
  return await fetchSeries(
    {
      settings: settingsAt(place, changes),
      catalogue: trying,
      selections: [selection],
      gapsOnly: false,
      now: now(),
      maxRequests: null,
      providerMoved: false,
      ...changes.input,
    },
    { ...depsAt(place), ...changes.deps },
  )
}

/** The settings of a job there, fast enough for a test. */
export function settingsAt({ root, url }: Place, changes: Changes = {}): Settings {
  const keys = { PITLAKE_METRICS_KEY: fetchKey, PITLAKE_REGISTRY_KEY: otherKey }
  const env = { PITLAKE_METRICS_URL: url, ...keys, PITLAKE_DATA: changes.data ?? root }
  const settings = resolveSettings({ flags: {}, env, cwd: tmpdir() })
  return { ...settings, metrics: { ...settings.metrics, requestsPerMinute: 60_000, ...changes.metrics } }
}

/** The world of a job there, by the clock of the place. */
export const depsAt = ({ now }: Place): IngestDeps => askingBy(leaping(now), 'pitlake fetch')

async function failedWindows(root: string): Promise<string[]> {
  const failed = await reading(root, (ledger) =>
    [...loadCoverage(ledger).values()].flat().filter((row) => row.state === 'failed'),
  )
  return failed.map((row) => `${row.series} ${row.reason}`)
}

/** Every stored point as text, sorted. */
export async function storedPoints(root: string): Promise<string[]> {
  const columns = 'metric, asset, currency, exchange, network, interval, epoch(t)::BIGINT AS t, v, o'
  const rows = await heldPoints(root, `${columns}, epoch(${computedByFormat})::BIGINT AS computed`, '')
  return rows.map((row) => line(row, valueText(row['v'], row['o']))).toSorted()
}

/** What a sandbox of a seed would show at an instant of a selection, a line a point, sorted. */
export function truthOf(selection: Selection, now: number, seed = 7): string[] {
  return meant(selection)
    .flatMap(({ endpoint, ...series }) => {
      const world = { endpoint, ...series, interval: series.interval as Interval | null, seed }
      const since = endpoint.since ? (selection.since ?? 0) : 0
      return [...worldPoints(world, since, selection.until ?? now, now)]
        .filter(({ computedAt }) => computedAt <= now)
        .map(({ t, body, computedAt }) => {
          const own = Object.keys(body)
          const value = own.length === 1 && (own[0] === 'v' || own[0] === 'o') ? body[own[0]] : body
          const flat = value === null ? 'null' : typeof value === 'number' ? String(value) : canonical(value)
          return line(
            { ...series, metric: endpoint.path, interval: series.interval ?? '24h', t, computed: computedAt },
            flat,
          )
        })
    })
    .toSorted()
}

function line(row: Record<string, unknown>, value: string): string {
  return [
    row['metric'],
    row['asset'],
    row['interval'],
    row['currency'],
    row['exchange'],
    row['network'],
    row['t'],
    row['computed'],
    value,
  ]
    .map(String)
    .join(' ')
}

function valueText(v: unknown, o: unknown): string {
  if (typeof o === 'string') return canonical(JSON.parse(o))
  return typeof v === 'number' ? String(v) : 'null'
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
