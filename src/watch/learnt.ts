import type { Catalogue } from '../catalog/catalogue.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type Held, heldArrivals } from '../report/arrivals.ts'
import { judge } from '../report/audit.ts'
import { parseDuration } from '../time.ts'
import type { Learnt } from './due.ts'

/** The lags that the lake has seen of the wanted paths, by `path interval`: what `audit availability` measures. */
export async function learntLags(
  ledger: Ledger,
  catalogue: Catalogue,
  wanted: (path: string) => boolean,
): Promise<Map<string, Learnt>> {
  const held = await heldArrivals(ledger, catalogue, wanted)
  return new Map(held.map((own) => [`${own.endpoint.path} ${own.interval}`, learntOf(own)]))
}

/**
 * Where the provider tells of most points when they were computed, their quantiles; else what the rule would have to be
 * where the arrivals disprove it. Points that were always there in time say nothing beyond the rule.
 */
export function learntOf({ endpoint, interval, rules, arrivals }: Held): Learnt {
  const { observations, watched, proposed_lag } = judge(endpoint.path, interval, rules, arrivals)
  const { p05, p50, p95 } = arrivals
  const all = observations + watched
  if (observations >= watched && p05 !== null && p50 !== null && p95 !== null)
    return { observations: all, lag: { early: p05, usual: p50, late: p95 } }
  const late = proposed_lag === null ? undefined : parseDuration(proposed_lag)
  return { observations: all, lag: late === undefined ? null : { early: late, usual: late, late } }
}
