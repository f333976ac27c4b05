import type { Engine } from '../store/engine.ts'
import { type Assumed, type Setting, settingsIn } from './assumption.ts'
import { isCancel } from '../query/run.ts'
import { asksFor } from '../query/registry-objects.ts'
import { rowsBeside } from '../query/beside.ts'
import { parsed } from '../query/tree.ts'

const values: Readonly<Record<Setting, string>> = { backfill: `'rule'`, registry_backfill: 'true' }

/**
 * What the rows of a SELECT rest on, which stand in a table of the session: it runs again without each setting in force.
 * Rows that are no SELECT's, so that nothing can run again, rest on it as a whole.
 */
export async function assumedBy(session: Engine, sql: string | undefined, table: string): Promise<readonly Assumed[]> {
  const found: Assumed[] = []
  for (const what of await settingsIn(session)) {
    const [rows, others] = await withoutIt(session, what, sql, table)
    const tree = sql === undefined ? { error: 'none' } : await parsed(session, sql)
    const absent = Math.max(0, others - rows)
    const heeds = 'error' in tree || (await asksFor(session, tree.statements, what))
    if (heeds || rows > 0 || absent > 0) found.push({ what, rows, absent })
  }
  return found
}

/** How many rows only the one and only the other answer has; all and none where it does not run without the setting. */
async function withoutIt(
  session: Engine,
  what: Setting,
  sql: string | undefined,
  table: string,
): Promise<readonly [number, number]> {
  await session.run(`SET VARIABLE ${what} = NULL`)
  try {
    if (sql !== undefined) {
      await session.run(`CREATE OR REPLACE TEMP TABLE proof_strict AS ${sql}`)
      const beside = await rowsBeside(session, table, 'proof_strict')
      if (beside !== undefined) return beside
    }
  } catch (error) {
    if (isCancel(error)) throw error
  } finally {
    await session.run(`SET VARIABLE ${what} = ${values[what]}`)
  }
  const [row] = await session.rows(`SELECT count(*) AS n FROM ${table}`)
  return [Number(row?.['n']), 0]
}
