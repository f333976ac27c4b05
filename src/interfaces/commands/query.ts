import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import { type OutFile, outFile } from '../../lake/store/output.ts'
import { openQuery, type SessionOptions, type VariableValue } from '../../query/lake.ts'
import type { RunDeps } from '../../query/run.ts'
import {
  type Format,
  endings,
  formatFacts,
  formatOf,
  formats,
  isReadable,
  refuseFalseName,
  sendFile,
  writeFile,
  writeTo,
} from '../../query/write.ts'
import { formatDuration } from '../../base/time.ts'
import { visibleLines } from '../../base/visible-text.ts'
import { type Kind, kinds } from '../../base/option-kinds.ts'
import { settingsOf } from '../cli/context.ts'
import { beforeLeaving, exitAtOnce } from '../cli/process.ts'
import type { Deps, Input, OptionSpec, OptionTable, Typed } from '../cli/spec.ts'
import { type AskedQuestion, judgeQuestion, type Knowledge } from '../../query/question.ts'
import { type Note, noteTexts } from '../../query/note-texts.ts'
import { camel, knowledgeOptions, type Options } from '../../query/options.ts'
import { readOptions, readVariables } from '../../query/read-options.ts'
import { engineMemory, keptMemory } from '../../lake/store/memory.ts'
import { spareHeap } from '../cli/world.ts'
import { look, watchMemory } from '../cli/memory.ts'

/** Lists the flags of a table of options; an option that is a session variable on a command line has none. */
export function flagsOf(table: Options): OptionTable {
  const rows = Object.entries(table).flatMap(([name, { flag, set, about, kind, choices }]): [string, OptionSpec][] => {
    if (set === true) return []
    const flags = `--${name.replaceAll('_', '-')}${flag === undefined ? '' : ` ${flag}`}`
    if (flag === undefined) return [[flags, { about }]]
    const many = kind === 'list' || kind === 'choices' || kind === 'metrics'
    const words: Kind['words'] = name === 'assets' || name === 'metrics' ? name : choices
    // Read with the others, in the words of every interface; here only the offered words are listed.
    const offered = { ...kinds.text, name: many ? 'list' : words ? 'choice' : 'text', ...(words && { words }) } as const
    return [[flags, { about, kind: offered, ...(many && { repeatable: true }) }]]
  })
  return Object.fromEntries(rows)
}

/** Selects the options of a table from a command line, as text. */
export function givenOptions(table: Options, typedOptions: object): Readonly<Record<string, unknown>> {
  const options = new Map(Object.entries(typedOptions))
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
    about: 'a session variable, such as backfill=rule or n=5; in quotes a text: "n=\'5\'"',
    repeatable: true,
  },
} as const

/** The flags of a state of knowledge. */
export const knowledgeFlags = { ...flagsOf(knowledgeOptions), ...setOption }

/** Reads the state of knowledge from flags. */
export function knowledgeOf({ options }: Input): Knowledge {
  return readOptions(knowledgeOptions, givenOptions(knowledgeOptions, options), 'terminal')
}

/** The options of every command that runs SQL on a lake. */
export const queryOptions = {
  '--format FORMAT': [`${formats.join(', ')} (default: by the name of --out, else table)`, kinds.choice(formats)],
  '--out FILE': 'write the result to a file, all or nothing',
  '--compat': 'Parquet for small readers: plain pages and types',
  '--safe-csv': "CSV for spreadsheets: ' before text that looks like a formula",
  ...knowledgeFlags,
  '--rows N': ['rows of a table to show; 0 shows all', kinds.count(0, 'a whole number, 0 for all'), '100'],
  '--width N': 'characters on a line of a table (default: those of the terminal, else 80)',
  '--timeout TIME': ['cancel the query after 90s, 10m …', kinds.span('90s or 10m', true)],
  '--threads N': 'threads of DuckDB (default: all cores)',
} as const

/** A call of a command that runs SQL. */
export type Querying = Typed<typeof queryOptions>

