import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { withRig } from '../helpers/fetching.ts'
import { withProvider } from '../helpers/provider.ts'

const now = Date.UTC(2026, 2, 4, 12) / 1000
const selection = { assets: ['BTC', 'ETH'], paths: ['blockchain/*', 'supply/*'], since: now - 30 * 86_400 }

interface Run {
  plan: Record<string, number>
  actual: Record<string, number>
  stopped_by: string | null
  exit_code: number
  ended_at: number
  started_at: number
}

async function runs(root: string): Promise<{ runs: Run[]; attempts: number[] }> {
  const ledger = await Ledger.openToRead(root)
  const rows = ledger.statement('SELECT * FROM runs ORDER BY started_at').all()
  const requests = ledger.statement('SELECT attempts FROM requests WHERE series IS NOT NULL').all()
  ledger.close()
  return {
    runs: rows.map((row) => ({
      stopped_by: row['stopped_by'] === null ? null : String(row['stopped_by']),
      exit_code: Number(row['exit_code']),
      ended_at: Number(row['ended_at']),
      started_at: Number(row['started_at']),
      plan: JSON.parse(String(row['plan'])) as Run['plan'],
      actual: JSON.parse(String(row['actual'])) as Run['actual'],
    })),
    attempts: requests.map((row) => Number(row['attempts'])),
  }
}

test('a run records its plan with its real cost, and each request with its attempts', async () =>
  withRig(now, async (rig) => {
    const done = await rig.fetch(selection)
    const { runs: all, attempts } = await runs(rig.root)
    const [first] = all
    expect(first?.plan).toMatchObject({ requests: done.requests })
    expect(first?.actual).toMatchObject({
      requests: done.requests,
      points: done.points_added,
      credits: first?.plan['credits'],
    })
    expect(first?.actual['bytes']).toBeGreaterThan(1000)
    expect(first?.actual['seconds']).toBeGreaterThan(0)
    expect([first?.stopped_by, first?.exit_code]).toEqual([null, 0])
    expect(first?.ended_at).toBeGreaterThan(first?.started_at ?? Infinity)
    expect(new Set(attempts)).toEqual(new Set([1]))
  }))

test('repeated and early ended runs say so', async () =>
  withRig(now, async (rig) => {
    rig.faults('status-503:each,first=2,share=0.5')
    const stopped = await rig.fetch(selection, 4)
    rig.clock.now += 60
    const rest = await rig.fetch(selection)
    const { runs: all, attempts } = await runs(rig.root)
    expect(all.map(({ stopped_by, exit_code }) => [stopped_by, exit_code])).toEqual([
      ['max_requests', 5],
      [null, 0],
    ])
    expect(all.map(({ actual }) => actual['requests'])).toEqual([stopped.requests, rest.requests])
    expect(Math.max(...attempts)).toBe(3)
    expect(attempts.reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(stopped.requests + rest.requests)
    expect(attempts.reduce((sum, n) => sum + n, 0)).toBeGreaterThanOrEqual(rest.requests)
  }))

/**
 * How many versions a fetch of 420 series makes, and their points, while its clock goes on by so many milliseconds a
 * look and by what it waits.
 */
async function versionsOf(ms: number): Promise<{ versions: number; points: number }> {
  let seen = { versions: 0, points: 0 }
  await withProvider(now, async (own) => {
    own.answer((path) => (path === 'assets' ? { status: 404 } : [{ t: now - (now % 86_400) - 2 * 86_400, v: 1 }]))
    let at = now * 1000
    const assets = Array.from({ length: 420 }, (_, n) => `A${n}`)
    const about = { assets, paths: ['blockchain/block_count_pit'], since: now - 3 * 86_400, until: now - 86_400 }
    const { points_added: points } = await own.fetch(about, {
      deps: { now: () => (at += ms), wait: async (some) => void (at += some) },
      metrics: { requestsPerMinute: 1_000_000 },
    })
    using ledger = await Ledger.openToRead(own.root)
    seen = { versions: ledger.head().version, points }
  })
  return seen
}

test('quick answers share one version, and no answer waits long for others', async () => {
  expect(await versionsOf(0.001)).toEqual({ versions: 1, points: 420 })
  expect(await versionsOf(100)).toEqual({ versions: 3, points: 420 })
})

test('a budget is never passed by what is sent, and the next run asks what it left', async () =>
  withRig(now, async (rig) => {
    const paths = ['supply/current_pit', 'addresses/active_count_pit', 'indicators/asol_pit']
    const six = { assets: ['BTC', 'ETH'], paths, intervals: ['24h'], since: now - 10 * 86_400 }
    const sent = (): number => rig.sandbox.requests().filter(({ path }) => path.endsWith('_pit')).length
    // ETH costs two credits: one, two and one are spent, then the next two would be too much.
    const cut = await rig.fetch(six, { input: { budget: 4 } })
    expect(cut).toMatchObject({ requests: 3, stopped_by: 'budget' })
    expect(sent()).toBe(3)
    const rest = await rig.fetch(six, { input: { budget: 5 } })
    expect(rest).toMatchObject({ requests: 3, stopped_by: null })
    expect(sent()).toBe(6)
    expect(await rig.stored()).toEqual(rig.truth(six))
  }))
