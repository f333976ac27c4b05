import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseFault } from '../../../src/sandbox/faults.ts'
import { createSandbox } from '../../../src/sandbox/sandbox.ts'
import { serve } from '../../../src/sandbox/server.ts'
import { pitlake } from '../command.ts'
import { catalogue } from '../sandbox-client.ts'
import { makeFolder } from '../folders.ts'

/*
 * A folder with lakes that every writing command finds something to do in, and providers that answer while it runs;
 * each case finds all of it as it was made.
 */

const keys = { metrics: 'written-metrics-key', registry: 'written-registry-key' }
const hasChanged = 'rewrite@supply/*:point=0,v=101'
const day = 86_400_000
const since = new Date(Date.now() - 6 * day).toISOString().slice(0, 10)
const before = new Date(Date.now() - 3 * day).toISOString().slice(0, 10)

const files: Readonly<Record<string, string>> = {
  'pitlake.yaml': `metrics: { requests_per_minute: 60000 }
select:
  - { assets: [BTC], paths: [supply/current_pit, addresses/active_count_pit], since: ${since} }
`,
  'hasty.yaml': 'metrics: { requests_per_minute: 60000, availability: { "*": { lag: 1s } } }\n',
  'level.yaml': `features:
  level: { why: a test, grid: 24h, assets: [BTC], sql: "SELECT ts, asset, v FROM pit_join('grid', 'supply/current_pit', '24h')" }
`,
  'features.yaml': 'catalogs: [level.yaml]\n',
  'sum.sql': 'SELECT t AS ts, asset, v FROM points ORDER BY ALL',
  'own.csv': 'asset,t,value\nBTC,2024-01-01,1\nBTC,2024-01-02,2\n',
  'more.csv': 'asset,t,value\nBTC,2024-01-01,1\nBTC,2024-01-02,2\nBTC,2024-01-03,3\n',
}

/** What is done before: with which provider, and the code that it ends with. */
const prepared: readonly (readonly [from: 'sound' | 'changed', code: number, ...argv: string[]])[] = [
  ['sound', 0, 'import', 'own.csv', '--as', 'x', '--available', 'end', '--data', 'owned'],
  ['sound', 0, 'publish', 'pub', '--lake', '--data', 'owned'],
  ['sound', 0, 'pull', 'pub', '--data', 'mirror'],
  ['sound', 0, 'import', 'more.csv', '--as', 'x', '--data', 'owned'],
  ['sound', 0, 'publish', 'pub', '--lake', '--data', 'owned'],
  ['sound', 0, 'compact', '--data', 'owned'],
  ['sound', 0, 'fetch', '--until', before],
  ['sound', 0, 'stamp', 'sum.sql', '--out', 'r.parquet'],
  ['sound', 0, 'fetch', '--data', 'differing'],
  ['changed', 4, 'verify', '--data', 'differing'],
  ['sound', 0, 'registry', 'sync', '--data', 'followed'],
]

/** The folder, and what a command in it is told of the providers. */
export interface WrittenLake extends AsyncDisposable {
  readonly home: string
  /** The environment with this provider. */
  environment(from: 'sound' | 'changed'): Readonly<Record<string, string>>
  /** Puts everything back as it was made. */
  begin(): void
}

export async function openWrittenLake(): Promise<WrittenLake> {
  const home = makeFolder('written')
  const kept = makeFolder('written-kept')
  const providers = { sound: await provider([]), changed: await provider([hasChanged]) }
  const environment: WrittenLake['environment'] = (from) => ({
    PITLAKE_METRICS_URL: providers[from].url,
    PITLAKE_METRICS_KEY: keys.metrics,
    PITLAKE_REGISTRY_URL: `${providers[from].url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: keys.registry,
  })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
  for (const [from, code, ...argv] of prepared) {
    const done = await pitlake(home, argv, environment(from))
    if (done.code !== code) throw new Error(`${argv.join(' ')}: ${done.code} ${done.message}`)
  }
  cpSync(home, kept, { recursive: true, preserveTimestamps: true })
  return {
    home,
    environment,
    begin: () => {
      for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true })
      cpSync(kept, home, { recursive: true, preserveTimestamps: true })
    },
    [Symbol.asyncDispose]: async () => {
      for (const one of Object.values(providers)) await one.close()
      for (const folder of [home, kept]) rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function provider(faults: readonly string[]): ReturnType<typeof serve> {
  const now = () => Date.now() / 1000
  const sleep = (ms: number) => setTimeout(ms)
  const world = { catalogue, seed: 7, now, sleep, scale: 'demo' as const, faults: faults.map(parseFault) }
  return await serve(createSandbox({ ...world, metricsKey: keys.metrics, registryKey: keys.registry }), { port: 0 })
}

/** Newest version in the journal of a lake, read by name alone. */
export function newestVersion(root: string): number {
  const names = readdirSync(join(root, 'journal')).filter((name) =>
    /^\d{10,15}\.(?:json\.gz|checkpoint\.jsonl)$/.test(name),
  )
  return Math.max(0, ...names.map((name) => Number.parseInt(name, 10)))
}

/** The version that the views of a lake were made from, as the text of `lake.sql` says. */
export function viewsVersion(root: string): number {
  return Number(/ as of version (\d+):/.exec(readFileSync(join(root, 'lake.sql'), 'utf8'))?.[1])
}
