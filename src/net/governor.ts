import { type Headers, type LimitSigns, readLimits } from './limits.ts'

/** What a governor starts from. */
export interface GovernorOptions {
  /** The configured rate, until headers say otherwise. */
  readonly perMinute: number
}

/** What happened. `at` is in milliseconds since 1970; `ticket` is the number of the request, as `sent` was after it. */
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
/** A wait beyond this is not sat out: the API is parked and the run ends with the time to come back. */
const parkMs = 900_000
/** The share of a limit that is used. */
const share = 0.99
/** Reset instants of one fixed window differ by this much through rounding and latency. */
const wobbleMs = 2_100
/** So many of the waits that a provider names are waited at most after refusals in a row. */
const mostWaits = 2
/** Seconds in headers are rounded down: one more is waited. */
const marginMs = 1_000

/** All that one API's governor knows, nothing yet. */
export function newGovernor({ perMinute }: GovernorOptions) {
  return {
    perMinute,
    /** Learned from headers: `limit` requests a `windowMs`; null while no header told. */
    limit: null as number | null,
    windowMs: minuteMs,
    /** Requests ever sent, and those still under way. */
    sent: 0,
    inFlight: 0,
    /** `sent` may not pass this before `resetAt`, by the newest answer. */
    allowance: null as number | null,
    /** The number of the newest request that was answered. */
    toldTicket: 0,
    resetAt: null as number | null,
    /** Since when `resetAt` stands still. A fixed window's does; a sliding window's or a bucket's moves along. */
    resetSince: 0,
    fixed: null as boolean | null,
    /** The instant for which the last request was due. */
    slot: null as number | null,
    firstAt: null as number | null,
    dailyRemaining: null as number | null,
    blockedUntil: 0,
    parkedUntil: null as number | null,
    /** Share of the rate in use after refusals, the share that was last refused, and when it last changed. */
    factor: 1,
    ceiling: 1,
    changedAt: 0,
    refusals: 0,
    refusedTicket: 0,
  }
}

/** A plain value, changed only by `governor`. */
export type Governor = Readonly<ReturnType<typeof newGovernor>>

/** The state after the event; nothing is changed in place. */
export function governor(state: Governor, event: GovernorEvent): Governor {
  switch (event.kind) {
    case 'request-sent':
      return afterSending(state, event.at)
    case 'lost':
      return { ...state, inFlight: Math.max(0, state.inFlight - 1) }
    case 'response': {
      const signs = readLimits(event.headers, event.at)
      const landed = { ...state, inFlight: Math.max(0, state.inFlight - 1) }
      // A limit on one resource says nothing about the pace of the others.
      if (event.code === 'snapshot_limit') return landed
      const learned = learn(landed, signs, event.at, event.ticket)
      if (event.status === 429) return park(refuse(learned, signs, event), signs, event)
      if (event.status >= 500) return park(hold(learned, signs, event.at), signs, event)
      return spent(recover(learned, event), signs, event.at)
    }
  }
}

/** Milliseconds until the next request may go out; 0 means now. While parked, the time until `parkedUntil`. */
export function nextSlot(state: Governor, now: number): number {
  const due = Math.max(state.blockedUntil, state.parkedUntil ?? 0, paced(state, now))
  return due > now ? Math.ceil(due - now) : 0
}

/**
 * Until when the API is parked, in milliseconds since 1970; null when it is not. A slot that is further away than anyone
 * sits out is as good as that, whichever answer told of it.
 */
export function parked(state: Governor, now: number): number | null {
  if (state.parkedUntil !== null && state.parkedUntil > now) return state.parkedUntil
  const wait = nextSlot(state, now)
  return wait > parkMs ? now + wait : null
}

/** Requests a minute at which the governor paces now. */
export function currentRate(state: Governor, now: number): number {
  return minuteMs / spacing(state, now)
}

function afterSending(state: Governor, at: number): Governor {
  const gap = spacing(state, at)
  // A timer that fires late must not lower the rate: the grid stands still, up to a small debt. It begins with that debt,
  // so that a few questions need not wait for each other.
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

/** The instant at which pacing alone lets the next request go. */
function paced(state: Governor, now: number): number {
  if (state.dailyRemaining !== null && state.inFlight > 0 && state.inFlight >= state.dailyRemaining) {
    return now + spacing(state, now)
  }
  const left = state.allowance === null ? 1 : state.allowance - state.sent
  const known = state.resetAt !== null && state.resetAt > now
  if (left <= 0 && known && state.fixed === true) return (state.resetAt ?? now) + marginMs
  // A clock that stepped back must not stop the pace for as long as it stepped.
  return state.slot === null ? now : Math.min(state.slot, now) + spacing(state, now)
}

/** Milliseconds between two requests. */
function spacing(state: Governor, now: number): number {
  const quota = state.limit !== null && state.windowMs > quotaMs
  const limit = quota ? state.perMinute : (state.limit ?? state.perMinute)
  const windowMs = quota || state.limit === null ? minuteMs : state.windowMs
  const even = windowMs / (limit * share * state.factor)
  if (quota || state.fixed !== true || state.allowance === null || state.resetAt === null) return even
  const left = state.allowance - state.sent
  // Somebody else uses the same key: what is left of a fixed window is spread over the rest of it.
  const rest = state.resetAt - now - 1.5 * marginMs
  return left > 0 && rest > 0 ? Math.max(even, rest / left) : even
}

function learn(state: Governor, signs: LimitSigns, at: number, ticket: number): Governor {
  // Answers overtake each other; an old one knows less.
  if (ticket < state.toldTicket) return state
  const dailyRemaining = signs.dailyRemaining ?? state.dailyRemaining
  const told = { ...state, toldTicket: ticket, dailyRemaining, ...window(state, signs) }
  const reset = signs.resetMs === null ? told : { ...told, ...resetting(told, at, at + signs.resetMs) }
  if (signs.remaining === null || reset.limit === null) return reset
  return { ...reset, allowance: signs.remaining + ticket }
}

/** The window is a minute, unless the reset is further away: then it is that long. */
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
  // Moved before it came, or by less than a window: a place becomes free, the window does not start anew.
  const moves = resetAt > before && (at < before - marginMs || resetAt - before < state.windowMs / 2)
  if (moves) return { resetAt, resetSince: at, fixed: false }
  return { resetAt, resetSince: at }
}

