// @module-tag full
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { parse } from 'yaml'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { expand, seriesId } from '../../src/catalog/series.ts'
import { dbtSources } from '../../src/query/views/dbt.ts'
import { pitlake } from '../helpers/command.ts'
import { withEveryView } from '../helpers/lakes/every-view.ts'
import { coverageRow, seriesRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { withViews } from '../helpers/views.ts'

/** What of a sources.yml is read here, as dbt reads it. */
interface Read {
  readonly version: number
  readonly sources: readonly {
    readonly name: string
    readonly schema: string
    readonly tables: readonly {
      readonly name: string
      readonly description: string
      readonly config?: {
        readonly loaded_at_field: string
        readonly freshness?: Readonly<Record<'warn_after' | 'error_after', { count: number; period: string }>>
        readonly meta?: { readonly external_location: string }
      }
      readonly columns?: readonly Column[]
    }[]
  }[]
}
interface Column {
  readonly name: string
  readonly description: string
  readonly data_type: string
  readonly data_tests?: readonly (string | { accepted_values: { arguments: { values: readonly string[] } } })[]
}

async function exported(cwd: string, ...argv: readonly string[]): Promise<Read> {
  const { code, out } = await pitlake(cwd, ['catalog', 'export', '--dbt', ...argv])
  expect(code).toBe(0)
  return parse(out) as Read
}

/** The SQL that counts rows against what a test of dbt says. */
function against(table: string, column: string, said: NonNullable<Column['data_tests']>[number]): string {
  const name = `"${column}"`
  if (said === 'not_null') return `SELECT count(*) AS n FROM ${table} WHERE ${name} IS NULL`
  if (said === 'unique')
    return `SELECT count(*) AS n FROM (SELECT 1 FROM ${table} WHERE ${name} IS NOT NULL GROUP BY ${name} HAVING count(*) > 1)`
  if (typeof said === 'string') throw new Error(`dbt has no test ${said}`)
  const values = said.accepted_values.arguments.values.map((value) => `'${value}'`)
  return `SELECT count(*) AS n FROM ${table} WHERE ${name} NOT IN (${values.join(', ')})`
}

test('sources.yml names every view and column that a lake has, and each of its tests holds', () =>
  withEveryView(1, null, async ({ root, points }) => {
    const config = join(root, 'select.yaml')
    const paths = [...new Set(points.map(({ metric }) => metric))]
    writeFileSync(config, `select: [{ assets: [BTC], paths: [${paths.join(', ')}], intervals: ['*'] }]\n`)
    const { version, sources } = await exported(root, '--data', root, '--config', config)
    expect(version).toBe(2)
    const views = sources.filter(({ name }) => name !== 'lake_endpoints')
    const told = views.flatMap(({ schema, tables }) =>
      tables.flatMap(({ name, columns = [] }) => columns.map((one) => [schema, name, one.name, one.data_type])),
    )
    await withViews(root, async (engine) => {
      const held = await engine.rows<{ row: { items: string[] } }>(
        `SELECT [schema_name, table_name, column_name, data_type] AS row FROM duckdb_columns() WHERE NOT internal`,
      )
      const sorted = (rows: readonly (readonly string[])[]): string[] => rows.map((row) => row.join(' ')).toSorted()
      expect(sorted(told)).toEqual(sorted(held.map(({ row }) => row.items ?? row)))
      expect(told.length).toBeGreaterThan(400)
      const wrong: string[] = []
      const tried = { not_null: 0, unique: 0, accepted_values: 0 }
      for (const { schema, tables } of views)
        for (const table of tables)
          for (const { name, data_tests = [], description } of table.columns ?? []) {
            expect(`${table.name}.${name}: ${description}`).toMatch(/: \S/)
            for (const said of data_tests) {
              tried[typeof said === 'string' ? (said as 'unique') : 'accepted_values']++
              const [found] = await engine.rows<{ n: bigint }>(against(`${schema}."${table.name}"`, name, said))
              if (found?.n !== 0n) wrong.push(`${schema}.${table.name}.${name} ${JSON.stringify(said)}: ${found?.n}`)
            }
          }
      expect(wrong).toEqual([])
      expect(tried).toEqual({ not_null: 214, unique: 15, accepted_values: 14 })
      const full = await Promise.all(
        views.flatMap(({ schema, tables }) =>
          tables.map(async ({ name }) => [name, await engine.rows(`FROM ${schema}."${name}" LIMIT 1`)] as const),
        ),
      )
      // A view without rows would hold any test.
      expect(full.filter(([, rows]) => rows.length === 0).map(([name]) => name)).toEqual([])
    })
    const own = sources.find(({ name }) => name === 'lake_endpoints')?.tables ?? []
    await withViews(
      root,
      async (engine) => {
        const counts = own.map(async ({ name, config }) => {
          const [row] = await engine.rows<{ n: bigint }>(`SELECT count(*) AS n FROM ${config?.meta?.external_location}`)
          return [name, row?.n] as const
        })
        const held = await engine.rows<{ name: string; n: bigint }>(
          `SELECT replace(metric, '/', '__') || '__' || "interval" AS name, count(*) AS n FROM lake.points GROUP BY ALL`,
        )
        const some = (await Promise.all(counts)).filter(([, n]) => n !== 0n)
        expect(Object.fromEntries(some)).toEqual(Object.fromEntries(held.map(({ name, n }) => [name, n])))
        expect(own.length).toBeGreaterThan(8)
      },
      'attach',
    )
  }))

test('a point is late by dbt when it is late by its rule, and gone when it is no longer pending', async () => {
  const rules = `availability:
  - { paths: [own/lag], lag: 20m, basis: assumed, reason: r }
  - { paths: [own/clock], daily_at: "10:15", days: 1, basis: assumed, reason: r }
`
  const row = (path: string, more: string): string =>
    `  - { path: ${path}, about: "what: ${path}", takes: [since, until], ${more} }\n`
  await inFolder(async (root) => {
    const file = join(root, 'own.yaml')
    writeFileSync(
      file,
      `endpoints:\n${row('own/lag', 'intervals: [10m, 1h, 24h, 1w, 1month]')}${row('own/clock', 'intervals: [1h, 24h], tolerance: 12h')}${rules}`,
    )
    const own = loadCatalogue([file])
    // Casts: '*' stands for intervals that the type does not list, and the project is read as a user does.
    const wanted = expand(own, [{ assets: ['A', 'B'], paths: ['own/*'], intervals: ['*'] as never }])
    const { sources } = (await dbtSources(own, wanted)) as unknown as Read
    const spans = sources
      .flatMap(({ name, tables }) => (name === 'lake_endpoints' ? tables : []))
      .map(({ name, config }) => {
        const { warn_after: warn, error_after: error } = config?.freshness ?? {}
        return [name, `${warn?.count} ${warn?.period}`, `${error?.count} ${error?.period}`]
      })
    expect(spans).toEqual([
      // Twice the interval, and the lag; then the larger of two days and three intervals more.
      ['own__lag__10m', '40 minute', `${48 * 60 + 40} minute`],
      ['own__lag__1h', '140 minute', `${48 * 60 + 140} minute`],
      ['own__lag__24h', `${48 * 60 + 20} minute`, `${5 * 24 * 60 + 20} minute`],
      ['own__lag__1w', `${14 * 24 * 60 + 20} minute`, `${35 * 24 * 60 + 20} minute`],
      ['own__lag__1month', `${62 * 24 * 60 + 20} minute`, `${155 * 24 * 60 + 20} minute`],
      // The first hour of a day is the one that waits longest, from the last hour of the day before on.
      ['own__clock__1h', `${35 * 60 + 15} minute`, `${47 * 60 + 15} minute`],
      ['own__clock__24h', `${58 * 60 + 15} minute`, `${70 * 60 + 15} minute`],
    ])
    const points = sources[0]?.tables.find(({ name }) => name === 'points')?.config
    expect(points).toMatchObject({ loaded_at_field: 'observed_at', freshness: { warn_after: { count: 40 } } })
  })
})

test('the file appears whole, the same each time, in what YAML 1.1 and 1.2 both read alike', async ({
  root: folder,
}) => {
  const data = join(folder, 'data')
  const before = await exported(folder)
  expect(before.sources.map(({ name }) => name)).toEqual(['lake', 'lake_history', 'lake_snapshots'])
  const held = { metric: 'supply/current_pit', asset: 'A', currency: 'usd' }
  const row = seriesRow(1, held)
  const series = { ...row, id: seriesId({ ...row, interval: '24h' }) }
  const coverage = [coverageRow(1, 0, 86_400, { series: series.id })]
  await makeLake(data, [{ at: '2024-04-01', series: [series], coverage }])
  const ask = async (file: string): Promise<string> => {
    const { code, out } = await pitlake(folder, ['catalog', 'export', '--dbt', '-o', file])
    expect([code, out]).toEqual([0, ''])
    return readFileSync(join(folder, file), 'utf8')
  }
  const text = await ask('sources.yml')
  expect(await ask('again.yml')).toBe(text)
  expect(readdirSync(folder).toSorted()).toEqual(['again.yml', 'data', 'sources.yml'])
  expect(parse(text, { version: '1.1' })).toEqual(parse(text))
  const endpoints = (read: Read): string[] => read.sources[3]?.tables.map(({ name }) => name) ?? []
  expect(endpoints(parse(text) as Read)).toEqual(['supply__current_pit__24h'])
  writeFileSync(
    join(folder, 'pitlake.yaml'),
    'select: [{ assets: [BTC, ETH], paths: [market/btc_dominance_pit, supply/current_pit], intervals: [1h, 24h] }]\n',
  )
  const selected = endpoints(await exported(folder))
  expect(selected).toContain('supply__current_pit__1h')
  expect(selected).toContain('market__btc_dominance_pit__24h')
})

test('a meaningless or unwritable dbt export ends in one line', async ({ root: folder }) => {
  const both = await pitlake(folder, ['catalog', 'export', '--dbt', '--json'])
  expect([both.code, both.message]).toEqual([2, '--dbt: expected no --json with it, got both; leave one out'])
  const nowhere = await pitlake(folder, ['catalog', 'export', '--dbt', '-o', 'none/sources.yml'])
  expect([nowhere.code, nowhere.message]).toEqual([2, expect.stringContaining('a file in a folder that exists')])
  const inside = await pitlake(folder, ['catalog', 'export', '--dbt', '-o', 'lake.duckdb', '--data', folder])
  expect([inside.code, inside.message]).toEqual([2, expect.stringContaining('a file outside the lake')])
})
