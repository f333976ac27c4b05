import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { loadCatalogue } from '../src/catalog/load.ts'
import type { Selection } from '../src/catalog/series.ts'
import { mergeSmallFiles } from '../src/maintenance/upkeep/merge-jobs.ts'
import type { RunEnd } from '../src/lake/ledger/job.ts'
import { fetchSeries } from '../src/sources/metrics/fetch.ts'
import type { RegistryDeps } from '../src/sources/registry/run.ts'
import { registrySnapshot, registrySync } from '../src/sources/registry/snapshot-and-sync.ts'
import type { IngestDeps } from '../src/sources/metrics/run.ts'
import { Ledger } from '../src/lake/ledger/ledger.ts'
import { buildViews } from '../src/query/views/build.ts'
import type { Fault } from '../src/sandbox/faults.ts'
import { chance } from '../src/sandbox/registry/entities.ts'
import { createSandbox } from '../src/sandbox/sandbox.ts'
import { serve } from '../src/sandbox/server.ts'
import { worldPoint } from '../src/sandbox/world/points.ts'
import { resolveSettings } from '../src/catalog/settings.ts'
import { day, formatInstant, hour, parseInstant } from '../src/base/time.ts'

/*
 * `node scripts/notebook-lake.ts FOLDER` makes the lake of the notebooks: a sandbox whose clock is moved from week to
 * week, and the real jobs, which see arrivals, late points, retirements and removals as they come. In the spring of 2026
 * the provider begins to restate one metric. FOLDER.provider.json keeps what is needed to start the same provider again.
 */

const seed = 12
const polls = 80
const firstPoll = instant('2025-01-06T12:00Z')
const lastPoll = firstPoll + polls * 7 * day
/** From the first to the last poll whose overlap shows restated values. */
const restated = { metric: 'addresses/active_count_pit', from: instant('2025-11-03'), until: instant('2026-05-04') }
/** Days that no top-up compares again: only `verify` can see that they were restated, too. */
const deep = { from: instant('2023-09-01'), until: instant('2023-10-01'), shown: instant('2026-03-02'), factor: 1.06 }
const restatedAssets = ['BTC', 'ETH']
const thoroughEvery = 20

const coins = ['BTC', 'ETH', 'SOL']
/** With contracts that registry products have, too; those of PAXG and XAUT no product has. */
const tokenized = ['USDY', 'OUSG', 'USYC', 'TBILL', 'USDe', 'FRAX', 'USDT', 'PAXG', 'XAUT']
const since = instant('2021-01-01')
const currencies = ['native', 'usd']

/** What is brought at every poll of the metrics. */
const usual: readonly Selection[] = [
  { assets: coins, paths: [restated.metric], since },
  { assets: ['BTC'], paths: ['market/btc_dominance_pit', 'entities/active_count_pit'], since },
  { assets: ['BTC', 'ETH'], paths: ['estimates/idle_rate'], intervals: ['1month'], since },
]

/** What is brought every twenty weeks only. */
const seldom: readonly Selection[] = [
  { assets: coins, paths: ['supply/current_pit'], currencies, since },
  { assets: tokenized, paths: ['supply/current_pit'], currencies: ['usd'], since },
  { assets: ['BTC'], paths: ['supply/current_pit'], intervals: ['1h'], currencies, since: instant('2022-01-01') },
  { assets: ['BTC', 'ETH'], paths: ['indicators/sopr_adjusted_pit', 'addresses/profit_count_pit'], since },
  { assets: ['BTC'], paths: ['addresses/supply_distribution_relative_pit'], since },
]

const keys = { metrics: 'notebook-metrics', registry: 'notebook-registry' }
/** Estimates that the sandbox revises a month and a quarter after it told them first; no listing tells of them. */
const estimates = `endpoints:
  - { path: estimates/idle_rate, intervals: [24h, 1month], takes: [since, until], revisable: true }
availability:
  - { paths: [estimates/idle_rate], lag: 1d, basis: assumed, reason: "told within hours" }
`
const catalogue = loadCatalogue([], undefined, [{ name: 'estimates.yaml', text: estimates }])

await main(process.argv[2])

async function main(folder: string | undefined): Promise<void> {
  if (folder === undefined) throw new Error('expected a folder: node scripts/notebook-lake.ts FOLDER')
  const target = resolve(folder)
  const making = `${target}.making`
  rmSync(making, { recursive: true, force: true })
  mkdirSync(making, { recursive: true })
  const clock = { now: firstPoll }
  const faults = restatements()
  const sandbox = createSandbox({
    catalogue,
    seed,
    now: () => clock.now,
    pace: () => performance.now() / 1000,
    sleep: async (ms) => await setTimeout(ms),
    scale: 'demo',
    faults,
    metricsKey: keys.metrics,
    registryKey: keys.registry,
  })
  const served = await serve(sandbox, { port: 0 })
  try {
    await fill(making, served.url, clock)
  } finally {
    await served.close()
  }
  rmSync(target, { recursive: true, force: true })
  renameSync(making, target)
  await addViews(target, lastPoll + hour)
  const provider = { seed, now: formatInstant(lastPoll), faults: faults.map(wire) }
  writeFileSync(`${target}.provider.json`, `${JSON.stringify(provider, null, 1)}\n`)
  process.stdout.write(`${basename(target)}: ${polls} weekly polls until ${formatInstant(lastPoll)}\n`)
}

