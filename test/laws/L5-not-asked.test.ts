import { expect, test } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { storedSelections } from '../../src/sources/metrics/prepare.ts'
import { readStanding } from '../../src/interfaces/report/status.ts'
import { settingsAt, trying } from '../helpers/fetching.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { heldDays, inWindow } from '../helpers/days.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const now = start + 40 * day
const count = 'blockchain/block_count_pit'
const selection = { assets: ['BTC', 'ETH', 'LTC', 'XRP'], paths: [count], since: start, until: start + 10 * day }

const points = (query: URLSearchParams) =>
  inWindow(
    query,
    Array.from({ length: 12 }, (_, n) => ({ t: start + n * day, v: n })),
  )

const states = async (own: OwnProvider): Promise<string[]> =>
  await heldDays(own.root, start, ({ series, state }) => `${series.split('|')[1]} ${state}`)

/** What the status says of what was not asked. */
async function reason(own: OwnProvider, select: readonly (typeof selection)[] = []) {
  using ledger = await Ledger.openToRead(own.root)
  const settings = { ...settingsAt({ root: own.root, url: own.url, now: () => own.clock.now }), select }
  const { standing } = await readStanding(ledger, { settings, catalogue: trying, now: own.clock.now })
  return standing.reasons.find(({ kind }) => kind === 'not_requested')
}

test('windows that a spent quota left over are shown by status and requested by a bare fetch', async () =>
  withProvider(now, async (own) => {
    own.answer((path) =>
      path === 'assets' ? { status: 404 } : { status: 429, headers: { 'retry-after': '10800' }, text: 'later' },
    )
    const first = await own.fetch(selection)
    expect(first).toMatchObject({ stopped_by: 'quota', windows: { covered: 0, failed: 0, not_requested: 4 } })
    const all = ['BTC', 'ETH', 'LTC', 'XRP'].map((asset) => `0..10 ${asset} not requested`)
    expect(await states(own)).toEqual(all)
    expect(await reason(own)).toMatchObject({
      level: 'look',
      count: 4,
      since: new Date(now * 1000).toISOString().replace('.000', ''),
    })
    // Nothing new: no version, and the date stays.
    own.clock.now += 3600
    const again = await own.fetch(selection)
    expect(again).toMatchObject({ version: first.version, stopped_by: 'quota', windows: { not_requested: 4 } })
    expect(await reason(own)).toMatchObject({ since: new Date(now * 1000).toISOString().replace('.000', '') })
    own.clock.now += 3600
    await own.fetch({ ...selection, until: start + 12 * day })
    expect(await states(own)).toEqual(all.map((row) => row.replace('10', '12')))
    expect(await reason(own)).toMatchObject({ since: new Date(now * 1000).toISOString().replace('.000', '') })
    // Another selection is another matter.
    expect(await reason(own, [{ ...selection, assets: ['BTC'] }])).toMatchObject({ count: 1 })
    expect(await reason(own, [{ ...selection, assets: ['DOGE'] }])).toBeUndefined()
    own.answer((path, query) => (path === 'assets' ? { status: 404 } : points(query)))
    own.clock.now += 3 * 3600
    const bare = await storedSelections(settingsAt({ root: own.root, url: own.url, now: () => now }), trying)
    const [one = selection, ...others] = bare
    expect(others).toEqual([])
    expect(await own.fetch({ ...one, until: start + 12 * day })).toMatchObject({
      points_added: 48,
      windows: { not_requested: 0 },
    })
    expect(await states(own)).toEqual(all.map((row) => row.replace('10', '12').replace('not requested', 'covered')))
    expect(await reason(own)).toBeUndefined()
  }))

test('a known failure or answer survives a run that did not request the window', async () =>
  withProvider(now, async (own) => {
    own.answer((path) => (path === 'assets' ? { status: 404 } : 'no array'))
    await own.fetch({ ...selection, assets: ['BTC'] })
    own.answer((path) => (path === 'assets' ? { status: 404 } : { status: 429, headers: { 'retry-after': '10800' } }))
    await own.fetch({ ...selection, assets: ['BTC', 'ETH'], until: start + 12 * day })
    expect(await states(own)).toEqual(['0..10 BTC failed', '10..12 BTC not requested', '0..12 ETH not requested'])
  }))

test('windows beyond the request limit are not requested', async () =>
  withProvider(now, async (own) => {
    own.answer((path, query) => (path === 'assets' ? { status: 404 } : points(query)))
    expect(await own.fetch(selection, { input: { maxRequests: 1 } })).toMatchObject({
      stopped_by: 'max_requests',
      windows: { covered: 1, not_requested: 3 },
    })
    expect(await states(own)).toEqual([
      '0..10 BTC covered',
      '0..10 ETH not requested',
      '0..10 LTC not requested',
      '0..10 XRP not requested',
    ])
  }))
