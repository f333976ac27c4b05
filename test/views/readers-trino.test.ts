// @module-tag full
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Cell, Engine, quote, quoteList, type Row } from '../../src/lake/store/engine.ts'
import { deltaFiles, publishTo } from '../helpers/delta.ts'
import { joinEdgeFacts, joinEdgeStages } from '../helpers/lakes/join-edges.ts'
import { type OraclePoint, owed, type Question } from '../helpers/pit-oracle.ts'
import { isoOf, micros } from '../helpers/instants.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { multiset } from '../helpers/views.ts'
import { scratch } from '../helpers/scratch.ts'

/*
 * Trino cannot be had in a test: DuckDB reads its text, with the few functions of Trino that it lacks. What the text
 * shares with the other engines, which is nearly all of it, is thereby tried without any of them.
 */

const home = scratch('trino')
let engine: Engine
let queries: readonly (readonly [name: string, query: string])[] = []
const facts = joinEdgeFacts(250)
beforeAll(async () => {
  await makeLake(join(home, 'lake'), joinEdgeStages.flat())
  await publishTo(join(home, 'lake'), join(home, 'out'))
  engine = await Engine.open(':memory:', { threads: 2 })
  await likeTrino()
  queries = queriesOf(readFileSync(join(home, 'out/readers/trino.sql'), 'utf8'))
})
afterAll(() => {
  engine.close()
})

/** The tables under their names, and functions by Trino's words. */
async function likeTrino(): Promise<void> {
  await engine.run(`SET integer_division = true; ATTACH ':memory:' AS delta; CREATE SCHEMA delta.pitlake;
    CREATE MACRO to_unixtime(x) AS CAST(epoch_us(x) AS DOUBLE) / 1e6;
    CREATE MACRO date_add(unit, n, day) AS CASE unit WHEN 'day' THEN day + CAST(n AS INTEGER) END;
    CREATE MACRO fail(message) AS error(message)`)
  for (const table of readdirSync(join(home, 'out')).filter((name) => name !== 'readers')) {
    const files = [...deltaFiles(join(home, 'out', table)).keys()]
    const rows = files.length > 0 ? `read_parquet(${quoteList(files)}, hive_partitioning = false)` : `(SELECT 1)`
    await engine.run(`CREATE VIEW delta.pitlake.${table} AS FROM ${rows}`)
  }
}

