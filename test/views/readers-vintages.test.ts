// @module-tag full
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Engine, quote, quoteList, type Row } from '../../src/lake/store/engine.ts'
import { assets, began, commits, day, drawVintages, importAll, iso, seconds } from '../helpers/dated-vintages.ts'
import { deltaFiles, publishTo } from '../helpers/delta.ts'
import { randomOf } from '../helpers/random.ts'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { need } from '../helpers/needs.ts'
import { scratch } from '../helpers/scratch.ts'

/*
 * The published readers against the lake's own joins: vintages that are late, backdated and withdrawn, of numbers and
 * of objects, and quarters. What a reader answers is what pit_join answers of the same lake.
 */

interface Ask {
  readonly metric: string
  readonly interval: string
  readonly options: Readonly<Record<string, string | number | boolean>>
}

const home = scratch('readers-vintages')
const out = join(home, 'out')
const asks: Ask[] = ['own/number', 'own/object', 'own/nested', 'own/plain', 'own/gdp'].flatMap((metric) =>
  [
    {},
    { skip_nulls: true },
    { skip_nulls: true, as_of: iso(began + 20 * day) },
    { skip_nulls: true, observed_as_of: iso(seconds(commits[1]) + 60) },
    { skip_nulls: true, latency: 3 * 86_400, max_age: 9 * 86_400 },
    { observed_as_of: iso(seconds(commits[0]) + 60) },
  ].map((options) => ({ metric, interval: metric === 'own/gdp' ? '3month' : '24h', options })),
)

let decisions: (readonly [asset: string, us: number])[] = []
/** What the lake answers, by ask and decision. */
let owed: string[][] = []

/** An answer as one line: instants in microseconds. */
function line(row: Row): string {
  return JSON.stringify(
    Object.values(row).map((cell) => (cell === null ? null : `${cell as bigint | number | string}`)),
  )
}

const columns = 'id, epoch_us(t) AS t, epoch_us(available_at) AS available_at, v, o'

beforeAll(async () => {
  await withDesk(async (desk) => {
    const vintages = drawVintages(5)
    await importAll(desk, vintages)
    for (const commit of commits) {
      const lines = vintages
        .filter(({ observed }) => observed <= seconds(commit))
        .map(({ asset, t, v, dated }) => ({ asset, t: iso(t), told: iso(dated), value: v === null ? null : { a: v } }))
      const nested = desk.put('nested.jsonl', lines.map((one) => `${JSON.stringify(one)}\n`).join(''))
      const argv = [nested, '--as', 'nested', '--interval', '24h', '--vintage', 'told']
      await takeAll(desk, argv, commit)
    }
    const random = randomOf(17)
    const values = Array.from({ length: 60 }, (_, n) => `A,${iso(began + n * day)},${random() < 0.3 ? '' : n}`)
    const plain = desk.put('plain.csv', `asset,t,value\n${values.join('\n')}\n`)
    await takeAll(desk, [plain, '--as', 'plain', '--interval', '24h'], '2024-05-02T00:00:00Z')
    const quarters = ['2023-07-01', '2023-10-01', '2024-01-01', '2024-04-01'].map((t, n) => `A,${t},${n}`)
    const gdp = desk.put('gdp.csv', `asset,t,value\n${quarters.join('\n')}\n`)
    await takeAll(desk, [gdp, '--as', 'gdp'], '2024-08-02T00:00:00Z')
    const instants = vintages.flatMap(({ dated }) => [dated - 1, dated, dated + 1])
    const drawn = Array.from({ length: 150 }, () => began + Math.floor(random() * 90 * day))
    const bounds = ['2023-10-01', '2024-01-01', '2024-04-01', '2024-07-01'].flatMap((t) => [seconds(t) - 1, seconds(t)])
    decisions = [...instants, ...drawn, ...bounds].flatMap((at) =>
      [...assets, 'NONE'].map((asset) => [asset, at * 1_000_000] as const),
    )
    await publishTo(join(desk.folder, 'lake'), out)
    using engine = await desk.open()
    await decide(engine, 'd')
    owed = []
    for (const { metric, interval, options } of asks) {
      const moment = (name: string): string => (name in options ? quote(String(options[name])) : 'NULL')
      await engine.run(
        `SET VARIABLE as_of = ${moment('as_of')}; SET VARIABLE observed_as_of = ${moment('observed_as_of')}`,
      )
      const given = Object.entries(options)
        .filter(([name]) => !name.endsWith('as_of'))
        .map(([name, value]) => `, ${name} := ${typeof value === 'number' ? `INTERVAL ${value} SECOND` : value}`)
      const from = `pit_join('d', '${metric}', '${interval}'${given.join('')})`
      owed.push((await engine.rows(`SELECT ${columns}, epoch_us(age) AS age FROM ${from} ORDER BY id`)).map(line))
    }
  })
}, 300_000)

