import type { Index, Row } from './apply.ts'
import { archivedState } from './held.ts'
import type { Json, Verified } from './entry.ts'
import type { Micros } from '../time.ts'

/** One run as the ledger remembers it, with what its requests cost. */
export interface HeldRun {
  readonly id: string
  readonly job: string | null
  readonly command: string | null
  readonly started_at: Micros | null
  readonly ended_at: Micros | null
  readonly stopped_by: string | null
  readonly exit_code: number | null
  readonly plan: Json
  readonly actual: Json
  readonly requests: number
  readonly credits: number
  readonly points: number
}

/** The newest runs, newest first. */
export function heldRuns(index: Index, most: number): HeldRun[] {
  const runs = index.statement('SELECT * FROM runs ORDER BY coalesce(started_at, 0) DESC, id DESC LIMIT ?').all(most)
  const cost = index.statement(
    `SELECT count(*) AS requests, coalesce(sum(credits), 0) AS credits, coalesce(sum(points), 0) AS points
     FROM requests WHERE run = ?`,
  )
  return runs.map((row) => {
    const told = cost.get(row['id'] ?? null)
    return { ...row, plan: jsonOf(row, 'plan'), actual: jsonOf(row, 'actual'), ...told } as unknown as HeldRun
  })
}

function jsonOf(row: Row, column: string): Json {
  return row[column] === null || row[column] === undefined ? null : (JSON.parse(String(row[column])) as Json)
}

/** What all requests cost together. */
export interface RequestTotals {
  readonly total: number
  readonly credits: number
  readonly day: number
  readonly day_credits: number
  readonly busiest_minute: number
}

/**
 * Requests and credits in all and in the 24 hours before an instant, with the busiest minute of the metrics API, whose
 * pace is what the configuration sets.
 */
export function requestTotals(index: Index, now: Micros): RequestTotals {
  const since = now - 86_400_000_000
  const all = index.statement('SELECT count(*) AS n, coalesce(sum(credits), 0) AS c FROM requests').get()
  const day = index
    .statement('SELECT count(*) AS n, coalesce(sum(credits), 0) AS c FROM requests WHERE asked_at >= ?')
    .get(since)
  const busiest = index
    .statement(
      `SELECT coalesce(max(n), 0) AS n FROM
       (SELECT sum(attempts) AS n FROM requests WHERE api = 'metrics' AND asked_at >= ? GROUP BY asked_at / 60000000)`,
    )
    .get(since)
  const gone = archivedState(index)
  return {
    total: Number(all?.['n'] ?? 0) + gone.requests,
    credits: Number(all?.['c'] ?? 0) + gone.credits,
    day: Number(day?.['n'] ?? 0),
    day_credits: Number(day?.['c'] ?? 0),
    busiest_minute: Number(busiest?.['n'] ?? 0),
  }
}

/** Every window that was asked again and compared, by series. */
export function heldVerified(index: Index): Map<string, Verified[]> {
  const held = new Map<string, Verified[]>()
  for (const row of index.statement('SELECT series, since, until, at, result FROM verified ORDER BY at').iterate()) {
    const next = row as unknown as Verified
    held.set(next.series, [...(held.get(next.series) ?? []), next])
  }
  return held
}

/** The latest verify of one scope: when its round began, and whether that run came to its end. */
export function lastVerify(
  index: Index,
  scope: string,
): { readonly begun: Micros; readonly ended: boolean } | undefined {
  const runs = index.statement(
    `SELECT plan ->> '$.begun' AS begun, ended_at IS NOT NULL AND stopped_by IS NULL AS ended FROM runs
     WHERE job = 'verify' AND plan ->> '$.scope' = ? ORDER BY started_at DESC LIMIT 1`,
  )
  const row = runs.get(scope)
  return row === undefined ? undefined : { begun: Number(row['begun']), ended: row['ended'] === 1 }
}