/** The first fetch and snapshot; then the registry every week, the metrics every other week, weekly while they are restated. */
async function fill(root: string, url: string, clock: { now: number }): Promise<void> {
  const input = inputOf(root, url)
  for (let poll = 0; poll <= polls; poll++) {
    clock.now = firstPoll + poll * 7 * day
    const registry = poll === 0 ? registrySnapshot : registrySync
    const changed = await registry({ ...input, acceptShrink: false }, worldOf(clock.now, 'registry', false))
    if (changed.stopped_by !== null) fail(`poll ${poll}: ${changed.stopped_by} ${changed.words ?? ''}`)
    const thorough = poll % thoroughEvery === 0 || poll === polls
    if (!thorough && poll % 2 === 1 && !isRestating(clock.now)) continue
    const selections = thorough ? [...usual, ...seldom] : usual
    const world = worldOf(clock.now + hour / 2, 'fetch', thorough)
    const brought = await fetchSeries({ ...input, selections, gapsOnly: false, now: clock.now }, world)
    if (brought.stopped_by !== null) fail(`poll ${poll}: ${brought.stopped_by} ${brought.words ?? ''}`)
  }
}

function isRestating(now: number): boolean {
  return restated.from <= now && now < restated.until
}

function inputOf(root: string, url: string) {
  const env = {
    PITLAKE_METRICS_URL: url,
    PITLAKE_METRICS_KEY: keys.metrics,
    PITLAKE_REGISTRY_URL: `${url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: keys.registry,
    PITLAKE_DATA: root,
  }
  const settings = resolveSettings({ flags: {}, env, cwd: root })
  const metrics = { ...settings.metrics, requestsPerMinute: 60_000 }
  return { settings: { ...settings, metrics }, catalogue, maxRequests: null, providerMoved: false }
}

/** The world of a job that runs at an instant of the sandbox; its clock goes on so that waits end. */
function worldOf(now: number, name: string, tidy: boolean): IngestDeps & RegistryDeps {
  const real = performance.now()
  const world = {
    nowMicros: () => now * 1_000_000,
    sleep: async (ms: number) => await setTimeout(ms),
    random: chance('notebook lake', now, name).next,
    signal: new AbortController().signal,
    holder: { pid: process.pid, host: 'notebooks', command: `pitlake ${name}` },
    program: 'pitlake notebooks',
  }
  return {
    ...world,
    now: () => now * 1000 + (performance.now() - real),
    wait: async (ms) => await setTimeout(Math.min(ms, 100)),
    proxy: {},
    onEvent: () => undefined,
    atEnd: async ({ ledger }: RunEnd) => {
      if (tidy) await mergeSmallFiles(ledger, world)
    },
  }
}

/** Makes the views in the place where the lake stays. */
async function addViews(root: string, now: number): Promise<void> {
  const ledger = await Ledger.open(root)
  try {
    await buildViews(ledger, { catalogue, deps: worldOf(now, 'views', false) })
  } finally {
    ledger.close()
  }
}

function fail(text: string): never {
  throw new Error(text)
}

/**
 * What the provider restates. Each week it revises seven days that it published one to two weeks earlier, in the light of
 * what the price did after them: up where it rose, down where it fell, as a model does that is fitted anew to all of
 * history. Later it restates a month of 2023 as well.
 */
function restatements(): Fault[] {
  const faults: Fault[] = []
  for (const asset of restatedAssets) {
    for (let poll = firstPoll; poll <= lastPoll; poll += 7 * day) {
      if (!isRestating(poll)) continue
      const midnight = Math.floor(poll / day) * day
      for (let back = 14; back >= 8; back--) {
        const t = midnight - back * day
        const gain = priceAt(asset, t + 6 * day) / priceAt(asset, t + day) - 1
        const value = activeAt(asset, t)
        if (value === null) continue
        const v = Math.round(value * (1 + Math.max(-0.06, Math.min(0.06, gain))))
        faults.push({ kind: 'rewrite', t, v, match: { path: restated.metric, asset, from: poll - hour } })
      }
    }
    for (let t = deep.from; t < deep.until; t += day)
      faults.push({
        kind: 'rewrite',
        t,
        by: deep.factor,
        match: { path: restated.metric, asset, from: deep.shown },
      })
  }
  return faults
}

function activeAt(asset: string, t: number): number | null {
  return scalarAt(restated.metric, asset, null, t)
}

function priceAt(asset: string, t: number): number {
  return (
    (scalarAt('supply/current_pit', asset, 'usd', t) ?? 1) / (scalarAt('supply/current_pit', asset, 'native', t) ?? 1)
  )
}

/** The provider's truth of a day; of the day before where it has a hole there. */
function scalarAt(path: string, asset: string, currency: string | null, t: number): number | null {
  const endpoint = catalogue.endpoints.get(path)
  if (endpoint === undefined) throw new Error(`the catalogue has no ${path}`)
  const { network, exchange } = endpoint.defaults
  const value = worldPoint({ endpoint, asset, interval: '24h', currency, exchange, network, seed }, t)?.body['v']
  if (typeof value === 'number') return value
  return path === restated.metric ? null : scalarAt(path, asset, currency, t - day)
}

/** A fault as `pitlake sandbox --faults FILE` reads it. */
function wire({ kind, t, v, by, match }: Fault): object {
  const at = (seconds: number | undefined) => (seconds === undefined ? undefined : formatInstant(seconds))
  return { kind, t: at(t), v, by, path: match?.path, asset: match?.asset, from: at(match?.from) }
}

function instant(text: string): number {
  return parseInstant(text) ?? fail(`${text} is no instant`)
}
