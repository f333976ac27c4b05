// @module-tag full
import { globSync, rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { loadCoverage, storedVersions, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { readStanding } from '../../src/interfaces/report/status.ts'
import { acceptViolations, listViolations } from '../../src/lake/ledger/violations.ts'
import { verdict } from '../../src/sources/metrics/run-summary.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { depsAt, settingsAt } from '../helpers/fetching.ts'
import { examined } from '../helpers/looking.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { askedDays, inWindow } from '../helpers/days.ts'
import { reading } from '../helpers/ledgers.ts'

const day = 86_400
const hour = 3600
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const height = 'blockchain/block_height_pit'
const selection = { assets: ['BTC'], paths: [count], since: start }

/** All days of the asked range that have ended by now. */
const daily = (own: OwnProvider, query: URLSearchParams): object[] => {
  const ended = Math.floor((own.clock.now - start) / day)
  return inWindow(
    query,
    Array.from({ length: Math.max(0, ended) }, (_, n) => ({ t: start + n * day, v: n })),
  )
}

/** Answers as it should but where `refuse` gives a status. */
const answering =
  (own: OwnProvider, refuse: (path: string, query: URLSearchParams) => number | null) =>
  (path: string, query: URLSearchParams): unknown => {
    if (path === 'assets') return { status: 404 }
    const status = refuse(path, query)
    return status === null ? daily(own, query) : { status, text: 'no, said the provider' }
  }

/** The asked windows in days, of requests since the last look. */
const asked = (own: OwnProvider): string[] =>
  askedDays(own, start, ({ pathname, searchParams }) => {
    const asset = searchParams.get('a') ?? ''
    return `${pathname.endsWith('height_pit') ? 'height ' : ''}${asset === 'BTC' ? '' : `${asset} `}`
  })

/**
 * Of so many days those on which a run can tell something else: the first, one in the middle, the last; days since the
 * one before.
 */
function stretches(days: number): number[] {
  const told = [1, 2, 3, Math.floor(days / 2), days - 1, days]
  return told.map((n, i) => n - (told[i - 1] ?? 0))
}

async function coverage(own: OwnProvider): Promise<string[]> {
  const rows = await reading(own.root, (ledger) =>
    [...loadCoverage(ledger)].filter(([series]) => series.includes('|BTC|')).flatMap(([, held]) => held),
  )
  return rows.map(
    ({ since, until, state, reason }) => `${(since - start) / day}..${(until - start) / day} ${state} ${reason ?? ''}`,
  )
}

async function standing(own: OwnProvider): Promise<Awaited<ReturnType<typeof readStanding>>['standing']> {
  using ledger = await Ledger.openToRead(own.root)
  const settings = settingsAt({ root: own.root, url: own.url, now: () => own.clock.now })
  return (await readStanding(ledger, { settings, catalogue, now: own.clock.now })).standing
}

async function versions(own: OwnProvider): Promise<number> {
  using ledger = await Ledger.openToRead(own.root)
  return storedVersions(ledger).length
}

test.each([
  [400, '400: no, said the provider'],
  [403, '403, outside the plan: no, said the provider'],
  [404, '404, gone: no, said the provider'],
])('%i to a series that has points is an alarm, and takes nothing away', async (status, words) =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    let refusing = false
    own.answer(answering(own, () => (refusing ? status : null)))
    await own.fetch(selection)
    refusing = true
    own.clock.now += day
    const since = '2026-02-15T02:00:00Z'
    const refused = await own.fetch(selection)
    expect(refused).toMatchObject({ windows: { failed: 1, unsupported: 0 }, refused: 1 })
    expect(verdict(refused)).toMatchObject({ kind: 'incomplete', message: expect.stringContaining('refused') })
    const alarm = ['0..40 covered ', `40..41 failed refused since ${since}: ${words}`]
    expect(await coverage(own)).toEqual(alarm)
    const { trust, reasons, refused: told, freshness } = await standing(own)
    // It was asked for.
    expect(freshness).toMatchObject({ behind: 0, pending: 1 })
    expect(reasons.map(({ word }) => word).filter((word) => word !== null)).toEqual(['look'])
    expect([trust, told]).toEqual(['look', { series: 1, windows: 1, since, words, withdrawn: 0, unacknowledged: 0 }])
    expect(reasons[0]).toMatchObject({
      kind: 'refused',
      count: 1,
      since,
      text: `1 series that has points is refused: ${words}`,
    })
    const made = await versions(own)
    asked(own)
    // With each run for a day; the same refusal again is no news.
    own.clock.now += hour
    expect(await own.fetch(selection)).toMatchObject({ windows: { failed: 1 } })
    expect(asked(own)).toHaveLength(1)
    expect(await versions(own)).toBe(made)
    // Then daily, and the runs between are told the same.
    own.clock.now += day
    await own.fetch(selection)
    expect(asked(own)).toHaveLength(1)
    own.clock.now += 6 * hour
    expect(verdict(await own.fetch(selection))).toMatchObject({ kind: 'incomplete' })
    expect(asked(own)).toEqual([])
    own.clock.now += day - 6 * hour
    expect(await own.fetch(selection, { input: { gapsOnly: true } })).toMatchObject({ windows: { failed: 1 } })
    expect(asked(own)).toHaveLength(1)
    refusing = false
    own.clock.now += day
    const back = await own.fetch(selection)
    expect(back).toMatchObject({ violations: 0, windows: { failed: 0 } })
    expect(verdict(back)).toBeNull()
    expect(await coverage(own)).toEqual(['0..44 covered '])
  }),
)

