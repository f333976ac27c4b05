import type { Interval } from '../../src/time.ts'

/*
 * Intervals once more, in microseconds, by nothing but the platform's calendar: what a test expects of time is not told
 * by the code that it tests.
 */

/** How long each is; a month as long as on average. */
export const lengths: Readonly<Record<Interval, number>> = {
  '10m': 600e6,
  '1h': 3600e6,
  '24h': 86_400e6,
  '1w': 604_800e6,
  '1month': 2_629_800e6,
}

/** The start of the interval `n` intervals behind the one that starts at `t`. */
export function later(t: number, interval: Interval, n = 1): number {
  if (interval !== '1month') return t + n * lengths[interval]
  const date = new Date(t / 1000)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + n, 1) * 1000
}

/** The start of the interval that holds the instant; weeks begin on Monday. */
export function begin(at: number, interval: Interval): number {
  const date = new Date(Math.floor(at / 1000))
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  if (interval === '1month') return Date.UTC(year, month, 1) * 1000
  if (interval === '1w') return Date.UTC(year, month, day - ((date.getUTCDay() + 6) % 7)) * 1000
  return at - (((at % lengths[interval]) + lengths[interval]) % lengths[interval])
}
