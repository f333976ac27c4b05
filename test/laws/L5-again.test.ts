import { expect, test } from 'vitest'
import type { Selection } from '../../src/catalog/series.ts'
import { Engine, quoteList } from '../../src/lake/store/engine.ts'
import { storedVersions, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { withRig } from '../helpers/fetching.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { askedDays, heldDays, inWindow } from '../helpers/days.ts'
import { heldPoints } from '../helpers/ledgers.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const noListing = { status: 404 }

/** Daily points of the half-open range, without these days; days are counted from the start. */
const daily = (since: number, until: number, without: readonly number[] = []) =>
  Array.from({ length: until - since }, (_, i) => since + i)
    .filter((n) => !without.includes(n))
    .map((n) => ({ t: start + n * day, v: n }))

/** Answers with what of the first `until` days lies in the asked window. */
const answering = (until: () => number, without: () => readonly number[]) => (path: string, query: URLSearchParams) => {
  if (path === 'assets') return noListing
  return inWindow(query, daily(0, until(), without()))
}

const asked = (own: OwnProvider): string[] => askedDays(own, start)
const coverage = async (own: OwnProvider): Promise<string[]> => await heldDays(own.root, start)

test('the listing of assets is requested once a day, after the points and within the request limit', async () =>
  withProvider(start + 20 * day, async (own) => {
    const points = answering(
      () => 40,
      () => [],
    )
    own.answer((path, query) => (path === 'assets' ? [{ id: 'BTC' }, { id: 'ETH' }] : points(path, query)))
    let until = 10
    const listings = async (after: number, change: Partial<Selection> = {}, maxRequests: number | null = null) => {
      own.clock.now += after
      until++
      const selection = { assets: ['BTC'], paths: [count], since: start, until: start + until * day, ...change }
      await own.fetch(selection, { input: { maxRequests } })
      return own.seen.splice(0).map((url) => (url.endsWith('/assets') ? 'listing' : 'points'))
    }
    expect(await listings(0, {}, 1)).toEqual(['points'])
    expect(await listings(60)).toEqual(['points', 'listing'])
    expect(await listings(day - 120)).toEqual(['points'])
    expect(await listings(300)).toEqual(['points', 'listing'])
    // Each asset is stored once, and stands for itself where all are selected.
    expect(await listings(60, { assets: ['*'] })).toEqual(['points', 'points'])
    using ledger = await Ledger.openToRead(own.root)
    expect(liveFiles(ledger, { table: 'metric_assets' }).reduce((sum, { rows }) => sum + rows, 0)).toBe(2)
    expect(new Set(storedVersions(ledger).map(({ job }) => job))).toEqual(new Set(['fetch']))
  }))

test('a body that cannot be decoded is requested once more, and the second answer counts', async () =>
  withProvider(start + 20 * day, async (own) => {
    const good = answering(
      () => 10,
      () => [],
    )
    let torn = 1
    own.answer((path, query) => (path !== 'assets' && torn-- > 0 ? [{ t: 'soon', v: 1 }] : good(path, query)))
    const selection = (asset: string) => ({
      assets: ['BTC', asset],
      paths: [count],
      since: start,
      until: start + 10 * day,
    })
    expect(await own.fetch(selection('ETH'))).toMatchObject({ points_added: 20, windows: { covered: 2, failed: 0 } })
    expect(asked(own)).toHaveLength(3)
    torn = 9
    expect(await own.fetch(selection('LTC'))).toMatchObject({ points_added: 0, windows: { covered: 0, failed: 1 } })
    expect(asked(own)).toHaveLength(2)
    expect((await coverage(own)).at(-1)).toMatch(/^0\.\.10 body: /)
  }))

test('a window whose answer is too large is requested in halves, and each request is recorded', async () =>
  withProvider(start + 20 * day, async (own) => {
    const good = answering(
      () => 10,
      () => [],
    )
    own.answer((path, query) =>
      Number(query.get('u')) - Number(query.get('s')) > 5 * day
        ? { status: 413, text: 'too large' }
        : good(path, query),
    )
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 10 * day }
    expect(await own.fetch(selection)).toMatchObject({ points_added: 10, windows: { covered: 2 } })
    expect(asked(own)).toEqual(['0..10', '0..5', '5..10'])
    using ledger = await Ledger.openToRead(own.root)
    const rows = ledger.statement("SELECT outcome, points FROM requests WHERE path LIKE '%count_pit' ORDER BY id").all()
    expect(rows.map(({ outcome, points }) => `${String(outcome)} ${String(points)}`)).toEqual([
      'too_large null',
      'body 5',
      'body 5',
    ])
  }))