test('after 30 days of refusals a series is withdrawn: an answer, tried again daily', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    let refusing = false
    own.answer(answering(own, () => (refusing ? 403 : null)))
    await own.fetch(selection)
    refusing = true
    for (const days of stretches(30)) {
      own.clock.now += days * day
      expect((await own.fetch(selection)).windows).toMatchObject({ failed: 1 })
    }
    asked(own)
    own.clock.now += day
    const last = await own.fetch(selection)
    expect(last).toMatchObject({ windows: { failed: 0, unsupported: 1 }, refused: 0 })
    expect(verdict(last)).toBeNull()
    expect(asked(own)).toHaveLength(1)
    expect(await coverage(own)).toEqual([
      '0..40 covered ',
      expect.stringMatching(/^40..71 unsupported withdrawn, refused since 2026-02-15T02:00:00Z: 403, outside the plan/),
    ])
    for (const days of stretches(29)) {
      own.clock.now += days * day
      expect(verdict(await own.fetch(selection))).toBeNull()
      expect(asked(own)).toHaveLength(1)
    }
    expect(await standing(own)).toMatchObject({
      trust: 'look',
      refused: { series: 0, withdrawn: 1, unacknowledged: 1 },
      oldest: { withdrawn: '2026-02-15T02:00:00Z' },
    })
    await acceptRefused(own)
    expect(await standing(own)).toMatchObject({ trust: 'yes', refused: { withdrawn: 1, unacknowledged: 0 } })
    refusing = false
    own.clock.now += day
    expect(await own.fetch(selection)).toMatchObject({ violations: 0 })
    expect(await coverage(own)).toEqual(['0..101 covered '])
  }))

test('one refused request closes a path, and each series is judged by its points', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    let refusing = false
    own.answer(answering(own, () => (refusing ? 403 : null)))
    await own.fetch(selection)
    refusing = true
    own.clock.now += day
    asked(own)
    const both = { ...selection, assets: ['BTC', 'ETH'] }
    expect(await own.fetch(both)).toMatchObject({ windows: { failed: 1, unsupported: 1 }, refused: 1 })
    expect(asked(own)).toEqual(['35..41'])
    // A path that is refused to a newcomer is still asked for those that have points.
    refusing = false
    own.answer(answering(own, (_, query) => (query.get('a') === 'BTC' ? null : 403)))
    own.clock.now += 31 * day
    await own.fetch({ ...both, assets: ['ETH', 'BTC'] })
    expect((await coverage(own)).filter((row) => row.includes('failed'))).toEqual([])
  }))