/** Imports a file, which must have nothing wrong with it. */
async function takeAll(desk: Desk, argv: readonly string[], at: string): Promise<void> {
  const { message } = await desk.take(argv, at)
  if (message !== '') throw new Error(message)
}

async function decide(engine: Engine, name: string): Promise<void> {
  const rows = decisions.map(([asset, us], id) => `(${id}, ${quote(asset)}, make_timestamptz(${us}))`)
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${name} AS FROM (VALUES ${rows.join(', ')}) AS d (id, asset, ts)`)
}

/** The first difference of each ask, told with its decision. */
function differences(answers: readonly (readonly string[])[], some: readonly Ask[] = asks): string[] {
  return some.flatMap((ask, n) => {
    const wanted = owed[asks.indexOf(ask)] ?? []
    const at = wanted.findIndex((one, id) => one !== answers[n]?.[id])
    if (at < 0) return []
    return [`${JSON.stringify(ask)} ${iso((decisions[at]?.[1] ?? 0) / 1e6)}: ${answers[n]?.[at]}, owed ${wanted[at]}`]
  })
}

let engine: Engine
beforeAll(async () => (engine = await Engine.open(':memory:', { threads: 2 })))
afterAll(() => engine.close())

test('the published text answers dated, withdrawn and nested vintages as pit_join does, with and without skip_nulls', async () => {
  const text = readFileSync(join(out, 'readers/duckdb.sql'), 'utf8')
  // Without the extension delta: the tables as their logs name their files.
  const readable = text.replaceAll(/delta_scan\('[^']*\/(\w+)'\)/g, (_, table: string) => {
    const files = [...deltaFiles(join(out, table)).keys()]
    return files.length === 0 ? '(SELECT 1)' : `read_parquet(${quoteList(files)}, hive_partitioning = false)`
  })
  await engine.run(readable.slice(0, readable.indexOf('CREATE OR REPLACE MACRO universe')))
  await decide(engine, 'd')
  const answers: string[][] = []
  for (const { metric, interval, options } of asks) {
    const given = Object.entries(options).map(
      ([name, value]) => `, ${name} := ${typeof value === 'string' ? quote(value) : value}`,
    )
    const from = `pit_join('d', '${metric}', '${interval}'${given.join('')})`
    answers.push((await engine.rows(`SELECT ${columns}, age_us AS age FROM ${from} ORDER BY id`)).map(line))
  }
  expect(differences(answers)).toEqual([])
  const known = owed.map((rows) => rows.filter((row) => !row.includes('null,null,null,null,null')).length)
  expect(known.filter((count) => count > 100).length).toBeGreaterThan(20)
}, 300_000)

test.for(['polars', 'clickhouse', 'duckdb'])(
  '%s answers withdrawn vintages and quarters by the published text as pit_join does',
  { timeout: 300_000 },
  (name, context) => {
    const python = need(context, 'readers')
    // Every other one: they take seconds each.
    const some = asks.filter((_, n) => n % 2 === 1)
    writeFileSync(join(home, 'asks.json'), JSON.stringify({ decisions, asks: some }))
    const script = join(import.meta.dirname, '../python/reader_rows.py')
    const environment = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', TZ: 'UTC' }
    const said = execFileSync(python, [script, out, join(home, 'asks.json'), name], {
      encoding: 'utf8',
      env: environment,
      maxBuffer: 1 << 28,
    })
    const { answers } = JSON.parse(said) as { readonly answers: readonly (readonly string[][])[] }
    const rows = answers.map((one) => one.map((cells) => cells.map((cell) => (cell === 'None' ? null : cell))))
    expect(
      differences(
        rows.map((one) => one.map(fromPython)),
        some,
      ),
    ).toEqual([])
  },
)

/** A row of Python as our own lines say it: id, t, available_at, v, o, age. */
function fromPython([id = null, t = null, at = null, v = null, o = null, age = null]: readonly (
  | string
  | null
)[]): string {
  return JSON.stringify([id, t, at, v === null ? null : String(Number(v)), o, age])
}
