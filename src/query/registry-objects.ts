import { type Engine, quote } from '../store/engine.ts'
import { Remembered } from './remembered.ts'
import { callsIn, tablesIn } from './tree.ts'

/**
 * Whether statements read what knows nothing before the first snapshot of the registry: views and macros that heed
 * `registry_backfill`, and all of the same names. The listing of assets begins with itself.
 */
export async function readsRegistry(engine: Engine, trees: unknown): Promise<boolean> {
  return await asksFor(engine, trees, 'registry_backfill', 'metric_assets')
}

const asking = new Remembered<ReadonlySet<string>>()

/** Whether statements name a view or macro, another than `but`, that asks for a session variable. */
export async function asksFor(engine: Engine, trees: unknown, variable: string, but = ''): Promise<boolean> {
  const asked = quote(`getvariable('${variable}')`)
  // To tell the texts of all macros takes the engine longer than most questions.
  const names = await asking.of(engine, `${variable} ${but}`, async () => {
    const rows = await engine.rows<{ name: string }>(
      `SELECT view_name AS name FROM system.main.duckdb_views() AS v WHERE contains(sql, ${asked}) AND view_name <> ${quote(but)}
       UNION SELECT function_name FROM system.main.duckdb_functions() AS f WHERE contains(macro_definition, ${asked})`,
    )
    return new Set(rows.map(({ name }) => name))
  })
  return tablesIn(trees).some((name) => names.has(name)) || [...callsIn(trees)].some(({ name }) => names.has(name))
}

/** The tables of the registry that have a history. */
export async function historyTables(engine: Engine): Promise<readonly string[]> {
  const rows = await engine.rows<{ name: string }>(
    `SELECT view_name AS name FROM system.main.duckdb_views() AS v WHERE schema_name = 'history' ORDER BY name`,
  )
  return rows.map(({ name }) => name)
}
