import { realDisk } from '../store/disk.ts'
import { lexBodies } from './lex-bodies.ts'
import { loadByValue } from './by-value.ts'
import { statement } from './sql.ts'
import { forget, type Loaded, type Loading } from './stage.ts'
import { loadCounted, loadTyped } from './typed.ts'
import type { Engine } from '../store/engine.ts'

/**
 * Reads the spool files of the table `bodies` into the session as the view `staged` (body, t, v, o, extra, computed), each body by its
 * position in `files`; those that are poison leave both. What seems to be nothing but numbers is read with declared types
 * and proved by its bytes; all others are lexed first, and then read with declared types where their keys are known, else
 * value by value.
 */
export async function load(
  engine: Engine,
  what: Pick<Loading, 'circumstances' | 'files' | 'temporary' | 'lexed'>,
): Promise<Loaded> {
  const loading: Loading = { engine, ...what, staged: new Map(), poison: new Map(), copies: new Map() }
  try {
    await engine.run(statement('typed_table'))
    await engine.run(statement('by_value_table'))
    const sound = await lexBodies(loading, await loadCounted(loading))
    await loadByValue(loading, await loadTyped(loading, sound))
    await engine.run(statement('staged'))
    await refuseContradictions(loading)
    await forget(engine, 'bodies', [...loading.poison.keys()])
    return { staged: loading.staged, poison: loading.poison }
  } finally {
    for (const copy of loading.copies.values()) await realDisk.remove(copy)
  }
}

/** Lets go of what was read, once all that can be used of it stands elsewhere. */
export async function unload(engine: Engine): Promise<void> {
  await engine.run('DROP TABLE typed; DROP TABLE by_value')
}

/** Bodies out of order may hold one t twice: harmless when both say the same, else poison. */
async function refuseContradictions({ engine, poison, staged }: Loading): Promise<void> {
  await engine.run(statement('canonical'))
  const suspects = [...staged].filter(([, body]) => body.doubled).map(([body]) => body)
  if (suspects.length === 0) return
  const sql = statement('conflicts', { bodies: suspects.join(', ') })
  const rows = await engine.rows<{ body: number; t: bigint }>(sql)
  for (const { body, t } of rows) {
    poison.set(body, `two different points with the same t: ${t}`)
    staged.delete(body)
  }
  const refused = rows.map(({ body }) => body)
  for (const table of ['typed', 'by_value']) await forget(engine, table, refused)
}
