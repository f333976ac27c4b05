import type { Catalogue } from '../catalog/catalogue.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { SeenLags } from '../query/stress-delays.ts'
import { heldArrivals } from './arrivals.ts'

/** How late the points of these metrics were seen to come, by the quantiles of the audit; of all metrics where none is named. */
export async function seenLags(
  ledger: Ledger,
  catalogue: Catalogue,
  metrics: readonly string[],
): Promise<readonly SeenLags[]> {
  const held = await heldArrivals(ledger, catalogue, (path) => metrics.length === 0 || metrics.includes(path))
  const seconds = (lag: number | null): number | null => (lag === null ? null : lag / 1_000_000)
  return held.map(({ endpoint, interval, arrivals: { p50, p95, p99, max } }) => ({
    metric: endpoint.path,
    interval,
    p50: seconds(p50),
    p95: seconds(p95),
    p99: seconds(p99),
    max: seconds(max),
  }))
}
