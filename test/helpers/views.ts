import { programName } from '../../src/interfaces/cli/process.ts'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { seriesId } from '../../src/catalog/series.ts'
import { commit, type Draft, type StagedFile, type Version } from '../../src/lake/ledger/commit.ts'
import { freshValueTypes } from '../../src/sources/points/value-types.ts'
import { Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import type { SeriesRow } from '../../src/lake/ledger/entry.ts'
import { inLake, places, pointsFile, registryFile } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { tableColumns } from '../../src/sources/registry/columns.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { end, type Interval } from '../../src/base/time.ts'
import { commitDeps } from './lakes.ts'
import { catalogue } from './sandbox-client.ts'

/** A point to be stored; instants as ISO text, `observed_at` is that of its commit. */
export interface PointRow {
  readonly metric: string
  readonly asset: string
  readonly interval: Interval
  readonly t: string
  readonly available_at: string
  readonly currency?: string | null
  readonly exchange?: string | null
  readonly network?: string | null
  readonly v?: number | null
  readonly o?: string | null
  readonly basis?: string
  readonly extra?: string | null
  readonly computed_at?: string | null
  /** Earlier than available_at for backfilled points. */
  readonly available_rule_at?: string
}

/** One commit: when, what points, what rows of other tables (dated ones as `venues@2024-11-01`), and what else the draft holds. */
export interface Step {
  readonly at: string
  readonly points?: readonly PointRow[]
  readonly tables?: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>
  readonly draft?: Partial<Draft>
}

const pointColumns = `asset: 'VARCHAR', currency: 'VARCHAR', exchange: 'VARCHAR', network: 'VARCHAR', t: 'TIMESTAMPTZ',
  available_at: 'TIMESTAMPTZ', observed_at: 'TIMESTAMPTZ', v: 'DOUBLE', o: 'VARCHAR', basis: 'VARCHAR', extra: 'VARCHAR',
  computed_at: 'TIMESTAMPTZ', available_rule_at: 'TIMESTAMPTZ', params: 'VARCHAR'`

const assetColumns = `id: 'VARCHAR', symbol: 'VARCHAR', addresses: 'VARCHAR', record: 'VARCHAR', observed_at: 'TIMESTAMPTZ'`

/** ISO text as Unix microseconds; fractions to the microsecond. */
export function micros(text: string): number {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? ''
  const whole = text.replace(/\.\d+/, '')
  return (
    Date.parse(/Z$|[+-]\d\d:\d\d$/.test(whole) ? whole : `${whole}Z`) * 1000 +
    Number(fraction.padEnd(6, '0').slice(0, 6))
  )
}

/** Microseconds as ISO text. */
export function isoOf(us: number): string {
  const text = new Date(Math.floor(us / 1000)).toISOString()
  return text.replace('Z', `${String(us - Math.floor(us / 1000) * 1000).padStart(3, '0')}Z`)
}

/** Makes a lake of these commits, one after the other. */
export async function makeLake(root: string, steps: readonly Step[]): Promise<void> {
  using ledger = await Ledger.open(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  for (const [index, step] of steps.entries()) await takeStep(ledger, engine, step, index)
}

/** Makes one commit more. */
async function takeStep(ledger: Ledger, engine: Engine, step: Step, index: number): Promise<Version> {
  const deps = commitDeps({ nowMicros: () => micros(step.at) })
  return await commit(
    ledger,
    async ({ committed_at }) => {
      const points = step.points ?? []
      const files: StagedFile[] = []
      const parts = Map.groupBy(points, ({ metric, interval }) => `${metric} ${interval}`)
      for (const rows of parts.values()) files.push(await stagePoints(ledger, engine, rows, committed_at))
      for (const [table, rows] of Object.entries(step.tables ?? {}))
        files.push(await stageTable(ledger, engine, table, rows, committed_at))
      return {
        job: 'fetch',
        run: `run-${index}`,
        provider: { metrics: 'sandbox:1', synthetic: true },
        state: { step: `${ledger.head().version} ${step.at}` },
        ...step.draft,
        value_types: await freshValueTypes(
          ledger,
          engine,
          files.filter(({ table }) => table === 'points'),
        ),
        add: [...files, ...(step.draft?.add ?? [])],
        series: [...seriesOf(points), ...(step.draft?.series ?? [])],
      }
    },
    deps,
  )
}

let files = 0

async function stagePoints(ledger: Ledger, engine: Engine, rows: readonly PointRow[], at: number): Promise<StagedFile> {
  const [{ metric, interval }] = rows as [PointRow]
  const lines = rows.map((row) => ({
    params: null,
    basis: 'assumed',
    available_rule_at: row.available_rule_at ?? row.available_at,
    ...row,
    observed_at: isoOf(at),
  }))
  const order = 'ORDER BY asset, currency, exchange, network, params, t'
  const temporary = await writeParquet(ledger, engine, lines, pointColumns, order)
  const path = pointsFile(metric, interval, `f${files}`)
  const min_lag = Math.min(...rows.map((row) => micros(row.available_at) - end(micros(row.t) / 1e6, interval) * 1e6))
  const about = { table: 'points', label: '', metric, interval, digest: null, meta: { min_lag } } as const
  const ts = rows.map((row) => Math.floor(micros(row.t) / 1_000_000))
  return { temporary, path, ...about, rows: rows.length, min_t: Math.min(...ts), max_t: Math.max(...ts) }
}

async function stageTable(
  ledger: Ledger,
  engine: Engine,
  name: string,
  rows: readonly Readonly<Record<string, unknown>>[],
  at: number,
): Promise<StagedFile> {
  const [table = '', date = null] = name.split('@')
  const columns =
    table === 'metric_assets'
      ? assetColumns
      : tableColumns(table, catalogue.resources)
          .map(([name, type]) => `${quote(name)}: ${quote(type)}`)
          .join(', ')
  const lines = rows.map((row) => ({ observed_at: isoOf(at), at: isoOf(at), ...row }))
  const temporary = await writeParquet(ledger, engine, lines, columns, '')
  const path = table === 'metric_assets' ? `assets/f${files}.parquet` : registryFile(table, `f${files}`, date)
  const none = { label: date ?? '', metric: null, interval: null, digest: null, meta: {}, min_t: null, max_t: null }
  return { temporary, path, table, ...none, rows: rows.length }
}

async function writeParquet(ledger: Ledger, engine: Engine, rows: readonly object[], columns: string, order: string) {
  files++
  const temporary = `spool/test/f${files}.parquet`
  const out = inLake(ledger.root, temporary)
  await mkdir(dirname(out), { recursive: true })
  writeFileSync(`${out}.jsonl`, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  const read = `read_json(${quote(`${out}.jsonl`)}, hive_partitioning = false, format = 'newline_delimited', columns = {${columns}})`
  await engine.run(`COPY (SELECT * FROM ${read} ${order}) TO ${quote(out)} (FORMAT parquet)`)
  return temporary
}

function seriesOf(points: readonly PointRow[]): SeriesRow[] {
  const rows = points.map(({ metric, asset, interval, currency = null, exchange = null, network = null }) => {
    const series = { metric, asset, interval, currency, exchange, network, params: {} }
    return { id: seriesId(series), ...series, settled: interval }
  })
  return [...new Map(rows.map((row) => [row.id, row])).values()]
}

/** Builds the views of a lake. */
export async function makeViews(root: string, options: Partial<Parameters<typeof buildViews>[1]> = {}) {
  using ledger = await Ledger.open(root)
  return await buildViews(ledger, { catalogue, deps: commitDeps({ program: programName() }), ...options })
}

/** The three ways to the objects of a lake; the prefix stands before their names. */
export const ways = ['open', 'attach', 'script'] as const

/** Opens the views of a lake in one of the ways, runs the work, closes. */
export async function withViews<T>(
  root: string,
  work: (engine: Engine, prefix: string) => Promise<T>,
  way: (typeof ways)[number] = 'open',
): Promise<T> {
  const database = inLake(root, places.database)
  using engine = way === 'open' ? await Engine.open(database, { readOnly: true, threads: 2 }) : await Engine.open()
  if (way === 'attach') await engine.run(`ATTACH ${quote(database)} AS lake (READ_ONLY)`)
  if (way === 'script') await engine.run(readFileSync(inLake(root, places.script), 'utf8'))
  return await work(engine, way === 'attach' ? 'lake.' : '')
}

/** The rows as sorted lines of JSON: a multiset that can be compared. */
export function multiset(rows: readonly Row[]): string[] {
  return rows.map((row) => JSON.stringify(row, (_, value: unknown) => exact(value))).toSorted()
}

function exact(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return Object.is(value, -0) ? '-0' : value
}
