import { LakeError } from '../../base/errors.ts'
import type { Micros } from '../../base/time.ts'
import type { Index } from './index-rows.ts'

/** A round of a job over one scope: it goes on until one of its runs comes to its end; then the next begins. */
export type Round = {
  /** The scope as JSON text. */
  readonly scope: string
  /** When the round began, microseconds: what was requested since then counts as done. */
  readonly beganAt: Micros
}

/** The round of a job over one scope that is under way; else a new one. */
export function roundOf(index: Index, job: string, about: unknown, now: Micros): Round {
  const scope = JSON.stringify(about)
  const runs = index.statement(
    `SELECT plan ->> '$.beganAt' AS began, ended_at IS NOT NULL AND stopped_by IS NULL AS ended FROM runs
     WHERE job = ? AND plan ->> '$.scope' = ? ORDER BY started_at DESC LIMIT 1`,
  )
  const last = runs.get(job, scope)
  return { scope, beganAt: last === undefined || last['ended'] === 1 ? now : Number(last['began']) }
}

/** How windows or records that were chosen ended. */
export type Counts = Readonly<Record<'held' | 'chosen' | 'verified' | 'failed' | 'left', number>>

/** How windows of points that were chosen ended; `refused` as before the run, so that it is no failure of it. */
export type WindowCounts = Counts & { readonly refused: number }

/** A count of 0 for each of these results. */
export function noneOf<T extends string>(results: readonly T[]): Record<T, number> {
  return Object.fromEntries(results.map((name) => [name, 0])) as Record<T, number>
}

/** The first of every queue, then the second of every queue, and so on: turn by turn. */
export function* inTurns<T>(queues: readonly (readonly T[])[]): Generator<T[]> {
  for (let turn = 0; queues.some((queue) => turn < queue.length); turn++)
    yield queues.flatMap((queue) => queue.slice(turn, turn + 1))
}

/**
 * What a budget (null: any) has room for, in their order; `stops`: nothing behind the first that it has no room for.
 */
export function affordable<T>(
  all: Iterable<T>,
  costOf: (item: T) => number,
  { budget, stops }: { readonly budget: number | null; readonly stops: boolean },
): T[] {
  const chosen: T[] = []
  let spent = 0
  for (const item of all) {
    const fits = budget === null || spent + costOf(item) <= budget
    if (!fits && stops) break
    if (!fits) continue
    spent += costOf(item)
    chosen.push(item)
  }
  return chosen
}

/** The error of a verify that found so many contradictions, which `subject` counts. */
export function contradictionError(count: number, subject: string, next: string): LakeError | null {
  return count === 0 ? null : new LakeError('integrity', { subject, next })
}

/** The error of one to which so many answers could not be used. */
export function unansweredError(
  failures: readonly { readonly reason: string; readonly refused?: boolean }[],
  what: string,
): LakeError | null {
  if (failures.length === 0) return null
  const subject = `${what} got no usable answer`
  const passing = failures.find(({ refused }) => refused !== true)
  const next = passing === undefined ? refusedNext : 'run the same command again'
  return new LakeError('incomplete', { subject, got: (passing ?? failures[0])?.reason, next })
}

const refusedNext =
  'the provider refuses them: a few are requested again each day; pitlake violations list shows which, and ' +
  'violations acknowledge settles them'
