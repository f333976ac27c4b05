import { catalogue } from './sandbox-client.ts'
import { registrySync } from '../../src/registry/snapshot-and-sync.ts'
import { resolveSettings } from '../../src/config/settings.ts'
import { setTimeout } from 'node:timers/promises'

// One sync of the lake in FOLDER with the provider at URL: `node registry-run.ts FOLDER URL KEY`; made to be killed.
const [root = '', url = '', key = ''] = process.argv.slice(2)
const env = { PITLAKE_REGISTRY_URL: url, PITLAKE_REGISTRY_KEY: key, PITLAKE_DATA: root }
process.stdout.write('ready\n')
const summary = await registrySync(
  {
    settings: resolveSettings({ flags: {}, env, cwd: root }),
    catalogue,
    acceptShrink: false,
    maxRequests: null,
    providerMoved: false,
  },
  {
    now: Date.now,
    nowMicros: () => Date.now() * 1000,
    sleep: async (ms) => await setTimeout(ms),
    wait: async (ms) => await setTimeout(ms),
    random: Math.random,
    signal: new AbortController().signal,
    holder: { pid: process.pid, host: 'test', command: 'pitlake registry sync' },
    program: 'pitlake test',
    proxy: {},
    onEvent: () => undefined,
  },
)
process.stdout.write(`${JSON.stringify(summary)}\n`)
