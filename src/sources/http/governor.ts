import { parseHeaderDate } from '../../base/time.ts'

/** Response headers by lower-case name, unchanged. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** Limits that the headers of an answer report; distances are milliseconds from when it was read, never negative. */
interface LimitSigns {
  /** Requests that the provider allows in a window; null if not reported. */
  readonly limit: number | null
  /** Requests left in the window; null if not reported. */
  readonly remaining: number | null
  /** Time until the window is reset; null if not reported. */
  readonly resetMs: number | null
  /** `Retry-After`; null if not reported. */
  readonly retryAfterMs: number | null
  /** Requests left today; null if not reported. */
  readonly dailyRemaining: number | null
}

/**
 * Bounds for a bare number in a header: below `unixSeconds` it counts the seconds left, from there on it is a time in
 * Unix seconds, from `unixMilliseconds` on in milliseconds.
 */
const unixSeconds = 1_000_000_000
const unixMilliseconds = 1_000_000_000_000

/** Returns the first value of a header; null if it is missing. */
export function header(headers: Headers, name: string): string | null {
  const value = headers[name]
  const first = typeof value === 'string' ? value : value?.[0]
  return first === undefined || first.trim() === '' ? null : first.trim()
}

/** Reads the `Date` of the answer in milliseconds since 1970; null if it is missing or cannot be read. */
export function dateOf(headers: Headers): number | null {
  const text = header(headers, 'date')
  return text === null ? null : (parseHeaderDate(text) ?? null)
}

/** Reads the time that the answer spent in caches (`Age`), in seconds; 0 if not reported. */
export function ageOf(headers: Headers): number {
  const text = header(headers, 'age')
  return text !== null && /^\d{1,10}$/.test(text) ? Number(text) : 0
}

/** Reads everything that an answer reports about limits, in all dialects; `now` in milliseconds since 1970. */
export function readLimits(headers: Headers, now: number): LimitSigns {
  // Clocks differ: an absolute time is compared with the provider's own clock if the answer shows it.
  const clock = dateOf(headers) ?? now
  return {
    // A limit of 0 counts as no limit.
    limit: number(headers, 'limit') || null,
    remaining: number(headers, 'remaining'),
    resetMs: distance(rateHeader(headers, 'reset'), clock),
    retryAfterMs: distance(header(headers, 'retry-after'), clock),
    dailyRemaining: leading(header(headers, 'x-quota-daily-remaining')),
  }
}

/** The last timestamp that can be written, in the year 9999; later or invalid ones are limited to it. */
const lastMs = Date.UTC(9999, 11, 31)

/**
 * Returns the milliseconds until the time in a text: seconds left, Unix seconds or milliseconds, an HTTP date, an ISO
 * date; null for any other text.
 */
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

const number = (headers: Headers, what: string): number | null => leading(rateHeader(headers, what))

/** Parses the leading integer of `600`, `600;w=60` or `600, 600;w=60`. */
function leading(text: string | null): number | null {
  const match = text === null ? null : /^\d{1,15}(?![\d.])/.exec(text)
  return match ? Number(match[0]) : null
}

/**
 * A step of a request that changes the governor's state. `at` is in milliseconds since 1970; `ticket` is the number of
 * the request, as `sent` was after it.
 */
export type GovernorEvent =
  | { readonly kind: 'request-sent'; readonly at: number }
  | {
      readonly kind: 'response'
      readonly at: number
      readonly ticket: number
      readonly status: number
      readonly headers: Headers
      readonly code?: string | null
    }
  /** A request that ended without an answer. */
  | { readonly kind: 'lost'; readonly at: number; readonly ticket: number }

const minuteMs = 60_000
/** A reset this near still means a window of a minute: clocks differ and seconds are rounded. */
const nearMs = 90_000
/** A longer window is a quota: spent at the configured rate, then waited for, instead of one request an hour. */
const quotaMs = 2 * 3_600_000
/** Longest wait that is sat out; for a longer one the API is parked, and the run ends with the time to resume. */
const parkMs = 900_000
/** The share of a limit that is used. */
const share = 0.99
/** Reset instants of one fixed window differ by this much through rounding and latency. */
const wobbleMs = 2_100
/** Maximum number of the provider's named waits that are added up after refusals in a row. */
const mostWaits = 2
/** Seconds in headers are rounded down: one more is waited. */
const marginMs = 1_000

