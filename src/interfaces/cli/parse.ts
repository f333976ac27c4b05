import { Command, CommanderError, Option } from 'commander'
import { exitMeanings, usage } from '../../base/errors.ts'
import { hint } from '../../base/suggestion.ts'
import { wrapLine } from '../../base/figures.ts'
import {
  type CommandSpec,
  type OptionRow,
  type Input,
  isSwitch,
  type ListedCommand,
  longOf,
  optionRows,
  optionsOf,
  type OptionTable,
} from './spec.ts'

/** A command with its name. */
type NamedCommand = CommandSpec & { readonly name: string }

/** Parses the arguments of one command by its option table. */
export function parseCommand<Table extends OptionTable>(
  spec: NamedCommand & { readonly options?: Table },
  argv: readonly string[],
): Input<Table> {
  const command = build(spec)
  try {
    command.parse([...argv], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) throw complaint(spec, error)
    throw error
  }
  return { args: command.args, options: command.opts<Input<Table>['options']>() }
}

/** Formats the text of `--help` from the same table. */
export function helpText(spec: ListedCommand): string {
  const details = spec.details === undefined ? '' : `\n${folded(spec.details.trim())}\n`
  const codes = new Set([0, 1, 2, ...spec.exits].map(String))
  const meanings = Object.entries(exitMeanings)
    .filter(([code]) => codes.has(code))
    .flatMap(([code, meaning]) => wrapLine(`  ${code}  ${meaning}`, 5))
  return `${build(spec).description(spec.summary).helpInformation()}${details}\nExit codes:\n${meanings.join('\n')}\n`
}

/**
 * Folds paragraphs to lines of a terminal; one with an indented line is a table, whose last column continues below
 * itself.
 */
function folded(text: string): string {
  const below = (line: string): string[] => wrapLine(line, /^ +\S+ {2,}/.exec(line)?.[0].length ?? 2)
  const fold = (paragraph: string): string[] =>
    /^ /m.test(paragraph) ? paragraph.split('\n').flatMap(below) : wrapLine(paragraph.replaceAll('\n', ' '), 0)
  return text
    .split('\n\n')
    .map((paragraph) => fold(paragraph).join('\n'))
    .join('\n\n')
}

function build(spec: NamedCommand): Command {
  const command = new Command(`pitlake ${spec.name}`)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined, writeOut: () => undefined })
    .helpOption('-h, --help', 'print this help')
    .showSuggestionAfterError(false)
    .allowExcessArguments(false)
  for (const { flags, about } of optionRows(spec.args ?? {})) command.argument(flags, about)
  for (const row of optionsOf(spec)) {
    const option = optionOf(row)
    command.addOption(option)
    // Defaults: switches that are off, and empty lists.
    if (row.repeatable === true) command.setOptionValue(option.attributeName(), [])
    else if (isSwitch(row.flags) && !option.negate) command.setOptionValue(option.attributeName(), false)
  }
  return command
}

/** Builds an option of the parser: `--port N` takes a value, `--json` does not. */
function optionOf({ flags, kind, about, ...spec }: OptionRow): Option {
  const option = new Option(flags.replace(/ ([A-Z][^\s]*)$/, ' <$1>'), about)
  const read = (value: string): unknown => kind.read(longOf(flags), value)
  const many = (value: unknown): unknown => (kind.name === 'list' ? value : [value])
  if (spec.default !== undefined) option.default(read(spec.default), JSON.stringify(spec.default))
  if (isSwitch(flags)) return option
  return option.argParser((value: string, before: unknown) =>
    spec.repeatable === true ? [before, many(read(value))].flat() : read(value),
  )
}

function complaint(spec: NamedCommand, error: CommanderError): Error {
  const subject = `pitlake ${spec.name}`
  const message = error.message.replace(/^error: /, '')
  if (error.code === 'commander.unknownOption') {
    // Without its value: it might be a key.
    const got = (/'([^']+)'/.exec(message)?.[1] ?? message).replace(/=.*$/s, '')
    const knownOptions = optionsOf(spec)
    const names = knownOptions.map(({ flags }) => longOf(flags))
    const word = knownOptions.find(({ kind }) => kind.name === 'choice' && kind.words?.includes(got.slice(2)))
    const near = word ? `did you mean \`${longOf(word.flags)} ${got.slice(2)}\`?` : hint(got, names)
    return usage(subject, { expected: 'a known option', got, next: near ?? `see \`${subject} --help\``, cause: error })
  }
  return usage(`${subject}: ${message}`, { next: `see \`${subject} --help\``, cause: error })
}
