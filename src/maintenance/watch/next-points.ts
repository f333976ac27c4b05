import { availableAt, ruleFor } from '../../catalog/availability.ts'
import type { Endpoint } from '../../catalog/catalogue.ts'
import type { Wanted } from '../../catalog/series.ts'
import { isPlain } from '../../lake/ledger/coverage.ts'
import type { WindowAnswer } from '../../lake/ledger/entry.ts'
import { storedInterval } from '../../lake/ledger/index-queries.ts'
import { isTriedAgain, standingRefusal, type StandingRefusal } from '../../lake/ledger/refusals.ts'
import type { Ask, Held } from '../../sources/metrics/plan.ts'
import {
  ceil,
  day,
  end,
  hour,
  type Instant,
  type Interval,
  measureOf,
  minute,
  monthIndex,
  step,
  type Weekday,
} from '../../base/time.ts'

/** Arrivals so far of the points of one endpoint and interval; seconds after the end of their interval. */
export interface LearntArrivals {
  /** Number of known arrivals, and of points that came in time during a watch. */
  readonly observations: number
  /** Lags before nearly all arrivals, in their middle, and after nearly all; null if the rule describes them. */
  readonly lag: { readonly early: number; readonly usual: number; readonly late: number } | null
  /** Answers of the provider to the request, which is sent until enough has been seen. */
  readonly reportedLags?: { readonly usual: number; readonly late: number }
}

/** Reason for the instant at which a point is expected. */
export type ExpectedBy = 'rule' | 'told' | 'learnt' | 'new' | 'quiet' | 'refused'

/** Next point of one series. */
export interface NextPoint extends Pick<Ask, 'series' | 'endpoint' | 'interval'> {
  /** First point that is missing at the end; null if none was ever stored. */
  readonly t: Instant | null
  /** Time when it is expected; a series without points, or refused, is due when it is to be requested again. */
  readonly due: Instant
  readonly by: ExpectedBy
  readonly observations: number
  /** Time of the last request for it, as far as that matters; null if there was none. */
  readonly lastRequested: Instant | null
  /** Time of the next request: near the instant at which it is due, after a failure later and later. */
  readonly poll: Instant
}

/** Inputs for the next points, in addition to the wanted series. */
interface NextPointsInput {
  readonly held: ReadonlyMap<string, Held>
  /** Arrivals by `path interval`. */
  readonly learnt: ReadonlyMap<string, LearntArrivals>
  /**
   * Time of the last request of a series, if the lake does not record it: answers before a point is due resolve
   * nothing.
   */
  readonly polled?: ReadonlyMap<string, Instant>
  readonly weekStart?: Weekday
  readonly at: Instant
}

/** Minimum arrivals before the lag of an endpoint counts as known. */
export const minArrivalsForLag = 10
/** Number of intervals of which one is requested early to measure a known lag again. */
const lookEvery = 20
/** Minimum seconds between two requests for the same point. */
const shortest = minute

/** Computes the next point of every wanted series, the earliest first; pure. Series that end before now have none. */
export function nextPoints(wanted: readonly Wanted[], input: NextPointsInput): NextPoint[] {
  return wanted
    .flatMap((want) => nextOf(want, input) ?? [])
    .toSorted((a, b) => a.due - b.due || a.poll - b.poll || (a.t ?? 0) - (b.t ?? 0))
}

