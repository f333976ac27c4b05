// @module-tag slow
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import { openQuery } from '../../src/query/lake.ts'
import { panelSql, specOf } from '../../src/query/panel.ts'
import { type DatedTable, dateTable, type TimeRange } from '../../src/trust/dating/dating.ts'
import type { DatingOptions } from '../../src/trust/dating/options.ts'
import { isoOf, micros } from '../helpers/instants.ts'
import { metrics, withEveryView } from '../helpers/lakes/every-view.ts'
import { randomOf } from '../helpers/random.ts'
import { scratch } from '../helpers/scratch.ts'
import { rounds } from '../helpers/tiers.ts'

/*
 * Tables that a lake answered at random instants, with rows left out, columns in another order and rounded numbers. The
 * instant must lie in a range that is found, and the ends of that range must be true: the lake is asked at them, and
 * right outside, through its views alone.
 */

type Axis = 'as_of' | 'observed_as_of'

/** A kind of table: how the lake is asked for it. */
interface AskedTable {
  readonly name: string
  readonly kind: DatedTable['kind']
  readonly axes: readonly Axis[]
  /** Statements of which the last returns the rows. */
  readonly sql: readonly string[]
  /** Columns that tell rows apart. */
  readonly keys: readonly string[]
  /** Columns with numbers, which may be rounded. */
  readonly numbers: readonly string[]
  readonly texts: readonly string[]
  readonly options?: DatingOptions
}

const both: readonly Axis[] = ['as_of', 'observed_as_of']
const day = 86_400_000_000
const first = Date.UTC(2026, 1, 1) * 1000
const decisions = Array.from({ length: 45 }, (_, n) => n).flatMap((n) =>
  ['BTC', 'ETH', 'ONDO', 'NONE'].map((asset) => ({ asset, ts: isoOf(first + n * day + (n % 5) * 7_000_000_000) })),
)
const named = {
  sopr: metrics.plain,
  addresses: metrics.everyInterval,
  blocks: metrics.revised,
  supply: metrics.supply,
  price: 'price_usd',
  open: `${metrics.bars}#/open`,
}
const written = Object.entries(named).map(([name, metric]) => ({ name, metric }))

function panelStatements(more: Readonly<Record<string, unknown>> = {}): readonly string[] {
  const { decisions: made, query } = panelSql(specOf({ decisions, metrics: named, ...more }))
  return [made, query]
}

const columns = Object.keys(named)
const universeTexts =
  'name symbol status issuer_id issuer_name issuer_status jurisdiction asset_name asset_class ticker chains valid_from'.split(
    ' ',
  )
