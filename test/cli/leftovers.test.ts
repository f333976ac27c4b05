// @module-tag full
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { compiled } from '../helpers/command.ts'
import { need } from '../helpers/needs.ts'
import { temporaryFolder } from '../helpers/folders.ts'
import { until } from '../helpers/processes.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const endless = 'SELECT count(*) FROM range(10000000000) a, range(10000000000) b'
/** Loaded before the program: an error that nobody catches, when the test wants it. */
const failing = `data:text/javascript,process.on('SIGUSR2', () => { throw new Error('nobody catches this') })`

const { root: folder } = lakeOfFile(hundredFetchedDays)
beforeEach((context) => void need(context, 'linux'))

const message = (id: number | null, method: string, params: object = {}): string =>
  `${JSON.stringify({ jsonrpc: '2.0', ...(id !== null && { id }), method, params })}\n`

/** Has a process answer something, and begin a query that never ends. */
const atWork = {
  mcp: async (child: ChildProcess, said: () => string): Promise<void> => {
    const client = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    child.stdin?.write(message(1, 'initialize', client) + message(null, 'notifications/initialized'))
    await until(() => said().includes('"id":1'), 'an agent that is heard')
    const question = { name: 'query', arguments: { sql: endless, as_of: '2024-03-01' } }
    child.stdin?.write(message(2, 'tools/call', question) + message(3, 'ping'))
    await until(() => said().includes('"id":3'), 'a question that was heard')
  },
  serve: async (_: ChildProcess, said: () => string): Promise<void> => {
    await until(() => said().includes('http://'), 'where it listens')
    const url = /http:\/\/[\d.:]+/.exec(said())?.[0] ?? ''
    expect((await fetch(`${url}/query?sql=SELECT+1`)).status).toBe(200)
    void fetch(`${url}/query?sql=${encodeURIComponent(endless)}`).catch(() => undefined)
  },
}

const bySignal = (signal: NodeJS.Signals) => (child: ChildProcess) => void child.kill(signal)
const endings: readonly (readonly [string, (child: ChildProcess) => void, ...(keyof typeof atWork)[]])[] = [
  ['SIGTERM', bySignal('SIGTERM'), 'mcp', 'serve'],
  ['SIGINT', bySignal('SIGINT'), 'mcp', 'serve'],
  ['SIGHUP', bySignal('SIGHUP'), 'mcp', 'serve'],
  ['SIGKILL', bySignal('SIGKILL'), 'mcp', 'serve'],
  ['an error that nobody catches', bySignal('SIGUSR2'), 'mcp', 'serve'],
  ['two SIGTERM', (child) => void (child.kill('SIGTERM') && child.kill('SIGTERM')), 'mcp', 'serve'],
  ['the end of standard input', (child) => void child.stdin?.end(), 'mcp'],
  [
    'a closed standard output',
    (child) => {
      child.stdout?.destroy()
      child.stdin?.write(message(4, 'tools/list'))
    },
    'mcp',
  ],
]
const cases = endings.flatMap(([how, end, ...commands]) => commands.map((command) => [command, how, end] as const))

test.each(cases)('%s leaves no temporary file after %s', async (command, _, end) => {
  using home = temporaryFolder('leftovers')
  const line = { mcp: ['mcp'], serve: ['serve', '--listen', '127.0.0.1:0'] }[command]
  const child = spawn(process.execPath, ['--import', failing, main, ...line, '--data', folder], {
    env: { ...process.env, ...compiled, TMPDIR: home.path },
    stdio: 'pipe',
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()))
  child.stdin.on('error', () => undefined)
  const ended = new Promise((done) => child.once('exit', done))
  try {
    await atWork[command](child, () => said)
    expect(readdirSync(home.path)).not.toEqual([])
    end(child)
    await ended
    // After SIGKILL the process that made the answers cleans up.
    await until(
      () => readdirSync(home.path).length === 0,
      `an empty folder instead of ${readdirSync(home.path).join(' ')}`,
      1000,
    )
  } finally {
    child.kill('SIGKILL')
  }
})
