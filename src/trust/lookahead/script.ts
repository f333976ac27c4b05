import { usage } from '../../base/errors.ts'
import { scriptAsSelect } from '../../query/script-as-select.ts'
import { runScript, type RunDeps } from '../../query/run.ts'
import { formOf, opening, statementsOf } from '../../query/statements.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { isKeptByProof } from './own-files.ts'
import { dropMade, keepVariables, maker, part, putBackVariables } from './preparation.ts'
import { enterWorld, wholeLake } from './world.ts'

/** A script as a proof runs it. */
export interface PreparedQuery {
  /** The statements before the query, in their order, without those that set the clock of a world. */
  readonly preparation: readonly string[]
  /** The query: the last statement. */
  readonly sql: string
  /**
   * Equivalent SELECT of the script, each word at its place, for readers of its text and plan; null if there is none.
   */
  readonly single: string | null
}

const clocks = /^(?:SET|RESET)\s+VARIABLE\s+"?(?:as_of|proof_\w+)(?![\w$])/i
const named = new RegExp(
  String.raw`^(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|DROP\s+\w+(?:\s+IF\s+EXISTS)?)\s+(${part}(?:\.${part}){0,2})`,
  'iu',
)

/**
 * Reads a script whose last statement is the query; all of it was judged, and ran once on the session, which is as
 * before.
 */
export async function prepareScript(engine: Engine, script: string, run: RunDeps): Promise<PreparedQuery> {
  const all = statementsOf(script).map(({ text }) => text.slice(opening(text) ?? 0))
  const statements = all.slice(0, -1)
  for (const text of statements) refuseUnrepeatable(text)
  const preparation = statements.filter((text) => !clocks.test(text))
  try {
    await keepVariables(engine, statements)
    const { kind, text: sql } = await runScript(engine, script, run)
    if (kind === 'SELECT') return { preparation, sql, single: scriptAsSelect(script)?.sql ?? null }
    throw usage('SQL', { expected: 'one SELECT', got: kind, next: 'a proof needs the rows of one query' })
  } finally {
    await putBackVariables(engine, statements)
    await enterWorld(engine, wholeLake)
    await dropMade(engine, preparation)
  }
}

/** Refuses statements that a proof cannot run again and again, or that would change what it keeps itself. */
function refuseUnrepeatable(text: string): void {
  const { kind } = formOf(text)
  const name = (maker.exec(text)?.[2] ?? named.exec(text)?.[1] ?? '').split('.').at(-1)?.replaceAll('"', '') ?? ''
  const got = kind === 'TRANSACTION' ? text.split(/\s/)[0] : isKeptByProof(name) ? name : undefined
  if (got === undefined) return
  const expected = 'statements that set variables or make temporary tables, views and macros'
  throw usage('SQL before the query', { expected, got, next: 'a proof runs them again in each of its runs' })
}
