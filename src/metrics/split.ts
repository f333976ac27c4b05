import { count, day, type Instant, longestSeconds, step, type Weekday } from '../time.ts'
import { type Ask, horizonOf } from './plan.ts'

/** The two halves of a request that was too much for the provider; null where there is nothing to halve. */
export function halve(ask: Ask): readonly [Ask, Ask] | null {
  const { window, interval } = ask
  if (window === null) return null
  const points = count(window.since, window.until, interval)
  if (points < 2) return null
  const middle = step(window.since, interval, Math.floor(points / 2))
  return [part(ask, window.since, middle), part(ask, middle, window.until)]
}

function part(ask: Ask, since: number, until: number): Ask {
  const settles = {
    since: Math.max(since, ask.settles.since),
    until: Math.max(since, Math.min(until, ask.settles.until)),
  }
  return { ...ask, window: { since, until }, settles, points: count(since, until, ask.interval) }
}

/** A window of at most so many points is short: its length is no reason to refuse it. */
const shortPoints = 100
const probePoints = 10

/** Whether the window itself is short, or the endpoint takes no shorter one. */
export function isShort({ window, points, endpoint }: Ask): boolean {
  return window === null || !endpoint.since || !endpoint.until || points <= shortPoints
}

/** Whether the window is not worth halving: what it holds is less than what finding the border costs. */
export function isSmall({ window, points, endpoint }: Ask): boolean {
  return window === null || !endpoint.since || !endpoint.until || points <= probePoints
}

/** Whether the window ends so lately that a provider of any history has it. */
export function isRecent({ window, interval }: Ask, now: Instant): boolean {
  return window === null || now - window.until <= Math.max(90 * day, 10 * longestSeconds(interval))
}

/** The shortest and newest window that the provider should have, to learn what was refused: the series or the range. */
export function probeOf(ask: Ask, now: Instant, weekStart: Weekday): Ask {
  const { final } = horizonOf(ask.endpoint, ask.interval, now, weekStart)
  const window = { since: step(final, ask.interval, -probePoints), until: final }
  // It settles what it brings; what it is refused is final by the window that it was asked for.
  return { ...ask, window, settles: { since: window.since, until: window.since }, points: probePoints }
}
