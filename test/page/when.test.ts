// @module-tag full
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page as Tab, Route } from 'playwright-core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { longestQuestion } from '../../src/interfaces/server/bounds.ts'
import type { DatedTable, TimeRange } from '../../src/trust/dating/dating.ts'
import { pitlake } from '../helpers/command.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { firstRates, revisedMetrics, revisedPaths } from '../helpers/lakes/revised-metrics.ts'
import { listening, sleep } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { until } from '../helpers/processes.ts'
import { browsing, drawn, shownFolder } from './serving.ts'

/* The view that dates a table shows what `pitlake when --json` answers about the same file. */

const { home, root } = lakeOfFile(revisedMetrics)
const { rate, blocks } = revisedPaths
const wall = '2024-02-15T00:00:00Z'

const doors = new Map<string, { readonly url: string; readonly stop: () => Promise<unknown> }>()
let browser: Awaited<ReturnType<typeof browsing>> | undefined
let tab: Tab

beforeEach(async (own) => {
  const executable = need(own, 'chromium')
  if (browser === undefined) {
    doors.set('free', await listening(root, ['serve']))
    doors.set('limited', await listening(root, ['serve', '--as-of', wall]))
    browser = await browsing(executable)
  }
  tab = await browser.open()
  tab.setDefaultTimeout(15_000)
}, 300_000)

afterAll(async () => {
  await browser?.close()
  for (const door of doors.values()) await door.stop()
})

const door = (name: string): string => doors.get(name)?.url ?? ''

const head = 'asset,t,sopr_adjusted_pit,block_count_pit'
/** Both columns from before their revisions. */
const early = [head, 'BTC,2024-01-01,1.23,100', 'BTC,2024-01-02,2.35,101']
/** A rate from before its revision next to a block count from after its own, and a column that is neither. */
const mixed = [`${head},note`, 'BTC,2024-01-01,1.234567,777,a']
/** A decision before the first value was known. */
const decided = [`ts,asset,${rate}`, '2024-01-02T12:00:00Z,BTC,']

/** Writes a table, and returns its path. */
function written(name: string, lines: readonly string[]): string {
  writeFileSync(join(home, name), `${lines.join('\n')}\n`)
  return join(home, name)
}

/** What the command line answers about a file. */
async function answerOf(path: string, ...options: readonly string[]): Promise<DatedTable> {
  return JSON.parse((await pitlake(home, ['when', path, ...options, '--data', root, '--json'])).out) as DatedTable
}

/** Chooses a file with the button, and waits for what comes of it. */
async function choose(path: string): Promise<void> {
  const [chooser] = await Promise.all([tab.waitForEvent('filechooser'), tab.locator('#choose').click()])
  await chooser.setFiles(path)
}

/** Drops files on a part of the page. */
async function drop(files: Readonly<Record<string, string>>, onto = 'main'): Promise<void> {
  const transfer = await tab.evaluateHandle((all) => {
    const made = new DataTransfer()
    for (const [name, text] of Object.entries(all)) made.items.add(new File([text], name))
    return made
  }, files)
  for (const kind of ['dragenter', 'dragover', 'drop'])
    await tab.dispatchEvent(onto, kind, { dataTransfer: transfer, bubbles: true, cancelable: true })
}

const text = (lines: readonly string[]): string => `${lines.join('\n')}\n`
const named = (name: string) => tab.locator('#dated h2', { hasText: name })
const shows = async (name: string): Promise<void> => await named(name).waitFor()
const cells = async (label: string): Promise<string[][]> =>
  await tab.evaluate((name) => {
    const lines = [...document.querySelectorAll(`[aria-label="${name}"] tbody tr`)]
    return lines.map((line) => [...line.children].map((cell) => cell.textContent))
  }, label)
const fact = async (name: string): Promise<string> =>
  (await tab.locator(`#dated dd[data-fact=${name}]`).textContent()) ?? ''
const asOf = (): string => new URLSearchParams(new URL(tab.url()).hash.slice(1)).get('as_of') ?? ''

