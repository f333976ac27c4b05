import { join } from 'node:path'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import type { Weekday } from '../../src/base/time.ts'
import type { StoredFile } from '../../src/lake/ledger/index-queries.ts'
import type { Head } from '../../src/lake/ledger/ledger.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { compile, type Compiled } from '../../src/query/views/compile.ts'
import { exportedTables } from '../../src/query/views/ledger-tables.ts'
import { temporaryFolder } from './folders.ts'
import { pointsFileFacts, type StoredPoint, writePoints, writeRows } from './lakes/points-file.ts'
import { catalogue } from './sandbox-client.ts'

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
  points: readonly StoredPoint[],
  work: (engine: Engine) => Promise<T>,
  rest: Rest = {},
): Promise<T> {
  using rootFolder = temporaryFolder(rest.folder ?? 'joins')
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

const own = new Set(['calendar', 'sessions', 'resample', 'bars', 'pit_join', 'pit_long', 'pit_window', 'unresolved'])

async function writeLedger(engine: Engine, root: string, table: string, rows: readonly AskedWindow[]): Promise<string> {
  const out = join(root, `${table}.parquet`)
  const types = exportedTables(catalogue)[table]?.columns.map(([name, type]) => `${quote(name)}: ${quote(type)}`) ?? []
  await writeRows(engine, out, rows, types.join(', '))
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
  const head: Head = { version: 1, committed_at: 0, lake: 'test', digest: null, provider: { synthetic: true } }
  const all = compile({ root, head, catalogue: known, files, earlier: [], exports, weekStart, revisable })
  return all.objects.filter(({ name }) => own.has(name))
}

async function write(engine: Engine, root: string, rows: readonly StoredPoint[]): Promise<StoredFile> {
  const facts = pointsFileFacts(rows, 'f')
  await writePoints(engine, inLake(root, facts.path), rows)
  return { ...facts, bytes: 0, sha256: '', added_version: 1, removed_version: null, dropped_version: null }
}