/** Resolves the lake's folder of this call. */
export const dataFolder = (call: Typed): string => resolve(call.cwd, settingsOf(call).data)

/** Reads the state of knowledge and the resources of a session from the options. */
export function sessionOptions(call: Querying): SessionOptions {
  return { ...knowledgeOf(call), set: variablesOf(call), threads: call.options.threads }
}

/** Reads the session variables in `--set`. */
export function variablesOf({ options: { set } }: Input<typeof setOption>): Record<string, VariableValue> {
  return readVariables(Object.fromEntries(set.map(([name, text]) => [name, parseSetting(name, text)])))
}

/** A value in quotes, which is a text; a quote in it is doubled, as in SQL. */
const quotedText = /^'((?:[^']|'')*)'$/

/**
 * Parses the value of a session variable in `--set`: a number, true, false or null as JavaScript writes them, a text in
 * quotes, else the text as it is. A text that may be meant as one of these, such as `007`, is refused.
 */
export function parseSetting(name: string, text: string): VariableValue {
  const quoted = quotedText.exec(text)?.[1]
  if (quoted !== undefined) return quoted.replaceAll("''", "'")
  if (text === 'true' || text === 'false') return text === 'true'
  if (text === 'null') return null
  const number = Number(text)
  const isNumber = /\d/.test(text) && Number.isFinite(number)
  if (isNumber && String(number) === text) return number
  if (!isNumber && !/^(?:true|false|null)$/i.test(text) && !/^'|'$/.test(text)) return text
  throw usage(`--set ${name}`, {
    expected: 'a number such as 1.5, true, false, null, or a text',
    got: text,
    next: `put a text into quotes: --set "${name}='${text.replaceAll("'", "''")}'"`,
  })
}

/** Options of the output. */
interface OutputOptions {
  readonly format: Format
  /** Parquet for small readers. */
  readonly compat: boolean
  /** CSV for spreadsheets. */
  readonly safe: boolean
  /** Absolute path of the file; undefined: standard output. */
  readonly out: string | undefined
  /** Places on a line of a table. */
  readonly width: number
  /** Rows of a table to show; infinite: all. */
  readonly rows: number
}

/** Reads and checks the options of the output. */
function outputOf({ options, cwd }: Querying): OutputOptions {
  const { out, format, compat, safeCsv: safe } = options
  if (out !== undefined && format === undefined && !compat && !safe) checkEnding(out)
  const chosen =
    format ?? (out === undefined ? undefined : formatOf(out)) ?? (compat ? 'parquet' : safe ? 'csv' : 'table')
  if (compat && chosen !== 'parquet') throw usage('--compat', { expected: '--format parquet', got: chosen })
  if (safe && chosen !== 'csv' && chosen !== 'csv.gz')
    throw usage('--safe-csv', { expected: '--format csv or csv.gz', got: chosen })
  if (out !== undefined) refuseFalseName(chosen, out)
  if (!isReadable(chosen) && out === undefined && process.stdout.isTTY)
    throw usage(`--format ${chosen}`, { expected: '--out FILE', got: 'a terminal to write to' })
  const width = options.width ?? process.stdout.columns
  const path = out === undefined ? undefined : resolve(cwd, out)
  return { format: chosen, compat, safe, out: path, width: width >= 20 ? width : 80, rows: options.rows || Infinity }
}

/** Refuses a name that implies no format: it would be written as a table that is cut. */
export function checkEnding(out: string, wanted: readonly string[] = endings): void {
  if (wanted.some((ending) => out.toLowerCase().endsWith(ending))) return
  const next = wanted === endings ? 'name the format with --format' : undefined
  throw usage('--out', { expected: `a name that ends in ${wanted.join(', ')}`, got: out, next })
}

/** Opens the file for the result: `--out`, or for Parquet to standard output one in the scratch folder. */
function targetOf(output: OutputOptions, folder: string, scratch: string): OutFile | undefined {
  if (output.out !== undefined) return outFile(output.out, folder)
  if (output.format !== 'parquet') return undefined
  return { path: join(scratch, 'result.parquet'), finish: async () => undefined, discard: () => undefined }
}

