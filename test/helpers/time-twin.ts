/**
 * The rules of time once more, by brute force: whole seconds, Date.UTC, lists that are gone through from end to end.
 * Nothing here may come from src: what agrees with the program must not be the program.
 */

/** The intervals of the API description, and the quarters of user files. */
const spells = ['10m', '1h', '24h', '1w', '1month', '3month'] as const
export type Spell = (typeof spells)[number]

/** The interval of that name. */
export function spellOf(name: string): Spell {
  const spell = spells.find((one) => one === name)
  if (spell === undefined) throw new Error(`${name} is no interval of the API description`)
  return spell
}

/** From when on a point counts as known: a lag after its end, or minutes of a day UTC some days after `t`. */
export type HandRule = ({ readonly lag: number } | { readonly days: number; readonly minutes: number }) & {
  readonly basis: 'stated' | 'assumed' | 'override'
  /** Holds for interval starts before this instant. */
  readonly before?: number
  /** Wins over the provider's `computed_at`. */
  readonly wins?: boolean
}

const seconds = { '10m': 600, '1h': 3600, '24h': 86_400, '1w': 604_800 } as const

/** The end of the interval that starts at `t`. */
export function endOf(t: number, interval: Spell): number {
  return startAfter(t, interval, 1)
}

/** The interval start so many intervals before or after `t`. */
export function startAfter(t: number, interval: Spell, n: number): number {
  if (interval !== '1month' && interval !== '3month') return t + n * seconds[interval]
  const date = new Date(t * 1000)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + (interval === '3month' ? 3 * n : n), 1) / 1000
}

/** The start of the interval in which the instant lies; `weekday` counts as `getUTCDay`, Sunday is 0. */
export function startAt(at: number, interval: Spell, weekday = 1): number {
  const date = new Date(at * 1000)
  const midnight = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()) / 1000
  if (interval === '1month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / 1000
  if (interval === '3month')
    return Date.UTC(date.getUTCFullYear(), [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9][date.getUTCMonth()] ?? 0, 1) / 1000
  if (interval === '24h') return midnight
  if (interval === '1w') return midnight - ((date.getUTCDay() - weekday + 7) % 7) * 86_400
  return midnight + Math.floor((at - midnight) / seconds[interval]) * seconds[interval]
}

/** The strongest rule that holds for `t`; the list is sorted by strength. */
export function handRule(rules: readonly HandRule[], t: number): HandRule {
  for (const rule of rules) if (rule.before === undefined || t < rule.before) return rule
  throw new Error('no rule holds')
}

/** The instant of the rule. */
export function ruleInstant(rules: readonly HandRule[], t: number, interval: Spell): number {
  const rule = handRule(rules, t)
  const end = endOf(t, interval)
  if ('lag' in rule) return end + rule.lag
  const date = new Date(t * 1000)
  const clock =
    Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + rule.days, 0, rule.minutes) / 1000
  return clock > end ? clock : end
}

/** So many seconds behind its rule a computed point is still late; any later, and it is history that was added. */
export const historyAfter: Readonly<Record<Spell, number>> = {
  '10m': 2_592_000,
  '1h': 2_592_000,
  '24h': 2_592_000,
  '1w': 210 * 86_400,
  '1month': 930 * 86_400,
  '3month': 2760 * 86_400,
}

/**
 * A point that the provider has: `shown` is from when on by its clock; its value is final once the interval has ended.
 */
export interface Told {
  readonly t: number
  readonly shown: number
  readonly v: number
  readonly computed?: number | null
}

/** An answer: what was asked, when by the local clock, what its Date said, and the starts that it held. */
export interface Given {
  readonly since: number
  readonly until: number
  readonly asked: number
  readonly date: number | null
  readonly starts: ReadonlySet<number>
}

/**
 * A point as the lake must hold it; `available` is null where it is the commit of answer `brought` or the rule, the
 * later.
 */
export interface Owed {
  readonly t: number
  readonly v: number
  readonly brought: number
  readonly rule: number
  readonly available: number | 'observed'
  readonly basis: string
  readonly computed: number | null
  /** Whether the rule may stand in for it. */
  readonly history: boolean
}

/** What the lake must hold of a series after these answers, by definition. */
export function owedOf(
  points: readonly Told[],
  rules: readonly HandRule[],
  interval: Spell,
  answers: readonly Given[],
): Owed[] {
  return points.flatMap(({ t, v, computed = null }): Owed[] => {
    const rule = ruleInstant(rules, t, interval)
    const held = handRule(rules, t)
    const floor = held.basis === 'stated' ? rule : endOf(t, interval)
    const brought = answers.findIndex(
      ({ since, until, asked, date, starts }) =>
        starts.has(t) && since <= t && t < until && floor <= (date === null ? asked : Math.min(date, asked + 3600)),
    )
    if (brought === -1) return []
    const point = { t, v, brought, rule, computed, history: false }
    if (computed !== null && held.wins !== true) {
      const available = computed > floor ? computed : floor
      return [{ ...point, available, basis: 'provider', history: available - rule > historyAfter[interval] }]
    }
    const lacked = answers.slice(0, brought).some(({ since, until, asked, date }) => {
      const knew = date === null || asked < date ? asked : date
      return since <= t && t < until && knew > rule
    })
    if (computed === null && lacked) return [{ ...point, available: 'observed', basis: 'observed' }]
    return [{ ...point, available: rule, basis: held.basis }]
  })
}
