import { governor, type Headers, newGovernor, nextSlot } from '../../src/sources/http/governor.ts'

/** A provider's limiter on a virtual clock: decides at the arrival of a request. */
export type Limiter = (at: number) => { allowed: boolean; headers: Record<string, string> }

type Dialect = 'seconds' | 'unix' | 'none'

function limitHeaders(dialect: Dialect, at: number, limit: number, remaining: number, resetAt: number) {
  if (dialect === 'none') return {}
  const name = dialect === 'seconds' ? 'x-rate-limit' : 'x-ratelimit'
  const reset = dialect === 'seconds' ? Math.floor((resetAt - at) / 1000) : Math.ceil(resetAt / 1000)
  return {
    [`${name}-limit`]: String(limit),
    [`${name}-remaining`]: String(remaining),
    [`${name}-reset`]: String(reset),
  }
}

export function fixedWindow(limit: number, windowMs: number, dialect: Dialect, phase = 0, used = 0): Limiter {
  let current = Number.NaN
  let count = 0
  let first = true
  return (at) => {
    const index = Math.floor((at - phase) / windowMs)
    if (index !== current) {
      current = index
      count = first ? used : 0
      first = false
    }
    const allowed = count < limit
    if (allowed) count++
    const resetAt = (index + 1) * windowMs + phase
    const headers = limitHeaders(dialect, at, limit, limit - count, resetAt)
    return {
      allowed,
      headers: allowed ? headers : { ...headers, 'retry-after': String(Math.ceil((resetAt - at) / 1000)) },
    }
  }
}

export function slidingWindow(
  limit: number,
  windowMs: number,
  dialect: Dialect,
  reset: 'whole' | 'oldest',
  used: readonly number[] = [],
): Limiter {
  let log = [...used]
  return (at) => {
    log = log.filter((sent) => sent > at - windowMs)
    const allowed = log.length < limit
    if (allowed) log.push(at)
    const oldest = (log[0] ?? at) + windowMs
    const headers = limitHeaders(dialect, at, limit, limit - log.length, reset === 'whole' ? at + windowMs : oldest)
    return {
      allowed,
      headers: allowed ? headers : { ...headers, 'retry-after': String(Math.ceil((oldest - at) / 1000)) },
    }
  }
}

export function tokenBucket(
  limit: number,
  windowMs: number,
  capacity: number,
  dialect: Dialect,
  start = capacity,
): Limiter {
  let tokens = start
  let last = Number.NaN
  const perMs = limit / windowMs
  return (at) => {
    if (!Number.isNaN(last)) tokens = Math.min(capacity, tokens + (at - last) * perMs)
    last = at
    const allowed = tokens >= 1
    if (allowed) tokens -= 1
    const headers = limitHeaders(dialect, at, limit, Math.floor(tokens), at + (capacity - tokens) / perMs)
    return {
      allowed,
      headers: allowed ? headers : { ...headers, 'retry-after': String(Math.ceil((1 - tokens) / perMs / 1000)) },
    }
  }
}

/** What came of it. */
export interface Simulation {
  allowed: number[]
  refused: number[]
  sent: number[]
  state: Parameters<typeof nextSlot>[0]
}

/** Eight workers, a latency that varies, `ms` of virtual time. */
export function simulate(limiter: Limiter, perMinute: number, ms: number, seed = 1, workers = 8, latency = 300) {
  const start = 1_700_000_000_000 + 17_345
  let random = seed
  const next = (): number => {
    random = (random * 1_103_515_245 + 12_345) % 2_147_483_648
    return random / 2_147_483_648
  }
  let state = newGovernor({ perMinute })
  const out: Simulation = { allowed: [], refused: [], sent: [], state }
  interface Event {
    at: number
    run: (at: number) => void
  }
  const queue: Event[] = []
  const later = (at: number, run: (at: number) => void): void => {
    let i = queue.length
    while (i > 0 && (queue[i - 1]?.at ?? 0) > at) i--
    queue.splice(i, 0, { at, run })
  }
  const work = (at: number): void => {
    const wait = nextSlot(state, at)
    // A timer is late by a few milliseconds.
    if (wait > 0) return later(at + wait + next() * 5, work)
    state = governor(state, { kind: 'request-sent', at })
    const ticket = state.sent
    out.sent.push(at - start)
    later(at + latency * (0.2 + 0.5 * next()), (arrived) => {
      const { allowed, headers } = limiter(arrived)
      ;(allowed ? out.allowed : out.refused).push(arrived - start)
      later(arrived + latency * (0.2 + 0.5 * next()), (back) => {
        const all: Headers = { ...headers, date: new Date(arrived).toUTCString() }
        state = governor(state, { kind: 'response', at: back, ticket, status: allowed ? 200 : 429, headers: all })
        work(back)
      })
    })
  }
  for (let i = 0; i < workers; i++) later(start, work)
  for (let event = queue.shift(); event !== undefined && event.at < start + ms; event = queue.shift())
    event.run(event.at)
  out.state = state
  return out
}