/** The pace of one API before its headers report a limit. */
export interface ConfiguredRate {
  /** Requests a minute. */
  readonly perMinute: number
}

/**
 * The known facts about the pace of one API: a plain value, changed only by `governor`. Times in milliseconds since
 * 1970.
 */
export interface Governor extends ConfiguredRate {
  /** Requests a `windowMs`, as headers report; null while none did. */
  readonly limit: number | null
  /** Length of the window of `limit`, milliseconds. */
  readonly windowMs: number
  /** Requests ever sent. */
  readonly sent: number
  /** Requests still under way. */
  readonly inFlight: number
  /** `sent` may not exceed this before `resetAt`, by the newest answer; null while none reported it. */
  readonly allowance: number | null
  /** The number of the newest request that was answered. */
  readonly toldTicket: number
  /** Time at which the window is reset; null while no header reports it. */
  readonly resetAt: number | null
  /**
   * Time since which `resetAt` is unchanged. That of a fixed window does not change; that of a sliding window or a
   * bucket moves.
   */
  readonly resetSince: number
  /** Whether the window is a fixed one; null while unknown. */
  readonly fixed: boolean | null
  /** The time for which the last request was due; null before the first. */
  readonly slot: number | null
  /** Time of the first request; null before it. */
  readonly firstAt: number | null
  /** Requests left today, as headers report; null while none did. */
  readonly dailyRemaining: number | null
  /** No request is sent before; 0 if none is blocked. */
  readonly blockedUntil: number
  /** Time until which the API is parked, because the wait is too long to sit out; null if it is not parked. */
  readonly parkedUntil: number | null
  /** Share of the rate in use after refusals, from 0.01 to 1. */
  readonly factor: number
  /** The share below which the pace recovers quickly: slightly less than the one last refused. */
  readonly ceiling: number
  /** Time of the last change of `factor`. */
  readonly changedAt: number
  /** Refusals in a row. */
  readonly refusals: number
  /** `sent` at the last refusal: refusals of requests up to this number are not counted again. */
  readonly refusedTicket: number
}

/** Creates a governor that knows only the configured rate, which applies until headers report a limit. */
export function newGovernor({ perMinute }: ConfiguredRate): Governor {
  return {
    perMinute,
    limit: null,
    windowMs: minuteMs,
    sent: 0,
    inFlight: 0,
    allowance: null,
    toldTicket: 0,
    resetAt: null,
    resetSince: 0,
    fixed: null,
    slot: null,
    firstAt: null,
    dailyRemaining: null,
    blockedUntil: 0,
    parkedUntil: null,
    factor: 1,
    ceiling: 1,
    changedAt: 0,
    refusals: 0,
    refusedTicket: 0,
  }
}

/** Returns the state after an event; nothing is changed in place. */
export function governor(state: Governor, event: GovernorEvent): Governor {
  switch (event.kind) {
    case 'request-sent':
      return afterSending(state, event.at)
    case 'lost':
      return { ...state, inFlight: Math.max(0, state.inFlight - 1) }
    case 'response': {
      const signs = readLimits(event.headers, event.at)
      const landed = { ...state, inFlight: Math.max(0, state.inFlight - 1) }
      // A limit on one resource does not concern the pace of the others.
      if (event.code === 'snapshot_limit') return landed
      const learned = learn(landed, signs, event.at, event.ticket)
      if (event.status === 429) return park(afterRefusal(learned, signs, event), signs, event)
      if (event.status >= 500) return park(hold(learned, signs, event.at), signs, event)
      return spent(recover(learned, event), signs, event.at)
    }
  }
}

/**
 * Returns the milliseconds until the next request may be sent; 0 means now. While parked, the time until `parkedUntil`.
 */
export function nextSlot(state: Governor, now: number): number {
  const due = Math.max(state.blockedUntil, state.parkedUntil ?? 0, paced(state, now))
  return due > now ? Math.ceil(due - now) : 0
}

/**
 * Returns the time until which the API is parked, in milliseconds since 1970; null if it is not. A next slot beyond the
 * longest wait counts the same, whichever answer caused it.
 */