test('a parameter that is refused at once ends the run with the mapping to set', async () =>
  withProvider(start + 20 * day, async (own) => {
    own.answer((path) => (path === 'assets' ? noListing : { status: 400, text: 'unknown parameter s' }))
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 10 * day }
    await expect(own.fetch(selection)).rejects.toMatchObject({
      kind: 'usage',
      message: expect.stringMatching(
        /refuses the parameter since: .* got asset: a, since: s, .*metrics\.query_keys \(it says/,
      ),
    })
    expect(asked(own)).toHaveLength(1)
  }))

test('a gap is requested weekly for 90 days, and only gaps with --gaps', async () =>
  withProvider(start + 20 * day, async (own) => {
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 10 * day }
    let without = [6]
    own.answer(
      answering(
        () => 10,
        () => without,
      ),
    )
    await own.fetch(selection)
    expect(asked(own)).toEqual(['0..10'])
    expect(await coverage(own)).toEqual(['0..6 covered', '6..7 gap', '7..10 covered'])
    await own.fetch(selection)
    own.clock.now += 6 * day
    await own.fetch(selection)
    expect(asked(own)).toEqual([])
    await own.fetch(selection, { input: { gapsOnly: true } })
    expect(asked(own)).toEqual(['1..7'])
    own.clock.now += 6 * day
    await own.fetch(selection)
    expect(asked(own)).toEqual([])
    own.clock.now += day
    await own.fetch(selection)
    expect(asked(own)).toEqual(['1..7'])
    own.clock.now = start + 98 * day
    await own.fetch(selection)
    expect(asked(own)).toEqual([])
    without = []
    expect(await own.fetch(selection, { input: { gapsOnly: true } })).toMatchObject({ points_added: 1, violations: 0 })
    expect(asked(own)).toEqual(['1..7'])
    expect(await coverage(own)).toEqual(['0..10 covered'])
    expect(await bases(own)).toContain(`${start + 6 * day} observed`)
    await own.fetch(selection, { input: { gapsOnly: true } })
    expect(asked(own)).toEqual([])
  }))

async function bases(own: OwnProvider): Promise<string[]> {
  const rows = await heldPoints(own.root, 'epoch(t)::BIGINT AS t, basis')
  return rows.map((row) => `${Number(row['t'])} ${row['basis'] as string}`)
}

test('a missing tail is pending with each run, then it is a gap', async () =>
  withProvider(start + 10 * day + 3600, async (own) => {
    const selection = { assets: ['BTC'], paths: [count], since: start }
    let until = 9
    own.answer(
      answering(
        () => until,
        () => [],
      ),
    )
    await own.fetch(selection)
    expect(await coverage(own)).toEqual(['0..9 covered', '9..10 pending'])
    asked(own)
    await own.fetch(selection)
    expect(asked(own)).toEqual(['4..10'])
    until = 10
    expect(await own.fetch(selection)).toMatchObject({ points_added: 1 })
    expect(await coverage(own)).toEqual(['0..10 covered'])
    own.clock.now += 5 * day
    await own.fetch(selection)
    expect(await coverage(own)).toEqual(['0..10 covered', '10..12 gap', '12..15 pending'])
    asked(own)
    until = 15
    own.clock.now += 3600
    // The overlap of the pending tail reaches into the gap.
    expect(await own.fetch(selection)).toMatchObject({ points_added: 5, violations: 0 })
    expect(asked(own)).toEqual(['7..15'])
    expect(await coverage(own)).toEqual(['0..15 covered'])
  }))

