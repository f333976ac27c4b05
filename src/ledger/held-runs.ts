import { archivedState } from './held.ts'
import { type Verified, verifiedFields } from './entry.ts'
import { type Index, rowOf } from './row.ts'
import { count, json, orNull, real, text, whole } from './shape.ts'
import type { Micros } from '../time.ts'

const runOf = rowOf({
  id: text,
  job: orNull(text),
  command: orNull(text),
  started_at: orNull(real),
  ended_at: orNull(real),
  stopped_by: orNull(text),
  exit_code: orNull(whole),
  plan: orNull(json),
  actual: orNull(json),
})
const costOf = rowOf({ requests: whole, credits: real, points: whole })

/** One run as the ledger remembers it, with what its requests cost. */
export type HeldRun = ReturnType<typeof runOf> & ReturnType<typeof costOf>

/** The newest runs, newest first. */
export function heldRuns(index: Index, most: number): HeldRun[] {
  const rows = index.statement(
    `SELECT runs.*, count(q.id) AS requests, coalesce(sum(credits), 0) AS credits, coalesce(sum(points), 0) AS points
     FROM (SELECT * FROM runs ORDER BY coalesce(started_at, 0) DESC, id DESC LIMIT ?) runs LEFT JOIN requests q ON q.run = runs.id
     GROUP BY runs.id ORDER BY coalesce(started_at, 0) DESC, runs.id DESC`,
  )
  return rows.all(most).map((row) => ({ ...runOf(row), ...costOf(row) }))
}

const publishedOf = rowOf({
  destination: text,
  at: real,
  exit_code: orNull(whole),
  missing: count,
  changed: count,
})

/** The last publish to each destination. */
export function lastPublished(index: Index): ReturnType<typeof publishedOf>[] {
  const rows = index.statement(
    `SELECT plan ->> '$.destination' AS destination, coalesce(ended_at, started_at) AS at, exit_code,
       coalesce(actual ->> '$.missing', 0) AS missing, coalesce(actual ->> '$.changed', 0) AS changed, max(started_at)
     FROM runs WHERE job = 'publish' AND plan ->> '$.destination' IS NOT NULL GROUP BY 1 ORDER BY 1`,
  )
  return rows.all().map(publishedOf)
}

const totalsOf = rowOf({ total: count, credits: real, day: count, day_credits: real, busiest_minute: count })

/** What all requests cost together. */
export type RequestTotals = ReturnType<typeof totalsOf>

/**
 * Requests and credits in all and in the 24 hours before an instant, with the busiest minute of those for points, whose
 * pace is what the configuration sets; metadata and listings have one of their own.
 */
export function requestTotals(index: Index, now: Micros): RequestTotals {
  const rows = index.statement(
    `SELECT count(*) + ?1 AS total, coalesce(sum(credits), 0) + ?2 AS credits, count(*) FILTER (WHERE asked_at >= ?3) AS day,
       coalesce(sum(credits) FILTER (WHERE asked_at >= ?3), 0) AS day_credits,
       (SELECT coalesce(max(n), 0) FROM (SELECT sum(attempts) AS n FROM requests
         WHERE api = 'metrics' AND series IS NOT NULL AND asked_at >= ?3 GROUP BY asked_at / 60000000)) AS busiest_minute
     FROM requests`,
  )
  const gone = archivedState(index)
  return totalsOf(rows.get(gone.requests, gone.credits, now - 86_400_000_000) ?? {})
}

const byOutcomeOf = rowOf({ api: text, outcome: text, requests: count })

/** How the requests on record ended, those that were repeated once. */
export function requestsByOutcome(index: Index): ReturnType<typeof byOutcomeOf>[] {
  const rows = index.statement(
    'SELECT api, outcome, count(*) AS requests FROM requests GROUP BY api, outcome ORDER BY api, outcome',
  )
  return rows.all().map(byOutcomeOf)
}

const verifiedOf = rowOf(verifiedFields)

/** Every window that was asked again and compared, by series. */
export function heldVerified(index: Index): Map<string, Verified[]> {
  const rows = index.statement('SELECT series, since, until, at, result FROM verified ORDER BY at').iterate()
  return Map.groupBy(Array.from(rows, verifiedOf), ({ series }) => series)
}

const verifiedTotalsOf = rowOf({ windows: count, differing: count, last_at: orNull(real) })

/** How many windows were asked again, of how many series one differed, and when the last was (microseconds). */
export function verifiedTotals(index: Index): ReturnType<typeof verifiedTotalsOf> {
  const rows = index.statement(
    `SELECT count(*) AS windows, max(at) AS last_at,
       count(DISTINCT series) FILTER (WHERE result NOT IN ('identical', 'appended')) AS differing FROM verified`,
  )
  return verifiedTotalsOf(rows.get() ?? {})
}

/** A round of a job goes on until one of its runs came to its end; then the next begins. */
export function roundOf(
  index: Index,
  job: string,
  scope: string,
  now: Micros,
): { readonly scope: string; readonly begun: Micros } {
  const last = lastRound(index, job, scope)
  return { scope, begun: last === undefined || last.ended ? now : last.begun }
}

/** The latest run of such a job with one scope: when its round began, and whether that run came to its end. */
function lastRound(
  index: Index,
  job: string,
  scope: string,
): { readonly begun: Micros; readonly ended: boolean } | undefined {
  const runs = index.statement(
    `SELECT plan ->> '$.begun' AS begun, ended_at IS NOT NULL AND stopped_by IS NULL AS ended FROM runs
     WHERE job = ? AND plan ->> '$.scope' = ? ORDER BY started_at DESC LIMIT 1`,
  )
  const row = runs.get(job, scope)
  return row === undefined ? undefined : { begun: Number(row['begun']), ended: row['ended'] === 1 }
}
