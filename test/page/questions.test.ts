import { afterAll, beforeAll, expect, test } from 'vitest'
import { Engine } from '../../src/lake/store/engine.ts'

/* Modules of the page that need no document. */

interface Questions {
  readonly disputesSql: (picked: object, range: readonly [from: number, to: number]) => string
}
interface CommandTexts {
  readonly flagOf: (name: string) => string
  readonly flagTexts: (options: object) => readonly string[]
  readonly keywordTexts: (options: object) => readonly string[]
  readonly panelTexts: (options: object, asOf: object, origin: string) => Readonly<Record<string, string>>
}
interface VintageChanges {
  readonly largestChangeOf: (vintages: readonly { v: number | null; previous: number | null }[]) => number
}
const sharedModule = async (name: string): Promise<unknown> =>
  await import(new URL(`../../src/interfaces/page/shared/${name}.js`, import.meta.url).href)

let engine: Engine
let questions: Questions
let texts: CommandTexts
beforeAll(async () => {
  questions = (await sharedModule('questions')) as Questions
  texts = (await sharedModule('command-texts')) as CommandTexts
  engine = await Engine.open(':memory:', { threads: 1 })
})
afterAll(() => engine.close())

test('the violations of a chart are those of its series', async () => {
  await engine.run(`CREATE TABLE violations AS SELECT 'a/x' AS metric, 'BTC' AS asset, '24h' AS "interval", currency,
      exchange, network, TIMESTAMPTZ '2024-01-02 00:00:00+00' AS t, 'changed' AS kind, '1' AS stored,
      concat_ws(' ', currency, exchange, network) AS offered, TIMESTAMPTZ '2024-02-01 00:00:00+00' AS offered_at
    FROM (VALUES ('native', 'one', 'eth'), ('usd', 'one', 'eth'), ('native', 'two', 'eth'), ('native', 'one', NULL))
      AS s(currency, exchange, network)`)
  const picked = { metric: { metric: 'a/x' }, assets: ['BTC'], interval: '24h', component: '', sessions: '' }
  const range = [Date.UTC(2024, 0, 1), Date.UTC(2024, 0, 3)] as const
  const offered = async (series: object): Promise<unknown[]> =>
    (await engine.rows(questions.disputesSql({ ...picked, ...series }, range))).map((row) => row['offered'])
  expect(await offered({ currency: 'native', exchange: 'one', network: 'eth' })).toEqual(['native one eth'])
  expect(await offered({ currency: 'native', exchange: 'one', network: null })).toEqual(['native one'])
  expect(await offered({ currency: 'eur', exchange: 'one', network: 'eth' })).toEqual([])
})

test('a switch that is off is in no copied text, and every mark of a name becomes a dash', () => {
  expect(texts.flagOf('a_b_c')).toBe('--a-b-c')
  expect(texts.flagTexts({ skip_nulls: 'true', follow_renames: 'false', max_age: '3 d' })).toEqual([
    '--skip-nulls',
    "--max-age '3 d'",
  ])
  expect(texts.keywordTexts({ skip_nulls: 'true', follow_renames: 'false', max_age: '3d' })).toEqual([
    'skip_nulls=True',
    'max_age="3d"',
  ])
})

test('the parts of a typed list come without spaces into the texts of a panel', () => {
  const options = {
    metrics: 'price=price_usd, m#/a=b',
    calendar: '2024-01-01, 2024-02-01, 1d',
    assets: 'BTC, ETH',
    with: 'status, chains',
    fields: 'v, age',
    skip_nulls: 'false',
  }
  const { Python, 'Command line': line, HTTP } = texts.panelTexts(options, {}, 'http://here')
  expect(Python).toContain('lake.calendar("2024-01-01", "2024-02-01", "1d", ["BTC", "ETH"])')
  expect(Python).toContain('lake.panel(days, {"price": "price_usd", "m#/a=b": "m#/a=b"}, "24h", fields=["v", "age"]')
  expect(Python).toContain('universe_columns=["status", "chains"])')
  expect(line).toBe(
    'pitlake panel --metrics price=price_usd,m#/a=b --calendar 2024-01-01,2024-02-01,1d --assets BTC,ETH' +
      ' --with status,chains --fields v,age',
  )
  expect(HTTP).toContain('assets=BTC%2CETH')
})

test('the first vintage of a t counts as no change', async () => {
  const { largestChangeOf } = (await sharedModule('vintage-changes')) as VintageChanges
  const vintages = [
    { v: 100, previous: null },
    { v: 101.5, previous: 100 },
    { v: 101, previous: 101.5 },
    { v: null, previous: 101 },
  ]
  expect(largestChangeOf(vintages)).toBe(1.5)
  expect(largestChangeOf([{ v: 100, previous: null }])).toBeLessThan(1e-300)
})
