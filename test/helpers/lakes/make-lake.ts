import { seriesId } from '../../../src/catalog/series.ts'
import { commit, type StagedFile } from '../../../src/lake/ledger/commit.ts'
import type { SeriesRow } from '../../../src/lake/ledger/entry.ts'
import { Ledger } from '../../../src/lake/ledger/ledger.ts'
import { Engine, quote } from '../../../src/lake/store/engine.ts'
import { inLake, registryFile } from '../../../src/lake/store/layout.ts'
import { freshValueTypes } from '../../../src/sources/points/value-types.ts'
import { tableColumns } from '../../../src/sources/registry/columns.ts'
import { isoOf, micros } from '../instants.ts'
import { catalogue } from '../sandbox-client.ts'
import { testFolder } from '../folders.ts'
import { makeViews } from '../views.ts'
import { commitDeps } from './drafts.ts'
import type { LakeCommit, LakeRecipe, PointRow, TableRows, TestLake, WrittenRecipe } from './lake-recipe.ts'
import { pointsFileFacts, writePoints, writeRows } from './points-file.ts'

/** Makes the lake of a recipe in a temporary folder, with its views. */
export async function openTestLake(recipe: LakeRecipe | WrittenRecipe): Promise<TestLake> {
  const lake = testFolder(recipe.name)
  await makeWithViews(lake.root, recipe)
  return lake
}

/** Makes the lake of a recipe in a folder, with its views. */
export async function makeWithViews(root: string, recipe: LakeRecipe | WrittenRecipe): Promise<void> {
  if ('write' in recipe) return await recipe.write(root)
  await makeLake(root, recipe.commits)
  await makeViews(root, { catalogue: recipe.catalogue ?? catalogue })
}

/** Adds commits to the lake in a folder, which begins with the first of them if it is empty; views are not made. */
export async function makeLake(root: string, commits: readonly LakeCommit[]): Promise<void> {
  using ledger = await Ledger.open(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  const bench: Bench = { ledger, engine, written: 0 }
  for (const [index, step] of commits.entries()) await addCommit(bench, step, index)
}

/** The lake that is being made. */
interface Bench {
  readonly ledger: Ledger
  readonly engine: Engine
  /** How many files were written: they are named by their number. */
  written: number
}

async function addCommit(bench: Bench, step: LakeCommit, index: number): Promise<void> {
  const { at, points = [], tables = {}, ...draft } = step
  const { ledger, engine } = bench
  await commit(
    ledger,
    async ({ committed_at, version }) => {
      const files: StagedFile[] = []
      const parts = Map.groupBy(points, ({ metric, interval }) => `${metric} ${interval}`)
      for (const rows of parts.values()) files.push(await stagePoints(bench, rows, committed_at, version))
      for (const [table, rows] of Object.entries(tables))
        files.push(await stageTable(bench, table, rows, committed_at, version))
      return {
        job: 'fetch',
        run: `run-${index}`,
        provider: { metrics: 'sandbox:1', synthetic: true },
        state: { step: `${ledger.head().version} ${at}` },
        ...draft,
        value_types: await freshValueTypes(
          ledger,
          engine,
          files.filter(({ table }) => table === 'points'),
        ),
        add: [...files, ...(draft.add ?? [])],
        series: [...seriesOf(points), ...(draft.series ?? [])],
      }
    },
    commitDeps({ nowMicros: () => micros(at) }),
  )
}

/** A name for the next file of a version: no earlier call has used it in this lake. */
function nextName(bench: Bench, version: number): string {
  bench.written++
  return `f${version}-${bench.written}`
}

async function stagePoints(bench: Bench, rows: readonly PointRow[], at: number, version: number): Promise<StagedFile> {
  const name = nextName(bench, version)
  const temporary = `spool/test/${name}.parquet`
  const points = rows.map((row) => ({ ...row, observed_at: isoOf(at) }))
  const order = 'ORDER BY asset, currency, exchange, network, params, t'
  await writePoints(bench.engine, inLake(bench.ledger.root, temporary), points, order)
  return { temporary, ...pointsFileFacts(rows, name) }
}

const assetColumns = `id: 'VARCHAR', symbol: 'VARCHAR', addresses: 'VARCHAR', record: 'VARCHAR', observed_at: 'TIMESTAMPTZ'`

async function stageTable(
  bench: Bench,
  datedName: string,
  rows: TableRows,
  at: number,
  version: number,
): Promise<StagedFile> {
  const [table = '', date = null] = datedName.split('@')
  const columns =
    table === 'metric_assets'
      ? assetColumns
      : tableColumns(table, catalogue.resources)
          .map(([column, type]) => `${quote(column)}: ${quote(type)}`)
          .join(', ')
  const name = nextName(bench, version)
  const temporary = `spool/test/${name}.parquet`
  const lines = rows.map((row) => ({ observed_at: isoOf(at), at: isoOf(at), ...row }))
  await writeRows(bench.engine, inLake(bench.ledger.root, temporary), lines, columns)
  const path = table === 'metric_assets' ? `assets/${name}.parquet` : registryFile(table, name, date)
  const none = { metric: null, interval: null, digest: null, meta: {}, min_t: null, max_t: null }
  return { temporary, path, table, label: date ?? '', ...none, rows: rows.length }
}

/** The series of points, each once. */
export function seriesOf(points: readonly PointRow[]): SeriesRow[] {
  const rows = points.map(({ metric, asset, interval, currency = null, exchange = null, network = null }) => {
    const series = { metric, asset, interval, currency, exchange, network, params: {} }
    return { id: seriesId(series), ...series, settled: interval }
  })
  return [...new Map(rows.map((row) => [row.id, row])).values()]
}
