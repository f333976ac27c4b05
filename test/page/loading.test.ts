// @module-tag full
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page as Tab, Route } from 'playwright-core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { longestQuestion } from '../../src/interfaces/server/bounds.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { listening } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { until } from '../helpers/processes.ts'
import { browsing, drawn } from './serving.ts'

/* While answers are on their way, and when they come in another order than they were asked for. */

const { root: folder } = lakeOfFile(hundredFetchedDays)
let door: Awaited<ReturnType<typeof listening>> | undefined
let browser: Awaited<ReturnType<typeof browsing>> | undefined
let tab: Tab
/** Requests whose answers wait, with the text of their question. */
let waiting: { readonly question: string; readonly route: Route }[] = []

beforeEach(async (own) => {
  const executable = need(own, 'chromium')
  door ??= await listening(folder, ['serve'])
  browser ??= await browsing(executable)
  tab = await browser.open()
  waiting = []
}, 300_000)

afterAll(async () => {
  await browser?.close()
  await door?.stop()
})

/** Makes the answers to questions that contain a text wait. */
async function withhold(text: string): Promise<void> {
  await tab.route(/\/(query|panel)\b/, async (route) => {
    const question = route.request().postData() ?? ''
    if (question.includes(text)) waiting.push({ question, route })
    else await route.continue()
  })
}

/** Lets the answers that wait arrive; those that the page no longer wants are refused by the browser. */
async function arrive(which: (question: string) => boolean = () => true): Promise<void> {
  const now = waiting.filter(({ question }) => which(question))
  waiting = waiting.filter(({ question }) => !which(question))
  await Promise.all(now.map(async ({ route }) => route.continue().catch(() => undefined)))
}

const url = (): string => door?.url ?? ''
const go = async (state: Readonly<Record<string, string>>): Promise<void> =>
  await tab.evaluate((hash) => void (location.hash = hash), `#${new URLSearchParams(state).toString()}`)
const settled = async (): Promise<unknown> => await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
const texts = async (): Promise<string> => (await tab.locator('main').textContent()) ?? ''
const products = async (): Promise<string[]> =>
  await tab.locator('[aria-label="Products"] tbody td:first-child').allTextContents()

test('a tab whose answers have not come shows a loading sign and nothing of the tab before', async () => {
  await drawn(tab, url(), { view: 'universe' })
  expect((await products()).length).toBeGreaterThan(10)
  await withhold('coverage')
  await go({ view: 'coverage' })
  await until(() => waiting.length > 0, 'the questions of the new tab')
  expect(await products()).toEqual([])
  expect(await texts()).toMatch(/^Asking the lake …$/)
  expect(await tab.locator('nav [aria-current=page]').textContent()).toBe('Coverage')
  await tab.locator('#busy:not(:empty)').waitFor()
  await arrive()
  await settled()
  expect(await tab.locator('[aria-label="Coverage"] tbody tr').count()).toBe(2)
  expect(await tab.locator('#busy').textContent()).toBe('')
})

test('answers to a tab that was left draw nothing, however late they come', async () => {
  await withhold('FROM points')
  await tab.goto(`${url()}/#metric=indicators/one`)
  await until(() => waiting.length > 0, 'the questions of the chart')
  await tab.locator('#views button', { hasText: 'Universe' }).click()
  // The universe does not wait for the chart.
  await tab.locator('[aria-label="Products"]').waitFor()
  const before = await texts()
  await arrive()
  await tab.waitForTimeout(600)
  expect(await texts()).toBe(before)
  expect(await tab.locator('.chart').count()).toBe(0)
  expect(await tab.locator('#trouble').isHidden()).toBe(true)
})

