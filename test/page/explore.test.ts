// @module-tag full
// @module-tag slow
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page as Tab } from 'playwright-core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { listening, sleep } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { rounds } from '../helpers/tiers.ts'
import { type Drawn, expectDots, expectLines, instantsIn, pointsAt, reading, stateOf } from './drawing.ts'
import { random } from './random.ts'
import { bareLake, browsing, drawn, shownFolder } from './serving.ts'

/*
 * The page of `serve` in a browser: what it draws is what SQL says at the same instant, and nothing beyond the wall.
 * `PITLAKE_PAGE` tries so many states; without it a few.
 */

const states = rounds('PITLAKE_PAGE', 1, 3)
const wall = '2024-02-20T03:00:00Z'

const { root: folder } = lakeOfFile(hundredFetchedDays)
let bare: Engine
let browser: Awaited<ReturnType<typeof browsing>> | undefined
let tab: Tab
const doors = new Map<string, { readonly url: string; readonly stop: () => Promise<unknown> }>()

beforeEach(async (own) => {
  const executable = need(own, 'chromium')
  if (browser) return
  doors.set('free', await listening(folder, ['serve']))
  doors.set('walled', await listening(folder, ['serve', '--as-of', wall]))
  bare = await bareLake(folder)
  browser = await browsing(executable)
  tab = await browser.open()
}, 300_000)

afterAll(async () => {
  await browser?.close()
  for (const door of doors.values()) await door.stop()
  if (browser) bare.close()
})

const door = (name: string): string => doors.get(name)?.url ?? ''

describe('the chart', () => {
  test(`draws what SQL says, in ${states} states`, async () => {
    const draw = random(Number(process.env['PITLAKE_PAGE_SEED'] ?? 1))
    for (let n = 0; n < states; n++) {
      const state = stateOf(draw)
      await tab.setViewportSize({ width: [390, 640, 1280, 2560][draw(4)]!, height: 900 })
      await drawn(tab, door('free'), state)
      const picture: Drawn = await tab.evaluate(reading)
      const metric = state['metric']!
      const known = await pointsAt(bare, metric, state['as_of'] ?? null)
      const later = await pointsAt(bare, metric, null)
      expect(Object.keys(picture.paths.later)).toEqual(state['assets']?.split(','))
      expectLines(picture, { known, later })
      const second = state['second'] === undefined ? [] : await pointsAt(bare, metric, state['second'])
      expectLines(picture, { second })
      expectDots(picture, { known, later }, state['assets']?.split(',') ?? [])
    }
  })
})

describe('a step of the slider', () => {
  test('a step of the slider shows the exact instants of arrivals if columns cover nine days each', async () => {
    await tab.setViewportSize({ width: 390, height: 900 })
    const later = await pointsAt(bare, 'indicators/one', null)
    for (let day = 30; day < 40; day++) {
      // Ten minutes after a day its value is known; a millisecond before, it is not.
      const known = Date.UTC(2024, 0, 1 + day, 0, 10)
      const asOf = day % 3 === 0 ? new Date(known - 1).toISOString() : new Date(known).toISOString()
      const range = { since: '2020-01-01', until: '2028-01-01' }
      await drawn(tab, door('free'), { metric: 'indicators/one', assets: 'BTC,ETH', as_of: asOf, ...range })
      const picture: Drawn = await tab.evaluate(reading)
      const told = await pointsAt(bare, 'indicators/one', asOf)
      expect(told).toHaveLength(2 * (day % 3 === 0 ? day - 1 : day))
      expectLines(picture, { known: told, later })
    }
  })
})

