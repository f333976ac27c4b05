import { hash } from 'node:crypto'
import { LakeError, usage } from '../../base/errors.ts'
import {
  checksOf,
  clockFindingColumns,
  clockFindingKinds,
  type ClockFindingKind,
  providerFields,
  requestColumns,
  valueTypeColumns,
  violationColumns,
  windowColumns,
} from './columns.ts'
import {
  count,
  flag,
  interval,
  json,
  listOf,
  mapOf,
  maybe,
  orNull,
  real,
  shape,
  text,
  wholeNumber,
  type Json,
  type Shaped,
  type ValueCheck,
} from '../../base/value-checks.ts'

export type { Json }
export { clockFindingKinds, providerFields }
export type { ClockFindingKind }

/**
 * Number of the lake's layout, which entries, checkpoints and footers of data files contain. A program reads and writes
 * one layout only. The number rises with every change that an earlier program would misread; it is not the program's
 * version.
 */
export const layoutNumber = 7

/** One file of the lake. The same path may be listed again under another label, for instance a snapshot date. */
export const fileFields = {
  /** Path relative to the lake, with forward slashes. */
  path: text,
  /** `points`, `raw`, or the registry table. */
  table: text,
  /** '' for points; for registry tables, a text that distinguishes several listings of one file. */
  label: text,
  metric: orNull(text),
  interval,
  rows: count,
  bytes: count,
  /** First and last `t` inside, in seconds; null if the table has none. */
  min_t: orNull(real),
  max_t: orNull(real),
  /** Order-independent digest of the content, as the converter computed it; null if it computes none. */
  digest: orNull(text),
  /** SHA-256 of the bytes, hex. */
  sha256: text,
  /** Further facts that its writer needs later (level of merging, smallest lag, columns …). */
  meta: mapOf(json),
}

/** A series as the journal first names it. */
export const seriesFields = {
  id: text,
  metric: text,
  asset: text,
  /** Interval in the id; null if the endpoint has no intervals, and `settled` is then the observed spacing. */
  interval,
  currency: orNull(text),
  exchange: orNull(text),
  network: orNull(text),
  params: mapOf(text),
  /** The interval under which its points are stored. */
  settled: interval,
}

/** A count and a digest: `-3 0123456789abcdef`. */
const monthSum: ValueCheck<string> = (value) =>
  typeof value === 'string' && /^-?\d{1,15} [0-9a-f]{16}$/.test(value) ? undefined : 'no count and digest'

/**
 * Points that a commit added to a series (negative if points were lost); counts add up, bounds (seconds) only widen.
 * `digests`: changes to the count and the digest of each month, see `MonthDigest`; left out if no month changes.
 * `vintages`: number of these points that are further vintages of points that had a value; left out if there are none.
 */
const progressFields = {
  series: text,
  points: wholeNumber,
  first_t: real,
  last_t: real,
  digests: maybe(mapOf(monthSum)),
  vintages: maybe(count),
}

/**
 * Points of a month (`2024-06`) that were lost with a file, in the hull `[since, until)` of their windows: their number
 * and their digest; null if the ledger does not know the digests of all points of the series.
 */
export const forgottenFields = {
  series: text,
  month: text,
  since: wholeNumber,
  until: wholeNumber,
  points: orNull(wholeNumber),
  digest: orNull(text),
}

/**
 * Lost points that were received again; `proven`: unchanged according to their digest, otherwise they count as known
 * from this commit on.
 */
const regainedFields = { series: text, month: text, points: count, proven: flag }

/**
 * A coverage range: the known facts about a half-open window (seconds) of a series. It replaces earlier ranges of that
 * window.
 */
export const windowFields = checksOf(windowColumns)

/** The fields that identify an upstream contradiction: `t` in seconds, the offered value as JSON text. */
const contradiction = { series: text, t: real, kind: text, offered: orNull(text) }

/** An upstream value that contradicts the stored one, both as JSON text; times in microseconds. */
export const violationFields = { series: text, ...checksOf(violationColumns) }

/**
 * The part of an incident (many differences of one day) of one series, kind and request: windows in which all stored
 * points were missing, or values that differed from the stored ones.
 */
const incidentFields = {
  incident: text,
  series: text,
  kind: text,
  offered_at: real,
  request: orNull(text),
  windows: maybe(listOf(shape({ t: real, until: real, points: count }))),
  stored_at: maybe(real),
  values: maybe(listOf(shape({ t: real, stored: text, offered: text }))),
}

/**
 * Violations of a series that a later answer no longer shows: the named ones, single or of an incident, or all open
 * ones of the incident.
 */
const passedFields = {
  series: text,
  incident: maybe(text),
  differences: maybe(listOf(shape({ t: real, kind: text, offered: orNull(text), until: maybe(real) }))),
}

