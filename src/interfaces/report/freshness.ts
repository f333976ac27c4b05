import { z } from 'zod'
import { availableAt } from '../../catalog/availability.ts'
import { type Catalogue, type Endpoint, isOwn } from '../../catalog/catalogue.ts'
import { type Check, lateFor } from '../../catalog/health.ts'
import { isAnswer } from '../../lake/ledger/coverage.ts'
import type { CoverageRow, Verified } from '../../lake/ledger/entry.ts'
import { heldCoverage, heldSeries, type HeldSeries, heldWeekStart, storedInterval } from '../../lake/ledger/held.ts'
import { registryFacts } from '../../sources/registry/status.ts'
import { horizonOf, toleranceOf } from '../../sources/metrics/plan.ts'
import { isOfHeld } from '../../lake/ledger/refusals.ts'
import { end, floor, hour, type Instant, instantOf, type Interval, type Weekday } from '../../base/time.ts'
import { intersect, type Window } from '../../base/windows.ts'
import { jsonOf } from '../../base/json.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { isOpenViolation, listViolations } from '../../lake/ledger/violations.ts'
import { isOpenFinding, type ListedFinding, listFindings } from '../../sources/registry/verify.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { textOf } from '../../lake/store/files.ts'
import { inLake, places } from '../../lake/store/layout.ts'

/**
 * How far the newest points of a series are from what the rule makes due now: all of it is held; asked since it became due,
 * not there yet; due, and not asked since; asked in vain for longer than the endpoint's tolerance.
 */
type Freshness = 'fresh' | 'awaited' | 'behind' | 'stopped'

/** One series against what the rule makes due now. */
export interface SeriesStanding {
  readonly metric: string
  readonly interval: Interval
  readonly points: number
  readonly newest: Instant | null
  /** From the first point to the newest interval that is due; null for a series without points. */
  readonly due: Window | null
  /** Where points are held, and where answers failed, within the due range. */
  readonly held: readonly Window[]
  readonly failed: readonly Window[]
  /** Where what is held was asked again with the same answer. */
  readonly verified: readonly Window[]
  /** Null for a series without points, and for one that was withdrawn. */
  readonly fresh: Freshness | null
  /** For how long its next point has been due without being asked for, in seconds. */
  readonly overdue: number
  /** For how long its next point has been due, whether or not it was asked for, in seconds. */
  readonly late: number
}

/** Judges every series; pure. Series of endpoints that the catalogue no longer has are due when their interval ends. */
export function judgeSeries(
  series: Iterable<HeldSeries>,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  verified: ReadonlyMap<string, readonly Verified[]>,
  catalogue: Catalogue,
  now: Instant,
  weekStart: Weekday,
): SeriesStanding[] {
  const horizons = new Map<string, Instant>()
  return [...series].map((one) => {
    const endpoint = catalogue.endpoints.get(one.metric)
    const interval = storedInterval(one)
    const key = `${one.metric} ${interval}`
    const known = horizons.get(key)
    const horizon =
      known ?? (endpoint ? horizonOf(endpoint, interval, now, weekStart).final : floor(now, interval, weekStart))
    horizons.set(key, horizon)
    return judge(one, interval, coverage.get(one.id) ?? [], verified.get(one.id) ?? [], { endpoint, horizon, now })
  })
}

const inTime = { overdue: 0, late: 0 }

interface Against {
  readonly endpoint: Endpoint | undefined
  readonly horizon: Instant
  readonly now: Instant
}

