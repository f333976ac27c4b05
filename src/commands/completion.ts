import { price } from '../query/points.ts'
import { heldSeries } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { type Kind, kindOf, kinds } from '../kinds.ts'
import { textsIn } from '../store/sql.ts'
import { isBegun } from '../store/begin.ts'
import { readContext } from './context.ts'
import {
  type ArgSpec,
  type CommandSpec,
  commonOptions,
  type Deps,
  type Input,
  longOf,
  optionRows,
  optionsOf,
} from './spec.ts'

/** What is known of a command before it is loaded. */
interface Known {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<CommandSpec>
}

/** What a word may become; behind a space, what that is. */
type Word = string

const shells = ['bash', 'zsh', 'fish'] as const

/** Each asks the program itself what may follow, and has its own way of showing it; `:file` and `:folder` it knows. */
function scriptOf(shell: (typeof shells)[number]): string {
  return textsIn(new URL('shells/', import.meta.url), shell)[0]?.[1] ?? ''
}
/** `completion`: a script that has a shell complete the command lines of these commands, and the words that it asks for. */
export function completionOf(commands: readonly Known[]): CommandSpec {
  return {
    name: 'completion',
    ends: [],
    args: [
      { name: 'shell', about: 'bash, zsh or fish: its script', required: true, kind: kinds.choice(shells) },
      {
        name: 'typed',
        about: 'the words behind `pitlake`, as the script gives them: what the last may become',
        many: true,
      },
    ],
    options: {},
    details: [
      '  bash  eval "$(pitlake completion bash)"      in ~/.bashrc',
      '  zsh   eval "$(pitlake completion zsh)"       in ~/.zshrc, behind compinit',
      '  fish  pitlake completion fish | source       in ~/.config/fish/config.fish',
      '',
      'Commands and options are those of this program, metrics those of the catalogue, assets those of which the lake holds',
      'points (--data, PITLAKE_DATA or pitlake.yaml say which lake). Nobody is asked.',
    ].join('\n'),
    run: async ({ args: [shell = '', ...typed] }, deps) => {
      const own = kinds.choice(shells).read('pitlake completion', shell)
      deps.stdout(typed.length === 0 ? scriptOf(own) : lines(await wordsFor(commands, typed, deps)))
    },
  }
}

function lines(words: readonly Word[]): string {
  return words.map((word) => `${word}\n`).join('')
}

/** What the last word of a command line may become. */
async function wordsFor(commands: readonly Known[], typed: readonly string[], deps: Deps): Promise<readonly Word[]> {
  const [last = ''] = typed.slice(-1).map((word) => (word === '=' ? '' : word))
  const given = typed.slice(0, -1).filter((word) => word !== '=')
  const before = given[0] === 'help' ? given.slice(1) : given
  const found = ({ name }: Known): boolean => `${before.join(' ')} `.startsWith(`${name} `)
  const command = commands.find((one) => one.name.includes(' ') && found(one)) ?? commands.find(found)
  if (command === undefined) return fitting(namesBehind(commands, before.join(' ')), last)
  if (given !== before) return []
  const spec = await command.load()
  return await wordsOf(spec, before.slice(command.name.split(' ').length), last, deps)
}

/** The next words of commands that begin so. */
function namesBehind(commands: readonly Known[], begun: string): readonly Word[] {
  const behind = commands.filter(({ name }) => begun === '' || name.startsWith(`${begun} `))
  const next = behind.map(({ name, summary }): Word => {
    const [word = '', ...more] = name.slice(begun === '' ? 0 : begun.length + 1).split(' ')
    return more.length > 0 ? word : `${word} ${summary}`
  })
  return [...new Set(begun === '' ? [...next, 'help'] : next)]
}

/** What the last word may become behind the name of a command. */
async function wordsOf(
  spec: CommandSpec,
  before: readonly string[],
  last: string,
  deps: Deps,
): Promise<readonly Word[]> {
  const options = optionRows({ ...optionsOf(spec), ...commonOptions })
  const named = (word: string | undefined) =>
    options.find((one) => / [A-Z]/.test(one.flags) && one.flags.split(/[ ,]+/).includes(word ?? ''))
  const values = async ({ flags, kind = kindOf(flags) }: (typeof options)[number], text: string) =>
    await valuesOf(kind, longOf(flags), text, lakeOf(before), deps)
  const [, long, value = ''] = /^(--[a-z-]+)=(.*)$/s.exec(last) ?? []
  const own = named(long) ?? named(before.at(-1))
  // A shell completes a path behind a sign of its own only where it stands alone.
  if (long !== undefined)
    return own === undefined
      ? []
      : (await values(own, value)).flatMap((word) => (word.startsWith(':') ? [] : [`${long}=${word}`]))
  if (own !== undefined) return await values(own, last)
  const flags = options.filter((one) => one.repeatable === true || !before.includes(longOf(one.flags)))
  const told = [...flags.map((one) => `${longOf(one.flags)} ${one.about}`), '--help this text']
  if (last.startsWith('-')) return fitting(told, last)
  const place = before.filter((word, n) => !word.startsWith('-') && named(before[n - 1]) === undefined).length
  const arg = spec.args?.[place] ?? spec.args?.findLast(({ many }) => many === true)
  const words = arg === undefined ? [] : await valuesOf(kindOfArg(arg), arg.name, last, lakeOf(before), deps)
  return words.length > 0 || last !== '' ? words : told
}

/** What an argument is called tells its kind, as with options. */
function kindOfArg({ kind, name }: ArgSpec): Kind {
  return kind ?? kindOf(` ${name.toUpperCase()}`)
}

/** Which lake and which config the words name. */
function lakeOf(before: readonly string[]): Input {
  const value = (name: string): string | undefined =>
    before.find((_, n) => before[n - 1] === name) ??
    before.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1)
  return { args: [], options: { config: value('--config'), data: value('--data'), memory: undefined, verbose: false } }
}

/** What a value may become; of a list its last part. */
async function valuesOf(
  { name, words = [] }: Kind,
  option: string,
  text: string,
  input: Input,
  deps: Deps,
): Promise<readonly Word[]> {
  if (name === 'file' || name === 'folder') return [`:${name}`]
  const head = name === 'list' ? text.slice(0, text.lastIndexOf(',') + 1) : ''
  const known = typeof words === 'string' ? await namesIn(words, option, input, deps) : words
  const taken = head.split(',')
  return fitting(
    known.filter((word) => !taken.includes(word)).map((word) => `${head}${word}`),
    text,
  )
}

/** Metrics or resources of the catalogue, or assets of the lake; none where that cannot be read. */
async function namesIn(
  what: Extract<Kind['words'], string>,
  option: string,
  input: Input,
  deps: Deps,
): Promise<readonly string[]> {
  try {
    const { settings, catalogue } = await readContext(input, deps)
    if (what === 'resources') return [...catalogue.resources.keys()]
    if (what === 'metrics') return [...(option === '--metrics' ? [price] : []), ...catalogue.endpoints.keys()]
    if (!isBegun(settings.data)) return []
    using ledger = await Ledger.openToRead(settings.data)
    const held = [...heldSeries(ledger).values()].filter((one) => one.first_t !== null)
    return [...new Set(held.map(({ asset }) => asset))].toSorted()
  } catch {
    return []
  }
}

function fitting(words: readonly Word[], begun: string): readonly Word[] {
  return words.filter((word) => word.startsWith(begun))
}
