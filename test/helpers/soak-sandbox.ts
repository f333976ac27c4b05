import { openSync, readSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { createSandbox } from '../../src/sandbox/sandbox.ts'
import { serve } from '../../src/sandbox/server.ts'
import { fetchKey, otherKey } from './fetching.ts'
import { catalogue } from './sandbox-client.ts'

// A sandbox as a process of its own, whose clock is what stands in a file: eight bytes, Unix seconds.
const file = openSync(process.argv[2] ?? '', 'r')
const bytes = Buffer.alloc(8)
const now = (): number => {
  readSync(file, bytes, 0, 8, 0)
  return bytes.readDoubleLE()
}
const sandbox = createSandbox({
  catalogue,
  seed: 7,
  now,
  sleep: async (ms) => await setTimeout(Math.min(ms, 500)),
  scale: 'demo',
  metricsKey: fetchKey,
  registryKey: otherKey,
})
const served = await serve(sandbox, { port: 0 })
process.stdout.write(`${served.url}\n`)