function judge(
  series: HeldSeries,
  interval: Interval,
  rows: readonly CoverageRow[],
  verified: readonly Verified[],
  against: Against,
): SeriesStanding {
  const { metric, points, first_t, last_t } = series
  const empty = { metric, interval, points, newest: last_t, due: null, held: [], failed: [], verified: [] }
  if (points <= 0 || first_t === null || last_t === null) return { ...empty, fresh: null, ...inTime }
  const reached = end(last_t, interval)
  const own = against.endpoint !== undefined && isOwn(against.endpoint)
  const withdrawn =
    own || rows.some((row) => row.until > reached && row.state === 'unsupported' && isOfHeld(row.reason))
  // Of what was withdrawn nothing more is due, nor of own data, which come when somebody brings them.
  const due = { since: first_t, until: withdrawn ? reached : Math.max(reached, against.horizon) }
  const held = rows.filter((row) => row.state === 'covered' && row.reason === null)
  const failed = rows.filter((row) => row.state === 'failed')
  const same = verified.filter((row) => row.result === 'identical')
  return {
    ...empty,
    due,
    held: intersect([due], held),
    failed: intersect([due], failed),
    verified: intersect(held, same),
    ...(withdrawn ? { fresh: null, ...inTime } : freshness(reached, interval, rows, against)),
  }
}

/** Whether the point after the newest stored one is due, and if so what the provider said when it was asked. */
function freshness(
  reached: Instant,
  interval: Interval,
  rows: readonly CoverageRow[],
  { endpoint, horizon, now }: Against,
): { fresh: Freshness; overdue: number; late: number } {
  if (reached >= horizon) return { fresh: 'fresh', ...inTime }
  const late = Math.max(0, now - dueAt(endpoint, reached, interval))
  const said = rows.find((row) => row.since <= reached && row.until > reached)
  const unasked = said === undefined ? reached : lastAsked(rows, reached)
  if (unasked >= horizon && said !== undefined) {
    const patience = endpoint ? toleranceOf(endpoint, interval) : 0
    return { fresh: late > patience ? 'stopped' : 'awaited', overdue: 0, late }
  }
  return { fresh: 'behind', overdue: Math.max(0, now - dueAt(endpoint, unasked, interval)), late }
}

/** The end of the answers that follow on one another from an instant on: a failure is none, but for a refusal. */
function lastAsked(rows: readonly CoverageRow[], from: Instant): Instant {
  let at = from
  for (const row of rows) {
    const answers = isAnswer(row) || isOfHeld(row.reason)
    if (answers && row.since <= at && row.until > at) at = row.until
  }
  return at
}

function dueAt(endpoint: Endpoint | undefined, t: Instant, interval: Interval): Instant {
  return endpoint ? availableAt(endpoint.rules[interval], t, interval) : end(t, interval)
}

/** How long a point may be due without being asked for where no limit says more: no outage of minutes wakes anybody. */
export const patience = hour

/** The series of one endpoint and interval that are late. */
interface Late {
  readonly metric: string
  readonly interval: Interval
  readonly series: number
  /** For how long the one that is furthest behind has been due. */
  readonly seconds: number
}

/**
 * What is late: beyond the limit for its path, or, where there is none, due without being asked for. What was asked for in
 * vain for too long is `stopped` where no limit says more. With a patience what has stopped is late, too, and what was not
 * asked for only after that time.
 */
export function lateOf(
  series: readonly SeriesStanding[],
  check: Pick<Check, 'maxLate'>,
  atLeast: number | null = null,
): { readonly late: readonly Late[]; readonly stopped: number } {
  const limits = new Map([...new Set(series.map(({ metric }) => metric))].map((path) => [path, lateFor(check, path)]))
  const late = new Map<string, Late>()
  let stopped = 0
  for (const { metric, interval, fresh, overdue, late: due } of series) {
    const limit = limits.get(metric) ?? null
    if (limit === null && fresh === 'stopped') stopped++
    const stale = (fresh === 'behind' && overdue >= (atLeast ?? 0)) || (fresh === 'stopped' && atLeast !== null)
    if (limit === null ? !stale : due <= limit) continue
    const key = `${metric} ${interval}`
    const known = late.get(key) ?? { metric, interval, series: 0, seconds: 0 }
    const seconds = Math.max(known.seconds, limit === null && fresh === 'behind' ? overdue : due)
    late.set(key, { ...known, series: known.series + 1, seconds })
  }
  return { late: [...late.values()], stopped }
}

