import { LakeError, usage } from '../base/errors.ts'
import { tooLarge } from '../lake/store/memory.ts'
import { didYouMean, hint, nearPaths } from '../base/suggestion.ts'
import { intervals } from '../base/time.ts'

/** What to do where writing is refused, and where a setting is. */
export const temporaryOnly = 'the lake is read-only; CREATE TEMP TABLE is allowed'
export const settingsFixed = 'the settings of a session are fixed, its zone is UTC'

/** What is known about the statement that failed. */
interface Failure {
  /** The statement as it was given to DuckDB. */
  readonly statement: string
  /** The script that it stands in, and where it begins there. */
  readonly script: string
  readonly offset: number
  readonly folder: string
  /** What the memory is called that may be raised: `--memory` unless said. */
  readonly memory?: string | undefined
  /** The SQL is the program's own: no line and column. */
  readonly generated?: boolean
  /** How many lines of the program's own stand above a person's. */
  readonly above?: number
  /** The metrics that there are: one that is not is answered with the nearest. */
  readonly metrics?: readonly string[]
}

/** What Node, DuckDB's parser and its binder report about a query that is nested too deeply. */
const tooDeep =
  /^(?:Failed to extract statements: )?(?:\w+ Error: )?(?:Maximum call stack size|Max expression depth limit|memory exhausted at)/

/** What Node reports of a text that it cannot hold. */
const tooLong = /^(?:Cannot create a string longer than|Invalid string length)/

/** DuckDB's message as one line with line and column, and with the remedy where there is one. */
export function refusal(cause: unknown, failure: Failure): Error {
  if (cause instanceof LakeError) return cause
  if (!(cause instanceof Error)) return new Error(String(cause))
  if (tooDeep.test(cause.message))
    return usage('SQL', { expected: 'a query that is nested less deeply', got: 'one too deep to read', cause })
  if (/^(?:Failed to extract statements: )?(?:\w+ Error: )?NameListToString NOT IMPLEMENTED/.test(cause.message))
    return usage('SQL', {
      expected: 'a query that names relations in at most three parts',
      got: 'a longer name',
      cause,
    })
  const large = tooLarge(cause, 'SQL', failure.memory)
  if (large !== undefined) return large
  if (tooLong.test(cause.message))
    return usage('SQL', {
      expected: 'values of at most 500 MB each',
      got: 'a longer one',
      next: 'cut texts with left(x, 1000)',
      cause,
    })
  // Its words are for the makers of the engine: a stack with paths and addresses.
  if (/^(?:INTERNAL|FATAL) Error|\bStack Trace:/.test(cause.message))
    return usage('SQL', {
      expected: 'a query that DuckDB can run',
      got: 'an internal error of DuckDB',
      next: 'write it in another way',
      cause,
    })
  const message = cause.message.replace(/^Failed to extract statements: /, '')
  const { kind, text } = headline(message)
  const where = place(message, failure)
  const subject = where === '' ? 'SQL' : `SQL (${where})`
  return (
    moved(message, failure, cause) ??
    forbidden(kind, text, cause) ??
    lacking(message, cause) ??
    unknownMetric(failure, subject, cause) ??
    unreadable(text, subject, cause) ??
    wrongDecisions(text, subject, cause) ??
    wrongCall(text, failure, subject, cause) ??
    otherwise(text, subject, cause) ??
    plain(kind, text, subject, cause)
  )
}

/** Removes paths of the lake, and these words, from an error, for clients that must not learn them. */
export function redactPaths(error: Error, words: readonly string[]): Error {
  const hush = (text: string | undefined): string | undefined =>
    words.reduce((left, word) => (word === '' ? left : left?.replaceAll(`${word}/`, '').replaceAll(word, '…')), text)
  if (!(error instanceof LakeError)) return new Error(hush(error.message), { cause: error })
  const complaints = error.complaints.map(({ subject, expected, got, next, cause }) => ({
    subject: hush(subject) ?? '',
    expected: hush(expected),
    got: hush(got),
    next: hush(next),
    cause,
  }))
  return new LakeError(error.kind as 'usage', complaints)
}

/** `Parser Error: syntax error at …` → its kind and its first paragraph in one line. */
function headline(message: string): { kind: string; text: string } {
  const match = /^(?:TransactionContext Error: )?([A-Z][\w -]*?) Error: ([\s\S]*)$/.exec(message)
  const body = (match?.[2] ?? message).replace(/\n+LINE \d+: [\s\S]*$/, '')
  return { kind: match?.[1] ?? '', text: body.replaceAll(/\s*\n\s*/g, ' ').trim() }
}