/** A violation, an incident, or a refusal of a series that has points, that a person acknowledged. */
export const acceptedFields = { ...contradiction, id: text, why: text }

/** A clock finding; unique per series, t (seconds) and kind; `at` in microseconds. */
const findingFields = { series: text, ...checksOf(clockFindingColumns) }

/**
 * A type that values of a metric have at a position, first shown by points that could be known from `available_at` on,
 * or from `ruled_at` on if the rule dates backfilled points (microseconds). `after` is the type after which it
 * reappeared, or null at its first appearance; in the former case either time may be null, if it did not reappear by
 * that clock.
 */
export const valueTypeFields = { ...checksOf(valueTypeColumns), after: orNull(text) }

/** One request to an API: its columns in `columns.ts`. */
export const requestFields = checksOf(requestColumns)

/** A window (seconds) that was requested again and compared, `at` in microseconds. */
export const verifiedFields = { series: text, since: wholeNumber, until: wholeNumber, at: real, result: text }

/** A result that was stamped (microseconds); `vacuum` keeps the files of its version. */
export const stampFields = {
  id: text,
  version: count,
  digest: text,
  query_digest: text,
  path: orNull(text),
  at: real,
  detail: json,
}

/** The availability rules in force from a commit on. */
export const ruleFields = { digest: text, rules: json }

/** One commit. Keys that this program does not know are preserved. */
const entryFields = {
  schema_version: count,
  /** Identity of the lake: the same in every entry. */
  lake: text,
  version: count,
  /** SHA-256 of the previous entry; null for the first. */
  previous: orNull(text),
  /** SHA-256 of the entry of this number that was set aside because it could not be applied. */
  replaces: maybe(text),
  /** Strictly increasing from version to version, even if the clock steps back. */
  committed_at: wholeNumber,
  /** Name and version of the program that wrote it. */
  program: text,
  job: text,
  run: orNull(text),
  provider: shape(providerFields),
  /**
   * Changes to the files of the view. `remove`: paths that leave the view, whose bytes stay until vacuum; `drop`: paths
   * whose bytes vacuum removes.
   */
  files: shape({ add: listOf(shape(fileFields)), remove: listOf(text), drop: listOf(text) }),
  series: listOf(shape(seriesFields)),
  progress: listOf(shape(progressFields)),
  /** Points that were lost with files; left out if there are none. */
  forgotten: maybe(listOf(shape(forgottenFields))),
  /** Points that were lost and received again; left out if there are none. */
  regained: maybe(listOf(shape(regainedFields))),
  /** Whole windows about which nothing is known any more; applied before `coverage`, left out if there are none. */
  uncovered: maybe(listOf(shape({ series: text, since: wholeNumber, until: wholeNumber }))),
  coverage: listOf(shape({ series: text, ...windowFields })),
  violations: listOf(shape(violationFields)),
  /** Incidents; left out if there are none. */
  incidents: maybe(listOf(shape(incidentFields))),
  /**
   * Violations that were reverted upstream, applied before `violations` and `incidents`; left out if there are none.
   */
  passed: maybe(listOf(shape(passedFields))),
  /** Violations that a person acknowledged; left out if there are none. */
  accepted: maybe(listOf(shape(acceptedFields))),
  findings: listOf(shape(findingFields)),
  /** Types of values; left out if there are none. */
  value_types: maybe(listOf(shape(valueTypeFields))),
  /** Metrics whose recorded types are no longer valid; applied before `value_types`, left out if there are none. */
  retyped: maybe(listOf(text)),
  requests: listOf(shape(requestFields)),
  verified: listOf(shape(verifiedFields)),
  rules: orNull(shape(ruleFields)),
  /** Named pieces of state (cursor, epoch, week start …); each named one replaces its predecessor. */
  state: mapOf(json),
}

export type Provider = Shaped<typeof providerFields>
export type FileEntry = Shaped<typeof fileFields>
export type SeriesRow = Shaped<typeof seriesFields>
export type Progress = Shaped<typeof progressFields>
/** The part of an incident that one series, one kind and one request contributed. */
export type IncidentPart = Shaped<typeof incidentFields>
export type Forgotten = Shaped<typeof forgottenFields>
export type Regained = Shaped<typeof regainedFields>
export type WindowAnswer = Shaped<typeof windowFields>
export type CoverageRow = WindowAnswer & { readonly series: string }
// Derived, because the column in `windowColumns` lists the states once.
export type CoverageState = CoverageRow['state']
/** `until` and `points`: of a window, half-open in seconds, whose points were all missing. */
export type Violation = Shaped<typeof violationFields> & {
  readonly incident?: string
  readonly until?: number
  readonly points?: number
}
export type Accepted = Shaped<typeof acceptedFields>
export type ValueType = Shaped<typeof valueTypeFields>
export type Finding = Shaped<typeof findingFields>
export type RequestRow = Shaped<typeof requestFields>
export type Stamp = Shaped<typeof stampFields>
export type Verified = Shaped<typeof verifiedFields>
export type Rules = Shaped<typeof ruleFields>
/** Violations of a series that were reverted upstream: a later answer no longer shows them. */
export type RevertedViolations = Shaped<typeof passedFields>
/** Named pieces of committed state, by key. */
export type NamedState = { readonly [key: string]: Json }
/** The parts of an entry that this program knows. */
export type EntryParts = Shaped<typeof entryFields>
export type Entry = EntryParts & { readonly [unknown: string]: unknown }

