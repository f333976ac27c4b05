import { z } from 'zod'
import { isNameless } from '../../catalog/catalogue.ts'
import type { Wanted } from '../../catalog/series.ts'
import { askBeside, type BesideDeps } from '../http/connection.ts'
import { jsonOf } from '../../base/json.ts'
import { readText, sizeOf } from '../../lake/store/files.ts'
import { day } from '../../base/time.ts'
import { metadataUrl, metricsAccess, type MetricsProvider } from './api.ts'
import { metadataPerMinute, metadataRetries, wirePathOf } from './metadata.ts'

/** What the provider says of how late its points come: a hint for when to ask, never a rule; seconds. */
interface LagHint {
  readonly usual: number
  readonly late: number
}

const largest = 1_000_000
const longest = 30 * day
/** So many paths are asked for at a time, */
const mostPaths = 50
/** and where the first few have none, nobody asks for the others. */
const fewPaths = 3
const depth = 3
const percentile = (of: string): RegExp => new RegExp(`^(?:p|q|percentile)?_?0*(?:${of})$`, 'i')
const [usualName, lateName] = [percentile('50|0?\\.50?|median'), percentile('95|0?\\.95')]
const seconds = z.number().min(0).max(longest)

/** Reads percentiles of a lag, wherever in the body they stand under a name such as `p50` and `p95`; null for what has none. */
export const readLagStats = (text: string): LagHint | null => hintIn(jsonOf(text), depth)

function hintIn(value: unknown, deep: number): LagHint | null {
  if (typeof value !== 'object' || value === null || deep === 0) return null
  const entries = Object.entries(value)
  const named = (name: RegExp): number | undefined =>
    seconds.safeParse(entries.find(([key]) => name.test(key))?.[1]).data
  const [usual, late] = [named(usualName), named(lateName)]
  if (usual !== undefined && late !== undefined && late >= usual) return { usual, late }
  for (const [, inner] of entries) {
    const found = hintIn(inner, deep - 1)
    if (found !== null) return found
  }
  return null
}

/** Asks for the lag statistics of the wanted paths, by path. A provider that has none, or does not answer, gives none. */
export async function askLagStats(provider: MetricsProvider, wanted: readonly Wanted[], deps: BesideDeps) {
  const { settings, catalogue } = provider
  const hints = new Map<string, LagHint>()
  const template = catalogue.wire.metadata?.stats
  const { paths } = settings.metrics
  const series = new Map(
    wanted.filter(({ endpoint }) => !isNameless(endpoint, paths)).map((one) => [one.endpoint.path, one]),
  )
  if (template === undefined || series.size === 0) return hints
  const how = { perMinute: metadataPerMinute, retry: { ...metadataRetries, attempts: 1, limitedAttempts: 1 } }
  await askBeside(metricsAccess(provider, largest), deps, how, async ({ ask, base, file }) => {
    let asked = 0
    for (const [path, { endpoint, series: of }] of [...series].slice(0, mostPaths)) {
      const named = template.replace('{asset}', () => encodeURIComponent(of.asset))
      const url = metadataUrl(base, named, wirePathOf(settings.metrics, endpoint))
      const { outcome } = await ask({ id: `lag-${++asked}`, url, file: file(`${asked}.json`), bucket: 'metadata' })
      const body = outcome.kind === 'body' && (await sizeOf(outcome.file)) <= largest
      const hint = body ? readLagStats(await readText(outcome.file)) : null
      if (hint !== null) hints.set(path, hint)
      const isThere = 'status' in outcome && outcome.status !== null && outcome.kind !== 'limited'
      if (!isThere || (hints.size === 0 && asked >= fewPaths)) return
    }
  })
  return hints
}
