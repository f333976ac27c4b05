// @module-tag full
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { isFree } from '../../src/lake/store/lock.ts'
import { readManifest } from '../../src/query/views/manifest.ts'
import { pitlake } from '../helpers/command.ts'
import { type Rig, apisAt, fetchKey, withRig } from '../helpers/fetching.ts'
import { until } from '../helpers/processes.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const day = 86_400
/** The clock of processes is the machine's, so the provider's is, too. */
const now = Math.floor(Date.now() / 1000)
const since = now - 20 * day
const paths = ['supply/current_pit', 'addresses/active_count_pit']
const selection = { assets: ['BTC', 'ETH'], paths, intervals: ['24h'], since }
const flags = ['--assets', 'BTC,ETH', '--paths', paths.join(','), '--intervals', '24h', '--since', String(since)]

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

function begin(rig: Rig, argv: readonly string[]) {
  const child = spawn(process.execPath, [main, ...argv, '--data', rig.root], {
    cwd: rig.root,
    env: { PATH: process.env['PATH'], ...apisAt(rig.url) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => (text += part.toString()))
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve))
  return { child, said: () => text, ended }
}

/** All that was published well before now. */
async function expectWhole(rig: Rig): Promise<void> {
  const held = new Set(await rig.stored())
  const due = rig.truth(selection).filter((line) => Number(line.split(' ')[7]) < now - 60)
  expect(due.length).toBeGreaterThan(50)
  expect(due.filter((line) => !held.has(line))).toEqual([])
}

test('a watch catches up, lets others work, refuses a second one, and ends in good order', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch({ ...selection, until: now - 5 * day })
    const first = begin(rig, ['watch', ...flags])
    await until(() => first.said().includes('  metrics  '), 'a first answer')
    expect(first.said()).toMatch(
      /Z {2}metrics {3}\d+ new points, 4 series due, 4 requests, version \d+; next \d\d:\d\d\n/,
    )
    await expectWhole(rig)
    const second = begin(rig, ['watch', ...flags])
    expect(await second.ended).toBe(7)
    expect(second.said()).toMatch(/another watch job is at work on this lake: process \d+ on .* \(pitlake watch\)/)
    const fetch = begin(rig, ['fetch', ...flags])
    expect(await fetch.ended).toBe(0)
    first.child.kill('SIGTERM')
    expect(await first.ended).toBe(0)
    expect(first.said()).toMatch(/ended {5}everything received is committed\n$/)
    expect(first.said()).not.toContain(fetchKey)
    using ledger = await Ledger.openToRead(rig.root)
    expect((await readManifest(rig.root))?.version).toBe(ledger.head().version)
    expect(['watch', 'metrics', 'registry'].map((lock) => isFree(rig.root, lock))).toEqual([true, true, true])
  }))

test('killed in the middle of a request, it goes on when it is begun again; each event is a line of JSON', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch({ ...selection, until: now - 5 * day })
    const first = begin(rig, ['watch', ...flags, '--json'])
    let asked = 0
    rig.onRequest(async ({ url }) => {
      if (!url.includes('/v1/metrics/') || url.includes('/assets') || ++asked !== 2) return
      first.child.kill('SIGKILL')
      await first.ended
    })
    expect(await first.ended).toBe(null)
    rig.onRequest(() => undefined)
    const again = begin(rig, ['watch', ...flags, '--json'])
    await until(() => again.said().includes('"kind":"metrics"'), 'an answer after the kill')
    await expectWhole(rig)
    again.child.kill('SIGINT')
    expect(await again.ended).toBe(0)
    const events = again
      .said()
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
    expect(events[0]).toMatchObject({ kind: 'metrics', at: expect.stringMatching(/Z$/), series: 4, error: null })
    expect(events.at(-1)).toMatchObject({ kind: 'ended', code: 0 })
  }))

test('a watch that cannot start prints one line and leaves no file behind', async () =>
  await withRig(now, async (rig) => {
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
    const wrong = async (...argv: readonly string[]) => {
      const { code, message } = await pitlake(rig.root, ['watch', ...flags, '--data', rig.root, ...argv], env)
      expect(message.split('\n')).toHaveLength(1)
      return `${code} ${message}`
    }
    expect(await wrong('--credits-per-day', '0')).toMatch(
      /^2 --credits-per-day: expected a whole number above 0, got 0/,
    )
    expect(await wrong('--reserve', '5')).toMatch(/^2 --reserve: expected --credits-per-day with it, got none/)
    expect(await wrong('--reserve', '5', '--credits-per-day', '5')).toMatch(
      /^2 --reserve: expected less than the 5 credits/,
    )
    expect(await wrong()).toMatch(/^2 no lake in .*run pitlake fetch/)
    const none = await pitlake(rig.root, ['watch', ...flags], { PITLAKE_DATA: rig.root })
    expect(`${none.code} ${none.message}`).toMatch(/^2 pitlake watch: expected a provider in the environment, got none/)
    expect(rig.sandbox.requests()).toEqual([])
  }))

test('a clock that is a year off gives one line and no repeated request', async () =>
  await withRig(now, async (rig) => {
    await rig.fetch({ ...selection, until: now - 5 * day })
    const before = rig.sandbox.requests().length
    const stop = new AbortController()
    const behind = { at: (now - 365 * day) * 1000 }
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
    const ended = await pitlake(rig.root, ['watch', ...flags, '--data', rig.root], env, {
      now: () => behind.at,
      sleep: async (ms) => {
        behind.at += ms
        if (behind.at > (now - 364 * day) * 1000) stop.abort()
      },
      signal: stop.signal,
    })
    expect(ended.notes.split('\n').filter((line) => line.startsWith('note: '))).toHaveLength(1)
    expect(ended.notes).toMatch(/^note: .*clock/)
    expect(rig.sandbox.requests().length).toBe(before)
  }))

test('watch --publish brings the destination up to date when no request is due', async () =>
  await withRig(now, async (rig) => {
    const data = `${rig.root}/lake`
    const to = `${rig.root}/published`
    await rig.fetch({ ...selection, until: now - 5 * day }, { data })
    const stop = new AbortController()
    let clock = now * 1000
    const ended = await pitlake(
      rig.root,
      ['watch', ...flags, '--data', data, '--publish', to],
      { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey },
      {
        now: () => clock,
        sleep: async (ms) => {
          clock += ms
          if (existsSync(`${to}/versions/_delta_log`)) stop.abort()
          expect(clock).toBeLessThan((now + day) * 1000)
        },
        signal: stop.signal,
      },
    )
    expect([ended.code, ended.message]).toEqual([0, ''])
    using ledger = await Ledger.openToRead(data)
    const engine = await Engine.open()
    const [row] = await engine.rows(
      `SELECT max(lake_version)::DOUBLE AS version FROM read_parquet('${to}/versions/*.parquet')`,
    )
    engine.close()
    expect(row).toEqual({ version: ledger.head().version })
  }))
