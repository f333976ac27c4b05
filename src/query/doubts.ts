import { type Engine, quote } from '../store/engine.ts'
import type { NoteCode } from '../views/note-words.ts'
import { instantSql } from '../views/template.ts'
import type { Empty } from './filled.ts'
import { isCancel } from './run.ts'
import type { Note } from './note.ts'
import { withAsOf } from './with-as-of.ts'

/** What was asked of a metric, as `question_notes` takes it; `*` is any metric. */
export interface AskedMetric {
  /** Path, with a pointer behind `#` where one was named. */
  readonly name: string
  readonly interval: readonly string[]
  readonly asset: readonly string[]
  readonly currency: readonly string[]
  readonly exchange: readonly string[]
  readonly network: readonly string[]
  readonly component: string | null
  /** Whether the catalogue's dimensions stand in where none is named. */
  readonly defaults: boolean
  /** Whether nothing was told of any asset. */
  readonly everywhere: boolean
  /** The newest instant asked; null where all is. */
  readonly last: string | null
  /** Whether a part of all `t` was asked. */
  readonly times: boolean
}

/** Decisions later than what is settled of a metric: how many, and the first of them. */
export interface Beyond {
  readonly metric: string
  readonly decisions: number
  readonly since: string
}

/** What the lake is asked to note. */
export interface AskedNotes {
  readonly metrics?: readonly AskedMetric[]
  /** The constants of a query, and the views and macros that it reads. */
  readonly texts?: readonly string[]
  readonly tables?: readonly string[]
  /** Whether the answer is one to wonder about. */
  readonly empty?: boolean
  readonly beyond?: readonly Beyond[]
}

/** What was asked of a metric, all of it where nothing else is said. */
export function askedMetric(name: string, rest: Partial<AskedMetric>): AskedMetric {
  const any = { interval: [], asset: [], currency: [], exchange: [], network: [], component: null, last: null }
  return { name, ...any, defaults: true, everywhere: false, times: false, ...rest }
}

/** Columns that hold nothing for most metrics. */
const oftenNull: ReadonlySet<string> = new Set([
  'currency',
  'exchange',
  'network',
  'o',
  'extra',
  'computed_at',
  'component',
])

/** Whether a result is one to wonder about: no rows, a column that tells nothing although it mostly does, a count of nothing. */
export function isDoubtful(rows: number, empty: readonly Empty[], counts: boolean): boolean {
  const isStrange = ({ column, everywhere, zero }: Empty): boolean =>
    zero === true ? counts : everywhere && !oftenNull.has(column.toLowerCase())
  return rows === 0 || empty.some(isStrange)
}

/**
 * What the lake notes of a question. Where `as_of` is mandatory (`cut`) it tells what was known then and no more; elsewhere
 * it looks past it, because since when something is known is what helps.
 */
export async function notesOf(engine: Engine, asked: AskedNotes, cut: boolean): Promise<readonly Note[]> {
  if (!Object.values(asked).some((one) => one === true || (Array.isArray(one) && one.length > 0))) return []
  const notes = await aside(async () => {
    const asOf = await asOfText(engine)
    const question = quote(JSON.stringify({ ...asked, as_of: asOf }))
    const ask = async (): Promise<Note[]> =>
      (await engine.rows<NoteRow>(`FROM question_notes(${question})`)).map(noteOf)
    return cut || asOf === null ? await ask() : await withAsOf(engine, undefined, ask)
  })
  return notes ?? []
}

/** The instant at which a session stands; null where it stands at none. */
export async function asOfText(engine: Engine): Promise<string | null> {
  const [row] = await engine.rows<{ at: string | null }>(`SELECT CAST(${instantSql('as_of')} AS VARCHAR) AS at`)
  return row?.at ?? null
}

/** What is asked beside a question never stands in its way: a lake of another program, for one, may not know how to answer. */
export async function aside<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (isCancel(error)) throw error
    return undefined
  }
}

type NoteRow = {
  readonly code: NoteCode
  readonly subject: string
  readonly figures: string | null
  readonly near: string[]
  readonly there: string[]
  readonly words: string
}

/** A note of the lake; of its figures those that its words tell. */
function noteOf({ code, subject, figures, near, there, words }: NoteRow): Note {
  const all = Object.entries(JSON.parse(figures ?? '{}') as Readonly<Record<string, string | number | null>>)
  const told = all.filter((one): one is [string, string | number] => one[1] !== null && words.includes(`{${one[0]}}`))
  return {
    code,
    subject,
    ...(told.length > 0 && { figures: Object.fromEntries(told) }),
    ...(near.length > 0 && { near }),
    ...(there.length > 0 && { there }),
  }
}
