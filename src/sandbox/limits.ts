import { usage } from '../errors.ts'
import { day, parseDuration } from '../time.ts'

/** How many requests a stretch of time allows, and how that stretch moves. */
export interface RateRule {
  /** `fixed`: aligned windows; `sliding`: any stretch of that length; `bucket`: tokens that flow back evenly. */
  readonly kind: 'fixed' | 'sliding' | 'bucket'
  readonly requests: number
  readonly seconds: number
}

/** How `reset` is spelled: seconds left, Unix time, HTTP date; `none` sends no limit header at all. */
type HeaderDialect = 'seconds' | 'unix' | 'date' | 'none'

/** The limits of one API; null: no such limit. */
export interface ApiLimit {
  readonly rate: RateRule | null
  /** Requests per UTC day. */
  readonly daily: number | null
  /** Calls of the registry's snapshot per UTC day. */
  readonly snapshots: number | null
  readonly headers: HeaderDialect
  readonly retryAfter: 'seconds' | 'date' | 'none'
}

/** The limits of both APIs. */
export interface Limits {
  readonly metrics: ApiLimit
  /** The bucket of the metrics API's metadata. */
  readonly metadata: ApiLimit
  readonly registry: ApiLimit
}

const wide: ApiLimit = {
  rate: { kind: 'fixed', requests: 60_000, seconds: 60 },
  daily: null,
  snapshots: null,
  headers: 'seconds',
  retryAfter: 'seconds',
}

/** Wide enough that a demo never waits, with the headers that each API is known for. */
export const defaultLimits: Limits = {
  metrics: wide,
  metadata: wide,
  registry: { ...wide, daily: 1_000_000, snapshots: 10_000, headers: 'unix' },
}

/** What was used so far; a plain value that each admitted request replaces. */
export interface Usage {
  /** Start of the fixed window, or the instant of the bucket's last request. */
  readonly mark: number
  /** Requests in the fixed window, or tokens taken and not yet flowed back. */
  readonly used: number
  /** Instants of the requests inside the sliding window, oldest first. */
  readonly recent: readonly number[]
  readonly dayStart: number
  readonly today: number
  readonly snapshots: number
}

/** Nothing used yet. */
export const unused: Usage = { mark: 0, used: 0, recent: [], dayStart: 0, today: 0, snapshots: 0 }

/** The codes of a refused request. */
type RefusalCode = 'rate_limited' | 'quota_exceeded' | 'snapshot_limit'

/** The answer to one request: whether it may pass, and what the headers say about what is left. */
export interface Verdict {
  readonly refused: RefusalCode | null
  /** Seconds until the same request would pass; 0 when it passes now. */
  readonly wait: number
  readonly remaining: number
  /** Seconds until the whole allowance is there again. */
  readonly reset: number
  readonly dailyRemaining: number
}

/** Judges one request at the instant `at` (Unix seconds, fractional); a refused request is not counted. */
export function admit(
  limit: ApiLimit,
  before: Usage,
  at: number,
  isSnapshot: boolean,
): { usage: Usage; verdict: Verdict } {
  const now = settle(limit, before, at)
  const free = limit.rate === null ? Number.POSITIVE_INFINITY : limit.rate.requests - Math.ceil(now.used - 1e-9)
  const dailyFree = limit.daily === null ? Number.POSITIVE_INFINITY : limit.daily - now.today
  const refused = refusalOf(limit, now, isSnapshot, free, dailyFree)
  const used = refused === null ? 1 : 0
  const usage: Usage =
    used === 0
      ? now
      : {
          ...now,
          used: now.used + 1,
          recent: limit.rate?.kind === 'sliding' ? [...now.recent, at] : now.recent,
          today: now.today + 1,
          snapshots: now.snapshots + (isSnapshot ? 1 : 0),
        }
  const tomorrow = now.dayStart + day - at
  const verdict = {
    refused,
    wait: refused === null ? 0 : refused === 'rate_limited' ? nextFree(limit.rate, now, at) : tomorrow,
    remaining: Math.max(0, free - used),
    reset: full(limit.rate, usage, at),
    dailyRemaining: dailyFree - used,
  }
  return { usage, verdict }
}

function refusalOf(
  { rate, snapshots }: ApiLimit,
  now: Usage,
  isSnapshot: boolean,
  free: number,
  dailyFree: number,
): RefusalCode | null {
  if (dailyFree < 1) return 'quota_exceeded'
  if (isSnapshot && snapshots !== null && now.snapshots >= snapshots) return 'snapshot_limit'
  return rate !== null && free < 1 ? 'rate_limited' : null
}

