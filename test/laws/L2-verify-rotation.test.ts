import { expect, test } from 'vitest'
import { storedVerified } from '../../src/lake/ledger/run-queries.ts'
import { storedVersions } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { acceptViolations, listViolations } from '../../src/lake/ledger/violations.ts'
import { verifyVerdict, type VerifySummary } from '../../src/maintenance/upkeep/verify.ts'
import { inWindow } from '../helpers/days.ts'
import { depsAt, settingsAt } from '../helpers/fetching.ts'
import { reading } from '../helpers/ledgers.ts'
import { askedAgain, exitOf } from '../helpers/looking.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'

const day = 86_400
const start = Date.UTC(2026, 0, 5) / 1000
const count = 'blockchain/block_count_pit'
const height = 'blockchain/block_height_pit'
const assets = Array.from({ length: 14 }, (_, n) => `A${n}`)
const selection = { assets, paths: [count, height], since: start }
const budget = 12

/** A refusal of this path or of this path and asset, or null. */
type Refuse = (path: string, asset: string) => number | null

/** A day of fetch and verify, both as `daily` runs them. */
async function dayWith(own: OwnProvider): Promise<VerifySummary> {
  own.clock.now += day
  await own.fetch(selection)
  own.seen.length = 0
  const place = { root: own.root, url: own.url, now: () => own.clock.now }
  return await askedAgain(own, { settings: settingsAt(place, { metrics: { credits: { '*': 1 } } }), budget })
}

/** Takes note of every refusal on record. */
async function acknowledgeAll(own: OwnProvider): Promise<number> {
  using ledger = await Ledger.open(own.root)
  const ids = listViolations(ledger, { paths: null, assets: null }).map(({ id }) => id)
  const deps = depsAt({ root: own.root, url: own.url, now: () => own.clock.now })
  return (await acceptViolations(ledger, { ids, why: 'delisted' }, deps)).acknowledged.length
}

/**
 * A lake of 28 series whose provider refuses what `refuse` says from then on, and rewrites a point behind the overlap.
 */
async function withRefusals(
  refuse: Refuse,
  work: (own: OwnProvider, rewrite: (asset: string) => void) => Promise<void>,
) {
  await withProvider(start + 40 * day + 7200, async (own) => {
    const rewritten = new Set<string>()
    let refusing = false
    own.answer((path, query) => {
      const asset = query.get('a') ?? ''
      const status = refusing ? refuse(path, asset) : null
      if (path === 'assets' || status !== null) return { status: status ?? 404, text: 'no, said the provider' }
      const ended = Math.floor((own.clock.now - start) / day)
      const points = Array.from({ length: ended }, (_, n) => ({ t: start + n * day, v: n }))
      const changed = path === count && rewritten.has(asset)
      return inWindow(query, points).map((point) => (changed && point.v === 3 ? { ...point, v: 99 } : point))
    })
    await own.fetch(selection)
    refusing = true
    await work(own, (asset) => rewritten.add(asset))
  })
}

const requestedAssets = (own: OwnProvider): string[] =>
  own.seen.map((url) => new URL(url, 'http://localhost').searchParams.get('a') ?? '')

test.each([
  ['a path that is 403 for good', (path: string) => (path === height ? 403 : null)],
  ['delisted series', (_: string, asset: string) => (Number(asset.slice(1)) < 8 ? 400 : null)],
] as const)(
  'L2: %s leaves verify most of its budget, and a rewrite elsewhere is found within days',
  async (_, refuse) =>
    withRefusals(refuse, async (own, rewrite) => {
      rewrite('A13')
      const days: VerifySummary[] = []
      for (let n = 0; n < 6; n++) days.push(await dayWith(own))
      // 14 or 12 sound series of 28, eleven windows a day.
      expect(days.findIndex(({ results }) => results.changed > 0)).toBeLessThanOrEqual(2)
      expect(days.every(({ windows }) => windows.chosen <= budget && windows.verified >= 6)).toBe(true)
      // Each refused one has its turn, and the same refusal again is no failure of a run.
      expect(days.map(({ windows }) => windows.failed)).toEqual(days.map(() => 0))
      expect(days.slice(1).every(({ windows }) => windows.refused === 1)).toBe(true)
    }),
)

test('L2: spread over two days, verify compares every window once in two days and spends half of the budget', async () =>
  withRefusals(
    () => null,
    async (own) => {
      const settings = settingsAt({ ...own, now: () => own.clock.now }, { metrics: { credits: { '*': 1 } } })
      const days: VerifySummary[] = []
      for (let n = 0; n < 2; n++) {
        own.clock.now += day
        days.push(await askedAgain(own, { settings, budget: 300, spreadDays: 2 }))
      }
      expect(days.map(({ windows }) => windows.verified)).toEqual([14, 14])
      const verified = await reading(own.root, (ledger) => [...storedVerified(ledger).keys()])
      expect(new Set(verified).size).toBe(28)
    },
  ))

test('L2/L4: acknowledged refusals are left out of verify, which ends with 0 and makes no version', async () =>
  withRefusals(
    (_, asset) => (asset === 'A12' || asset === 'A13' ? 404 : null),
    async (own) => {
      await dayWith(own)
      expect(await acknowledgeAll(own)).toBe(4)
      const made = async (): Promise<number> => await reading(own.root, (ledger) => storedVersions(ledger).length)
      own.clock.now += 60
      for (let n = 0; n < 4; n++) {
        const before = await made()
        const place = { root: own.root, url: own.url, now: () => own.clock.now }
        own.seen.length = 0
        const settings = settingsAt(place, { metrics: { credits: { '*': 1 } } })
        const done = await askedAgain(own, { settings, budget })
        expect([exitOf(verifyVerdict(done)), await made()]).toEqual([0, before])
        expect(requestedAssets(own).filter((asset) => asset === 'A12' || asset === 'A13')).toEqual([])
        expect(done.windows).toMatchObject({ held: 24, chosen: budget, verified: budget, refused: 0 })
      }
    },
  ))

test('L2: a refusal that only verify meets fails it once, then waits for its turn and counts as verified nowhere', async () =>
  withRefusals(
    (path) => (path === height ? 403 : null),
    async (own) => {
      // Nothing is fetched any more: no refusal gets on record but by verify.
      const settings = settingsAt({ ...own, now: () => own.clock.now }, { metrics: { credits: { '*': 1 } } })
      const ends: VerifySummary[] = []
      for (let n = 0; n < 8; n++) ends.push(await askedAgain(own, { settings, budget }))
      const [first, ...others] = ends
      expect(first && [exitOf(verifyVerdict(first)), verifyVerdict(first)?.message]).toEqual([
        6,
        expect.stringContaining('the provider refuses them'),
      ])
      expect(others.slice(3).map((one) => exitOf(verifyVerdict(one)))).toEqual([0, 0, 0, 0])
      expect(others.slice(3).map(({ windows }) => windows.refused)).toEqual([1, 1, 1, 1])
      const rows = await reading(own.root, (ledger) => [...storedVerified(ledger).values()].flat())
      const refused = rows.filter(({ result }) => result === 'refused').map(({ series }) => series.split('|')[1])
      expect(new Set(refused).size).toBe(14)
    },
  ))
