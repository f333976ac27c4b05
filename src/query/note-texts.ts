import { noteWords, type NoteCode } from './views/question-words.ts'
import { camel, knowledgeOptions, type OptionFact } from './options.ts'

/** Note about an answer: why it may be empty, or what you may have meant. Each interface writes it in its own words. */
export interface Note {
  /** Kind of the note. */
  readonly code: NoteCode
  /** Metric, asset or condition that it is about. */
  readonly subject: string
  /** Numbers and names in its text; times as UTC texts. */
  readonly figures?: Readonly<Record<string, string | number>>
  /** Names that may have been meant, the nearest first. */
  readonly near?: readonly string[]
  /** Possible names, if none is near or a component must be named. */
  readonly there?: readonly string[]
}

/** Interfaces that pass questions on; each spells an option in its own way. */
export type Door = keyof typeof spelling

const spelling = {
  /** A command line. */
  terminal: (name: string, value?: string) => {
    const [flag, sign] = isSet(name) ? [`--set ${name}`, '='] : [`--${name.replaceAll('_', '-')}`, ' ']
    return value === undefined ? flag : `${flag}${sign}${value}`
  },
  /** The fields of a request over HTTP, or of an agent's. */
  fields: (name: string, value?: string) => field(name, value, '"'),
  typescript: (name: string, value?: string) => field(camel(name), value, "'"),
} as const

/** Whether a command line knows an option as a session variable only. */
const isSet = (name: string): boolean =>
  Object.entries<OptionFact>(knowledgeOptions).some(([optionName, { set }]) => optionName === name && set === true)

function field(name: string, value: string | undefined, mark: string): string {
  if (value === undefined) return name
  return `${name}: ${/^(?:true|false|\d+)$/.test(value) ? value : `${mark}${value}${mark}`}`
}

/** Formats an option, with the value it should have, as the caller of an interface would type it. */
export function optionAt(door: Door, name: string, value?: string): string {
  const typed = spelling[door](name, value)
  return value === undefined ? typed : `\`${typed}\``
}

/** Formats a note in words for the caller of an interface. */
export function noteText(note: Note, door: Door): string {
  const { code, subject, figures = {}, there = [] } = note
  return noteWords[code].replaceAll(/\{(?:option (\w+)(?:=(\w+))?|(\w+))\}/g, (_, option, value, name: string) => {
    if (typeof option === 'string') return optionAt(door, option, value as string | undefined)
    if (name === 'near') return nearText(note)
    if (name === 'such') return there.length === 0 ? '' : `, such as ${quoted(there).slice(0, 2).join(' or ')}`
    return String(name === 'subject' ? subject : (figures[name] ?? ''))
  })
}

/** Formats notes in the words of an interface. */
export function noteTexts(notes: readonly Note[], door: Door): readonly string[] {
  return notes.map((note) => noteText(note, door))
}

/** Notes each once, the first of those that tell the same. */
export function distinctNotes(notes: readonly Note[]): readonly Note[] {
  return [...new Map(notes.map((note) => [JSON.stringify(note), note])).values()]
}

function nearText({ near = [], there = [] }: Note): string {
  if (near.length > 0) return `; did you mean ${quoted(near).join(' or ')}?`
  return there.length === 0
    ? ''
    : `; there ${there.length === 1 ? 'is' : 'are'} ${quoted(there).slice(0, 6).join(', ')}`
}

function quoted(names: readonly string[]): readonly string[] {
  return names.map((name) => `'${name}'`)
}
