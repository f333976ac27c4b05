import { z } from 'zod'
import { type Check, lateFor } from '../../catalog/health.ts'
import type { MetricsProvider } from '../../sources/metrics/api.ts'
import { selectedSeries } from '../../sources/metrics/prepare.ts'
import { loadCoverage, storedSeries, storedWeekStart } from '../../lake/ledger/index-queries.ts'
import type { CoverageRow } from '../../lake/ledger/entry.ts'
import { isWatched } from '../../lake/ledger/run-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { isOpenViolation, listViolations, type ListedViolation } from '../../lake/ledger/violations.ts'
import { registryFacts } from '../../sources/registry/status.ts'
import { isOpenFinding, type ListedFinding } from '../../sources/registry/verify.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { textOf } from '../../lake/store/files.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { jsonOf } from '../../base/json.ts'
import type { Instant } from '../../base/time.ts'
import { failedOf, findingsIfReadable, lastEndsOf, readUnmapped } from './facts.ts'
import { defaultMaxLate, judgeSeries, type Late, lateOf, silenceOf, silentUserData } from './freshness.ts'
import { endReasons, failedReason, type Reason, unmappedReason } from './trust.ts'

/**
 * Stale data: the series of an endpoint and interval, the registry, the last run, which failed for a reason that makes
 * everything stale in time, or selected series that are never requested; hooks depend on the names.
 */
export type Stale =
  | (Pick<Late, 'metric' | 'interval' | 'series'> & { readonly late_seconds: number })
  | { readonly registry: true; readonly late_seconds: number }
  | Pick<Reason, 'kind' | 'text' | 'next' | 'since'>

const staleOf = ({ metric, interval, series, seconds }: Late): Stale => ({
  metric,
  interval,
  series,
  late_seconds: seconds,
})

const isSameLine = (late: Late, other: Late): boolean =>
  late.metric === other.metric && late.interval === other.interval

/** Something upstream that a person has to look at: in points, or in records of the registry. */
export type UpstreamDifference = ListedViolation | ListedFinding

/** Inputs by which alarms are judged. */
interface AlarmsInput extends MetricsProvider {
  readonly now: Instant
}

/**
 * Finds the reasons from the last runs; windows that failed by an outage that has a name are no second alarm. A watch
 * requests again within minutes: its failures become an alarm when points are late.
 */
function runReasons(
  ledger: Ledger,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  check: Check,
): readonly Reason[] {
  const isAgain = isWatched(ledger)
  const ends = endReasons(lastEndsOf(ledger)).filter(({ kind }) => !(isAgain && kind === 'provider'))
  if (isAgain || ends.some(({ kind }) => kind !== 'held_back')) return ends
  const { count, most, since } = failedOf(coverage)
  return [...ends, ...failedReason(count, most, since, check.maxFailed).filter(({ word }) => word !== null)]
}

/** Collects the alarms that may wake a person; reads no points, and of the registry only what verifies found. */
export async function alarmsOf(ledger: Ledger, input: AlarmsInput) {
  const { catalogue, settings, now } = input
  const { check } = settings
  const { version, provider } = ledger.head()
  const series = storedSeries(ledger).values()
  const coverage = loadCoverage(ledger)
  const selected = await selectedSeries(ledger, input)
  const judged = judgeSeries(series, coverage, new Map(), catalogue, now, storedWeekStart(ledger), selected)
  const reasons = runReasons(ledger, coverage, check)
  const isExplained = reasons.some(({ kind }) => kind !== 'held_back')
  const { late: all, stopped } = lateOf(judged, check, defaultMaxLate(ledger, check))
  // Series that a failed run explains are no second alarm, unless a limit of the configuration requires it.
  const behind = all.filter(({ metric }) => !isExplained || lateFor(check, metric) !== null)
  const late: readonly Stale[] = [
    ...behind.map(staleOf),
    ...stopped.filter((line) => !behind.some((other) => isSameLine(line, other))).map(staleOf),
    ...silentUserData(ledger, check, now).flatMap(({ metric, last }): Stale[] => {
      const ofMetric = judged.filter((line) => line.metric === metric)
      const [first] = ofMetric
      return first ? [{ metric, interval: first.interval, series: ofMetric.length, late_seconds: now - last }] : []
    }),
  ]
  const silent = Math.round(silenceOf(registryFacts(ledger), now))
  const violations = listViolations(ledger, { paths: null, assets: null })
  const findings = ((await findingsIfReadable(ledger)) ?? []).filter(isOpenFinding)
  return {
    version,
    synthetic: provider?.synthetic ?? false,
    /** Differences upstream, and refused data, that were not acknowledged. */
    violations: [...violations.filter(isOpenViolation), ...findings],
    stale: [
      ...late,
      ...(silent > check.maxFeedAge ? [{ registry: true as const, late_seconds: silent }] : []),
      ...[...reasons, ...unmappedReason(await readUnmapped(ledger, input))].map(
        ({ kind, text, next, since }): Stale => ({ kind, text, next, since }),
      ),
    ],
  }
}

/** Alarms that may wake a person. */
interface Alarms {
  readonly violations: readonly UpstreamDifference[]
  readonly stale: readonly Stale[]
}

const recordedShape = z.object({ violations: z.array(z.string()), stale: z.array(z.string()) })

/** Names of the alarms that were reported and last. Derived from the shape that reads them. */
type ReportedAlarms = z.infer<typeof recordedShape>

/** Reads the lasting alarms that any job has reported of this lake; null if none ever was, or they cannot be read. */
async function readTold(root: string) {
  const text = await textOf(inLake(root, places.alarms))
  return (text === undefined ? undefined : recordedShape.safeParse(jsonOf(text)).data) ?? null
}

/** Returns the name under which `alarms.json` remembers stale data. */
export function staleName(stale: Stale): string {
  if ('registry' in stale) return 'registry'
  if (!('kind' in stale)) return `${stale.metric} ${stale.interval}`
  // Others that are added to the selection are news.
  return stale.kind === 'unmapped' ? `unmapped: ${stale.text}` : `last run: ${stale.kind}`
}

/**
 * Selects the alarms that were not reported yet; from now on they count as reported, until they are over. Differences
 * that existed `before` the job began are no news of a lake of which nothing was ever reported. One at a time.
 */
export async function newAlarms(root: string, { violations, stale }: Alarms, before: readonly UpstreamDifference[]) {
  const reported = await readTold(root)
  const knownViolations = new Set(reported?.violations ?? before.map(({ id }) => id))
  const lasting = new Set(reported?.stale)
  const now: ReportedAlarms = { violations: violations.map(({ id }) => id), stale: stale.map(staleName) }
  const file = inLake(root, places.alarms)
  const text = `${JSON.stringify(now)}\n`
  if (reported === null || text !== `${JSON.stringify(reported)}\n`) {
    await realDisk.write(`${file}.part`, text)
    await realDisk.move(`${file}.part`, file)
  }
  return {
    violations: violations.filter(({ id }) => !knownViolations.has(id)),
    stale: stale.filter((line) => !lasting.has(staleName(line))),
  }
}
