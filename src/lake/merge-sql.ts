import { readFileSync } from 'node:fs'

const texts = new Map<string, string>()

/** The statement `src/sql/merge/<name>.sql` with each `{{fragment}}` replaced; a missing one is an error. */
export function mergeSql(name: string, fragments: Readonly<Record<string, string | number>>): string {
  const text = texts.get(name) ?? readFileSync(new URL(`../sql/merge/${name}.sql`, import.meta.url), 'utf8')
  texts.set(name, text)
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
    const fragment = fragments[key]
    if (fragment === undefined) throw new RangeError(`${name}.sql needs the fragment ${key}`)
    return String(fragment)
  })
}