export function parkedUntil(state: Governor, now: number): number | null {
  if (state.parkedUntil !== null && state.parkedUntil > now) return state.parkedUntil
  const wait = nextSlot(state, now)
  return wait > parkMs ? now + wait : null
}

/** Requests a minute at which the governor paces now. */
export const currentRate = (state: Governor, now: number): number => minuteMs / spacing(state, now)

function afterSending(state: Governor, at: number): Governor {
  const gap = spacing(state, at)
  // A timer that fires late must not lower the rate, so the grid does not move, up to a small debt. It begins with that
  // debt, so that the first few requests need not wait for each other.
  const debt = Math.min(state.windowMs * 0.005, 3 * gap)
  const due = state.slot === null ? at - debt : Math.min(at, Math.max(state.slot + gap, at - debt))
  return {
    ...state,
    sent: state.sent + 1,
    inFlight: state.inFlight + 1,
    slot: Math.max(due, state.blockedUntil),
    firstAt: state.firstAt ?? at,
  }
}

/** Returns the time at which pacing alone allows the next request. */
function paced(state: Governor, now: number): number {
  if (state.dailyRemaining !== null && state.inFlight > 0 && state.inFlight >= state.dailyRemaining) {
    return now + spacing(state, now)
  }
  const left = state.allowance === null ? 1 : state.allowance - state.sent
  const isResetKnown = state.resetAt !== null && state.resetAt > now
  if (left <= 0 && isResetKnown && state.fixed === true) return (state.resetAt ?? now) + marginMs
  // A clock that stepped back must not delay requests by the size of the step.
  return state.slot === null ? now : Math.min(state.slot, now) + spacing(state, now)
}

/** Returns the milliseconds between two requests. */
function spacing(state: Governor, now: number): number {
  const quota = state.limit !== null && state.windowMs > quotaMs
  const limit = quota ? state.perMinute : (state.limit ?? state.perMinute)
  const windowMs = quota || state.limit === null ? minuteMs : state.windowMs
  const even = windowMs / (limit * share * state.factor)
  if (quota || state.fixed !== true || state.allowance === null || state.resetAt === null) return even
  const left = state.allowance - state.sent
  // Others use the same key: the rest of a fixed window's allowance is spread over the rest of its time.
  const rest = state.resetAt - now - 1.5 * marginMs
  return left > 0 && rest > 0 ? Math.max(even, rest / left) : even
}

function learn(state: Governor, signs: LimitSigns, at: number, ticket: number): Governor {
  // Answers may arrive out of order; an older one knows less.
  if (ticket < state.toldTicket) return state
  const dailyRemaining = signs.dailyRemaining ?? state.dailyRemaining
  const updated = { ...state, toldTicket: ticket, dailyRemaining, ...window(state, signs) }
  const reset = signs.resetMs === null ? updated : { ...updated, ...resetting(updated, at, at + signs.resetMs) }
  if (signs.remaining === null || reset.limit === null) return reset
  return { ...reset, allowance: signs.remaining + ticket }
}

/** Determines the length of the window: a minute, or the time to the reset if that is further away. */
function window(state: Governor, signs: LimitSigns): Pick<Governor, 'limit' | 'windowMs'> {
  const limit = signs.limit ?? state.limit
  const far = signs.resetMs !== null && signs.resetMs > nearMs ? signs.resetMs : minuteMs
  const windowMs = limit === state.limit ? Math.max(state.windowMs, far) : far
  return { limit, windowMs }
}

function resetting(state: Governor, at: number, resetAt: number): Partial<Governor> {
  const before = state.resetAt
  if (before === null) return { resetAt, resetSince: at, fixed: state.windowMs > minuteMs ? true : null }
  if (Math.abs(resetAt - before) <= wobbleMs) {
    return at - state.resetSince >= 3_000 && resetAt > at ? { fixed: state.fixed ?? true } : {}
  }
  // It moved before its time, or by less than a window: one place becomes free, and the window does not restart.
  const moves = resetAt > before && (at < before - marginMs || resetAt - before < state.windowMs / 2)
  if (moves) return { resetAt, resetSince: at, fixed: false }
  return { resetAt, resetSince: at }
}

