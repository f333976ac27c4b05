import { type Engine, lowerName, quote, quoteName } from '../../lake/store/engine.ts'

/*
 * Statements before a query are a part of it: a variable, a temporary table, a view or a macro that reads the lake may
 * hold what came later. So the whole script runs again in each world, and nothing that it makes outlives a run.
 */

/** An identifier in SQL, with or without quotes. */
export const part = String.raw`(?:"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*)`
/** The head of a statement that makes something temporary: its kind and its name. */
export const maker = new RegExp(
  String.raw`^CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+(TABLE|VIEW|MACRO|FUNCTION)\s+(?:IF\s+NOT\s+EXISTS\s+)?(${part}(?:\.${part}){0,2})`,
  'iu',
)

/**
 * Runs the statements before a query in the world of a session. Their variables begin each time as the first time, and
 * remain after the run: what they let count as known is read after it.
 */
export async function runPreparation(session: Engine, preparation: readonly string[]): Promise<void> {
  if (preparation.length === 0) return
  const [row] = await session.rows<{ kept: boolean }>(`SELECT getvariable('proof_kept') IS NOT NULL AS kept`)
  await (row?.kept === true ? putBackVariables(session, preparation) : keepVariables(session, preparation))
  await session.run('SET VARIABLE proof_kept = true')
  for (const text of preparation) await session.run(text)
}

const setter = new RegExp(String.raw`^(?:SET|RESET)\s+VARIABLE\s+(${part})`, 'iu')

/** Lists the variables that statements set, each once, without quotes. */
function variablesSet(statements: readonly string[]): readonly string[] {
  const names = statements.flatMap((text) => setter.exec(text)?.slice(1) ?? [])
  return [...new Set(names.map((name) => lowerName(name.replaceAll(/^"|"$/g, '').replaceAll('""', '"'))))]
}

const before = (name: string): string => `proof_before_${name}`

/** Remembers the variables that statements set as they are before these run. */
export async function keepVariables(session: Engine, statements: readonly string[]): Promise<void> {
  for (const name of variablesSet(statements))
    await session.run(`SET VARIABLE ${quoteName(before(name))} = getvariable(${quote(name)})`)
}

/** Sets the variables that statements set as they were remembered. */
export async function putBackVariables(session: Engine, statements: readonly string[]): Promise<void> {
  for (const name of variablesSet(statements)) {
    const was = `getvariable(${quote(before(name))})`
    const [row] = await session.rows<{ unset: boolean }>(`SELECT ${was} IS NULL AS unset`)
    await session.run(
      row?.unset === true ? `RESET VARIABLE ${quoteName(name)}` : `SET VARIABLE ${quoteName(name)} = ${was}`,
    )
  }
}

/** Drops what these statements made, as far as it exists. */
export async function dropMade(session: Engine, preparation: readonly string[]): Promise<void> {
  for (const text of preparation) {
    const [, kind = '', name] = maker.exec(text) ?? []
    if (name === undefined) continue
    const kinds = /^(?:TABLE|VIEW)$/i.test(kind) ? ['TABLE', 'VIEW'] : ['MACRO', 'MACRO TABLE']
    // One of the two is refused: a name is that of a table or of a view.
    for (const kind of kinds) await session.run(`DROP ${kind} IF EXISTS ${name}`).catch(() => undefined)
  }
}
