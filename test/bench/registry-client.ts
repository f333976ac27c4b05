import { setTimeout } from 'node:timers/promises'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { spareHeap } from '../../src/interfaces/cli/world.ts'
import { mergeSmallFiles } from '../../src/maintenance/upkeep/compact.ts'
import { registrySnapshot, registrySync } from '../../src/sources/registry/snapshot-and-sync.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { mostMemory } from './memory.ts'

// One registry job, alone in its process: `node registry-client.ts snapshot|sync FOLDER URL KEY` prints what it did,
// its seconds, its seconds of CPU, and the largest memory that the process ever held, merge included, in megabytes.
const [job = '', root = '', url = '', key = ''] = process.argv.slice(2)
const env = { PITLAKE_REGISTRY_URL: url, PITLAKE_REGISTRY_KEY: key, PITLAKE_DATA: root }
const work = job === 'sync' ? registrySync : registrySnapshot
const input = {
  settings: resolveSettings({ flags: {}, env, cwd: root }),
  catalogue: loadCatalogue(),
  acceptShrink: false,
  maxRequests: null,
  providerMoved: false,
}
if (job === 'sync') spareHeap()
const [at, before] = [performance.now(), process.cpuUsage()]
const deps = {
  now: () => performance.timeOrigin + performance.now(),
  nowMicros: () => Math.floor((performance.timeOrigin + performance.now()) * 1000),
  sleep: async (ms: number) => await setTimeout(ms),
  wait: async (ms: number) => await setTimeout(ms),
  random: Math.random,
  signal: new AbortController().signal,
  holder: { pid: process.pid, host: 'bench', command: `pitlake registry ${job}` },
  program: 'pitlake bench',
  proxy: {},
  onEvent: () => undefined,
}
const summary = await work(input, deps)
const { user, system } = process.cpuUsage(before)
const seconds = (performance.now() - at) / 1000
// What the command does at its end; it belongs to the memory, not to the time of the job.
const ledger = await Ledger.open(root)
await mergeSmallFiles(ledger, { ...deps, threads: 1 })
ledger.close()
process.stdout.write(`${JSON.stringify({ summary, seconds, cpu: (user + system) / 1e6, megabytes: mostMemory() })}\n`)
