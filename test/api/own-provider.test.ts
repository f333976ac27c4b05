import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { applySettings, resolveSettings } from '../../src/catalog/settings.ts'
import { auditAvailability } from '../../src/trust/availability-audit.ts'
import { judgeSeries } from '../../src/interfaces/report/freshness.ts'
import { readStatusPage } from '../../src/interfaces/report/status-page.ts'
import { readStanding } from '../../src/interfaces/report/status.ts'
import { verdict } from '../../src/sources/metrics/run-summary.ts'
import { Engine, quoteList } from '../../src/lake/store/engine.ts'
import { loadCoverage, storedSeries, storedWeekStart, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { checkContents } from '../../src/maintenance/upkeep/verify.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { sharesOf } from '../../src/sources/points/files.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { withRig } from '../helpers/fetching.ts'
import { withProvider } from '../helpers/provider.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const start = Date.UTC(2026, 1, 1) / 1000
const skew = 'options/50delta_skew_call_put_all_pit'
const lending = 'protocols/lendingprotocol_v3_available_liquidity_sum_by_token_pit'
const count = 'blockchain/block_count_pit'

const points = (spacing: number, n: number, from = start) =>
  Array.from({ length: n }, (_, i) => ({ t: from + i * spacing, v: i }))

const windowsOf = async (root: string): Promise<string[]> =>
  await reading(root, (ledger) =>
    [...loadCoverage(ledger).values()].flat().map(({ state, reason }) => `${state} ${reason}`),
  )

const settledOf = async (root: string): Promise<unknown[]> =>
  await reading(root, (ledger) => [...storedSeries(ledger).values()].map(({ settled }) => settled))

test('an endpoint without an interval is stored under the spacing that its first body shows, for good', async () =>
  withProvider(now, async (own) => {
    const selection = { assets: ['BTC'], paths: [skew], since: start, until: start + 20 * day }
    own.answer((path) => (path === skew ? points(3600, 48) : { status: 404 }))
    expect(await own.fetch(selection)).toMatchObject({ points_added: 48, windows: { failed: 0 } })
    expect(own.seen.filter((url) => url.includes('50delta'))).toEqual([expect.not.stringContaining('i=')])
    expect(await settledOf(own.root)).toEqual(['1h'])
    const shares = await reading(own.root, (ledger) => liveFiles(ledger, { table: 'points' }).flatMap(sharesOf))
    const places = shares.map(({ interval }) => interval)
    expect(places).toEqual(['1h'])
    expect(await reading(own.root, async (ledger) => checkContents(ledger, new Set()))).toMatchObject({ findings: [] })
    own.answer((path) => (path === skew ? points(day, 20) : { status: 404 }))
    own.clock.now += day
    expect(await own.fetch({ ...selection, until: undefined })).toMatchObject({ points_added: 0 })
    expect(await windowsOf(own.root)).toContain('failed body: points 24h apart in a series of 1h')
    expect(await settledOf(own.root)).toEqual(['1h'])
  }))

test('one or two points are stored under 24h until more points show the spacing', async () =>
  withProvider(now, async (own) => {
    const selection = { assets: ['BTC'], paths: [skew], since: start }
    own.answer((path) => (path === skew ? points(day, 2) : { status: 404 }))
    expect(await own.fetch(selection)).toMatchObject({ points_added: 2 })
    expect(await settledOf(own.root)).toEqual([null])
    own.answer((path) => (path === skew ? points(day, 31) : { status: 404 }))
    own.clock.now += day
    expect(await own.fetch(selection)).toMatchObject({ points_added: 29, violations: 0 })
    expect(await settledOf(own.root)).toEqual(['24h'])
  }))

test.each([
  ['10m', 600],
  ['1w', 7 * day],
] as const)('points with a spacing of %s are stored under the interval of that length', async (interval, spacing) =>
  withProvider(now, async (own) => {
    const monday = Date.UTC(2025, 11, 1) / 1000
    own.answer((path) => (path === skew ? points(spacing, 5, monday) : { status: 404 }))
    expect(await own.fetch({ assets: ['BTC'], paths: [skew], since: monday })).toMatchObject({ points_added: 5 })
    expect(await settledOf(own.root)).toEqual([interval])
    const seen = own.seen.length
    await own.fetch({ assets: ['BTC'], paths: [skew], since: monday, until: monday + 14 * day })
    expect((await windowsOf(own.root)).filter((window) => window.startsWith('failed'))).toEqual([])
    expect(own.seen.length - seen).toBeLessThanOrEqual(1)
  }),
)

test('weeks that begin on a different day are refused with the name of that day, and stored if that day is configured', async () =>
  withProvider(now, async (own) => {
    const sunday = Date.UTC(2025, 10, 30) / 1000
    const selection = { assets: ['BTC'], paths: [count], intervals: ['1w'], since: sunday }
    own.answer((path) => (path === 'assets' ? ['BTC'] : points(7 * day, 13, sunday)))
    await own.fetch(selection)
    expect(await windowsOf(own.root)).toEqual([
      'failed body: weeks that begin on sunday: set metrics.week_start (monday)',
    ])
    const set = { metrics: { weekStart: 'sunday' } } as const
    expect(await own.fetch(selection, set)).toMatchObject({ points_added: 13, windows: { failed: 0, covered: 1 } })
    expect(await own.fetch(selection, set)).toMatchObject({ requests: 0 })
    own.answer((path) => (path === 'assets' ? ['BTC'] : points(7 * day, 14, sunday)))
    own.clock.now += 7 * day
    expect(await own.fetch(selection, set)).toMatchObject({ points_added: 1, violations: 0 })
  }))

test('Sunday weeks are due on Sundays, and what is resampled to weeks begins with them', async () =>
  withProvider(now, async (own) => {
    const sunday = Date.UTC(2025, 10, 30) / 1000
    const set = { metrics: { weekStart: 'sunday' } } as const
    own.answer((path, query) => {
      if (path === 'assets') return ['BTC']
      if (query.get('i') !== '1w') return points(day, 95, sunday)
      return points(7 * day, 14, sunday).map((point) => ({ ...point, computed_at: point.t + 7 * day + 7200 }))
    })
    // The fourteenth week ends on Sunday, March 8.
    own.clock.now = Date.UTC(2026, 2, 8, 6) / 1000
    const selection = { assets: ['BTC'], paths: [count], intervals: ['1w', '24h'], since: sunday }
    await own.fetch(selection, set)
    const ledger = await Ledger.openToRead(own.root)
    try {
      const judged = (now: number) =>
        judgeSeries(
          storedSeries(ledger).values(),
          loadCoverage(ledger),
          new Map(),
          catalogue,
          now,
          storedWeekStart(ledger),
        )
          .filter(({ interval }) => interval === '1w')
          .map(({ fresh }) => fresh)
      expect(storedWeekStart(ledger)).toBe('sunday')
      expect(judged(Date.UTC(2026, 2, 8, 12) / 1000)).toEqual(['fresh'])
      expect(judged(Date.UTC(2026, 2, 15, 12) / 1000)).toEqual(['behind'])
      const at = own.clock.now
      const input = { settings: resolveSettings({ flags: { data: own.root }, env: {}, cwd: '/' }), catalogue, now: at }
      const { endpoints } = await readStatusPage(ledger, input, await readStanding(ledger, input), 'pitlake test')
      // Of November there are a week and a day: both begin on its last Sunday.
      expect(endpoints.map(({ due, held }) => [due[0], held[0]])).toEqual([[2, 2]])
      writeFileSync(join(own.root, 'pitlake.yaml'), `metrics: { availability: { ${count}: { 1w: { lag: 1m } } } }`)
      const hasty = applySettings(catalogue, resolveSettings({ flags: {}, env: {}, cwd: own.root }))
      const [change] = (await auditAvailability(ledger, { catalogue: hasty, paths: undefined, overrides: {}, now: at }))
        .changes
      expect(change).toMatchObject({ interval: '1w', newest_before: '2026-03-01T00:00Z' })
    } finally {
      ledger.close()
    }
    await makeViews(own.root)
    await withViews(own.root, async (engine) => {
      const rows = await engine.rows(
        `SELECT strftime(t, '%a') AS day, min(parts) AS least, bool_and(complete) AS complete
         FROM resample('${count}', '24h', '1w', 'sum') WHERE parts = 7 GROUP BY ALL`,
      )
      expect(rows).toEqual([{ day: 'Sun', least: 7n, complete: true }])
      const [join] = await engine.rows(
        `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2026-03-08 12:00:00Z' AS ts)
         SELECT epoch(t) AS t, v FROM pit_join('d', '${count}', '1w')`,
      )
      expect(join).toEqual({ t: sunday + 13 * 7 * day, v: 13 })
      const gaps = await engine.rows(`SELECT gaps FROM series WHERE "interval" = '1w'`)
      expect(gaps).toEqual([{ gaps: 0n }])
    })
  }))

test('placeholder names are requested from the sandbox only', async () =>
  withProvider(now, async (own) => {
    const selection = { assets: ['BTC'], paths: [lending, count], since: start, until: start + 5 * day }
    own.answer((path) => (path === 'assets' ? ['BTC'] : points(day, 5)))
    expect(await own.fetch(selection)).toMatchObject({ windows: { failed: 0 } })
    expect(own.seen.filter((url) => url.includes('lendingprotocol'))).toEqual([])
    expect(await windowsOf(own.root)).toContain(
      'unsupported placeholder lendingprotocol in the path: map it under metrics.paths',
    )
    const asked = own.seen.length
    expect(await own.fetch(selection)).toMatchObject({ requests: 0 })
    expect(own.seen.length).toBe(asked)
    await own.fetch(selection, { metrics: { paths: { [lending]: 'protocols/real_pit' } } })
    expect(own.seen.some((url) => url.startsWith('/v1/metrics/protocols/real_pit?'))).toBe(true)
  }))

test('if only placeholders are selected, one request for the listing finds out who answers', async () =>
  withProvider(now, async (own) => {
    own.answer(() => [])
    const selection = { assets: ['BTC'], paths: [lending], since: start, until: start + 5 * day }
    expect(await own.fetch(selection)).toMatchObject({ requests: 0, stopped_by: null })
    expect(own.seen).toEqual(['/v1/metrics/assets'])
    expect(await windowsOf(own.root)).toEqual([expect.stringMatching(/^unsupported placeholder/)])
  }))

test('an asset that has points without being listed is no typing error', async () =>
  withProvider(now, async (own) => {
    own.answer((path, query) => {
      if (path === 'assets') return [{ id: 'BTC' }]
      return query.get('a') === 'BTCD' ? points(day, 31) : []
    })
    const summary = await own.fetch({ assets: ['BTCD', 'BTCC'], paths: [count], since: start })
    expect(summary.mistyped_assets).toEqual([{ asset: 'BTCC', near: 'BTC' }])
  }))

test('a provider that cannot be reached ends the run clearly and names no lake', async () =>
  withProvider(now, async (own) => {
    const selection = { assets: ['BTC', 'ETH'], paths: ['blockchain/*'], since: start }
    const away = await own.fetch(selection, { metrics: { url: 'http://127.0.0.1:1' } })
    expect(away).toMatchObject({ stopped_by: 'unreachable', points_added: 0 })
    expect(verdict(away)?.message).toMatch(/cannot be reached.*PITLAKE_METRICS_URL/)
    expect(away.requests).toBeLessThanOrEqual(5)
    own.answer((path) => (path === 'assets' ? { status: 401 } : points(day, 31)))
    const there = await own.fetch(selection)
    expect(there).toMatchObject({ stopped_by: null })
    expect(there.points_added).toBeGreaterThan(0)
  }))

test('answers that only say 5xx give no lake a name: the sandbox is still welcome', async () =>
  withRig(now, async (rig) => {
    rig.faults('status-503')
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 5 * day }
    await rig.fetch(selection)
    rig.faults()
    expect(await rig.fetch(selection)).toMatchObject({ points_added: 5 })
  }))

