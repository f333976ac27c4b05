import { carry } from '../query/beside.ts'
import { clockWords } from '../views/compile.ts'
import { instantSql, utcSql } from '../views/template.ts'
import { columnsOf } from '../store/parquet.ts'
import { Engine, quote, quoteName } from '../store/engine.ts'

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
    const table = `own_file_${name}`
    await carry(reader, `FROM ${quote(file)}`, session, table)
    const dated = (await columnsOf(session, quoteName(table))).some((column) => column.name === clock)
    const at = utcSql(quoteName(clock))
    const known = `(${instantSql('as_of')} IS NULL OR ${at} <= ${instantSql('as_of')}) AND ${clockWords['proved']?.(at) ?? 'true'}`
    const where = dated ? ` WHERE ${known}` : ''
    await session.run(`CREATE OR REPLACE TEMP VIEW ${quoteName(name)} AS FROM ${quoteName(table)}${where}`)
  }
}
