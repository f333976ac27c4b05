import { LakeError } from '../errors.ts'
import { count, flag, interval, json, listOf, mapOf, maybe, oneOf, orNull, real, shape, text, whole } from './shape.ts'

/** Who answered: one identity per API, and whether the data are made up. */
export const providerFields = { metrics: maybe(text), registry: maybe(text), synthetic: flag }

/** One file of the lake. The same path may be listed again under another label, for instance a snapshot date. */
export const fileFields = {
  /** Relative to the lake, with forward slashes. */
  path: text,
  /** `points`, `raw`, or the registry table. */
  table: text,
  /** '' for points; for registry tables whatever tells listings of one file apart. */
  label: text,
  metric: orNull(text),
  interval,
  rows: count,
  bytes: count,
  /** First and last `t` inside, in seconds; null where the table has none. */
  min_t: orNull(real),
  max_t: orNull(real),
  /** Order-independent digest of the content, as the converter computed it; null where it computes none. */
  digest: orNull(text),
  /** SHA-256 of the bytes, hex. */
  sha256: text,
  /** Whatever else its writer wants to find again (level of merging, smallest lag, columns …). */
  meta: mapOf(json),
}

/** A series as the journal first names it. */
export const seriesFields = {
  id: text,
  metric: text,
  asset: text,
  /** For endpoints without intervals null in the id's terms; `settled` then holds the observed spacing. */
  interval,
  currency: orNull(text),
  exchange: orNull(text),
  network: orNull(text),
  params: mapOf(text),
  /** The interval under which its points are stored. */
  settled: interval,
}

/** Points that a commit added to a series (negative: that were lost); counts add up, bounds (seconds) only widen. */
export const progressFields = { series: text, points: whole, first_t: real, last_t: real }

/** What is known about the half-open window (seconds) of a series; it replaces what was said about that window before. */
export const windowFields = {
  since: whole,
  until: whole,
  state: oneOf('covered', 'empty', 'unsupported', 'failed'),
  /** Why, or `awaiting` and `gap` for covered windows in which points are missing; null when there is nothing to say. */
  reason: orNull(text),
  /** Seconds. */
  asked_at: real,
  request: orNull(text),
}

/** What tells a contradiction upstream apart from every other: `t` in seconds, the offered value as JSON text. */
const contradiction = { series: text, t: real, kind: text, offered: orNull(text) }

/** An upstream value that contradicts the stored one, which is JSON text, too; instants in microseconds. */
export const violationFields = {
  ...contradiction,
  stored: orNull(text),
  stored_at: orNull(real),
  offered_at: real,
  request: orNull(text),
}

/** A violation, or a refusal of a series that has points, of which a person took note. */
export const acceptedFields = { ...contradiction, id: text, why: text }

/** A contradiction of clocks; unique per series, t (seconds) and kind; `at` in microseconds. */
export const findingFields = { series: text, t: real, kind: text, detail: json, at: real }

/** One request to an API: the facts, never the key. Ranges in seconds, `asked_at` in microseconds. */
export const requestFields = {
  id: text,
  run: text,
  api: oneOf('metrics', 'registry'),
  path: text,
  query: mapOf(text),
  series: orNull(text),
  since: orNull(real),
  until: orNull(real),
  status: orNull(whole),
  outcome: text,
  points: orNull(count),
  bytes: orNull(count),
  credits: orNull(real),
  attempts: count,
  asked_at: real,
  seconds: orNull(real),
  detail: json,
  /** The provider's `Date` and `Age`, in seconds; left out where it showed none. */
  clock: maybe(shape({ date: real, age: real })),
}

/** A window (seconds) that was asked again and compared, `at` in microseconds. */
export const verifiedFields = { series: text, since: whole, until: whole, at: real, result: text }

/** A result that was stamped (microseconds): `vacuum` keeps the files of its version. */
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

const entry = shape({
  schema_version: count,
  lake: text,
  version: count,
  previous: orNull(text),
  replaces: maybe(text),
  committed_at: whole,
  program: text,
  job: text,
  run: orNull(text),
  provider: shape(providerFields),
  files: shape({ add: listOf(shape(fileFields)), remove: listOf(text), drop: listOf(text) }),
  series: listOf(shape(seriesFields)),
  progress: listOf(shape(progressFields)),
  coverage: listOf(shape({ series: text, ...windowFields })),
  violations: listOf(shape(violationFields)),
  accepted: maybe(listOf(shape(acceptedFields))),
  findings: listOf(shape(findingFields)),
  requests: listOf(shape(requestFields)),
  verified: listOf(shape(verifiedFields)),
  stamps: listOf(shape(stampFields)),
  rules: orNull(shape(ruleFields)),
  state: mapOf(json),
})

/** Refuses what is no entry: its shape is what every reader and the index rely on. `name` is used in messages. */
export function checkEntry(value: unknown, name: string): void {
  const wrong = entry(value)
  if (wrong === undefined) return
  throw new LakeError('integrity', {
    subject: `journal entry ${name}`,
    expected: 'the shape of an entry',
    got: wrong,
    next: 'run pitlake doctor',
  })
}
