import { carry } from '../../query/beside.ts'
import { clockWords } from '../../query/views/compile.ts'
import { instantSql, utcSql } from '../../query/views/template.ts'
import { columnsOf } from '../../lake/store/parquet.ts'
import { Engine, quote, quoteName } from '../../lake/store/engine.ts'

/** The column that tells from when on a row was known. */
const clock = 'available_at'

/** A file of the user's that a query names, by that name. */
type OwnFile = readonly [name: string, file: string]

/**
 * Lets a session of proofs read files of the user's. What has a clock is cut by it as points are; what has none is given:
 * decisions and labels, which stand in every world.
 */
export async function bringOwn(session: Engine, files: readonly OwnFile[]): Promise<void> {
  for (const [name, file] of files) {
    using reader = await Engine.open(':memory:', { threads: 1 })
    await carry(reader, `FROM ${quote(file)}`, session, ownTable(name))
    await cutOwn(session, name)
  }
}

/** The table in which rows of the user's stand that are known by a name. */
export const ownTable = (name: string): string => `own_file_${name}`

/** Makes the view of that name over the rows in its table, without what is not known in the world that the session sees. */
export async function cutOwn(session: Engine, name: string): Promise<void> {
  const table = quoteName(ownTable(name))
  const dated = (await columnsOf(session, table)).some((column) => column.name === clock)
  const at = utcSql(quoteName(clock))
  const isCut = `getvariable('proof_change') = ${quote(ownChange(name))} AND len(list_filter(CAST(getvariable('proof_changed') AS BIGINT[]), lambda proof_edge: proof_edge < epoch_us(${at}))) % 2 = 1`
  const known = `(${instantSql('as_of')} IS NULL OR ${at} <= ${instantSql('as_of')}) AND ${clockWords['proved']?.(at) ?? 'true'}`
  const where = dated ? ` WHERE ${known} AND NOT coalesce(${isCut}, false)` : ''
  await session.run(`CREATE OR REPLACE TEMP VIEW ${quoteName(name)} AS FROM ${table}${where}`)
}

/** What a world is called in which later rows of that name alone are gone. */
export const ownChange = (name: string) => `own ${name}` as const

/** The names of files of the user's whose rows are dated. */
export async function datedOwn(session: Engine): Promise<string[]> {
  const rows = await session.rows<{ name: string }>(
    `SELECT DISTINCT table_name AS name FROM system.main.duckdb_columns()
     WHERE starts_with(table_name, ${quote(ownTable(''))}) AND column_name = ${quote(clock)} ORDER BY name`,
  )
  return rows.map(({ name }) => name.slice(ownTable('').length))
}

/** SQL of the instants at which rows of the user's become known, each behind a UNION; '' where none are dated. */
export async function ownArrivals(session: Engine): Promise<string> {
  const names = await datedOwn(session)
  return names.map((name) => ` UNION SELECT ${utcSql(clock)} FROM ${quoteName(ownTable(name))}`).join('')
}