/** For how long the registry was not polled, in seconds; 0 where it never was. */
export function silenceOf(
  { feed_at, last_snapshot }: Pick<ReturnType<typeof registryFacts>, 'feed_at' | 'last_snapshot'>,
  now: Instant,
) {
  const last = feed_at ?? last_snapshot
  return last === null ? 0 : now - instantOf(last)
}

/** What is stale: the series of an endpoint and interval, or the registry; the names are relied on by hooks. */
type Stale =
  | (Pick<Late, 'metric' | 'interval' | 'series'> & { readonly late_seconds: number })
  | { readonly registry: true; readonly late_seconds: number }

/** Something upstream that a person has to look at: in points, or in records of the registry. */
export type UpstreamDifference = ReturnType<typeof listViolations>[number] | ListedFinding

/** What they are judged by. */
interface AlarmsInput {
  readonly catalogue: Catalogue
  readonly check: Check
  readonly now: Instant
}

/** What a person may want to be woken for; reads no points, and of the registry only what verifies found. */
export async function alarmsOf(ledger: Ledger, { catalogue, check, now }: AlarmsInput) {
  const { version, provider } = ledger.head()
  const series = heldSeries(ledger).values()
  const judged = judgeSeries(series, heldCoverage(ledger), new Map(), catalogue, now, heldWeekStart(ledger))
  const late: readonly Stale[] = lateOf(judged, check, patience).late.map(({ seconds, ...of }) => ({
    ...of,
    late_seconds: seconds,
  }))
  const silent = Math.round(silenceOf(registryFacts(ledger), now))
  const violations = listViolations(ledger, { paths: null, assets: null })
  const findings = ((await findingsIfReadable(ledger)) ?? []).filter(isOpenFinding)
  return {
    version,
    synthetic: provider?.synthetic ?? false,
    /** What differs upstream or is refused, and nobody has accepted. */
    violations: [...violations.filter(isOpenViolation), ...findings],
    stale: silent > check.maxFeedAge ? [...late, { registry: true as const, late_seconds: silent }] : late,
  }
}

/** What verifies found in the registry; null where a file of it cannot be read, of which others have to tell. */
export async function findingsIfReadable(ledger: Ledger): Promise<readonly ListedFinding[] | null> {
  return await listFindings(ledger, null).catch(() => null)
}

type Alarms = Awaited<ReturnType<typeof alarmsOf>>

const toldShape = z.object({ violations: z.array(z.string()), stale: z.array(z.string()) })

/** What has been told of this lake and lasts, by whatever job; null where nothing ever was, or cannot be read. */
async function readTold(root: string) {
  const text = await textOf(inLake(root, places.alarms))
  return (text === undefined ? undefined : toldShape.safeParse(jsonOf(text)).data) ?? null
}

const nameOf = (stale: Stale): string => ('registry' in stale ? 'registry' : `${stale.metric} ${stale.interval}`)

/**
 * What of the alarms nobody was told yet; from now on it counts as told, until it is over. What stood `before` the job
 * began is no news of a lake of which nothing was ever told. One at a time.
 */
export async function newAlarms(root: string, { violations, stale }: Alarms, before: readonly UpstreamDifference[]) {
  const told = await readTold(root)
  const known = new Set(told?.violations ?? before.map(({ id }) => id))
  const lasting = new Set(told?.stale)
  const now: z.infer<typeof toldShape> = { violations: violations.map(({ id }) => id), stale: stale.map(nameOf) }
  const file = inLake(root, places.alarms)
  const text = `${JSON.stringify(now)}\n`
  if (told === null || text !== `${JSON.stringify(told)}\n`) {
    await realDisk.write(`${file}.part`, text)
    await realDisk.move(`${file}.part`, file)
  }
  return {
    violations: violations.filter(({ id }) => !known.has(id)),
    stale: stale.filter((one) => !lasting.has(nameOf(one))),
  }
}