const kinds: readonly AskedTable[] = [
  {
    name: 'a panel',
    kind: 'panel',
    axes: both,
    sql: panelStatements(),
    keys: ['asset', 'ts'],
    numbers: columns,
    texts: [],
    options: { metrics: written },
  },
  {
    name: 'a panel with limits',
    kind: 'panel',
    axes: both,
    sql: panelStatements({ latency: '6h', maxAge: '3d', skipNulls: true, vintage: 'first' }),
    keys: ['asset', 'ts'],
    numbers: columns,
    texts: [],
    options: { metrics: written, latency: 6 * 3600, maxAge: 3 * 86_400, skipNulls: true, vintage: 'first' },
  },
  {
    name: 'points, a metric in each row',
    kind: 'points',
    axes: both,
    sql: [
      `SELECT metric, asset, "interval", currency, exchange, network, t, v FROM points
WHERE metric IN ('${metrics.plain}', '${metrics.everyInterval}', '${metrics.revised}', '${metrics.exchanges}')
  AND "interval" IN ('24h', '1w')`,
    ],
    keys: ['metric', 'asset', 'interval', 'currency', 'exchange', 'network', 't'],
    numbers: ['v'],
    texts: [],
  },
  {
    name: 'points, a metric in each column',
    kind: 'points',
    axes: both,
    sql: [
      `SELECT asset, t, max(v) FILTER (metric = '${metrics.plain}') AS sopr_adjusted_pit,
  max(v) FILTER (metric = '${metrics.revised}') AS block_count_pit
FROM points WHERE "interval" = '24h' AND metric IN ('${metrics.plain}', '${metrics.revised}') GROUP BY asset, t`,
    ],
    keys: ['asset', 't'],
    numbers: ['sopr_adjusted_pit', 'block_count_pit'],
    texts: [],
  },
  {
    name: 'vintages',
    kind: 'vintages',
    axes: both,
    sql: ['SELECT metric, asset, t, ordinal, available_at, v FROM vintages'],
    keys: ['metric', 'asset', 't', 'available_at'],
    numbers: ['v'],
    texts: [],
  },
  {
    name: 'a universe',
    kind: 'universe',
    axes: both,
    sql: [
      `SELECT product_id, name, symbol, status, issuer_id, issuer_name, issuer_status, jurisdiction, asset_name, asset_class,
  ticker, array_to_string(chains, ' ') AS chains, valid_from FROM universe`,
    ],
    keys: ['product_id'],
    numbers: [],
    texts: universeTexts,
  },
  {
    name: 'a universe at each decision',
    kind: 'universe',
    axes: both,
    sql: [
      `WITH d AS (SELECT ts FROM calendar('2026-02-02', '2026-04-01', '5 days'))
SELECT ts, product_id, name, symbol, status, issuer_id FROM pit_universe('d', true)`,
    ],
    keys: ['ts', 'product_id'],
    numbers: [],
    texts: ['name', 'symbol', 'status', 'issuer_id'],
  },
  {
    name: 'records of a resource',
    kind: 'universe',
    axes: both,
    sql: ['SELECT id, name, status, jurisdiction FROM issuers'],
    keys: ['id'],
    numbers: [],
    texts: ['name', 'status', 'jurisdiction'],
  },
]

const cases = rounds('PITLAKE_WHEN', 8, 80)

/** Rounds a number as programs do when they write one. */
type Round = (value: number) => number

