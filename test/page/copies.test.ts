// @module-tag full
import { spawn } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page as Tab } from 'playwright-core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { listening } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { compiled } from '../helpers/command.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { dailyMetric, hourlyMetric, pictures } from './pictures.ts'
import { gridOptions, panelOptions } from '../../src/query/options.ts'
import { bareLake, browsing, drawn } from './serving.ts'

/* Each text that the page offers to copy runs as it stands, in a folder with the lake in `data`, and gives its rows. */

const { root: drawnLake } = lakeOfFile(pictures)
const { root: fetchedLake } = lakeOfFile(hundredFetchedDays)
const program = join(import.meta.dirname, '../../scripts/launch.cjs')
const packages = join(import.meta.dirname, '../../python')
const wall = '2024-03-01T12:00:00Z'

let browser: Awaited<ReturnType<typeof browsing>> | undefined
const doors = new Map<string, Awaited<ReturnType<typeof listening>>>()
let bare: Engine
let tab: Tab
let python = ''

beforeEach(async (own) => {
  const executable = need(own, 'chromium')
  python = need(own, 'peers')
  if (browser) return
  for (const [name, folder] of Object.entries({ drawn: drawnLake, fetched: fetchedLake })) {
    symlinkSync(folder, join(folder, '..', 'data'))
    doors.set(name, await listening(folder, ['serve']))
    doors.set(`${name} behind a wall`, await listening(folder, ['serve', '--as-of', wall]))
  }
  browser = await browsing(executable)
  tab = await browser.open()
}, 300_000)

afterAll(async () => {
  await browser?.close()
  for (const door of doors.values()) await door.stop()
})

