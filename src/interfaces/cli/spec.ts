import type { LakeError } from '../../base/errors.ts'
import type { ProgressReporter } from '../../base/progress.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { Settings } from '../../catalog/settings.ts'
import { type Kind, kindOf, type NamedKinds, kinds } from '../../base/option-kinds.ts'

/** One option or argument, where its flags do not say all of it. */
export interface OptionSpec {
  readonly about: string
  /** Kind of its value; by default that of its flags: a text, or nothing. */
  readonly kind?: Kind
  readonly default?: string
  readonly repeatable?: true
}

/** Short form of an option: its help, then its kind, its default, or both. */
type ShortSpec = readonly [about: string, kindOrDefault: Kind | string, usual?: string]

/**
 * Options by their flags as typed, `--port N`, `-v, --verbose`, and what each is for: drives `--help`, parser and
 * reference. Arguments likewise: `<file>`, `[id...]`.
 */
export type OptionTable = Readonly<Record<string, string | ShortSpec | OptionSpec>>

type Camel<Text extends string> = Text extends `${infer Head}-${infer Rest}`
  ? `${Head}${Capitalize<Camel<Rest>>}`
  : Text
type FirstWord<Text extends string> = Text extends `${infer Word} ${string}` ? Word : Text
type NameOf<Flags> = Flags extends `${string}--no-${infer Rest}`
  ? Camel<FirstWord<Rest>>
  : Flags extends `${string}--${infer Rest}`
    ? Camel<FirstWord<Rest>>
    : never
type TakenBy<Flags, Spec> = Spec extends
  | { readonly kind: Kind<infer Value> }
  | readonly [string, Kind<infer Value>, string?]
  ? Value
  : Flags extends `${string}--${string} ${infer Word}`
    ? Word extends keyof NamedKinds
      ? ReturnType<NamedKinds[Word]['read']>
      : string
    : boolean
type ValueOf<Flags, Spec> = Spec extends { readonly repeatable: true }
  ? readonly TakenBy<Flags, Spec>[]
  : Spec extends { readonly default: string } | readonly [string, string] | readonly [string, Kind, string]
    ? TakenBy<Flags, Spec>
    : TakenBy<Flags, Spec> extends boolean
      ? boolean
      : TakenBy<Flags, Spec> | undefined

/**
 * Values of a table of options by their names in camelCase, each as its kind reads it. Derived, so that the table is
 * the one list of options.
 */
export type OptionValues<Table> = { readonly [Flags in keyof Table as NameOf<Flags>]: ValueOf<Flags, Table[Flags]> }

