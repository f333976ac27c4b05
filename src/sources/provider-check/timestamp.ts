import { day, type Instant } from '../../base/time.ts'
import { isObject } from '../../base/json.ts'

/** The meaning of `t` in daily points, with the reason. */
export interface TimestampMeaning {
  /** Meaning of `t`; null if nothing shows it. */
  readonly meaning: 'interval_start' | 'interval_end' | null
  /** Reason in words. */
  readonly evidence: string
}

/** One point as it was sent. */
export type Point = Readonly<Record<string, unknown>>

/** Returns the points of a body if it is an array of objects; null otherwise. */
export function pointsIn(body: unknown): readonly Point[] | null {
  return Array.isArray(body) && body.every(isObject) ? body : null
}

/** Whether `computed_at` is a timestamp as the lake reads it: Unix seconds. */
export const isComputed = (value: unknown): value is number => typeof value === 'number' && value >= 1e8 && value < 1e11

const timeOf = ({ t }: Point): Instant => (typeof t === 'number' ? t : Number.NEGATIVE_INFINITY)

/**
 * Whether only a second request can show the meaning of daily points: they have no `computed_at`, and the newest day is
 * not over if `t` is its start.
 */
export function isUnfinished(points: readonly Point[], now: Instant): boolean {
  return points.length > 0 && !points.some((point) => isComputed(point['computed_at'])) && newest(points) + day > now
}

const newest = (points: readonly Point[]): Instant => Math.max(...points.map(timeOf))

/**
 * Determines the meaning of `t` in daily points, with the reason; `latest` is the longest time after its end at which a
 * day may appear.
 */
export function meaningOf(
  points: readonly Point[],
  now: Instant,
  latest: number,
  again: readonly Point[] | null,
): TimestampMeaning {
  const past = points.filter((point) => timeOf(point) + day <= now)
  const deltas = past.flatMap((point) =>
    isComputed(point['computed_at']) ? [point['computed_at'] - timeOf(point)] : [],
  )
  if (deltas.length > 0) return byComputed(deltas)
  if (points.length === 0) return { meaning: null, evidence: 'no points came' }
  const last = points.find((point) => timeOf(point) === newest(points))
  const age = now - newest(points)
  const aged = `the newest daily point is ${hours(age)} old`
  if (age < day) {
    const same = again?.find((point) => timeOf(point) === newest(points))
    if (again === null || same === undefined)
      return { meaning: null, evidence: `${aged}: an end, or a day that is not over` }
    if (JSON.stringify(same) !== JSON.stringify(last))
      return {
        meaning: null,
        evidence: `${aged} and moves: unfinished days are returned, and nothing else shows the meaning`,
      }
    return {
      meaning: 'interval_end',
      evidence: `${aged} and does not change: its interval has ended, so \`t\` is the end`,
    }
  }
  if (age < day + latest || age >= 2 * day + latest)
    return { meaning: null, evidence: `${aged}, which fits both; run it an hour after midnight UTC to find out` }
  return { meaning: 'interval_start', evidence: `${aged}; if \`t\` were the end, a newer point would exist` }
}

function byComputed(deltas: readonly number[]): TimestampMeaning {
  const least = Math.min(...deltas)
  const most = Math.max(...deltas)
  const evidence = `computed_at is ${hours(least)} to ${hours(most)} after \`t\` of a day`
  if (least >= day && least < 2 * day) return { meaning: 'interval_start', evidence }
  if (least >= 0 && most < day) return { meaning: 'interval_end', evidence }
  return { meaning: null, evidence: `${evidence}, which fits neither start nor end` }
}

/** Formats hours to one decimal; the side of a day on which a time lies is never closer than that. */
const hours = (seconds: number): string => `${(seconds / 3600).toFixed(1)} h`