/** Runs a program in the folder around a lake; what it prints. */
async function run(lake: string, command: string, argv: readonly string[], input = ''): Promise<string> {
  const launched = `${process.execPath} ${program}`
  const env = {
    ...process.env,
    ...compiled,
    PYTHONPATH: packages,
    PYTHONDONTWRITEBYTECODE: '1',
    PITLAKE_COMMAND: launched,
  }
  const child = spawn(command, argv, { cwd: join(lake, '..'), env })
  child.stdin.end(input)
  let out = ''
  let complaints = ''
  child.stdout.on('data', (bytes: Buffer) => void (out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => void (complaints += bytes.toString()))
  const code = await new Promise((done) => void child.once('close', done))
  expect([code, code === 0 ? '' : complaints]).toEqual([0, ''])
  return out
}

/** Rows of CSV text, each a text again: cells as every program writes them. */
function rowsOf(text: string): string[] {
  const [head, ...rows] = text.trimEnd().split(/\r?\n/)
  return [head ?? '', ...rows]
}

/** What each text of a view gives: the rows of the result as CSV, by DuckDB in each of the three. */
async function results(lake: string, about: string): Promise<Record<string, string[]>> {
  const texts = await tab
    .locator(`pre[data-about="${about}"]`)
    .evaluateAll((all) => all.map((one) => [one.dataset['way'] ?? '', one.textContent] as const))
  const found: Record<string, string[]> = {}
  for (const [name, text] of texts) {
    if (name === 'HTTP')
      found[name] = rowsOf(await run(lake, 'bash', ['-c', `${text.replace(/'$/, "&format=csv'")} -s`]))
    if (name === 'Python') {
      // A frame as DuckDB writes it, like the others.
      const shown = `import duckdb
duckdb.sql("SET TimeZone = 'UTC'")
duckdb.sql("SELECT * FROM frame").write_csv("frame.csv")
print(open("frame.csv").read())`
      found[name] = rowsOf(await run(lake, python, ['-'], `${text}\n${shown}\n`))
    }
    if (name === 'Command line') {
      const shell = `pitlake() { '${process.execPath}' '${program}' "$@"; }\n`
      const asked = text.startsWith('pitlake panel')
        ? text.replace('pitlake panel', 'pitlake panel --format csv')
        : text
      found[name] = rowsOf(await run(lake, 'bash', ['-c', shell + asked]))
    }
    if (name === 'SQL') {
      bare = await bareLake(lake)
      const statements = text.split(/;\n|;$/).filter((one) => one.trim() !== '')
      for (const statement of statements.slice(0, -1))
        await bare.run(statement.replace('"decisions"', 'temp.decisions'))
      const file = join(lake, '..', 'sql.csv')
      await bare.run(`COPY (${statements.at(-1)!}) TO '${file}' (HEADER)`)
      found[name] = rowsOf(readFileSync(file, 'utf8'))
      bare.close()
    }
  }
  return found
}

/** Cells by a text that does not depend on the program: instants, whole numbers, nothing and lists in one spelling. */
const plain = (line: string): string =>
  line
    .replaceAll(
      /(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(?:Z|\+00(?::?00)?)?/g,
      (_, date, time, rest: string = '') => `${date} ${time}${rest.replace(/\.?0+$/, '')}`,
    )
    .replaceAll(/(?<=^|,)(-?\d+)\.0(?=,|$)/g, '$1')
    .replaceAll(/(?<=^|,)(?:null|NULL|NaN|nan|NaT|None)(?=,|$)/g, '')
    .replaceAll(/["[\]' ]/g, '')

/** Holds the three texts of a part of the page against each other, and against the number of rows that are shown. */
async function expectSame(lake: string, about: string, count: number): Promise<readonly string[]> {
  const found = await results(lake, about)
  expect(Object.keys(found)).toEqual(expect.arrayContaining(['Python', 'SQL', 'Command line']))
  const [first = [], ...others] = Object.values(found).map((lines) => lines.map(plain))
  for (const other of others) expect(other, about).toEqual(first)
  expect(first.length - 1, about).toBe(count)
  return first
}

const rowCount = async (label: string): Promise<number> => await tab.locator(`[aria-label="${label}"] tbody tr`).count()
const door = (name: string): string => doors.get(name)?.url ?? ''
const firstCells = async (label: string, column: number): Promise<string[]> =>
  await tab.locator(`[aria-label="${label}"] tbody td:nth-child(${column})`).allTextContents()

describe.each(['drawn', 'drawn behind a wall'])('%s: copied texts', (name) => {
  test('of a chart give the points that are drawn', async () => {
    const states: Record<string, string>[] = [
      { metric: dailyMetric, assets: 'BTC,ETH', as_of: '2024-02-20T06:00:00+01:00' },
      { metric: hourlyMetric, assets: 'BTC', sessions: 'XNYS', since: '2024-01-03', until: '2024-01-12T12:00' },
    ]
    for (const state of name === 'drawn' ? states : states.slice(0, 1)) {
      await drawn(tab, door(name), state)
      const [known] = /^[\d,]+/.exec((await tab.locator('#newest .quiet').first().textContent()) ?? '') ?? ['?']
      const [head] = await expectSame(drawnLake, 'points', Number(known.replaceAll(',', '')))
      expect(head).toBe('asset,t,v,available_at,basis')
    }
  })

  test('of a universe give the products that are shown, under each facet', async () => {
    const facets: Record<string, string>[] = [
      { issuer_status: 'inactive' },
      { status: 'active', chain: 'base' },
      { class: 'it’s "odd"' },
      { search: 'PRODUCT 1', issuer: 'Issuer 1' },
    ]
    for (const [n, state] of (name === 'drawn' ? facets : facets.slice(1, 2)).entries()) {
      const asOf = n % 2 === 0 ? { as_of: '2024-02-21' } : {}
      await drawn(tab, door(name), { view: 'universe', ...state, ...asOf })
      const shown = await firstCells('Products', 1)
      expect(shown.length).toBeGreaterThan(0)
      const lines = await expectSame(drawnLake, 'products', shown.length)
      expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(shown)
      // What a facet counts is what choosing it shows.
      const counted = await tab.locator('main select[aria-label="chain"] option').allTextContents()
      expect(counted[0]).toBe('all')
      for (const text of counted.slice(1, 2)) {
        const [, chain = '', count] = /^(.*) \((\d+)\)$/.exec(text) ?? []
        await drawn(tab, door(name), { view: 'universe', ...state, ...asOf, chain })
        expect(await rowCount('Products'), text).toBe(Number(count))
      }
    }
  })
})

describe.each(['fetched', 'fetched behind a wall'])('%s: copied texts', (name) => {
  const asOf = name === 'fetched' ? '2024-04-11T00:00:00Z' : '2024-02-10T12:00:00Z'

  test('of versions and coverage give what the lake had done', async () => {
    const state = { as_of: asOf }
    await drawn(tab, door(name), { view: 'versions', from: '0', ...state })
    const abouts = await tab
      .locator('.ways pre[data-way=SQL]')
      .evaluateAll((all) => all.map((one) => one.dataset['about']!))
    expect(abouts).toHaveLength(
      await tab
        .locator('main section')
        .filter({ has: tab.locator('.ways') })
        .count(),
    )
    const heads = await tab.locator('main section:has(.ways) h2').allTextContents()
    // Whether the lake's own work stands at the instant shows behind a wall before its end.
    for (const [n, about] of (name === 'fetched' ? abouts.slice(0, 1) : abouts).entries())
      await expectSame(fetchedLake, about, Number(/: (\d+)$/.exec(heads[n] ?? '')?.[1]))
    await drawn(tab, door(name), { view: 'coverage', ...state })
    await expectSame(fetchedLake, 'counts', await rowCount('Coverage'))
    const months = await tab.locator('.heat g').count()
    await expectSame(fetchedLake, 'months', months)
  })

  test('of SQL give the rows of the query, whatever is in its text', async () => {
    const sql = `SELECT asset, t AS ts, v, 'it''s "quoted" \\ and """' AS words, '
SQL
' AS lines FROM points WHERE metric = 'indicators/one' AND v > 2050 ORDER BY asset, t`
    await drawn(tab, door(name), { view: 'sql', sql, as_of: '2024-02-28' })
    const found = await results(fetchedLake, 'rows')
    // A text over several lines is a row over several lines.
    const values = Object.values(found).map((lines) => lines.map(plain).join('\n').replaceAll('"', ''))
    expect(new Set(values).size).toBe(1)
    expect(values[0]!.match(/indicators|quoted/g)).toHaveLength(await rowCount('Result'))
  })

  test('of a panel give its rows, with decisions at the closes of sessions', async () => {
    const state = { view: 'panel', metrics: 'indicators/one,s=supply/current_pit', assets: 'BTC,ETH', latency: '15m' }
    await drawn(tab, door(name), { ...state, calendar: '2024-01-10,2024-01-20,1d' })
    await tab.locator('main select[aria-label="decisions"]').selectOption('XNYS')
    await tab.waitForFunction(() => location.hash.includes('XNYS'))
    await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
    // Seven sessions: a holiday on the 15th.
    const lines = await expectSame(fetchedLake, 'panel', 14)
    expect(await rowCount('Panel')).toBe(14)
    expect(lines[1]).toBe('BTC,2024-01-1021:00:00,2008,1008')
  })
})

test('copied texts of a panel have columns of the universe and earlier points', async () => {
  const panel = { view: 'panel', metrics: `s=${dailyMetric}`, calendar: '2024-03-01,2024-03-05,1d', assets: 'BTC,XRP' }
  await drawn(tab, door('drawn'), panel)
  for (const [name, value] of [
    ['with', 'status,chains'],
    ['back', '7d'],
  ] as const) {
    const input = tab.getByLabel(name, { exact: true })
    await input.fill(value)
    await input.press('Enter')
    await tab.waitForFunction((text) => location.hash.includes(text), `${name}=`)
    await tab.waitForSelector('body[data-drawn]:not([aria-busy])')
  }
  const lines = await expectSame(drawnLake, 'panel', 8)
  expect(lines[0]).toBe('asset,ts,status,chains,s')
  // On the first of March the point of the 29th of February is the newest known one, and is 59 days after the first.
  expect(lines[2]).toMatch(/^XRP,2024-03-0100:00:00,,,\d+$/)
  const text = async (way: string): Promise<string> =>
    (await tab.locator(`pre[data-about="panel"][data-way="${way}"]`).textContent()) ?? ''
  expect(await text('Command line')).toContain(' --with status,chains --back 7d')
  expect(await text('Python')).toContain(', universe_columns=["status", "chains"], back="7d")')
  expect(await text('SQL')).toContain(`back := '`)
})

test('each field of a panel has the help of the command', async () => {
  await drawn(tab, door('drawn'), { view: 'panel' })
  const options: Readonly<Record<string, { readonly about: string }>> = { ...gridOptions, ...panelOptions }
  const fields = await tab
    .locator('main input[title]')
    .evaluateAll((all) => all.map((one) => [one.ariaLabel ?? '', one.getAttribute('title') ?? ''] as const))
  expect(fields.map(([name]) => name)).toEqual(expect.arrayContaining(['metrics', 'with', 'back']))
  for (const [name, help] of fields) expect(help, name).toBe(options[name]?.about)
})

test('copied texts of a dated table find the times that are shown', async () => {
  const folder = join(fetchedLake, '..')
  writeFileSync(join(folder, "a table's.csv"), 'asset,t,one\nBTC,2024-01-05,2004\nBTC,2024-01-06,2005\n')
  await drawn(tab, door('fetched'), { view: 'when' })
  await tab.locator('main input[type=file]').setInputFiles(join(folder, "a table's.csv"))
  await tab.locator('#dated h2', { hasText: "a table's.csv" }).waitFor()
  await tab.getByLabel('claimed as_of', { exact: true }).fill('2024-02-01')
  await tab.keyboard.press('Enter')
  await tab.locator('dd[data-fact="as you said"]').waitFor()
  expect(await tab.locator('dd[data-fact=as_of]').textContent()).toBe('from 2024-01-07 00:10Z on')
  const text = async (name: string): Promise<string> =>
    (await tab.locator(`pre[data-about="the question"][data-way="${name}"]`).textContent()) ?? ''
  const shell = `pitlake() { '${process.execPath}' '${program}' "$@"; }\n`
  const found = [
    await run(fetchedLake, 'bash', ['-c', `${shell}${await text('Command line')} --json`]),
    await run(fetchedLake, python, ['-'], `import json\n${await text('Python')}\nprint(json.dumps(dating.facts))\n`),
  ]
  const [one, other] = found.map((answer) => JSON.parse(answer) as { as_of: unknown; verdict: string })
  expect(one).toEqual(other)
  expect(one).toMatchObject({ verdict: 'dated', as_of: [{ from: '2024-01-07T00:10:00.000000Z', until: null }] })
})

describe('a button', () => {
  test('copies its text, and says so', async () => {
    await browser!.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await drawn(tab, door('drawn'), { view: 'universe' })
    await tab.locator('.ways summary').press('Enter')
    await tab.getByRole('button', { name: 'copy SQL of products' }).press('Enter')
    await tab.getByText('copied', { exact: true }).waitFor()
    const text = await tab.locator('pre[data-way=SQL]').textContent()
    expect(await tab.evaluate('navigator.clipboard.readText()')).toBe(text)
    // The texts stay open while the instant moves.
    await drawn(tab, door('drawn'), { view: 'universe', as_of: '2024-02-20' })
    expect(await tab.locator('.ways').getAttribute('open')).toBe('')
  })

  test('is known by a name, as is each control of each view', async () => {
    for (const view of ['', 'universe', 'versions', 'sql', 'panel', 'coverage', 'when']) {
      await drawn(tab, door('fetched'), { view, ...(view === 'sql' && { sql: 'SELECT 1 AS a, now() AS ts' }) })
      const nameless = await tab.evaluate(() => {
        const controls = [...document.querySelectorAll<HTMLElement>('button, input, select, textarea, [tabindex="0"]')]
        const named = (one: HTMLElement): string =>
          one.ariaLabel ?? one.closest('label')?.textContent ?? one.textContent
        return controls
          .filter((one) => named(one).trim() === '' && document.querySelector(`label[for="${one.id}"]`) === null)
          .map((one) => one.outerHTML)
      })
      expect(nameless, view).toEqual([])
    }
    expect(browser!.said.filter((words) => !/status of (400|503)/.test(words))).toEqual([])
  })
})
