import { fewRows } from '../../lake/store/parquet.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { createBatchTables } from './batch-tables.ts'
import { compare, type Comparison, type Contradiction, type VanishedPoints } from './compare.ts'
import {
  type Body,
  bodyAt,
  type BodyResult,
  type ConvertJob,
  type ConvertResult,
  emptyTally,
  type Loaded,
  order,
  type Ordered,
  type PartJob,
  type Tally,
  type WrittenFile,
  type WrittenRecent,
} from './conversion-types.ts'
import { readBodies } from './read-bodies.ts'
import { rowsAsNumbers, statement } from './sql.ts'
import { unwatched } from '../../base/stopwatch.ts'
import { describe, readShares, readyPoints, shareOf, writePoints } from './write.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { namedSql, portionRows } from './files.ts'
import type { ClockFindingKind, Finding, Json, Violation } from '../../lake/ledger/entry.ts'
import { ceil, count, end, floor, type Instant, longestSeconds, step } from '../../base/time.ts'
import { clocksSql } from './stage.ts'
import { availableAt, ruleFor } from '../../catalog/availability.ts'
import { minus, type Window } from '../../base/windows.ts'

/**
 * Converts the spool files of a batch to sorted Parquet files of the new points: one file for all small portions, and
 * one for each partition with many points. Reports everything else: poisoned bodies and the reason, contradictions of
 * stored points, missing points. All bodies are read into tables and compared together, with as many statements for one
 * partition as for a hundred. Only contradicting points become JavaScript objects. Works in a session of its own;
 * commits nothing.
 */
export async function convert(engine: Engine, job: ConvertJob): Promise<ConvertResult> {
  using session = await engine.session()
  // A chunk of few rows would wait for more of them while larger ones overtake it, and the order would be lost.
  await session.run('SET enable_caching_operators = false')
  try {
    const ordered = order(job.parts.map((part): PartJob => ({ ...job, ...part })))
    if (ordered.length > 0) return await convertOrdered(session, job, ordered)
    const nothing = {
      recent: null,
      bodies: [],
      violations: [],
      statuses: [],
      findings: [],
      regained: [],
      lacking: 0,
      latePoints: 0,
      kept: 0,
    }
    return { files: job.parts.map(() => null), ...nothing }
  } catch (error) {
    for (const { out } of [...job.parts, job.recent]) await realDisk.remove(out)
    throw error
  }
}

async function convertOrdered(session: Engine, job: ConvertJob, ordered: readonly Ordered[]): Promise<ConvertResult> {
  const during = job.during ?? unwatched
  const loaded = await during('reading', async () => {
    await createBatchTables(session, ordered)
    if (job.reader) return await job.reader.stage(session, ordered)
    const files = ordered.map(({ body }) => body.file)
    const lexed = ordered.map(({ body }) => body.lexed)
    const intervals = ordered.map(({ part }) => part.interval)
    const dated = ordered.flatMap(({ part }, i) => (part.revisable === 'told' ? [i] : []))
    const how = { intervals, temporary: job.recent.out, ...(dated.length > 0 && { dated }) }
    return await readBodies(session, { circumstances: job, files, lexed, ...how })
  })
  const hasComputedTimes = [...loaded.staged.values()].some((body) => body.told > 0)
  const [compared, findings] = await during('proving', async () => [
    await compare(session, ordered, loaded),
    hasComputedTimes ? await findClocks(session, ordered) : [],
  ])
  const { files, recent } = await writeFresh(session, job, ordered, { ...loaded, ...compared })
  const holes = await findHoles(session, ordered, { ...loaded, ...compared })
  const { contradictions, vanished, statuses, regained, lacking, latePoints } = compared
  return {
    files,
    recent,
    bodies: bodyResults(ordered, { ...loaded, ...compared, holes }),
    violations: contradictions.map((found) => violation(found, ordered)),
    statuses,
    findings: [...findings, ...vanished.map((lacking) => goneFrom(lacking, ordered))],
    regained,
    lacking,
    latePoints,
    kept: [...compared.tallies.values()].reduce((sum, { kept }) => sum + kept, 0),
  }
}

/** A file to write: of one partition, or of all these together. */
interface Target {
  readonly own: PartJob | null
  /** The partitions, by position. */
  readonly chosen: readonly number[]
  readonly rows: number
  readonly out: string
}

