/** A positional argument of a command. */
export interface ArgSpec {
  readonly name: string
  readonly about: string
  readonly required?: boolean
  readonly many?: boolean
}

/** One option: the table drives `--help`, the parser and the command reference. */
export interface OptionSpec {
  /** As typed: `--port N`, `-v, --verbose`. */
  readonly flags: string
  readonly about: string
  readonly default?: string | boolean
  readonly repeatable?: boolean
}

/** What reaches a command from the outside world; `main` gives the real ones. */
export interface Deps {
  /** Unix milliseconds. */
  readonly now: () => number
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

/** The parsed command line of one command; option names in camelCase. */
export interface Input {
  readonly args: readonly string[]
  readonly options: Readonly<Record<string, unknown>>
}

/** One command (or subcommand: `catalog list`). */
export interface CommandSpec {
  readonly name: string
  readonly summary: string
  readonly args?: readonly ArgSpec[]
  readonly options: readonly OptionSpec[]
  /** A longer explanation under the option list. */
  readonly details?: string
  /** It asks a provider: where none is set and the lake is synthetic, a sandbox answers while it runs. */
  readonly asks?: true
  /** Its work; an exit code where one is said without an error. */
  readonly run: (input: Input, deps: Deps) => Promise<number | void>
}

/** Reads an option that holds text. */
export function textOption(input: Input, name: string): string | undefined {
  const value = input.options[name]
  return typeof value === 'string' ? value : undefined
}

/** Reads an option that is a switch. */
export function flagOption(input: Input, name: string): boolean {
  return input.options[name] === true
}

/** Reads a list given by comma, repeated or both; undefined when absent. */
export function listOption(input: Input, name: string): readonly string[] | undefined {
  const value = input.options[name]
  const given =
    typeof value === 'string' ? [value] : Array.isArray(value) ? value.filter((v) => typeof v === 'string') : []
  const list = given
    .flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter((text) => text.length > 0)
  return given.length === 0 ? undefined : list
}
