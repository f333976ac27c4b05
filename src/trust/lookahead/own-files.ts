import { usage } from '../../base/errors.ts'
import { carry } from '../../query/row-comparison.ts'
import { Engine, isSameName, lowerName, quote, quoteName } from '../../lake/store/engine.ts'
import { type Columns, columnsOf } from '../../lake/store/parquet.ts'
import { openFiles, type OwnFiles } from '../../sources/user-files/files.ts'
import { readUserTable } from '../../sources/user-files/user-table.ts'
import { decidedSql } from './world.ts'
import { clockWords } from '../../query/views/compile.ts'
import { instantSql } from '../../query/views/template.ts'

/** Column of user data with the instant from which on a row was known, in any case of letters. */
const clock = 'available_at'

/** A file of the user's that a query names, by that name. */
export type OwnFile = readonly [name: string, file: string]

/** Columns of user data with times that a proof itself reads. */
const clockRoles = { [clock]: 'knowledge', ts: 'decision' } as const

/**
 * Lets a session of proofs read user files, and returns the notes on their times. Data with a clock are cut by it as
 * points are; data without one are given: decisions and labels, which exist in every world; decisions end where a world
 * ends its calendars. Their names were found free (`refuseTakenNames`).
 */
export async function bringUserFiles(session: Engine, files: readonly OwnFile[]): Promise<string[]> {
  const notes: string[] = []
  for (const [name, file] of files) {
    using reader = await Engine.open(':memory:', { threads: 1 })
    const opened = await openFiles(reader, [file], { cwd: '/', maxBytes: Number.POSITIVE_INFINITY })
    for (const { unreadable } of opened.columns) if (unreadable) throw unreadable
    notes.push(...(await bringUserTable(reader, opened, session, name)))
  }
  return notes
}

/** Lets a session of proofs read user rows that an engine has, by a name; returns the notes on their times. */
export async function bringUserTable(
  reader: Engine,
  rows: OwnFiles,
  session: Engine,
  name: string,
): Promise<readonly string[]> {
  const { sql, notes } = await readUserTable(reader, rows, clockRoles)
  await carry(reader, sql, session, ownTable(name))
  await cutUserRows(session, name)
  return notes.map((note) => `${name}: ${note}`)
}

/** Stores user rows that a session of proofs has in a database, so that others find the view of that name in it. */
export async function storeUserTable(session: Engine, database: Engine, name: string): Promise<void> {
  const table = quoteName(ownTable(name))
  const carriedTable = 'carried_rows'
  await carry(session, `FROM ${table}`, database, carriedTable)
  await database.run(`CREATE TABLE main.${table} AS FROM ${carriedTable}; DROP TABLE ${carriedTable}`)
  const columns = await columnsOf(database, `main.${table}`)
  await database.run(`CREATE VIEW main.${quoteName(name)} AS ${userRowsSql(name, columns)}`)
}

/** Prefix of the tables with all user rows. */
const prefix = 'own_file_'

/** Returns the table with the user rows of a name. */
export const ownTable = (name: string): string => `${prefix}${lowerName(name)}`

/** Whether a relation is one in which a proof keeps rows: of it no world cuts anything. */
export function isKeptByProof(name: string): boolean {
  return /^(?:own_file_|proof_)/.test(lowerName(name))
}

/**
 * Refuses names of user data under which the lake has a view or macro, or a proof a table: the query, the lake's macros
 * and the reader of its plan could each mean a different one of the two. Checked once, when a lake is opened for a
 * proof: reading the list of functions takes longer than most queries.
 */