test.each([
  ['204', 'empty', 30, { status: 204 }],
  ['[]', 'empty', 30, []],
  ['400', 'unsupported', 30, { status: 400, text: 'no such asset' }],
  ['403', 'unsupported', 1, { status: 403, text: 'not in your plan' }],
  ['404', 'unsupported', 1, { status: 404, text: 'gone' }],
] as const)('%s is an answer for a while: %s, %s days', async (_, state, days, answer) =>
  withProvider(start + 40 * day, async (own) => {
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 10 * day }
    // A path that is answered shows who the provider is, which nothing but 404 would not.
    own.answer(
      answering(
        () => 10,
        () => [],
      ),
    )
    await own.fetch({ ...selection, paths: ['supply/current_pit'] })
    asked(own)
    own.answer((path) => (path === 'assets' ? noListing : answer))
    expect((await own.fetch(selection)).windows).toMatchObject({ [state]: 1, failed: 0 })
    expect(asked(own)).toEqual(['0..10'])
    own.clock.now += days * day - 3 * 3600
    await own.fetch(selection)
    expect(asked(own)).toEqual([])
    own.clock.now += 3 * 3600
    const before = await own.fetch(selection)
    expect(asked(own)).toEqual(['0..10'])
    expect(await own.fetch(selection)).toMatchObject({ version: before.version, requests: 0 })
    own.clock.now += days * day
    own.answer(
      answering(
        () => 10,
        () => [],
      ),
    )
    expect(await own.fetch(selection)).toMatchObject({ points_added: 10 })
  }),
)

test('an empty window is requested with each run while it is young', async () =>
  withProvider(start + 2 * day, async (own) => {
    const selection = { assets: ['BTC'], paths: [count], since: start }
    own.answer((path) => (path === 'assets' ? noListing : []))
    await own.fetch(selection)
    const { version } = await own.fetch(selection)
    expect(asked(own)).toHaveLength(2)
    expect(await own.fetch(selection)).toMatchObject({ version, requests: 1 })
    own.answer(
      answering(
        () => 2,
        () => [],
      ),
    )
    expect((await own.fetch(selection)).points_added).toBeGreaterThan(0)
  }))

test('a failed window is requested with each run', async () =>
  withProvider(start + 40 * day, async (own) => {
    const selection = { assets: ['BTC'], paths: [count], since: start, until: start + 10 * day }
    own.answer((path) => (path === 'assets' ? noListing : 'no array'))
    expect((await own.fetch(selection)).windows).toMatchObject({ failed: 1 })
    expect((await own.fetch(selection)).windows).toMatchObject({ failed: 1 })
    own.answer(
      answering(
        () => 10,
        () => [],
      ),
    )
    expect(await own.fetch(selection)).toMatchObject({ points_added: 10, windows: { failed: 0 } })
  }))

test('a clock that goes backwards moves no instant of a commit backwards', async () =>
  withRig(start + 40 * day, async (rig) => {
    const until = start + 10 * day
    const selection = { assets: ['BTC'], paths: ['blockchain/*'], since: start + 5 * day, until }
    await rig.fetch(selection)
    rig.clock.now -= 3 * day
    await rig.fetch({ ...selection, since: start + 2 * day })
    rig.clock.now -= 2 * day
    await rig.fetch({ ...selection, since: start })
    const ledger = await Ledger.openToRead(rig.root)
    const instants = storedVersions(ledger).map(({ committed_at }) => committed_at)
    const files = liveFiles(ledger, { table: 'points' })
    ledger.close()
    expect(instants.length).toBeGreaterThanOrEqual(3)
    expect(instants).toEqual([...new Set(instants)].toSorted((a, b) => a - b))
    const engine = await Engine.open()
    for (const { path, added_version } of files) {
      const [row] = await engine.rows(
        `SELECT DISTINCT epoch_us(observed_at) AS at FROM read_parquet(${quoteList([inLake(rig.root, path)])})`,
      )
      expect(Number(row?.['at'])).toBe(instants[added_version - 1])
    }
    engine.close()
    expect(await rig.stored()).toEqual(rig.truth({ ...selection, since: start }))
  }))
