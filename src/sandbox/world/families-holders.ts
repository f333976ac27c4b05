import type { AssetFamily } from './assets.ts'
import type { Family } from './family.ts'

const tenors = ['1w', '1m', '3m', '6m']
const ages = [
  '24h',
  '1d_1w',
  '1w_1m',
  '1m_3m',
  '3m_6m',
  '6m_12m',
  '1y_2y',
  '2y_3y',
  '3y_5y',
  '5y_7y',
  '7y_10y',
  'more_10y',
]
const bands = ['<0.001', '0.001-0.01', '0.01-0.1', '0.1-1', '1-10', '10-100', '100-1k', '1k-10k', '10k-100k', '>100k']
const btc = ['BTC']
const eth = ['ETH']
const optioned = ['BTC', 'ETH', 'SOL', 'XRP']
const aged: readonly AssetFamily[] = ['bitcoin', 'ethereum', 'utxo']
const traded: readonly AssetFamily[] = ['bitcoin', 'ethereum', 'utxo', 'chain', 'token', 'meme', 'gold']
const skew = 'derivatives/options_25delta_skew'

/** Options and futures, in the order of asking. */
export const derivativeFamilies: readonly Family[] = [
  ...(['1_week', '1_month', '3_months', '6_months'] as const).map(
    (part, i): Family => ({
      match: new RegExp(`^derivatives/options_25delta_skew_${part}_pit$`),
      kind: 'band',
      level: -0.22,
      high: 0.3,
      mood: -0.5,
      since: '2020-02-01',
      ids: optioned,
      key: skew,
      part: tenors[i] ?? part,
    }),
  ),
  {
    match: /^derivatives\/options_.*skew_all/,
    kind: 'band',
    level: -0.22,
    high: 0.3,
    mood: -0.5,
    form: 'o',
    names: tenors,
    since: '2020-02-01',
    ids: optioned,
    key: skew,
  },
  ...[5, 10, 15, 20, 25, 50].map(
    (delta): Family => ({
      match: new RegExp(`^options/iv_call_delta_${delta}_pit$`),
      kind: 'band',
      level: 0.28 + (50 - delta) * 0.002,
      high: 1.05 + (50 - delta) * 0.006,
      mood: 0.2,
      form: 'o',
      names: tenors,
      since: '2020-02-01',
      ids: optioned,
      key: 'options/iv',
    }),
  ),
  {
    match: /^options\/.*skew/,
    kind: 'band',
    level: -0.18,
    high: 0.22,
    mood: 0.4,
    form: 'v',
    names: tenors,
    since: '2020-03-01',
    ids: optioned,
  },
  { match: /^options\//, kind: 'band', level: 0.3, high: 1.1, since: '2020-02-01', ids: optioned },
  {
    match: /^derivatives\/.*cash_margin/,
    kind: 'coins',
    level: 0.014,
    swing: 0.5,
    mood: 0.4,
    since: '2019-09-01',
    families: traded,
  },
  {
    match: /^derivatives\/.*crypto_margin/,
    kind: 'coins',
    level: 0.008,
    swing: 0.4,
    mood: 0.2,
    since: '2019-06-01',
    families: traded,
  },
  { match: /^derivatives\//, kind: 'coins', level: 0.01, swing: 0.4, since: '2020-01-01', families: traded },
]

const thresholds: readonly (readonly [string, number])[] = [
  ['1_usd', 4.4e7],
  ['10_usd', 3.6e7],
  ['100_usd', 2.3e7],
  ['1k_usd', 1.1e7],
  ['10k_usd', 3.3e6],
  ['100k_usd', 520_000],
  ['1m_usd', 110_000],
  ['point_zero_1', 1.3e7],
  ['point_1', 4.6e6],
  ['1', 1e6],
  ['10', 152_000],
  ['100', 16_200],
  ['1k', 2100],
  ['10k', 98],
]

/** Addresses, entities and their cohorts, in the order of asking. */
export const addressFamilies: readonly Family[] = [
  ...thresholds.map(
    ([name, level]): Family => ({
      match: new RegExp(`^addresses/min_${name}_count_pit$`),
      kind: 'stock',
      level,
      swing: 0.06,
      mood: name.endsWith('usd') ? 1 : 0.1,
      whole: true,
    }),
  ),
  { match: /^addresses\/min_32_/, kind: 'stock', level: 240_000, swing: 0.08, whole: true, ids: eth },
  { match: /^addresses\/non_zero/, kind: 'stock', level: 5.3e7, swing: 0.03, whole: true },
  { match: /^addresses\/active_count_with/, kind: 'flow', level: 1.2e6, unique: 0.7, whole: true, mood: 0.5 },
  { match: /^addresses\/active_count/, kind: 'flow', level: 900_000, unique: 0.7, whole: true, mood: 0.5 },
  { match: /^entities\//, kind: 'flow', level: 260_000, unique: 0.7, whole: true, mood: 0.5, ids: btc },
  { match: /^addresses\/accumulation_count/, kind: 'stock', level: 1.1e6, swing: 0.05, whole: true, families: aged },
  { match: /^addresses\/accumulation_balance/, kind: 'coins', level: 0.15, swing: 0.1, families: aged },
  { match: /^addresses\/activity_retention/, kind: 'band', level: 0.12, high: 0.5 },
  { match: /^addresses\/supply_distribution/, kind: 'band', level: 0.05, high: 1, form: 'v', names: bands, total: 1 },
  {
    match: /addresses_loss_count_by_age/,
    kind: 'stock',
    level: 1.1e7,
    swing: 0.5,
    mood: -1,
    whole: true,
    form: 'o',
    names: ages,
    families: aged,
  },
  {
    match: /addresses_profit_count_by_age/,
    kind: 'stock',
    level: 4.1e7,
    swing: 0.1,
    mood: 0.7,
    whole: true,
    form: 'o',
    names: ages,
    families: aged,
  },
  { match: /^addresses\/loss_count/, kind: 'stock', level: 1.1e7, swing: 0.5, mood: -1, whole: true },
  { match: /^addresses\/profit_count/, kind: 'stock', level: 4.1e7, swing: 0.1, mood: 0.7, whole: true },
]