const checkShape = shape(entryFields)

/** Returns the name of a violation for people: always the same for one violation, different for each offered value. */
export function violationId({
  series,
  t,
  kind,
  offered,
}: Pick<Violation, 'series' | 't' | 'kind' | 'offered'>): string {
  return sha256(JSON.stringify([series, t, kind, offered])).slice(0, 12)
}

/** Advice for a file of the journal that is damaged or missing. */
export const putItBack = 'run pitlake doctor, or put the file back from a copy of the lake'

/** Seals a JSON object as a file of its own, which begins with the SHA-256 of the rest of it. */
export function seal(body: string): { text: string; digest: string } {
  const digest = sha256(body)
  return { text: `{"sha256":"${digest}",${body.slice(1)}\n`, digest }
}

/** Opens a sealed file of which no byte changed; `name` is used in messages. */
export function openSealed(text: string, name: string): { body: string; digest: string } {
  const match = /^\{"sha256":"([0-9a-f]{64})",/.exec(text)
  const digest = match?.[1]
  if (!match || digest === undefined) throw damagedDocument(name, text === '' ? 'an empty file' : 'something else')
  const body = `{${text.slice(match[0].length).replace(/\n$/, '')}`
  if (sha256(body) !== digest) throw damagedDocument(name, 'bytes that do not match its checksum')
  return { body, digest }
}

/**
 * Encodes an entry; unpaired surrogates, which JSON writes as escapes, become the replacement character, as in the
 * index.
 */
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
  refuseOtherLayout(entry.schema_version, name, entry.program)
  checkEntry(entry, name)
  return { entry, digest }
}

/**
 * Refuses a value that does not have the shape of an entry, on which every reader and the index depend; `name` is used
 * in messages.
 */
function checkEntry(value: unknown, name: string): void {
  const wrong = checkShape(value)
  if (wrong === undefined) return
  throw new LakeError('integrity', {
    subject: `journal entry ${name}`,
    expected: 'the shape of an entry',
    got: wrong,
    next: 'run pitlake doctor',
  })
}

/** Refuses a layout that a different program wrote; `program` is the name and version that it recorded. */
export function refuseOtherLayout(layout: unknown, name: string, program?: unknown): void {
  if (layout === layoutNumber) return
  const by = typeof program === 'string' && /^pitlake \d+\.\d+\.\d+[-.\w]*$/.test(program) ? ` (${program})` : ''
  throw new LakeError('usage', {
    subject: `journal entry ${name}`,
    expected: `layout ${layoutNumber}`,
    got: String(layout),
    next: isUnreleased(layout)
      ? remakeHint
      : `this lake has a newer layout and was written by a newer pitlake${by}: update pitlake`,
  })
}

/** Refuses a journal whose entries are not compressed: the layouts before this one had such entries. */
export function refuseUncompressed(name: string): never {
  const got = `an uncompressed entry, as layouts up to ${layoutNumber - 1} have it`
  throw usage(`journal entry ${name}`, { expected: `layout ${layoutNumber}`, got, next: remakeHint })
}

/** Whether only programs that were never released wrote a layout. */
export function isUnreleased(layout: unknown): boolean {
  return typeof layout === 'number' && layout < layoutNumber
}

/** Advice for a lake or a file of a layout that only unreleased programs wrote. */
export const remakeHint =
  'made by an unreleased version of pitlake: fetch the data again into an empty folder (pitlake fetch --data FOLDER)'

/** Builds the error about a file that has changed since it was written. */
export function damagedDocument(name: string, got: string, cause?: unknown): LakeError {
  return new LakeError('integrity', {
    subject: `${name} is damaged`,
    expected: 'a document with its checksum',
    got,
    next: putItBack,
    cause,
  })
}

/** Computes the SHA-256 of a text, hex. */
export function sha256(text: string): string {
  return hash('sha256', text)
}

/** Serialises a value as JSON with sorted keys, so that equal values give equal texts. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (member === null || typeof member !== 'object' || Array.isArray(member)) return member
    const entries = Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return Object.fromEntries(entries)
  })
}
