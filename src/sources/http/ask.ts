import pLimit, { type LimitFunction } from 'p-limit'
import {
  currentRate,
  governor,
  newGovernor,
  nextSlot,
  parkedUntil,
  type ConfiguredRate,
  type Governor,
  type GovernorEvent,
} from './governor.ts'
import type { Http, HttpRequest, Reply } from './http.ts'
import type { Outcome } from './outcome.ts'
import { newReach, type Reach } from './reach.ts'
import { type During, unwatched } from '../../base/stopwatch.ts'
import { afterTry, noTries, type RetryPolicy, type Tries } from './retry.ts'

/** One request to an API: its address, the file for the body, and the parameters that a refusal may name. */
export interface AskRequest extends Omit<HttpRequest, 'signal' | 'firstByteMs'> {
  /** The caller's name for it, repeated in events. */
  readonly id: string
  /** Group of requests with a rate limit of its own; `data` by default. */
  readonly bucket?: string | undefined
  /** Maximum tries that end in a fault, if they are fewer than the policy's. */
  readonly attempts?: number | undefined
}

/** A step of a request, for progress and the ledger; `at` in milliseconds since 1970, `attempt` from 1. */
export type AskEvent =
  | { readonly kind: 'sent'; readonly id: string; readonly at: number; readonly attempt: number; readonly sent: number }
  | {
      readonly kind: 'answered'
      readonly id: string
      readonly at: number
      readonly attempt: number
      readonly outcome: Outcome
      /** Requests a minute at which the governor paces from here. */
      readonly perMinute: number
    }
  | {
      readonly kind: 'waiting'
      readonly id: string
      readonly at: number
      readonly waitMs: number
      readonly why: 'slot' | 'retry'
    }

/** Dependencies of an asker. */
export interface AskerDeps {
  readonly http: Pick<Http, 'get'>
  readonly governor: ConfiguredRate
  readonly retry: RetryPolicy
  /** Shared by all askers of one API; a new one unless given. */
  readonly reach?: Reach | undefined
  /** Requests this asker may send in all, repeats included; null: any number. */
  readonly maxRequests: number | null
  /** Returns the current time in milliseconds since 1970; best from a clock that never steps back. */
  readonly now: () => number
  /** Resolves after the time, or at once when the signal aborts; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
  readonly random: () => number
  /** Aborts waiting requests and those under way. */
  readonly signal?: AbortSignal | undefined
  readonly onEvent?: ((event: AskEvent) => void) | undefined
  readonly during?: During | undefined
}

/** Sends requests to one API: shared by all its workers, one pace, one stop. */
export interface Asker {
  /** Sends one request until its final outcome: waits for its slot, and repeats it if that is worthwhile. */
  readonly ask: (request: AskRequest) => Promise<Outcome>
  /** Sends no new request any more; those under way end. */
  readonly drain: () => void
  /** Requests sent so far, repeats included. */
  readonly sent: () => number
  /** Returns the governor of a bucket (`data` by default), for status. */
  readonly state: (bucket?: string) => Governor
}

/** Waits below this are the ordinary pace and not worth an event. */
const quietMs = 2_000

/** Creates an asker. A 401 ends it for good: later calls return the same outcome without a request. */
export function createAsker(deps: AskerDeps): Asker {
  const run: Run = {
    deps,
    reach: deps.reach ?? newReach(),
    governors: new Map(),
    gates: new Map(),
    halt: new AbortController(),
    sent: 0,
    ended: null,
  }
  return {
    ask: async (request: AskRequest): Promise<Outcome> => await ask(run, request),
    drain: (): void => end(run, { kind: 'stopped', by: 'signal' }),
    sent: (): number => run.sent,
    state: (bucket = 'data'): Governor => stateOf(run, bucket),
  }
}

interface Run {
  readonly deps: AskerDeps
  readonly reach: Reach
  readonly governors: Map<string, Governor>
  /** The queue for the next slot of a bucket. */
  readonly gates: Map<string, LimitFunction>
  readonly halt: AbortController
  sent: number
  ended: Outcome | null
}

async function ask(run: Run, request: AskRequest): Promise<Outcome> {
  const { deps } = run
  const policy = { ...deps.retry, attempts: Math.min(deps.retry.attempts, request.attempts ?? Infinity) }
  let tries: Tries = noTries
  let last: Outcome | null = null
  for (let attempt = 1; ; attempt++) {
    const turn = await inTurn(run, request)
    // A request that was sent before the provider counted as unreachable returns its own answer.
    if (turn.kind === 'refused') return run.reach.gaveUp() === null ? turn.outcome : (last ?? turn.outcome)
    const outcome = await once(run, request, attempt, turn.ticket)
    if (outcome.kind === 'unauthorised') end(run, outcome)
    const next = afterTry(policy, tries, outcome, deps.random)
    if (next.kind === 'stop') return outcome
    last = outcome
    tries = next.tries
    await pause(run, request, next.waitMs, 'retry')
  }
}

/** The permission to send a request now, with its number, or the outcome with which it is refused. */
type Turn = { readonly kind: 'go'; readonly ticket: number } | { readonly kind: 'refused'; readonly outcome: Outcome }

/** Waits until a request may be sent, in order of arrival: only the head of a bucket's queue checks the clock. */
async function inTurn(run: Run, request: AskRequest): Promise<Turn> {
  const bucket = bucketOf(request)
  const gate = run.gates.get(bucket) ?? pLimit(1)
  run.gates.set(bucket, gate)
  return await gate(async () => await slot(run, request))
}

