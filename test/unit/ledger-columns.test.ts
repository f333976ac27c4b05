// @module-tag alone
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, expectTypeOf, test, vi } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { commit, noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { checksOf, type ColumnChecks, type LedgerColumns, requestColumns } from '../../src/lake/ledger/columns.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type Shaped, text } from '../../src/base/value-checks.ts'
import { commitDeps, coverageRow, requestRow, seriesRow, violationRow } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import type * as Columns from '../../src/lake/ledger/columns.ts'

// Every declaration gains a column. Nothing else knows of it.
vi.mock('../../src/lake/ledger/columns.ts', async (load) => {
  const real = await load<typeof Columns>()
  const { maybe, text } = await import('../../src/base/value-checks.ts')
  const added = { check: maybe(text), stored: 'TEXT', shown: 'VARCHAR', about: 'address that was asked' } as const
  const extend = (columns: LedgerColumns): LedgerColumns => ({ ...columns, source_url: added })
  const tables = Object.entries(real.ledgerTables).map(([name, table]) => [
    name,
    { ...table, columns: extend(table.columns) },
  ])
  return {
    ...real,
    requestColumns: extend(real.requestColumns),
    windowColumns: extend(real.windowColumns),
    violationColumns: extend(real.violationColumns),
    clockFindingColumns: extend(real.clockFindingColumns),
    valueTypeColumns: extend(real.valueTypeColumns),
    runColumns: extend(real.runColumns),
    versionColumns: extend(real.versionColumns),
    ledgerTables: Object.fromEntries(tables),
  }
})

const source_url = 'https://provider.example/v1'
const provider = { metrics: 'sandbox:1', synthetic: true }
const draft = { job: 'fetch', run: 'r', provider }
const day = 86_400

let root = ''
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'pitlake-'))
  using ledger = await Ledger.open(root)
  const { id } = seriesRow(0)
  const detail = { before: 1 }
  const rows = {
    requests: [requestRow('r-1'), requestRow('r-2')],
    coverage: [coverageRow(0, 0, 20 * day)],
    violations: [violationRow(0, day)],
    findings: [{ series: id, t: day, kind: 'before_end', detail, at: 1 }],
    value_types: [
      { metric: 'm', path: '$', parent: null, type: 'number' as const, available_at: 1, ruled_at: 1, after: null },
    ],
  }
  const sourced = Object.entries(rows).map(([name, list]) => [name, list.map((row) => ({ ...row, source_url }))])
  await commit(ledger, { ...draft, series: [seriesRow(0)], ...Object.fromEntries(sourced) }, commitDeps())
  const inside = { ...coverageRow(0, 5 * day, 6 * day), state: 'empty' as const }
  await commit(ledger, { ...draft, coverage: [inside] }, commitDeps())
  const run = { id: 'r', job: 'fetch', started_at: 1, source_url }
  await noteRunFacts(ledger, run)
  await makeViews(root)
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

async function rowsOf(sql: string): Promise<readonly object[]> {
  return await withViews(root, async (engine: Engine) => await engine.rows(sql))
}

test.each([
  ['requests', [source_url, source_url]],
  ['violations', [source_url]],
  ['clock_findings', [source_url]],
  ['runs', [source_url]],
  ['versions', [null, null]],
])('a column that is added to the declaration of %s is in its view', async (view, expected) => {
  const rows = await rowsOf(`SELECT source_url FROM ${view}`)
  expect(rows).toEqual(expected.map((value) => ({ source_url: value })))
})

test('a column that is added to the declaration of coverage stays with the windows that a later answer cuts', async () => {
  expect(await rowsOf('SELECT state, source_url FROM coverage ORDER BY since')).toEqual([
    { state: 'covered', source_url },
    { state: 'empty', source_url: null },
    { state: 'covered', source_url },
  ])
})

test('a column that is added to the declaration of value types is in the index', async () => {
  using ledger = await Ledger.openToRead(root)
  const rows = ledger.statement('SELECT source_url FROM value_types').all()
  expect(rows.map((row) => ({ ...row }))).toEqual([{ source_url }])
})

test('a column that is added to a declaration is in the journal, which refuses a value of a different type', async () => {
  const { entry } = await readEntry(root, 1)
  for (const rows of [entry.requests, entry.coverage, entry.violations, entry.findings, entry.value_types])
    expect(rows?.[0]).toMatchObject({ source_url })
  await inFolder(async (other) => {
    using ledger = await Ledger.open(other)
    const requests = [{ ...requestRow('r-3'), source_url: 7 }]
    await expect(commit(ledger, { ...draft, state: { n: 1 }, requests }, commitDeps())).rejects.toThrow(
      /source_url: no text/,
    )
  })
})

test('a column that is added to a declaration has its comment, and the page of the views lacks it', async () => {
  const views = ['clock_findings', 'coverage', 'requests', 'runs', 'versions', 'violations']
  const page = readFileSync(new URL('../../docs/reference/views.md', import.meta.url), 'utf8')
  const sections = new Map(page.split('\n### `').map((part) => [part.slice(0, part.indexOf('`')), part]))
  const columns = (await rowsOf(
    `SELECT table_name AS view, column_name AS name, comment FROM duckdb_columns() WHERE NOT internal
     AND schema_name = 'main' ORDER BY table_name`,
  )) as { readonly view: string; readonly name: string; readonly comment: string }[]
  const missing = columns.filter(({ view, name }) => sections.get(view)?.includes(`| \`${name}\` |`) === false)
  expect(missing).toEqual(views.map((view) => ({ view, name: 'source_url', comment: 'address that was asked' })))
})

test('the type of a row has the columns of its declaration that the journal stores', () => {
  const columns = {
    id: { check: text, stored: 'TEXT' },
    seen_at: { shown: 'TIMESTAMPTZ', about: 'computed' },
  } as const satisfies LedgerColumns
  expectTypeOf<Shaped<ColumnChecks<typeof columns>>>().toEqualTypeOf<{ readonly id: string }>()
  expect(Object.keys(checksOf(columns))).toEqual(['id'])
  expect(Object.keys(requestColumns)).toContain('source_url')
})