function roundOf(random: () => number): { readonly round: Round; readonly room: Round } {
  const digits = Math.floor(random() * 3)
  const kind = random()
  if (kind < 0.4) return { round: (value) => value, room: () => 0 }
  if (kind < 0.8) return { round: (value) => Number(value.toFixed(digits)), room: () => 0.5 * 10 ** -digits }
  const significant = 2 + digits
  return {
    round: (value) => Number(value.toPrecision(significant)),
    room: (value) => 0.5 * 10 ** (Math.floor(Math.log10(Math.abs(value))) + 1 - significant),
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

async function ask(engine: Engine, { sql }: AskedTable, axis: Axis, at: string): Promise<Row[]> {
  for (const name of both) await engine.run(`SET VARIABLE ${name} = ${name === axis ? quote(at) : 'NULL'}`)
  for (const statement of sql.slice(0, -1)) await engine.run(statement)
  return await engine.rows(sql.at(-1) ?? '')
}

const keyOf = (row: Row, keys: readonly string[]): string => JSON.stringify(keys.map((key) => row[key] ?? null))

/** Whether the lake answers each of these rows, numbers as they may have been rounded. */
function answersAll(
  rows: readonly Row[],
  answered: readonly Row[],
  table: AskedTable,
  room: ReadonlyMap<string, Round>,
) {
  const byKey = new Map(answered.map((row) => [keyOf(row, table.keys), row]))
  return rows.every((row) => {
    const other = byKey.get(keyOf(row, table.keys))
    if (other === undefined) return false
    return [...table.numbers, ...table.texts].every((column) => {
      const cell = row[column] ?? null
      const answer = other[column] ?? null
      if (typeof cell !== 'number' || typeof answer !== 'number') return cell === answer
      return Math.abs(cell - answer) <= (room.get(column)?.(answer) ?? 0) * (1 + 1e-6)
    })
  })
}

function csvText(rows: readonly Row[], names: readonly string[]): string {
  const cell = (value: Row[string] | undefined): string => {
    const isWritten = typeof value === 'string' || typeof value === 'number'
    const text = isWritten ? String(value) : ''
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
  }
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((line) => line.map(cell).join(','))
    .join('\n')
}

const home = scratch('when')

test(`${cases} tables are dated, each with true ends`, { timeout: 1_800_000 }, async () => {
  await withEveryView(5, null, async ({ root }) => {
    using engine = await openQuery(root, { threads: 2 })
    const run = { folder: root, sleep: async () => await Promise.resolve() }
    const random = randomOf(11)
    const bounds = { as_of: [first - 5 * day, first + 70 * day], observed_as_of: await commitRange(engine) }
    let endsTried = 0
    for (let n = 0; n < cases; n++) {
      const table = kinds[n % kinds.length]
      if (table === undefined) throw new RangeError('no kind of table')
      const axis = table.axes[Math.floor(n / kinds.length) % table.axes.length] ?? 'as_of'
      const [low = 0, high = 0] = bounds[axis]
      const at = Math.floor(low + random() * (high - low))
      const answered = await ask(engine, table, axis, isoOf(at))
      const kept = answered.filter(() => random() < 0.8)
      if (kept.length === 0) continue
      const ways = new Map(table.numbers.map((column) => [column, roundOf(random)]))
      const rows = shuffled(kept, random).map((row) => {
        const numbers = table.numbers.map((column) => {
          const value = row[column] ?? null
          return [column, typeof value === 'number' ? (ways.get(column)?.round(value) ?? value) : value]
        })
        return { ...row, ...Object.fromEntries(numbers), strange: 'x' } as Row
      })
      const names = shuffled(Object.keys(rows[0] ?? {}), random)
      const path = await writeTable(rows, names, n)
      for (const name of both) await engine.run(`SET VARIABLE ${name} = NULL`)
      const dated = await dateTable(engine, { path, subject: 'table', options: table.options ?? {} }, run)
      const about = `case ${n}: ${table.name}, ${axis} ${isoOf(at)}`
      const doubt = dated.verdict === 'dated' ? null : dated
      expect([about, dated.kind, doubt]).toEqual([about, table.kind, null])
      const range = dated[axis].find((one) => isInside(one, at))
      expect([about, range === undefined ? dated[axis] : 'found']).toEqual([about, 'found'])
      const room = new Map([...ways].map(([column, { room }]) => [column, room]))
      const isAnswered = async (moment: number): Promise<boolean> =>
        answersAll(rows, await ask(engine, table, axis, isoOf(moment)), table, room)
      const { from = null, until = null } = range ?? {}
      if (from !== null) {
        expect([about, from, await isAnswered(micros(from))]).toEqual([about, from, true])
        expect([about, from, await isAnswered(micros(from) - 1)]).toEqual([about, from, false])
        endsTried++
      }
      if (until !== null) {
        expect([about, until, await isAnswered(micros(until) - 1)]).toEqual([about, until, true])
        expect([about, until, await isAnswered(micros(until))]).toEqual([about, until, false])
        endsTried++
      }
    }
    expect(endsTried).toBeGreaterThan(cases / 2)
  })
})

function isInside({ from, until }: TimeRange, at: number): boolean {
  return (from === null || micros(from) <= at) && (until === null || at < micros(until))
}

async function commitRange(engine: Engine): Promise<number[]> {
  const [row] = await engine.rows<{ low: bigint; high: bigint }>(
    'SELECT epoch_us(min(committed_at)) AS low, epoch_us(max(committed_at)) AS high FROM versions',
  )
  return [Number(row?.low), Number(row?.high)]
}

/** Writes every other table as Parquet, with the types that a reader of CSV finds. */
async function writeTable(rows: readonly Row[], names: readonly string[], n: number): Promise<string> {
  const csv = join(home, `${n}.csv`)
  writeFileSync(csv, csvText(rows, names))
  if (n % 2 === 0) return csv
  const parquet = join(home, `${n}.parquet`)
  using writer = await Engine.open(':memory:')
  await writer.run(`COPY (FROM read_csv(${quote(csv)})) TO ${quote(parquet)} (FORMAT parquet)`)
  return parquet
}
