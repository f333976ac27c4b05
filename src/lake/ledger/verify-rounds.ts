import { LakeError } from '../../base/errors.ts'
import type { Micros } from '../../base/time.ts'
import type { Index } from './index-rows.ts'

/** A round of a job over one scope: it lasts until one of its runs completes; then the next round begins. */
export type Round = {
  /** The scope as JSON text. */
  readonly scope: string
  /** Start of the round, microseconds; requests since then count as done. */
  readonly beganAt: Micros
}

/** Returns the current round of a job over one scope, or begins a new one. */
export function roundOf(index: Index, job: string, about: unknown, now: Micros): Round {
  const scope = JSON.stringify(about)
  const runs = index.statement(
    `SELECT plan ->> '$.beganAt' AS began, ended_at IS NOT NULL AND stopped_by IS NULL AS ended FROM runs
     WHERE job = ? AND plan ->> '$.scope' = ? ORDER BY started_at DESC LIMIT 1`,
  )
  const last = runs.get(job, scope)
  return { scope, beganAt: last === undefined || last['ended'] === 1 ? now : Number(last['began']) }
}

/** Counts of chosen windows or records by result. */
export type Counts = Readonly<Record<'held' | 'chosen' | 'verified' | 'failed' | 'left', number>>

/**
 * Counts of chosen windows of points by result; `refused` ones were refused before the run, too, so they are no failure
 * of it.
 */
export type WindowCounts = Counts & { readonly refused: number }

/** Returns a count of 0 for each of these results. */
export function noneOf<T extends string>(results: readonly T[]): Record<T, number> {
  return Object.fromEntries(results.map((name) => [name, 0])) as Record<T, number>
}

/** Interleaves queues: the first item of every queue, then the second of every queue, and so on. */
export function* inTurns<T>(queues: readonly (readonly T[])[]): Generator<T[]> {
  for (let turn = 0; queues.some((queue) => turn < queue.length); turn++)
    yield queues.flatMap((queue) => queue.slice(turn, turn + 1))
}

/**
 * Chooses the items that fit into a budget (null: unlimited), in their order. With `stops`, nothing after the first
 * item that does not fit.
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

/** Limits of a verify. */
export interface VerifyLimits {
  /** Most credits or requests; null for everything in the lake. */
  readonly budget: number | null
  /** Days in which daily runs compare everything once, so that each may cost less; null: each spends all of it. */
  readonly spreadDays: number | null
}

/** Fewest credits or requests that a daily run may spend: a small lake is compared whole. */
const leastDaily = 10

/** Returns the most that a run may spend if comparing everything costs `whole`; null for no limit. */
export function spentDaily(whole: number, { budget, spreadDays }: VerifyLimits): number | null {
  if (budget === null || spreadDays === null) return budget
  return Math.min(budget, Math.max(leastDaily, Math.ceil(whole / spreadDays)))
}

/** Builds the error of a verify that found contradictions, which `subject` counts; null if there are none. */
export function contradictionError(count: number, subject: string, next: string): LakeError | null {
  return count === 0 ? null : new LakeError('integrity', { subject, next })
}

/** Builds the error of a verify for which some answers could not be used; null if there are none. */
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
