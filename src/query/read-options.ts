import { isDeepStrictEqual } from 'node:util'
import { usage } from '../base/errors.ts'
import { didYouMean, hint, spanHint, suggestion } from '../base/suggestion.ts'
import { isObject } from '../base/json.ts'
import { parseDuration, parseMicros } from '../base/time.ts'
import { type Door, optionAt } from './note-texts.ts'
import { type OptionKind, camel, knowledgeOptions, type OptionFact, type Options, type ReadOptions } from './options.ts'
import { calendarOf, parseCalendarSpan } from './panel-calendar.ts'
import type { Engine } from '../lake/store/engine.ts'
import { variablesIn } from './parse-tree.ts'

/**
 * Reads the options of a question by the table that describes them. Every interface refuses the same values and names
 * the option as it is typed there. A text can be a list, a switch or a grid, too, as addresses and flags write them.
 */
export function readOptions<Table extends Options>(
  table: Table,
  values: Readonly<Record<string, unknown>>,
  door: Door,
) {
  const key = (name: string): string => (door === 'fields' ? name : camel(name))
  const optionNames = Object.keys(table).map(key)
  const strange = Object.keys(values).find((name) => values[name] !== undefined && !optionNames.includes(name))
  if (strange !== undefined) {
    const near = suggestion(strange, optionNames)
    throw usage(strange, {
      expected: 'a known option',
      next: didYouMean(near === undefined ? [] : [near], optionNames.join(', ')),
    })
  }
  const read = Object.entries(table).flatMap(([name, fact]): [string, unknown][] => {
    const value = values[key(name)]
    const subject = optionAt(door, name)
    if (value !== undefined) return [[camel(name), readers[fact.kind](subject, value, fact, door)]]
    if (fact.required === true) throw usage(subject, { expected: expectedOf[fact.kind](fact), got: 'nothing' })
    return []
  })
  return Object.fromEntries(read) as ReadOptions<Table>
}

/** Reads one value that an option describes; `subject` is what named it. */
export function readOption(fact: OptionFact, subject: string, value: unknown): unknown {
  return readers[fact.kind](subject, value, fact, 'fields')
}

/** Whether two values of an option say the same. */
export function saysSame(table: Options, name: string, first: unknown, other: unknown): boolean {
  const fact = Object.hasOwn(table, name) ? table[name] : undefined
  const read = (value: unknown): unknown => (fact === undefined ? value : readOption(fact, name, value))
  return isDeepStrictEqual(read(first), read(other))
}

/** Splits options, in snake case, into those that a table describes and the rest. */
export function splitKnownOptions(table: Options, given: Readonly<Record<string, unknown>>) {
  const [matching, rest] = [true, false].map((mine) =>
    Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(table, name) === mine)),
  )
  return { own: matching ?? {}, rest: rest ?? {} }
}

/** Expected value of each kind of option, in words. */
const expectedOf: Readonly<Record<OptionKind, (fact: OptionFact) => string>> = {
  instant: () => 'an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC',
  span: () => 'a time such as 15m or 2d',
  calendarSpan: () => 'a span such as 90d or 3month',
  text: () => 'a text',
  list: () => 'names, at least one',
  switch: () => 'true or false',
  choice: ({ choices = [] }) => choices.join(', '),
  choices: ({ choices = [] }) => choices.join(', '),
  metrics: () => 'paths of metrics, each metric once',
  count: ({ most }) => `a whole number from 1${most === undefined ? ' on' : ` to ${most}`}`,
  grid: () => 'a grid such as 2024-01-01,2025-01-01,1d',
  records: () => 'records, each with an instant as its ts',
}

/** Reads a value of an option, or refuses it. */
type Reader = (subject: string, value: unknown, fact: OptionFact, door: Door) => unknown

/** Refuses a value that fits nothing, and shows it as it was given. */
function refuse(subject: string, value: unknown, fact: OptionFact, got = quoteValue(value)): never {
  const hinted = (text: string): string | undefined =>
    fact.kind === 'span' || fact.kind === 'calendarSpan'
      ? spanHint(text, fact.kind === 'calendarSpan')
      : hint(text, fact.choices ?? [])
  const next = typeof value === 'string' ? hinted(value) : undefined
  throw usage(subject, { expected: expectedOf[fact.kind](fact), got, next })
}

