import { rm } from 'node:fs/promises'
import type { Lexed } from './body-lexer.ts'
import type { ConvertJob } from './convert-job.ts'
import { lexAll } from './convert-lex.ts'
import { loadRich } from './convert-rich.ts'
import { statement } from './convert-sql.ts'
import { forget, type Loaded, type Loading } from './convert-stage.ts'
import { loadTyped } from './convert-typed.ts'
import type { Engine } from './engine.ts'

/**
 * Reads the spool files into the session as the view `staged` (body, t, v, o, extra, computed), each body by its
 * position in `files`. All are lexed first; those of known keys are then read with declared types, all others value by
 * value.
 */
export async function load(
  engine: Engine,
  job: ConvertJob,
  files: readonly string[],
  lexed: Map<number, Lexed>,
): Promise<Loaded> {
  const loading: Loading = { engine, job, files, lexed, staged: new Map(), poison: new Map(), copies: new Map() }
  try {
    const sound = await lexAll(loading)
    await engine.run(statement('typed_table'))
    await engine.run(statement('rich_table'))
    await loadRich(loading, await loadTyped(loading, sound))
    await engine.run(statement('staged'))
    await refuseContradictions(loading)
    return { staged: loading.staged, poison: loading.poison }
  } finally {
    for (const copy of loading.copies.values()) await rm(copy, { force: true })
  }
}

/** Bodies out of order may hold one t twice: harmless when both say the same, else poison. */
async function refuseContradictions({ engine, poison, staged }: Loading): Promise<void> {
  await engine.run(statement('canonical'))
  const suspects = [...staged].filter(([, body]) => body.disorder).map(([body]) => body)
  if (suspects.length === 0) return
  const sql = statement('conflicts', { bodies: suspects.join(', ') })
  const rows = await engine.rows<{ body: number; t: bigint }>(sql)
  for (const { body, t } of rows) {
    poison.set(body, `two different points with the same t: ${t}`)
    staged.delete(body)
  }
  const refused = rows.map(({ body }) => body)
  for (const table of ['typed', 'rich']) await forget(engine, table, refused)
}
