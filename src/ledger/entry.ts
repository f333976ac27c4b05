import { createHash } from 'node:crypto'
import { LakeError } from '../errors.ts'
import type { Instant, Interval, Micros } from '../time.ts'
import { checkEntry } from './entry-shape.ts'
import type { Json } from './shape.ts'

export type { Json }

/** The version of the journal's format that this program writes and the newest that it reads. */
export const journalSchema = 2

/** The schema that written footers name. */
export const footerSchema = String(journalSchema)

/** Who answered: one identity per API, and whether the data are made up. */
export interface Provider {
  readonly metrics?: string | undefined
  readonly registry?: string | undefined
  readonly synthetic: boolean
}

/** One file of the lake. The same path may be listed again under another label, for instance a snapshot date. */
export interface FileEntry {
  /** Relative to the lake, with forward slashes. */
  readonly path: string
  /** `points`, `raw`, or the registry table. */
  readonly table: string
  /** '' for points; for registry tables whatever tells listings of one file apart. */
  readonly label: string
  readonly metric: string | null
  readonly interval: Interval | null
  readonly rows: number
  readonly bytes: number
  /** First and last `t` inside; null where the table has none. */
  readonly min_t: Instant | null
  readonly max_t: Instant | null
  /** Order-independent digest of the content, as the converter computed it; null where it computes none. */
  readonly digest: string | null
  /** SHA-256 of the bytes, hex. */
  readonly sha256: string
  /** Whatever else its writer wants to find again (level of merging, smallest lag, columns …). */
  readonly meta: { readonly [key: string]: Json }
}

/** A series as the journal first names it. */
export interface SeriesRow {
  readonly id: string
  readonly metric: string
  readonly asset: string
  /** For endpoints without intervals null in the id's terms; `settled` then holds the observed spacing. */
  readonly interval: Interval | null
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
  readonly params: { readonly [key: string]: string }
  /** The interval under which its points are stored. */
  readonly settled: Interval | null
}

/** Points that this commit added to a series (negative: that were lost); counts add up, bounds only widen. */
export interface Progress {
  readonly series: string
  readonly points: number
  readonly first_t: Instant
  readonly last_t: Instant
}

export type CoverageState = 'covered' | 'empty' | 'unsupported' | 'failed'

/** What is known about the half-open window of a series; it replaces what was said about that window before. */
export interface CoverageRow {
  readonly series: string
  readonly since: Instant
  readonly until: Instant
  readonly state: CoverageState
  /** Why, or `awaiting` and `gap` for covered windows in which points are missing; null when there is nothing to say. */
  readonly reason: string | null
  readonly asked_at: Instant
  readonly request: string | null
}

/** The same where the series is said elsewhere. */
export type WindowAnswer = Omit<CoverageRow, 'series'>

/** An upstream value that contradicts the stored one; unique per series, t, kind and offered value. */
export interface Violation {
  readonly series: string
  readonly t: Instant
  readonly kind: string
  /** Both values as JSON text, so that no double is lost; null where there is none. */
  readonly stored: string | null
  readonly offered: string | null
  readonly stored_at: Micros | null
  readonly offered_at: Micros
  readonly request: string | null
}

/** A violation, or a refusal of a series that has points, of which a person took note. */
export interface Accepted extends Pick<Violation, 'series' | 't' | 'kind' | 'offered'> {
  readonly id: string
  readonly why: string
}

/** The name of a violation for people: the same wherever it is seen, another one for each offered value. */
export function violationId({
  series,
  t,
  kind,
  offered,
}: Pick<Violation, 'series' | 't' | 'kind' | 'offered'>): string {
  return sha256(JSON.stringify([series, t, kind, offered])).slice(0, 12)
}

/** A contradiction of clocks; unique per series, t and kind. */
export interface Finding {
  readonly series: string
  readonly t: Instant
  readonly kind: string
  readonly detail: Json
  readonly at: Micros
}

/** One request to an API: the facts, never the key. */
export interface RequestRow {
  readonly id: string
  readonly run: string
  readonly api: 'metrics' | 'registry'
  readonly path: string
  readonly query: { readonly [key: string]: string }
  readonly series: string | null
  readonly since: Instant | null
  readonly until: Instant | null
  readonly status: number | null
  readonly outcome: string
  readonly points: number | null
  readonly bytes: number | null
  readonly credits: number | null
  readonly attempts: number
  readonly asked_at: Micros
  readonly seconds: number | null
  readonly detail: Json
  /** The provider's `Date` and `Age`, in seconds; left out where it showed none. */
  readonly clock?: { readonly date: Instant; readonly age: number }
}

/** A result that was stamped: `vacuum` keeps the files of its version. */
export interface Stamp {
  readonly id: string
  readonly version: number
  readonly digest: string
  readonly query_digest: string
  readonly path: string | null
  readonly at: Micros
  readonly detail: Json
}

