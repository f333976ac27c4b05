import { price } from '../../query/points.ts'
import { storedSeries } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { type Kind, kinds } from '../../base/option-kinds.ts'
import { textsIn } from '../../lake/store/sql.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { readContext } from '../cli/context.ts'
import { type CommandEntry, type CommandSpec, longOf, optionRows, optionsOf, talking, type Typed } from '../cli/spec.ts'

const shells = ['bash', 'zsh', 'fish'] as const

/**
 * Builds `completion`: a script with which a shell completes the command lines of these commands, and the words that
 * the script requests. Each script runs the program itself for the words that may follow, and shows them in its own
 * way; it handles `:file` and `:folder` itself.
 */
export function completions(commands: readonly CommandEntry[]) {
  const completionCommand = talking({
    args: {
      '<shell>': { about: 'bash, zsh or fish: its script', kind: kinds.choice(shells) },
      '[typed...]': 'for the script: the words typed after `pitlake`; prints what the last one can become',
    },
    details: `  bash  eval "$(pitlake completion bash)"      in ~/.bashrc
  zsh   eval "$(pitlake completion zsh)"       in ~/.zshrc, after compinit
  fish  pitlake completion fish | source       in ~/.config/fish/config.fish

The script completes commands, options, metrics of the catalogue, and assets with points in the lake (--data, PITLAKE_DATA or
pitlake.yaml). It contacts no provider.`,
    run: async (call) => {
      const [shell = '', ...typed] = call.args
      const shellName = kinds.choice(shells).read('pitlake completion', shell)
      const script = textsIn(new URL('shells/', import.meta.url), shellName)[0]?.[1] ?? ''
      if (typed.length === 0) return call.stdout(script)
      call.stdout((await wordsFor(commands, typed, call)).map((word) => `${word}\n`).join(''))
    },
  })
  return { completionCommand }
}

/** Words that may complete a word, each with a space and a description if it has one. */
type Words = readonly string[]

async function wordsFor(commands: readonly CommandEntry[], typed: Words, call: Typed): Promise<Words> {
  const [last = ''] = typed.slice(-1).map((word) => (word === '=' ? '' : word))
  const earlierWords = typed.slice(0, -1).filter((word) => word !== '=')
  const before = earlierWords[0] === 'help' ? earlierWords.slice(1) : earlierWords
  const found = ({ name }: CommandEntry): boolean => `${before.join(' ')} `.startsWith(`${name} `)
  const command = commands.find((command) => command.name.includes(' ') && found(command)) ?? commands.find(found)
  if (command === undefined) return fitting(namesBehind(commands, before.join(' ')), last)
  if (earlierWords !== before) return []
  const words = before.slice(command.name.split(' ').length)
  return await wordsOf(await command.load(), words, last, { ...call, options: lakeOf(words) })
}

function namesBehind(commands: readonly CommandEntry[], begun: string): Words {
  const behind = commands.filter(({ name }) => begun === '' || name.startsWith(`${begun} `))
  const next = behind.map(({ name, summary }) => {
    const [word = '', ...more] = name.slice(begun === '' ? 0 : begun.length + 1).split(' ')
    return more.length > 0 ? word : `${word} ${summary}`
  })
  return [...new Set(begun === '' ? [...next, 'help'] : next)]
}

async function wordsOf(spec: CommandSpec, before: Words, last: string, call: Typed): Promise<Words> {
  const options = optionsOf(spec)
  const named = (word = '') => options.find(({ flags }) => / [A-Z]/.test(flags) && flags.split(/[ ,]+/).includes(word))
  const [, long, value = ''] = /^(--[a-z-]+)=(.*)$/s.exec(last) ?? []
  const option = named(long) ?? named(before.at(-1))
  const values = option && (await valuesOf(option, long === undefined ? last : value, call))
  // A shell completes a path after a sign of its own only if it is a separate word.
  if (long !== undefined) return (values ?? []).flatMap((word) => (word.startsWith(':') ? [] : [`${long}=${word}`]))
  if (values !== undefined) return values
  const free = options.filter((option) => option.repeatable === true || !before.includes(longOf(option.flags)))
  const offered = [...free.map((option) => `${longOf(option.flags)} ${option.about}`), '--help this text']
  if (last.startsWith('-')) return fitting(offered, last)
  const place = before.filter((word, n) => !word.startsWith('-') && named(before[n - 1]) === undefined).length
  const args = optionRows(spec.args ?? {})
  const arg = args[place] ?? args.findLast(({ flags }) => flags.includes('...'))
  const words = arg === undefined ? [] : await valuesOf(arg, last, call)
  return words.length > 0 || last !== '' ? words : offered
}

function lakeOf(before: Words): Typed['options'] {
  const value = (name: string): string | undefined =>
    before.find((_, n) => before[n - 1] === name) ??
    before.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
  return { config: value('--config'), data: value('--data'), memory: undefined, verbose: false }
}

/** Lists the values that may complete a text; for a list its last part. */
async function valuesOf({ kind, flags }: { kind: Kind; flags: string }, text: string, call: Typed): Promise<Words> {
  const { name, words = [] } = kind
  if (name === 'file' || name === 'folder') return [`:${name}`]
  const head = name === 'list' ? text.slice(0, text.lastIndexOf(',') + 1) : ''
  const candidates = typeof words === 'string' ? await namesIn(words, longOf(flags), call) : words
  const takenWords = head.split(',')
  const free = candidates.flatMap((word) => (takenWords.includes(word) ? [] : [`${head}${word}`]))
  return fitting(free, text)
}

/** Lists metrics or resources of the catalogue, or assets of the lake; none if that cannot be read. */
async function namesIn(what: Kind['words'] & string, option: string, call: Typed): Promise<Words> {
  try {
    const { settings, catalogue } = await readContext(call)
    if (what === 'resources') return [...catalogue.resources.keys()]
    if (what === 'metrics') return [...(option === '--metrics' ? [price] : []), ...catalogue.endpoints.keys()]
    if (!isBegun(settings.data)) return []
    using ledger = await Ledger.openToRead(settings.data)
    const storedPoints = [...storedSeries(ledger).values()].filter((series) => series.first_t !== null)
    return [...new Set(storedPoints.map(({ asset }) => asset))].toSorted()
  } catch {
    return []
  }
}

const fitting = (words: Words, begun: string): Words => words.filter((word) => word.startsWith(begun))
