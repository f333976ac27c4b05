import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import type { StoredFile } from '../../src/lake/ledger/index-queries.ts'
import { inLake, pointsFile } from '../../src/lake/store/layout.ts'
import { compile, type Compiled } from '../../src/query/views/compile.ts'
import { exportedTables } from '../../src/query/views/ledger-tables.ts'
import { end, type Weekday } from '../../src/base/time.ts'
import { catalogue } from './sandbox-client.ts'
import { micros, type PointRow } from './views.ts'
import { ownFolder } from './own-folder.ts'

/** A point with the instant at which the lake first held it. */
export interface HeldPoint extends PointRow {
  readonly observed_at: string
}

const columns = `asset: 'VARCHAR', currency: 'VARCHAR', exchange: 'VARCHAR', network: 'VARCHAR', t: 'TIMESTAMPTZ',
  available_at: 'TIMESTAMPTZ', observed_at: 'TIMESTAMPTZ', v: 'DOUBLE', o: 'VARCHAR', basis: 'VARCHAR', extra: 'VARCHAR',
  computed_at: 'TIMESTAMPTZ', available_rule_at: 'TIMESTAMPTZ', params: 'VARCHAR'`

/** A window that was asked for, as the ledger's export has it; instants as ISO text. */
export type AskedWindow = Readonly<Record<string, string | null>>

/** What else a lake of the joins is made of. */
interface Rest {
  readonly coverage?: readonly AskedWindow[]
  readonly uncovered?: readonly AskedWindow[]
  readonly catalogue?: Catalogue
  /** Metrics whose points may have several vintages. */
  readonly revisable?: readonly string[]
  /** How the name of its folder begins. */
  readonly folder?: string
}

/** An engine with the macros of the joins over these points, in their order, without journal and ledger. */
export async function withJoins<T>(
  points: readonly HeldPoint[],
  work: (engine: Engine) => Promise<T>,
  rest: Rest = {},
): Promise<T> {
  using rootFolder = ownFolder(rest.folder ?? 'joins')
  const root = rootFolder.path
  using engine = await Engine.open(':memory:', { threads: 2 })
  const files: StoredFile[] = []
  for (const rows of Map.groupBy(points, ({ metric, interval }) => `${metric} ${interval}`).values())
    files.push(await write(engine, root, rows))
  const exports = new Map<string, string>()
  for (const table of ['coverage', 'uncovered'] as const)
    if (rest[table]) exports.set(table, await writeLedger(engine, root, table, rest[table]))
  for (const { sql } of joinObjects(root, files, { ...rest, exports })) await engine.run(sql)
  return await work(engine)
}

const own = new Set(['calendar', 'resample', 'pit_join', 'pit_long', 'pit_window', 'unresolved'])

async function writeLedger(engine: Engine, root: string, table: string, rows: readonly AskedWindow[]): Promise<string> {
  const out = join(root, `${table}.parquet`)
  writeFileSync(`${out}.jsonl`, rows.map((row) => JSON.stringify(row)).join('\n'))
  const types = exportedTables(catalogue)[table]?.columns.map(([name, type]) => `${quote(name)}: ${quote(type)}`) ?? []
  await engine.run(
    `COPY (FROM read_json(${quote(`${out}.jsonl`)}, format = 'newline_delimited', columns = {${types.join(', ')}})) TO ${quote(out)} (FORMAT parquet)`,
  )
  return out
}

/** The statements of the macros over these files. */
export function joinObjects(
  root: string,
  files: readonly StoredFile[],
  {
    weekStart = 'monday',
    catalogue: known = catalogue,
    exports: told = new Map(),
    revisable = [],
  }: Pick<Rest, 'catalogue' | 'revisable'> & { weekStart?: Weekday; exports?: ReadonlyMap<string, string> } = {},
): readonly Compiled[] {
  const exports = new Map(Object.keys(exportedTables(known)).map((table) => [table, told.get(table) ?? '/nothing']))
  const head = { version: 1, committed_at: 0, lake: 'test', digest: null, provider: { synthetic: true } } as never
  const all = compile({ root, head, catalogue: known, files, earlier: [], exports, weekStart, revisable })
  return all.objects.filter(({ name }) => own.has(name))
}

async function write(engine: Engine, root: string, rows: readonly HeldPoint[]): Promise<StoredFile> {
  const [{ metric, interval }] = rows as [HeldPoint]
  const path = pointsFile(metric, interval, 'f')
  const out = inLake(root, path)
  mkdirSync(dirname(out), { recursive: true })
  const lines = rows.map((row) => JSON.stringify({ basis: 'assumed', available_rule_at: row.available_at, ...row }))
  writeFileSync(`${out}.jsonl`, lines.join('\n'))
  await engine.run(
    `COPY (FROM read_json(${quote(`${out}.jsonl`)}, format = 'newline_delimited', columns = {${columns}})) TO ${quote(out)} (FORMAT parquet)`,
  )
  const min_lag = Math.min(...rows.map((row) => micros(row.available_at) - end(micros(row.t) / 1e6, interval) * 1e6))
  const starts = rows.map(({ t }) => micros(t) / 1e6)
  const [min_t, max_t] = [Math.min(...starts), Math.max(...starts)]
  return {
    path,
    table: 'points',
    label: '',
    metric,
    interval,
    rows: rows.length,
    min_t,
    max_t,
    meta: { min_lag },
  } as never
}
