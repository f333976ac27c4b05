import type { Instant } from './time.ts'

/** A half-open range of instants `[since, until)`. */
export interface Window {
  readonly since: Instant
  readonly until: Instant
}

/** The windows as the smallest sorted list of disjoint, non-touching, non-empty ones. */
export function union(windows: readonly Window[]): Window[] {
  const sorted = windows.filter((w) => w.since < w.until).toSorted((a, b) => a.since - b.since)
  const merged: Window[] = []
  for (const window of sorted) {
    const last = merged.at(-1)
    if (last && window.since <= last.until) {
      if (window.until > last.until) merged[merged.length - 1] = { since: last.since, until: window.until }
    } else {
      merged.push({ since: window.since, until: window.until })
    }
  }
  return merged
}

/** What is in `left` and in no window of `right`. */
export function minus(left: readonly Window[], right: readonly Window[]): Window[] {
  const holes = union(right)
  const rest: Window[] = []
  let hole = 0
  for (const window of union(left)) {
    let since = window.since
    while (hole < holes.length && (holes[hole]?.until ?? 0) <= since) hole++
    for (let next = hole; next < holes.length; next++) {
      const cut = holes[next]
      if (!cut || cut.since >= window.until) break
      if (cut.since > since) rest.push({ since, until: cut.since })
      since = Math.max(since, cut.until)
    }
    if (since < window.until) rest.push({ since, until: window.until })
  }
  return rest
}

/** What is in both. */
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

/** The windows joined wherever the hole between two neighbours is at most `hole` seconds. */
export function bridge(windows: readonly Window[], hole: number): Window[] {
  const joined: Window[] = []
  for (const window of union(windows)) {
    const last = joined.at(-1)
    if (last && window.since - last.until <= hole)
      joined[joined.length - 1] = { since: last.since, until: window.until }
    else joined.push(window)
  }
  return joined
}
