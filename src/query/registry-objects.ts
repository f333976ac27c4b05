import type { Engine } from '../store/engine.ts'
import { callsIn, tablesIn } from './tree.ts'

/**
 * Whether statements read what knows nothing before the first snapshot of the registry: views and macros that heed
 * `registry_backfill`, and all of the same names. The listing of assets begins with itself.
 */
export async function readsRegistry(engine: Engine, trees: unknown): Promise<boolean> {
  const rows = await engine.rows<{ name: string }>(
    `SELECT view_name AS name FROM system.main.duckdb_views() AS v
     WHERE contains(sql, 'registry_backfill') AND view_name <> 'metric_assets'
     UNION SELECT function_name FROM system.main.duckdb_functions() AS f
     WHERE contains(macro_definition, 'registry_backfill')`,
  )
  const names = new Set(rows.map(({ name }) => name))
  return tablesIn(trees).some((name) => names.has(name)) || [...callsIn(trees)].some(({ name }) => names.has(name))
}

/** The tables of the registry that have a history. */
export async function historyTables(engine: Engine): Promise<readonly string[]> {
  const rows = await engine.rows<{ name: string }>(
    `SELECT view_name AS name FROM system.main.duckdb_views() AS v WHERE schema_name = 'history' ORDER BY name`,
  )
  return rows.map(({ name }) => name)
}
