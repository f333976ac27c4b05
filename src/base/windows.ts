import type { Instant } from './time.ts'

/** A half-open range of instants `[since, until)`. */
export interface Window {
  readonly since: Instant
  readonly until: Instant
}

/** Merges windows into the smallest sorted list of disjoint, non-touching, non-empty ones. */
export function union(windows: readonly Window[]): Window[] {
  return bridge(windows, 0)
}

/** Returns the parts of `left` that are in no window of `right`. */
export function minus(left: readonly Window[], right: readonly Window[]): Window[] {
  const holes = union(right)
  const between = [...holes, undefined].map((hole, n) => ({
    since: holes[n - 1]?.until ?? -Infinity,
    until: hole?.since ?? Infinity,
  }))
  return intersect(left, between)
}

/** Returns the parts that are in both lists of windows. */
export function intersect(left: readonly Window[], right: readonly Window[]): Window[] {
  const a = union(left)
  const b = union(right)
  const common: Window[] = []
  let i = 0
  let j = 0
  for (;;) {
    const x = a[i]
    const y = b[j]
    if (!x || !y) return common
    const since = Math.max(x.since, y.since)
    const until = Math.min(x.until, y.until)
    if (since < until) common.push({ since, until })
    if (x.until < y.until) i++
    else j++
  }
}

/** Joins windows if the hole between two neighbours is at most `hole` seconds. */
export function bridge(windows: readonly Window[], hole: number): Window[] {
  const joined: Window[] = []
  for (const { since, until } of windows.filter((w) => w.since < w.until).toSorted((a, b) => a.since - b.since)) {
    const last = joined.at(-1)
    if (last && since - last.until <= hole) {
      joined[joined.length - 1] = { since: last.since, until: Math.max(last.until, until) }
    } else {
      joined.push({ since, until })
    }
  }
  return joined
}
