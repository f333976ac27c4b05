import { usage } from '../errors.ts'
import type { Engine } from '../store/engine.ts'
import { suggestion } from '../suggestion.ts'
import { optionAt } from './note.ts'
import { knowledgeOptions } from './options.ts'
import { readOption } from './read-options.ts'
import { variablesIn } from './tree.ts'

/** The variables that views and macros obey. */
const knownVariables: readonly string[] = Object.keys(knowledgeOptions)

/** Refuses a value that says nothing to the views: in silence it would change nothing. */
export function readSettings(set: Readonly<Record<string, unknown>>): void {
  for (const name of ['backfill', 'registry_backfill'] as const)
    if (set[name] !== undefined && set[name] !== null)
      readOption(knowledgeOptions[name], optionAt('terminal', name), set[name])
}

/** The names among these that the lake itself does not know. */
export function ownNames(names: readonly string[]): readonly string[] {
  return names.filter((name) => !knownVariables.includes(name.toLowerCase()))
}

/** The names among these for which a script asks with `getvariable` nowhere. */
export async function unasked(engine: Engine, names: readonly string[], script: string): Promise<readonly string[]> {
  if (names.length === 0) return []
  const asked = await variablesIn(engine, script)
  return names.filter((name) => !asked.has(name.toLowerCase()))
}

/** A misspelt name would change nothing, in silence. */
export function refuseStrange(names: readonly string[]): void {
  const [first] = names
  if (first === undefined) return
  const near = suggestion(first, knownVariables)
  throw usage(`--set ${first}`, {
    expected: `${knownVariables.join(', ')}, or a name that the query asks for with getvariable`,
    ...(near !== undefined && { next: `did you mean ${near}?` }),
  })
}

/** Refuses the names that are those of the lake but for a slip: all that can be said before a query is known. */
export function refuseSlips(names: readonly string[]): void {
  refuseStrange(names.filter((name) => suggestion(name, knownVariables) !== undefined))
}
