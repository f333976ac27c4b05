import { afterAll, beforeAll, expect, test } from 'vitest'
import { noteWords } from '../../src/query/views/question-words.ts'
import { nearPaths, suggestion } from '../../src/base/suggestion.ts'
import { nested, plain, point, supply, threeDays } from '../helpers/lakes/three-days.ts'
import { ways, withViews } from '../helpers/views.ts'
import { quote } from '../../src/lake/store/engine.ts'
import { intervals } from '../../src/base/time.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

/** A metric whose values contain no number. */
const texts = 'indicators/cost_basis_distribution_heatmap_pit'

let root = ''
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  ;({ root, remove } = await threeDays((day) => [
    point(plain, day, { v: day }),
    point(texts, day, { o: '{"sector":"tech"}' }),
  ]))
})
afterAll(async () => await remove())

const all = { interval: ['24h'], asset: [], currency: [], exchange: [], network: [], component: null }
const metric = (name: string, rest: object = {}): object => ({
  metrics: [{ name, ...all, defaults: true, everywhere: true, ...rest }],
})

interface Told {
  readonly code: string
  readonly near?: readonly string[]
  readonly there?: readonly string[]
  readonly figures?: Readonly<Record<string, unknown>>
}

const questions: readonly (readonly [question: object, told: Told | undefined])[] = [
  [
    metric('supply/curent_pit'),
    { code: 'unknown-metric', near: nearPaths('supply/curent_pit', [...catalogue.endpoints.keys()]) },
  ],
  [metric('addresses/active_count_pit'), { code: 'nothing-held' }],
  [metric(plain, { interval: ['1h'] }), { code: 'no-interval', near: [], there: ['24h'] }],
  [metric(plain, { asset: ['BTC', 'btc'] }), { code: 'no-asset', near: ['BTC'], figures: { asset: 'btc' } }],
  [metric(plain, { asset: ['SOLANA'] }), { code: 'no-asset', near: [], there: ['BTC'] }],
  [
    metric(supply, { currency: ['usdd'] }),
    { code: 'no-dimension', near: ['usd'], figures: { dimension: 'currency', value: 'usdd' } },
  ],
  [metric(plain, { currency: ['usd'], defaults: false }), { code: 'no-dimension', near: [], there: [] }],
  [metric(`${plain}#/a`), { code: 'plain-numbers', figures: { component: '/a' } }],
  [metric(nested), { code: 'whole-object', there: [`${nested}#/a/b`] }],
  [metric(nested, { component: '/a/c' }), { code: 'no-component', near: ['/a/b'] }],
  [metric(nested, { component: '/c' }), undefined],
  [metric(texts, { component: '/sector' }), undefined],
  [metric('price_usd', { defaults: false }), { code: 'price-view' }],
  [
    metric(plain, { last: '2024-03-01T00:00:00Z' }),
    { code: 'before-first', figures: { start: '2024-03-02T00:10:00Z' } },
  ],
  [
    metric(plain, { since: '2024-03-04T00:00:00Z' }),
    { code: 'held-between', figures: { first: '2024-03-01T00:00:00Z', last: '2024-03-03T00:00:00Z' } },
  ],
  [metric(plain, { until: '2024-03-01T00:00:00Z' }), { code: 'held-between' }],
  [{ texts: ['btc', 'BTC'] }, { code: 'unknown-asset', near: ['BTC'] }],
  [{ texts: ['supply/curent', 'no path'] }, { code: 'unknown-metric' }],
  [
    { tables: ['products'], empty: true },
    { code: 'before-registry', figures: { start: '2024-01-21T00:00:00Z' } },
  ],
  [
    { tables: ['pit_universe'], as_of: '2020-01-01T00:00:00Z' },
    { code: 'registry-unknown', figures: { start: '2024-01-21T00:00:00Z' } },
  ],
  [
    { beyond: [{ metric: plain, decisions: 3, since: '2026-01-01T00:00:00Z' }] },
    { code: 'unresolved-decisions', figures: { decisions: 3 } },
  ],
  [metric(plain), undefined],
  [metric(supply, { currency: ['*'], last: '2024-03-02T00:10:00Z' }), undefined],
  [metric('price_usd'), undefined],
  [{ tables: ['points'], empty: true, texts: ['BTC'] }, undefined],
  [{ tables: ['products'], as_of: '2025-01-01T00:00:00Z' }, undefined],
  [{}, undefined],
]