/** Line and column of the caret under DuckDB's excerpt, in the script. */
function place(message: string, failure: Failure): string {
  const match = /\nLINE (\d+): (.*)\n( *)\^/.exec(message)
  if (!match || failure.generated === true) return ''
  const [, number = '1', excerpt = '', blank = ''] = match
  const line = Number(number)
  const caret = blank.length - `LINE ${number}: `.length
  const cut = excerpt.startsWith('...')
  const whole = failure.statement.split('\n')[line - 1] ?? ''
  const shown = excerpt.replace(/^\.\.\./, '').replace(/\.\.\.$/, '')
  const found = cut ? whole.lastIndexOf(shown) : 0
  const column = found < 0 ? 0 : found + caret - (cut ? 3 : 0)
  const before = failure.script.slice(0, failure.offset).split('\n')
  const indent = line === 1 ? (before.at(-1)?.length ?? 0) : 0
  return `line ${before.length - 1 + line - (failure.above ?? 0)} column ${column + indent + 1}`
}

/** A file that the views name is not where they say: the lake was moved, copied or vacuumed, or the file is lost. */
export class NotWhereNamed extends LakeError {}

function moved(message: string, failure: Failure, cause: Error): LakeError | undefined {
  const missing =
    /No files found that match the pattern "([^"]+)"|Cannot (?:open|access) file "([^"]+)"/.exec(message) ?? undefined
  const file = missing?.[1] ?? missing?.[2]
  if (file === undefined || failure.script.includes(file)) return undefined
  if (/Permission denied/.test(message))
    return new LakeError('integrity', {
      subject: file,
      expected: 'the right to read it',
      got: 'permission denied',
      next: 'give this user the right to read it: nothing is lost',
      cause,
    })
  return new NotWhereNamed('usage', {
    subject: `lake ${failure.folder}`,
    expected: 'views over the files of this folder',
    got: `views that read ${file}`,
    next: 'the lake was moved, copied or vacuumed since: run `pitlake views`',
    cause,
  })
}

function forbidden(kind: string, text: string, cause: Error): LakeError | undefined {
  const usageError = (expected: string, next: string): LakeError => usage('SQL', { expected, got, next, cause })
  const got = /statement of type "(\w+)"/.exec(text)?.[1] ?? text.replace(/ - file system.*$/, '')
  if (/read-only mode/.test(text)) return usageError('a query that only reads', temporaryOnly)
  if (kind === 'Permission' && text.includes('disabled by configuration'))
    return usageError(
      'files of the lake',
      'a session reads the lake alone; `panel --decisions FILE` brings a table along, `--out` writes a result',
    )
  return /configuration has been locked/.test(text) ? usageError('SET VARIABLE only', settingsFixed) : undefined
}

function lacking(message: string, cause: Error): LakeError | undefined {
  const named = /exists in the (\w+) extension|Extension "?([\w/.]+?)"? (?:not found|could not)|LOAD (\w+)/.exec(
    message,
  )
  const disabled = /Loading external extensions is disabled/.test(message)
  if (!named && !disabled) return undefined
  const name = (named?.[1] ?? named?.[2] ?? named?.[3] ?? '').split('/').at(-1) ?? ''
  return usage('SQL', {
    expected: 'what DuckDB can do with icu, json and parquet',
    got: name === '' ? 'a wish for a further extension' : `a wish for the extension ${name}`,
    next: 'pitlake loads none by itself: read lake.sql with the official `duckdb` command line',
    cause,
  })
}

/** The metric that a join's complaint calls unknown. */
export function unknownMetricIn(cause: unknown): string | undefined {
  return cause instanceof Error
    ? /unknown metric (.*): the view endpoints lists them all/.exec(cause.message)?.[1]
    : undefined
}

function unknownMetric({ metrics = [] }: Failure, subject: string, cause: Error): LakeError | undefined {
  const name = unknownMetricIn(cause)
  if (name === undefined) return undefined
  const next = didYouMean(nearPaths(name, metrics), 'the view endpoints lists them all')
  return new LakeError('usage', { subject: `${subject}: unknown metric ${name}`, next, cause })
}

/** What a complaint says that is no interval, or that a metric has not, with what there is. */
function otherwise(text: string, subject: string, cause: Error): LakeError | undefined {
  const interval = /'no interval ([^']*)' to (?:INT64|BOOL)/.exec(text)?.[1]
  // Found while it runs: where in the text depends on how it is asked.
  if (interval !== undefined) {
    const expected = `an interval (${intervals.join(', ')})`
    return usage('SQL', { expected, got: interval, next: hint(interval, intervals), cause })
  }
  const [, lack = '', got = '', alternatives = ''] = /^(\S+ has no \w+) (.*), but (.*)$/.exec(text) ?? []
  if (lack === '') return undefined
  const knownNames = alternatives.split(',')
  return usage(`${subject}: ${lack} ${got}`, { expected: knownNames.join(', '), next: hint(got, knownNames), cause })
}

