// @module-tag full
import { rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Selection } from '../../src/catalog/series.ts'
import { loadCoverage, storedVersions, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import type { IngestDeps } from '../../src/sources/metrics/run.ts'
import { loadMetadata, standingMetadata } from '../../src/sources/metrics/metadata.ts'
import type { Plan } from '../../src/sources/metrics/plan.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { formatDate } from '../../src/base/time.ts'
import { type Rig, type Changes, withRig } from '../helpers/fetching.ts'
import { leaping } from '../helpers/leaping.ts'
import { examined } from '../helpers/looking.ts'
import { withProvider } from '../helpers/provider.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { reading } from '../helpers/ledgers.ts'
import { sample } from '../helpers/tiers.ts'

type IngestEvent = Parameters<IngestDeps['onEvent']>[0]

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const today = formatDate(now)
const since = Date.UTC(2026, 0, 23) / 1000
const told: Changes = { input: { catalogue } }
const active = 'addresses/active_count_pit'
const supply = 'supply/current_pit'
const burned = 'supply/burned_pit'
const unlisted = `not in the metadata of ${today}`

/** Requests to one side since the last look, by status. */
function requestsOf({ sandbox }: Rig, seen = { n: 0 }): (api: string) => Record<number, number> {
  return (api) => {
    const fresh = sandbox.requests().slice(seen.n)
    const own = fresh.filter((request) => request.api === api)
    if (api === 'metrics') seen.n = sandbox.requests().length
    const listed = own.filter(({ path }) => !path.endsWith('/assets'))
    return Object.fromEntries(
      Object.entries(Object.groupBy(listed, ({ status }) => status)).map(([s, of]) => [s, of?.length ?? 0]),
    )
  }
}

/** The windows of each series as `since..until state reason`, in days from the first wanted one. */
const windows = async (root: string): Promise<Record<string, string[]>> =>
  await reading(root, (ledger) =>
    Object.fromEntries(
      [...loadCoverage(ledger)].map(([id, rows]) => [
        id.split('|').slice(0, 2).join(' '),
        rows.map(({ since: from, until, state, reason }) => {
          const at = (t: number) => Math.round((t - since) / day)
          return `${at(from)}..${at(until)} ${reason ?? state}`
        }),
      ]),
    ),
  )

const versions = async (root: string): Promise<number> => await reading(root, (ledger) => storedVersions(ledger).length)

test('a fetch with metadata has no refused request and stores the points of a fetch without, each once', async () =>
  withRig(now, async (rig) => {
    const selection = { assets: ['BTC', 'ETH', 'USDC'], paths: ['supply/*', 'addresses/*', 'protocols/*'], since }
    const asked = requestsOf(rig)
    const done = await rig.fetch(selection, told)
    expect(asked('metadata')).toEqual({ 200: 30 })
    expect(Object.keys(asked('metrics'))).toEqual(['200'])
    expect(done).toMatchObject({ windows: { failed: 0 }, stopped_by: null, violations: 0 })
    expect(await rig.stored()).toEqual(rig.truth(selection))
    const left = Object.entries(await windows(rig.root)).filter(([, rows]) =>
      rows.some((row) => row.includes('metadata')),
    )
    expect(left.length).toBe(done.windows.unsupported)
    expect(left.length).toBeGreaterThan(10)
    for (const [, rows] of left) expect(rows).toEqual([expect.stringMatching(new RegExp(` ${unlisted}$`))])
    expect(await rig.fetch(selection, told)).toMatchObject({ version: done.version })
    rig.clock.now += day
    await rig.fetch(selection, told)
    const later = await windows(rig.root)
    for (const [id] of left) expect([id, later[id]]).toEqual([id, [`0..41 ${unlisted}`]])
    expect(asked('metadata')).toEqual({})
    expect(Object.keys(asked('metrics'))).toEqual(['200'])
  }))

test('metadata count neither against --max-requests nor as credits', async () =>
  withRig(now, async (rig) => {
    const plans: Plan[] = []
    const onEvent = (event: IngestEvent) => void (event.kind === 'planned' && plans.push(event.plan))
    const selection = { assets: ['BTC'], paths: ['supply/*'], since }
    const asked = requestsOf(rig)
    const done = await rig.fetch(selection, { input: { catalogue, maxRequests: 2 }, deps: { onEvent } })
    expect(done).toMatchObject({ requests: 2, stopped_by: 'max_requests' })
    expect(asked('metadata')[200]).toBe(5)
    expect(asked('metrics')).toEqual({ 200: 2 })
    const spent = await reading(rig.root, (ledger) =>
      ledger.statement("SELECT sum(credits) AS n FROM requests WHERE path LIKE '/v1/metadata/%'").get(),
    )
    expect(spent).toEqual({ n: 0 })
    expect(plans[0]?.totals.requests).toBe(plans[0]?.asks.length)
  }))

test('metadata are requested at 1,200 a minute unless headers say less, however slow the requests for points are', async () =>
  withProvider(now, async (own) => {
    const clock = leaping(() => own.clock.now)
    const sent: number[] = []
    own.answer((path) => {
      if (!path.startsWith('/v1/metadata')) return []
      sent.push(clock.elapsed())
      return { parameters: { a: ['BTC'] } }
    })
    await own.fetch(
      { assets: ['BTC'], paths: ['*'], since },
      {
        input: { catalogue, maxRequests: 2 },
        metrics: { requestsPerMinute: 2 },
        deps: { ...clock, wait: clock.sleep },
      },
    )
    expect(sent.length).toBeGreaterThan(100)
    const took = Math.max(...sent) - Math.min(...sent)
    expect(took).toBeGreaterThan((sent.length - 10) * 50)
    expect(took).toBeLessThan(60_000)
  }))

test('metadata are read again after seven days: unchanged ones make no version, a wider set is requested', async () =>
  withRig(now, async (rig) => {
    const selection = { assets: ['BTC', 'ETH'], paths: [active, supply], since, until: since + 37 * day }
    const asked = requestsOf(rig)
    rig.faults(`metadata-says@metadata/${active}:parameter=a,values=ETH`)
    await rig.fetch(selection, told)
    expect((await windows(rig.root))[`${active} BTC`]).toEqual([`0..37 ${unlisted}`])
    const before = await versions(rig.root)
    expect([asked('metadata'), asked('metrics')]).toEqual([{ 200: 2 }, { 200: 3 }])
    rig.clock.now += 7 * day - 60
    await rig.fetch(selection, told)
    expect([asked('metadata'), asked('metrics')]).toEqual([{}, {}])
    rig.clock.now += 120
    await rig.fetch(selection, told)
    expect([asked('metadata'), asked('metrics')]).toEqual([{ 200: 2 }, {}])
    expect(await versions(rig.root)).toBe(before)
    // Another list that leaves it out, too: its one row keeps the date on which it first was left out.
    rig.faults(`metadata-says@metadata/${active}:parameter=a,values=ETH+SOL`)
    rig.clock.now += 7 * day + 60
    await rig.fetch({ assets: ['BTC'], paths: [active], since, until: since + 40 * day }, told)
    expect((await windows(rig.root))[`${active} BTC`]).toEqual([expect.stringMatching(new RegExp(` ${unlisted}$`))])
    expect([asked('metadata'), asked('metrics')]).toEqual([{ 200: 1 }, {}])
    rig.faults()
    rig.clock.now += 7 * day + 60
    await rig.fetch(selection, told)
    expect([asked('metadata'), asked('metrics')]).toEqual([{ 200: 2 }, { 200: 1 }])
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

test('a series with points, or named exactly by flags, is requested whatever metadata say', async () =>
  withRig(now, async (rig) => {
    const wide: Selection = { assets: ['BTC', 'ETH'], paths: [active], since }
    await rig.fetch({ ...wide, assets: ['BTC'] })
    rig.clock.now += 3 * day
    rig.faults('metadata-says:parameter=a,values=SOL,t=2030-01-01')
    expect(await rig.fetch(wide, told)).toMatchObject({ points_added: 3, windows: { unsupported: 1 } })
    const exact = { ...wide, assets: ['ETH'], exact: true }
    expect((await rig.fetch(exact, told)).points_added).toBeGreaterThan(30)
    rig.clock.now += day
    expect(await rig.fetch(wide, told)).toMatchObject({ points_added: 2, windows: { unsupported: 0 } })
    expect(await rig.stored()).toEqual(rig.truth(wide))
  }))

test('points of a lost file are requested again even if metadata rule them out', async () =>
  withRig(now, async (rig) => {
    const selection: Selection = { assets: ['BTC', 'ETH'], paths: [active, supply], since }
    await rig.fetch(selection)
    const [lost, ...more] = await reading(rig.root, (ledger) => liveFiles(ledger, { table: 'points' }))
    expect(more).toEqual([])
    rmSync(inLake(rig.root, lost?.path ?? ''))
    const { forgotten } = await examined(rig.root, rig.clock.now, { repair: true, forgetLost: true })
    expect(forgotten?.points).toBe(lost?.rows)
    rig.faults('metadata-says:parameter=a,values=SOL,t=2030-01-01')
    await rig.fetch(selection, told)
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

test('a window before the beginning in metadata is empty and not requested until the beginning moves', async () =>
  withRig(now, async (rig) => {
    const selection = { assets: ['BTC'], paths: [active], since }
    const asked = requestsOf(rig)
    rig.faults(`metadata-says:t=${formatDate(since + 31 * day)}T05:00Z`)
    await rig.fetch(selection, told)
    const [first = '', ...rest] = (await windows(rig.root))[`${active} BTC`] ?? []
    expect(first).toBe("0..31 before the provider's start")
    expect(rest.join()).not.toContain('start')
    expect(asked('metrics')).toEqual({ 200: 1 })
    const begun = formatDate(Number((await rig.stored())[0]?.split(' ')[6]))
    expect(begun >= formatDate(since + 31 * day)).toBe(true)
    await rig.fetch(selection, told)
    const earliest = rig.sandbox.requests().map(({ query }) => Number(query['s'] ?? Infinity))
    expect(Math.min(...earliest)).toBe(since + 31 * day)
    rig.clock.now += 8 * day
    await rig.fetch(selection, told)
    const window = rig.sandbox
      .requests()
      .filter(({ api, path }) => api === 'metrics' && !path.endsWith('/assets'))
      .at(-1)?.query
    expect(Number(window?.['s'])).toBeGreaterThan(since + 31 * day)
    asked('metrics')
    rig.faults(`metadata-says:t=${formatDate(since + 11 * day)}`)
    rig.clock.now += 8 * day
    await rig.fetch(selection, told)
    expect(await rig.stored()).toEqual(rig.truth(selection))
    rig.clock.now += day
    await rig.fetch(selection, told)
    expect(Number(asked('metrics')[200])).toBeLessThanOrEqual(3)
  }))

test('metadata that lie are overruled by answers: a listed series is refused, a missing one has points', async () =>
  withRig(now, async (rig) => {
    const wide = { assets: ['BTC', 'ETH', 'USDC'], paths: ['supply/*'], since }
    rig.faults(
      'metadata-says@metadata/supply/burned_pit:parameter=a,values=BTC+USDC',
      `metadata-says@metadata/${supply}:parameter=a,values=BTC`,
    )
    expect(await rig.fetch(wide, told)).toMatchObject({ windows: { failed: 0 }, stopped_by: null })
    const rows = await windows(rig.root)
    expect(rows[`${burned} BTC`]?.[0]).toMatch(/ 400: /)
    expect(rows[`${burned} ETH`]?.[0]).toMatch(/ not in the metadata of /)
    await rig.fetch({ assets: ['ETH', 'USDC'], paths: [burned, supply], since, exact: true }, told)
    rig.clock.now += 8 * day
    await rig.fetch(wide, told)
    const stored = await rig.stored()
    expect(stored.filter((line) => line.startsWith(`${burned} ETH`)).length).toBeGreaterThan(40)
    expect(stored).toEqual(rig.truth(wide))
  }))

test.each(sample(['gone-404', 'status-401', 'html', 'poison-object', 'no-content-204', 'reset'], 6))(
  'a fetch without metadata (%s) tries each window, and stops requesting metadata after a definite answer',
  async (fault) =>
    withRig(now, async (rig) => {
      const selection = { assets: ['BTC', 'ETH'], paths: ['supply/*'], since }
      rig.faults(`${fault}@metadata`)
      const asked = requestsOf(rig)
      expect(await rig.fetch(selection, told)).toMatchObject({ windows: { failed: 0 }, stopped_by: null })
      const tried = Object.values(asked('metadata')).reduce((sum, n) => sum + n, 0)
      expect([tried > 0, tried < 12]).toEqual([true, true])
      expect(asked('metrics')[400]).toBeGreaterThan(0)
      expect(await rig.stored()).toEqual(rig.truth(selection))
      await rig.fetch(selection, told)
      await rig.fetch(selection, told)
      asked('metrics')
      await rig.fetch(selection, told)
      expect(Object.keys(asked('metadata'))).toEqual(fault === 'reset' ? ['0'] : [])
    }),
)

test('a series that metadata left out is new to the plan once requested', async () =>
  withRig(now, async (rig) => {
    const plans: Plan[] = []
    const onEvent = (event: IngestEvent) => void (event.kind === 'planned' && plans.push(event.plan))
    const wide: Selection = { assets: ['BTC', 'ETH'], paths: [active], since }
    rig.faults(`metadata-says:parameter=a,values=ETH,t=${formatDate(since + 11 * day)}`)
    await rig.fetch(wide, told)
    expect(await windows(rig.root)).toMatchObject({
      [`${active} BTC`]: [`0..40 ${unlisted}`],
      [`${active} ETH`]: ["0..11 before the provider's start", '11..40 covered'],
    })
    const { points_added } = await rig.fetch({ ...wide, exact: true }, { ...told, deps: { onEvent } })
    expect(plans[0]?.totals.points).toBe(40 + 11)
    expect(points_added).toBeGreaterThan(48)
  }))

test.each(sample(['gone-404', 'status-401', 'html', 'poison-object', 'status-500'], 5))(
  'series that metadata left out are tried once metadata are gone (%s), but not after a fault',
  async (fault) =>
    withRig(now, async (rig) => {
      const selection = { assets: ['BTC', 'ETH'], paths: ['addresses/active_count*', 'supply/*'], since }
      rig.faults(`metadata-says@metadata/${active}:parameter=a,values=ETH`)
      await rig.fetch(selection, told)
      const known = await reading(rig.root, loadMetadata)
      rig.clock.now += 8 * day
      rig.faults(`${fault}@metadata`)
      await rig.fetch(selection, told)
      const whole = rig.truth(selection)
      if (fault !== 'status-500') {
        expect(await rig.stored()).toEqual(whole)
        expect(await reading(rig.root, standingMetadata)).toEqual(new Map())
      } else {
        expect(await rig.stored()).toEqual(whole.filter((line) => !line.startsWith(`${active} BTC`)))
        expect(await reading(rig.root, standingMetadata)).toEqual(known)
      }
      // Once they are back they count again, with the date on which they were first read so.
      rig.clock.now += 8 * day
      rig.faults(`metadata-says@metadata/${active}:parameter=a,values=ETH`)
      await rig.fetch(selection, told)
      expect(await reading(rig.root, standingMetadata)).toEqual(known)
    }),
)

test('a few paths without metadata say nothing of others that were read lately', async () =>
  withRig(now, async (rig) => {
    const asked = requestsOf(rig)
    await rig.fetch({ assets: ['BTC'], paths: ['supply/*'], since }, told)
    rig.clock.now += day
    rig.faults('gone-404@metadata/addresses/*')
    const wide = { assets: ['BTC', 'USDC'], paths: ['supply/*', 'addresses/active_count*', 'addresses/loss*'], since }
    asked('metrics')
    await rig.fetch({ ...wide, assets: ['BTC'], paths: ['addresses/*'] }, told)
    expect(asked('metadata')).toEqual({ 404: 3 })
    asked('metrics')
    await rig.fetch({ ...wide, paths: ['supply/*'] }, told)
    expect(Object.keys(asked('metrics'))).toEqual(['200'])
    expect(
      Object.values(await windows(rig.root))
        .flat()
        .join(),
    ).toContain('not in the metadata of')
  }))

test('metadata come back from the journal alone', async () =>
  withRig(now, async (rig) => {
    await rig.fetch({ assets: ['BTC'], paths: [active, supply], since }, told)
    const held = await reading(rig.root, loadMetadata)
    expect([...held.keys()].toSorted()).toEqual([active, supply])
    using rebuilt = await Ledger.rebuild(rig.root)
    expect(loadMetadata(rebuilt)).toEqual(held)
  }))

test('metadata of a placeholder are never requested from a real provider', async () =>
  withProvider(now, async (own) => {
    const points = Array.from({ length: 5 }, (_, i) => ({ t: Date.UTC(2026, 1, 1) / 1000 + i * day, v: i }))
    own.answer((path) => (path.startsWith('/v1/metadata') ? { parameters: { a: ['BTC'] } } : points))
    const selection = {
      assets: ['BTC', 'ETH'],
      paths: ['protocols/*', 'supply/*'],
      since: Date.UTC(2026, 1, 1) / 1000,
      until: Date.UTC(2026, 1, 6) / 1000,
    }
    await own.fetch(selection, told)
    await own.fetch(selection, told)
    const asked = own.seen.filter((url) => url.includes('/metadata/'))
    expect(asked.filter((url) => url.includes('lendingprotocol'))).toEqual([])
    expect(asked.length).toBeGreaterThan(0)
    expect(new Set(asked).size).toBe(asked.length)
  }))