/** An instant of the document as people read it. */
const moment = (at: string): string =>
  at
    .replace(/\.0+Z$/, 'Z')
    .replace('T00:00:00Z', '')
    .replace(/:00Z$/, 'Z')
    .replace(/(?<=\d)T(?=\d)/, ' ')

/** Ranges as the command line words them, with instants as the page writes them. */
function rangesText(ranges: readonly TimeRange[]): string {
  const words = ranges.map(({ from, until: end }) => {
    if (from === null) return end === null ? 'any time' : `before ${moment(end)}`
    return end === null ? `from ${moment(from)} on` : `from ${moment(from)}, before ${moment(end)}`
  })
  return words.join('') || 'no time'
}

/** Compares the columns of the page with those of the document. */
async function expectColumns({ columns, ignored, mapping, verdict }: DatedTable): Promise<void> {
  const shown = await cells('Columns')
  const own =
    verdict === 'dated'
      ? () => []
      : (one: DatedTable['columns'][number]) => [rangesText(one.as_of), rangesText(one.observed_as_of)]
  expect(shown.map(([name]) => name)).toEqual([
    ...[mapping.time, mapping.asset, mapping.record].filter((name) => name !== null),
    ...columns.map(({ column }) => column),
    ...ignored.map(({ column }) => column),
  ])
  for (const one of columns) {
    const [, taken, ...rest] = shown.find(([name]) => name === one.column) ?? []
    expect(taken).toContain(`${one.metric} ${one.interval}`)
    expect(taken?.includes('guessed by its values')).toBe(one.by === 'values')
    expect(taken?.includes('rounded to 2 decimals')).toBe(one.rounding?.digits === 2)
    expect(rest).toEqual([String(one.cells), ...own(one)])
  }
  for (const { column, reason } of ignored)
    expect(shown.find(([name]) => name === column)?.[1]).toBe(`ignored: ${reason}`)
}

/** Compares the contradicting cells of the page with those of the document. */
async function expectContradiction({ contradiction }: DatedTable): Promise<void> {
  const shown = await cells('Contradicting cells')
  const word = (value: string | number | null): string => (value === null ? 'null' : String(value))
  expect(shown).toEqual(
    (contradiction?.first ?? []).map((one) => [
      ...[one.row, one.column, one.asset, one.time].map((value) => moment(word(value))),
      word(one.value),
      one.is_listed ? word(one.answer) : 'no such row',
      rangesText(one.as_of),
    ]),
  )
}

test('a file chosen by keyboard shows the ranges and columns of pitlake when', async () => {
  const path = written('early.csv', early)
  const answer = await answerOf(path)
  expect(answer).toMatchObject({ verdict: 'dated', as_of: [{ until: '2024-02-01T00:00:00.000000Z' }] })
  await drawn(tab, door('free'), { view: 'when' })
  await tab.locator('#views button').last().focus()
  await tab.keyboard.press('Enter')
  const isChoosing = async () => await tab.evaluate(() => document.activeElement?.id === 'choose')
  for (let tries = 0; tries < 12 && !(await isChoosing()); tries++) await tab.keyboard.press('Tab')
  const [chooser] = await Promise.all([tab.waitForEvent('filechooser'), tab.keyboard.press('Enter')])
  await chooser.setFiles(path)
  await shows('early.csv')
  expect(await fact('table')).toBe('points, 2 rows, 4 cells compared')
  expect(await fact('as_of')).toBe(rangesText(answer.as_of))
  expect(await fact('observed_as_of')).toBe(rangesText(answer.observed_as_of))
  await expectColumns(answer)
  expect(await cells('Contradicting cells')).toEqual([])
})

