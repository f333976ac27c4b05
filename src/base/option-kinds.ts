import { usage } from './errors.ts'
import { hint } from './suggestion.ts'
import { parseDuration, parseInstant } from './time.ts'

/** The kind of an option: how its text is read, and which words may be offered for it. */
export interface Kind<T = unknown> {
  readonly name: 'text' | 'count' | 'number' | 'span' | 'instant' | 'choice' | 'list' | 'file' | 'folder'
  /** Parses the value from a text; a mistake is one line about the subject, such as `--max-age`. */
  readonly read: (subject: string, text: string) => T
  /** Accepted values: a fixed list of words, or names that a catalogue or a lake provides. */
  readonly words?: readonly string[] | 'metrics' | 'assets' | 'resources'
}

const asItIs = (_: string, text: string): string => text

const text: Kind<string> = { name: 'text', read: asItIs }
const file: Kind<string> = { name: 'file', read: asItIs }
const folder: Kind<string> = { name: 'folder', read: asItIs }

/** Builds the kind of an integer of at least `least`. */
function count(least: 0 | 1 = 1, expected = least === 0 ? 'a whole number' : 'a whole number above 0'): Kind<number> {
  const read = (subject: string, typed: string): number => {
    if (/^(?:0|[1-9]\d{0,11})$/.test(typed) && Number(typed) >= least) return Number(typed)
    throw usage(subject, { expected, got: typed })
  }
  return { name: 'count', read }
}

/** Builds the kind of a number that satisfies `fits`, described in messages by `expected`. */
function number(expected: string, fits: (value: number) => boolean): Kind<number> {
  const read = (subject: string, typed: string): number => {
    const value = typed.trim() === '' ? Number.NaN : Number(typed)
    if (fits(value)) return value
    throw usage(subject, { expected, got: `"${typed}"` })
  }
  return { name: 'number', read }
}

/** Builds the kind of a duration with its unit, in seconds; `such` gives examples. With `some` it must not be zero. */
function span(such = '15m or 2d', some = false): Kind<number> {
  const read = (subject: string, typed: string): number => {
    const seconds = parseDuration(typed)
    if (seconds !== undefined && (seconds > 0 || !some)) return seconds
    throw usage(subject, { expected: `a time such as ${such}`, got: `"${typed}"` })
  }
  return { name: 'span', read }
}

/** Bytes. */
export const mega: number = 2 ** 20

/** Description of a size, for messages. */
export const suchSize = 'a size such as 512MB or 16GB'

/** Parses a size with its unit into bytes; undefined for any other text. */
export function bytesOf(size: string): number | undefined {
  const [, figure, unit = ''] = /^(\d+(?:\.\d+)?) ?([kmgt])i?b$/i.exec(size) ?? []
  return figure === undefined
    ? undefined
    : Math.floor(Number(figure) * 1024 ** ('kmgt'.indexOf(unit.toLowerCase()) + 1))
}

/** Formats bytes as a size, rounded up. */
export function sizeText(bytes: number): string {
  return bytes % (1024 * mega) === 0 ? `${bytes / 1024 / mega}GB` : `${Math.ceil(bytes / mega)}MB`
}

/** A size with its unit, in bytes. */
const size: Kind<number> = {
  name: 'text',
  read: (subject, typed) => {
    const bytes = bytesOf(typed)
    if (bytes !== undefined) return bytes
    throw usage(subject, { expected: suchSize, got: typed })
  },
}

/** Builds the kind of a name and its value. */
function pair(expected: string, name = /^[^=]+$/): Kind<readonly [name: string, value: string]> {
  const read = (subject: string, typed: string): readonly [string, string] => {
    const [, key = '', value = ''] = /^([^=]*)=([\s\S]*)$/.exec(typed) ?? []
    if (name.test(key)) return [key, value]
    throw usage(subject, { expected, got: typed })
  }
  return { name: 'text', read }
}

/** A timestamp in Unix seconds. */
const instant: Kind<number> = {
  name: 'instant',
  read: (subject, typed) => {
    const at = parseInstant(typed)
    if (at !== undefined) return at
    throw usage(subject, { expected: 'a date such as 2024-06-01 or an instant with Z', got: typed })
  },
}

/** Builds the kind of an option whose value is one of these words. */
function choice<Word extends string>(words: readonly Word[]): Kind<Word> {
  const read = (subject: string, typed: string): Word => {
    const found = words.find((word) => word === typed)
    if (found !== undefined) return found
    throw usage(subject, { expected: words.join(', '), got: `"${typed}"`, next: hint(typed, words) })
  }
  return { name: 'choice', read, words }
}

/** Builds the kind of a comma-separated list; `words` are offered as completions. */
function listOf<T>(each: Kind<T>, words = each.words): Kind<readonly T[]> {
  const read = (subject: string, typed: string): readonly T[] => {
    const parts = typed.split(',').map((part) => part.trim())
    return parts.filter((part) => part.length > 0).map((part) => each.read(subject, part))
  }
  return { name: 'list', read, ...(words && { words }) }
}

/** Builds the kind of a comma-separated list of texts. */
const list = (words?: Kind['words']): Kind<readonly string[]> => listOf(text, words)

/** Every kind. */
export const kinds = {
  text,
  file,
  folder,
  count,
  number,
  span,
  size,
  pair,
  instant,
  choice,
  list,
  listOf,
} as const

const named = {
  FILE: file,
  DIR: folder,
  DEST: folder,
  N: count(),
  SECONDS: count(),
  DURATION: span('7d or 12h'),
  TIME: instant,
  LIST: list(),
} as const

/** Kinds of lists whose words a catalogue or a lake provides, by the options that take them. */
const kindsByName: Readonly<Record<string, Kind>> = {
  '--paths LIST': list('metrics'),
  '--assets LIST': list('assets'),
  '--resources LIST': list('resources'),
}

/** The kinds that flags name, by their words. */
export type NamedKinds = typeof named

/**
 * Returns the kind that flags such as `--out FILE`, or an argument such as `<file>`, name; text if they name none of
 * these.
 */
export function kindOf(flags: string): Kind {
  const [, word = ''] = /(?: |^[<[])(\w+)[^ ]*$/.exec(flags) ?? []
  return kindsByName[flags] ?? Object.entries(named).find(([name]) => name === word.toUpperCase())?.[1] ?? text
}