function nextOf(want: Wanted, { held, learnt, polled, weekStart, at }: NextPointsInput): NextPoint | null {
  const { series, endpoint } = want
  const stored = held.get(series.id)
  const interval = storedInterval({ interval: series.interval, settled: stored?.settled ?? null })
  const lagFacts = learnt.get(`${endpoint.path} ${interval}`) ?? { observations: 0, lag: null }
  const answers = (stored?.answers ?? []).filter(({ state }) => state !== 'not requested')
  // An instant of the future came from a clock that was wrong.
  const past = (instant: Instant): Instant => (instant > at ? Number.NEGATIVE_INFINITY : instant)
  const memory = past(polled?.get(series.id) ?? Number.NEGATIVE_INFINITY)
  const askedOf = (rows: typeof answers): Instant => Math.max(memory, ...rows.map(({ asked_at }) => past(asked_at)))
  const last = askedOf(answers)
  const lately = Number.isFinite(last) ? last : null
  const facts: SeriesFacts = { series, endpoint, interval, observations: lagFacts.observations, lastRequested: lately }
  const refusal = standingRefusal(answers)
  if (refusal !== null) {
    const due = triedAgainAt(refusal)
    return { ...facts, t: null, due, by: 'refused', poll: Math.max(due, memory + hour) }
  }
  const reached = Math.max(...answers.filter(isPlain).map(({ until }) => until))
  const line: Line = { endpoint, interval, learnt: lagFacts }
  if (!Number.isFinite(reached)) return firstOf(want, facts, { line, asked: last, weekStart, at, answers })
  const t = ceil(reached, interval, weekStart)
  if (want.until !== null && t >= want.until) return null
  const beyond = answers.filter((row) => row.until > reached)
  const requestedAt = askedOf(beyond)
  if (beyond.some(({ reason, since }) => reason === 'gap' && since <= reached)) {
    const due = requestedAt === Number.NEGATIVE_INFINITY ? at : requestedAt + day
    return { ...facts, t, due, by: 'quiet', poll: due }
  }
  return { ...facts, t, due: dueAt(line, t), by: byOf(lagFacts), poll: pollAfter(line, t, requestedAt) }
}

/** Facts of a series that do not depend on its next point. */
type SeriesFacts = Pick<NextPoint, 'series' | 'endpoint' | 'interval' | 'observations' | 'lastRequested'>

/**
 * Computes the first point of a series without stored points: never requested, not begun yet, or one with empty
 * answers, requested once a day.
 */
function firstOf(
  { since }: Wanted,
  facts: SeriesFacts,
  stored: {
    readonly line: Line
    readonly asked: Instant
    readonly weekStart: Weekday | undefined
    readonly at: Instant
    readonly answers: readonly WindowAnswer[]
  },
): NextPoint {
  const { line, asked, weekStart, at, answers } = stored
  const first = since === null ? null : ceil(since, facts.interval, weekStart)
  const never = asked === Number.NEGATIVE_INFINITY
  if (first !== null && never && dueAt(line, first) > at)
    return { ...facts, t: first, due: dueAt(line, first), by: byOf(line.learnt), poll: pollAfter(line, first, asked) }
  if (never) return { ...facts, t: null, due: at, by: 'new', poll: at }
  const failed = answers.length === 0 || answers.some(({ state }) => state === 'failed')
  const due = asked + (failed ? hour : day)
  return { ...facts, t: null, due, by: 'quiet', poll: due }
}

/** Computes the instant from which a refusal may be tried again. */
function triedAgainAt(refusal: StandingRefusal): Instant {
  const steps = [hour, day, 30 * day].map((after) => refusal.asked_at + after)
  return steps.find((instant) => isTriedAgain(refusal, instant)) ?? refusal.asked_at + 30 * day
}

/** Facts by which the points of a series are due. */
interface Line {
  readonly endpoint: Pick<Endpoint, 'rules'>
  readonly interval: Interval
  readonly learnt: LearntArrivals
}

const isLearnt = ({ observations, lag }: LearntArrivals): boolean => lag !== null && observations >= minArrivalsForLag

function byOf(learnt: LearntArrivals): ExpectedBy {
  if (isLearnt(learnt)) return 'learnt'
  return learnt.reportedLags === undefined ? 'rule' : 'told'
}

/**
 * Returns the lag after which points are expected: the observed one, else the provider's; null if only the rule is
 * known.
 */
function expected(learnt: LearntArrivals): { readonly usual: number; readonly late: number } | null {
  return isLearnt(learnt) ? learnt.lag : (learnt.reportedLags ?? null)
}

