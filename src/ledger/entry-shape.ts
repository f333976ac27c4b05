import { LakeError } from '../errors.ts'
import { intervals } from '../time.ts'

/** Says what is wrong with a value, with the place inside it; undefined when it is as it must be. */
type Check = (value: unknown) => string | undefined

const text: Check = (value) => (typeof value === 'string' ? undefined : 'no text')
const whole: Check = (value) => (Number.isSafeInteger(value) ? undefined : 'no whole number')
const count: Check = (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? undefined : 'no count')
const real: Check = (value) => (typeof value === 'number' && Number.isFinite(value) ? undefined : 'no number')
const json: Check = (value) => (value === undefined ? 'nothing' : undefined)
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'neither true nor false')

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function orNull(check: Check): Check {
  return (value) => (value === null ? undefined : check(value))
}

/** For keys that older entries lack. */
function maybe(check: Check): Check {
  return (value) => (value === undefined ? undefined : check(value))
}

function oneOf(...allowed: readonly string[]): Check {
  const known = new Set<unknown>(allowed)
  return (value) => (known.has(value) ? undefined : `not one of ${allowed.join(', ')}`)
}

function listOf(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return 'no list'
    for (let at = 0; at < value.length; at++) {
      const wrong = check(value[at])
      if (wrong !== undefined) return `[${at}] ${wrong}`
    }
    return undefined
  }
}

/** An object with these keys; further ones are left to whoever knows them. */
function shape(fields: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(fields)
  return (value) => {
    if (!isObject(value)) return 'no object'
    for (const [key, check] of checks) {
      const wrong = check(Object.hasOwn(value, key) ? value[key] : undefined)
      if (wrong !== undefined) return `${key}: ${wrong}`
    }
    return undefined
  }
}

function mapOf(check: Check): Check {
  return (value) => {
    if (!isObject(value)) return 'no object'
    for (const [key, held] of Object.entries(value)) {
      const wrong = check(held)
      if (wrong !== undefined) return `${key}: ${wrong}`
    }
    return undefined
  }
}

const named = { series: text }
const interval = orNull(oneOf(...intervals))

const file = shape({
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
})

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
  provider: shape({ metrics: maybe(text), registry: maybe(text), synthetic: flag }),
  files: shape({ add: listOf(file), remove: listOf(text), drop: listOf(text) }),
  series: listOf(
    shape({
      id: text,
      metric: text,
      asset: text,
      interval,
      currency: orNull(text),
      exchange: orNull(text),
      network: orNull(text),
      params: mapOf(text),
      settled: interval,
    }),
  ),
  progress: listOf(shape({ ...named, points: whole, first_t: real, last_t: real })),
  coverage: listOf(
    shape({
      ...named,
      since: whole,
      until: whole,
      state: oneOf('covered', 'empty', 'unsupported', 'failed'),
      reason: orNull(text),
      asked_at: real,
      request: orNull(text),
    }),
  ),
  violations: listOf(
    shape({
      ...named,
      t: real,
      kind: text,
      stored: orNull(text),
      offered: orNull(text),
      stored_at: orNull(real),
      offered_at: real,
      request: orNull(text),
    }),
  ),
  accepted: maybe(listOf(shape({ ...named, id: text, t: real, kind: text, offered: orNull(text), why: text }))),
  findings: listOf(shape({ ...named, t: real, kind: text, detail: json, at: real })),
  requests: listOf(request),
  verified: listOf(shape({ ...named, since: whole, until: whole, at: real, result: text })),
  stamps: listOf(
    shape({ id: text, version: count, digest: text, query_digest: text, path: orNull(text), at: real, detail: json }),
  ),
  rules: orNull(shape({ digest: text, rules: json })),
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
