import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { alive, heeded, until } from '../helpers/processes.ts'
import { need } from '../helpers/needs.ts'
import { freshFolder } from '../helpers/scratch.ts'

const launcher = fileURLToPath(new URL('../../scripts/launch.cjs', import.meta.url))
let folder = ''
const started: ChildProcess[] = []

freshFolder('launch', (path) => (folder = path))
beforeEach(() => {
  // The first process says that it is Node 20; what it starts says the truth.
  writeFileSync(
    join(folder, 'old.cjs'),
    "if (!process.env.SEEN) Object.defineProperty(process.versions, 'node', { value: '20.9.0' })\nprocess.env.SEEN = '1'\n",
  )
})
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

interface Launched {
  readonly child: ChildProcess
  readonly ended: Promise<{ code: number | null; signal: string | null; stderr: string }>
}

/** Starts the program as on an old Node, as the head of a process group of its own. */
function launch(args: readonly string[], env: Readonly<Record<string, string>> = {}): Launched {
  const child = spawn(process.execPath, ['-r', join(folder, 'old.cjs'), launcher, ...args], {
    detached: true,
    cwd: folder,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  let stderr = ''
  child.stderr?.on('data', (text: Buffer) => (stderr += text.toString()))
  const ended = new Promise<Awaited<Launched['ended']>>((resolve) =>
    child.on('exit', (code, signal) => resolve({ code, signal, stderr })),
  )
  return { child, ended }
}

/** The one process that the launcher started. */
function childOf(pid: number | undefined): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0])
}

/** A fetch that waits for its first answer until it is let go. */
async function waitingFetch(test: (fetch: Launched, letGo: () => void) => Promise<void>): Promise<void> {
  const held: ServerResponse[] = []
  let arrived: () => void = () => undefined
  const asked = new Promise<void>((resolve) => (arrived = resolve))
  const server = createServer(({ url: address = '' }, response) => {
    if (address.startsWith('/v1/metadata/')) return void response.writeHead(404).end()
    held.push(response)
    arrived()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: 'a-key-of-a-test', PITLAKE_DATA: join(folder, 'lake') }
  try {
    const fetch = launch(['fetch', '--assets', 'BTC,ETH', '--paths', 'supply/current_pit'], env)
    await asked
    await test(fetch, () => {
      for (const response of held.splice(0)) response.end('[]')
    })
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

describe('on an old Node', () => {
  beforeEach((context) => void need(context, 'linux'))
  test('arguments, output and exit code pass through', async () => {
    const { child, ended } = launch(['no such command'])
    let out = ''
    child.stdout?.on('data', (text: Buffer) => (out += text.toString()))
    expect(await ended).toMatchObject({ code: 2, stderr: expect.stringContaining('no such command') as string })
    const help = launch(['--help'])
    help.child.stdout?.on('data', (text: Buffer) => (out += text.toString()))
    expect(await help.ended).toMatchObject({ code: 0 })
    expect(out).toContain('Usage: pitlake')
  })

  test.each(['SIGTERM', 'SIGINT'] as const)('%s to the launcher alone ends the job in good order', async (signal) =>
    waitingFetch(async ({ child, ended }, letGo) => {
      child.kill(signal)
      // The launcher passes it on.
      for (const pid of [child.pid ?? 0, childOf(child.pid)]) await heeded(pid)
      expect(child.exitCode).toBeNull()
      letGo()
      expect(await ended).toMatchObject({ code: 5, stderr: expect.stringContaining('stopped early') as string })
    }),
  )

  test('Ctrl-C, which reaches both, is one stop; a second one ends at once', async () =>
    waitingFetch(async ({ child, ended }) => {
      const group = -(child.pid ?? 0)
      const job = childOf(child.pid)
      process.kill(group, 'SIGINT')
      for (const pid of [child.pid ?? 0, job, child.pid ?? 0, job]) await heeded(pid)
      expect(alive(job)).toBe(true)
      process.kill(group, 'SIGINT')
      expect(await ended).toMatchObject({ code: 5 })
    }))

  test('a killed launcher leaves no process behind', async () =>
    waitingFetch(async ({ child, ended }, letGo) => {
      const job = childOf(child.pid)
      child.kill('SIGKILL')
      await ended
      letGo()
      await until(() => !alive(job), `the end of ${job}`)
      expect(existsSync(join(folder, 'lake', 'locks', 'metrics.json'))).toBe(false)
    }))

  test('a job that a signal ended says so by its exit code', async () =>
    waitingFetch(async ({ child, ended }) => {
      process.kill(childOf(child.pid), 'SIGKILL')
      expect(await ended).toMatchObject({ code: 128 + 9, signal: null })
    }))
})

test('on a Node that is new enough there is one process, and it is stopped itself', async () => {
  writeFileSync(join(folder, 'old.cjs'), '')
  await waitingFetch(async ({ child, ended }, letGo) => {
    if (process.platform === 'linux') expect(childOf(child.pid)).toBe(0)
    child.kill('SIGTERM')
    await heeded(child.pid ?? 0)
    letGo()
    expect(await ended).toMatchObject({ code: 5 })
  })
})

test('help and version load neither the engine nor anything else that only jobs need', () => {
  const watch = join(folder, 'watch.mjs')
  writeFileSync(
    watch,
    `import { registerHooks } from 'node:module'
    registerHooks({ load: (url, context, next) => {
      const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]
      if (name) console.error(name)
      return next(url, context)
    } })`,
  )
  const loaded = (...argv: string[]): string[] => {
    const done = spawnSync(process.execPath, ['--import', watch, launcher, ...argv], { encoding: 'utf8' })
    expect(done.status).toBe(0)
    return [...new Set(done.stderr.trim().split('\n'))].filter((name) => name !== '')
  }
  expect(loaded('--help')).toEqual([])
  expect(loaded('--version')).toEqual([])
  expect(loaded('catalog', 'list')).toContain('yaml')
})
