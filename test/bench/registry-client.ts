import { setTimeout } from 'node:timers/promises'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { registrySnapshot, registrySync } from '../../src/jobs/registry-jobs.ts'
import { resolveSettings } from '../../src/settings.ts'

// One registry job, alone in its process: `node registry-client.ts snapshot|sync FOLDER URL KEY` prints what it did,
// its seconds, its seconds of CPU, and the largest memory that the process ever held, in megabytes.
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
const [at, before] = [performance.now(), process.cpuUsage()]
const summary = await work(input, {
  now: () => performance.timeOrigin + performance.now(),
  nowMicros: () => Math.floor((performance.timeOrigin + performance.now()) * 1000),
  sleep: async (ms) => await setTimeout(ms),
  wait: async (ms) => await setTimeout(ms),
  random: Math.random,
  signal: new AbortController().signal,
  holder: { pid: process.pid, host: 'bench', command: `pitlake registry ${job}` },
  program: 'pitlake bench',
  proxy: {},
  onEvent: () => undefined,
})
const { user, system } = process.cpuUsage(before)
const megabytes = Math.round(process.resourceUsage().maxRSS / 1024)
const seconds = (performance.now() - at) / 1000
process.stdout.write(`${JSON.stringify({ summary, seconds, cpu: (user + system) / 1e6, megabytes })}\n`)
