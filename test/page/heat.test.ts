// @module-tag full
import { join } from 'node:path'
import type { Page as Tab } from 'playwright-core'
import { expect, test } from 'vitest'
import { withDesk } from '../helpers/importing.ts'
import { listening, sleep } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { pitlake } from '../helpers/command.ts'
import { rounds } from '../helpers/tiers.ts'
import { type Drawn as Chart, expectLine, reading as chartReading } from './drawing.ts'
import { random } from './random.ts'
import { browsing, drawn, shownFolder } from './serving.ts'

/* Vintages as a picture: each cell against the values that were told, one by one. `PITLAKE_PAGE` tries so many states. */

const states = rounds('PITLAKE_PAGE', 1, 3)
const day = 86_400_000
const iso = (ms: number): string => new Date(ms).toISOString()

/** A value that was told: of which month, when, and which was told before. */
interface Told {
  readonly asset: string
  readonly t: number
  readonly at: number
  readonly v: number
  readonly previous: number | null
}

/**
 * Ten years of months, each told again up to three times within two years; days on which values are told are instants
 * at their end.
 */
function story(draw: (n: number) => number): Told[] {
  return ['DE', 'US'].flatMap((asset) =>
    Array.from({ length: 120 }, (_, n) => Date.UTC(2010, n)).flatMap((t) => {
      const days = [...new Set(Array.from({ length: 1 + draw(4) }, (_, k) => (k === 0 ? 36 : 40 + draw(700))))]
      const values = days.map((_, k) => 3 + ((draw(90) + k) % 97) / 10)
      const told = days
        .toSorted((a, b) => a - b)
        .map((after, k) => ({ asset, t, at: t + (after + 1) * day, v: values[k]! }))
      // The same value again is no vintage.
      const others = told.filter((one, k) => k === 0 || one.v !== told[k - 1]!.v)
      return others.map((one, k) => ({ ...one, previous: others[k - 1]?.v ?? null }))
    }),
  )
}

interface Cell {
  readonly asset: string
  readonly px: number
  readonly line: number
  readonly n: number
  readonly v: number
  readonly previous: number | null
}

/** What the cells hold, from the values told by then within a range of t. */
function cellsOf(told: readonly Told[], since: number, until: number, columns: number): readonly Cell[] {
  const from = Math.min(...told.map(({ at }) => at))
  const to = Math.max(...told.map(({ at }) => at)) + 1
  const own = told.filter(({ t }) => t >= since && t < until)
  const place = (one: Told) => ({
    px: Math.floor(((one.t - since) * columns) / (until - since)),
    line: Math.floor(((one.at - from) * 24) / (to - from)),
  })
  const groups = Map.groupBy(own, (one) => `${one.asset} ${place(one).px} ${place(one).line}`).values()
  return [...groups].map((group) => {
    const last = group.toSorted((a, b) => a.at - b.at || a.t - b.t).at(-1)!
    return { asset: last.asset, ...place(last), n: group.length, v: last.v, previous: last.previous }
  })
}

const reading = `[...document.querySelectorAll('[role=img][aria-label^=vintages]')].map((frame) => ({
  asset: /vintages of (\\w+)/.exec(frame.ariaLabel)[1],
  cells: Object.fromEntries(['known', 'later'].map((name) => [name, [...frame.querySelectorAll('.' + name + ' .cell')].map((one) => {
    const { px, line, n, v, previous } = one.dataset
    return { px: Number(px), line: Number(line), n: Number(n), v: Number(v), previous: previous === undefined ? null : Number(previous) }
  })]))
}))`
type Drawn = readonly { readonly asset: string; readonly cells: Record<'known' | 'later', readonly Cell[]> }[]

const sorted = (cells: readonly Cell[]) =>
  cells.map(({ px, line, n, v, previous }) => [px, line, n, v, previous].join(' ')).toSorted()