/**
 * Updates the state after a 429: waits as long as the provider demands, and slows down if earlier use does not explain
 * the refusal.
 */
function afterRefusal(state: Governor, signs: LimitSigns, event: { at: number; ticket: number }): Governor {
  const fresh = event.ticket > state.refusedTicket
  const refusals = fresh ? state.refusals + 1 : state.refusals
  const signalledMs = signs.retryAfterMs ?? (signs.resetMs === null ? null : signs.resetMs + marginMs)
  const doubled = Math.min(minuteMs, marginMs * 2 ** (refusals - 1))
  // A provider that names a short wait is believed: at most a few of these waits, however often it refuses.
  const again = signalledMs === null || signalledMs === 0 ? doubled : Math.min(doubled, mostWaits * signalledMs)
  const backoff = signalledMs === null || refusals > 1 ? again : 0
  const blockedUntil = Math.max(state.blockedUntil, event.at + Math.max(signalledMs ?? 0, backoff))
  if (!fresh) return { ...state, blockedUntil }
  const first = event.at - (state.firstAt ?? event.at) <= state.windowMs
  const explained = first && signalledMs !== null && refusals === 1
  const cut = explained ? 1 : state.limit === null ? 0.7 : 0.97
  return {
    ...state,
    refusals,
    refusedTicket: state.sent,
    blockedUntil,
    factor: Math.max(leastFactor(state, signalledMs), state.factor * cut),
    ceiling: explained ? state.ceiling : state.factor * 0.98,
    changedAt: blockedUntil,
  }
}

/** Returns the lowest factor of the pace, at which one request is sent in each wait that the provider names. */
function leastFactor({ limit, windowMs, perMinute }: Governor, waitMs: number | null): number {
  if (waitMs === null || waitMs <= 0) return 0.01
  const allowed = limit === null ? perMinute / minuteMs : limit / windowMs
  return Math.min(1, Math.max(0.01, 1 / waitMs / allowed))
}

/** Blocks all requests until the time that the server names, if it names one. */
function hold(state: Governor, signs: LimitSigns, at: number): Governor {
  if (signs.retryAfterMs === null) return state
  return { ...state, blockedUntil: Math.max(state.blockedUntil, at + signs.retryAfterMs) }
}

/** Increases the pace slowly: in steps of 5 % up to the one last refused, then of 0.5 %. */
function recover(state: Governor, event: { at: number; ticket: number }): Governor {
  const refusals = event.ticket > state.refusedTicket ? 0 : state.refusals
  if (state.factor >= 1 || event.at - state.changedAt < 10_000) return { ...state, refusals }
  const step = state.factor < state.ceiling ? Math.min(state.ceiling, state.factor * 1.05) : state.factor + 0.005
  return { ...state, refusals, factor: Math.min(1, step), changedAt: event.at }
}

/** Parks the API after a spent quota, or for a wait that is too long to sit out. */
function park(state: Governor, signs: LimitSigns, event: { at: number; status: number; code?: string | null }) {
  const wait = state.blockedUntil - event.at
  const quota = event.status === 429 && (event.code === 'quota_exceeded' || signs.dailyRemaining === 0)
  if (!quota && wait <= parkMs) return state
  const hasUntil = signs.retryAfterMs !== null || wait > parkMs
  const until = hasUntil ? state.blockedUntil : nextMidnight(event.at)
  return { ...state, parkedUntil: Math.max(state.parkedUntil ?? 0, until) }
}

/** Parks the API once the last request of a long window was answered, without waiting for a refusal. */
function spent(state: Governor, signs: LimitSigns, at: number): Governor {
  if (signs.remaining !== 0 || signs.resetMs === null || signs.resetMs <= parkMs) return state
  // A sliding window frees a place long before the reset that it reports, unless it is a quota.
  if (state.fixed === false && state.windowMs <= quotaMs) return state
  return { ...state, parkedUntil: Math.max(state.parkedUntil ?? 0, at + signs.resetMs + marginMs) }
}

/** Returns the next midnight UTC, which counts as the end of a daily quota if the provider reports none. */
const nextMidnight = (at: number): number => (Math.floor(at / 86_400_000) + 1) * 86_400_000
