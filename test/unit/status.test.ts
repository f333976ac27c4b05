import { rmSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'vitest'
import { statusInWords } from '../../src/interfaces/commands/status.ts'
import { registrySnapshot, registrySync } from '../../src/sources/registry/snapshot-and-sync.ts'
import { alarmsOf } from '../../src/interfaces/report/alarms.ts'
import { auditAvailability } from '../../src/trust/availability-audit.ts'
import { type LakeStanding, readStanding } from '../../src/interfaces/report/status.ts'
import { readStatusPage, type StatusPage } from '../../src/interfaces/report/status-page.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { loadCoverage, liveFiles, summary } from '../../src/lake/ledger/index-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { statusPage } from '../../src/interfaces/report/page/page.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { withRig } from '../helpers/fetching.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { mounts } from '../helpers/mounts.ts'
import { catalogue, withSandbox } from '../helpers/sandbox-client.ts'
import { reading } from '../helpers/ledgers.ts'

const day = 86_400
const noon = Date.UTC(2024, 5, 5, 12) / 1000
const selection = {
  assets: ['BTC'],
  paths: ['supply/current_pit', 'blockchain/block_height_pit'],
  since: noon - 400 * day,
}

const inputOf = (data: string, now: number) => ({
  settings: resolveSettings({ flags: { data }, env: {}, cwd: '/' }),
  catalogue,
  now,
})

async function looked(root: string, now: number): Promise<{ standing: LakeStanding; page: StatusPage }> {
  using ledger = await Ledger.openToRead(root)
  const judged = await readStanding(ledger, inputOf(root, now))
  return { standing: judged.standing, page: await readStatusPage(ledger, inputOf(root, now), judged, 'pitlake test') }
}

const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0)

test('after a fetch everything due is there; two days later it is behind, and says for how long', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch(selection)
    const { standing, page } = await looked(rig.root, noon)
    const ledger = await Ledger.openToRead(rig.root)
    const counts = summary(ledger)
    const holes = [...loadCoverage(ledger).values()]
      .flat()
      .filter(({ reason }) => reason === 'gap' || reason === 'pending')
    ledger.close()
    expect(standing).toMatchObject({
      synthetic: true,
      mirror_of: null,
      provider: 'sandbox:7',
      version: counts.version,
      points: counts.points,
      files: counts.files,
      windows: counts.windows,
      gaps: counts.gaps,
      violations: 0,
      files_damaged: 0,
      observed_again: { months: 0, points: 0, waiting: 0 },
      registry: { first_snapshot: null, epoch: 0, feed_at: null },
      requests: { per_minute: 600 },
    })
    expect(standing.trust).toBe('yes')
    expect(standing.freshness).toMatchObject({ behind: 0, stopped: 0, overdue_seconds: 0 })
    expect(standing.freshness.fresh + standing.freshness.pending).toBe(2)
    // The two series are daily, so a hole of n days is n intervals due and not held.
    const missing = sum(holes.map(({ since, until }) => (until - since) / day))
    expect(standing.coverage.held).toBe(standing.points)
    expect(standing.coverage.due).toBe(standing.points + missing)
    for (const key of ['due', 'held'] as const)
      expect(sum(page.endpoints.flatMap((row) => row[key]))).toBe(standing.coverage[key])
    expect(page.endpoints.map(({ metric }) => metric).toSorted()).toEqual([...selection.paths].toSorted())
    expect(sum(page.lagBins.map(({ points }) => points))).toBe(sum(page.endpoints.map(({ lag }) => lag?.points ?? 0)))
    expect(page.endpoints.every(({ lag }) => lag !== null && lag.p50 > 0 && lag.rule !== null)).toBe(true)

    const later = (await looked(rig.root, noon + 2 * day)).standing
    expect(later.trust).toBe('look')
    expect(later.freshness.behind).toBe(2)
    expect(later.freshness.overdue_seconds).toBeGreaterThan(day)
    expect(later.reasons[0]).toMatchObject({ level: 'look', next: 'pitlake fetch' })
    rig.clock.now += 2 * day
    await rig.fetch(selection)
    expect((await looked(rig.root, noon + 2 * day)).standing.freshness.behind).toBe(0)
  }))

