import { exitCode, gravest, LakeError } from '../../base/errors.ts'
import { day, hour, type Instant, minute, type Weekday } from '../../base/time.ts'
import { paceToBudget } from './budget.ts'
import { type LearntArrivals, type NextPoint, nextPoints, nextRegistryPoll } from './next-points.ts'
import type { LakeLook, WatchJobs } from './jobs.ts'
import { type WatchPart, type WatchRequest, type WatchState, type WatchStep, nextAction, restAfter } from './next.ts'

/** Input of a watch. */
interface WatchInput {
  readonly weekStart: Weekday
  readonly price: (point: NextPoint) => number
  /**
   * Credits a UTC day that it and all other jobs on the lake may spend together before it stops asking; null: any
   * number.
   */
  readonly creditsPerDay: number | null
}

/** Function that waits so many milliseconds, or until the signal is aborted. */
export type WatchSleep = (ms: number, signal: AbortSignal) => Promise<void>

/** Resources of a watch; every wait goes through `sleep`. */
export interface WatchDeps {
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly sleep: WatchSleep
  readonly signal: AbortSignal
  /** Reports an event. */
  readonly log: (event: WatchEvent) => void
}

/**
 * Result of a request, as reported: `brought` counts points or events, `error` is that with which a command would have
 * ended.
 */
interface PollReport {
  readonly at: Instant
  readonly brought: number
  readonly requests: number
  readonly version: number
  readonly error: string | null
}

/** An event of a watch, with the instant at which it happened. Scripts rely on the names. */
export type WatchEvent =
  | (PollReport & { readonly kind: 'metrics'; readonly series: number; readonly next: Instant | null })
  | (PollReport & { readonly kind: 'registry' })
  | { readonly kind: 'views'; readonly at: Instant; readonly version: number }
  | {
      readonly kind: 'trouble'
      readonly at: Instant
      readonly of: WatchPart
      readonly words: string
      readonly until: Instant
    }
  | { readonly kind: 'clock'; readonly at: Instant; readonly back: number }
  | { readonly kind: 'ended'; readonly at: Instant; readonly code: number }

/** A machine that slept, or whose clock was set, is noticed within this time. */
const slice = minute
const slack = 5

/** Keeps a lake fresh until it is stopped; returns the exit code for what it saw. */
export async function watch(input: WatchInput, jobs: WatchJobs, deps: WatchDeps): Promise<number> {
  const memory = newMemory()
  const now = (): Instant => Math.floor(deps.now() / 1000)
  let last = now()
  while (!deps.signal.aborted) {
    const at = now()
    if (at < last - slack) {
      deps.log({ kind: 'clock', at, back: last - at })
      forget(memory, at)
    }
    last = at
    const look = await jobs.look(dayBegin(at))
    await learn(memory, look, jobs, at)
    const state = stateOf(input, look, memory, at)
    const action = nextAction(state, at)
    if (action.kind === 'wait') await waitUntil(action.until, at, now, deps)
    else await act(action, { input, look, memory, jobs, deps, now })
  }
  // Made also where an interrupt leaves no time for merging.
  const left = memory.tidied === null ? null : await jobs.look(dayBegin(now()))
  if (left !== null && left.version !== memory.tidied) await jobs.tidy().catch(() => null)
  const code = gravest([...memory.codes])
  deps.log({ kind: 'ended', at: now(), code })
  return code
}