/** The text that the engine could read no instant from. */
export function unreadInstant(cause: unknown): string | undefined {
  return cause instanceof Error ? /invalid timestamp field format: "([^"]*)"/.exec(cause.message)?.[1] : undefined
}

/** Texts and numbers that are no time, no instant and no interval: what would have been, in words. */
function unreadable(text: string, subject: string, cause: Error): LakeError | undefined {
  const duration =
    /^\w+ has no unit: (.*)$/.exec(text)?.[1] ??
    /extract specifier "([^"]*)" not recognized/.exec(text)?.[1] ??
    /[Cc]ould not convert string '([^']*)' to INTERVAL/.exec(text)?.[1]
  if (duration !== undefined)
    return usage(subject, {
      expected: "a time such as '15 minutes', '1 hour', '1 day' or '1 month'",
      got: `'${duration}'`,
      cause,
    })
  const type = /cast \((\w+)(?:\([^)]*\))? -> (?:TIMESTAMP|DATE)/.exec(text)?.[1]
  if (type === undefined) return undefined
  return usage(subject, {
    expected: 'an instant: a TIMESTAMP, TIMESTAMPTZ or DATE, or a text such as 2024-06-01T12:00:00Z',
    got: type === 'BOOLEAN' ? 'a BOOLEAN' : `a number (${type})`,
    next: 'seconds become an instant with to_timestamp(x), milliseconds with epoch_ms(x)',
    cause,
  })
}

/** Decisions without a column that a join needs. The join knows them by a name of its own, which nobody typed. */
function wrongDecisions(text: string, subject: string, cause: Error): LakeError | undefined {
  const column = /"yours" does not have a column named "(\w+)"/.exec(text)?.[1]
  if (column === undefined || column.startsWith('_pit_')) return undefined
  const next = `give your table a column ${column}, such as SELECT …, t AS ${column}`
  return usage(subject, {
    expected: 'decisions with the columns asset and ts',
    got: `none named ${column}`,
    next,
    cause,
  })
}

/** A macro that is called with an option that it has not, or with arguments that do not fit. */
function wrongCall(text: string, { statement }: Failure, subject: string, cause: Error): LakeError | undefined {
  const [, macro = '', signature] =
    /^Macro (\w+)\(\) does not support the supplied arguments\..*Candidate macros: \1\((.*)\)$/s.exec(text) ?? []
  if (signature === undefined) return undefined
  const parameters = signature.split(', ').map((parameter) => parameter.split(' := '))
  const names = parameters.flatMap(([name = '']) => [name])
  const options = parameters.flatMap(([name = '', value]) => (value === undefined ? [] : [name]))
  const strange = optionsIn(statement, macro).find((name) => !names.includes(name.toLowerCase()))
  if (strange !== undefined) {
    const next = hint(strange, options)
    return usage(`${subject}: ${macro}`, {
      expected: `an option of it: ${options.join(', ')}`,
      got: strange,
      next,
      cause,
    })
  }
  const needed = names.filter((name) => !options.includes(name))
  return usage(`${subject}: ${macro}`, {
    expected: `${macro}(${needed.join(', ')}), then options by name`,
    got: 'other arguments',
    cause,
  })
}

/** Names of the options in the calls of a macro, as they are typed. */
function optionsIn(statement: string, macro: string): readonly string[] {
  const bare = statement.replaceAll(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?\*\//g, "''")
  const calls = [...bare.matchAll(new RegExp(`\\b${macro}\\s*\\(`, 'gi'))]
  return calls.flatMap(({ index, 0: call }) => {
    let depth = 1
    let end = index + call.length
    for (; end < bare.length && depth > 0; end++) depth += bare[end] === '(' ? 1 : bare[end] === ')' ? -1 : 0
    return [...bare.slice(index + call.length, end).matchAll(/\b(\w+)\s*(?::=|=>)/g)].map(([, name = '']) => name)
  })
}

/**
 * Fatal error of DuckDB, after which it answers no query: `caused` by this query, or `met` because of an earlier one.
 */
export type EngineLoss = 'caused' | 'met'

/** How an error reports that DuckDB answers nothing more in this process; undefined if it goes on. */
export function engineLossIn(error: unknown): EngineLoss | undefined {
  const cause = error instanceof LakeError ? error.cause : error
  const message = cause instanceof Error ? cause.message : ''
  if (!/^(?:TransactionContext Error: )?FATAL Error: /.test(message)) return undefined
  return message.includes('database has been invalidated') ? 'met' : 'caused'
}

function plain(kind: string, text: string, subject: string, cause: Error): LakeError {
  const grave = ['Internal', 'FATAL', 'IO'].includes(kind)
  if (kind === 'INTERRUPT') return new LakeError('stopped', { subject: 'the query was cancelled', cause })
  return new LakeError(grave ? 'unexpected' : 'usage', { subject: `${subject}: ${text}`, cause })
}
