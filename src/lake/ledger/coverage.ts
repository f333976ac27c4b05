import type { CoverageRow } from './entry.ts'

/**
 * Lays `row` over the live rows of its series that overlap or touch it (disjoint, sorted): overlapped parts are cut,
 * the rest remains unchanged. Neighbours with the same answer are joined into one row; if they are `covered`, it gets
 * the later time of request.
 */
export function layOver(touched: readonly CoverageRow[], row: CoverageRow): CoverageChange {
  if (row.since >= row.until) return { remove: [], add: [] }
  const pieces: CoverageRow[] = []
  for (const range of touched) {
    if (range.since < row.since) pieces.push({ ...range, until: Math.min(range.until, row.since) })
    if (range.until > row.until) pieces.push({ ...range, since: Math.max(range.since, row.until) })
  }
  pieces.push(row)
  const add = joinNeighbours(pieces.toSorted((a, b) => a.since - b.since))
  return {
    remove: touched.filter((range) => !add.some((next) => sameRow(range, next))),
    add: add.filter((next) => !touched.some((range) => sameRow(range, next))),
  }
}

/** Whether the live rows already record the answer of `row` over its whole window. */
export function alreadySaid(live: readonly CoverageRow[], row: CoverageRow): boolean {
  let at = row.since
  for (const range of live) {
    if (range.until <= at) continue
    if (range.since > at || range.state !== row.state || range.reason !== row.reason) break
    at = range.until
    if (at >= row.until) return true
  }
  return at >= row.until
}

/** Coverage rows of one series to replace. */
export interface CoverageChange {
  /** Live rows that leave. */
  readonly remove: CoverageRow[]
  /** Rows that take their place. */
  readonly add: CoverageRow[]
}

/**
 * Records that a window was requested again with the same answer: the rows inside it get the later time. Rows that are
 * covered without a reason are left alone, because nothing is ever due there.
 */
export function askedAgain(live: readonly CoverageRow[], row: CoverageRow): CoverageChange {
  const remove: CoverageRow[] = []
  const add: CoverageRow[] = []
  for (const range of live) {
    const since = Math.max(range.since, row.since)
    const until = Math.min(range.until, row.until)
    const same = range.state === row.state && range.reason === row.reason
    if (since >= until || !same || range.asked_at >= row.asked_at || isPlain(range)) continue
    remove.push(range)
    if (range.since < since) add.push({ ...range, until: since })
    add.push({ ...range, since, until, asked_at: row.asked_at, request: row.request })
    if (range.until > until) add.push({ ...range, since: until })
  }
  return { remove, add }
}

/** The reason of an empty window that lies before the first point of its series. */
export const beforeFirst = 'before the first point'

/** The reason of a window whose points were in a file that was damaged; pitlake requests it again. */
export const lostReason = 'lost: the file that held it was damaged'

/** Whether the points of the window were stored until their file was damaged. */
export function isLost({ state, reason }: Pick<CoverageRow, 'state' | 'reason'>): boolean {
  return state === 'failed' && reason === lostReason
}

/** Whether the provider answered the window: it was requested, and the request did not fail. */
export function isAnswer({ state }: Pick<CoverageRow, 'state'>): boolean {
  return state !== 'failed' && state !== 'not requested'
}

/** Whether every point of the window is stored, according to its answer. */
export function isPlain({ state, reason }: Pick<CoverageRow, 'state' | 'reason'>): boolean {
  return state === 'covered' && reason === null
}

function joinNeighbours(rows: readonly CoverageRow[]): CoverageRow[] {
  const joined: CoverageRow[] = []
  for (const row of rows) {
    const last = joined.at(-1)
    if (last && last.until === row.since && joinable(last, row)) {
      const later = row.asked_at >= last.asked_at ? row : last
      joined[joined.length - 1] = { ...later, since: last.since, until: row.until }
    } else joined.push(row)
  }
  return joined
}

function joinable(a: CoverageRow, b: CoverageRow): boolean {
  if (a.state !== b.state || a.reason !== b.reason) return false
  return isPlain(a) || (a.asked_at === b.asked_at && a.request === b.request)
}

function sameRow(a: CoverageRow, b: CoverageRow): boolean {
  return (
    a.since === b.since &&
    a.until === b.until &&
    a.state === b.state &&
    a.reason === b.reason &&
    a.asked_at === b.asked_at &&
    a.request === b.request
  )
}
