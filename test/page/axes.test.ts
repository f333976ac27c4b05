// @module-tag full
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page as Tab } from 'playwright-core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { sessionYears } from '../../src/catalog/sessions.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { listening, sleep } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { type Drawn, expectDots, expectLines, pointsAt, type Raw, reading } from './drawing.ts'
import { dailyMetric, hourlyMetric, pictures } from './pictures.ts'
import { random } from './random.ts'
import { bareLake, browsing, drawn, shownFolder } from './serving.ts'

/* Axes upwards and sessions: each line against the points one by one, and what the page says of those without a place. */

const { root: folder } = lakeOfFile(pictures)
let bare: Engine
let browser: Awaited<ReturnType<typeof browsing>> | undefined
let door: Awaited<ReturnType<typeof listening>> | undefined
let tab: Tab

beforeEach(async (own) => {
  const executable = need(own, 'chromium')
  if (browser) return
  door = await listening(folder, ['serve'])
  bare = await bareLake(folder)
  browser = await browsing(executable)
  tab = await browser.open()
}, 300_000)

afterAll(async () => {
  await browser?.close()
  await door?.stop()
  if (browser) bare.close()
})

const url = (): string => door?.url ?? ''
const picture = async (): Promise<Drawn> => await tab.evaluate(reading)
const said = async (): Promise<string> => (await tab.locator('#saying').textContent()) ?? ''
const isIn = ({ x }: Drawn, { t }: Raw): boolean => t >= x[0] && t < x[1]

/** What the page shares with the export, as far as these tests call it. */
interface PageModule {
  readonly exchanges: Readonly<Record<string, string>>
  readonly sessionYears: readonly number[]
  readonly hasSessions: (picked: { readonly interval: string }) => boolean
}
const pageModule = async (): Promise<PageModule> =>
  (await import(new URL('../../src/interfaces/page/shared/questions.js', import.meta.url).href)) as PageModule

describe('the axis upwards', () => {
  test.each(['log', 'index'])(
    '%s: each line is what its points come to, in any range and at any instant',
    async (scale) => {
      const draw = random(11)
      for (let n = 0; n < 6; n++) {
        await tab.setViewportSize({ width: [390, 1280][n % 2]!, height: 900 })
        const at = (most: number): string => new Date(Date.UTC(2024, 0, 1) + draw(most) * 36e5).toISOString()
        const [since, until] = [at(3000), at(4700)].toSorted()
        const range = [{}, { since: since!, until: until! }, { since: '2010-01-01', until: '2030-01-01' }][n % 3]!
        const instants = { as_of: at(4700), ...(n % 2 === 1 && { second: at(4700) }) }
        await drawn(tab, url(), { metric: dailyMetric, assets: 'BTC,ETH,LTC,XRP,DOGE', scale, ...instants, ...range })
        const found = await picture()
        expect(found.scale).toBe(scale)
        const known = await pointsAt(bare, dailyMetric, found.asOf)
        const later = await pointsAt(bare, dailyMetric, null)
        const second = 'second' in instants ? await pointsAt(bare, dailyMetric, instants.second) : []
        expectLines(found, { known, later, second })
        // Nothing is drawn outside of the frame.
        const ups = Object.values(found.paths).flatMap((own) =>
          Object.values(own).flatMap((path) => path.match(/,[-\d.]+/g) ?? []),
        )
        expect(ups.filter((one) => Number(one.slice(1)) < 12 || Number(one.slice(1)) > found.height - 30)).toEqual([])
      }
    },
  )

  test('log: the page counts the values at or below zero that have no place', async () => {
    const state = { metric: dailyMetric, assets: 'BTC,ETH,LTC', scale: 'log', as_of: '2024-04-01T12:00:00Z' }
    await drawn(tab, url(), state)
    const found = await picture()
    const without = async (asset: string, asOf: string | null): Promise<number> =>
      (await pointsAt(bare, dailyMetric, asOf)).filter((one) => one.asset === asset && one.v !== null && one.v <= 0)
        .length
    const counted = async (asset: string): Promise<string> =>
      `${asset} ${await without(asset, found.asOf)} of the known, ${await without(asset, null)} of all`
    expect(await without('ETH', found.asOf)).toBeGreaterThan(20)
    expect(await said()).toBe(
      `A log axis has no place for values at or below zero. Not drawn: ${await counted('ETH')}; ${await counted('LTC')}.`,
    )
    await drawn(tab, url(), { ...state, assets: 'BTC' })
    expect(await said()).toBe('')
    await drawn(tab, url(), { metric: dailyMetric, assets: 'ETH', as_of: state.as_of })
    expect(await said()).toBe('')
  })

  test('log: dots stand for the values above zero, and the figures of the axis are round', async () => {
    await tab.setViewportSize({ width: 1280, height: 900 })
    const range = { since: '2024-01-01', until: '2024-03-01' }
    await drawn(tab, url(), { metric: dailyMetric, assets: 'BTC,ETH', scale: 'log', ...range })
    const known = (await pointsAt(bare, dailyMetric, null)).filter(({ v }) => v !== null && v > 0)
    expectDots(await picture(), { known, later: known }, ['BTC', 'ETH'])
    await drawn(tab, url(), { metric: dailyMetric, assets: 'BTC', scale: 'log' })
    const figures = await tab.locator('.ground text[text-anchor=end]').allTextContents()
    expect(figures.map((one) => one.trim())).toEqual(expect.arrayContaining(['10', '100', '1000', '10K']))
  })

  test('index: the page names the base of each line, and which have none', async () => {
    const state = { metric: dailyMetric, assets: 'BTC,LTC,XRP,DOGE', scale: 'index' }
    await drawn(tab, url(), { ...state, as_of: '2024-01-08T12:00:00Z' })
    // The first value of BTC comes after ten days; until then the second is the first.
    expect(await said()).toBe(
      '100 is BTC 3.1413856 on 2024-01-02; XRP -20 on 2024-01-01.In grey, BTC begins with 3 on 2024-01-01.' +
        'LTC begins with 0 on 2024-01-04: it has no index and is not drawn.' +
        'XRP begins below zero: its index falls where its value rises.' +
        'DOGE has no known value in this range, so it has no base.',
    )
    await drawn(tab, url(), { ...state, assets: 'BTC,LTC', since: '2024-01-05', as_of: '2024-01-20T12:00:00Z' })
    expect(await said()).toBe('100 is BTC 3.6067933 on 2024-01-05; LTC 1 on 2024-01-05.')
    const newest = await tab.locator('[aria-label="Newest values"] tbody tr td:nth-child(3)').allTextContents()
    // 14 days on from the base: 10^(14/50), and 15 of 1.
    expect(newest).toEqual(['190.546', '1,500'])
  })
})