test('a lake refuses a second provider and accepts a new address of the first one if told so', async () =>
  withProvider(now, async (own) => {
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 5 * day }
    own.answer((path) => (path === 'assets' ? [] : points(day, 5)))
    await own.fetch(selection)
    const wider = { ...selection, until: start + 8 * day }
    const other = { metrics: { url: `${own.url}/mirror` } }
    await expect(own.fetch(wider, other)).rejects.toThrow(/another provider.*--provider-moved/)
    own.answer((path) => (path === 'assets' ? [] : points(day, 8)))
    expect(await own.fetch(wider, { ...other, input: { providerMoved: true } })).toMatchObject({ points_added: 3 })
    await withRig(now, async (rig) => {
      const sandbox = { data: own.root, input: { providerMoved: true } }
      await expect(rig.fetch({ ...selection, until: start + 9 * day }, sandbox)).rejects.toThrow(/never share a lake/)
    })
  }))

test("the listing is stored, and '*' stands for it", async () =>
  withProvider(now, async (own) => {
    const listing = { data: [{ id: 'BTC' }, { id: 'ETH', chain_id: '1', address: '0xa' }, { id: '00', symbol: 'X' }] }
    own.answer((path) => (path === 'assets' ? listing : points(day, 5)))
    const selection = { assets: ['*'], paths: [count], since: start, until: start + 5 * day }
    expect(await own.fetch(selection)).toMatchObject({ points_added: 15, requests: 3 })
    const files = await reading(own.root, (ledger) => liveFiles(ledger, { table: 'metric_assets' }))
    expect(files.map(({ rows, path }) => [rows, path.startsWith('assets/')])).toEqual([[3, true]])
    const engine = await Engine.open()
    const sql = `SELECT id, record, observed_at FROM read_parquet(${quoteList(files.map((f) => inLake(own.root, f.path)))})`
    const rows = await engine.rows(sql)
    engine.close()
    expect(rows.map((row) => row['id'])).toEqual(['00', 'BTC', 'ETH'])
    const again = await own.fetch({ ...selection, until: start + 6 * day })
    expect(own.seen.filter((url) => url.endsWith('/assets'))).toHaveLength(1)
    own.clock.now += 2 * day
    expect(await own.fetch({ ...selection, until: start + 7 * day })).toMatchObject({ version: again.version + 1 })
    expect(own.seen.filter((url) => url.endsWith('/assets'))).toHaveLength(2)
    expect(readdirSync(join(own.root, 'assets'))).toHaveLength(1)
  }))

test.each([401, 500])('a listing that answers %s stops no fetch', async (status) =>
  withProvider(now, async (own) => {
    own.answer((path) => (path === 'assets' ? { status, text: 'no' } : points(day, 5)))
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 5 * day }
    const done = await own.fetch(selection)
    expect([verdict(done), done.points_added, done.stopped_by]).toEqual([null, 5, null])
    await expect(own.fetch({ ...selection, assets: ['*'] })).rejects.toThrow(/stored listing/)
  }),
)
