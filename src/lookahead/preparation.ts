import { usage } from '../errors.ts'
import { runScript, type RunDeps } from '../query/run.ts'
import { formOf, opening, statementsOf } from '../query/statements.ts'
import { folded } from '../results/folded.ts'
import { type Engine, lowerName, quote, quoteName } from '../store/engine.ts'
import { isKeptByProof } from './own-files.ts'
import { enter, wholeLake } from './world.ts'

/*
 * What stands before a query is a part of it: a variable, a temporary table, a view or a macro that reads the lake may hold
 * what came later. So the whole script runs again in each world, and nothing that it makes outlives a run.
 */

/** A script as a proof runs it. */
export interface PreparedQuery {
  /** The statements before the query, in their order, without those that set the clock of a world. */
  readonly preparation: readonly string[]
  /** The query: the last statement. */
  readonly sql: string
  /** One SELECT that amounts to the script, each word at its place, for readers of its text and plan; null where there is none. */
  readonly single: string | null
}

const clocks = /^(?:SET|RESET)\s+VARIABLE\s+"?(?:as_of|proof_\w+)(?![\w$])/i
const part = String.raw`(?:"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*)`
const maker = new RegExp(
  String.raw`^CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(TABLE|VIEW|MACRO|FUNCTION)\s+(?:IF\s+NOT\s+EXISTS\s+)?(${part}(?:\.${part}){0,2})`,
  'iu',
)
const named = new RegExp(
  String.raw`^(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|DROP\s+\w+(?:\s+IF\s+EXISTS)?)\s+(${part}(?:\.${part}){0,2})`,
  'iu',
)

/** Reads a script whose last statement is the query; all of it was judged, and ran once on the session, which is as before. */
export async function prepareScript(engine: Engine, script: string, run: RunDeps): Promise<PreparedQuery> {
  const all = statementsOf(script).map(({ text }) => text.slice(opening(text) ?? 0))
  const statements = all.slice(0, -1)
  for (const text of statements) refuseUnrepeatable(text)
  const preparation = statements.filter((text) => !clocks.test(text))
  try {
    await keepVariables(engine, statements)
    const { kind, text: sql } = await runScript(engine, script, run)
    if (kind === 'SELECT') return { preparation, sql, single: folded(script)?.sql ?? null }
    throw usage('SQL', { expected: 'one SELECT', got: kind, next: 'a proof needs the rows of one query' })
  } finally {
    await putBackVariables(engine, statements)
    await enter(engine, wholeLake)
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

/**
 * Runs the statements before a query in the world that a session sees. Their variables begin each time as the first time, and
 * stay behind the run: what they let count as known is asked after it.
 */
export async function runPreparation(session: Engine, preparation: readonly string[]): Promise<void> {
  if (preparation.length === 0) return
  const [row] = await session.rows<{ kept: boolean }>(`SELECT getvariable('proof_kept') IS NOT NULL AS kept`)
  await (row?.kept === true ? putBackVariables(session, preparation) : keepVariables(session, preparation))
  await session.run('SET VARIABLE proof_kept = true')
  for (const text of preparation) await session.run(text)
}

const setter = new RegExp(String.raw`^(?:SET|RESET)\s+VARIABLE\s+(${part})`, 'iu')

/** The variables that statements set, each once, without quotes. */
function variablesSet(statements: readonly string[]): readonly string[] {
  const names = statements.flatMap((text) => setter.exec(text)?.slice(1) ?? [])
  return [...new Set(names.map((name) => lowerName(name.replaceAll(/^"|"$/g, '').replaceAll('""', '"'))))]
}

const before = (name: string): string => `proof_before_${name}`

async function keepVariables(session: Engine, statements: readonly string[]): Promise<void> {
  for (const name of variablesSet(statements))
    await session.run(`SET VARIABLE ${quoteName(before(name))} = getvariable(${quote(name)})`)
}

async function putBackVariables(session: Engine, statements: readonly string[]): Promise<void> {
  for (const name of variablesSet(statements)) {
    const was = `getvariable(${quote(before(name))})`
    const [row] = await session.rows<{ unset: boolean }>(`SELECT ${was} IS NULL AS unset`)
    await session.run(
      row?.unset === true ? `RESET VARIABLE ${quoteName(name)}` : `SET VARIABLE ${quoteName(name)} = ${was}`,
    )
  }
}

/** Drops what these statements made, as far as it is there. */
export async function dropMade(session: Engine, preparation: readonly string[]): Promise<void> {
  for (const text of preparation) {
    const [, kind = '', name] = maker.exec(text) ?? []
    if (name === undefined) continue
    const kinds = /^(?:TABLE|VIEW)$/i.test(kind) ? ['TABLE', 'VIEW'] : ['MACRO', 'MACRO TABLE']
    // One of the two is refused: a name is that of a table or of a view.
    for (const one of kinds) await session.run(`DROP ${one} IF EXISTS ${name}`).catch(() => undefined)
  }
}