/**
 * Computes the earliest instant at which an answer can contain the point: the end of its interval, or what a stated
 * rule says.
 */
function earliest({ endpoint, interval }: Line, t: Instant): Instant {
  const rules = endpoint.rules[interval]
  return ruleFor(rules, t).basis === 'stated' ? availableAt(rules, t, interval) : end(t, interval)
}

/**
 * Computes when a point is expected: after nearly every lag that was observed or reported, else by the rule; whole
 * minutes.
 */
function dueAt(line: Line, t: Instant): Instant {
  const { endpoint, interval, learnt } = line
  const lag = expected(learnt)
  if (lag === null) return availableAt(endpoint.rules[interval], t, interval)
  return Math.max(earliest(line, t), end(t, interval) + wholeMinutes(lag.late))
}

const wholeMinutes = (seconds: number): number => Math.ceil(seconds / minute) * minute

/** Counts the intervals before the one that starts at `t`, from a fixed one on. */
function indexOf(t: Instant, interval: Interval): number {
  const { seconds, months } = measureOf(interval)
  return months > 0 ? Math.floor(monthIndex(t) / months) : Math.floor(t / seconds)
}

/**
 * Computes when to request a point: once when it is due while its lag is known, and one interval in twenty also before,
 * to record that it was not there yet; before and when it is due while its lag is being learnt. `spread`: how long to
 * wait for one that is late.
 */
function pollsOf(line: Line, t: Instant): { readonly polls: readonly Instant[]; readonly spread: number } {
  const { learnt, interval } = line
  const due = dueAt(line, t)
  const close = end(t, interval)
  const lag = expected(learnt)
  const looks = !isLearnt(learnt) || indexOf(t, interval) % lookEvery === 0
  const early = isLearnt(learnt) && learnt.lag !== null ? [close + Math.floor(learnt.lag.early / minute) * minute] : []
  const before = lag === null ? [close + Math.floor((due - close) / 2)] : [...early, close + wholeMinutes(lag.usual)]
  const spread = lag === null ? Math.floor((due - close) / 4) : lag.late - lag.usual
  const floorAt = earliest(line, t)
  const polls = [...(looks ? before : []), due].map((instant) => Math.max(instant, floorAt))
  const spacedPolls = polls.filter(
    (instant, i) => instant <= due && (i === polls.length - 1 || due - instant >= shortest),
  )
  return { polls: [...new Set(spacedPolls)], spread: Math.min(hour, Math.max(shortest, spread)) }
}

/** Computes the first instant after the last answer at which to request the point `from`, or one that follows it. */
function pollAfter(line: Line, from: Instant, requestedAt: Instant): Instant {
  const first = (t: Instant): Instant => pollsOf(line, t).polls[0] ?? dueAt(line, t)
  if (requestedAt < first(from)) return first(from)
  const { interval } = line
  let youngest = Math.max(from, step(from, interval, indexOf(requestedAt, interval) - indexOf(from, interval)))
  while (youngest > from && first(youngest) > requestedAt) youngest = step(youngest, interval, -1)
  return Math.min(pollOf(line, youngest, requestedAt), first(step(youngest, interval, 1)))
}

/**
 * Computes the first instant after the last answer at which to request a point: twice as long after each that lacks it.
 */
function pollOf(line: Line, t: Instant, requestedAt: Instant): Instant {
  const { polls, spread } = pollsOf(line, t)
  const planned = polls.find((instant) => instant > requestedAt)
  if (planned !== undefined) return planned
  const due = polls.at(-1) ?? requestedAt
  let wait = spread
  while (due + wait <= requestedAt && wait < day) wait *= 2
  return wait < day ? due + wait : Math.max(due + wait, requestedAt + day)
}

/**
 * Computes the next poll of the registry: hourly, also on days on which it takes nothing in, because corrections come
 * then.
 */
export function nextRegistryPoll(polledAt: Instant | null, at: Instant): Instant {
  return polledAt === null || polledAt > at ? at : polledAt + hour
}