test('a file dropped on a chart shows columns that do not belong together, each with its ranges', async () => {
  const answer = await answerOf(written('mixed.csv', mixed))
  expect(answer).toMatchObject({ verdict: 'mixed', as_of: [], ignored: [{ column: 'note' }] })
  await drawn(tab, door('free'), { metric: rate, assets: 'BTC' })
  await drop({ 'mixed.csv': text(mixed) }, '.chart')
  await shows('mixed.csv')
  expect(await tab.locator('nav [aria-current=page]').textContent()).toBe('Date a table')
  expect(await fact('as_of')).toBe('no time')
  await expectColumns(answer)
  await expectContradiction(answer)
  expect(await tab.locator('#dated').textContent()).toContain('The best time is as_of ')
})

test('a claimed time shows the first contradicting cells, and none once it is corrected', async () => {
  const path = written('early.csv', early)
  const answer = await answerOf(path, '--claimed', '2024-02-15')
  expect(answer.contradiction).toMatchObject({ claimed: true, cells: 1, first: [{ answer: 9.876_543 }] })
  await drawn(tab, door('free'), { view: 'when' })
  await choose(path)
  await shows('early.csv')
  await tab.getByLabel('claimed as_of', { exact: true }).fill('2024-02-15')
  await tab.keyboard.press('Enter')
  await tab.locator('[aria-label="Contradicting cells"]').waitFor()
  expect(await tab.locator('#dated').textContent()).toContain('1 cell contradicts the claimed as_of 2024-02-15')
  await expectContradiction(answer)
  await expectColumns(answer)
  await tab.getByLabel('claimed as_of', { exact: true }).fill('2024-01-31')
  await tab.keyboard.press('Enter')
  await tab.locator('[aria-label="Contradicting cells"]').waitFor({ state: 'detached' })
  await shows('early.csv')
  await expectColumns(await answerOf(path, '--claimed', '2024-01-31'))
  // The claim about the contents of the lake is the second one.
  await tab.getByLabel('claimed observed_as_of').fill('2024-01-09')
  await tab.keyboard.press('Enter')
  await tab.locator('[aria-label="Contradicting cells"]').waitFor()
  await expectContradiction(await answerOf(path, '--claimed', '2024-01-31', '--claimed-observed', '2024-01-09'))
})

test('a wrong guess is corrected with an option, which the copied command line also names', async () => {
  const rows = ['t,x', `2024-01-02,${(firstRates[1] ?? 0) + 10}`]
  await drawn(tab, door('free'), { view: 'when' })
  await choose(written("it's.csv", rows))
  await tab.locator('#dated [role=alert]').waitFor()
  await tab.locator('summary', { hasText: 'If a guess is wrong' }).click()
  await tab.getByLabel('asset', { exact: true }).fill('ETH')
  await tab.keyboard.press('Enter')
  await tab.getByLabel('metrics', { exact: true }).fill(`x=${rate}`)
  await tab.keyboard.press('Enter')
  await tab.locator('[aria-label="Columns"]').waitFor()
  const answer = await answerOf(join(home, "it's.csv"), '--asset', 'ETH', '--metrics', `x=${rate}`)
  expect(answer).toMatchObject({ verdict: 'dated', columns: [{ by: 'option' }] })
  await expectColumns(answer)
  expect(await fact('"as you said"')).toBe(`asset ETH, metrics x=${rate}`)
  expect(await tab.locator('[data-way="Command line"]').textContent()).toBe(
    `pitlake when 'it'\\''s.csv' --asset ETH --metrics x=${rate}`,
  )
  expect(await tab.locator('[data-way="Python"]').textContent()).toBe(
    `import pitlake\n\nlake = pitlake.open("data")\ndating = lake.when("it's.csv", asset="ETH", metrics="x=${rate}")`,
  )
})