test('403 and 404 are remembered by path and tried daily, 400 by series and tried after 30 days', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    const paths = [count, height]
    own.answer(answering(own, (path, query) => (path === height ? 403 : query.get('a') === 'BTC' ? 400 : null)))
    const run = async (assets: string[]) => await own.fetch({ ...selection, paths, assets })
    await run(['BTC', 'ETH'])
    expect(asked(own).filter((ask) => ask.startsWith('height'))).toHaveLength(1)
    for (const days of stretches(28)) {
      own.clock.now += days * day
      const { windows } = await run(['BTC', 'ETH'])
      expect(windows).toMatchObject({ failed: 0, covered: 1 })
      const again = asked(own).filter((ask) => !ask.startsWith('ETH'))
      expect(again).toEqual([expect.stringMatching(/^height/)])
    }
    await run(['BTC', 'ETH', 'LTC'])
    expect(asked(own).map((ask) => ask.split(' ')[0])).toEqual(['LTC'])
    expect((await coverage(own)).filter((row) => row.includes('403')).length).toBeLessThanOrEqual(2)
    own.clock.now += 2 * day
    await run(['BTC', 'ETH', 'LTC'])
    expect(asked(own).filter((ask) => ask.startsWith('height'))).toHaveLength(1)
  }))

test('one request a day tests a refused path, and its first success brings back all assets at once', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    let refusing = true
    own.answer(answering(own, (_, query) => (refusing && query.get('a')?.startsWith('N') ? 403 : null)))
    const fresh = Array.from({ length: 20 }, (_, n) => `N${n}`)
    const held = ['BTC', 'ETH', 'LTC']
    const all = { ...selection, assets: [...fresh, ...held] }
    await own.fetch({ ...selection, assets: held })
    await own.fetch(all)
    own.answer(answering(own, () => (refusing ? 403 : null)))
    // Alarms of the first day are asked with each run; the path of a series that has points is refused to all.
    own.clock.now += day
    await own.fetch({ ...selection, assets: ['ETH'] })
    for (const [n, days] of stretches(32).entries()) {
      own.clock.now += days * day
      asked(own)
      // Whoever is asked of them, it counts for the others.
      if (n % 3 === 1) await own.fetch({ ...selection, assets: ['ETH'] })
      await own.fetch(all)
      expect(asked(own)).toHaveLength(1)
      own.clock.now += hour
      if (n > 0) await own.fetch(all)
      expect(asked(own)).toEqual([])
      own.clock.now -= hour
    }
    refusing = false
    own.clock.now += day
    const back = await own.fetch(all)
    expect(back).toMatchObject({ violations: 0, windows: { failed: 0, unsupported: 0 } })
    expect(back.points_added).toBe(20 * 74 + 3 * 34)
    expect(asked(own)).toHaveLength(23)
  }))

const one = { metrics: { concurrency: 1 } } as const

test('a 404 of one series leaves the other series of its path requested, on that day and later', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    const all = { ...selection, assets: ['AAVE', 'BTC', 'ETH'] }
    own.answer(answering(own, (_, query) => (query.get('a') === 'AAVE' ? 404 : null)))
    expect((await own.fetch(all, one)).windows).toMatchObject({ covered: 2, unsupported: 1 })
    own.clock.now += day
    expect((await own.fetch(all, one)).windows).toMatchObject({ covered: 2, unsupported: 1 })
    own.clock.now += day
    asked(own)
    // By now it is known that the series alone is refused: it is tried again after 30 days.
    await own.fetch({ ...all, assets: [...all.assets, 'LTC'] }, one)
    expect(asked(own).map((ask) => ask.split(' ')[0])).toEqual(['36..42', 'ETH', 'LTC'])
  }))

