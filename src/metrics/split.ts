import type { Ask } from './plan.ts'
import { count, step } from '../time.ts'

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
