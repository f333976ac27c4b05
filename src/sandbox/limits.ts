import { usage } from '../base/errors.ts'
import { day, parseDuration } from '../base/time.ts'

/** Spelling of `reset`: seconds left, Unix time, HTTP date; `none` sends no limit header at all. */
type HeaderDialect = 'seconds' | 'unix' | 'date' | 'none'

/** The limits of one API; null: no such limit. */
export interface ApiLimit {
  /** Requests that each window of so many seconds allows; windows begin at whole multiples of their length. */
  readonly rate: { readonly requests: number; readonly seconds: number } | null
  /** Requests per UTC day. */
  readonly daily: number | null
  /** Calls of the registry's snapshot per UTC day. */
  readonly snapshots: number | null
  readonly headers: HeaderDialect
  readonly retryAfter: 'seconds' | 'date' | 'none'
}

/** The limits of both APIs, and of the bucket of the metrics API's metadata. */
export type SandboxLimits = Readonly<Record<'metrics' | 'metadata' | 'registry', ApiLimit>>

const wide: ApiLimit = {
  rate: { requests: 60_000, seconds: 60 },
  daily: null,
  snapshots: null,
  headers: 'seconds',
  retryAfter: 'seconds',
}

/** Wide enough that a demo never waits, with the headers that each API is known for. */
export const defaultLimits: SandboxLimits = {
  metrics: wide,
  metadata: wide,
  registry: { ...wide, daily: 1_000_000, snapshots: 10_000, headers: 'unix' },
}

/** Requests counted so far; a plain value that each admitted request replaces. */
export interface Usage {
  /** Time when the window began, Unix seconds. */
  readonly mark: number
  /** Requests in the window. */
  readonly used: number
  /** Time when the day began, Unix seconds. */
  readonly dayStart: number
  /** Requests on the day. */
  readonly today: number
  /** Calls of the snapshot on the day. */
  readonly snapshots: number
}

/** Usage before any request. */
export const unused: Usage = { mark: 0, used: 0, dayStart: 0, today: 0, snapshots: 0 }

/** Whether one request may pass, and what the headers report about the rest. */
export interface Admission {
  /** The error code of a refusal; null if the request passes. */
  readonly refused: string | null
  /** Seconds until the same request would pass; 0 if it passes now. */
  readonly wait: number
  /** Requests left in the window. */
  readonly remaining: number
  /** Seconds until the whole allowance is available again. */
  readonly reset: number
  /** Requests left on the day; Infinity without a daily limit. */
  readonly dailyRemaining: number
}

/** An admission, with the counts after it. */
export interface CountedAdmission {
  readonly usage: Usage
  readonly verdict: Admission
}

/** Judges one request at the instant `at` (Unix seconds, fractional); a refused request is not counted. */
export function admitRequest(
  { rate, daily, snapshots }: ApiLimit,
  before: Usage,
  at: number,
  isSnapshot: boolean,
): CountedAdmission {
  const dayStart = Math.floor(at / day) * day
  const mark = rate === null ? 0 : Math.floor(at / rate.seconds) * rate.seconds
  const { today, snapshots: shot } = dayStart === before.dayStart ? before : unused
  const used = mark === before.mark ? before.used : 0
  const free = (rate?.requests ?? Infinity) - used
  const dailyFree = (daily ?? Infinity) - today
  const ofDay = dailyFree < 1 ? 'quota_exceeded' : isSnapshot && shot >= (snapshots ?? Infinity) && 'snapshot_limit'
  const refused = ofDay || (free < 1 ? 'rate_limited' : null)
  const cost = refused === null ? 1 : 0
  const counted = { used: used + cost, today: today + cost, snapshots: shot + (isSnapshot ? cost : 0) }
  const reset = rate === null ? 0 : mark + rate.seconds - at
  const verdict = {
    refused,
    wait: refused === null ? 0 : ofDay ? dayStart + day - at : reset,
    remaining: Math.max(0, free - cost),
    reset,
    dailyRemaining: dailyFree - cost,
  }
  return { usage: { mark, dayStart, ...counted }, verdict }
}

