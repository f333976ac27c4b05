import type { AssetFamily } from './assets.ts'

/**
 * What a value means, and so how it is made from the curves of its asset:
 * `flow` a number per interval, `stock` a number at the interval's end, `coins` / `coinFlow` the same as a
 * share of the supply, `each` a number of coins, `transfer` coins worth `level` BTC, `band` between `level`
 * and `high`, `ratio` around `level`, `price` a multiple of the price, `difference` of the two metrics in
 * `of`; the others stand for themselves.
 */
type Kind =
  | ('flow' | 'stock' | 'coins' | 'coinFlow' | 'each' | 'transfer' | 'band' | 'ratio' | 'binary' | 'price' | 'supply')
  | ('cumulative' | 'dominance' | 'altcoinCap' | 'blockHeight' | 'blockCount' | 'blockInterval' | 'blockBytes')
  | ('goldilocks' | 'difference' | 'heatmap' | 'quantiles')

/** How one family of metrics looks. */
interface Family {
  readonly kind: Kind
  /** At the size of BTC around 2024; the lower end of a band. */
  readonly level: number
  /** The upper end of a band. */
  readonly high?: number
  /** How far it swings, as a logarithm; 0.2 if not given. */
  readonly swing?: number
  /** How much of the market's mood is in it, -1 to 1. */
  readonly mood?: number
  readonly whole?: boolean
  /** Flows that count unique things grow slower than the interval: the exponent of its length. */
  readonly unique?: number
  /** Nested: an object beside `t` (`o`) or in `v`, with these names. */
  readonly form?: 'o' | 'v'
  readonly names?: readonly string[]
  /** Nested values that sum to this. */
  readonly total?: number
  /** First day of its history, where the asset is older. */
  readonly since?: string
  /** Whether it is told as estimates, which are revised: see `estimateAt`. */
  readonly revised?: true
  readonly families?: readonly AssetFamily[]
  readonly ids?: readonly string[]
  /** The path whose noise it shares, and which component of it. */
  readonly key?: string
  readonly part?: string
  /** Of a difference: from the first of these paths, less the second. */
  readonly of?: readonly [string, string]
}

type More = Omit<Partial<Family>, 'kind' | 'level'>
type Row = readonly [rest: string, kind: Kind, level: number, more?: More]

/** Rows of paths that begin alike, by the pattern of what follows, with what holds for all that say nothing else. */
function below(beginning: string, all: More, rows: readonly Row[]): readonly (readonly [RegExp, Family])[] {
  return rows.map(([rest, kind, level, more]) => [new RegExp(beginning + rest), { ...all, kind, level, ...more }])
}

const words = (text: string): readonly string[] => text.split(' ')
const tenors = words('1w 1m 3m 6m')
const ages = words('24h 1d_1w 1w_1m 1m_3m 3m_6m 6m_12m 1y_2y 2y_3y 3y_5y 5y_7y 7y_10y more_10y')
const bands = words('<0.001 0.001-0.01 0.01-0.1 0.1-1 1-10 10-100 100-1k 1k-10k 10k-100k >100k')
const bridged = [...words('arbitrum base optimism polygon zksync starknet avalanche'), 'BNB Chain']
const tokens = words('USDC USDC.e USDT DAI WETH wstETH WBTC 1INCH PT-USDe/26DEC crv~USD')
const cohorts = words('shrimps crabs fish sharks whales humpbacks')
const [btc, eth, leading, optioned] = [['BTC'], ['ETH'], ['BTC', 'ETH'], ['BTC', 'ETH', 'SOL', 'XRP']]
const aged: readonly AssetFamily[] = ['bitcoin', 'ethereum', 'utxo']
const chained: readonly AssetFamily[] = [...aged, 'chain']
const traded: readonly AssetFamily[] = [...chained, 'token', 'meme', 'gold']
const skewed = { high: 0.3, mood: -0.5, since: '2020-02-01', ids: optioned, key: 'derivatives/options_25delta_skew' }

/** Holders of at least so much, and about how many addresses they have. */
const thresholds = words(
  '1_usd:4.4e7 10_usd:3.6e7 100_usd:2.3e7 1k_usd:1.1e7 10k_usd:3.3e6 100k_usd:520e3 1m_usd:110e3 ' +
    'point_zero_1:1.3e7 point_1:4.6e6 1:1e6 10:152e3 100:16200 1k:2100 10k:98',
)

