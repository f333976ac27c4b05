import { readFileSync } from 'node:fs'

/** A case of a golden file: what it is, its statements, and what is noted behind the last of them. */
export interface GoldenCase {
  readonly what: string
  readonly queries: readonly string[]
  readonly note: string
}

/**
 * The cases of a file of `test/golden`: parted by empty lines, each a line that says what it is and its statements,
 * every one ended by a `;` at the end of a line. `{name}` in them stands for that fragment, `{name rest}` for what it
 * makes of the rest.
 */
export function goldenQueries(
  path: string,
  fragments: Readonly<Record<string, string | ((rest: string) => string)>> = {},
): GoldenCase[] {
  const put = (whole: string, name: string, rest = ''): string => {
    const fragment = fragments[name]
    if (fragment === undefined) throw new Error(`${path}: no fragment for ${whole}`)
    return typeof fragment === 'string' ? fragment : fragment(rest)
  }
  const [, ...cases] = readFileSync(new URL(`../golden/${path}.sql`, import.meta.url), 'utf8')
    .trim()
    .split('\n\n')
  return cases.map((text) => {
    const [head = '', ...lines] = text.split('\n')
    const parts = lines.join('\n').split(/;(?: -- (.*))?(?:\n|$)/)
    const queries = parts.slice(0, -1).filter((_, n) => n % 2 === 0)
    const note = parts.at(-2) ?? ''
    if (!head.startsWith('-- ') || queries.length === 0) throw new Error(`${path}: no statement: ${text}`)
    return { what: head.slice(3), note, queries: queries.map((sql) => sql.replaceAll(/\{(\w+)(?: ([^{}]*))?\}/g, put)) }
  })
}