/** The three queries by their names. DuckDB knows no precision of instants: that of the options is microseconds. */
function queriesOf(text: string): [string, string][] {
  const plain = text.replaceAll('timestamp(6) with time zone', 'timestamp with time zone')
  expect(plain).not.toMatch(/timestamp\s*\(/)
  const parts = [...plain.matchAll(/^-- (pit_points|pit_join|universe)\n([\s\S]*?);$/gm)]
  return parts.map(([, name = '', query = '']) => [name, query])
}

type Ask = (typeof facts.asks)[number]
type Options = Ask['options']

/** A query with other options in its first relation; each must stand there, and with the type that it shall have. */
function asked(name: string, options: Options): string {
  const [, query = ''] = queries.find(([own]) => own === name) ?? []
  const end = query.indexOf('\n)')
  const first = Object.entries(options).reduce(
    (head, [option, value]) => {
      const own = new RegExp(`(CAST\\()?(?:NULL|'[^']*'|false)( AS [\\w ]+\\))? AS "?${option}"?(?=[,\\s]|$)`)
      expect(head).toMatch(own)
      const said = typeof value === 'string' ? quote(value) : String(value)
      return head.replace(own, (_, cast = '', type = '') => `${cast}${said}${type} AS "${option}"`)
    },
    query.slice(0, end),
  )
  return first + query.slice(end)
}

/** What the catalogue takes where a question names none. */
const standards = { currency: 'native', exchange: 'aggregated', network: 'eth' }
/** Published instants are whole milliseconds, rounded up. */
const ceiled = (us: number): number => Math.ceil(us / 1000) * 1000

/** The points that a question is about, as they are published. */
function oracleOf({ metric, interval, options }: Ask): OraclePoint[] {
  const own = facts.points.filter((point) => point.metric === metric && point.interval === interval)
  const dimensions = (['currency', 'exchange', 'network'] as const).map((name) => {
    const takesNone = own.some((point) => (point[name] ?? null) === null)
    return { name, value: takesNone ? null : (options[name] ?? standards[name]) }
  })
  return own
    .filter((point) => dimensions.every(({ name, value }) => (point[name] ?? null) === value))
    .map(({ asset, t, end, observed_at: observed, v = null, o = null, ...clocks }) => {
      const available = ceiled(options['backfill'] === 'rule' ? clocks.available_rule_at : clocks.available_at)
      return { asset, t, end, observed, v, o, available }
    })
}

/** What a question asks of the oracle; durations in microseconds. */
function questionOf(options: Options): Question {
  // Casts: the options of a question have mixed types, each row below knows that of its option.
  const given = <T>(name: string, key: string, as: (value: never) => T): Record<string, T> =>
    Object.hasOwn(options, name) ? { [key]: as(options[name] as never) } : {}
  const micro = (seconds: number): number => Math.round(seconds * 1e6)
  return {
    ...given('as_of', 'asOf', micros),
    ...given('observed_as_of', 'observedAsOf', micros),
    ...given('latency', 'latency', micro),
    ...given('max_age', 'maxAge', micro),
    ...given('skip_nulls', 'skipNulls', Boolean),
  }
}

async function decide(decisions: Ask['decisions']): Promise<void> {
  const rows = decisions.map(
    ([asset, ts], id) => `(${id}, ${asset === null ? 'NULL' : quote(asset)}, make_timestamptz(${ts}))`,
  )
  await engine.run(`CREATE OR REPLACE TABLE pit_decisions AS FROM (VALUES ${rows.join(', ')}) AS d (id, asset, ts)`)
}

test('the text holds three queries, each over its options', () => {
  expect(queries.map(([name]) => name)).toEqual(['pit_points', 'pit_join', 'universe'])
  for (const [, query] of queries) expect(query).toMatch(/^WITH options AS \(\n/)
})

test.each(facts.asks.map((ask, n) => [n, ask] as const))(
  'L1: question %i is answered as brute force does',
  async (_, ask) => {
    await decide(ask.decisions)
    const query = asked('pit_join', { ...ask.options, metric: ask.metric, interval: ask.interval })
    const rows = await engine.rows(`SELECT * FROM (${query}) ORDER BY id`)
    const points = oracleOf(ask)
    const question = questionOf(ask.options)
    const told = ask.decisions.map(([asset, ts], id) => {
      const best = owed(points, asset, ts, question)
      return best && ts !== null
        ? { id, asset, ts, t: best.t, available_at: best.available, v: best.v, o: best.o, age_us: ts - best.end }
        : { id, asset, ts, t: null, available_at: null, v: null, o: null, age_us: null }
    })
    expect(rows.map(plain)).toEqual(told)
    expect(told.filter(({ t }) => t !== null).length).toBeGreaterThan(ask.decisions.length / 3)
  },
)

/** A row with its instants as Unix microseconds. */
function plain(row: Row): Row {
  const told = Object.entries(row).map(([name, value]): [string, Cell] => {
    if (typeof value === 'bigint') return [name, Number(value)]
    return [name, typeof value === 'string' && /^\d{4}-.*Z$/.test(value) ? micros(value) : value]
  })
  return Object.fromEntries(told)
}

/** What is told of the record that a product names, as far as the record is there. */
const columnsOf = { issuer: ['name', 'status', 'jurisdiction'], asset: ['name', 'asset_class', 'ticker'] } as const

/**
 * The products by their last events until an instant, with issuer and asset as of then, and what the lake held by
 * another.
 */
function universeAt(asOf: number, observedAsOf = asOf): Row[] {
  const known = Math.min(asOf, observedAsOf)
  const events: readonly (Readonly<Record<string, Cell>> & {
    readonly at: number
    readonly table: string
    readonly id?: string
  })[] = facts.events
  const last = new Map(
    events
      .filter((event) => event.id !== undefined && ceiled(event.at) <= known)
      .map((event) => [`${event.table} ${event.id}`, event]),
  )
  const products = [...last].filter(([key, { op }]) => key.startsWith('history.products ') && op !== null)
  return products.map(([, own]): Row => {
    const { name, symbol, status, issuer_id: issuer, asset_id: asset } = own as Readonly<Record<string, string>>
    const joined = { issuer: last.get(`history.issuers ${issuer}`), asset: last.get(`history.assets ${asset}`) }
    const told = Object.entries(columnsOf).flatMap(([word, names]) => {
      const record = joined[word as keyof typeof columnsOf]
      return names.map((column) => [
        column.startsWith('asset_') || column === 'ticker' || column === 'jurisdiction' ? column : `${word}_${column}`,
        (record?.['op'] ?? null) === null ? null : (record?.[column] ?? null),
      ])
    })
    const ids = { product_id: own['id'] ?? null, issuer_id: issuer, asset_id: asset }
    return { ...ids, name, symbol, isin: null, status, ...Object.fromEntries(told), valid_from: ceiled(own.at) }
  })
}

/** The row with its columns by name. */
const sorted = (row: Row): Row => Object.fromEntries(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)))

