import { fileSql } from '../views/relations.ts'
import { noTable, type TableState } from './actions.ts'
import type { Change } from './changes.ts'
import { type At, commitChange } from './commit.ts'
import type { Logs } from './log.ts'
import { instantSql } from './schema.ts'
import { columnsFor, placeFile, type Writing, writeRows } from './write.ts'

/** The table that says which version of each other table belongs to which version of the lake. */
export const versionsTable = 'versions'

const empty = `SELECT CAST(NULL AS BIGINT) AS lake_version, CAST(NULL AS TIMESTAMPTZ) AS lake_committed_at,
  CAST(NULL AS VARCHAR) AS table_name, CAST(NULL AS BIGINT) AS delta_version, CAST(NULL AS TIMESTAMPTZ) AS committed_at
  WHERE false`

/**
 * Notes the versions of all tables under the lake version that they tell of now, as the last commit of a publish;
 * undefined where that stands there already.
 */
export async function publishVersions(
  writing: Writing,
  states: ReadonlyMap<string, TableState>,
  at: At,
  lost: ReadonlySet<string>,
): Promise<{ readonly state: TableState; readonly change: Change } | undefined> {
  const state = states.get(versionsTable) ?? noTable
  const tables = [...states].filter(([name]) => name !== versionsTable)
  const known = [...state.files.values()]
  const paths = known.flatMap(({ path }) => (lost.has(path) ? [] : [path]))
  const before = await bring(writing, paths)
  const told = tables.map(([name, { version }]) => `('${name}', ${version})`).join(', ')
  const newest = `(SELECT table_name, delta_version FROM (${before}) QUALIFY dense_rank() OVER (ORDER BY lake_version DESC) = 1)`
  const current = `(SELECT * FROM (VALUES ${told}) AS current (table_name, delta_version))`
  const [row] = await writing.engine.rows<{ differ: bigint }>(
    `SELECT count(*) AS differ FROM (FROM ${current} EXCEPT FROM ${newest})`,
  )
  if (state.version >= 0 && lost.size === 0 && row?.differ === 0n) return undefined
  const rows = `${before} ${paths.length > 0 ? `WHERE lake_version <> ${at.version}` : ''}
    UNION ALL BY NAME SELECT CAST(${at.version} AS BIGINT) AS lake_version, ${instantSql(at.at)} AS lake_committed_at, table_name,
      CAST(delta_version AS BIGINT) AS delta_version, ${instantSql(at.now() * 1000)} AS committed_at FROM ${current}`
  const columns = await columnsFor(writing.engine, empty)
  const order = ['lake_version', 'table_name']
  const written = await writeRows(writing, versionsTable, { rows, columns, where: [], order })
  const add = [await placeFile(writing, versionsTable, '0', written, {})]
  return await commitChange(writing, { name: versionsTable, columns, state }, { add, leave: known }, at)
}

/** The rows that stand there, as a SELECT over local copies. */
async function bring({ to, local }: Logs, paths: readonly string[]): Promise<string> {
  const parts: string[] = []
  for (const path of paths) {
    const file = local(`${versionsTable}-held-${parts.length}`)
    if (await to.get(`${versionsTable}/${path}`, file)) parts.push(`SELECT * FROM ${fileSql(file)}`)
  }
  return parts[0] ?? empty
}
