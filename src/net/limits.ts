import { parseHeaderDate } from '../time.ts'

/** Response headers by lower-case name, as they came. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** What an answer says about limits; distances are milliseconds from the moment it was read, never negative. */
export type LimitSigns = ReturnType<typeof readLimits>

/** Below this a bare number is a count of seconds left; from here to `unixSeconds` it still is, a long one. */
const unixSeconds = 1_000_000_000
const unixMilliseconds = 1_000_000_000_000

/** The first value of a header, or null. */
export function header(headers: Headers, name: string): string | null {
  const value = headers[name]
  const first = typeof value === 'string' ? value : value?.[0]
  return first === undefined || first.trim() === '' ? null : first.trim()
}

/** The `Date` of the answer in milliseconds since 1970, or null where there is none that can be read. */
export function dateOf(headers: Headers): number | null {
  const text = header(headers, 'date')
  return text === null ? null : (parseHeaderDate(text) ?? null)
}

/** How long the answer lay in a cache, in seconds; 0 where nobody says. */
export function ageOf(headers: Headers): number {
  const text = header(headers, 'age')
  return text !== null && /^\d{1,10}$/.test(text) ? Number(text) : 0
}

/** Everything an answer says about limits, in all dialects; `now` in milliseconds since 1970. */
export function readLimits(headers: Headers, now: number) {
  // Clocks differ: an absolute instant is measured against the provider's own clock wherever it shows it.
  const clock = dateOf(headers) ?? now
  return {
    // A limit of nothing is none.
    limit: number(headers, 'limit') || null,
    remaining: number(headers, 'remaining'),
    resetMs: distance(rateHeader(headers, 'reset'), clock),
    retryAfterMs: distance(header(headers, 'retry-after'), clock),
    dailyRemaining: leading(header(headers, 'x-quota-daily-remaining')),
  }
}

/** No instant beyond the year 9999 can be written down; what is further away, or no instant at all, is that far. */
const lastMs = Date.UTC(9999, 11, 31)

/** Milliseconds until what the text names: seconds left, Unix seconds or milliseconds, an HTTP date, an ISO date. */
function distance(text: string | null, clock: number): number | null {
  const far = farTo(text, clock)
  return far === null ? null : Math.min(far, Math.max(0, lastMs - clock))
}

function farTo(text: string | null, clock: number): number | null {
  if (text === null) return null
  if (/^-?\d+(?:\.\d+)?$/.test(text)) {
    const value = Number(text)
    if (value >= unixMilliseconds) return Math.max(0, value - clock)
    if (value >= unixSeconds) return Math.max(0, value * 1000 - clock)
    return Math.max(0, value * 1000)
  }
  const at = parseHeaderDate(text)
  return at === undefined ? null : Math.max(0, at - clock)
}

function rateHeader(headers: Headers, what: string): string | null {
  for (const prefix of ['x-ratelimit', 'x-rate-limit', 'ratelimit']) {
    const value = header(headers, `${prefix}-${what}`)
    if (value !== null) return value
  }
  return null
}

function number(headers: Headers, what: string): number | null {
  return leading(rateHeader(headers, what))
}

/** The leading whole number of `600`, `600;w=60` or `600, 600;w=60`. */
function leading(text: string | null): number | null {
  const match = text === null ? null : /^\d{1,15}(?![\d.])/.exec(text)
  return match ? Number(match[0]) : null
}