/** After 429: waits as long as told, backs off where the refusal is not explained by what was used before. */
function refuse(state: Governor, signs: LimitSigns, event: { at: number; ticket: number }): Governor {
  const fresh = event.ticket > state.refusedTicket
  const refusals = fresh ? state.refusals + 1 : state.refusals
  const told = signs.retryAfterMs ?? (signs.resetMs === null ? null : signs.resetMs + marginMs)
  const doubled = Math.min(minuteMs, marginMs * 2 ** (refusals - 1))
  // Who names a short wait is believed: a few of them at most, however often it refuses.
  const again = told === null || told === 0 ? doubled : Math.min(doubled, mostWaits * told)
  const backoff = told === null || refusals > 1 ? again : 0
  const blockedUntil = Math.max(state.blockedUntil, event.at + Math.max(told ?? 0, backoff))
  if (!fresh) return { ...state, blockedUntil }
  const first = event.at - (state.firstAt ?? event.at) <= state.windowMs
  const explained = first && told !== null && refusals === 1
  const cut = explained ? 1 : state.limit === null ? 0.7 : 0.97
  return {
    ...state,
    refusals,
    refusedTicket: state.sent,
    blockedUntil,
    factor: Math.max(leastFactor(state, told), state.factor * cut),
    ceiling: explained ? state.ceiling : state.factor * 0.98,
    changedAt: blockedUntil,
  }
}

/** The pace is not cut below what the provider allows itself: one request in each wait that it names. */
function leastFactor({ limit, windowMs, perMinute }: Governor, told: number | null): number {
  if (told === null || told <= 0) return 0.01
  const allowed = limit === null ? perMinute / minuteMs : limit / windowMs
  return Math.min(1, Math.max(0.01, 1 / told / allowed))
}

/** A server that says when to come back is obeyed by all. */
function hold(state: Governor, signs: LimitSigns, at: number): Governor {
  if (signs.retryAfterMs === null) return state
  return { ...state, blockedUntil: Math.max(state.blockedUntil, at + signs.retryAfterMs) }
}

/** Slowly back: steps of 5 % up to what was last refused, then of 0.5 %. */
function recover(state: Governor, event: { at: number; ticket: number }): Governor {
  const refusals = event.ticket > state.refusedTicket ? 0 : state.refusals
  if (state.factor >= 1 || event.at - state.changedAt < 10_000) return { ...state, refusals }
  const step = state.factor < state.ceiling ? Math.min(state.ceiling, state.factor * 1.05) : state.factor + 0.005
  return { ...state, refusals, factor: Math.min(1, step), changedAt: event.at }
}

/** A spent quota, or a wait longer than anyone sits out, parks the API. */
function park(
  state: Governor,
  signs: LimitSigns,
  event: { at: number; status: number; code?: string | null },
): Governor {
  const wait = state.blockedUntil - event.at
  const quota = event.status === 429 && (event.code === 'quota_exceeded' || signs.dailyRemaining === 0)
  if (!quota && wait <= parkMs) return state
  const told = signs.retryAfterMs !== null || wait > parkMs
  const until = told ? state.blockedUntil : nextMidnight(event.at)
  return { ...state, parkedUntil: Math.max(state.parkedUntil ?? 0, until) }
}

/** The last request of a long window was answered: no need to be refused to know. */
function spent(state: Governor, signs: LimitSigns, at: number): Governor {
  if (signs.remaining !== 0 || signs.resetMs === null || signs.resetMs <= parkMs) return state
  // A sliding window frees a place long before the reset it shows, unless it is a quota.
  if (state.fixed === false && state.windowMs <= quotaMs) return state
  return { ...state, parkedUntil: Math.max(state.parkedUntil ?? 0, at + signs.resetMs + marginMs) }
}

/** Where a daily quota's end is not told, it is taken to be the next midnight UTC. */
function nextMidnight(at: number): number {
  return (Math.floor(at / 86_400_000) + 1) * 86_400_000
}
