import { Engine } from '../store/engine.ts'
import { parquet } from '../store/parquet.ts'
import { tableFiles } from './held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { real, type Shaped, count } from '../ledger/shape.ts'
import { rowsAs } from '../ledger/row.ts'

const stepFields = {
  /** Unix seconds. */
  at: real,
  active: count,
  retired: count,
  /** Since the step before. */
  created: count,
  newlyRetired: count,
  removed: count,
}

/** The registry's products after one instant. */
export type UniverseStep = Shaped<typeof stepFields>

/** The products over time, one step for every instant at which something changed; empty where nothing is known. */
export async function universeSteps(ledger: Ledger): Promise<UniverseStep[]> {
  const paths = tableFiles(ledger, 'history.products')
  if (paths.length === 0) return []
  using engine = await Engine.open()
  return await rowsAs(engine, stepFields, universeSql(paths))
}

/** Each step, one of a product in a poll, turns one state of it into another; the running sums are the universe. */
function universeSql(paths: readonly string[]): string {
  return `
    WITH step AS (
      SELECT id, "at",
        CASE WHEN closed_by IS NOT NULL THEN 'gone' WHEN lower(status) = 'inactive' THEN 'retired' ELSE 'active' END AS state
      FROM ${parquet(paths)}
    ), move AS (
      SELECT "at", state, coalesce(lag(state) OVER (PARTITION BY id ORDER BY "at"), 'gone') AS before FROM step
    ), change AS (
      SELECT "at",
        count(*) FILTER (WHERE state = 'active') - count(*) FILTER (WHERE before = 'active') AS active,
        count(*) FILTER (WHERE state = 'retired') - count(*) FILTER (WHERE before = 'retired') AS retired,
        count(*) FILTER (WHERE before = 'gone' AND state <> 'gone') AS created,
        count(*) FILTER (WHERE before = 'active' AND state = 'retired') AS newly_retired,
        count(*) FILTER (WHERE before <> 'gone' AND state = 'gone') AS removed
      FROM move WHERE state <> before GROUP BY "at"
    )
    SELECT epoch("at")::DOUBLE AS "at", (sum(active) OVER w)::BIGINT AS active, (sum(retired) OVER w)::BIGINT AS retired,
      created, newly_retired AS "newlyRetired", removed
    FROM change WINDOW w AS (ORDER BY "at") ORDER BY "at"`
}
