import { readdirSync, readFileSync } from 'node:fs'

/** The text `<name>.sql` with each `{{fragment}}` replaced. */
export type Statement = (name: string, fragments?: Readonly<Record<string, string | number>>) => string

/** The statements of a room's folder; a fragment that is missing or unused is an error. */
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

/** Every text of a room's folder with the name of its file, in the order of the names; with another ending, those. */
export function textsIn(folder: URL, ending = '.sql'): readonly (readonly [file: string, text: string])[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(ending))
  return files.toSorted().map((file) => [file, readFileSync(new URL(file, folder), 'utf8')])
}