describe('sessions', () => {
  test('the exchanges and years of the page are those of the catalogue', async () => {
    const page = await pageModule()
    expect(Object.keys(page.exchanges).toSorted()).toEqual([...loadCatalogue().sessions.keys()].toSorted())
    expect(page.sessionYears).toEqual([sessionYears.first, sessionYears.last])
  })

  test.each([
    [dailyMetric, 86_400_000, 'XNYS'],
    [dailyMetric, 86_400_000, 'XTKS'],
    [hourlyMetric, 3_600_000, 'XLON'],
    [hourlyMetric, 3_600_000, 'XNYS'],
  ])('points of %s in whose %i ms a session of %s closes are drawn, and no others', async (metric, length, code) => {
    await tab.setViewportSize({ width: 1280, height: 900 })
    const asOf = '2024-03-10T00:00:00Z'
    await drawn(tab, url(), { metric, assets: 'BTC', sessions: code, as_of: asOf })
    const found = await picture()
    await bare.run(`SET VARIABLE as_of = NULL`)
    const closes = await bare.rows<{ at: bigint }>(
      `SELECT epoch_ms(closes_at) AS at FROM sessions('2024-01-01', '2024-08-01', '${code}')`,
    )
    const holds = ({ t }: Raw): boolean => closes.some(({ at }) => Number(at) > t && Number(at) <= t + length)
    const known = (await pointsAt(bare, metric, found.asOf)).filter(holds)
    const later = (await pointsAt(bare, metric, null)).filter(holds)
    expect(known.length).toBeGreaterThan(8)
    expectLines(found, { known, later })
    expectDots(found, { known, later }, ['BTC'])
    expect(await said()).toBe(
      `Only points in whose interval a session of ${code} closes. Sessions are listed from 2000 to 2030.`,
    )
    // A weekend is no gap.
    expect(found.paths.known['BTC']?.match(/M/g)).toHaveLength(1)
    expect(known.filter((one) => isIn(found, one))).toHaveLength(known.length)
  })

  test('the control changes the address, and an interval longer than a day has none', async () => {
    await drawn(tab, url(), { metric: dailyMetric, assets: 'BTC' })
    await tab.locator('main select[aria-label="closes of sessions"]').selectOption('XNYS')
    await tab.waitForFunction(() => location.hash.includes('sessions=XNYS'))
    const own = (await pageModule()).hasSessions
    expect(['10m', '1h', '24h', '1w', '1month', '3month'].filter((interval) => own({ interval }))).toEqual([
      '10m',
      '1h',
      '24h',
    ])
  })
})

describe('a folder', () => {
  test('has both axes and no control that it has no answer to', async () => {
    const out = join(folder, '..', 'site')
    const argv = ['serve', '--data', folder, '--export', out, '--as-of', '2024-05-01', '--instants', '2']
    expect(await pitlake(folder, argv, {}, { sleep })).toMatchObject({ code: 0 })
    const site = await shownFolder(out)
    try {
      for (const scale of ['log', 'index']) {
        await drawn(tab, site.url, { metric: dailyMetric, scale, second: '2024-04-01' })
        const found = await picture()
        const known = await pointsAt(bare, dailyMetric, '2024-05-01T00:00:00Z')
        expectLines(found, { known, later: known })
        expect(found.paths.second['BTC']).toMatch(/^M/)
      }
      const names = await tab
        .locator('main')
        .getByRole('combobox')
        .evaluateAll((all) => all.map((one) => one.ariaLabel))
      expect(names).toEqual(['metric', 'axis'])
      const { charts } = JSON.parse(readFileSync(join(out, 'data', 'index.json'), 'utf8')) as { charts: string[] }
      const offered = await tab.getByLabel('metric').first().locator('option').allTextContents()
      expect([charts.toSorted(), offered]).toEqual([[hourlyMetric, dailyMetric].toSorted(), charts])
      // Each choice of each control is answered.
      for (const name of names) {
        const control = tab.locator(`main [aria-label="${name}"]`)
        for (const value of await control
          .locator('option')
          .evaluateAll((all) => all.map((one) => one.getAttribute('value') ?? ''))) {
          await control.selectOption(value)
          await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
          expect(await tab.locator('#trouble').textContent(), `${name} ${value}`).toBe('')
        }
      }
    } finally {
      await site.stop()
    }
    expect(browser!.said).toEqual([])
  })
})