/**
 * Writes to standard output and waits for its reader. A pipe or file gets every byte; on a terminal nothing may act on
 * it.
 */
async function standardOutput(data: string | Uint8Array): Promise<void> {
  process.stdout.write(typeof data === 'string' && process.stdout.isTTY ? visibleLines(data) : data)
  if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain')
}

/** Runs work with a temporary folder, which is removed afterwards. */
export async function withScratch<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = join(tmpdir(), `pitlake-out-${randomUUID()}`)
  mkdirSync(folder, { mode: 0o700 })
  const clean = (): void => rmSync(folder, { recursive: true, force: true })
  const forget = beforeLeaving(clean)
  try {
    return await work(folder)
  } finally {
    forget()
    clean()
  }
}

/** Runs work that Ctrl-C and `--timeout` cancel. */
async function withLimit<T>(call: Querying, folder: string, work: (run: RunDeps) => Promise<T>): Promise<T> {
  const { sleep, options } = call
  const { timeout: seconds } = options
  spareHeap()
  const over = seconds === undefined ? undefined : AbortSignal.timeout(seconds * 1000)
  const signal = AbortSignal.any([call.signal, ...(over ? [over] : [])])
  const unwatch = watch(call, signal)
  try {
    return await work({ folder, signal, sleep })
  } catch (cause) {
    if (seconds === undefined || over?.aborted !== true) throw cause
    const subject = `the query took longer than ${formatDuration(seconds)}`
    throw new LakeError('stopped', { subject, next: 'raise --timeout', cause })
  } finally {
    unwatch()
  }
}

/** Milliseconds that a cancelled query has to end. */
const grace = 2000

/**
 * Watches for a cancel or too much memory. DuckDB notices both between chunks only: a single call that notices neither
 * ends with the process.
 */
function watch({ stderr }: Deps, cancelled: AbortSignal): () => void {
  let waited = 0
  const end = (words: string): void => {
    stderr(`error: ${words}\n`)
    exitAtOnce(5)
  }
  const tooMuch = () => end('the query took more memory than it may; raise --memory, or query less data at once')
  return watchMemory(keptMemory(), tooMuch, () => {
    if (cancelled.aborted && (waited += look) > grace) end('the query was cancelled and did not end by itself')
  })
}

/** Judges a question and writes its answer as the options require; used by all commands that end in a result. */
export async function writeAnswer(call: Querying, question: AskedQuestion): Promise<void> {
  const output = outputOf(call)
  const folder = dataFolder(call)
  const tell = (notes: readonly Note[]): void => {
    for (const text of noteTexts(notes, 'terminal')) call.stderr(`note: ${text}\n`)
  }
  await withScratch(async (scratch) =>
    withLimit(call, folder, async (run) => {
      const target = targetOf(output, folder, scratch)
      if (target !== undefined) beforeLeaving(target.discard)
      // Text is written as it comes; Parquet and Arrow are kept in memory next to the session, and so are blocks of a
      // panel.
      const memoryLimit = engineMemory(formatFacts[output.format].text && 'sql' in question ? 1 : 1 / 2)
      const query = 'sql' in question ? question.sql : ''
      using engine = await openQuery(folder, { ...sessionOptions(call), memoryLimit, query })
      const { ready, by, notes, doubts } = await judgeQuestion(question, engine, run)
      tell(notes)
      const answer = { engine, ready, options: { ...output, by }, deps: run }
      const written = await (target === undefined
        ? writeTo(answer, standardOutput)
        : writeFile(answer, target, output.out ?? target.path))
      if (target !== undefined && output.out === undefined) await sendFile(target.path, standardOutput)
      if (written.more)
        call.stderr(`the first ${written.rows} rows; --rows 0 shows all, --format and --out write all\n`)
      tell(await doubts(written))
    }),
  )
}