test('a click on a range sets as_of to a time at which the lake answers the table', async () => {
  await drawn(tab, door('free'), { view: 'when' })
  await choose(written('early.csv', early))
  await shows('early.csv')
  await tab.locator('dd[data-fact=as_of] button').click()
  // The page has a time of knowledge, and none of the contents of the lake.
  expect(await tab.locator('dd[data-fact=observed_as_of] button').count()).toBe(0)
  const { as_of: ranges } = await answerOf(join(home, 'early.csv'))
  expect(Date.parse(asOf())).toBe(Date.parse(ranges[0]?.from ?? ''))
  expect(await tab.locator('#as_of').inputValue()).toBe(asOf())
  const values = async (metric: string): Promise<unknown> => {
    const sql = `SELECT v FROM points WHERE metric = '${metric}' AND asset = 'BTC' AND t <= '2024-01-02' ORDER BY t`
    return await (
      await fetch(`${door('free')}/query?${new URLSearchParams({ sql, as_of: asOf(), format: 'json' })}`)
    ).json()
  }
  expect(await values(rate)).toEqual([{ v: 1.234_567 }, { v: 2.345_678 }])
  expect(await values(blocks)).toEqual([{ v: 100 }, { v: 101 }])
  // The answer stays, also when its view was left.
  await expectColumns(await answerOf(join(home, 'early.csv')))
  await drawn(tab, door('free'), { view: 'universe', as_of: asOf() })
  await drawn(tab, door('free'), { view: 'when', as_of: asOf() })
  await expectColumns(await answerOf(join(home, 'early.csv')))
})

test('a range without a beginning sets as_of to a time before its end', async () => {
  const answer = await answerOf(written('decided.csv', decided))
  expect(answer.as_of).toEqual([{ from: null, until: '2024-01-02T00:10:00.000000Z' }])
  await drawn(tab, door('free'), { view: 'when' })
  await choose(join(home, 'decided.csv'))
  await tab.locator('dd[data-fact=as_of] button', { hasText: 'before 2024-01-02 00:10Z' }).click()
  expect(asOf()).toBe('2024-01-02T00:09:59.999Z')
})

test('an answer that comes late never shows for a later file', async () => {
  const waiting: Route[] = []
  await drawn(tab, door('free'), { view: 'when' })
  await tab.route('**/when', async (route) => {
    const sent = JSON.parse(route.request().postData() ?? '{}') as { table: string }
    if (Buffer.from(sent.table, 'base64').toString().includes('777')) waiting.push(route)
    else await route.continue()
  })
  await choose(written('early.csv', early))
  await shows('early.csv')
  await drop({ 'mixed.csv': text(mixed) })
  await until(() => waiting.length > 0, 'the question about the second file')
  // Nothing of the first file is left while the second is compared.
  expect(await tab.locator('#dated').textContent()).toBe('Comparing mixed.csv with the lake …')
  await drop({ 'decided.csv': text(decided) })
  await shows('decided.csv')
  await Promise.all(
    waiting.map(async (route) =>
      route.fulfill({ json: await answerOf(written('mixed.csv', mixed)) }).catch(() => undefined),
    ),
  )
  await tab.waitForTimeout(600)
  expect(await tab.locator('#dated h2').first().textContent()).toBe('decided.csv')
  await expectColumns(await answerOf(written('decided.csv', decided)))
})

test('an answer that comes while a different view is open shows in its own view only', async () => {
  const waiting: Route[] = []
  await drawn(tab, door('free'), { view: 'when' })
  await tab.route('**/when', (route) => void waiting.push(route))
  await choose(written('early.csv', early))
  await until(() => waiting.length > 0, 'the question about the file')
  await drawn(tab, door('free'), { view: 'universe' })
  const before = await tab.locator('main').textContent()
  await Promise.all([tab.waitForResponse('**/when'), waiting[0]!.continue()])
  await tab.waitForTimeout(300)
  expect(await tab.locator('main').textContent()).toBe(before)
  await drawn(tab, door('free'), { view: 'when' })
  await shows('early.csv')
  expect(await fact('table')).toBe('points, 2 rows, 4 cells compared')
})

