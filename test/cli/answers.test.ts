// @module-tag full
// @module-tag slow
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { compiled } from '../helpers/command.ts'
import { alive, until } from '../helpers/processes.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { sample } from '../helpers/tiers.ts'
import { makeFolder } from '../helpers/folders.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const token = 'a-token-of-the-server'
const key = 'a-key-of-a-provider'

/** What the engine never looks up from: cancels are heard between chunks only, and these are one call each. */
const deaf = {
  'a list of a thousand million': 'SELECT list_sum(range(1000000000))',
  'a text of four gigabytes': "SELECT length(repeat('x', 4000000000))",
  'two texts that are compared': `SELECT levenshtein(repeat('ab', 100000), repeat('ba', 100000) || CAST(i AS VARCHAR)) AS n
    FROM range(50) AS r(i)`,
}

/** The program as a person starts it, with a temporary folder of its own. */
class Server implements AsyncDisposable {
  readonly home = makeFolder('answers')
  readonly program: ChildProcess
  said = ''
  url = ''

  private constructor(flags: readonly string[], env: NodeJS.ProcessEnv) {
    const args = [main, 'serve', '--data', folder, '--listen', '127.0.0.1:0', '--threads', '1', ...flags]
    this.program = spawn(process.execPath, args, {
      env: { ...process.env, ...compiled, TMPDIR: this.home, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.program.stderr?.on('data', (part: Buffer) => (this.said += part.toString()))
  }

  static async at(flags: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Server> {
    const server = new Server(flags, env)
    await until(() => server.said.includes('http://') || server.program.exitCode !== null, 'where it listens')
    server.url = /http:\/\/[\d.:]+/.exec(server.said)?.[0] ?? ''
    return server
  }

  /** The processes that it keeps. */
  get kept(): readonly number[] {
    const told = readFileSync(`/proc/${this.program.pid}/task/${this.program.pid}/children`, 'utf8')
    return told.split(' ').filter(Boolean).map(Number).filter(alive)
  }

  /** The one process that it keeps, once that has opened the lake. */
  async answering(): Promise<number> {
    await this.ask('SELECT 1')
    await until(() => this.kept.length === 1, 'one process of answers')
    return this.kept[0] ?? 0
  }

  async ask(sql: string, init: RequestInit = {}): Promise<readonly [number, string]> {
    const answer = await fetch(`${this.url}/query`, { method: 'POST', body: sql, ...init })
    return [answer.status, await answer.text()]
  }

  /** Waits until its process of answers has worked for a while, or has ended over it. */
  async busy(): Promise<void> {
    const [first] = this.kept
    const ticks = (): number => {
      const [pid] = this.kept
      const stat = pid === undefined ? '' : readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [user = 0, system = 0] = stat
        .replace(/^.*\) /, '')
        .split(' ')
        .slice(11, 13)
        .map(Number)
      return user + system
    }
    const before = ticks()
    await until(() => this.kept[0] !== first || ticks() > before + 30, 'a process at work')
  }

  /** What it left in its temporary folder. */
  get left(): readonly string[] {
    return readdirSync(this.home)
  }

  /** How many answers are being written. */
  get atWork(): number {
    return readdirSync(this.home, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.part')).length
  }

  async stop(): Promise<number | null> {
    if (this.program.exitCode === null && this.program.signalCode === null) {
      this.program.kill('SIGTERM')
      await once(this.program, 'exit')
    }
    return this.program.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

const { root: folder } = lakeOfFile(hundredFetchedDays)

/** Questions of others, and what is right. */
async function others(server: Server, count: number, init: RequestInit = {}): Promise<void> {
  const sql = (n: number) => `SELECT ${n} AS n, count(*) AS points, sum(v) AS sum FROM points WHERE asset = 'BTC'`
  const answers = await Promise.all(Array.from({ length: count }, async (_, n) => await server.ask(sql(n), init)))
  const told = answers.map(([status, text]) => [status, ...Object.values(JSON.parse(text) as object)])
  const [[, , points, sum] = []] = told
  expect(points).toBe(200)
  expect(told).toEqual(Array.from({ length: count }, (_, n) => [200, n, points, sum]))
}

describe.each(sample(Object.entries(deaf), 2))('%s', (_, sql) => {
  test('ends nothing of others, whether its asker goes away or waits', async () => {
    await using server = await Server.at(['--memory', '512MB', '--timeout', '3s'])
    const before = await server.answering()
    const gone = new AbortController()
    const left = server.ask(sql, { signal: gone.signal }).catch(() => null)
    await server.busy()
    gone.abort()
    const [refused] = await Promise.all([server.ask(sql), others(server, 20), left])
    expect([504, 507]).toContain(refused[0])
    await others(server, 3)
    expect(server.program.exitCode).toBe(null)
    expect(await server.answering()).not.toBe(before)
    expect(alive(before)).toBe(false)
    expect(await server.stop()).toBe(0)
    expect(server.left).toEqual([])
  })
})

test('an answer that takes more memory than the process may have is refused; one that is killed in the middle: what it was asked is asked of another, and is right', async () => {
  await using server = await Server.at(['--memory', '512MB', '--timeout', '10m'])
  const [refused] = await Promise.all([server.ask(deaf['a list of a thousand million']), others(server, 10)])
  expect(refused).toEqual([507, expect.stringMatching(/more memory than (?:they|it) may/)])
  const first = await server.answering()
  const slow = (n: number) =>
    `SELECT ${n} AS n, count(*) AS c FROM range(5000) a, range(10000) b WHERE hash(a.range, b.range) % 7 = 0`
  const asked = Array.from({ length: 5 }, async (_, n) => await server.ask(slow(n)))
  // One client gets two of the three places.
  await until(() => server.atWork === 2, 'two answers at work')
  process.kill(first, 'SIGKILL')
  const answers = (await Promise.all(asked)).map(([status, text]) => ({
    status,
    ...(JSON.parse(text) as { c: number }),
  }))
  const { c } = answers[0] ?? {}
  expect(c).toBeGreaterThan(0)
  expect(answers).toEqual([0, 1, 2, 3, 4].map((n) => ({ status: 200, n, c })))
  expect([alive(first), server.said]).toEqual([false, expect.stringContaining('ended by itself (SIGKILL); another')])
  // One that nobody was asking of is replaced, too.
  const second = await server.answering()
  process.kill(second, 'SIGKILL')
  await until(() => !alive(second), 'its end')
  await others(server, 2)
  expect(await server.answering()).not.toBe(second)
  expect(await server.stop()).toBe(0)
  expect(server.left).toEqual([])
})

describe('the process', () => {
  test('knows no key and no token, and heeds no Ctrl-C, which a terminal gives to all', async () => {
    const given = { PITLAKE_TOKEN: token, PITLAKE_METRICS_KEY: key, ELSEWHERE: `Bearer ${token}`, AND: 'seen' }
    await using server = await Server.at([], given)
    await until(() => server.kept.length === 1, 'one process of answers')
    const [pid = 0] = server.kept
    const known = ['environ', 'cmdline'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8')).join('\0')
    expect(known).toContain('AND=seen')
    for (const secret of [token, key]) expect(known).not.toContain(secret)
    const headers = { authorization: `Bearer ${token}` }
    expect(await server.ask('SELECT 1 AS one', { headers })).toEqual([200, '{"one":1}\n'])
    process.kill(pid, 'SIGINT')
    process.kill(pid, 'SIGTERM')
    await others(server, 3, { headers })
    expect(server.kept).toEqual([pid])
  })

  test('ends with the program, however that ends, whatever it is at', async () => {
    for (const how of ['SIGTERM', 'SIGKILL'] as const) {
      await using server = await Server.at(['--timeout', '10m'])
      const pid = await server.answering()
      const left = server.ask(deaf['two texts that are compared']).catch(() => null)
      await server.busy()
      server.program.kill(how)
      await left
      await until(() => !alive(pid), 'its end')
      if (how === 'SIGTERM') await until(() => server.program.exitCode === 0, 'the end of the program')
      expect(server.left, how).toEqual([])
    }
  })

  test('a lake that it cannot open ends the program in words, and nothing is left', async () => {
    const nowhere = makeFolder('nowhere')
    await using server = await Server.at(['--data', nowhere])
    rmSync(nowhere, { recursive: true })
    await until(() => server.program.exitCode !== null, 'its end')
    expect([server.program.exitCode, server.said]).toEqual([2, expect.stringContaining('expected lake.duckdb')])
    expect(server.left).toEqual([])
  })
})
