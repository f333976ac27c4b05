import type { Catalogue } from '../catalog/catalogue.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { SeenLags } from '../results/stress-delays.ts'
import { heldArrivals } from './arrivals.ts'

/** How late the points of these metrics were seen to come, by the quantiles of the audit; of all metrics where none is named. */
export async function seenLags(
  ledger: Ledger,
  catalogue: Catalogue,
  metrics: readonly string[],
): Promise<readonly SeenLags[]> {
  const held = await heldArrivals(ledger, catalogue, (path) => metrics.length === 0 || metrics.includes(path))
  return held.map(({ endpoint, interval, arrivals: { p50, p95, p99, max } }) => {
    return { metric: endpoint.path, interval, p50, p95, p99, max }
  })
}