test.each([
  ['other.csv', 'a,b\n1,2\n'],
  ['broken.parquet', 'PAR1 and no more'],
  ['empty.csv', ''],
])('%s: a refusal is shown in the words of the server, and nothing of the file before', async (name, content) => {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ table: Buffer.from(content).toString('base64') })
  const refused = await fetch(`${door('free')}/when`, { method: 'POST', headers, body })
  expect(refused.status).toBe(400)
  const words = (await refused.text()).trim()
  expect(words).not.toBe('')
  await drawn(tab, door('free'), { view: 'when' })
  await choose(written('early.csv', early))
  await shows('early.csv')
  await drop({ [name]: content })
  await tab.locator('#dated [role=alert]').waitFor()
  expect(await tab.locator('#dated [role=alert]').textContent()).toBe(words)
  expect(await tab.locator('#dated h2').allTextContents()).toEqual([name])
  expect(await tab.locator('[aria-label="Columns"]').count()).toBe(0)
  // A later file removes the refusal.
  await drop({ 'early.csv': text(early) })
  await shows('early.csv')
  expect(await tab.locator('#dated [role=alert]').count()).toBe(0)
})

test('two files at once are refused, and neither is sent', async () => {
  await drawn(tab, door('free'), { view: 'when' })
  const count = browser!.asked.length
  await drop({ 'one.csv': text(early), 'two.csv': text(mixed) })
  expect(await tab.locator('#dated [role=alert]').textContent()).toContain('expected one file, got 2')
  expect(browser!.asked.slice(count)).toEqual([])
})

test('a file that fits into a request is compared, and one with a byte more is refused before it is sent', async () => {
  await drawn(tab, door('free'), { view: 'when' })
  const empty = Buffer.byteLength(JSON.stringify({ table: '' }))
  const most = Math.floor((longestQuestion - empty) / 4) * 3
  const rows = `${head},note\nBTC,2024-01-01,1.23,100,`
  const sized = (bytes: number): string => rows.padEnd(bytes - 1, 'x') + '\n'
  expect(await tab.locator('main').textContent()).toContain(`at most ${Math.floor(most / 1000)} kB`)
  await drop({ 'most.csv': sized(most) })
  await tab.locator('[aria-label="Columns"]').waitFor({ timeout: 60_000 })
  expect(await fact('table')).toBe('points, 1 row, 2 cells compared')
  const count = browser!.asked.length
  await drop({ 'more.csv': sized(most + 1) })
  await shows('more.csv')
  expect(await tab.locator('#dated [role=alert]').textContent()).toBe(
    `more.csv: expected at most ${most.toLocaleString('en')} bytes, which fit into a request to this server, ` +
      `got ${(most + 1).toLocaleString('en')}; pitlake when more.csv takes larger files`,
  )
  expect(browser!.asked.slice(count)).toEqual([])
})

test('behind an as_of limit the view says why it is missing, and sends no file', async () => {
  await drawn(tab, door('limited'), { view: 'when' })
  expect(await tab.locator('main').textContent()).toContain('This server has an as_of limit')
  expect(await tab.locator('#choose').count()).toBe(0)
  const count = browser!.asked.length
  await drop({ 'early.csv': text(early) })
  await tab.waitForTimeout(300)
  expect(browser!.asked.slice(count)).toEqual([])
  expect(await tab.locator('#dated').count()).toBe(0)
})

test('an exported folder has no such view', async () => {
  const out = join(home, 'site')
  const argv = ['serve', '--data', root, '--export', out, '--instants', '1']
  expect(await pitlake(root, argv, {}, { sleep })).toMatchObject({ code: 0 })
  doors.set('site', await shownFolder(out))
  await drawn(tab, door('site'), { view: 'when' })
  expect(await tab.locator('nav button').allTextContents()).not.toContain('Date a table')
  expect(await tab.locator('nav [aria-current=page]').textContent()).toBe('Chart')
  await drop({ 'early.csv': text(early) }, 'body')
  await tab.waitForTimeout(300)
  expect(await tab.locator('nav [aria-current=page]').textContent()).toBe('Chart')
})

test('the page complains of nothing but refusals', () => {
  expect(browser!.said.filter((words) => !/status of (400|404)/.test(words))).toEqual([])
})