describe('a point', () => {
  test('a point shows all its fields to pointer and keys, with its violations', async () => {
    const other = { asset: 'BTC', t: '2024-01-11T00:00:00Z', at: Date.UTC(2024, 0, 11), kind: 'changed' }
    const dispute = { ...other, stored: '2010', offered: '2040', offered_at: '2024-02-20T00:00:00Z' }
    const own = await browser!.open()
    await own.route('**/query*', async (route) => {
      const isAsked = (route.request().postData() ?? '').includes('FROM violations')
      await (isAsked ? route.fulfill({ json: [{ all_rows: [dispute] }] }) : route.continue())
    })
    const state = { metric: 'indicators/one', assets: 'BTC' }
    await drawn(own, door('free'), { ...state, as_of: '2024-02-10T12:00:00Z' })
    expect(await own.locator('.dispute.late').count()).toBe(1)
    await drawn(own, door('free'), { ...state, as_of: '2024-03-01T12:00:00Z' })
    const picture: Drawn = await own.evaluate(reading)
    expect([await own.locator('.dispute').count(), await own.locator('.dispute.late').count()]).toEqual([1, 0])
    const y = Number(await own.locator('.dispute line').getAttribute('y2'))
    expect(y).toBeCloseTo(
      picture.height - 30 + ((2040 - picture.y[0]) / (picture.y[1] - picture.y[0])) * (42 - picture.height),
      1,
    )
    await own.unroute('**/query*')
    await own.locator('.chart').focus()
    for (let n = 0; n < 3; n++) await own.keyboard.press('ArrowLeft')
    const told = await own.locator('.tip dd').allTextContents()
    await bare.run(`SET VARIABLE as_of = '2024-03-01T12:00:00Z'`)
    const [row] = await bare.rows<{ t: string; v: number; a: string; o: string; basis: string }>(
      `SELECT strftime(t, '%Y-%m-%d') AS t, v, strftime(available_at, '%Y-%m-%d %H:%MZ') AS a, strftime(observed_at, '%Y-%m-%d %H:%M') AS o, basis
       FROM points WHERE metric = 'indicators/one' AND asset = 'BTC' ORDER BY t DESC LIMIT 1 OFFSET 2`,
    )
    const seen = expect.stringContaining(row?.o ?? '?') as unknown
    expect(told).toEqual([row?.t, row?.v.toLocaleString('en'), row?.a, seen, row?.basis])
    await own.close()
  })
})

