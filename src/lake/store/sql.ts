import { readdirSync, readFileSync } from 'node:fs'
import { LakeError } from '../../base/errors.ts'

/** The text `<name>.sql` with each `{{fragment}}` replaced. */
type Statement = (name: string, fragments?: Readonly<Record<string, string | number>>) => string

/**
 * Builds a function that returns the statements of a module's folder; a fragment that is missing or unused is an error.
 */
export function statementsIn(folder: URL): Statement {
  const texts = new Map<string, string>()
  return (name, fragments = {}) => {
    const text = texts.get(name) ?? readFileSync(new URL(`${name}.sql`, folder), 'utf8')
    texts.set(name, text)
    const unused = new Set(Object.keys(fragments))
    const sql = text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
      const fragment = fragments[key]
      if (fragment === undefined) throw new RangeError(`${name}.sql needs the fragment ${key}`)
      unused.delete(key)
      return String(fragment)
    })
    if (unused.size > 0) throw new RangeError(`${name}.sql has no fragment ${[...unused].join(', ')}`)
    return sql
  }
}

/**
 * Reads every text of a module's folder with the name of its file, in the order of the names; only those with the given
 * ending.
 */
export function textsIn(folder: URL, ending = '.sql'): readonly (readonly [file: string, text: string])[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(ending))
  return files.toSorted().map((file) => [file, readFileSync(new URL(file, folder), 'utf8')])
}

/** A value for `$name` or `$1` in a statement; a Date is a TIMESTAMPTZ. */
type Parameter = string | number | bigint | boolean | null | Date
/** Values of `$1` as a list, or of `$name` as an object. A `Date` is a TIMESTAMPTZ. */
export type Parameters = readonly Parameter[] | Readonly<Record<string, Parameter>>

/** Checks each parameter and converts it for the engine, by position or by name as given. */
export function bindAll<T>(
  parameters: Parameters | undefined,
  bind: (value: Parameter) => T,
): [] | [T[] | Record<string, T>] {
  if (parameters === undefined) return []
  const bindChecked = (value: Parameter, name: string): T => {
    check(value, name)
    return bind(value)
  }
  if (Array.isArray(parameters))
    return [(parameters as readonly Parameter[]).map((value, i) => bindChecked(value, `$${i + 1}`))]
  return [Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, bindChecked(value, `$${name}`)]))]
}

function check(value: Parameter, name: string): void {
  if (value instanceof Date && Number.isFinite(value.getTime())) return
  if (value === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof value)) return
  throw new LakeError('usage', {
    subject: `parameter ${name}`,
    expected: 'a text, a number, a bigint, a boolean, null or a Date',
    got: value instanceof Date ? 'an invalid Date' : Array.isArray(value) ? 'a list' : typeof value,
  })
}
