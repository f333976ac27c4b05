import type { ExitCode, LakeError } from '../errors.ts'
import type { Kind } from '../kinds.ts'

/** A positional argument of a command. */
export interface ArgSpec {
  readonly name: string
  readonly about: string
  readonly required?: boolean
  readonly many?: boolean
  /** What it is, for a shell that completes it. */
  readonly kind?: Kind
}

/** One option: the table drives `--help`, the parser and the command reference. */
export interface OptionSpec {
  /** As typed: `--port N`, `-v, --verbose`. */
  readonly flags: string
  readonly about: string
  /** What it takes; without one a text, or nothing where the flags name nothing. */
  readonly kind?: Kind
  readonly default?: string
  readonly repeatable?: boolean
}

/** What reaches a command from the outside world; `main` gives the real ones. */
export interface Deps {
  /** Unix milliseconds. */
  readonly now: () => number
  /** Milliseconds that only go on, whatever the clock is set to. */
  readonly elapsed: () => number
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly random: () => number
  readonly env: Readonly<Record<string, string | undefined>>
  /** Text for people and JSON documents; signs that a terminal would act on are spelt out, as in `stderr`. */
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  /** Shows one line on stderr in place of the last live one; the empty text clears it. For terminals only. */
  readonly live: (text: string) => void
  /** Whether stderr is a terminal that may show colours and progress. */
  readonly isTerminal: boolean
  /** Aborted on the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal
  readonly cwd: string
}

/** Shows a line that passes, where there is a terminal to show it on. */
export function showLive({ isTerminal, live }: Deps, line: string): void {
  if (isTerminal) live(line)
}

/** The parsed command line of one command; option names in camelCase, each value as its kind reads it. */
export interface Input {
  readonly args: readonly string[]
  readonly options: Readonly<Record<string, unknown>>
}

/** What a command has to say and how it ends: scripts read the document (`--json`), people the words. */
export interface Answer<Document = unknown> {
  readonly document: Document
  readonly words: () => string
  /** Thrown once that is said. */
  readonly error?: LakeError | null
  /** An exit code without an error. */
  readonly code?: number
}

/** Takes the document of a run for whoever is told of its end. */
export type Tell = (document: unknown) => void

/** What every command says of itself. */
interface CommandHead {
  readonly name: string
  /** The exit codes that it may end with beside 0, 1 and 2. */
  readonly ends: readonly ExitCode[]
  readonly args?: readonly ArgSpec[]
  readonly options: readonly OptionSpec[]
  /** A longer explanation under the option list. */
  readonly details?: string
  /** It asks a provider: where none is set and the lake is synthetic, a sandbox answers while it runs. */
  readonly asks?: true
  /** Its runs are on record, and the hooks of the config run at their end. */
  readonly recorded?: true
}

/** A command that ends in an answer; it has the option `--json`. */
export interface AnsweringSpec<Document = unknown> extends CommandHead {
  readonly answer: (input: Input, deps: Deps) => Promise<Answer<Document>>
}

/** One that says what it has to say itself; an exit code where one is said without an error. */
interface TalkingSpec extends CommandHead {
  readonly run: (input: Input, deps: Deps, tell: Tell) => Promise<number | void>
}

/** One command (or subcommand: `catalog list`). */
export type CommandSpec = AnsweringSpec | TalkingSpec

/** The options that every command has. */
export const commonOptions: readonly OptionSpec[] = [
  { flags: '--config FILE', about: 'config file (default: pitlake.yaml if it is there)' },
  { flags: '--data DIR', about: 'folder of the lake (default: data)' },
  { flags: '-v, --verbose', about: 'say more, on stderr' },
]

/** All options of a command but those that every command has. */
export function optionsOf(spec: CommandSpec): readonly OptionSpec[] {
  return 'run' in spec ? spec.options : [...spec.options, { flags: '--json', about: 'one JSON document on stdout' }]
}

/** The long name of an option: `--out`. */
export function longOf({ flags }: OptionSpec): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags
}

/** Reads an option that holds text. */
export function textOption(input: Input, name: string): string | undefined {
  const value = input.options[name]
  return typeof value === 'string' ? value : undefined
}

/** Reads an option that is one of these words. */
export function wordOption<Word extends string>(input: Input, name: string, words: readonly Word[]): Word | undefined {
  return words.find((word) => word === input.options[name])
}

/** Reads an option that holds a count, a number, seconds or an instant. */
export function numberOption(input: Input, name: string): number | undefined {
  const value = input.options[name]
  return typeof value === 'number' ? value : undefined
}

/** Reads an option that is a switch. */
export function flagOption(input: Input, name: string): boolean {
  return input.options[name] === true
}

/** Reads an option that is a list of texts; undefined when absent. */
export function listOption(input: Input, name: string): readonly string[] | undefined {
  const given: unknown = input.options[name]
  return Array.isArray(given) ? given : undefined
}

/** Reads an option that may be repeated: its values as they were given, commas and all. */
export function manyOption(input: Input, name: string): readonly string[] {
  return listOption(input, name) ?? []
}