/** Writes the table `new_points`: large portions to files of their own, by partition, all others together. */
async function writeFresh(
  session: Engine,
  job: ConvertJob,
  ordered: readonly Ordered[],
  { tallies, late, minusZero, asRead, alike, sorted: isSorted = false }: Comparison & Loaded,
): Promise<Pick<ConvertResult, 'files' | 'recent'>> {
  const during = job.during ?? unwatched
  const added = job.parts.map(() => 0)
  for (const [i, { p }] of ordered.entries()) added[p] = (added[p] ?? 0) + (tallies.get(i)?.added ?? 0)
  const revised = ordered.some(({ part }) => part.revisable !== undefined)
  const most = Math.max(...added)
  const sorted = !late && !revised && most > fewRows && ((isSorted && asRead) || !(await isUnsorted(session)))
  const targets = targetsOf(job, ordered, added)
  await during('writing', async () => {
    const source = await readyPoints(session, job, { sorted, alike, late, revised }, targets.length > 1)
    for (const { own, rows, ...target } of targets) {
      const how = { source, minusZero, together: own === null, few: own === null || rows <= fewRows }
      await writePoints(session, job, ordered, { ...target, ...how })
    }
  })
  const writtenTargets = await during('proving', async () => await readBack(session, targets))
  const files = job.parts.map((): WrittenFile | null => null)
  let recent: WrittenRecent | null = null
  for (const { own, chosen, rows, out, shares } of writtenTargets) {
    const file = describe(shares)
    if (file.rows !== rows) throw new Error(`${out} holds ${file.rows} rows instead of ${rows}`)
    if (own === null) recent = { ...file, shares: shares.map(shareOf) }
    else for (const p of chosen) files[p] = file
  }
  return { files, recent }
}

/** Plans the files to write; the one for small portions comes last. */
function targetsOf(job: ConvertJob, ordered: readonly Ordered[], added: readonly number[]): Target[] {
  const { recent, portion = portionRows } = job
  const targets: Target[] = []
  const together = { own: null, chosen: [] as number[], rows: 0, out: recent.out }
  for (const [p, part] of new Map(ordered.map((job) => [job.p, job.part]))) {
    const rows = added[p] ?? 0
    if (rows >= portion) targets.push({ own: part, chosen: [p], rows, out: part.out })
    else if (rows > 0) {
      together.chosen.push(p)
      together.rows += rows
    }
  }
  return together.rows > 0 ? [...targets, together] : targets
}

/** Reads the contents of all files at once, because a statement costs more than the rows of a file. */
async function readBack(session: Engine, targets: readonly Target[]) {
  if (targets.length === 0) return []
  const files = targets.map(({ own, out }) => ({ path: out, metric: null, interval: null, ...own }))
  const keyOf = (share: { readonly metric: string | null; readonly interval: string | null }): string =>
    `${share.metric} ${share.interval}`
  const places = new Map(files.map((file, i) => [keyOf(file), i]))
  const all = await readShares(session, namedSql(files))
  const found = Map.groupBy(all, (share) => places.get(keyOf(share)) ?? targets.length - 1)
  return targets.map((target, i) => ({ ...target, shares: found.get(i) ?? [] }))
}

async function isUnsorted(session: Engine): Promise<boolean> {
  const [row] = await session.rows<{ unsorted: boolean }>(statement('order_check'))
  return row?.unsorted !== false
}

/** Lists the results of each partition in the order of requests. */
function bodyResults(
  ordered: readonly Ordered[],
  { poison, staged, tallies, holes }: Loaded & Pick<Comparison, 'tallies'> & { holes: ReadonlyMap<number, Window[]> },
): BodyResult[] {
  const results = ordered.map(({ body, p, ord }, i) => {
    const reason = poison.get(i) ?? null
    const points = staged.get(i)?.points
    const { kept: _, ...counted } = tallies.get(i) ?? emptyTally
    const state = reason !== null ? 'poison' : points === undefined ? 'empty' : 'ok'
    const request = { request: body.request, series: body.series.id, state, reason, points: points ?? 0 } as const
    return { p, ord, result: { ...request, ...counted, missing: holes.get(i) ?? [] } }
  })
  return results.toSorted((a, b) => a.p - b.p || a.ord - b.ord).map(({ result }) => result)
}

function violation(contradiction: Contradiction, ordered: readonly Ordered[]): Violation {
  const { body, part } = bodyAt(ordered, contradiction.body)
  return {
    series: body.series.id,
    t: contradiction.t,
    kind: contradiction.kind,
    stored: contradiction.stored,
    offered: contradiction.offered,
    stored_at: contradiction.stored_at,
    offered_at: Number(part.observedAt),
    request: body.request,
  }
}

/**
 * Builds the finding for points of a revisable series that are missing upstream: they stay stored, and the rest of the
 * answer still counts.
 */
