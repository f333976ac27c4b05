import { globSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { storedViolations } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { observedAgain } from '../../src/lake/ledger/lost-points.ts'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import { examined } from '../helpers/looking.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { heldPoints } from '../helpers/ledgers.ts'

const day = 86_400
const now = Date.UTC(2024, 5, 5, 12) / 1000
/** The first tells `computed_at`, the second does not: see `withoutClocks`. */
const paths = ['blockchain/block_height_pit', 'blockchain/block_count_pit']
const selection = { assets: ['BTC', 'ETH'], paths, since: now - 70 * day }

/** Every stored point with all of its columns. */
async function rowsOf(root: string): Promise<Record<string, unknown>[]> {
  const columns = 'epoch_us(t) AS t, v, o, extra, epoch_us(available_at) AS known, epoch_us(observed_at) AS seen, basis'
  const more = 'epoch_us(computed_at) AS computed, epoch_us(available_rule_at) AS rule'
  return await heldPoints(root, `metric, asset, "interval", ${columns}, ${more}`)
}

/** Loses every points file, as a disk would, and follows doctor's advice. */
async function lose(rig: Rig, which: (path: string) => boolean = () => true): Promise<number> {
  for (const path of globSync('points/**/*.parquet', { cwd: rig.root }).filter(which)) rmSync(join(rig.root, path))
  const { forgotten } = await examined(rig.root, rig.clock.now, { repair: true, forgetLost: true })
  return forgotten?.points ?? 0
}

async function again(rig: Rig) {
  using ledger = await Ledger.openToRead(rig.root)
  const found = observedAgain(ledger)
  return found
}

/** A provider that tells no `computed_at` of one path, and hides points of it until an instant. */
function withoutClocks(rig: Rig, hidden: readonly number[] = [], until = 0): void {
  const { sandbox } = rig
  const handle = sandbox.handle.bind(sandbox)
  const silent = async (request: Request): Promise<Response> => {
    const reply = await handle(request)
    if (!request.url.includes('block_count_pit') || request.url.includes('metadata') || !reply.ok) return reply
    const points = (await reply.json()) as { t: number; computed_at?: number }[]
    const shown = points.filter(({ t }) => rig.clock.now >= until || !hidden.includes(t))
    return Response.json(shown.map((point) => ({ ...point, computed_at: undefined })))
  }
  Object.assign(sandbox, { handle: silent })
}

test('L2: what was lost and comes again as it was is as if it had never been lost', async () =>
  await withRig(now, async (rig) => {
    withoutClocks(rig)
    await rig.fetch({ ...selection, until: now - 30 * day })
    rig.clock.now += day
    await rig.fetch(selection)
    rig.clock.now += 2 * day
    await rig.fetch(selection)
    const before = await rowsOf(rig.root)
    expect(new Set(before.map(({ basis }) => basis)).size).toBe(2)
    rig.clock.now += day
    expect(await lose(rig)).toBe(before.length)
    expect(await again(rig)).toHaveLength(4 * 4)
    expect(await rowsOf(rig.root)).toEqual([])
    rig.clock.now += day / 24
    await rig.fetch(selection)
    expect((await rowsOf(rig.root)).filter((row) => Number(row['seen']) < rig.clock.now * 1e6)).toEqual(before)
    expect(await again(rig)).toEqual([])
  }))

test('L2: points of a lost file are requested again after merging, after the loss of one file of a month, and if some came late', async () =>
  await withRig(now, async (rig) => {
    const awaited = { ...selection, since: now - 20 * day }
    const today = now - (now % day)
    withoutClocks(rig, [today - 3 * day, today - 2 * day], now + 2 * day)
    await rig.fetch(awaited)
    for (let n = 0; n < 4; n++) {
      rig.clock.now += day
      await rig.fetch(awaited)
      if (n === 2) await compact(rig.root, rewriteDeps({ nowMicros: () => rig.clock.now * 1e6 }))
    }
    const before = await rowsOf(rig.root)
    expect(new Set(before.map(({ basis }) => basis)).size).toBe(3)
    for (const file of ['recent', 'metric=']) {
      expect(await lose(rig, (path) => path.includes(file))).toBeGreaterThan(0)
      await rig.fetch(awaited)
      expect(await rowsOf(rig.root)).toEqual(before)
      expect(await again(rig)).toEqual([])
    }
  }))

test('L1, L2: a value that a violation records comes back from there, one that vanished too, and with them their month', async () =>
  await withRig(now, async (rig) => {
    withoutClocks(rig)
    await rig.fetch(selection)
    const before = await rowsOf(rig.root)
    const t = now - (now % day) - day
    const gone = now - (now % day) - 2 * day
    rig.faults(`rewrite@blockchain/*:t=${t},v=1.5`, `vanished@blockchain/block_count_pit:t=${gone}`)
    rig.clock.now += day
    expect((await rig.fetch(selection)).violations).toBe(6)
    const violations = async (): Promise<unknown[]> => {
      using ledger = await Ledger.openToRead(rig.root)
      return storedViolations(ledger).map(({ kind, stored, offered, stored_at }) => [kind, stored, offered, stored_at])
    }
    const found = await violations()
    await lose(rig)
    rig.clock.now += 3600
    await rig.fetch(selection)
    const then = (await rowsOf(rig.root)).filter((row) => Number(row['t']) / 1e6 < now - day)
    expect(then).toEqual(before.filter((row) => Number(row['t']) / 1e6 < now - day))
    expect(await violations()).toEqual(found)
    expect(await again(rig)).toEqual([])
  }))

test('L1: what was rewritten while it was lost is known from when it was observed again; its rule stands in', async () =>
  await withRig(now, async (rig) => {
    withoutClocks(rig)
    await rig.fetch(selection)
    const settled = async () => (await rowsOf(rig.root)).filter((row) => Number(row['t']) / 1e6 < now - day)
    const before = await settled()
    rig.clock.now += day
    await lose(rig)
    rig.faults(`rewrite@blockchain/*:t=${now - (now % day) - 9 * day},v=1.5`)
    rig.clock.now += 3600
    await rig.fetch(selection)
    const month = (row: Record<string, unknown>) => new Date(Number(row['t']) / 1000).toISOString().slice(0, 7)
    const after = await settled()
    const others = (row: Record<string, unknown>) => month(row) !== '2024-05'
    expect(after.filter(others)).toEqual(before.filter(others))
    const anew = after.filter((row) => !others(row))
    expect(anew.filter(({ v }) => v === 1.5)).toHaveLength(4)
    for (const [n, row] of anew.entries()) {
      const held = before.filter((one) => !others(one))[n]
      expect(row).toMatchObject({ t: held?.['t'], basis: 'observed', known: row['seen'] })
      // What the provider says is kept; it is no proof any more.
      const told = held?.['computed'] ?? (held?.['basis'] === 'provider' ? held['known'] : null)
      expect(row['computed']).toEqual(told)
      expect(Number(row['seen'])).toBeGreaterThanOrEqual(rig.clock.now * 1e6)
      expect(Number(row['rule'])).toBeLessThan(Number(row['seen']))
    }
    expect((await again(rig)).map((one) => [one.month, one.points, one.at !== null])).toEqual(
      Array.from({ length: 4 }, () => ['2024-05', 31, true]),
    )
    // Lost once more, and told as it was by then: its first clocks are gone for good, its value is not.
    await lose(rig)
    await rig.fetch(selection)
    expect((await settled()).map(({ t, v }) => [t, v])).toEqual(after.map(({ t, v }) => [t, v]))
  }))