async function expectCells(tab: Tab, told: readonly Told[], asOf: string | undefined, range: readonly number[]) {
  const [since = 0, until = 0] = range
  const columns = Math.floor(Number(await tab.locator('.chart svg').first().getAttribute('data-columns')) / 8)
  expect(await tab.locator('#trouble').textContent()).toBe('')
  const picture: Drawn = await tab.evaluate(reading)
  expect(picture.map(({ asset }) => asset)).toEqual(['DE', 'US'])
  const all = cellsOf(told, since, until, columns)
  const first = Math.min(...told.map(({ at }) => at))
  const known = told.filter(({ at }) => asOf === undefined || at <= Date.parse(asOf))
  // Places are those of all that was told, whatever is known.
  const edges = told.filter(({ at }) => at === first || at === Math.max(...told.map((one) => one.at)))
  const held = new Set(known)
  const cut = cellsOf(
    [...known, ...edges.map((one) => ({ ...one, t: held.has(one) ? Infinity : -1 }))],
    since,
    until,
    columns,
  )
  const chart: Chart = await tab.evaluate(chartReading)
  const last = (one: Told): boolean =>
    !known.some(({ asset, t, at }) => asset === one.asset && t === one.t && at > one.at)
  for (const { asset, cells } of picture) {
    expectLine(chart.paths.known[asset], known.filter(last), asset, chart)
    expect(sorted(cells.later), `${asset} later`).toEqual(sorted(all.filter((one) => one.asset === asset)))
    expect(sorted(cells.known), `${asset} at ${asOf}`).toEqual(sorted(cut.filter((one) => one.asset === asset)))
  }
}

test(`each cell of vintages shows its value in ${states} states, for pointer, keys and readers`, async (own) => {
  const executable = need(own, 'chromium')
  const draw = random(5)
  const told = story(draw)
  await withDesk(async ({ folder, put, take }) => {
    const lines = told.map(({ asset, t, at, v }) => `${asset},${iso(t)},${v},${iso(at - day).slice(0, 10)}`)
    const file = put('rate.csv', `asset,t,value,told\n${lines.join('\n')}\n`)
    const taken = await take([file, '--as', 'rate', '--interval', '1month', '--vintage', 'told'])
    expect(taken.told).toMatchObject({ rows: told.length, points_added: 240, vintages_added: told.length - 240 })
    const lake = join(folder, 'lake')
    const door = await listening(lake, ['serve'])
    const browser = await browsing(executable)
    try {
      const tab = await browser.open()
      const whole = [Date.UTC(2010, 0), Date.UTC(2020, 0)]
      for (let n = 0; n < states; n++) {
        await tab.setViewportSize({ width: [390, 1280, 2560][draw(3)]!, height: 900 })
        const asOf = draw(4) === 0 ? undefined : iso(Date.UTC(2010, 0) + draw(3900) * day)
        const since = Date.UTC(2010, 0) + draw(2000) * day
        const range = draw(2) === 0 ? whole : [since, since + (1 + draw(1500)) * day]
        const typed = range === whole ? {} : { since: iso(range[0]!), until: iso(range[1]!) }
        await drawn(tab, door.url, { metric: 'own/rate', assets: 'DE,US', ...typed, ...(asOf && { as_of: asOf }) })
        await expectCells(tab, told, asOf, range)
      }
      await tab.setViewportSize({ width: 390, height: 844 })
      await drawn(tab, door.url, { metric: 'own/rate', assets: 'DE,US', as_of: '2012-05-06' })
      expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(390)
      const frame = tab.locator('[role=img][aria-label^="vintages of US"]')
      await frame.focus()
      for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowUp', 'ArrowRight', 'ArrowDown']) await tab.keyboard.press(key)
      const said = await tab.locator('[role=status]').last().textContent()
      const [, month, value, at] =
        /^US (\d{4}-\d\d-\d\d): ([\d.]+) known from (\d{4}-\d\d-\d\d) \(vintage \d, \w+\)/.exec(said ?? '') ?? []
      const held = told.map((one) => [one.asset, iso(one.t).slice(0, 10), one.v, iso(one.at).slice(0, 10)].join(' '))
      expect(held).toContain(`US ${month} ${Number(value)} ${at}`)
      expect(await frame.locator('.known .looked').count()).toBe(1)
      const site = join(folder, 'site')
      const argv = ['serve', '--data', lake, '--export', site, '--as-of', '2013-01-01', '--instants', '2']
      expect(await pitlake(lake, argv, {}, { sleep })).toMatchObject({ code: 0 })
      const shown = await shownFolder(site)
      await drawn(tab, shown.url, { metric: 'own/rate', assets: 'DE,US' })
      const known = told.filter(({ at: when }) => when <= Date.UTC(2013, 0))
      const last = Math.max(...known.map(({ t }) => t))
      await expectCells(tab, known, undefined, [
        whole[0]!,
        Date.UTC(new Date(last).getUTCFullYear(), new Date(last).getUTCMonth() + 1),
      ])
      await shown.stop()
      expect(browser.said).toEqual([])
    } finally {
      await browser.close()
      await door.stop()
    }
  })
})
