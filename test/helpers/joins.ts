import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Engine, quote } from '../../src/store/engine.ts'
import type { HeldFile } from '../../src/ledger/held.ts'
import { inLake, pointsFile } from '../../src/store/layout.ts'
import { compile, type Compiled } from '../../src/views/compile.ts'
import { exportedTables } from '../../src/views/ledger-tables.ts'
import { end, type Weekday } from '../../src/time.ts'
import { catalogue } from './sandbox-client.ts'
import { micros, type PointRow } from './views.ts'

/** A point with the instant at which the lake first held it. */
export interface HeldPoint extends PointRow {
  readonly observed_at: string
}

const columns = `asset: 'VARCHAR', currency: 'VARCHAR', exchange: 'VARCHAR', network: 'VARCHAR', t: 'TIMESTAMPTZ',
  available_at: 'TIMESTAMPTZ', observed_at: 'TIMESTAMPTZ', v: 'DOUBLE', o: 'VARCHAR', basis: 'VARCHAR', extra: 'VARCHAR',
  computed_at: 'TIMESTAMPTZ', available_rule_at: 'TIMESTAMPTZ', params: 'VARCHAR'`

/** An engine with the macros of the joins over these points, in their order, without journal and ledger. */
export async function withJoins<T>(points: readonly HeldPoint[], work: (engine: Engine) => Promise<T>): Promise<T> {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-joins-'))
  const engine = await Engine.open(':memory:', { threads: 2 })
  try {
    const files: HeldFile[] = []
    for (const rows of Map.groupBy(points, ({ metric, interval }) => `${metric} ${interval}`).values())
      files.push(await write(engine, root, rows))
    for (const { sql } of joinObjects(root, files)) await engine.run(sql)
    return await work(engine)
  } finally {
    engine.close()
    rmSync(root, { recursive: true, force: true })
  }
}

const own = new Set(['calendar', 'resample', 'pit_join', 'pit_long', 'pit_window'])

/** The statements of the macros over these files. */
export function joinObjects(
  root: string,
  files: readonly HeldFile[],
  weekStart: Weekday = 'monday',
): readonly Compiled[] {
  const exports = new Map(Object.keys(exportedTables(catalogue)).map((table) => [table, '/nothing']))
  const head = { version: 1, committed_at: 0, lake: 'test', digest: null, provider: { synthetic: true } } as never
  return compile({ root, head, catalogue, files, earlier: [], exports, weekStart }).objects.filter(({ name }) =>
    own.has(name),
  )
}

async function write(engine: Engine, root: string, rows: readonly HeldPoint[]): Promise<HeldFile> {
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
  return { path, table: 'points', label: '', metric, interval, rows: rows.length, meta: { min_lag } } as never
}
