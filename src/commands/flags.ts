import { type Kind, kinds } from '../kinds.ts'
import type { Knowledge } from '../query/question.ts'
import { camel, knowledgeOptions, type Options } from '../query/options.ts'
import { readOptions } from '../query/read-options.ts'
import type { Input, OptionSpec, OptionTable } from './spec.ts'

/** The flags of a table of options; what is a session variable on a command line has none. */
export function flagsOf(table: Options): OptionTable {
  const rows = Object.entries(table).flatMap(([name, { flag, set, about, kind, choices }]): [string, OptionSpec][] => {
    if (set === true) return []
    const flags = `--${name.replaceAll('_', '-')}${flag === undefined ? '' : ` ${flag}`}`
    if (flag === undefined) return [[flags, { about }]]
    const many = kind === 'list' || kind === 'choices' || kind === 'metrics'
    const words: Kind['words'] = name === 'assets' || name === 'metrics' ? name : choices
    // Read with the others, in the words of every door; here it is told what may be offered.
    const offered = { ...kinds.text, name: many ? 'list' : words ? 'choice' : 'text', ...(words && { words }) } as const
    return [[flags, { about, kind: offered, ...(many && { repeatable: true }) }]]
  })
  return Object.fromEntries(rows)
}

/** What a command line said of a table of options: texts, for whoever reads them. */
export function givenOptions(table: Options, said: object): Readonly<Record<string, unknown>> {
  const options = new Map(Object.entries(said))
  return Object.fromEntries(
    Object.keys(table).map((name) => {
      const given: unknown = options.get(camel(name))
      return [camel(name), Array.isArray(given) ? (given.length === 0 ? undefined : given.join(',')) : given]
    }),
  )
}

/** Session variables, each by its name. */
export const setOption = {
  '--set NAME=VALUE': {
    kind: kinds.pair('name=value', /^[A-Za-z_]\w*$/),
    about: 'a session variable: backfill=rule, registry_backfill=true',
    repeatable: true,
  },
} as const

/** The flags of a state of knowledge. */
export const knowledgeFlags = { ...flagsOf(knowledgeOptions), ...setOption }

/** The state of knowledge that flags name. */
export function knowledgeOf({ options }: Input): Knowledge {
  return readOptions(knowledgeOptions, givenOptions(knowledgeOptions, options), 'terminal')
}
