import type { Line } from './lakes/timed-lake.ts'
import type { HandRule, Spell } from './time-twin.ts'

const minute = 60
const hour = 3600

/** The rules of the catalogue, written down again by hand: the first line that fits a path. */
const catalogued: readonly (readonly [RegExp, HandRule | ((interval: Spell) => HandRule)])[] = [
  [/^signals\/altcoin_index_pit$|^market\/btc_dominance_pit$/, { days: 1, minutes: 615, basis: 'stated' }],
  [/^signals\/btc_sharpe_signal_pit$/, { days: 1, minutes: 240, basis: 'stated' }],
  [/^signals\/btc_bss_(indicator_\d|goldilocks)_pit$/, { days: 1, minutes: 360, basis: 'assumed' }],
  [/^signals\/btc_(risk_index|bss_short|bss_goldilocks_short)_pit$/, { lag: 2 * hour, basis: 'assumed' }],
  [
    /^(entities\/|addresses\/accumulation_|indicators\/accumulation_|distribution\/)/,
    { lag: 2 * hour, basis: 'assumed' },
  ],
  [/_from_coinjoins_|^breakdowns\/|^addresses\/(loss|profit)_count_pit$/, { lag: 2 * hour, basis: 'assumed' }],
  [/^bridges\/|^protocols\/|_bridges_|transfers_count_defi/, { lag: 2 * hour, basis: 'assumed' }],
  [/^indicators\/cost_basis_distribution_/, { lag: 6 * hour, basis: 'assumed' }],
  [/marketcap_altcoins_usd|apac_30d_price_change|apac_1y_supply_change/, { lag: 12 * hour, basis: 'assumed' }],
  [/./, (interval) => ({ lag: interval === '10m' ? 20 * minute : 30 * minute, basis: 'assumed' })],
]

/** The catalogue's rule for a path at an interval. */
export function cataloguedRule(path: string, interval: Spell): HandRule {
  const rule = catalogued.find(([pattern]) => pattern.test(path))?.[1]
  if (rule === undefined) throw new Error(path)
  return typeof rule === 'function' ? rule(interval) : rule
}

/** What the configuration says of a pattern: one rule (of some intervals), or rules by interval, or both. */
export interface Row {
  readonly pattern: string
  readonly rule: HandRule | null
  readonly only: readonly Spell[] | null
  readonly own: Readonly<Partial<Record<Spell, HandRule>>>
}

const pad = (n: number): string => String(n).padStart(2, '0')

function ruleYaml(rule: HandRule): string {
  const time =
    'lag' in rule
      ? `lag: ${rule.lag}s`
      : `daily_at: "${pad(Math.floor(rule.minutes / 60))}:${pad(rule.minutes % 60)}", days: ${rule.days}`
  const until = rule.before === undefined ? '' : `, until: ${new Date(rule.before * 1000).toISOString()}`
  return `${time}${until}${rule.wins === true ? ', trust: rule' : ''}`
}

/** A row as `pitlake.yaml` spells it. */
export function rowYaml({ pattern, rule, only, own }: Row): string {
  const parts = [
    ...(rule === null ? [] : [ruleYaml(rule)]),
    ...(rule === null || only === null ? [] : [`intervals: [${only.join(', ')}]`]),
    ...Object.entries(own).map(([interval, one]) => `${interval}: { ${ruleYaml(one)} }`),
  ]
  return `    "${pattern}": { ${parts.join(', ')} }\n`
}

/** The rules of a line, the strongest first: an exact path before a pattern, an interval's own before one for all. */
export function handRules({ path, interval }: Line, rows: readonly Row[]): HandRule[] {
  const spell = interval ?? '24h'
  const fits = (exact: boolean): Row[] =>
    rows.filter(({ pattern }) =>
      exact ? pattern === path : pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1)),
    )
  const ranked = [true, false].flatMap((exact) => {
    const named = fits(exact).flatMap(({ rule, only, own }) => {
      const mine = own[spell]
      if (mine !== undefined) return [mine]
      return rule !== null && only?.includes(spell) === true ? [rule] : []
    })
    return [...named, ...fits(exact).flatMap(({ rule, only }) => (rule !== null && only === null ? [rule] : []))]
  })
  return [...ranked, cataloguedRule(path, spell)]
}