export async function refuseTakenNames(session: Engine, names: readonly string[]): Promise<void> {
  if (names.length === 0) return
  const namesOfLake = await session.rows<{ name: string }>(
    `SELECT lower(t.table_name) AS name FROM system.main.duckdb_tables() AS t WHERE NOT t.internal
       AND t.database_name = current_database()
     UNION ALL SELECT lower(v.view_name) FROM system.main.duckdb_views() AS v WHERE NOT v.internal
       AND v.database_name = current_database()
     UNION ALL SELECT lower(f.function_name) FROM system.main.duckdb_functions() AS f
       WHERE f.function_type LIKE '%macro'`,
  )
  const ofLake = new Set(namesOfLake.map(({ name }) => name))
  const got = names.find((name) => ofLake.has(lowerName(name)) || isKeptByProof(name))
  if (got === undefined) return
  throw usage('--own', { expected: 'a name that the lake does not use', got, next: 'choose another NAME=FILE' })
}

/**
 * Makes the view of that name over the rows in its table, without those that are unknown in the world of the session.
 */
export async function cutUserRows(session: Engine, name: string): Promise<void> {
  const columns = await columnsOf(session, quoteName(ownTable(name)))
  await session.run(`CREATE OR REPLACE TEMP VIEW ${quoteName(name)} AS ${userRowsSql(name, columns)}`)
}

/** Builds the SQL of the user rows that are known in the world of a session, over the table with all of them. */
export function userRowsSql(name: string, columns: Columns): string {
  const has = (name: string): boolean => columns.some((column) => isSameName(column.name, name))
  const at = quoteName(clock)
  const isCut =
    `getvariable('proof_change') = ${quote(ownChange(name))} AND ` +
    `len(list_filter(CAST(getvariable('proof_changed') AS BIGINT[]), lambda proof_edge: proof_edge < ` +
    `epoch_us(${at}))) % 2 = 1`
  const isKnownSql =
    `(${instantSql('as_of')} IS NULL OR ${at} <= ${instantSql('as_of')}) AND ` + (clockWords['proved']?.(at) ?? 'true')
  const decision = decisionColumn(columns)
  const decided = decision === undefined ? '' : ` WHERE ${decidedSql(quoteName(decision))}`
  const where = has(clock) ? ` WHERE ${isKnownSql} AND NOT coalesce(${isCut}, false)` : decided
  return `FROM ${quoteName(ownTable(name))}${where}`
}

/** Finds the column with the instants of decisions, spelled as in the rows; undefined if they have none. */
export function decisionColumn(columns: Columns): string | undefined {
  return columns.find(({ name }) => isSameName(name, 'ts'))?.name
}

/** Names the change of a world in which later rows of that user data alone are missing. */
export const ownChange = (name: string) => `own ${lowerName(name)}` as const

/** User data that a session of proofs reads by a name. */
export interface OwnRelation {
  readonly name: string
  readonly columns: Columns
  /** Column with the timestamp from which a row was known, spelled as in the rows; null if rows are given. */
  readonly clock: string | null
}

/** Lists the user data that a session reads by name. */
export async function ownRelations(session: Engine): Promise<OwnRelation[]> {
  const rows = await session.rows<{ name: string; column: string; type: string }>(
    `SELECT c.table_name AS name, c.column_name AS column, c.data_type AS type FROM system.main.duckdb_columns() AS c
     WHERE starts_with(c.table_name, ${quote(prefix)}) AND c.database_name = 'temp'
       ORDER BY c.table_name, c.column_index`,
  )
  return [...Map.groupBy(rows, ({ name }) => name)].map(([table, columns]) => ({
    name: table.slice(prefix.length),
    columns: columns.map(({ column, type }) => ({ name: column, type })),
    clock: columns.find(({ column }) => isSameName(column, clock))?.column ?? null,
  }))
}

/** Lists the names of user data whose rows are dated. */
export async function datedOwn(session: Engine): Promise<string[]> {
  return (await ownRelations(session)).flatMap((relation) => (relation.clock === null ? [] : [relation.name]))
}

/** Builds the SQL of the instants at which user rows become known, each behind a UNION; '' if none are dated. */
export async function ownArrivals(session: Engine): Promise<string> {
  const names = await datedOwn(session)
  return names.map((name) => ` UNION SELECT ${clock} FROM ${quoteName(ownTable(name))}`).join('')
}
