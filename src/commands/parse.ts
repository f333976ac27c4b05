import { Command, CommanderError, Option } from 'commander'
import { usage } from '../errors.ts'
import { kindOf } from '../kinds.ts'
import { hint } from '../suggestion.ts'
import { wrapped } from '../words/table.ts'
import { type ArgSpec, commonOptions, type Input, longOf, type OptionSpec, optionsOf } from './spec.ts'
import type { Command as Told } from './table.ts'

/** Parses the arguments of one command by its option table. */
export function parseCommand(spec: Told, argv: readonly string[]): Input {
  const command = build(spec)
  try {
    command.parse([...argv], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) throw complaint(spec, error)
    throw error
  }
  return { args: command.args, options: command.opts() }
}

/** What `--help` prints: the same table. */
export function helpText(spec: Told): string {
  const details = spec.details === undefined ? '' : `\n${folded(spec.details.trim())}\n`
  const ends = [0, 1, 2, ...spec.ends].join(', ')
  return `${build(spec).helpInformation()}${details}\nExit codes: ${ends}; pitlake --help says what each means.\n`
}

/** Paragraphs as lines of a terminal; what holds an indented line is a table, whose last column goes on below itself. */
function folded(text: string): string {
  const below = (line: string): string[] => wrapped(line, /^ +\S+ {2,}/.exec(line)?.[0].length ?? 2)
  const fold = (paragraph: string): string[] =>
    /^ /m.test(paragraph) ? paragraph.split('\n').flatMap(below) : wrapped(paragraph.replaceAll('\n', ' '), 0)
  return text
    .split('\n\n')
    .map((paragraph) => fold(paragraph).join('\n'))
    .join('\n\n')
}

function build(spec: Told): Command {
  const command = new Command(`pitlake ${spec.name}`)
    .description(spec.summary)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined, writeOut: () => undefined })
    .helpOption('-h, --help', 'this text')
    .showSuggestionAfterError(false)
    .allowExcessArguments(false)
  for (const arg of spec.args ?? []) command.argument(argText(arg), arg.about)
  for (const option of [...optionsOf(spec), ...commonOptions]) command.addOption(optionOf(option))
  return command
}

function argText(arg: ArgSpec): string {
  const name = arg.many === true ? `${arg.name}...` : arg.name
  return arg.required === true ? `<${name}>` : `[${name}]`
}

/** `--port N` takes a value, `--json` does not. */
function optionOf(spec: OptionSpec): Option {
  const option = new Option(spec.flags.replace(/ ([A-Z][^\s]*)$/, ' <$1>'), spec.about)
  const read = (value: string): unknown => (spec.kind ?? kindOf(spec.flags)).read(longOf(spec), value)
  if (spec.default !== undefined) option.default(read(spec.default), JSON.stringify(spec.default))
  if (!/[A-Z]/.test(spec.flags)) return option
  return option.argParser((value: string, before: unknown) =>
    spec.repeatable === true ? [before ?? [], read(value)].flat() : read(value),
  )
}

function complaint(spec: Told, error: CommanderError): Error {
  const subject = `pitlake ${spec.name}`
  const message = error.message.replace(/^error: /, '')
  if (error.code === 'commander.unknownOption') {
    // Without its value: it might be a key.
    const got = (/'([^']+)'/.exec(message)?.[1] ?? message).replace(/=.*$/s, '')
    const known = [...optionsOf(spec), ...commonOptions]
    const word = known.find(({ kind }) => kind?.name === 'choice' && kind.words?.includes(got.slice(2)))
    const next = word
      ? `did you mean \`${longOf(word)} ${got.slice(2)}\`?`
      : (hint(got, known.map(longOf)) ?? `see \`pitlake ${spec.name} --help\``)
    return usage(subject, { expected: 'a known option', got, next, cause: error })
  }
  return usage(`${subject}: ${message}`, { next: `see \`pitlake ${spec.name} --help\``, cause: error })
}