test('L1: the universe at each instant is the state of the last poll by then', async () => {
  const polls = [...new Set(facts.events.map(({ at }) => at))].toSorted((a, b) => a - b)
  for (const at of [(polls[0] ?? 0) - 1e9, ...polls.flatMap((one) => [ceiled(one) - 1, ceiled(one)])])
    for (const options of [{ as_of: at }, { observed_as_of: at }, { as_of: at, observed_as_of: polls[5] }, {}]) {
      const said = Object.entries(options).map(([name, us]) => [name, isoOf(us ?? 0)] as const)
      const rows = await engine.rows(asked('universe', Object.fromEntries(said)))
      const { as_of: asOf = Infinity, observed_as_of: observedAsOf = Infinity } = options
      expect(multiset(rows.map(plain).map(sorted))).toEqual(multiset(universeAt(asOf, observedAsOf).map(sorted)))
    }
})

test('L1, L6: pit_points are those known and held by then, whichever clock stands for backfilled ones', async () => {
  const [, second = 0] = facts.commits
  const arrived = Math.max(...facts.points.slice(0, 50).map(({ available_at: at }) => ceiled(at)))
  for (const [asOf, observed, backfill] of [
    [Infinity, Infinity, 'strict'],
    [arrived, Infinity, 'strict'],
    [arrived - 1, second, 'strict'],
    [arrived, second - 1, 'rule'],
    [arrived - 1, Infinity, 'rule'],
  ] as const) {
    const options = {
      ...(Number.isFinite(asOf) && { as_of: isoOf(asOf) }),
      ...(Number.isFinite(observed) && { observed_as_of: isoOf(observed) }),
      backfill,
    }
    const rows = await engine.rows(asked('pit_points', options))
    const owing = facts.points
      .map((point) => {
        const available = ceiled(backfill === 'rule' ? point.available_rule_at : point.available_at)
        const early = backfill === 'rule' && point.available_rule_at < point.available_at
        return { ...point, available_at: available, basis: early ? 'backfilled' : point.basis }
      })
      .filter((point) => point.available_at <= asOf && point.observed_at <= observed)
    const told = (row: Readonly<Record<string, unknown>>): string =>
      columns.map((name) => JSON.stringify(row[name] ?? null)).join(' ')
    expect(rows.map((row) => told(plain(row))).toSorted()).toEqual(owing.map(told).toSorted())
  }
})

const columns = 'metric asset interval currency exchange network t available_at observed_at v o basis'.split(' ')

test.each([
  [{ metric: 'no/such_pit' }, 'no such metric in endpoints'],
  [{ interval: '1d' }, 'no such interval'],
  [{ backfill: 'rules' }, 'backfill is neither strict nor rule'],
  [{ currency: 'eur' }, 'no such currency'],
  [{ latency: -1 }, 'latency is negative'],
  [{ max_age: -0.5 }, 'max_age is negative'],
  [{ metric: 'derivatives/futures_open_interest_cash_margin_sum_pit', exchange: 'nowhere' }, 'no such exchange'],
  [{ metric: 'addresses/active_count_pit', network: 'nowhere' }, 'no such network'],
] as const)('%o is an error, not an answer of NULLs', async (options, message) => {
  await decide([['BTC', micros('2024-03-01')]])
  await expect(engine.rows(asked('pit_join', options))).rejects.toThrow(message)
})

test('an option that a metric does not take is ignored, and a null limit is no limit', async () => {
  await decide([['BTC', micros('2024-03-01')]])
  for (const options of [
    { exchange: 'nowhere', network: 'nowhere' },
    { latency: 0, max_age: 0 },
  ])
    expect(await engine.rows(asked('pit_join', options))).toHaveLength(1)
})
