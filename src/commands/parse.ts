import { Command, CommanderError, Option } from 'commander'
import { usage } from '../errors.ts'
import { kindOf } from '../kinds.ts'
import { camel } from '../query/options.ts'
import { hint } from '../suggestion.ts'
import { wrapped } from '../words/table.ts'
import {
  type ArgSpec,
  type CommandSpec,
  commonOptions,
  type Input,
  longOf,
  optionRows,
  optionsOf,
  type OptionTable,
} from './spec.ts'

/** What is said of a command; a summary where there is a page to print it on. */
type Head = CommandSpec & { readonly summary?: string }

/** Parses the arguments of one command by its option table. */
export function parseCommand<Table extends OptionTable>(
  spec: CommandSpec & { readonly options: Table },
  argv: readonly string[],
): Input<Table> {
  const command = build(spec)
  try {
    command.parse([...argv], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) throw complaint(spec, error)
    throw error
  }
  return { args: command.args, options: { ...absent(spec), ...command.opts<Input<Table>['options']>() } }
}

const allOf = (spec: CommandSpec) => optionRows({ ...optionsOf(spec), ...commonOptions })

/** What nobody named: switches that are off, and lists of nothing. */
function absent(spec: CommandSpec): Readonly<Record<string, false | readonly never[]>> {
  const rows = allOf(spec).flatMap(({ flags, repeatable }): [string, false | readonly never[]][] => {
    const name = camel(longOf(flags).slice(2).replaceAll('-', '_'))
    return repeatable === true ? [[name, []]] : takesNothing(flags) ? [[name, false]] : []
  })
  return Object.fromEntries(rows)
}

function takesNothing(flags: string): boolean {
  return !/[A-Z]/.test(flags)
}

/** What `--help` prints: the same table. */
export function helpText(spec: Head): string {
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

function build(spec: Head): Command {
  const command = new Command(`pitlake ${spec.name}`)
    .description(spec.summary ?? '')
    .exitOverride()
    .configureOutput({ writeErr: () => undefined, writeOut: () => undefined })
    .helpOption('-h, --help', 'this text')
    .showSuggestionAfterError(false)
    .allowExcessArguments(false)
  for (const arg of spec.args ?? []) command.argument(argText(arg), arg.about)
  for (const option of allOf(spec)) command.addOption(optionOf(option))
  return command
}

function argText(arg: ArgSpec): string {
  const name = arg.many === true ? `${arg.name}...` : arg.name
  return arg.required === true ? `<${name}>` : `[${name}]`
}

/** `--port N` takes a value, `--json` does not. */
function optionOf({ flags, ...spec }: ReturnType<typeof optionRows>[number]): Option {
  const option = new Option(flags.replace(/ ([A-Z][^\s]*)$/, ' <$1>'), spec.about)
  const kind = spec.kind ?? kindOf(flags)
  const read = (value: string): unknown => kind.read(longOf(flags), value)
  const many = (value: unknown): unknown => (kind.name === 'list' ? value : [value])
  if (spec.default !== undefined) option.default(read(spec.default), JSON.stringify(spec.default))
  if (takesNothing(flags)) return option
  return option.argParser((value: string, before: unknown) =>
    spec.repeatable === true ? [before ?? [], many(read(value))].flat() : read(value),
  )
}

function complaint(spec: Head, error: CommanderError): Error {
  const subject = `pitlake ${spec.name}`
  const message = error.message.replace(/^error: /, '')
  if (error.code === 'commander.unknownOption') {
    // Without its value: it might be a key.
    const got = (/'([^']+)'/.exec(message)?.[1] ?? message).replace(/=.*$/s, '')
    const known = allOf(spec)
    const word = known.find(({ kind }) => kind?.name === 'choice' && kind.words?.includes(got.slice(2)))
    const next = word
      ? `did you mean \`${longOf(word.flags)} ${got.slice(2)}\`?`
      : (hint(
          got,
          known.map(({ flags }) => longOf(flags)),
        ) ?? `see \`pitlake ${spec.name} --help\``)
    return usage(subject, { expected: 'a known option', got, next, cause: error })
  }
  return usage(`${subject}: ${message}`, { next: `see \`pitlake ${spec.name} --help\``, cause: error })
}
