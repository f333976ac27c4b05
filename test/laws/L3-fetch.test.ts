import { spawn } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { summary } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type Rig, fetchKey, withRig } from '../helpers/fetching.ts'
import { heeded } from '../helpers/processes.ts'
import { rounds } from '../helpers/tiers.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const mortal = fileURLToPath(new URL('../helpers/mortal.ts', import.meta.url))
const now = Math.floor(Date.now() / 1000)
const since = now - 400 * 86_400
const selection = { assets: ['BTC', 'ETH'], paths: ['supply/*', 'blockchain/*', 'options/*'], since }
/** Number of kills. */
const kills = rounds('PITLAKE_KILLS', 2, 4)

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

/** A command at work: what a test may do to it, and how it ends. */
interface Running {
  readonly pid: number
  kill(signal: NodeJS.Signals): void
  /** It has said what it plans. */
  readonly planned: Promise<void>
  readonly ended: Promise<Ended>
}

/** Starts the real command; it dies before the n-th step of the disk if it is told to. */
function start(rig: Rig, from = since, dieAt = 0): Running {
  const { assets, paths } = selection
  const args = ['fetch', '--json', '--assets', assets.join(','), '--paths', paths.join(','), '--since', String(from)]
  const env = {
    ...process.env,
    PITLAKE_METRICS_URL: rig.url,
    PITLAKE_METRICS_KEY: fetchKey,
    PITLAKE_DATA: rig.root,
    DIE_AT: String(dieAt),
  }
  const preload = dieAt > 0 ? ['--import', mortal] : []
  const child = spawn(process.execPath, [...preload, main, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const ended = new Promise<Ended>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal, out, err })),
  )
  const planned = new Promise<void>((resolve) =>
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString()
      if (err.includes('plan:')) resolve()
    }),
  )
  return { pid: child.pid ?? 0, kill: (signal) => void child.kill(signal), planned, ended }
}

/** Holds the n-th request for points that comes from now on and those after it; tells when it is there. */
function gate(rig: Rig, n: number): { reached: Promise<void>; open: () => void } {
  let left = n
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  rig.onRequest(async ({ url }) => {
    if (!new URL(url).searchParams.has('s') || --left > 0) return
    reached.resolve()
    await opened.promise
  })
  return { reached: reached.promise, open: opened.resolve }
}

/** By turns before a step of the disk, while a request waits, and at any instant that the machine happens to be in. */
async function killed(rig: Rig, i: number, from: number): Promise<Ended> {
  rig.onRequest(() => undefined)
  const part = (i + Math.random()) / kills
  if (i % 2 === 0) {
    const ended = await start(rig, from, 1 + Math.floor(part * 60)).ended
    expect(ended).toMatchObject({ signal: 'SIGKILL' })
    return ended
  }
  if (i % 4 === 1) {
    const { reached, open } = gate(rig, 1 + Math.floor(part * 20))
    const running = start(rig, from)
    await Promise.race([reached, running.ended])
    running.kill('SIGKILL')
    const ended = await running.ended
    open()
    expect(ended).toMatchObject({ signal: 'SIGKILL' })
    return ended
  }
  const running = start(rig, from)
  if (Math.random() < 0.8) await Promise.race([running.planned, running.ended])
  await Promise.race([setTimeout(Math.random() * 1000), running.ended])
  running.kill('SIGKILL')
  return await running.ended
}

/** The index says what the journal says. */
async function isWhole(root: string): Promise<void> {
  using ledger = await Ledger.open(root)
  using rebuilt = await Ledger.inMemory(root)
  expect(summary(ledger)).toEqual(summary(rebuilt))
}

test(
  `${kills} kills at random instants, then completion: the lake is that of an undisturbed run`,
  { timeout: 120_000 + kills * 20_000 },
  async () =>
    withRig(now, async (rig) => {
      for (let i = 0; i < kills; i++) {
        // Further back each time, so that there is always work to be killed.
        const { signal, code, err } = await killed(rig, i, now - Math.round((30 + (370 * i) / kills) * 86_400))
        if (signal !== 'SIGKILL') expect([0, err]).toEqual([code, err])
        await isWhole(rig.root)
      }
      const last = await start(rig).ended
      expect([0, last.err]).toEqual([last.code, last.err])
      expect(await rig.stored()).toEqual(rig.truth(selection))
      const again = JSON.parse((await start(rig).ended).out) as { points_added: number; files_added: number }
      expect(again).toMatchObject({ points_added: 0, files_added: 0 })
    }),
)

test('the first interrupt finishes what is in flight and says how to go on; nothing is lost', async () =>
  withRig(now, async (rig) => {
    const { reached, open } = gate(rig, 3)
    const running = start(rig)
    await reached
    running.kill('SIGINT')
    await heeded(running.pid)
    open()
    const stopped = await running.ended
    expect([5, stopped.err]).toEqual([stopped.code, stopped.err])
    expect(stopped.err).toMatch(/run the same command again/)
    const told = JSON.parse(stopped.out) as { stopped_by: string; points_added: number }
    expect(told.stopped_by).toBe('signal')
    expect(told.points_added).toBeGreaterThan(0)
    expect((await start(rig).ended).code).toBe(0)
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

test('a second job on the same lake is refused and names the holder', async () =>
  withRig(now, async (rig) => {
    const { reached, open } = gate(rig, 1)
    const first = start(rig)
    await reached
    const other = start(rig)
    // One that is let in tells its plan, and would wait for answers as the first does.
    const second = await Promise.race([other.ended, other.planned.then(() => null)])
    if (second === null) other.kill('SIGKILL')
    expect(second?.code).toBe(7)
    expect(second?.err).toMatch(/another metrics job is at work.*pitlake fetch/)
    first.kill('SIGINT')
    open()
    await first.ended
  }))
