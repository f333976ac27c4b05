// @module-tag full
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { commitFile, commitTable, noTable, ownProtocol, type TableState } from '../../src/maintenance/publish/log.ts'
import { destinationOf } from '../../src/maintenance/publish/s3.ts'
import { schemaString } from '../../src/maintenance/publish/write.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { viewCaseCommits } from '../helpers/lakes/view-cases.ts'
import { asPublished, deltaRows, publishTo } from '../helpers/delta.ts'
import { need } from '../helpers/needs.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { freshFolder } from '../helpers/scratch.ts'

const project = resolve(import.meta.dirname, '../..')

let home = ''
freshFolder('python', (path) => (home = path))

const ask = (python: string, ...args: readonly string[]): unknown[] =>
  execFileSync(python, [join(project, 'test/python/delta.py'), ...args], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)

interface Told {
  readonly rust: readonly Row[]
  readonly polars: readonly Row[]
  readonly refusal: string
}

const plain = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )

test('delta-rs and polars read every row, of every version, and may not write', async (context) => {
  const python = need(context, 'readers')
  const root = join(home, 'lake')
  const out = join(home, 'out')
  await makeLake(root, viewCaseCommits.slice(0, -1))
  await publishTo(root, out)
  await makeLake(root, viewCaseCommits.slice(-1))
  await publishTo(root, out)
  const tables = ['points', 'components', 'history_products', 'links', 'versions', 'points@0']
  const told = ask(python, 'rows', ...tables.map((table) => join(out, table))) as Told[]
  for (const [n, table] of tables.entries()) {
    const [name = '', version] = table.split('@')
    const rows = await deltaRows(join(out, name), version === undefined ? undefined : Number(version))
    const own = asPublished(rows.map(plain))
    const { rust = [], polars = [], refusal } = told[n] ?? {}
    expect([table, asPublished(rust)]).toEqual([table, own])
    expect([table, asPublished(polars)]).toEqual([table, own])
    expect(refusal).toMatch(/pitlake/)
  }
})

test('delta-rs opens a log that has only its checkpoint and later entries', async (context) => {
  const python = need(context, 'readers')
  using engine = await Engine.open(':memory:', { threads: 1 })
  const to = destinationOf(home, { disk: realDisk, mark: 'a' })
  const logs = { to, engine, local: (name: string) => join(home, name) }
  const metaData = {
    id: '35d793f9-167d-4bfe-8626-51bb57442ca0',
    name: 't',
    format: { provider: 'parquet', options: {} },
    schemaString: schemaString([{ name: 'v', sql: '', type: 'double' }]),
    partitionColumns: [],
    createdTime: 5,
    configuration: { 'pitlake.lake': 'L' },
  }
  const path = (n: number): string => `several/${n}.parquet`
  let state: TableState = noTable
  for (let n = 0; n < 24; n++) {
    const file = { partitionValues: {}, size: 9, modificationTime: n, dataChange: true, stats: '{"numRecords":1}' }
    const gone =
      n % 3 === 0 || n === 0 ? [] : [{ remove: { path: path(n - 1), deletionTimestamp: n, dataChange: true } }]
    const first = n > 0 ? [] : [{ protocol: ownProtocol }, { metaData }]
    const txn = { appId: 'pitlake.version', version: n }
    const made = await commitTable(
      logs,
      't',
      state,
      [...first, { txn }, ...gone, { add: { path: path(n), tags: {}, ...file } }],
      n,
    )
    if (made) state = made
  }
  for (let version = 0; version < 19; version++) rmSync(join(home, commitFile('t', version)))
  expect(ask(python, 'files', join(home, 't'))).toEqual([{ version: 23, files: state.files.size }])
})
