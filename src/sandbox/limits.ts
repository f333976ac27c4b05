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
export interface SandboxLimits {
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
export const defaultLimits: SandboxLimits = {
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

/** The answer to one request: whether it may pass, and what the headers say about what is left. */
export type Admission = ReturnType<typeof admitRequest>['verdict']

/** Judges one request at the instant `at` (Unix seconds, fractional); a refused request is not counted. */
export function admitRequest(limit: ApiLimit, before: Usage, at: number, isSnapshot: boolean) {
  const { rate } = limit
  const now = settle(limit, before, at)
  const free = rate === null ? Infinity : rate.requests - Math.ceil(now.used - 1e-9)
  const dailyFree = (limit.daily ?? Infinity) - now.today
  const ofDay =
    dailyFree < 1 ? 'quota_exceeded' : isSnapshot && now.snapshots >= (limit.snapshots ?? Infinity) && 'snapshot_limit'
  const refused = ofDay || (free < 1 ? 'rate_limited' : null)
  const taken = refused === null ? 1 : 0
  const usage: Usage = {
    ...now,
    used: now.used + taken,
    recent: taken === 1 && rate?.kind === 'sliding' ? [...now.recent, at] : now.recent,
    today: now.today + taken,
    snapshots: now.snapshots + (isSnapshot ? taken : 0),
  }
  const next = ofDay ? now.dayStart + day - at : rate === null ? 0 : countings[rate.kind].next(rate, now, at)
  const verdict = {
    refused,
    /** Seconds until the same request would pass; 0 when it passes now. */
    wait: refused === null ? 0 : next,
    remaining: Math.max(0, free - taken),
    /** Seconds until the whole allowance is there again. */
    reset: rate === null ? 0 : countings[rate.kind].whole(rate, usage, at),
    dailyRemaining: dailyFree - taken,
  }
  return { usage, verdict }
}

/** What is still counted at `at`: ended windows, flowed back tokens and past days forgotten. */
function settle({ rate }: ApiLimit, before: Usage, at: number): Usage {
  const dayStart = Math.floor(at / day) * day
  const days = { dayStart, ...(dayStart === before.dayStart ? {} : { today: 0, snapshots: 0 }) }
  return { ...before, used: 0, recent: [], ...days, ...(rate && countings[rate.kind].counted(rate, before, at)) }
}

type Seconds = (rate: RateRule, now: Usage, at: number) => number

const untilEnd: Seconds = ({ seconds }, { mark }, at) => mark + seconds - at

/** How each kind counts: what is counted still, seconds until one more request passes, and until nothing is counted. */
const countings: Readonly<
  Record<
    RateRule['kind'],
    { counted: (rate: RateRule, before: Usage, at: number) => Partial<Usage>; next: Seconds; whole: Seconds }
  >
> = {
  fixed: {
    counted: ({ seconds }, before, at) => {
      const mark = Math.floor(at / seconds) * seconds
      return { mark, used: mark === before.mark ? before.used : 0 }
    },
    next: untilEnd,
    whole: untilEnd,
  },
  sliding: {
    counted: ({ seconds }, before, at) => {
      const first = before.recent.findIndex((instant) => instant > at - seconds)
      const recent = first === 0 ? before.recent : first < 0 ? [] : before.recent.slice(first)
      return { mark: at, used: recent.length, recent }
    },
    next: ({ seconds }, { recent }, at) => (recent[0] ?? at) + seconds - at,
    whole: ({ seconds }, { recent }, at) => (recent.at(-1) ?? at - seconds) + seconds - at,
  },
  bucket: {
    counted: ({ requests, seconds }, before, at) => {
      const flowed = (Math.max(0, at - before.mark) * requests) / seconds
      return { mark: at, used: Math.max(0, before.used - flowed) }
    },
    next: ({ requests, seconds }, { used }) => ((used - requests + 1) * seconds) / requests,
    whole: ({ requests, seconds }, { used }) => (used * seconds) / requests,
  },
}

/** The limit headers of one answer; `at` is the instant of its `Date` header. */
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
  const [, name = '', value = ''] = /^([a-z-]+)=(\w+)$/.exec(part) ?? []
  if ((name === 'daily' || name === 'snapshots') && /^\d+$/.test(value)) return { [name]: Number(value) }
  if (name === 'headers' && ['seconds', 'unix', 'date', 'none'].includes(value))
    return { [name]: value as HeaderDialect }
  if (name === 'retry-after' && ['seconds', 'date', 'none'].includes(value))
    return { retryAfter: value as ApiLimit['retryAfter'] }
  throw usage(`--limit ${whole}`, { expected: limitSyntax, got: `"${part}"` })
}
