import { openSync, readFileSync, readSync } from 'node:fs'
import { enableCompileCache } from 'node:module'

enableCompileCache()
const { dispatch } = await import('../../src/interfaces/commands/run-command-line.ts')
const { exitCode } = await import('../../src/base/errors.ts')

// A command line in a process of its own (`node watched.ts CLOCK …`): its clock is what stands in a file (eight bytes,
// Unix seconds), and it asks whoever started it for every wait. With --expose-gc it tells hourly what it holds in
// memory.
const [file = '', ...argv] = process.argv.slice(2)
const hour = 3600
const descriptor = openSync(file, 'r')
const bytes = Buffer.alloc(8)
const clock = (): number => {
  readSync(descriptor, bytes, 0, 8, 0)
  return bytes.readDoubleLE() * 1000
}
const tell = (message: object): void => void process.send?.(message)

const asleep = new Map<number, () => void>()
process.on('message', (id: number) => asleep.get(id)?.())
let waits = 0

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return
  const id = ++waits
  await new Promise<void>((resolve) => {
    const awake = (): void => {
      signal?.removeEventListener('abort', awake)
      asleep.delete(id)
      tell({ awake: id })
      resolve()
    }
    asleep.set(id, awake)
    signal?.addEventListener('abort', awake)
    tell({ asleep: id, until: (clock() + ms) / 1000, ...memory() })
  })
}

let measured = clock()

/** Megabytes that Linux counts for this process, and those of its values, once garbage is gone. */
function memory(): { resident?: number; used?: number } {
  if (globalThis.gc === undefined || clock() < measured + hour * 1000) return {}
  measured = clock()
  globalThis.gc()
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  const { heapUsed, external } = process.memoryUsage()
  return { resident: Number(kilobytes) / 1024, used: (heapUsed + external) / 2 ** 20 }
}

const stop = new AbortController()
process.on('SIGTERM', () => {
  stop.abort()
  tell({ told: true })
})
try {
  process.exitCode =
    (await dispatch(argv, {
      now: clock,
      elapsed: clock,
      sleep,
      random: Math.random,
      env: process.env,
      stdout: (text) => void process.stdout.write(text),
      stderr: (text) => void process.stderr.write(text),
      live: () => undefined,
      isTerminal: false,
      signal: stop.signal,
      cwd: process.cwd(),
    })) ?? 0
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = exitCode(error)
} finally {
  process.disconnect()
}
