import { LakeError } from '../errors.ts'
import { count, flag, interval, json, listOf, mapOf, maybe, oneOf, orNull, real, shape, text, whole } from './shape.ts'

const noted = { series: text, t: real, kind: text, offered: orNull(text) }
const stored = { stored: orNull(text), stored_at: orNull(real), offered_at: real, request: orNull(text) }

/** What a file is listed with. */
export const fileFields = {
  path: text,
  table: text,
  label: text,
  metric: orNull(text),
  interval,
  rows: count,
  bytes: count,
  min_t: orNull(real),
  max_t: orNull(real),
  digest: orNull(text),
  sha256: text,
  meta: mapOf(json),
}

/** What a series is. */
export const seriesFields = {
  id: text,
  metric: text,
  asset: text,
  interval,
  currency: orNull(text),
  exchange: orNull(text),
  network: orNull(text),
  params: mapOf(text),
  settled: interval,
}

/** What is known about a window of a series. */
export const windowFields = {
  since: whole,
  until: whole,
  state: oneOf('covered', 'empty', 'unsupported', 'failed'),
  reason: orNull(text),
  asked_at: real,
  request: orNull(text),
}

/** What contradicts what. */
export const violationFields = { ...noted, ...stored }
/** What came of asking again. */
export const verifiedFields = { series: text, since: whole, until: whole, at: real, result: text }
/** What pins a result. */
export const stampFields = {
  id: text,
  version: count,
  digest: text,
  query_digest: text,
  path: orNull(text),
  at: real,
  detail: json,
}
/** The availability rules in force. */
export const ruleFields = { digest: text, rules: json }
/** Who answered. */
export const providerShape = shape({ metrics: maybe(text), registry: maybe(text), synthetic: flag })

const request = shape({
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
  clock: maybe(shape({ date: real, age: real })),
})

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
  provider: providerShape,
  files: shape({ add: listOf(shape(fileFields)), remove: listOf(text), drop: listOf(text) }),
  series: listOf(shape(seriesFields)),
  progress: listOf(shape({ series: text, points: whole, first_t: real, last_t: real })),
  coverage: listOf(shape({ series: text, ...windowFields })),
  violations: listOf(shape(violationFields)),
  accepted: maybe(listOf(shape({ ...noted, id: text, why: text }))),
  findings: listOf(shape({ series: text, t: real, kind: text, detail: json, at: real })),
  requests: listOf(request),
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
