import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Selection } from '../../src/catalog/series.ts'
import { LakeError } from '../../src/base/errors.ts'
import { examine } from '../../src/maintenance/upkeep/doctor.ts'
import { finishRun } from '../../src/maintenance/upkeep/finish.ts'
import { fetchSeries } from '../../src/sources/metrics/fetch.ts'
import { registrySnapshot, registrySync } from '../../src/sources/registry/snapshot-and-sync.ts'
import type { RegistryDeps } from '../../src/sources/registry/run.ts'
import type { IngestDeps } from '../../src/sources/metrics/run.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { depsAt, storedPoints } from '../helpers/fetching.ts'
import { chance, hostile, type Hostile, pick } from './hostile.ts'
import { traceFinder, type TraceFinder } from '../helpers/key-search.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { rounds } from '../helpers/tiers.ts'
import { makeFolder } from '../helpers/folders.ts'

const wantedRounds = rounds('PITLAKE_FUZZ', 8, 11)
const seed = Number(process.env['PITLAKE_SEED'] ?? 1)
const keys = ['sk-fuzz/Key+1~"x%41', 'registry.Fuzz_key-0987654321']
const start = Date.UTC(2026, 0, 10, 12) / 1000
const day = 86_400
/** So many rounds meet one lake; then a new one is begun. */
const life = 25
const finishing = 12

/** One lake and the provider that it is at the mercy of. */
interface Stage {
  readonly root: string
  readonly provider: Hostile
  /** Milliseconds since 1970; whoever waits moves it on. */
  readonly clock: { ms: number }
  readonly traces: TraceFinder
  held: Set<string>
}

const selections: readonly Selection[] = [
  { assets: ['BTC'], paths: ['addresses/active_count_pit'] },
  { assets: ['BTC', 'ETH'], paths: ['addresses/active_count_pit', 'blockchain/block_height_pit'] },
  { assets: ['*'], paths: ['addresses/active_count_pit'] },
  { assets: ['ETH'], paths: ['blockchain/*'] },
]

function depsOf({ clock }: Stage): IngestDeps & RegistryDeps {
  const wait = async (ms: number): Promise<void> => {
    clock.ms += ms
    await new Promise((resolve) => setImmediate(resolve))
  }
  const now = (): number => (clock.ms += 0.05)
  return {
    ...depsAt({ root: '', url: '', now: () => 0 }),
    now,
    nowMicros: () => Math.floor(now() * 1000),
    sleep: wait,
    wait,
    onEvent: () => undefined,
  }
}

/** One job, whatever comes of it; only what this program foresees may be thrown. */
async function job(stage: Stage, round: number): Promise<void> {
  const { root, provider } = stage
  const env = {
    PITLAKE_METRICS_URL: provider.url,
    PITLAKE_METRICS_KEY: keys[0],
    PITLAKE_REGISTRY_URL: `${provider.url}/registry/v1`,
    PITLAKE_REGISTRY_KEY: keys[1],
    PITLAKE_DATA: root,
  }
  const settings = resolveSettings({ flags: {}, env, cwd: tmpdir() })
  // Merging and views come now and then, as they are what takes longest.
  const finished = round % finishing === 0
  const common = { settings, catalogue, maxRequests: 30, providerMoved: false }
  const world = depsOf(stage)
  const atEnd: IngestDeps['atEnd'] = async (end) =>
    await finishRun(end, { catalogue, deps: world, note: (text) => expect.fail(text) })
  const deps = finished ? { ...world, atEnd } : world
  const what = pick(['fetch', 'fetch', 'fetch', 'sync', 'snapshot'], seed, 'job', round)
  try {
    if (what === 'fetch') {
      const selection = { ...pick(selections, seed, 'selection', round), since: start - 20 * day }
      const now = Math.floor(stage.clock.ms / 1000)
      await fetchSeries({ ...common, selections: [selection], gapsOnly: false, now }, deps)
    } else await (what === 'sync' ? registrySync : registrySnapshot)({ ...common, acceptShrink: false }, deps)
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind === 'unexpected') throw error
  }
}

/** What must hold after every round. */
async function judge(stage: Stage, round: number): Promise<void> {
  const { root, provider, traces } = stage
  const thorough = round % life === life - 1
  const { findings } = await examine({ data: root, thorough }, depsOf(stage)).catch((error: unknown) => {
    if (error instanceof LakeError && error.kind === 'usage') return { findings: [] }
    throw error
  })
  expect(findings.filter(({ severity, kind }) => severity === 'damage' && !kind.startsWith('views'))).toEqual([])
  const stored = new Set(await storedPoints(root).catch(() => []))
  expect([...stage.held].filter((line) => !stored.has(line))).toEqual([])
  const fresh = [...stored].filter((line) => !stage.held.has(line))
  const invented = fresh.filter((line) => {
    const [path = '', asset = '', , , , , t = '', , value = ''] = line.split(' ')
    return Number.isFinite(Number(value)) && !provider.sent.has(`${path} ${asset} ${t} ${value}`)
  })
  expect(invented).toEqual([])
  stage.held = stored
  expect(await traces.find(root, keys)).toEqual([])
}

/** The rounds of one lake; how many it stood. */
async function lifeOf(first: number, last: number): Promise<number> {
  const root = makeFolder('fuzz')
  const clock = { ms: start * 1000 }
  const provider = await hostile({ now: () => Math.floor(clock.ms / 1000), keys })
  const traces = await traceFinder()
  const stage: Stage = { root: join(root, 'lake'), provider, clock, traces, held: new Set() }
  try {
    for (let round = first; round < last; round++) {
      const malice = pick([0, 0.2, 0.5, 0.9], seed, 'malice', round)
      provider.round = { seed: seed * 1_000_003 + round, malice }
      try {
        await job(stage, round)
        await judge(stage, round)
      } catch (error) {
        console.error(`fuzz: seed ${seed}, round ${round} (lake from round ${first} on)`)
        throw error
      }
      clock.ms += Math.floor(chance(seed, 'pause', round) * 1.5 * day * 1000)
    }
    return last - first
  } finally {
    traces.close()
    await provider.close()
    rmSync(root, { recursive: true, force: true })
  }
}

test(`${wantedRounds} rounds with a provider that means harm, seed ${seed}`, {
  timeout: 120_000 + wantedRounds * 5_000,
}, async () => {
  let stood = 0
  for (let first = 0; first < wantedRounds; first += life)
    stood += await lifeOf(first, Math.min(wantedRounds, first + life))
  expect(stood).toBe(wantedRounds)
})
