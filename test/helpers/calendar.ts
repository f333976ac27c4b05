import type { Interval } from '../../src/base/time.ts'
import { startAfter, startAt } from './time-twin.ts'

// The twin of time in microseconds.

/** How long each is; a month as long as on average. */
export const lengths: Readonly<Record<Interval, number>> = {
  '10m': 600e6,
  '1h': 3600e6,
  '24h': 86_400e6,
  '1w': 604_800e6,
  '1month': 2_629_800e6,
  '3month': 7_889_400e6,
}

/** The start of the interval `n` intervals behind the one that starts at `t`. */
export const later = (t: number, interval: Interval, n = 1): number => startAfter(t / 1e6, interval, n) * 1e6

/** The start of the interval that holds the instant; weeks begin on Monday. */
export const begin = (at: number, interval: Interval): number => startAt(Math.floor(at / 1e6), interval) * 1e6
