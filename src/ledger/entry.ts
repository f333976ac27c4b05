import { createHash } from 'node:crypto'
import { LakeError } from '../errors.ts'
import type { Instant, Micros } from '../time.ts'
import type * as shapes from './entry-shape.ts'
import { checkEntry } from './entry-shape.ts'
import type { Json, Shaped } from './shape.ts'

export type { Json }

/** The version of the journal's format that this program writes and the newest that it reads. */
export const journalSchema = 2

/** The schema that written footers name. */
export const footerSchema = String(journalSchema)

export type Provider = Shaped<typeof shapes.providerFields>
export type FileEntry = Shaped<typeof shapes.fileFields>
export type SeriesRow = Shaped<typeof shapes.seriesFields>
export type Progress = Shaped<typeof shapes.progressFields>
export type WindowAnswer = Shaped<typeof shapes.windowFields>
export type CoverageRow = WindowAnswer & { readonly series: string }
export type CoverageState = CoverageRow['state']
export type Violation = Shaped<typeof shapes.violationFields>
export type Accepted = Shaped<typeof shapes.acceptedFields>
export type Finding = Shaped<typeof shapes.findingFields>
export type RequestRow = Shaped<typeof shapes.requestFields>
export type Stamp = Shaped<typeof shapes.stampFields>
export type Verified = Shaped<typeof shapes.verifiedFields>
export type Rules = Shaped<typeof shapes.ruleFields>

/** The name of a violation for people: the same wherever it is seen, another one for each offered value. */
export function violationId({
  series,
  t,
  kind,
  offered,
}: Pick<Violation, 'series' | 't' | 'kind' | 'offered'>): string {
  return sha256(JSON.stringify([series, t, kind, offered])).slice(0, 12)
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