async function slot(run: Run, request: AskRequest): Promise<Turn> {
  const { deps } = run
  for (;;) {
    const outcome = refusal(run, request)
    if (outcome !== null) return { kind: 'refused', outcome }
    const now = deps.now()
    const reach = run.reach.next(now)
    if (reach instanceof Promise) {
      await reach
      continue
    }
    if (typeof reach === 'object') {
      end(run, { kind: 'stopped', by: 'unreachable', ...reach })
      continue
    }
    const wait = Math.max(reach, nextSlot(stateOf(run, bucketOf(request)), now))
    if (wait === 0) {
      record(run, request, { kind: 'request-sent', at: now })
      run.reach.sent()
      run.sent++
      return { kind: 'go', ticket: stateOf(run, bucketOf(request)).sent }
    }
    await pause(run, request, wait, 'slot')
  }
}

/** Returns the reason to refuse a request; null if it may be sent. */
function refusal(run: Run, request: AskRequest): Outcome | null {
  if (run.ended !== null) return run.ended
  const { signal, now, maxRequests } = run.deps
  if (signal?.aborted) return { kind: 'stopped', by: 'signal' }
  const until = parkedUntil(stateOf(run, bucketOf(request)), now())
  if (until !== null) return { kind: 'parked', until, words: 'the quota is spent or the provider asks for a long wait' }
  return maxRequests !== null && run.sent >= maxRequests ? { kind: 'stopped', by: 'max_requests' } : null
}

async function once(run: Run, request: AskRequest, attempt: number, ticket: number): Promise<Outcome> {
  const { deps } = run
  deps.onEvent?.({ kind: 'sent', id: request.id, at: deps.now(), attempt, sent: run.sent })
  let reply: Reply
  try {
    const { url, file, etag, parameters } = request
    const firstByteMs = run.reach.leftMs(deps.now())
    const exchange = { url, file, etag, parameters, signal: deps.signal, firstByteMs }
    reply = await (deps.during ?? unwatched)('asking', () => deps.http.get(exchange))
  } catch (error) {
    run.reach.landed(null, deps.now())
    record(run, request, { kind: 'lost', at: deps.now(), ticket })
    // A disk that fails ends the run: repeating a request whose body cannot be stored is useless.
    end(run, { kind: 'stopped', by: 'signal' })
    throw error
  }
  const at = deps.now()
  record(run, request, eventOf(reply, at, ticket))
  const { outcome } = reply
  run.reach.landed(outcome, at)
  const perMinute = currentRate(stateOf(run, bucketOf(request)), at)
  deps.onEvent?.({ kind: 'answered', id: request.id, at, attempt, outcome, perMinute })
  return parkedBy(run, request, outcome) ?? outcome
}

function eventOf(reply: Reply, at: number, ticket: number): GovernorEvent {
  const { outcome, status, headers } = reply
  if (status === null) return { kind: 'lost', at, ticket }
  // The headers are dated by their own time; that of the end of a long body would date the limits wrongly.
  const head = 'at' in outcome ? outcome.at : at
  const code = 'code' in outcome ? outcome.code : null
  return { kind: 'response', at: head, ticket, status, headers, code }
}

/**
 * Turns a refusal that parks the API into the outcome `parked`, with the provider's words; null for any other outcome.
 */
function parkedBy(run: Run, request: AskRequest, outcome: Outcome): Outcome | null {
  if (outcome.kind !== 'limited' && outcome.kind !== 'again') return null
  const until = parkedUntil(stateOf(run, bucketOf(request)), run.deps.now())
  if (until === null) return null
  return { kind: 'parked', until, words: outcome.words, ...('sandbox' in outcome && { sandbox: outcome.sandbox }) }
}

/** Ends the run with an outcome, unless it has already ended, and wakes up all waiting requests. */
function end(run: Run, outcome: Outcome): void {
  run.ended ??= outcome
  run.halt.abort()
}

async function pause(run: Run, request: AskRequest, waitMs: number, why: 'slot' | 'retry'): Promise<void> {
  const { deps } = run
  if (waitMs <= 0 || run.halt.signal.aborted) return
  if (waitMs > quietMs) deps.onEvent?.({ kind: 'waiting', id: request.id, at: deps.now(), waitMs, why })
  const signal = deps.signal ? AbortSignal.any([deps.signal, run.halt.signal]) : run.halt.signal
  await (deps.during ?? unwatched)('waiting', () => deps.sleep(waitMs, signal))
}

const bucketOf = (request: AskRequest): string => request.bucket ?? 'data'

const stateOf = (run: Run, bucket: string): Governor => run.governors.get(bucket) ?? newGovernor(run.deps.governor)

function record(run: Run, request: AskRequest, event: GovernorEvent): void {
  const bucket = bucketOf(request)
  run.governors.set(bucket, governor(stateOf(run, bucket), event))
}

/**
 * Calls `act` after `ms` milliseconds of real time; the returned function cancels the call. The process may end
 * meanwhile.
 */
export function callLater(ms: number, act: () => void): () => void {
  const signal = AbortSignal.timeout(ms)
  signal.addEventListener('abort', act)
  return () => signal.removeEventListener('abort', act)
}