test('a 404 of a series that has points is an alarm of that series, and the others of its path are requested', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    const both = { ...selection, assets: ['BTC', 'ETH'] }
    let refusing = false
    own.answer(answering(own, (_, query) => (refusing && query.get('a') === 'BTC' ? 404 : null)))
    await own.fetch(both, one)
    refusing = true
    for (let n = 0; n < 3; n++) {
      own.clock.now += day
      expect(await own.fetch(both, one)).toMatchObject({
        windows: { covered: 1, failed: 1 },
        refused: 1,
        points_added: 1,
      })
    }
  }))

test('three series with 404 and none that is answered close a path, which one request a day then tries', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    const assets = Array.from({ length: 8 }, (_, n) => `N${n}`)
    let alive: readonly string[] = []
    own.answer(answering(own, () => null))
    await own.fetch({ ...selection, paths: ['supply/current_pit'], assets: ['N0'] }, one)
    asked(own)
    own.answer(answering(own, (_, query) => (alive.includes(query.get('a') ?? '') ? null : 404)))
    expect((await own.fetch({ ...selection, assets }, one)).windows).toMatchObject({ unsupported: 8 })
    expect(asked(own)).toHaveLength(3)
    own.clock.now += day
    await own.fetch({ ...selection, assets }, one)
    expect(asked(own)).toHaveLength(1)
    // Each day tries a different series: one that is answered brings back all that are.
    alive = ['N4', 'N6']
    let points = 0
    for (let n = 0; n < 8 && points === 0; n++) {
      own.clock.now += day
      points += (await own.fetch({ ...selection, assets }, one)).points_added
    }
    expect(points).toBeGreaterThan(80)
  }))

test('points of a lost file are requested again while the path is refused to other series', async () =>
  withProvider(start + 10 * day + hour, async (own) => {
    own.answer(answering(own, (_, query) => (query.get('a') === 'BTC' ? null : 403)))
    const { points_added } = await own.fetch(selection)
    await own.fetch({ ...selection, assets: ['ETH'] }).catch(() => undefined)
    const ledger = await Ledger.openToRead(own.root)
    for (const { path } of liveFiles(ledger, { table: 'points' })) rmSync(inLake(own.root, path))
    ledger.close()
    await examined(own.root, own.clock.now, { repair: true, forgetLost: true })
    asked(own)
    expect((await own.fetch({ ...selection, assets: ['BTC', 'SOL'] })).points_added).toBe(points_added)
    expect(asked(own)).toEqual(['0..10'])
  }))

test('a long window that is refused is halved, once a short recent one shows that the series is answered', async () =>
  withProvider(start + 800 * day + 2 * hour, async (own) => {
    const border = start + 530 * day
    own.answer(
      answering(own, (_, query) => {
        const since = Number(query.get('s'))
        const until = Number(query.get('u'))
        return since < border || until - since > 300 * day ? 400 : null
      }),
    )
    const { windows } = await own.fetch(selection)
    expect(windows).toMatchObject({ failed: 0 })
    const rows = await coverage(own)
    expect(rows.at(-1)).toMatch(/^53\d..800 covered $/)
    expect(rows.slice(0, -1).every((row) => row.includes('unsupported 400 to this range: no'))).toBe(true)
    expect(rows[0]).toMatch(/^0../)
    expect(asked(own).length).toBeLessThan(16)
    own.clock.now += day
    expect(await own.fetch(selection)).toMatchObject({ requests: 1, windows: { failed: 0 } })
  }))