test('a series that select no longer names is counted, and never behind', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch(selection)
    const later = noon + 20 * day
    const input = inputOf(rig.root, later)
    const select = [{ assets: ['BTC'], paths: ['supply/current_pit'] }]
    using ledger = await Ledger.openToRead(rig.root)
    const { standing } = await readStanding(ledger, { ...input, settings: { ...input.settings, select } })
    expect(standing.unselected).toBe(1)
    expect(standing.freshness.behind).toBe(1)
    const { stale } = await alarmsOf(ledger, { ...input, settings: { ...input.settings, select } })
    expect(stale.flatMap((line) => ('metric' in line ? [line.metric] : []))).toEqual(['supply/current_pit'])
    expect((await readStanding(ledger, input)).standing).toMatchObject({ unselected: 0, freshness: { behind: 2 } })
  }))

test('the picture of lags shows what the audit counts: history from before a launch is no lag', async () =>
  withRig(noon, async (rig) => {
    const metric = 'addresses/active_count_pit'
    await rig.fetch({ assets: ['BTC', 'ETH'], paths: [metric], intervals: ['24h', '1w', '1month'] })
    const { rows } = await reading(
      rig.root,
      async (ledger) => await auditAvailability(ledger, { catalogue, paths: undefined, overrides: {}, now: noon }),
    )
    expect(sum(rows.map(({ backfilled }) => backfilled))).toBeGreaterThan(100)
    const { page } = await looked(rig.root, noon)
    const bars = (from: number): number =>
      sum(page.lagBins.filter((bin) => bin.from >= from).map(({ points }) => points))
    expect(bars(0)).toBe(sum(rows.map(({ observations }) => observations)))
    expect(bars(0.999)).toBe(sum(rows.map(({ late }) => late)))
    const daily = rows.find(({ interval }) => interval === '24h')
    const { points = 0, late, p50, p95, p99, max } = page.endpoints[0]?.lag ?? {}
    expect(points).toBeGreaterThan(500)
    expect({ points, late, p50, p95, p99, max }).toEqual({
      points: daily?.observations,
      late: daily?.late,
      p50: daily?.p50,
      p95: daily?.p95,
      p99: daily?.p99,
      max: daily?.max,
    })
    expect(max).toBeLessThan(30 * day)
  }))

test('violations, failed windows and lost files are what the verdict rests on', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch(selection)
    rig.clock.now += day
    rig.faults(`rewrite:path=supply/current_pit,t=${noon - 1.5 * day},by=2`)
    const again = await rig.fetch(selection)
    expect(again.violations).toBe(1)
    rig.faults()
    const { standing, page } = await looked(rig.root, rig.clock.now)
    expect(standing).toMatchObject({ violations: 1, trust: 'look' })
    expect(page.violations).toMatchObject([
      { metric: 'supply/current_pit', series: 'BTC native', interval: '24h', t: noon - 1.5 * day },
    ])
    expect(Number(page.violations[0]?.offered)).toBeCloseTo(2 * Number(page.violations[0]?.stored), 6)
    expect(statusPage(page)).toContain(page.violations[0]?.offered)

    const ledger = await Ledger.open(rig.root)
    const [file] = liveFiles(ledger, { table: 'points' })
    const [series] = loadCoverage(ledger).keys()
    const failed = {
      since: noon - 100 * day,
      until: noon - 90 * day,
      state: 'failed',
      reason: 'x',
      asked_at: 1,
      request: null,
    } as const
    const { provider } = ledger.head()
    const draft = { job: 'fetch', run: 'r', provider: provider!, coverage: [{ series: series!, ...failed }] }
    await commit(ledger, draft, commitDeps())
    ledger.close()
    const worse = await looked(rig.root, rig.clock.now)
    expect(worse.standing).toMatchObject({ trust: 'look', windows: { failed: 1 } })
    expect(sum(worse.page.endpoints.flatMap((row) => row.failed))).toBeGreaterThan(8)
    rmSync(inLake(rig.root, file!.path))
    const lost = await looked(rig.root, rig.clock.now)
    expect(lost.page).toMatchObject({ readable: false, lagBins: [] })
    expect(statusPage(lost.page)).toContain('pitlake doctor')
    expect(lost.standing).toMatchObject({ trust: 'no', files_damaged: 1 })
    expect(lost.standing.reasons[0]).toMatchObject({ level: 'no', next: 'pitlake doctor' })
  }))