describe('behind a wall', () => {
  test('a page behind an as_of limit draws and fetches no point that was known later', async () => {
    const draw = random(7)
    const own = await browser!.open()
    const told: string[] = []
    const refused: number[] = []
    own.on('response', (answer) => {
      if (answer.status() >= 400) refused.push(answer.status())
      else if (answer.url().includes('/query'))
        void answer.text().then(
          (text) => told.push(text),
          () => undefined,
        )
    })
    for (let n = 0; n < Math.max(2, states / 3); n++) {
      const { as_of: asked, second: _, ...state } = stateOf(draw)
      const early = asked !== undefined && asked < wall ? { as_of: asked } : {}
      await drawn(own, door('walled'), { ...state, ...early })
      const picture: Drawn = await own.evaluate(reading)
      const [known, later] = [
        await pointsAt(bare, state['metric']!, early.as_of ?? wall),
        await pointsAt(bare, state['metric']!, wall),
      ]
      expectLines(picture, { known, later })
    }
    for (const view of ['universe', 'versions', 'sql', 'panel', 'coverage', 'when'])
      await drawn(own, door('walled'), { view })
    expect(refused).toEqual([])
    expect(told.length).toBeGreaterThan(10)
    expect(Math.max(...told.flatMap(instantsIn))).toBeLessThanOrEqual(Date.parse(wall))
    await drawn(own, door('walled'), { as_of: '2024-03-01' })
    expect(await own.locator('#trouble').textContent()).toContain(`at most ${wall}`)
    await own.locator('#as_of').fill('2024-02-20 03:00:01')
    await own.locator('#as_of').press('Enter')
    expect(await own.locator('#trouble').textContent()).toContain(`at most ${wall}`)
    await own.close()
  })

  test('no path of a server behind an as_of limit returns more', async () => {
    const ask = async (path: string, body: object) =>
      await fetch(`${door('walled')}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const one = { assets: 'BTC', metrics: ['indicators/one'] }
    const sql = `SELECT count(*) AS n, max(available_at) <= '${wall}'::TIMESTAMPTZ AS held FROM points`
    const n =
      (await pointsAt(bare, 'supply/current_pit', wall)).length + (await pointsAt(bare, 'indicators/one', wall)).length
    expect(await (await ask('/query', { sql })).json()).toEqual({ n, held: true })
    for (const later of ['2024-02-20T03:00:00.000001Z', '2024-02-20T04:00:00+00:30', '2025-01-01']) {
      expect((await ask('/query', { sql, as_of: later })).status, later).toBe(400)
      const asked = { ...one, calendar: '2024-01-02,2024-03-01,1d', as_of: later }
      expect((await ask('/panel', asked)).status).toBe(400)
    }
    expect((await ask('/query', { sql, as_of: '2024-02-20T04:00:00+01:00' })).status).toBe(200)
    const panel = await ask('/panel', { ...one, calendar: '2024-02-01,2024-03-01,1d' })
    const rows = (await panel.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, number>)
    const known = (await pointsAt(bare, 'indicators/one', wall)).filter(({ asset }) => asset === 'BTC').at(-1)?.v
    expect(Math.max(...rows.map((row) => row['indicators/one']!))).toBe(known)
    const leak = await ask('/lookahead', { sql: 'SELECT t AS ts, v FROM points' })
    expect([leak.status, await leak.text()]).toEqual([400, expect.stringContaining('expected the whole lake')])
    expect((await fetch(`${door('walled')}/healthz`)).status).toBe(404)
    expect(await (await ask('/query', { sql: 'SELECT count(*) AS n FROM versions' })).json()).toEqual({ n: 1 })
  })
})

describe('the address', () => {
  test('holds the whole state: a link opens the same view', async () => {
    const draw = random(3)
    const other = await browser!.open()
    for (let n = 0; n < Math.max(1, states / 10); n++) {
      await drawn(tab, door('free'), stateOf(draw))
      await tab.locator('.assets input').last().click()
      await tab.locator('#slider').focus()
      for (let k = 0; k < 3; k++) await tab.keyboard.press('PageDown')
      await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
      const address = tab.url()
      await other.setViewportSize(tab.viewportSize()!)
      await other.goto(address)
      await other.waitForSelector('body[data-drawn]:not([aria-busy])')
      expect(other.url()).toBe(address)
      const one: Drawn = await tab.evaluate(reading)
      const two: Drawn = await other.evaluate(reading)
      expect(two).toEqual(one)
    }
    await other.close()
  })

  test('a page of another site may link to it, and read nothing', async () => {
    const answered = async (path: string, site: string, mode = 'navigate') =>
      (await fetch(`${door('free')}${path}`, { headers: { 'sec-fetch-site': site, 'sec-fetch-mode': mode } })).status
    for (const path of ['/', '/page/app.js', '/page/page.css'])
      expect(await answered(path, 'cross-site'), path).toBe(200)
    for (const path of ['/query?sql=SELECT+1', '/panel', '/metrics', '/healthz', '/lookahead?sql=SELECT+1'])
      expect(await answered(path, 'cross-site'), path).toBe(403)
    const page = await fetch(`${door('free')}/`)
    expect(page.headers.get('content-security-policy')).toContain("default-src 'self'")
    expect(page.headers.get('refresh')).toBeNull()
    const held = { 'if-none-match': page.headers.get('etag') ?? '' }
    const again = await fetch(`${door('free')}/`, { headers: held })
    expect([again.status, await again.text()]).toEqual([304, ''])
  })
})

describe('the other views', () => {
  /** The rows of a table by its name. */
  const cells = async (label: string): Promise<string[][]> =>
    await tab.evaluate((name) => {
      const lines = [...document.querySelectorAll(`[aria-label="${name}"] tbody tr`)]
      return lines.map((line) => [...line.children].map((cell) => cell.textContent))
    }, label)
  const one = async (sql: string, asOf: string | null = null): Promise<readonly Record<string, unknown>[]> => {
    await bare.run(`SET VARIABLE as_of = ${asOf === null ? 'NULL' : `'${asOf}'`}`)
    return await bare.rows(sql)
  }

  test('universe: who was known, who joined, and what each was', async () => {
    for (const asOf of ['2024-01-31T23:59:59Z', '2024-02-01']) {
      await drawn(tab, door('free'), {
        view: 'universe',
        search: 'p1',
        ...(asOf !== null && { as_of: asOf }),
        before: '2024-01-15',
        product: 'p12',
      })
      const told = (await cells('Products')).map(([id]) => id)
      const known = await one(
        `SELECT product_id FROM universe WHERE contains(lower(concat_ws(' ', product_id, name, issuer_name)), 'p1') ORDER BY 1`,
        asOf,
      )
      expect(told).toEqual(known.map(({ product_id: id }) => id))
      expect(await tab.locator('[data-group=joined] strong').textContent()).toBe(`${known.length} joined`)
      expect(await tab.locator('.strip rect').count()).toBe(known.length === 0 ? 0 : 1)
    }
  })

  test('the view of versions shows the additions and the run of each commit', async () => {
    await drawn(tab, door('free'), { view: 'versions', from: '0' })
    const series = (await cells('Series with new points')).map((row) => [row[0], row[1], Number(row[4])])
    const known = await one(
      'SELECT metric, asset, count(*)::INTEGER AS n FROM points GROUP BY ALL ORDER BY n DESC, metric, asset',
    )
    expect(series).toEqual(known.map(({ metric, asset, n }) => [metric, asset, n]))
    const [runs] = await one('SELECT count(*)::INTEGER AS n FROM versions')
    expect(await cells('Commits and their runs')).toHaveLength(Number(runs?.['n']))
    await drawn(tab, door('free'), { view: 'versions' })
    const text = await tab.locator('h2').allTextContents()
    expect(text.find((words) => words.startsWith('Commits'))).toBe('Commits and their runs: 1')
  })

  test('SQL: completion, rows, a verdict in a sentence, files', async () => {
    await drawn(tab, door('free'), { view: 'sql' })
    const text = tab.locator('textarea')
    await text.fill('')
    await text.pressSequentially('SELECT t AS ts, asset, v, avg(v) OVER (PARTITION BY asset) AS mean FROM poi')
    await tab.locator('#words li').first().waitFor()
    await tab.keyboard.press('Tab')
    await text.pressSequentially(" WHERE metric = 'indicators/one' AND asset = 'BTC' ORDER BY ts")
    await tab.keyboard.press('Control+Enter')
    await tab.locator('[aria-label="Result"] tbody tr').first().waitFor()
    const rows = await cells('Result')
    expect(rows).toHaveLength(100)
    expect(rows[3]).toEqual(['2024-01-04', 'BTC', '2,003', '2,049.5'])
    expect(await tab.locator('.quick circle').count()).toBe(100)
    await tab.locator('.verdict.leak').waitFor()
    expect(await tab.locator('.verdict.leak').textContent()).toMatch(
      /On 2024-\d\d-\d\d \(asset BTC.*\) the query gives mean 2,049\.5; with only the data known at .* it gives 2,0\d\d/,
    )
    const [file] = await Promise.all([tab.waitForEvent('download'), tab.getByRole('button', { name: 'CSV' }).click()])
    const csv = await (await file.createReadStream()).toArray()
    expect(
      Buffer.concat(csv as Buffer[])
        .toString()
        .trim()
        .split('\n'),
    ).toHaveLength(101)
  })

  test('panel: every way of asking gives the rows that are shown', async () => {
    const state = {
      view: 'panel',
      metrics: 'indicators/one,s=supply/current_pit',
      calendar: '2024-01-10,2024-01-20,1d',
      assets: 'BTC,ETH',
      latency: '15m',
    }
    await drawn(tab, door('free'), { ...state, as_of: '2024-01-15T06:00:00Z' })
    const shown = (await cells('Panel')).map((row) =>
      row.slice(2).map((text) => (text === 'null' ? null : Number(text.replaceAll(',', '')))),
    )
    expect(shown).toHaveLength(20)
    const way = async (name: string): Promise<string> => (await tab.locator(`[data-way="${name}"]`).textContent()) ?? ''
    const values = (rows: readonly Record<string, unknown>[]) => rows.map((row) => [row['indicators/one'], row['s']])
    const [address = ''] = /http[^']+/.exec(await way('HTTP')) ?? []
    expect(values((await (await fetch(`${address}&format=json`)).json()) as Record<string, unknown>[])).toEqual(shown)
    const argv = (await way('Command line'))
      .split(' ')
      .slice(1)
      .map((word) => word.replaceAll("'", ''))
    const out = join(folder, '..', 'panel.json')
    expect(await pitlake(folder, [...argv, '--data', folder, '--out', out])).toMatchObject({ code: 0 })
    expect(values(JSON.parse(readFileSync(out, 'utf8')) as Record<string, unknown>[])).toEqual(shown)
    const statements = (await way('SQL')).split(';\n')
    for (const statement of statements.slice(0, -2)) await bare.run(statement.replace('"decisions"', 'temp.decisions'))
    expect(values(await bare.rows(statements.at(-2)!))).toEqual(shown)
    expect(await way('Python')).toContain(
      'lake.panel(days, {"indicators/one": "indicators/one", "s": "supply/current_pit"}, "24h", latency="15m").df()',
    )
  })

  test('the view of coverage shows the ranges of the ledger and the verdict of status', async () => {
    await drawn(tab, door('free'), { view: 'coverage' })
    const told = (await cells('Coverage')).map((row) => [row[0], row[2], row[3]])
    const known = await one(
      `SELECT metric, count(DISTINCT asset)::VARCHAR AS n, (count(*) FILTER (state = 'covered'))::VARCHAR AS c FROM coverage GROUP BY metric ORDER BY metric`,
    )
    expect(told).toEqual(known.map(({ metric, n, c }) => [metric, n, c]))
    const health = (await (await fetch(`${door('free')}/healthz`)).json()) as { text: string; trust: string }
    expect(await tab.locator('.verdict p').first().textContent()).toBe(health.text)
  })
})

describe('a folder', () => {
  test('any static server shows it: charts, universe and coverage, and what needs an engine names it', async () => {
    const out = join(folder, '..', 'site')
    const argv = ['serve', '--data', folder, '--export', out, '--as-of', wall, '--instants', '2']
    expect(await pitlake(folder, argv, {}, { sleep })).toMatchObject({ code: 0 })
    const site = await shownFolder(out)
    doors.set('site', site)
    await drawn(tab, site.url, { metric: 'indicators/one', as_of: '2024-02-10' })
    const picture: Drawn = await tab.evaluate(reading)
    expect(picture.asOf < '2024-02-10').toBe(true)
    const [known, later] = [
      await pointsAt(bare, 'indicators/one', picture.asOf),
      await pointsAt(bare, 'indicators/one', wall),
    ]
    expect(known.length).toBeLessThan(later.length)
    expectLines(picture, { known, later })
    await drawn(tab, site.url, { view: 'universe', product: 'p3' })
    expect(await tab.locator('h2').allTextContents()).toEqual(['p3', '20 products'])
    await drawn(tab, site.url, { view: 'coverage' })
    expect(await tab.locator('#trouble').textContent()).toBe('')
    await drawn(tab, site.url, { view: 'sql' })
    expect(await tab.locator('main').textContent()).toContain('pitlake serve')
    const files = readdirSync(join(out, 'data')).filter((name) => name !== 'index.json')
    const told = files.flatMap((name) => instantsIn(readFileSync(join(out, 'data', name), 'utf8')))
    expect(Math.max(...told)).toBeLessThanOrEqual(Date.parse(wall))
  })
})

describe('afterwards', () => {
  test('the page sends no request to other hosts and logs no error', () => {
    const homes = [...doors.values()].map(({ url }) => `${url}/`)
    expect(browser!.asked.length).toBeGreaterThan(20)
    const elsewhere = (url: string): boolean => ![...homes, 'about:'].some((home) => url.startsWith(home))
    expect(browser!.asked.filter(elsewhere)).toEqual([])
    expect(browser!.said.filter((words) => !/status of (400|503)/.test(words))).toEqual([])
  })
})
