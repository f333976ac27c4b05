import { z } from 'zod'
import { isNameless } from '../../catalog/catalogue.ts'
import type { Wanted } from '../../catalog/series.ts'
import { askBeside, type BesideDeps } from '../http/connection.ts'
import { jsonOf } from '../../base/json.ts'
import { readText, sizeOf } from '../../lake/store/files.ts'
import { day, type Interval, isInterval } from '../../base/time.ts'
import { metadataUrl, metricsAccess, type MetricsProvider } from './api.ts'
import { metadataPerMinute, metadataRetries } from './metadata.ts'

/**
 * The usual lag of a series' points by the provider's own statistics: a hint for the time of requests, never a rule.
 */
export interface LagHint {
  /** Median lag, seconds. */
  readonly usual: number
  /** 95th percentile of the lag, seconds. */
  readonly late: number
}

/** The lag statistics of one path. */
export interface LagStatistics {
  /** Hints for single intervals, if the statistics distinguish intervals. */
  readonly byInterval: ReadonlyMap<Interval, LagHint>
  /** The hint for any other interval; null if every hint belongs to an interval. */
  readonly overall: LagHint | null
}

const largest = 1_000_000
const longest = 30 * day
/** Most paths that are requested in one round. */
const mostPaths = 50
/** Number of paths without statistics, and none with any, after which no further path is requested. */
const fewPaths = 3
/** Levels of nesting that are searched: the recorded form `lag[0].resolution["24h"].p50` has four above the numbers. */
const maxDepth = 6
const percentile = (of: string): RegExp => new RegExp(`^(?:p|q|percentile)?_?0*(?:${of})$`, 'i')
const usualName = percentile('50|0?\\.50?|median')
const lateName = percentile('95|0?\\.95')
const lagNumber = z.number().min(0)

/** Seconds in the units that a provider may name; a unit that is missing here makes its numbers unusable. */
const secondsIn: Readonly<Record<string, number>> = {
  milliseconds: 0.001,
  ms: 0.001,
  seconds: 1,
  s: 1,
  minutes: 60,
  hours: 3600,
}

/**
 * Reads percentiles of a lag from any position in the body with names such as `p50` and `p95`; null if there are none.
 */
export function readLagStats(text: string): LagStatistics | null {
  const found: FoundHint[] = []
  collectHints(jsonOf(text), { interval: null, scale: 1, depth: maxDepth }, found)
  if (found.length === 0) return null
  const byInterval = new Map<Interval, LagHint>()
  for (const { interval, hint } of found)
    if (interval !== null && !byInterval.has(interval)) byInterval.set(interval, hint)
  return { byInterval, overall: found.find(({ interval }) => interval === null)?.hint ?? null }
}

interface FoundHint {
  /** The interval under whose name the hint was found; null if there was none. */
  readonly interval: Interval | null
  readonly hint: LagHint
}

interface Place {
  readonly interval: Interval | null
  /** Seconds in one unit of the numbers here; null if the unit is unknown. */
  readonly scale: number | null
  readonly depth: number
}

function collectHints(value: unknown, { interval, scale, depth }: Place, hints: FoundHint[]): void {
  if (typeof value !== 'object' || value === null || depth === 0) return
  const entries = Object.entries(value)
  const unit: unknown = entries.find(([key]) => key === 'unit')?.[1]
  const here = typeof unit === 'string' ? (secondsIn[unit.toLowerCase()] ?? null) : scale
  const secondsOf = (name: RegExp): number | undefined => {
    const { data } = lagNumber.safeParse(entries.find(([key]) => name.test(key))?.[1])
    const seconds = data === undefined || here === null ? undefined : data * here
    return seconds !== undefined && seconds <= longest ? seconds : undefined
  }
  const usual = secondsOf(usualName)
  const late = secondsOf(lateName)
  if (usual !== undefined && late !== undefined && late >= usual) hints.push({ interval, hint: { usual, late } })
  for (const [key, inner] of entries)
    collectHints(inner, { interval: isInterval(key) ? key : interval, scale: here, depth: depth - 1 }, hints)
}

/** Requests the lag statistics of the wanted paths, by path; empty if the provider has none or does not answer. */
export async function askLagStats(
  provider: MetricsProvider,
  wantedSeries: readonly Wanted[],
  deps: BesideDeps,
): Promise<ReadonlyMap<string, LagStatistics>> {
  const { catalogue } = provider
  const hints = new Map<string, LagStatistics>()
  const template = catalogue.wire.metadata?.stats
  const series = new Map(
    wantedSeries.filter(({ endpoint }) => !isNameless(endpoint)).map((wanted) => [wanted.endpoint.path, wanted]),
  )
  if (template === undefined || series.size === 0) return hints
  const how = { perMinute: metadataPerMinute, retry: { ...metadataRetries, attempts: 1, limitedAttempts: 1 } }
  await askBeside(metricsAccess(provider, largest), deps, how, async ({ ask, base, file }) => {
    let requestCount = 0
    for (const [path, { endpoint, series: of }] of [...series].slice(0, mostPaths)) {
      const named = template.replace('{asset}', () => encodeURIComponent(of.asset))
      const url = metadataUrl(base, named, endpoint.ask)
      const { outcome } = await ask({
        id: `lag-${++requestCount}`,
        url,
        file: file(`${requestCount}.json`),
        bucket: 'metadata',
      })
      const body = outcome.kind === 'body' && (await sizeOf(outcome.file)) <= largest
      const hint = body ? readLagStats(await readText(outcome.file)) : null
      if (hint !== null) hints.set(path, hint)
      const isThere = 'status' in outcome && outcome.status !== null && outcome.kind !== 'limited'
      if (!isThere || (hints.size === 0 && requestCount >= fewPaths)) return
    }
  })
  return hints
}