for (const way of ways)
  test(`a note for each reason, and its words: by ${way}`, async () => {
    await withViews(
      root,
      async (engine, prefix) => {
        for (const [question, told] of questions) {
          const rows = await engine.rows(`FROM ${prefix}question_notes(${quote(JSON.stringify(question))})`)
          const found = rows.map(({ figures, ...row }) => ({
            ...row,
            figures: JSON.parse(typeof figures === 'string' ? figures : '{}'),
          }))
          const owed = told && { ...told, words: noteWords[told.code as keyof typeof noteWords] }
          expect(found, JSON.stringify(question)).toMatchObject(owed ? [owed] : [])
        }
      },
      way,
    )
  })

test('a note under as_of reports nothing that was known later', () =>
  withViews(root, async (engine) => {
    const told = async (question: object): Promise<unknown[]> =>
      (await engine.rows(`FROM question_notes(${quote(JSON.stringify(question))})`)).map(({ code, there }) => [
        code,
        there,
      ])
    await engine.run(`SET VARIABLE as_of = '2024-01-02'`)
    expect(await told(metric(plain, { asset: ['btc'] }))).toEqual([['unknown-then', []]])
    expect(await told({ texts: ['btc'] })).toEqual([])
    expect(await told({ tables: ['products'], as_of: '2024-01-02T00:00:00Z' })).toEqual([['registry-empty', []]])
    await engine.run(`SET VARIABLE registry_backfill = true; SET VARIABLE as_of = NULL`)
    expect(await told({ tables: ['products'], as_of: '2024-01-02T00:00:00Z' })).toEqual([['registry-assumed', []]])
  }))

test('empty views of the ledger under as_of give a note', () =>
  withViews(root, async (engine) => {
    const tables = ['coverage', 'gaps', 'violations', 'clock_findings', 'requests', 'runs', 'versions']
    const told = async (asked: object): Promise<unknown[]> =>
      (await engine.rows(`FROM question_notes(${quote(JSON.stringify(asked))})`)).map(({ code, subject }) => [
        code,
        subject,
      ])
    expect(await told({ tables, empty: true })).toEqual([])
    await engine.run(`SET VARIABLE ledger_as_of = '2024-01-02'`)
    expect(await told({ tables: [...tables, 'points'], empty: true })).toEqual(
      tables.map((name) => ['ledger-then', name]),
    )
    expect(await told({ tables })).toEqual([])
  }))

const typed = [
  'sopr',
  'SOPR',
  'sorp_adjusted',
  'indicators/sopr',
  'addresses active',
  'suply/curent_pit',
  'count',
  'zzzz',
  '',
  'x',
  '*',
  'sopr volume',
  'price',
  'supply/current_pit',
]

test('nearest names are those of the program', async () => {
  const paths = [...catalogue.endpoints.keys()].toSorted()
  const assets = ['BTC', 'ETH', 'SOL', 'USDC', 'USDT', 'LINK']
  const list = (names: readonly string[]): string => `[${names.map(quote).join(', ')}]`
  await withViews(root, async (engine) => {
    for (const word of typed) {
      const [row] = await engine.rows(`SELECT nearest_paths(${quote(word)}, ${list(paths)}) AS near`)
      expect(row?.['near'], word).toEqual(nearPaths(word, paths))
    }
    for (const word of ['1d', '60m', '7d', 'day', '1 week', '1x'])
      expect(await engine.rows(`SELECT nearest(${quote(word)}, ${list(intervals)}) AS near`), word).toEqual([
        { near: [suggestion(word, intervals) ?? []].flat() },
      ])
    for (const word of ['btc', 'BCT', 'USDX', 'usdd', 'LIKN', 'nothing', 'X']) {
      const [row] = await engine.rows(`SELECT nearest(${quote(word)}, ${list(assets)}) AS near`)
      const same = assets.find((one) => one.toLowerCase() === word.toLowerCase()) ?? suggestion(word, assets)
      expect(row?.['near'], word).toEqual(same === undefined ? [] : [same])
    }
  })
})
