// @module-tag full
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { askReaders, publishGolden, runPage, tablesIn, type Told } from '../helpers/golden-readers.ts'
import { need } from '../helpers/needs.ts'
import { scratch } from '../helpers/scratch.ts'

const home = scratch('readers')
beforeAll(async () => await publishGolden(home), 300_000)

test('every text is there, names the tables where they lie, and has no placeholder left', () => {
  const names = ['duckdb.sql', 'clickhouse.sql', 'spark.sql', 'trino.sql', 'pitlake_pyspark.py', 'pitlake_polars.py']
  for (const name of names) {
    const text = readFileSync(join(tablesIn(home), 'readers', name), 'utf8')
    expect(text).toContain(tablesIn(home))
    expect(text).not.toMatch(/\{\{|\}\}|undefined/)
  }
})

test.for(['polars', 'duckdb', 'clickhouse'])(
  'L1: %s answers a hundred thousand decisions by the published text as brute force does',
  { timeout: 600_000 },
  (engine, context) => {
    const [told] = askReaders<Told>(need(context, 'readers'), home, [engine])
    expect(told).toMatchObject({ engine, decisions: 100_800, universes: 19, differences: [] })
    expect(told?.answered).toBeGreaterThan(70_000)
  },
)

test('L1: readers answer price_usd as brute force does, with the columns of the decisions by their names', (context) => {
  const told = askReaders<{ engine: string; columns: string[]; answered: number; wrong: unknown[] }>(
    need(context, 'readers'),
    home,
    ['prices'],
  )
  const columns = ['id', 'asset', 'ts', 't', 'available_at', 'v', 'o', 'age_us']
  expect(told.map(({ engine, columns, wrong }) => ({ engine, columns, wrong }))).toEqual(
    ['polars', 'duckdb', 'clickhouse'].map((engine) => ({ engine, columns, wrong: [] })),
  )
  for (const { answered } of told) expect(answered).toBeGreaterThan(50)
}, 300_000)

test('L6: a reader answers at each of three published versions what the lake held then', (context) => {
  const told = askReaders<Told>(need(context, 'readers'), home, ['versions'])
  expect(told.map(({ differences }) => differences)).toEqual([[], [], []])
  const [first = 0, second = 0, third = 0] = told.map(({ answered }) => answered)
  expect(first).toBeGreaterThan(50_000)
  expect(second).toBeGreaterThan(first)
  expect(third).toBeGreaterThan(second)
}, 600_000)

test('a text that forgets one rule is noticed, and so are instants rounded down or to the nearest', (context) => {
  const told = askReaders<{ planted: string; noticed: number }>(need(context, 'readers'), home, ['planted'])
  expect(told).toHaveLength(8)
  for (const { planted, noticed } of told) expect([planted, noticed > 0]).toEqual([planted, true])
}, 600_000)

test('a meaningless option is an error in every engine, not an answer of NULLs', (context) => {
  const told = askReaders<{ answered: unknown[] }>(need(context, 'readers'), home, ['refused'])
  expect(told.map(({ answered }) => answered)).toEqual([[], [], []])
}, 300_000)

test('the page on publishing shows what ClickHouse answers', (context) => {
  expect(runPage(need(context, 'readers'), home, 'how-to/publish.md')).toBe('')
}, 300_000)