function goneFrom({ body: position, t, points, last }: VanishedPoints, ordered: readonly Ordered[]): Finding {
  const { body, part } = bodyAt(ordered, position)
  return { series: body.series.id, t, kind: 'vanished', detail: { points, last }, at: Number(part.observedAt) }
}

/** The position of a body's `computed_at` relative to the end of the interval. */
interface Clocks {
  readonly told: number
  /** Number of those before the end of the interval or before a stated time. */
  readonly early: number
  /** `computed_at` minus the end, microseconds: the smallest and the largest. */
  readonly low: number
  readonly high: number
  /** The first `t`. */
  readonly first: number
}

/**
 * Finds contradictions by the provider's `computed_at` on the points in `new_points`: `before_end`, `before_stated`,
 * and `convention`, once per body, if all its times fit the other meaning of `t`; this replaces the `before_end` of
 * that body.
 */
async function findClocks(session: Engine, ordered: readonly Ordered[]): Promise<Finding[]> {
  const findings: Finding[] = []
  const mistaken = new Set<number>()
  let early = 0
  const note = (position: number, t: number, kind: ClockFindingKind, detail: Json): void => {
    const { body, part } = bodyAt(ordered, position)
    findings.push({ series: body.series.id, t, kind, detail, at: Number(part.observedAt) })
  }
  const fresh = statement('computed_at_lags', { clocks: clocksSql('computed', 'close', 'floor') })
  for (const { body: position, ...clocks } of await rowsAsNumbers<Clocks & { body: number }>(session, fresh)) {
    const { part } = bodyAt(ordered, position)
    if (contradictsConvention(clocks, part)) {
      mistaken.add(position)
      const { told: points, low: lowest, high: highest } = clocks
      note(position, clocks.first, 'convention', { timestamp: part.timestamp, points, lowest, highest })
    } else early += clocks.early
  }
  if (early === 0) return findings
  for (const { body, t, computed, close, floor, early: beforeEnd } of await rowsAsNumbers<Early>(
    session,
    statement('early_points'),
  ))
    if (!mistaken.has(body))
      note(body, t, beforeEnd ? 'before_end' : 'before_stated', { computed_at: computed, end: close, floor })
  return findings
}

interface Early extends Readonly<Record<'body' | 't' | 'computed' | 'close' | 'floor', number>> {
  readonly early: boolean
}

const minFindings = 3

/**
 * Whether the clocks of a body fit only the other meaning of `t`. Interval starts are computed about one interval after
 * `t`. If there are at least three and each of them is within half an interval of `t`, then `t` was an end. Interval
 * ends are computed soon after `t`; if each of them is one to two intervals after it, `t` was a start.
 */
export function contradictsConvention({ told, low, high }: Clocks, { interval, timestamp }: PartJob): boolean {
  const size = longestSeconds(interval) * 1_000_000
  if (told < minFindings) return false
  return timestamp === 'interval_start' ? high < -size / 2 : low >= size && high < 2 * size
}

/**
 * Returns the part of the requested range that a complete answer fills: finished intervals, after any stated time; null
 * without a start.
 */
function expectedRange(job: PartJob, body: Body, first: Instant | null): Window | null {
  const from = body.since ?? first
  if (from === null) return null
  const since = ceil(from, job.interval, job.weekStart)
  const requestedUntil = body.until === null ? Infinity : ceil(body.until, job.interval, job.weekStart)
  let until = Math.min(requestedUntil, floor(body.horizon, job.interval, job.weekStart))
  while (until > since && !finished(job, step(until, job.interval, -1), body.horizon))
    until = step(until, job.interval, -1)
  return { since, until: Math.max(since, until) }
}

function finished(job: PartJob, t: Instant, horizon: Instant): boolean {
  if (end(t, job.interval) > horizon) return false
  return ruleFor(job.rules, t).basis !== 'stated' || availableAt(job.rules, t, job.interval) <= horizon
}

/** Finds, for each body that is not poison, the finished intervals that it lacks, by position. */
async function findHoles(
  session: Engine,
  ordered: readonly Ordered[],
  { poison, tallies }: { readonly poison: ReadonlyMap<number, string>; readonly tallies: ReadonlyMap<number, Tally> },
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
  const gaps = statement('body_gaps', { bodies: inside.join(', ') })
  for (const { body, ...window } of await rowsAsNumbers<Window & { body: number }>(session, gaps))
    holes.get(body)?.push(window)
  for (const windows of holes.values()) windows.sort((a, b) => a.since - b.since)
  return holes
}
