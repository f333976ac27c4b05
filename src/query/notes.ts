import type { Engine } from '../store/engine.ts'
import { instantSql } from '../views/template.ts'
import type { Note } from './note.ts'
import { readsRegistry } from './registry-objects.ts'
import { statementsOf } from './statements.ts'
import { parsed } from './tree.ts'
import { withAsOf } from './with-as-of.ts'

/** What a reader of the answer should know although the query did not ask. */
export async function notesOn(engine: Engine, sql: string): Promise<readonly Note[]> {
  const asOf = await asOfMicros(engine)
  if (asOf === undefined) return []
  const tree = await parsed(engine, statementsOf(sql).at(-1)?.text ?? '')
  if ('error' in tree || !(await readsRegistry(engine, tree.statements))) return []
  const start = await registryStart(engine)
  if (start !== undefined && asOf >= start.micros) return []
  const subject = 'registry'
  if (start === undefined) return [{ code: 'registry-empty', subject }]
  return [{ code: 'registry-unknown', subject, figures: { start: start.text } }]
}

async function asOfMicros(engine: Engine): Promise<bigint | undefined> {
  const [row] = await engine.rows(`SELECT epoch_us(${instantSql('as_of')}) AS at`)
  const at = row?.['at']
  return typeof at === 'bigint' ? at : undefined
}

/** The first instant that `registry_start` tells, seen without `as_of`. */
async function registryStart(engine: Engine): Promise<{ micros: bigint; text: string } | undefined> {
  return withAsOf(engine, undefined, async () => {
    const [row] = await engine.rows<{ text: string | null; micros: bigint | null }>(
      'SELECT min(known_since) AS text, epoch_us(min(known_since)) AS micros FROM registry_start',
    )
    const { text = null, micros = null } = row ?? {}
    return text === null || micros === null ? undefined : { micros, text }
  })
}
