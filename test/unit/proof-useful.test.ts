import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { argueFromPlan } from '../../src/trust/lookahead/proof/prove.ts'
import { statementsOf } from '../../src/query/statements.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { bareViews } from '../helpers/lakes/bare-views.ts'

let lake: Engine
beforeAll(async () => (lake = await bareViews()))
afterAll(() => lake.close())

/** The one SELECT that a page's statements amount to: settings are left out, a temporary table is a CTE. */
function single(text: string): string {
  const statements = statementsOf(text).map((one) => one.text.trim())
  const select = statements.findLast((one) => /^(?:WITH|SELECT|FROM)\b/i.test(one)) ?? ''
  const tables = statements.flatMap((one) => /^CREATE TEMP TABLE (\w+) AS\s([\s\S]*)$/.exec(one)?.slice(1) ?? [])
  if (tables.length === 0) return select
  const ctes = Array.from(
    { length: tables.length / 2 },
    (_, i) => `${tables[2 * i] ?? ''} AS (${tables[2 * i + 1] ?? ''})`,
  )
  return select.startsWith('WITH')
    ? select.replace('WITH', `WITH ${ctes.join(', ')},`)
    : `WITH ${ctes.join(', ')} ${select}`
}

function ofPage(file: string): [name: string, sql: string][] {
  const blocks = readFileSync(file, 'utf8').matchAll(/```sql\n([\s\S]*?)```/g)
  return [...blocks].map(([, text = ''], i) => [`${file}, block ${i + 1}`, single(text)])
}

interface Cell {
  readonly source: readonly string[]
}

function cellsOf(notebook: string): string {
  const { cells } = JSON.parse(readFileSync(`notebooks/${notebook}`, 'utf8')) as { readonly cells: readonly Cell[] }
  return cells.map(({ source }) => source.join('')).join('\n')
}

const said = (cells: string, pattern: RegExp): string => pattern.exec(cells)?.[1] ?? ''

/**
 * The queries of the notebooks whose rows are decisions; where Python puts parts together they are put together here.
 */
function ofNotebooks(): [name: string, sql: string][] {
  const third = cellsOf('03-price-of-lookahead.ipynb')
  const names: Readonly<Record<string, string>> = {
    decisions: said(third, /^decisions = f"(.*)"$/m).replaceAll(/\{(?:FIRST|LAST)\}/g, '2024-01-01'),
    label: said(third, /^label = """([\s\S]*?)"""/m),
    METRIC: 'indicators/sopr_adjusted_pit',
  }
  const clean = said(third, /^clean = f"""([\s\S]*?)"""/m).replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => names[name] ?? '',
  )
  const weeks = said(cellsOf('04-survivors.ipynb'), /sql\("(SELECT ts[^"]*pit_universe[^"]*)"/)
  return [
    ['03, clean', clean],
    [
      '04, the members of each week',
      `WITH weeks AS (SELECT ts FROM calendar('2025-01-07', '2026-07-22', '7 days')) ${weeks}`,
    ],
    ['05, growth', said(cellsOf('05-two-apis.ipynb'), /^query = """([\s\S]*?)"""/m)],
  ]
}

test('most honest queries of the cookbook, the page on joins and the notebooks are proved', async () => {
  const pages = ['docs/how-to/cookbook.md', 'docs/reference/joins.md'].flatMap(ofPage)
  const open: string[] = []
  let honest = 0
  for (const [name, sql] of [...pages, ...ofNotebooks()]) {
    expect(sql, name).not.toBe('')
    const { proved, unproved } = await argueFromPlan(lake, { sql, ts: 'ts', labels: ['next_return'] })
    // Rows without an instant are no decisions; `revisions` lists the vintages of a series.
    if (/^(?:ts|the plan of the query|revisions\(\))$/.test(unproved?.what ?? '')) continue
    honest++
    if (!proved) open.push(`${name}: ${unproved?.what ?? ''}: ${unproved?.why ?? ''}`)
  }
  expect(open).toEqual([
    expect.stringMatching(/^03, clean: join on .* a match may come later/),
    expect.stringMatching(/^05, growth: links: it shows a state/),
  ])
  expect(honest).toBeGreaterThanOrEqual(10)
  expect(honest - open.length).toBeGreaterThanOrEqual(0.8 * honest)
})
