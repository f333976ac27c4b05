import type { Rule } from '../../src/catalog/availability.ts'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { expand, type Selection, type Wanted } from '../../src/catalog/series.ts'
import type { WindowAnswer } from '../../src/lake/ledger/entry.ts'
import type { plan } from '../../src/sources/metrics/plan.ts'
import { type Instant, intervals } from '../../src/base/time.ts'
import { lag600 } from './converting.ts'
import { catalogue } from './sandbox-client.ts'

/** The first series that is selected, of BTC unless said. */
export function wantedOf(selection: Partial<Selection>): Wanted {
  const [one] = expand(catalogue, [{ assets: ['BTC'], ...selection }])
  if (one === undefined) throw new Error('no series')
  return one
}

/** The rule that a point is known so many seconds after its interval. */
export const lagOf = (seconds: number, basis: Rule['basis'] = 'assumed'): Rule => ({ ...lag600, seconds, basis })

/** The same rule for every interval. */
export const rulesOf = (...rules: readonly Rule[]): Endpoint['rules'] =>
  // Cast: the keys are all intervals, which Object.fromEntries forgets.
  Object.fromEntries(intervals.map((interval) => [interval, rules])) as unknown as Endpoint['rules']

/** A window that was asked at its end, and is covered unless said. */
export const answered = (since: Instant, until: Instant, rest: Partial<WindowAnswer> = {}): WindowAnswer => {
  return { since, until, state: 'covered', reason: null, asked_at: until, request: null, ...rest }
}

/** A ledger that knows these answers of the series, and nothing else. */
export const heldOf = ({ series, endpoint }: Wanted, answers: readonly WindowAnswer[]): Parameters<typeof plan>[1] =>
  new Map([[series.id, { metric: endpoint.path, points: 1, answers, settled: null }]])