/** By the pattern of paths, in the order of asking: the first match holds, the last one matches everything. */
const families = [
  ...below('^derivatives/options_', skewed, [
    ['25delta_skew_1_week_pit$', 'band', -0.22, { part: '1w' }],
    ['25delta_skew_1_month_pit$', 'band', -0.22, { part: '1m' }],
    ['25delta_skew_3_months_pit$', 'band', -0.22, { part: '3m' }],
    ['25delta_skew_6_months_pit$', 'band', -0.22, { part: '6m' }],
    ['.*skew_all', 'band', -0.22, { form: 'o', names: tenors }],
  ]),
  ...below('^derivatives/', { families: traded }, [
    ['.*cash_margin', 'coins', 0.014, { swing: 0.5, mood: 0.4, since: '2019-09-01' }],
    ['.*crypto_margin', 'coins', 0.008, { swing: 0.4, mood: 0.2, since: '2019-06-01' }],
    ['', 'coins', 0.01, { swing: 0.4, since: '2020-01-01' }],
  ]),
  ...below('^options/', { since: '2020-02-01', ids: optioned }, [
    ...[5, 10, 15, 20, 25, 50].map((delta): Row => {
      const high = 1.05 + (50 - delta) * 0.006
      const more = { high, mood: 0.2, form: 'o', names: tenors, key: 'options/iv' } as const
      return [`iv_call_delta_${delta}_pit$`, 'band', 0.28 + (50 - delta) * 0.002, more]
    }),
    ['.*skew', 'band', -0.18, { high: 0.22, mood: 0.4, form: 'v', names: tenors, since: '2020-03-01' }],
    ['', 'band', 0.3, { high: 1.1 }],
  ]),
  ...below('^addresses/', { whole: true }, [
    ...thresholds.map((threshold): Row => {
      const [name = '', level] = threshold.split(':')
      return [`min_${name}_count_pit$`, 'stock', Number(level), { swing: 0.06, mood: name.endsWith('usd') ? 1 : 0.1 }]
    }),
    ['min_32_', 'stock', 240_000, { swing: 0.08, ids: eth }],
    ['non_zero', 'stock', 5.3e7, { swing: 0.03 }],
    ['active_count_with', 'flow', 1.2e6, { unique: 0.7, mood: 0.5 }],
    ['active_count', 'flow', 900_000, { unique: 0.7, mood: 0.5 }],
    ['accumulation_count', 'stock', 1.1e6, { swing: 0.05, families: aged }],
    ['loss_count', 'stock', 1.1e7, { swing: 0.5, mood: -1 }],
    ['profit_count', 'stock', 4.1e7, { swing: 0.1, mood: 0.7 }],
  ]),
  ...below('^addresses/', {}, [
    ['accumulation_balance', 'coins', 0.15, { swing: 0.1, families: aged }],
    ['activity_retention', 'band', 0.12, { high: 0.5 }],
    ['supply_distribution', 'band', 0.05, { high: 1, form: 'v', names: bands, total: 1 }],
  ]),
  ...below('^entities/', {}, [['', 'flow', 260_000, { unique: 0.7, whole: true, mood: 0.5, ids: btc }]]),
  ...below('addresses_', { whole: true, form: 'o', names: ages, families: aged }, [
    ['loss_count_by_age', 'stock', 1.1e7, { swing: 0.5, mood: -1 }],
    ['profit_count_by_age', 'stock', 4.1e7, { swing: 0.1, mood: 0.7 }],
  ]),
  ...below('^supply/', {}, [
    ['current_adjusted', 'coins', 0.93, { swing: 0.01, families: aged }],
    ['current', 'supply', 1],
    ['burn_rate', 'coinFlow', 1.6e-5, { swing: 0.9, mood: 0.4, since: '2021-08-05', ids: eth }],
    ['burned', 'cumulative', 3300, { since: '2021-08-05', ids: eth }],
    ['.*change', 'band', -0.06, { high: 0.07, ids: leading, since: '2013-01-01' }],
  ]),
  ...below('^eth2/', { since: '2020-12-01', ids: eth }, [
    ['active_validators', 'stock', 2.1e6, { swing: 0.02, whole: true }],
    ['attestation', 'band', 96, { high: 127, whole: true }],
    ['validator_balance', 'each', 32.9, { swing: 0.03 }],
    ['', 'ratio', 1],
  ]),
  ...below('^blockchain/block_', { families: chained }, [
    ['height', 'blockHeight', 1],
    ['count', 'blockCount', 1],
    ['interval_median', 'blockInterval', 0.7],
    ['interval', 'blockInterval', 1],
    ['size_sum', 'blockBytes', 1.5e6, { whole: true, key: 'blockchain/block_size' }],
    ['size', 'stock', 1.5e6, { swing: 0.3, key: 'blockchain/block_size' }],
  ]),
  ...below('^distribution/', { swing: 0.2, ids: btc }, [
    ['.*bhutan', 'coins', 0.0006, { since: '2019-04-01' }],
    ['', 'coins', 0.0004, { since: '2018-06-01' }],
  ]),
  ...below('^bridges/', { form: 'o', names: bridged, since: '2021-06-01', ids: eth }, [
    ['net_volume', 'difference', 1, { of: ['bridges/deposits_by_chain_pit', 'bridges/withdrawals_by_chain_pit'] }],
    ['.*relative', 'band', 0.05, { high: 1, form: 'v', total: 1 }],
    ['total_value', 'stock', 4e10, { swing: 0.2, mood: 0.5 }],
    ['', 'flow', 4e8, { swing: 0.5, mood: 0.4 }],
  ]),
  ...below('^protocols/', { swing: 0.3, ids: eth }, [
    ['.*by_token', 'stock', 2e10, { form: 'o', names: tokens, since: '2023-01-27' }],
    ['', 'stock', 2e10, { since: '2022-03-16' }],
  ]),
  ...below('^transactions/', {}, [
    ['.*bridges_relative', 'band', 0.001, { high: 0.04, since: '2021-06-01', ids: eth }],
    ['.*bridges', 'flow', 24_000, { swing: 0.4, whole: true, since: '2021-06-01', ids: eth }],
    ['.*defi', 'flow', 310_000, { mood: 0.3, whole: true, since: '2018-11-01', ids: eth }],
    ['contract_calls_internal', 'flow', 9e6, { whole: true, ids: eth }],
    ['contract_calls', 'flow', 1.9e6, { whole: true, ids: eth }],
    ['.*coinjoins_count', 'flow', 5200, { swing: 0.6, whole: true, since: '2018-08-01', ids: btc }],
    ['.*coinjoins', 'coinFlow', 1e-4, { swing: 0.6, since: '2018-08-01', ids: btc }],
    ['.*_mean', 'transfer', 5, { swing: 0.4 }],
    ['.*_median', 'transfer', 0.01, { swing: 0.4 }],
    ['.*volume', 'coinFlow', 0.02, { swing: 0.4, mood: 0.3 }],
  ]),
  ...below('^indicators/', { families: aged }, [
    ['cost_basis_distribution_quantiles', 'quantiles', 1],
    ['cost_basis_distribution_lth', 'heatmap', 0.72],
    ['cost_basis_distribution_sth', 'heatmap', 0.28],
    ['cost_basis_distribution', 'heatmap', 1],
    ['accumulation_trend_score_by', 'band', 0, { high: 1, form: 'o', names: cohorts }],
    ['accumulation_trend', 'band', 0, { high: 1 }],
    ['cdd90', 'coins', 0.02, { swing: 0.4, mood: 0.4 }],
    ['cdd_supply_adjusted_binary', 'binary', 0.2],
    ['cdd', 'coinFlow', 0.45, { swing: 0.8, mood: 0.4 }],
    ['cyd', 'coins', 160, { swing: 0.3 }],
    ['coin_blocks', 'coinFlow', 65, { swing: 0.5 }],
    ['asol', 'ratio', 32, { swing: 0.6 }],
    ['sopr', 'ratio', 1.01, { swing: 0.03, mood: 0.6 }],
    ['aviv', 'ratio', 1.2, { swing: 0.5, mood: 0.9 }],
    ['balanced_price', 'price', 0.42, { swing: 0.1, mood: -0.8 }],
    ['cvdd', 'price', 0.5, { swing: 0.1, mood: -1 }],
  ]),
  ...below('^signals/', { since: '2014-01-01', ids: btc }, [
    ['altcoin_index', 'band', 0, { high: 100, since: '2017-01-01' }],
    ['btc_bss_indicator_1', 'band', 30, { high: 82, mood: 0.5 }],
    ['btc_bss_indicator_2', 'band', -1, { high: 7, mood: 0.8 }],
    ['btc_bss_indicator_3', 'band', 0, { high: 12 }],
    ['btc_bss_indicator_4', 'band', -30, { high: 30, mood: 0.3 }],
    ['btc_bss_goldilocks_short', 'binary', 0.5],
    ['btc_bss_goldilocks', 'goldilocks', 1],
    ['', 'band', 0, { high: 1, mood: 0.3 }],
  ]),
  ...below('^market/', {}, [
    ['btc_dominance', 'dominance', 100, { since: '2013-04-28', ids: btc }],
    ['marketcap_altcoins', 'altcoinCap', 1, { since: '2013-04-28', ids: btc }],
    ['correlation', 'band', -0.25, { high: 1, families: traded }],
    ['beta', 'band', -0.1, { high: 2.3, families: traded }],
    ['.*premium', 'band', -0.35, { high: 0.35, since: '2017-01-01', ids: leading }],
    ['.*change', 'band', -0.4, { high: 0.55, mood: 0.5, since: '2012-01-01', ids: leading }],
  ]),
  ...below('^estimates/', { revised: true, since: '2015-01-01', ids: leading }, [
    ['', 'band', 2.8, { high: 9.5, mood: -0.6 }],
  ]),
  // What a path that no row names looks like, by its words.
  ...below('', {}, [
    ['relative|ratio|rate|score|index|dominance|percent', 'band', 0, { high: 1 }],
    ['count|height|number', 'stock', 100_000, { whole: true }],
    ['price|_usd', 'price', 1, { swing: 0.1 }],
    ['balance|supply|volume|_sum|interest|liquidity', 'coins', 0.05],
    ['', 'ratio', 1],
  ]),
]

/** The family of a metric's path. */
export const familyOf = (path: string): Family => families.find(([pattern]) => pattern.test(path))?.[1] as Family
