import { spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { summary } from '../../src/ledger/held.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { type Bench, fetchKey, withBench } from '../helpers/fetching.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const now = Math.floor(Date.now() / 1000)
const since = now - 400 * 86_400
const selection = { assets: ['BTC', 'ETH'], paths: ['supply/*', 'blockchain/*', 'options/*'], since }
/** `make torture N=1000` sets the number. */
const kills = Number(process.env['PITLAKE_KILLS'] ?? 25)

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

/** When a signal is sent: so many milliseconds after the process began, or after it has said what it plans. */
interface Sent {
  readonly ms: number
  readonly after: 'start' | 'plan'
  readonly signal: NodeJS.Signals
}

/** Runs the real command; returns how it ended, and how long it lived after telling its plan. */
async function run(bench: Bench, signals: readonly Sent[] = [], from = since): Promise<Ended & { planned: number }> {
  const { assets, paths } = selection
  const args = ['fetch', '--json', '--assets', assets.join(','), '--paths', paths.join(','), '--since', String(from)]
  const env = {
    ...process.env,
    PITLAKE_METRICS_URL: bench.url,
    PITLAKE_METRICS_KEY: fetchKey,
    PITLAKE_DATA: bench.root,
  }
  const child = spawn(process.execPath, [main, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  let plannedAt = Number.NaN
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, out, err })),
  )
  const planned = new Promise<void>((resolve) =>
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString()
      if (Number.isNaN(plannedAt) && err.includes('plan:')) {
        plannedAt = performance.now()
        resolve()
      }
    }),
  )
  for (const { ms, after, signal } of signals) {
    if (after === 'plan') await Promise.race([planned, ended])
    await Promise.race([setTimeout(ms), ended])
    child.kill(signal)
  }
  return { ...(await ended), planned: performance.now() - plannedAt }
}

/** Mostly while it works: over the time that an undisturbed run takes after its plan; some before. */
function anyInstant(span: number): Sent {
  const early = Math.random() < 0.2
  return { ms: Math.random() * (early ? 600 : span), after: early ? 'start' : 'plan', signal: 'SIGKILL' }
}

/** The index says what the journal says. */
async function isWhole(root: string): Promise<void> {
  const ledger = await Ledger.open(root)
  const rebuilt = await Ledger.inMemory(root)
  expect(summary(ledger)).toEqual(summary(rebuilt))
  ledger.close()
  rebuilt.close()
}

test(
  `${kills} kills at random instants, then completion: the lake is that of an undisturbed run`,
  { timeout: 120_000 + kills * 20_000 },
  async () =>
    withBench(now, async (bench) => {
      bench.faults('slow-first-byte:ms=5')
      let killed = 0
      let span = 500
      for (let i = 0; i < kills; i++) {
        // Further back each time, so that there is always work to be killed.
        const from = now - Math.round((30 + (370 * i) / kills) * 86_400)
        const { signal, code, planned, err } = await run(bench, [anyInstant(span)], from)
        if (signal === 'SIGKILL') killed++
        else {
          expect([0, err]).toEqual([code, err])
          span = Math.max(100, planned)
        }
        await isWhole(bench.root)
      }
      expect(killed).toBeGreaterThan(kills / 3)
      const last = await run(bench)
      expect([0, last.err]).toEqual([last.code, last.err])
      expect(await bench.stored()).toEqual(bench.truth(selection))
      const again = JSON.parse((await run(bench)).out) as { points_added: number; files_added: number }
      expect(again).toMatchObject({ points_added: 0, files_added: 0 })
    }),
)

test(
  'the first interrupt finishes what is in flight and says how to go on; nothing is lost',
  { timeout: 300_000 },
  async () =>
    withBench(now, async (bench) => {
      bench.faults('slow-first-byte:ms=150')
      const stopped = await run(bench, [{ ms: 300, after: 'plan', signal: 'SIGINT' }])
      expect([5, stopped.err]).toEqual([stopped.code, stopped.err])
      expect(stopped.err).toMatch(/run the same command again/)
      const told = JSON.parse(stopped.out) as { stopped_by: string; points_added: number }
      expect(told.stopped_by).toBe('signal')
      expect(told.points_added).toBeGreaterThan(0)
      bench.faults()
      expect((await run(bench)).code).toBe(0)
      expect(await bench.stored()).toEqual(bench.truth(selection))
    }),
)

test('a second job on the same lake is refused and names the holder', { timeout: 300_000 }, async () =>
  withBench(now, async (bench) => {
    bench.faults('slow-first-byte:ms=300')
    const first = run(bench, [{ ms: 1500, after: 'plan', signal: 'SIGINT' }])
    await setTimeout(900)
    const second = await run(bench)
    expect(second.code).toBe(7)
    expect(second.err).toMatch(/another metrics job is at work.*pitlake fetch/)
    await first
  }),
)