test('of two states of one tab the newer one stands, also if its answers come first', async () => {
  await drawn(tab, url(), { metric: 'indicators/one', assets: 'BTC' })
  await withhold("asset IN ('ETH')")
  await go({ metric: 'indicators/one', assets: 'ETH' })
  await until(() => waiting.length > 0, 'the questions about ETH')
  await go({ metric: 'supply/current_pit', assets: 'BTC' })
  await settled()
  await arrive()
  await tab.waitForTimeout(600)
  expect(
    await tab.locator('.known .line').evaluateAll((all) => all.map((one) => one.getAttribute('data-asset'))),
  ).toEqual(['BTC'])
  expect(await tab.locator('.chart').getAttribute('aria-label')).toContain('supply/current_pit of BTC')
})

test('of two queries of the SQL tab the rows of the one that stands there are shown', async () => {
  await drawn(tab, url(), { view: 'sql', sql: 'SELECT 1 AS one' })
  await withhold('AS slow')
  await go({ view: 'sql', sql: 'SELECT 2 AS slow' })
  await until(() => waiting.length > 0, 'the slow query')
  await go({ view: 'sql', sql: 'SELECT 3 AS quick' })
  await tab.locator('[aria-label="Result"] th', { hasText: 'quick' }).waitFor()
  await arrive()
  await tab.waitForTimeout(600)
  expect(await tab.locator('[aria-label="Result"] th').allTextContents()).toEqual(['quick'])
})

/** A document of explain-change that names a commit. */
const explained = (version: number) => ({
  verdict: 'changed',
  reason: null,
  from: { version: 1 },
  to: { version: 9 },
  commit: { version, committed_at: 1_709_251_200_000_000, job: 'fetch', run: 'r', points_added: 1 },
  row: null,
  points: [],
  records: [],
  text: null,
})

/** Writes a file for the field of the view Versions. */
function stamped(name: string, content: string | Buffer): string {
  const path = join(folder, '..', name)
  writeFileSync(path, content)
  return path
}

test('of two stamped results the explanation of the later one is shown, even if it comes first', async () => {
  const routes = new Map<string, Route>()
  await tab.route('**/explain', (route) => {
    const { result } = JSON.parse(route.request().postData() ?? '{}') as { result: string }
    routes.set(Buffer.from(result, 'base64').toString(), route)
  })
  await drawn(tab, url(), { view: 'versions' })
  await tab.locator('#stamped').setInputFiles(stamped('early.parquet', 'early'))
  await until(() => routes.has('early'), 'the question about the first result')
  await tab.locator('#stamped').setInputFiles(stamped('late.parquet', 'late'))
  await until(() => routes.has('late'), 'the question about the second result')
  // The end of the first question is no refusal of the second one.
  expect(await tab.locator('#story [role=alert]').count()).toBe(0)
  await routes.get('late')!.fulfill({ json: explained(7) })
  await tab.locator('#story', { hasText: 'Commit 7' }).waitFor()
  await routes
    .get('early')!
    .fulfill({ json: explained(3) })
    .catch(() => undefined)
  await tab.waitForTimeout(400)
  expect(await tab.locator('#story').textContent()).toContain('Commit 7')
  // The explanation stays when the instant moves, and when its view is left.
  await drawn(tab, url(), { view: 'versions', as_of: '2024-04-11' })
  expect(await tab.locator('#story').textContent()).toContain('Commit 7')
  await drawn(tab, url(), { view: 'coverage' })
  await drawn(tab, url(), { view: 'versions' })
  expect(await tab.locator('#story').textContent()).toContain('Commit 7')
})

test('a stamped result that does not fit into a request is refused before it is sent', async () => {
  await drawn(tab, url(), { view: 'versions' })
  const most = Math.floor((longestQuestion - Buffer.byteLength(JSON.stringify({ result: '' }))) / 4) * 3
  const count = browser!.asked.length
  await tab.locator('#stamped').setInputFiles(stamped('large.parquet', Buffer.alloc(most + 1)))
  expect(await tab.locator('#story [role=alert]').textContent()).toBe(
    `large.parquet: expected at most ${most.toLocaleString('en')} bytes, which fit into a request to this server, ` +
      `got ${(most + 1).toLocaleString('en')}; pitlake explain-change large.parquet takes larger files`,
  )
  expect(browser!.asked.slice(count)).toEqual([])
  // A refusal of the server is shown at the same place.
  await tab.locator('#stamped').setInputFiles(stamped('none.parquet', 'no Parquet file'))
  await tab.locator('#story h2', { hasText: 'none.parquet' }).waitFor()
  expect(await tab.locator('#trouble').isHidden()).toBe(true)
})

