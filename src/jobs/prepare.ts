import { existsSync } from 'node:fs'
import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { expand, type Selection, type Series } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { heldCoverage, heldSeries } from '../lake/held.ts'
import { inLake, places } from '../lake/layout.ts'
import { Ledger } from '../lake/ledger.ts'
import { type Held, type Limits, type Plan, placeholderReason, plan } from '../plan.ts'
import { isLoopback, type Settings } from '../settings.ts'
import type { Instant } from '../time.ts'

/** What a plan is made of beside the ledger. */
export interface PlanInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly selections: readonly Selection[]
  readonly gapsOnly: boolean
  readonly now: Instant
}

/** The plan against what the lake holds; a lake that is not there yet holds nothing, and nothing is written. */
export async function preparePlan(input: PlanInput): Promise<Plan> {
  const { settings } = input
  if (!lakeExists(settings.data)) return planAgainst(input, new Map())
  const ledger = await Ledger.openToRead(settings.data)
  try {
    return planAgainst(input, heldOf(ledger))
  } finally {
    ledger.close()
  }
}

/** The plan against known coverage. */
export function planAgainst(input: PlanInput, held: ReadonlyMap<string, Held>): Plan {
  const { settings, catalogue, selections, gapsOnly, now } = input
  for (const selection of selections) {
    if (selection.assets.includes('*'))
      throw usage("assets: '*'", { expected: 'asset ids', got: "'*'", next: 'name them: --assets BTC,ETH' })
  }
  const limits: Limits = {
    requestsPerMinute: settings.metrics.requestsPerMinute,
    credits: settings.metrics.credits,
    gapsOnly,
    blocked: blockedBy(settings, catalogue),
  }
  return plan(expand(catalogue, selections), held, limits, now)
}

/** What the ledger says of every series. */
export function heldOf(ledger: Ledger): Map<string, Held> {
  const coverage = heldCoverage(ledger)
  const held = new Map<string, Held>()
  for (const [id, series] of heldSeries(ledger))
    held.set(id, { answers: coverage.get(id) ?? [], settled: series.settled })
  return held
}

/** Whether the folder holds a lake. */
export function lakeExists(root: string): boolean {
  return existsSync(inLake(root, places.ledger)) || existsSync(inLake(root, places.journal))
}

/** A placeholder that nobody has mapped is asked of the local sandbox only. */
export function blockedBy(
  settings: Settings,
  catalogue: Catalogue,
): (series: Series, endpoint: Endpoint) => string | null {
  const { url, paths, exchanges } = settings.metrics
  if (url === null || isLoopback(url)) return () => null
  return (series, endpoint) => {
    if (endpoint.placeholders.length > 0 && paths[endpoint.path] === undefined) {
      return `${placeholderReason} ${endpoint.placeholders.join(', ')} in the path: map it under metrics.paths`
    }
    const { exchange } = series
    if (exchange !== null && catalogue.placeholderExchanges.has(exchange) && exchanges[exchange] === undefined) {
      return `${placeholderReason} exchange ${exchange}: map it under metrics.exchanges`
    }
    return null
  }
}