/** Builds the limit headers of one answer; `at` is the instant of its `Date` header. */
export function limitHeaders(limit: ApiLimit, verdict: Admission, at: number): [string, string][] {
  const headers: [string, string][] = []
  if (limit.headers !== 'none' && limit.rate !== null) {
    const prefix = limit.headers === 'seconds' ? 'x-rate-limit-' : 'x-ratelimit-'
    headers.push([`${prefix}limit`, String(limit.rate.requests)], [`${prefix}remaining`, String(verdict.remaining)])
    headers.push([`${prefix}reset`, spellReset(limit.headers, at, verdict.reset)])
  }
  if (limit.headers !== 'none' && limit.daily !== null) {
    headers.push(['x-quota-daily-limit', String(limit.daily)])
    headers.push(['x-quota-daily-remaining', String(Math.max(0, verdict.dailyRemaining))])
  }
  if (verdict.refused !== null && limit.retryAfter !== 'none') {
    headers.push(['retry-after', retryAfterText(limit.retryAfter, at, verdict.wait)])
  }
  return headers
}

function spellReset(dialect: HeaderDialect, at: number, seconds: number): string {
  if (dialect === 'seconds') return String(Math.ceil(seconds))
  const instant = Math.ceil(at + seconds)
  return dialect === 'unix' ? String(instant) : httpDate(instant)
}

/** Formats a `Retry-After` that is never too short: whole seconds or an HTTP date, rounded up. */
export function retryAfterText(form: 'seconds' | 'date', at: number, wait: number): string {
  return form === 'seconds' ? String(Math.max(1, Math.ceil(wait))) : httpDate(Math.ceil(at + wait))
}

/** Formats the instant (whole Unix seconds) as an HTTP date. */
export const httpDate = (at: number): string => new Date(at * 1000).toUTCString()

/** Syntax of a limit on the command line. */
export const limitSyntax =
  'API=PART[,PART…] with API metrics, metadata or registry and PART one of none, fixed:N/TIME, ' +
  'daily=N, snapshots=N, headers=seconds|unix|date|none, retry-after=seconds|date|none'

/** Applies `metrics=fixed:600/60s,headers=seconds` to the limits given; unnamed parts stay. */
export function parseLimit(text: string, onto: SandboxLimits): SandboxLimits {
  const match = /^(metrics|metadata|registry)=(.+)$/.exec(text.trim())
  const api = match?.[1]
  if ((api !== 'metrics' && api !== 'metadata' && api !== 'registry') || match?.[2] === undefined) {
    throw usage('--limit', { expected: limitSyntax, got: `"${text}"` })
  }
  let limit = onto[api]
  for (const part of match[2].split(',')) limit = { ...limit, ...parsePart(part.trim(), text) }
  return { ...onto, [api]: limit }
}

function parsePart(part: string, text: string): Partial<ApiLimit> {
  if (part === 'none') return { rate: null, daily: null, snapshots: null, headers: 'none' }
  const rate = /^fixed:(\d+)\/(\w+)$/.exec(part)
  if (rate) {
    const seconds = parseDuration(rate[2] ?? '')
    const requests = Number(rate[1])
    if (seconds !== undefined && seconds > 0 && requests > 0) {
      return { rate: { requests, seconds } }
    }
  }
  const [, name = '', value = ''] = /^([a-z-]+)=(\w+)$/.exec(part) ?? []
  if ((name === 'daily' || name === 'snapshots') && /^\d+$/.test(value)) return { [name]: Number(value) }
  if (name === 'headers' && ['seconds', 'unix', 'date', 'none'].includes(value))
    return { [name]: value as HeaderDialect }
  if (name === 'retry-after' && ['seconds', 'date', 'none'].includes(value))
    return { retryAfter: value as ApiLimit['retryAfter'] }
  throw usage(`--limit ${text}`, { expected: limitSyntax, got: `"${part}"` })
}