function quoteValue(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing'
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== ''

const readers: Readonly<Record<OptionKind, Reader>> = {
  instant: (subject, value, fact) => {
    if (value instanceof Date && !Number.isNaN(value.getTime())) return value.toISOString()
    return isText(value) && isInstant(value) ? value.trim() : refuse(subject, value, fact)
  },
  span: (subject, value, fact) =>
    (value === 0 ? 0 : isText(value) ? parseDuration(value) : undefined) ?? refuse(subject, value, fact),
  calendarSpan: (subject, value, fact) =>
    (value === 0 ? '0 seconds' : isText(value) ? parseCalendarSpan(value) : undefined) ?? refuse(subject, value, fact),
  text: (subject, value, fact) => (isText(value) ? value : refuse(subject, value, fact)),
  list: (subject, value, fact) => {
    const list = parts(value)
    return list !== undefined && list.length > 0 ? list : refuse(subject, value, fact)
  },
  switch: (subject, value, fact) =>
    value === true || value === 'true'
      ? true
      : value === false || value === 'false'
        ? false
        : refuse(subject, value, fact),
  choice: (subject, value, fact) => chosen(subject, value, fact),
  choices: (subject, value, fact) => {
    const list = parts(value)
    return list !== undefined && list.length > 0
      ? list.map((choice) => chosen(subject, choice, fact))
      : refuse(subject, value, fact)
  },
  metrics: readMetrics,
  count: (subject, value, fact) => {
    const { most = Number.MAX_SAFE_INTEGER } = fact
    return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most ? value : refuse(subject, value, fact)
  },
  grid: (subject, value) => {
    const { since, until, step } = isObject(value) ? value : {}
    return calendarOf(
      subject,
      typeof value === 'string'
        ? value.split(',')
        : [since, until, step].map((part) => (typeof part === 'string' ? part : '')),
    )
  },
  records: (subject, value, fact, door) => {
    if (!Array.isArray(value) || (value.length === 0 && door === 'fields')) return refuse(subject, value, fact)
    for (const [n, element] of value.entries()) {
      const at: unknown = isObject(element) ? element['ts'] : undefined
      // A program may have a decision whose instant it does not know: nothing was knowable at it.
      const good = at === null ? door === 'typescript' : at instanceof Date || (isText(at) && isInstant(at))
      if (!good) return refuse(`${subject}.${n}.ts`, at, instantFact)
    }
    return value as readonly unknown[]
  },
}

const instantFact = { kind: 'instant', about: '' } as const

/** Whether a text is an instant: it begins with its year, so a number of seconds is none. */
function isInstant(text: string): boolean {
  return /^\s*\d{4}-/.test(text) && parseMicros(text) !== undefined
}

/** Splits a list of names, which may be a text with commas; undefined if it is none. */
function parts(value: unknown): readonly string[] | undefined {
  const list: readonly unknown[] | undefined =
    typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : undefined
  return list?.every(isText) ? list.map((element) => element.trim()) : undefined
}

function chosen(subject: string, value: unknown, fact: OptionFact): string {
  return fact.choices?.find((choice) => choice === value) ?? refuse(subject, value, fact)
}

function readMetrics(subject: string, value: unknown, fact: OptionFact) {
  const mapping = typeof value === 'object' && value !== null && !Array.isArray(value)
  const columns = mapping
    ? Object.entries(value).map(([name, metric]) => (isText(metric) ? { name, metric } : refuse(subject, value, fact)))
    : parts(value)?.map(columnOf)
  if (columns === undefined || columns.length === 0) return refuse(subject, value, fact, 'nothing')
  const twice = columns.find(({ name }, n) => columns.findIndex((other) => other.name === name) !== n)
  return twice === undefined ? columns : refuse(subject, value, fact, twice.name)
}

/** Parses a column: `price=price_usd` names it; a pointer may contain such a sign, too, but comes after a path. */
function columnOf(text: string) {
  const [, name = text, metric = text] = /^([A-Za-z_]\w*)=(.+)$/.exec(text) ?? []
  return { name, metric }
}

/** The variables that views and macros obey. */
const knownVariables: readonly string[] = Object.keys(knowledgeOptions)

/**
 * Reads session variables that a caller set. Their names are in lower case from here on, because DuckDB ignores it;
 * those that the views obey must have a value that they know.
 */
export function readVariables<Value>(set: Readonly<Record<string, Value>>): Record<string, Value> {
  const variables = Object.fromEntries(Object.entries(set).map(([name, value]) => [name.toLowerCase(), value]))
  for (const name of ['backfill', 'registry_backfill'] as const)
    if (variables[name] !== undefined && variables[name] !== null)
      readOption(knowledgeOptions[name], optionAt('terminal', name), variables[name])
  return variables
}

/** Lists the names, in lower case, that are neither variables of the lake nor read with `getvariable` in the script. */
export async function findUnusedNames(
  engine: Engine,
  names: readonly string[],
  script: string,
): Promise<readonly string[]> {
  const strange = names.filter((name) => !knownVariables.includes(name))
  const variables = strange.length === 0 ? new Set() : await variablesIn(engine, script)
  return strange.filter((name) => !variables.has(name))
}

/**
 * Refuses unknown names: a misspelt one would silently change nothing. Unless `surely`, before a query is known, only
 * those near a known name are refused.
 */
export function refuseStrange(names: readonly string[], surely = true): void {
  const first = names.find((name) => surely || suggestion(name, knownVariables) !== undefined)
  if (first === undefined) return
  const near = suggestion(first, knownVariables)
  throw usage(`--set ${first}`, {
    expected: `${knownVariables.join(', ')}, or a name that the query reads with getvariable`,
    ...(near !== undefined && { next: `did you mean ${near}?` }),
  })
}
