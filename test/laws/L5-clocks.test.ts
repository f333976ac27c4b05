import { expect, test } from 'vitest'
import { loadCoverage, storedVersions } from '../../src/lake/ledger/index-queries.ts'
import { checkContents } from '../../src/maintenance/upkeep/verify.ts'
import { journalEntries } from '../helpers/entries.ts'
import { withRig } from '../helpers/fetching.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { heldDays, inWindow } from '../helpers/days.ts'
import { leaping } from '../helpers/leaping.ts'
import { heldPoints, reading } from '../helpers/ledgers.ts'

const day = 86_400
const hour = 3600
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const selection = { assets: ['BTC'], paths: [count], since: start }

/** What a provider whose clock stands at `made` answers: all days that have ended by then, and the one that has not. */
const bodyAt = (made: number, query: URLSearchParams): object[] => {
  const days = Array.from({ length: Math.ceil((made - start) / day) }, (_, n) => start + n * day)
  return inWindow(
    query,
    days.map((t, n) => ({ t, v: t + day <= made ? n : -1 })),
  )
}

const dateOf = (at: number): string => new Date(at * 1000).toUTCString()

/** Answers as of `made`, with these headers. */
const answering =
  (made: () => number, headers: () => Record<string, string>) =>
  (path: string, query: URLSearchParams): unknown =>
    path === 'assets' ? { status: 404, headers: headers() } : { body: bodyAt(made(), query), headers: headers() }

async function held(own: OwnProvider): Promise<{ coverage: string[]; points: string[]; versions: number }> {
  const versions = await reading(own.root, (ledger) => storedVersions(ledger).length)
  const coverage = await heldDays(own.root, start)
  const line = `concat((epoch(t)::BIGINT - ${start}) // ${day}, '=', v::BIGINT, ' ', basis) AS line`
  const points = await heldPoints(own.root, line, 'ORDER BY t')
  return { coverage, versions, points: points.map(({ line }) => line as string) }
}

test('an answer from a cache resolves up to its Date, and later points are never late', async () =>
  withProvider(start + 20 * day + 2 * hour, async (own) => {
    const age = 5 * day
    own.answer(
      answering(
        () => own.clock.now - age,
        () => ({ date: dateOf(own.clock.now - age), age: String(age) }),
      ),
    )
    await own.fetch(selection)
    expect((await held(own)).coverage).toEqual(['0..15 covered'])
    own.answer(
      answering(
        () => own.clock.now,
        () => ({}),
      ),
    )
    await own.fetch(selection)
    const { coverage, points } = await held(own)
    expect(coverage).toEqual(['0..20 covered'])
    expect(points).toEqual(Array.from({ length: 20 }, (_, n) => `${n}=${n} assumed`))
  }))

test.each([
  ['with points', 'covered', bodyAt],
  ['that is empty', 'empty', () => []],
])('a stale answer %s among others settles nothing behind its Date', async (_, state, body) =>
  withProvider(start + 20 * day + 2 * hour, async (own) => {
    let stale = 0
    const ago = (): number => (stale++ === 0 ? 0 : 5 * day)
    const paths = [count, 'blockchain/block_height_pit']
    own.answer((path, query) => {
      const made = own.clock.now - ago()
      const headers = { date: dateOf(made) }
      if (path === 'assets') return { status: 404, headers }
      return { body: path === count ? body(made, query) : [], headers }
    })
    await own.fetch({ ...selection, paths })
    expect((await held(own)).coverage).toEqual(['0..20 empty', `0..15 ${state}`])
  }),
)

test.each([
  ['behind a stale Date', -5 * day],
  ['behind a Date of the future', 2 * hour],
])('clocks more than an hour apart end the run after its first answer: %s', async (_, off) =>
  withProvider(start + 20 * day, async (own) => {
    own.answer(
      answering(
        () => own.clock.now + off,
        () => ({ date: dateOf(own.clock.now + off) }),
      ),
    )
    const paths = [count, 'blockchain/block_height_pit']
    await expect(own.fetch({ ...selection, paths })).rejects.toMatchObject({
      kind: 'incomplete',
      message: expect.stringMatching(
        /local clock \(2026-01-25T00:00:0.Z\).*provider's \(2026-01-2\dT\d\d:\d\d:\d\dZ\)/,
      ),
    })
    expect(own.seen).toHaveLength(1)
    expect(await held(own)).toEqual({ coverage: [], points: [], versions: 0 })
    await expect(own.fetch({ ...selection, assets: ['*'] })).rejects.toMatchObject({ kind: 'incomplete' })
    expect(own.seen).toHaveLength(2)
    expect((await held(own)).versions).toBe(0)
  }),
)

test('clocks half an hour apart are reported once, and no window is resolved past the earlier clock', async () =>
  withProvider(start + 20 * day + 600, async (own) => {
    const events: string[] = []
    const deps = { onEvent: (event: { kind: string }) => void events.push(event.kind) }
    let off = -1800
    own.answer(
      answering(
        () => own.clock.now + off,
        () => ({ date: dateOf(own.clock.now + off) }),
      ),
    )
    const paths = [count, 'blockchain/block_height_pit']
    await own.fetch({ ...selection, paths }, { deps })
    expect(events.filter((kind) => kind === 'skew')).toHaveLength(1)
    expect((await held(own)).coverage).toEqual(['0..19 covered', '0..19 covered'])
    off = 1800
    own.clock.now = start + 21 * day - 600
    await own.fetch({ ...selection, paths }, { deps })
    expect((await held(own)).coverage).toEqual(['0..20 covered', '0..20 covered'])
    off = 0
    own.clock.now = start + 21 * day + 2 * hour
    expect(await own.fetch({ ...selection, paths }, { deps })).toMatchObject({ violations: 0 })
    expect((await held(own)).coverage).toEqual(['0..21 covered', '0..21 covered'])
  }))

