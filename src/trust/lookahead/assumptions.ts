import type { Engine } from '../../lake/store/engine.ts'
import { isCancel } from '../../query/run.ts'
import { asksFor, parsedSql } from '../../query/parse-tree.ts'
import { rowsBeside } from '../../query/row-comparison.ts'
import { formatCount } from '../../base/figures.ts'

const values: Readonly<Record<Assumption, string>> = { backfill: `'rule'`, registry_backfill: 'true' }

/**
 * Finds the assumptions behind the rows of a SELECT, which are in a table of the session: it runs again without each
 * setting in force. Rows without a SELECT cannot be computed again, and depend on a setting as a whole.
 */
export async function loadAssumptions(
  session: Engine,
  sql: string | undefined,
  table: string,
): Promise<readonly AssumedRows[]> {
  const found: AssumedRows[] = []
  for (const what of await settingsIn(session)) {
    const [rows, others] = await withoutIt(session, what, sql, table)
    const tree = sql === undefined ? { error: 'none' } : await parsedSql(session, sql)
    const absent = Math.max(0, others - rows)
    const heeds = 'error' in tree || (await asksFor(session, tree.statements, what))
    if (heeds || rows > 0 || absent > 0) found.push({ what, rows, absent })
  }
  return found
}

/**
 * Counts the rows that only one and only the other result has; all and none if the query does not run without the
 * setting.
 */
async function withoutIt(session: Engine, what: Assumption, sql: string | undefined, table: string) {
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
  return [Number(row?.['n']), 0] as const
}

/** A setting that lets something count as known before anybody could know it. */
export type Assumption = 'backfill' | 'registry_backfill'

/** An assumption of an answer: data that count as known before a live user could know them. */
export interface AssumedRows {
  /** Setting that adds earlier knowledge. */
  readonly what: Assumption
  /** Rows of the result that need the setting: without it they differ or are missing. */
  readonly rows: number
  /** Rows that exist only without the setting. */
  readonly absent: number
}

/** Lists the settings of a session that assume something. */
export async function settingsIn(session: Engine): Promise<ReadonlySet<Assumption>> {
  const [row] = await session.rows(
    `SELECT coalesce(CAST(getvariable('backfill') AS VARCHAR) = 'rule', false) AS backfill,
       coalesce(TRY_CAST(getvariable('registry_backfill') AS BOOLEAN), false) AS registry_backfill`,
  )
  return new Set((['backfill', 'registry_backfill'] as const).filter((name) => row?.[name] === true))
}

const words: Readonly<Record<Assumption, string>> = {
  backfill: 'backfilled points were known by their rule (backfill)',
  registry_backfill: 'the first snapshot of the registry held before it was taken (registry_backfill)',
}

/**
 * Formats the assumptions of `rows` rows as the end of a sentence: `given that …: 5 of 7 rows are assumed`; empty if
 * there are none.
 */
export function assumptionText(assumes: readonly AssumedRows[], rows: number): string {
  const sentences = assumes.map(
    ({ what, rows: rowCount, absent }) =>
      `${words[what]}: ${formatCount(rowCount)} of ${formatCount(rows)} rows are ` +
      `assumed${absent === 0 ? '' : `, ${formatCount(absent)} more would be there`}`,
  )
  return sentences.length === 0 ? '' : `given that ${sentences.join('; and that ')}`
}