/** WatchMemory of a watch. The lake stores all the rest, so that a new watch goes on where this one was killed. */
interface WatchMemory {
  /** Time of the last request by series. */
  readonly polled: Map<string, Instant>
  /** Time of the last failed request by series, since the last answer. */
  readonly tried: Map<string, Instant>
  /** Lags by `path interval`. */
  lags: ReadonlyMap<string, LearntArrivals>
  /** Time when the lags were read; null: they are read before anything is requested. */
  lagsAt: Instant | null
  /** Instant until which each part rests; 0 for none. */
  rests: Record<WatchPart, Instant>
  /** Failures in a row of each part. */
  readonly failures: Record<WatchPart, number>
  /** Instant before which nothing is done. */
  free: Instant
  /** Time of the last request to the registry; null: not by this watch. */
  registryAt: Instant | null
  /** The version whose views are in place; null until the first look. */
  tidied: number | null
  /** Time since which the lake is ahead of its views; null if it is not. */
  untidy: Instant | null
  /** Exit codes of what this watch saw. */
  readonly codes: Set<number>
  /** Last reported trouble of each part: trouble is reported when it changes, not each time. */
  readonly said: Record<WatchPart, string>
}

function newMemory(): WatchMemory {
  return {
    polled: new Map<string, Instant>(),
    tried: new Map<string, Instant>(),
    lags: new Map(),
    lagsAt: null,
    rests: { metrics: 0, registry: 0, tidy: 0 },
    failures: { metrics: 0, registry: 0, tidy: 0 },
    free: 0,
    registryAt: null,
    tidied: null,
    untidy: null,
    codes: new Set<number>(),
    said: { metrics: '', registry: '', tidy: '' },
  }
}

/** Forgets the plans of a clock that was set back: they mean nothing now. */
function forget(memory: WatchMemory, at: Instant): void {
  memory.polled.clear()
  memory.rests = { metrics: 0, registry: 0, tidy: 0 }
  memory.free = Math.min(memory.free, at + minute)
  memory.lagsAt = null
  memory.registryAt = null
  if (memory.untidy !== null) memory.untidy = Math.min(memory.untidy, at)
}

/** Reads the lags daily, hourly while some are still being learnt. */
async function learn(memory: WatchMemory, look: LakeLook, jobs: WatchJobs, at: Instant): Promise<void> {
  const learntLags = [...memory.lags.values()]
  const every = learntLags.length > 0 && learntLags.every(({ observations }) => observations >= 10) ? day : hour
  if (memory.lagsAt !== null && at < memory.lagsAt + every) return
  memory.lags = await jobs.lags(look.wanted)
  memory.lagsAt = at
}

function pointsOf({ weekStart }: WatchInput, look: LakeLook, { lags, polled }: WatchMemory, at: Instant): NextPoint[] {
  return nextPoints(look.wanted, { ...look, learnt: lags, polled, weekStart, at })
}

function stateOf(input: WatchInput, look: LakeLook, memory: WatchMemory, at: Instant): WatchState {
  const { creditsPerDay, price } = input
  memory.tidied ??= look.viewsVersion
  memory.untidy = look.version === memory.tidied && look.featuresDue !== true ? null : (memory.untidy ?? at)
  const polls = [look.registryPolled, memory.registryAt].filter((instant) => instant !== null && instant <= at)
  const polledAt = polls.length === 0 ? null : Math.max(...polls.map(Number))
  return {
    points: paceToBudget(pointsOf(input, look, memory, at), price, budgetOf(creditsPerDay, look, at), at),
    registry: look.watchesRegistry ? nextRegistryPoll(polledAt, at) : null,
    untidy: memory.untidy,
    rests: memory.rests,
    tried: memory.failures.metrics > 0 ? memory.tried : null,
    free: memory.free,
  }
}

const dayBegin = (at: Instant): Instant => Math.floor(at / day) * day

function budgetOf(creditsPerDay: number | null, { spentToday }: LakeLook, at: Instant) {
  if (creditsPerDay === null) return null
  return { credits: Math.max(0, creditsPerDay - spentToday), until: dayBegin(at) + day }
}

/** Waits in slices by the wall clock; ends early if that goes back. */
async function waitUntil(until: Instant, from: Instant, now: () => Instant, deps: WatchDeps): Promise<void> {
  for (let at = now(); at < until && at >= from - slack && !deps.signal.aborted; at = now())
    await deps.sleep(Math.min(until - at, slice) * 1000, deps.signal)
}

