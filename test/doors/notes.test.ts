import { expect, test } from 'vitest'
import { need } from '../helpers/needs.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { thirtyProducts } from '../helpers/lakes/late-days-and-products.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { commandLine, session } from './command-line.ts'
import { library, mcp, python, serve } from './programs.ts'
import { type Ask, type Door, type Given, owedAt, type Place, saidOf } from './question.ts'

/*
 * An answer without values is noted at every interface, in whichever dimension the lake has no series: each asset but
 * BTC lacks one of them, although the metric has it.
 */

const supply = 'supply/current_pit'
const interest = 'derivatives/futures_open_interest_cash_margin_sum_pit'
const active = 'addresses/active_count_pit'
const nested = 'indicators/cost_basis_distribution_quantiles_pit'

const series: readonly Partial<PointRow>[] = [
  { metric: supply, asset: 'BTC', currency: 'native' },
  { metric: supply, asset: 'BTC', currency: 'usd' },
  { metric: supply, asset: 'USDONLY', currency: 'usd' },
  { metric: supply, asset: 'COINONLY', currency: 'native' },
  { metric: supply, asset: 'HOURONLY', currency: 'native', interval: '1h' },
  { metric: interest, asset: 'BTC', currency: 'native', exchange: 'aggregated' },
  { metric: interest, asset: 'BINANCEONLY', currency: 'native', exchange: 'binance' },
  { metric: active, asset: 'BTC', network: 'eth' },
  { metric: active, asset: 'BASEONLY', network: 'base' },
  { metric: nested, asset: 'BTC', o: '{"a":1}' },
  { metric: nested, asset: 'PARTONLY', o: '{"b":2}' },
]

const at = { interval: '24h', t: '2024-03-01T00:00:00Z', available_at: '2024-03-02T00:30:00Z' } as const
const points = series.map((one) => ({ v: one.o === undefined ? 1 : null, ...at, ...one }) as PointRow)
const place = lakeOfFile({
  name: 'notes',
  commits: [{ at: '2024-04-01T12:00:00Z', points, tables: thirtyProducts(['BTC']) }],
})

/** What is asked of which metric and asset, and what is noted. */
const table: readonly (readonly [metric: string, asset: string, note: string, given?: Given])[] = [
  [supply, 'USDONLY', `nothing is stored of '${supply}' for asset 'USDONLY' with currency 'native'; there is 'usd'`],
  [
    supply,
    'COINONLY',
    `nothing is stored of '${supply}' for asset 'COINONLY' with currency 'usd'; there is 'native'`,
    { currency: 'usd' },
  ],
  [
    'price_usd',
    'USDONLY',
    `'price_usd' is made of '${supply}' in native and in usd: for asset 'USDONLY' nothing is stored in native`,
  ],
  [
    'price_usd',
    'COINONLY',
    `'price_usd' is made of '${supply}' in native and in usd: for asset 'COINONLY' nothing is stored in usd`,
  ],
  [supply, 'HOURONLY', `nothing is stored of '${supply}' for asset 'HOURONLY' with interval '24h'; there is '1h'`],
  [
    interest,
    'BINANCEONLY',
    `nothing is stored of '${interest}' for asset 'BINANCEONLY' with exchange 'aggregated'; there is 'binance'`,
  ],
  [active, 'BASEONLY', `nothing is stored of '${active}' for asset 'BASEONLY' with network 'eth'; there is 'base'`],
  [`${nested}#/a`, 'PARTONLY', `'${nested}' has no part '/a' for asset 'PARTONLY'; did you mean '/b'?`],
  [`${nested}#/c`, 'BTC', `'${nested}' has no part '/c'; did you mean '/a'?`],
  [supply, 'BTX', `nothing is stored of '${supply}' for asset 'BTX'; did you mean 'BTC'?`],
]

const panels = table.map(
  ([metric, asset, note, given = {}]): Owed => [
    { panel: { decisions: [{ asset, ts: '2024-03-05T00:00:00Z' }], metrics: { v: metric }, ...given } },
    [note],
  ],
)
const statements = table.map(([metric, asset, note, given = {}]): Owed => {
  const options = Object.entries(given)
    .map(([name, value]) => `, ${name} := '${typeof value === 'string' ? value : JSON.stringify(value)}'`)
    .join('')
  const decisions = `WITH d AS (SELECT '${asset}' AS asset, TIMESTAMPTZ '2024-03-05 00:00:00+00' AS ts)`
  return [{ sql: `${decisions} SELECT v FROM pit_join('d', '${metric}', '24h'${options})` }, [note]]
})

type Owed = readonly [ask: Ask, notes: readonly string[], knowledge?: Given]

const condition = "symbol = 'BTX' AND status = 'activ'"
const unlisted = [
  "nothing in the registry has status 'activ'; did you mean 'active'?",
  "nothing in the registry has symbol 'BTX'; did you mean 'BTC'?",
]
const grid = { since: '2024-03-05', until: '2024-03-06', step: '1d' }
const noMember = `no product met {option universe} at any of these times: ${condition}`

/**
 * A universe without members: with the values that there are, also where the first snapshot stands in for earlier
 * times.
 */
const universePanels: readonly Owed[] = [
  [{ panel: { calendar: grid, universe: condition, metrics: { v: supply } } }, [noMember, ...unlisted]],
]
const universeStatements: readonly Owed[] = [
  [{ sql: `SELECT product_id FROM universe WHERE ${condition}` }, unlisted],
  [
    {
      sql: `WITH d AS (SELECT TIMESTAMPTZ '2024-01-02 00:00:00+00' AS ts) SELECT product_id FROM pit_universe('d', ${condition})`,
    },
    unlisted,
    { registry_backfill: true },
  ],
]

/** Where something else is noted than is owed. */
async function differing(door: Door, owed: readonly Owed[]): Promise<object[]> {
  const found: object[] = []
  for (const [ask, notes, knowledge = {}] of owed) {
    const said = saidOf(await door.ask({ ask, knowledge }), {})
    const wanted = owedAt(door, { notes: notes.map((text) => ['', '', text]) }).notes
    if (JSON.stringify(said.notes) !== JSON.stringify(wanted)) found.push({ ask, wanted, said })
  }
  return found
}

const allPanels = [...panels, ...universePanels]
const allStatements = [...statements, ...universeStatements]

test.each<readonly [string, (place: Place) => Promise<Door>, readonly Owed[]]>([
  ['sql and panel', commandLine, [...panels.slice(0, 3), ...universePanels, ...statements.slice(0, 3)]],
  ['session', session, allStatements],
  ['serve', serve, [...allPanels, ...allStatements]],
  ['mcp', mcp, [...allPanels, ...allStatements]],
  ['TypeScript', library, [...allPanels, ...allStatements]],
])('an answer without values names what the lake does not have at %s', async (_, open, owed) => {
  await using door = await open(place)
  expect(await differing(door, owed)).toEqual([])
})

test('an answer without values names what the lake does not have in Python', async (context) => {
  await using door = await python(place, need(context, 'peers'))
  expect(await differing(door, [...allPanels, ...allStatements])).toEqual([])
})