test('status works during a fetch and reports it', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch({ ...selection, paths: ['supply/current_pit'] })
    const asked = Promise.withResolvers<void>()
    const looking = Promise.withResolvers<void>()
    rig.onRequest(async () => {
      asked.resolve()
      await looking.promise
    })
    const fetching = rig.fetch({ ...selection, paths: ['blockchain/*'] })
    await asked.promise
    expect((await looked(rig.root, noon)).standing.running).toEqual(['metrics'])
    looking.resolve()
    expect((await fetching).stopped_by).toBeNull()
    expect((await looked(rig.root, noon)).standing.running).toEqual([])
  }))

async function poll(root: string, url: string, at: number, job: typeof registrySync): Promise<void> {
  const env = { PITLAKE_REGISTRY_URL: url, PITLAKE_REGISTRY_KEY: 'registry-key' }
  const settings = resolveSettings({ flags: { data: root }, env, cwd: '/' })
  const real = performance.now()
  const now = () => at * 1000 + (performance.now() - real)
  await job(
    { settings, catalogue, acceptShrink: true, maxRequests: null, providerMoved: false },
    {
      ...commitDeps({ nowMicros: () => Math.floor(now() * 1000) }),
      now,
      wait: async () => await setTimeout(1),
      signal: new AbortController().signal,
      proxy: {},
      onEvent: () => undefined,
    },
  )
}

test('the universe over time ends with the products that are open now', async () => {
  let now = noon
  const port = mounts.find(({ name }) => name === 'port')!
  await withSandbox(port, { now: () => now }, async ({ registryUrl }) =>
    inFolder(async (root) => {
      await poll(root, registryUrl, now, registrySnapshot)
      now += 60 * day
      await poll(root, registryUrl, now, registrySync)
      const { standing, page } = await looked(root, now)
      const { universe } = page
      expect(standing.registry).toMatchObject({ first_snapshot: '2024-06-05', epoch: 1 })
      expect(standing.registry.feed_at?.slice(0, 10)).toBe(new Date(now * 1000).toISOString().slice(0, 10))
      const last = universe.at(-1)
      expect(universe.length).toBeGreaterThan(1)
      expect((last?.active ?? 0) + (last?.retired ?? 0)).toBe(standing.registry.records['products'])
      const came = sum(universe.map(({ created }) => created))
      const went = sum(universe.map(({ removed }) => removed))
      expect(came - went).toBe(standing.registry.records['products'])
      for (const [i, step] of universe.entries()) {
        const before = universe[i - 1] ?? { active: 0, retired: 0, at: 0 }
        expect(step.at).toBeGreaterThan(before.at)
        expect(step.active + step.retired).toBe(before.active + before.retired + step.created - step.removed)
      }
      expect(statusPage(page)).toContain('Registry universe over time')
    }),
  )
})

test('a lake without a version is not to be trusted; no lake is a slip of the user', async ({ root }) => {
  await expect(Ledger.openToRead(`${root}/none`)).rejects.toMatchObject({ kind: 'usage' })
  const ledger = await Ledger.open(root)
  ledger.close()
  const { standing, page } = await looked(root, noon)
  expect(standing).toMatchObject({
    version: 0,
    trust: 'no',
    provider: null,
    newest: null,
    coverage: { due: 0, share: null },
  })
  expect(statusPage(page)).not.toMatch(/NaN|undefined/)
  expect(statusInWords(standing, root)).toMatch(/^trust {8}NO$/m)
})

test('the text fits into 80 columns, however long the names are', async () =>
  withRig(noon, async (rig) => {
    await rig.fetch(selection)
    const { standing } = await looked(rig.root, noon + 5 * day)
    const text = statusInWords({ ...standing, synthetic: true, violations: 1234 }, 'data')
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    for (const label of [
      'trust',
      'coverage',
      'fresh',
      'gaps',
      'violations',
      'verified',
      'requests',
      'rate',
      'registry',
      'version',
    ])
      expect(text).toMatch(new RegExp(`^${label} `, 'm'))
    expect(text).toContain('SYNTHETIC')
    expect(text).toContain('pitlake fetch')
  }))