/** An endpoint whose every answer is the whole series. */
const whole = 'options/50delta_skew_call_put_all_pit'

/** What `verify` finds wrong with the stored points and their coverage. */
const damagesIn = async (root: string): Promise<string[]> =>
  await reading(root, async (ledger) => (await checkContents(ledger, new Set())).findings.map(({ found }) => found))

test('a stored point that ended by the provider clock but not yet by the local one is covered', async () =>
  withProvider(start + 20 * day - 600, async (own) => {
    const headers = { date: dateOf(own.clock.now + 1800) }
    const days = Array.from({ length: 20 }, (_, n) => ({ t: start + n * day, o: { '1w': n } }))
    own.answer((path) => (path === 'assets' ? { status: 404, headers } : { body: days, headers }))
    await own.fetch({ ...selection, paths: [whole] })
    expect((await heldPoints(own.root, 'epoch(t)::BIGINT AS t')).map(({ t }) => Number(t))).toContain(start + 19 * day)
    expect(await heldDays(own.root, start)).toEqual(['0..20 covered'])
    expect(await damagesIn(own.root)).toEqual([])
    // The same answer once the local clock has got there is no news.
    own.clock.now += day
    expect(await own.fetch({ ...selection, paths: [whole] })).toMatchObject({ violations: 0 })
    expect(await damagesIn(own.root)).toEqual([])
  }))

test('points that a sandbox a day ahead of the local clock sends are covered wherever they are stored', async () =>
  withRig(start + 20 * day + 14 * hour, async (rig) => {
    const paths = [whole, 'options/25delta_skew_call_put_all_pit', count]
    const wish = { assets: ['BTC', 'ETH'], paths, since: start }
    rig.clock.now += day
    const behind = leaping(() => rig.clock.now - day)
    await rig.fetch(wish, { deps: behind, input: { now: rig.clock.now - day } })
    const last = await heldPoints(rig.root, 'max(epoch(t))::BIGINT AS t')
    expect(Number(last[0]?.['t'])).toBe(start + 20 * day)
    expect(await damagesIn(rig.root)).toEqual([])
    const rows = await reading(rig.root, (ledger) => [...loadCoverage(ledger).values()].flat())
    expect(rows.filter(({ reason, until }) => reason === 'gap' && until > start + 19 * day)).toEqual([])
  }))

test('the Date of each answer is recorded in its request row', async () =>
  withProvider(start + 20 * day, async (own) => {
    own.answer(
      answering(
        () => own.clock.now - 60,
        () => ({ date: dateOf(own.clock.now - 60), age: '60' }),
      ),
    )
    await own.fetch(selection)
    const recorded = journalEntries(own.root).flatMap(({ requests }) => requests.map((one) => one.provider_date))
    expect(recorded).toContain(own.clock.now - 60)
    const shown = async (): Promise<unknown[]> => {
      await makeViews(own.root)
      return await withViews(
        own.root,
        async (engine) => await engine.rows('SELECT id, epoch(provider_date)::BIGINT AS at FROM requests ORDER BY id'),
      )
    }
    const rows = journalEntries(own.root).flatMap(({ requests }) => requests)
    const told = rows
      .map(({ id, provider_date: date }) => ({ id, at: date === undefined ? null : BigInt(date) }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    expect(told).not.toEqual([])
    expect(await shown()).toEqual(expect.arrayContaining(told))
    own.answer(
      answering(
        () => own.clock.now,
        () => ({ date: 'no date' }),
      ),
    )
    own.clock.now += day
    await own.fetch(selection)
    const dates = ((await shown()) as { at: bigint | null }[]).map(({ at }) => at)
    expect(dates.length).toBeGreaterThan(told.length)
    expect(dates).toContain(null)
  }))

test('clocks apart are only reported for a synthetic lake, and its windows end at the clock of the provider', async () =>
  withRig(start + 20 * day + 2 * hour, async (rig) => {
    const events: string[] = []
    const deps = { onEvent: (event: { kind: string }) => void events.push(event.kind) }
    await rig.fetch(selection, { deps, input: { now: rig.clock.now } })
    const ahead = () => rig.clock.now * 1000 + 50 * 365 * day * 1000
    const far = { now: ahead, nowMicros: () => ahead() * 1000, ...deps }
    await rig.fetch(selection, { deps: far, input: { now: Math.floor(ahead() / 1000) } })
    expect(events).toContain('skew')
    const ends = await reading(rig.root, (ledger) =>
      [...loadCoverage(ledger).values()].flat().map(({ until }) => until),
    )
    expect(Math.max(...ends)).toBe(start + 20 * day)
  }))

test('a stale answer does not make later points vanish', async () =>
  withProvider(start + 20 * day + 2 * hour, async (own) => {
    const paths = [count, 'blockchain/block_height_pit']
    let asked = 0
    let stale = 0
    own.answer((path, query) => {
      const made = own.clock.now - (asked++ === 0 ? 0 : stale)
      const headers = { date: dateOf(made) }
      return path === 'assets' ? { status: 404, headers } : { body: bodyAt(made, query), headers }
    })
    await own.fetch({ ...selection, paths })
    own.clock.now += day
    asked = 0
    stale = 5 * day
    expect(await own.fetch({ ...selection, paths })).toMatchObject({ violations: 0 })
  }))