/** Dependencies of a command on the outside world; `main` passes the real ones. */
export interface Deps extends ProgressReporter {
  /** Milliseconds that only go on, whatever the clock is set to. */
  readonly elapsed: () => number
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly random: () => number
  readonly env: Readonly<Record<string, string | undefined>>
  /** Text for people and JSON documents; signs that a terminal would act on are spelt out, as in `stderr`. */
  readonly stdout: (text: string) => void
  /** Aborted on the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal
  readonly cwd: string
}

/** Shows a transient line, if there is a terminal. */
export function showLive({ isTerminal, live }: Deps, line: string): void {
  if (isTerminal) live(line)
}

/** The parsed command line of one command. */
export interface Input<Table = unknown> {
  readonly args: readonly string[]
  readonly options: OptionValues<typeof commonOptions> & OptionValues<Table>
}

/** Settings and catalogue of a call. */
export type CommandContext = Readonly<{ settings: Settings; catalogue: Catalogue }>

/** A command line in its world. */
export type Typed<Table = unknown> = Input<Table> & Deps

/** A command line in its world, with its settings and the catalogue. */
export type Call<Table = unknown> = Typed<Table> & CommandContext

/** Answer of a command and how it ends: scripts read the document (`--json`), people the words. */
export interface CommandAnswer<Document = unknown> {
  readonly document: Document
  readonly words: () => string
  /** Error thrown after the answer is written. */
  readonly error?: LakeError | null
  /** An exit code without an error. */
  readonly code?: number
}

/** Description of a command by itself; its row of the table of commands names it. */
interface CommandHead<Table> {
  readonly args?: OptionTable
  readonly options?: Table
  /** A longer explanation under the option list. */
  readonly details?: string
  /**
   * Set if the command requests a provider. If none is configured and the lake is synthetic, a sandbox answers while it
   * runs.
   */
  readonly asks?: true
  /** Set if the lake records runs of the command, and configured hooks run at their end. */
  readonly recorded?: true
  /**
   * Set if the command may commit. It then ends with views of the newest version, even if it stops early or has nothing
   * to do.
   */
  readonly viewsAfter?: true
  /**
   * Set if the command reads the views. It rebuilds older ones first if it may write, and otherwise reports that they
   * are older.
   */
  readonly viewsBefore?: true
}

/** A command that ends in an answer; it has the option `--json`. */
export interface AnsweringSpec<Table = OptionTable, Said extends CommandAnswer = CommandAnswer>
  extends CommandHead<Table> {
  answer(call: Call<Table>): Promise<Said>
}

/** A command that writes its output itself; `run` may return an exit code without an error. */
export interface TalkingSpec<Table = OptionTable> extends CommandHead<Table> {
  run(call: Typed<Table>, tell: (document: unknown) => void): Promise<number | void>
}

/** One command (or subcommand: `catalog list`). */
export type CommandSpec = AnsweringSpec | TalkingSpec

/** A command with its row of the table of commands. */
export type ListedCommand = CommandSpec & {
  readonly name: string
  readonly summary: string
  /** Exit codes that it may end with in addition to 0, 1 and 2. */
  readonly exits: readonly number[]
}

/** One line of `pitlake --help`; the command itself is loaded only when it runs. */
export interface CommandEntry {
  readonly name: string
  /** Verb, object and effect, in at most 60 characters. */
  readonly summary: string
  /** Purpose of the command, in the overview. */
  readonly task: string
  /** Whether the first screen of `--help` shows it. */
  readonly isCommon: boolean
  readonly load: () => Promise<ListedCommand>
}

/** Types a command that answers; its table defines the type of each option. */
export const answering = <const Table extends OptionTable, Said extends CommandAnswer>(
  spec: AnsweringSpec<Table, Said>,
): AnsweringSpec<Table, Said> => spec

/** Types a command that writes its own output, likewise. */
export const talking = <const Table extends OptionTable>(spec: TalkingSpec<Table>): TalkingSpec<Table> => spec

/** The options that every command has. */
const commonOptions = {
  '--config FILE': 'config file (default: pitlake.yaml if it exists)',
  '--data DIR': 'folder of the lake (default: data)',
  '--memory SIZE': {
    kind: kinds.size,
    about: "memory limit of the process, such as 2GB (default: a quarter of the machine's)",
  },
  '-v, --verbose': 'print more on stderr',
} as const

/** An option or argument with its flags and its kind. */
export type OptionRow = OptionSpec & { readonly flags: string; readonly kind: Kind }

/** Lists all options of a command. */
export function optionsOf(spec: CommandHead<OptionTable>): readonly OptionRow[] {
  const json = 'run' in spec ? {} : { '--json': 'one JSON document on stdout' }
  return optionRows({ ...spec.options, ...json, ...commonOptions })
}

/** Lists the description of each option or argument of a table. */
export function optionRows(table: OptionTable): readonly OptionRow[] {
  return Object.entries(table).map(([flags, spec]) => {
    if (typeof spec === 'string') return { flags, kind: kindOf(flags), about: spec }
    if ('about' in spec) return { flags, kind: kindOf(flags), ...spec }
    const [about, first, second] = spec
    const [kind, usual] = typeof first === 'string' ? [kindOf(flags), first] : [first, second]
    return { flags, kind, about, ...(usual !== undefined && { default: usual }) }
  })
}

/**
 * Values of a command's options if none is named: switches that are off, empty lists, defaults. For callers that give
 * the values of options themselves instead of a command line.
 */
export function unnamedOptions<Table extends OptionTable>(
  spec: CommandHead<Table>,
): OptionValues<typeof commonOptions> & OptionValues<Table> {
  const values = optionsOf(spec).map(({ flags, kind, repeatable, default: usual }): [string, unknown] => {
    const long = longOf(flags)
    const name = long.replace(/^--(?:no-)?/, '').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
    if (isSwitch(flags)) return [name, long.startsWith('--no-')]
    if (repeatable === true) return [name, []]
    return [name, usual === undefined ? undefined : kind.read(long, usual)]
  })
  return Object.fromEntries(values) as OptionValues<typeof commonOptions> & OptionValues<Table>
}

/** Whether an option takes no value, as `--json`. */
export const isSwitch = (flags: string): boolean => !/[A-Z]/.test(flags)

/** Returns the long name of an option: `--out`. */
export const longOf = (flags: string): string => /--[a-z-]+/.exec(flags)?.[0] ?? flags

/** Formats one JSON document on stdout; whole numbers beyond 2^53 are texts. */
export function documentText(value: unknown): string {
  const plain = (_: string, member: unknown): unknown =>
    typeof member !== 'bigint' ? member : Number.isSafeInteger(Number(member)) ? Number(member) : String(member)
  return `${JSON.stringify(value, plain, 2)}\n`
}
