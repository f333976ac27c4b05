import { revisableKey } from '../../../src/lake/ledger/draft.ts'
import type { LakeRecipe, PointRow } from './lake-recipe.ts'

const rate = 'indicators/sopr_adjusted_pit'
const blocks = 'blockchain/block_count_pit'
const place = { interval: '24h', currency: null, exchange: null, network: null } as const

/** Paths of the metrics of `revisedMetrics`. */
export const revisedPaths = { rate, blocks }

/** Days of its points. */
export const revisedDays: readonly string[] = ['2024-01-01', '2024-01-02', '2024-01-03', '2024-01-04']

/** First values of `rate` of BTC, a day each; those of ETH are larger by ten. */
export const firstRates: readonly number[] = [1.234_567, 2.345_678, 3.456_789, 4.567_891]

/** The value of a day, known a day and ten minutes later. */
function point(metric: string, asset: string, day: number, v: number, known?: string): PointRow {
  const available_at = known ?? `2024-01-0${day + 1}T00:10:00Z`
  return { ...place, metric, asset, t: `${revisedDays[day - 1] ?? ''}T00:00:00Z`, available_at, v }
}

const first = firstRates.flatMap((v, n) => [
  point(rate, 'BTC', n + 1, v),
  point(rate, 'ETH', n + 1, v + 10),
  point(blocks, 'BTC', n + 1, 100 + n),
])
/** Both metrics are revised, each at a time of its own. */
const second = [
  point(rate, 'BTC', 1, 9.876_543, '2024-02-01T00:00:00Z'),
  point(blocks, 'BTC', 1, 777, '2024-03-01T00:00:00Z'),
]
const revisable = { [revisableKey]: [rate, blocks] }

/** Two revisable metrics on four days; the first value of each is revised, at different times. */
export const revisedMetrics: LakeRecipe = {
  name: 'revised-metrics',
  commits: [
    { at: '2024-01-10T00:00:00Z', points: first, state: revisable },
    { at: '2024-04-01T00:00:00Z', points: second, state: { ...revisable, step: '2' } },
  ],
}