test('an instant that a user chooses stays, although an arrival that was looked for comes later', async () => {
  await drawn(tab, url(), { metric: 'indicators/one', assets: 'BTC' })
  await withhold('max(available_at)')
  await tab.locator('#earlier').click()
  await until(() => waiting.length > 0, 'the question about the arrival before')
  await tab.locator('#as_of').fill('2024-02-10')
  await tab.locator('#as_of').press('Enter')
  await settled()
  await arrive()
  await tab.waitForTimeout(400)
  expect(await tab.locator('#as_of').inputValue()).toBe('2024-02-10')
})

test('a verdict on look-ahead is not shown next to a later query', async () => {
  const routes: Route[] = []
  await tab.route('**/lookahead', (route) => void routes.push(route))
  await drawn(tab, url(), { view: 'sql', sql: 'SELECT t AS ts, v FROM points LIMIT 3' })
  await until(() => routes.length > 0, 'the test of the first query')
  // The instant moves, so the same query runs again.
  await withhold('FROM points LIMIT 3')
  await go({ view: 'sql', sql: 'SELECT t AS ts, v FROM points LIMIT 3', as_of: '2024-02-10' })
  await until(() => waiting.length > 0, 'the query at a different instant')
  const verdict = { verdict: 'clean', proved: false, reason: null, cutoffs: 1, rows: 3, differing: 0 }
  const rest = { differences: [], chain: [], unproved: null, assumes: [] }
  await routes[0]!.fulfill({ json: { ...verdict, ...rest } }).catch(() => undefined)
  await tab.waitForTimeout(400)
  expect(await tab.locator('.verdict').count()).toBe(0)
  await arrive()
  await until(() => routes.length > 1, 'the test of the query at that instant')
})

test.each([
  [{ as_of: 'soon' }, /^as_of: expected an instant such as .* got "soon"$/],
  [{ second: 'soon' }, /^second as of: expected an instant such as .* got "soon"$/],
  [
    { since: '2024-03-01', until: '2024-02-01' },
    /^until: expected an instant after 2024-03-01T00:00:00Z, .* got 2024-02/,
  ],
  [{ view: 'universe', before: 'soon' }, /^compare with: expected an instant such as .* got "soon"$/],
  [{ view: 'panel', back: 'soon' }, /^back: expected a span such as/],
] as const)('%o in the address is refused by name', async (state: Readonly<Record<string, string>>, words) => {
  await drawn(tab, url(), { view: state['view'] ?? '' })
  await drawn(tab, url(), state)
  expect(await tab.locator('#trouble').textContent()).toMatch(words)
  expect(await texts()).not.toContain('Running the query')
  await drawn(tab, url(), { view: state['view'] ?? '' })
  expect(await tab.locator('#trouble').isHidden()).toBe(true)
})

test('a chart of an unknown metric names the metric that it shows instead', async () => {
  await drawn(tab, url(), { metric: 'no/such' })
  expect(await tab.locator('#saying').textContent()).toBe('No point of no/such is stored, so this is indicators/one.')
})

test('rows that do not answer the address, since it was refused, are marked as such', async () => {
  await drawn(tab, url(), { metric: 'indicators/one', assets: 'BTC' })
  expect(await tab.locator('main').getAttribute('data-stale')).toBeNull()
  await go({ metric: 'indicators/one', assets: 'BTC', since: 'never' })
  await tab.locator('#trouble:not([hidden])').waitFor()
  await settled()
  expect(await tab.locator('main').getAttribute('data-stale')).toBe('')
  await go({ metric: 'indicators/one', assets: 'BTC' })
  await settled()
  expect(await tab.locator('main').getAttribute('data-stale')).toBeNull()
  expect(browser!.said.filter((words) => !/status of (400|503)/.test(words))).toEqual([])
})