/** State of the lake and resources for one step of a watch. */
interface WatchContext {
  readonly input: WatchInput
  readonly look: LakeLook
  readonly memory: WatchMemory
  readonly jobs: WatchJobs
  readonly deps: WatchDeps
  readonly now: () => Instant
}

/** Runs one job; the watch continues after any outcome, unless only a person can help. */
async function act(action: WatchStep, acting: WatchContext): Promise<void> {
  const { look, memory, now } = acting
  let version = look.version
  try {
    version = action.kind === 'tidy' ? await tidy(acting) : await ask(action, acting)
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind === 'usage' || error.kind === 'unauthorised') throw error
    rest(acting, action.kind, { words: firstLine(error), until: null })
  }
  memory.free = now() + Math.max(1, version - look.version) * minute
}

const firstLine = ({ message }: LakeError): string => message.split('\n')[0] ?? ''

async function tidy({ memory, jobs, deps, now }: WatchContext): Promise<number> {
  const version = await jobs.tidy()
  memory.tidied = version
  well(memory, 'tidy')
  deps.log({ kind: 'views', at: now(), version })
  return version
}

async function ask(action: WatchRequest, acting: WatchContext): Promise<number> {
  const { input, look, memory, jobs, deps, now } = acting
  const beganAt = now()
  const creditsLeft = budgetOf(input.creditsPerDay, look, beganAt)?.credits ?? null
  const done = action.kind === 'metrics' ? await jobs.fetch(action.series, creditsLeft) : await jobs.sync()
  const { brought, requests, version, error } = done
  if (error?.kind === 'unauthorised') throw error
  if (error?.kind === 'integrity') memory.codes.add(exitCode(error))
  // One series alone may be at fault itself: its own polls request it less and less often.
  const alone = action.kind === 'metrics' && action.series.size === 1 && memory.failures.metrics === 0
  if (done.cut || (done.inVain && !alone)) {
    if (action.kind === 'metrics') for (const id of action.series) memory.tried.set(id, beganAt)
    rest(acting, action.kind, { words: error === null ? '' : firstLine(error), until: done.resumeAt })
    return version
  }
  well(memory, action.kind)
  const report: PollReport = { at: now(), brought, requests, version, error: error === null ? null : firstLine(error) }
  if (action.kind === 'registry') {
    memory.registryAt = beganAt
    deps.log({ kind: 'registry', ...report })
    return version
  }
  memory.tried.clear()
  for (const id of action.series) memory.polled.set(id, beganAt)
  // The answers decide when to come back, a refusal above all.
  const next = nextPollAfter({ ...acting, look: await jobs.look(dayBegin(now())) }, now())
  deps.log({ kind: 'metrics', ...report, series: action.series.size, next })
  return version
}

function well(memory: WatchMemory, part: WatchPart): void {
  memory.failures[part] = 0
  memory.said[part] = ''
}

/** Computes when the next series is to be requested, from the state of the lake. */
function nextPollAfter({ input, look, memory }: WatchContext, at: Instant): Instant | null {
  const points = pointsOf(input, look, memory, at)
  const first = points.reduce((soonest, { poll }) => (poll > at ? Math.min(soonest, poll) : soonest), Infinity)
  return Number.isFinite(first) ? first : null
}

/** Pauses a part: until the time that the provider names, else longer after each failure in a row. */
function rest(
  { memory, deps, now }: WatchContext,
  part: WatchPart,
  { words, until }: { readonly words: string; readonly until: Instant | null },
): void {
  if (deps.signal.aborted) return
  const at = now()
  memory.failures[part]++
  memory.rests[part] = Math.max(at + minute, until ?? at + restAfter(memory.failures[part]))
  if (words !== memory.said[part]) deps.log({ kind: 'trouble', at, of: part, words, until: memory.rests[part] })
  memory.said[part] = words
}