/** What is still counted at `at`: ended windows, flowed back tokens and past days forgotten. */
function settle(limit: ApiLimit, before: Usage, at: number): Usage {
  const dayStart = Math.floor(at / day) * day
  const sameDay = dayStart === before.dayStart
  const days = { dayStart, today: sameDay ? before.today : 0, snapshots: sameDay ? before.snapshots : 0 }
  const rate = limit.rate
  if (rate === null) return { ...before, ...days, used: 0, recent: [] }
  if (rate.kind === 'fixed') {
    const mark = Math.floor(at / rate.seconds) * rate.seconds
    return { ...days, mark, used: mark === before.mark ? before.used : 0, recent: [] }
  }
  if (rate.kind === 'sliding') {
    const first = before.recent.findIndex((instant) => instant > at - rate.seconds)
    const recent = first === 0 ? before.recent : first < 0 ? [] : before.recent.slice(first)
    return { ...days, mark: at, used: recent.length, recent }
  }
  const flowed = (Math.max(0, at - before.mark) * rate.requests) / rate.seconds
  return { ...days, mark: at, used: Math.max(0, before.used - flowed), recent: [] }
}

/** Seconds until one more request passes. */
function nextFree(rate: RateRule | null, now: Usage, at: number): number {
  if (rate === null) return 0
  if (rate.kind === 'fixed') return now.mark + rate.seconds - at
  if (rate.kind === 'sliding') return (now.recent[0] ?? at) + rate.seconds - at
  return ((now.used - rate.requests + 1) * rate.seconds) / rate.requests
}

/** Seconds until nothing is counted any more. */
function full(rate: RateRule | null, now: Usage, at: number): number {
  if (rate === null) return 0
  if (rate.kind === 'fixed') return now.mark + rate.seconds - at
  if (rate.kind === 'sliding') return (now.recent.at(-1) ?? at - rate.seconds) + rate.seconds - at
  return (now.used * rate.seconds) / rate.requests
}

/** The limit headers of one answer; `at` is the instant of its `Date` header. */
export function limitHeaders(limit: ApiLimit, verdict: Verdict, at: number): [string, string][] {
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

/** A `Retry-After` that is never too short: whole seconds or an HTTP date, rounded up. */
export function retryAfterText(form: 'seconds' | 'date', at: number, wait: number): string {
  return form === 'seconds' ? String(Math.max(1, Math.ceil(wait))) : httpDate(Math.ceil(at + wait))
}

/** The instant (whole Unix seconds) as an HTTP date. */
export function httpDate(at: number): string {
  return new Date(at * 1000).toUTCString()
}

/** How a limit is written on the command line. */
export const limitSyntax =
  'API=PART[,PART…] with API metrics, metadata or registry and PART one of none, fixed:N/TIME, sliding:N/TIME, bucket:N/TIME, ' +
  'daily=N, snapshots=N, headers=seconds|unix|date|none, retry-after=seconds|date|none'

/** Reads `metrics=fixed:600/60s,headers=seconds` onto the limits given; unnamed parts stay. */
export function parseLimit(text: string, onto: Limits): Limits {
  const match = /^(metrics|metadata|registry)=(.+)$/.exec(text.trim())
  const api = match?.[1]
  if ((api !== 'metrics' && api !== 'metadata' && api !== 'registry') || match?.[2] === undefined) {
    throw usage('--limit', { expected: limitSyntax, got: `"${text}"` })
  }
  let limit = onto[api]
  for (const part of match[2].split(',')) limit = { ...limit, ...parsePart(part.trim(), text) }
  return { ...onto, [api]: limit }
}

function parsePart(part: string, whole: string): Partial<ApiLimit> {
  if (part === 'none') return { rate: null, daily: null, snapshots: null, headers: 'none' }
  const rate = /^(fixed|sliding|bucket):(\d+)\/(\w+)$/.exec(part)
  if (rate) {
    const seconds = parseDuration(rate[3] ?? '')
    const requests = Number(rate[2])
    if (seconds !== undefined && seconds > 0 && requests > 0) {
      return { rate: { kind: rate[1] as RateRule['kind'], requests, seconds } }
    }
  }
  const pair = /^([a-z-]+)=(\w+)$/.exec(part)
  const name = pair?.[1]
  const value = pair?.[2] ?? ''
  if ((name === 'daily' || name === 'snapshots') && /^\d+$/.test(value)) return { [name]: Number(value) }
  if (name === 'headers' && ['seconds', 'unix', 'date', 'none'].includes(value)) {
    return { headers: value as HeaderDialect }
  }
  if (name === 'retry-after' && ['seconds', 'date', 'none'].includes(value)) {
    return { retryAfter: value as ApiLimit['retryAfter'] }
  }
  throw usage(`--limit ${whole}`, { expected: limitSyntax, got: `"${part}"` })
}