/** A window that was asked again and compared. */
export interface Verified {
  readonly series: string
  readonly since: Instant
  readonly until: Instant
  readonly at: Micros
  readonly result: string
}

/** The availability rules in force from this commit on. */
export interface Rules {
  readonly digest: string
  readonly rules: Json
}

/** One commit. Keys that this program does not know are kept. */
export interface Entry {
  readonly schema_version: number
  /** Identity of the lake: the same in every entry. */
  readonly lake: string
  readonly version: number
  /** SHA-256 of the entry before; null for the first. */
  readonly previous: string | null
  /** SHA-256 of the entry of this number that was set aside because it could not be applied. */
  readonly replaces?: string
  /** Strictly increasing from version to version, even if the clock steps back. */
  readonly committed_at: Micros
  /** Name and version of the program that wrote it. */
  readonly program: string
  readonly job: string
  readonly run: string | null
  readonly provider: Provider
  readonly files: {
    readonly add: readonly FileEntry[]
    /** Paths that leave the view; their bytes stay until vacuum. */
    readonly remove: readonly string[]
    /** Paths whose bytes vacuum takes away. */
    readonly drop: readonly string[]
  }
  readonly series: readonly SeriesRow[]
  readonly progress: readonly Progress[]
  /** Whole windows of which nothing is known any more; before `coverage`. Left out where there are none. */
  readonly uncovered?: readonly { readonly series: string; readonly since: Instant; readonly until: Instant }[]
  readonly coverage: readonly CoverageRow[]
  readonly violations: readonly Violation[]
  /** Left out by entries before schema 2 and where there are none. */
  readonly accepted?: readonly Accepted[]
  readonly findings: readonly Finding[]
  readonly requests: readonly RequestRow[]
  readonly verified: readonly Verified[]
  /** Of older lakes: a stamp is a note beside the journal now. */
  readonly stamps: readonly Stamp[]
  readonly rules: Rules | null
  /** Named pieces of state (cursor, epoch, week start …); each named one replaces its predecessor. */
  readonly state: { readonly [key: string]: Json }
  readonly [unknown: string]: unknown
}

/** A JSON object as a file of its own: the document begins with the SHA-256 of the rest of itself. */
export function seal(body: string): { text: string; digest: string } {
  const digest = sha256(body)
  return { text: `{"sha256":"${digest}",${body.slice(1)}\n`, digest }
}

/** The object of a sealed file, of which no byte changed; `name` is used in messages. */
export function openSealed(text: string, name: string): { body: string; digest: string } {
  const match = /^\{"sha256":"([0-9a-f]{64})",/.exec(text)
  const digest = match?.[1]
  if (!match || digest === undefined) throw torn(name, text === '' ? 'an empty file' : 'something else')
  const body = `{${text.slice(match[0].length).replace(/\n$/, '')}`
  if (sha256(body) !== digest) throw torn(name, 'bytes that do not match its checksum')
  return { body, digest }
}

/** The entry's file; half surrogates, which JSON writes as escapes, become the replacement sign that the index makes of them. */
export function encodeEntry(entry: Entry): { text: string; digest: string } {
  const body = JSON.stringify(entry)
  const halves = body.includes(String.raw`\ud`)
  return seal(
    halves ? body.replaceAll(/(\\\\)|\\ud[89a-f][0-9a-f]{2}/g, (_, slashes) => String(slashes ?? '\uFFFD')) : body,
  )
}

/** Reads an entry and proves that no byte of it changed; `name` is used in messages. */
export function decodeEntry(text: string, name: string): { entry: Entry; digest: string } {
  const { body, digest } = openSealed(text, `journal entry ${name}`)
  const entry = JSON.parse(body) as Entry
  refuseNewer(entry.schema_version, name)
  checkEntry(entry, name)
  return { entry, digest }
}

/** Refuses what a newer program wrote. */
export function refuseNewer(schema: unknown, name: string): void {
  if (typeof schema === 'number' && schema <= journalSchema) return
  throw new LakeError('usage', {
    subject: `journal entry ${name}`,
    expected: `schema_version up to ${journalSchema}`,
    got: String(schema),
    next: 'this lake was written by a newer pitlake: update the program',
  })
}

function torn(name: string, got: string): LakeError {
  return new LakeError('integrity', {
    subject: `${name} is damaged`,
    expected: 'a document with its checksum',
    got,
    next: 'run pitlake doctor, or put the file back from a copy of the lake',
  })
}

/** SHA-256 of a text, hex. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** JSON text with sorted keys: equal values give equal texts. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, held: unknown) => {
    if (held === null || typeof held !== 'object' || Array.isArray(held)) return held
    const entries = Object.entries(held).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return Object.fromEntries(entries)
  })
}
