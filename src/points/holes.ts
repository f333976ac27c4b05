import { availableAt, ruleFor } from '../catalog/availability.ts'
import { ceil, count, end, floor, type Instant, step } from '../time.ts'
import { minus, type Window } from '../windows.ts'
import type { Body, Ordered, PartJob, Tally } from './conversion.ts'
import { numbered, statement } from './sql.ts'
import type { Engine } from '../store/engine.ts'

/** The grid points of the asked range that a complete answer holds: finished, and past a stated instant. */
export function expectedRange(job: PartJob, body: Body, first: Instant | null): Window | null {
  const from = body.since ?? first
  if (from === null) return null
  const since = ceil(from, job.interval, job.weekStart)
  const asked = body.until === null ? Infinity : ceil(body.until, job.interval, job.weekStart)
  let until = Math.min(asked, floor(body.horizon, job.interval, job.weekStart))
  while (until > since && !finished(job, step(until, job.interval, -1), body.horizon))
    until = step(until, job.interval, -1)
  return { since, until: Math.max(since, until) }
}

function finished(job: PartJob, t: Instant, horizon: Instant): boolean {
  if (end(t, job.interval) > horizon) return false
  return ruleFor(job.rules, t).basis !== 'stated' || availableAt(job.rules, t, job.interval) <= horizon
}

/** What holes are looked for in. */
export interface Kept {
  readonly ordered: readonly Ordered[]
  /** Positions of bodies that are poison. */
  readonly poison: ReadonlyMap<number, string>
  readonly tallies: ReadonlyMap<number, Tally>
  /** SQL of the points (body, t, close) that these bodies brought inside their windows. */
  readonly source: (bodies: readonly number[]) => string
}

/** For each body that is no poison the finished intervals that it lacks, by position. */
export async function findHoles(
  session: Engine,
  { ordered, poison, tallies, source }: Kept,
): Promise<Map<number, Window[]>> {
  const holes = new Map<number, Window[]>()
  const inside: number[] = []
  for (const [i, { body, part }] of ordered.entries()) {
    if (poison.has(i)) continue
    const { first = null, last = null, kept = 0 } = tallies.get(i) ?? {}
    const expected = expectedRange(part, body, first)
    if (!expected) continue
    const present = first === null || last === null ? [] : [{ since: first, until: end(last, part.interval) }]
    holes.set(i, minus([expected], present))
    if (present.some(({ since, until }) => kept < count(since, until, part.interval))) inside.push(i)
  }
  if (inside.length === 0) return holes
  const gaps = statement('gaps', { source: source(inside) })
  for (const { body, ...window } of await numbered<Window & { body: number }>(session, gaps))
    holes.get(body)?.push(window)
  for (const windows of holes.values()) windows.sort((a, b) => a.since - b.since)
  return holes
}