test('two requests find out that a series is refused; a run that ends between them settles nothing of it', async () =>
  withProvider(start + 800 * day + 2 * hour, async (own) => {
    own.answer(answering(own, () => 400))
    await own.fetch(selection, { input: { maxRequests: 1 } })
    expect(asked(own)).toEqual(['0..800'])
    expect((await own.fetch(selection)).windows).toMatchObject({ failed: 0, unsupported: 1 })
    expect(asked(own)).toEqual(['0..800', '790..800'])
    expect(await coverage(own)).toEqual(['0..800 unsupported 400: no, said the provider'])
  }))

/** A person takes note of the one refusal that is listed. */
async function acceptRefused(own: OwnProvider): Promise<void> {
  using ledger = await Ledger.open(own.root)
  const listed = listViolations(ledger, { paths: null, assets: null })
  expect(listed.map(({ kind, acknowledged_at }) => [kind, acknowledged_at])).toEqual([['refused', null]])
  const deps = depsAt({ root: own.root, url: own.url, now: () => own.clock.now })
  await acceptViolations(ledger, { ids: [listed[0]?.id ?? ''], why: 'the plan was changed' }, deps)
  expect(listViolations(ledger, { paths: null, assets: null })[0]?.acknowledged_at).not.toBeNull()
}

/** What the view of gaps says, in days; status counts the same windows. */
async function gaps(own: OwnProvider): Promise<string[]> {
  await makeViews(own.root)
  const rows = await withViews(own.root, async (engine) =>
    engine.rows<{ since: number; until: number; missing: bigint; state: string; reason: string }>(
      `SELECT epoch(since) AS since, epoch(until) AS until, missing, state, reason FROM gaps ORDER BY ALL`,
    ),
  )
  expect((await standing(own)).gaps).toBe(rows.length)
  return rows.map(
    ({ since, until, missing, state, reason }) =>
      `${(since - start) / day}..${(until - start) / day} ${missing} ${state} ${reason.split(':')[0]}`,
  )
}

test('refused windows of a series that has points are gaps: while it is an alarm, and once a person has accepted it', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    let refusing = false
    own.answer(answering(own, (path) => (path === height || refusing ? 403 : null)))
    const both = { ...selection, paths: [count, height] }
    await own.fetch(both)
    // A series that never had a point has no gap.
    expect(await gaps(own)).toEqual([])
    refusing = true
    own.clock.now += 2 * day
    await own.fetch(both)
    expect(await gaps(own)).toEqual(['40..42 2 failed refused since 2026-02-16T02'])
    await acceptRefused(own)
    expect(await gaps(own)).toEqual(['40..42 2 unsupported withdrawn, refused since 2026-02-16T02'])
    expect(await standing(own)).toMatchObject({ trust: 'yes', refused: { series: 0, withdrawn: 1 } })
    asked(own)
    expect(await own.fetch(both, { input: { gapsOnly: true } })).toMatchObject({ requests: 1 })
    refusing = false
    await own.fetch(both, { input: { gapsOnly: true } })
    expect(asked(own)).toEqual(['35..42', '35..42'])
    expect(await gaps(own)).toEqual([])
  }))

test('a base address at which everything is 404 is no provider: nothing is recorded, and the next run asks again', async () =>
  withProvider(start + 40 * day + 2 * hour, async (own) => {
    own.answer(() => ({ status: 404, text: 'no such page' }))
    const wrong = await own.fetch(selection)
    expect(wrong).toMatchObject({ version: 0, stopped_by: 'unreachable', windows: { unsupported: 0 } })
    expect(verdict(wrong)).toMatchObject({
      kind: 'incomplete',
      message: expect.stringMatching(
        /cannot be reached: no answer but 404: no such page; see that PITLAKE_METRICS_URL is right/,
      ),
    })
    expect(globSync('{journal,assets,points}/**/*', { cwd: own.root })).toEqual([])
    own.answer(answering(own, () => null))
    expect(verdict(await own.fetch(selection))).toBeNull()
    expect(await coverage(own)).toEqual(['0..40 covered '])
  }))
