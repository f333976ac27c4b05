import { day, type Instant, minute } from '../time.ts'

/** The time part of an availability rule: a lag after the interval's end, or a clock time some days after `t`. */
export type RuleTime =
  | { readonly kind: 'lag'; readonly seconds: number }
  | { readonly kind: 'clock'; readonly minuteOfDay: number; readonly days: number }

/** SQL over BIGINT Unix seconds. */
type Sql = string

/** From when on a kind calls the point `t` knowable whose interval ends at `close`; the same in SQL. */
interface RuleKind {
  readonly at: (t: Instant, close: Instant, seconds: number) => Instant
  readonly sql: (t: Sql, close: Sql, seconds: Sql) => Sql
  /** The first start of an interval that is not knowable yet at an instant; `start` and `ceil` give the grid. */
  readonly undue: (at: Sql, seconds: Sql, start: (at: Sql) => Sql, ceil: (at: Sql) => Sql) => Sql
}

/** Every kind: whatever dates points, here or in SQL, is made from this table. */
export const ruleKinds: Readonly<Record<RuleTime['kind'], RuleKind>> = {
  lag: {
    at: (_, close, seconds) => close + seconds,
    sql: (_, close, seconds) => `(${close} + ${seconds})`,
    undue: (at, seconds, start) => start(`(${at} - ${seconds})`),
  },
  clock: {
    at: (t, close, seconds) => Math.max(close, Math.floor(t / day) * day + seconds),
    sql: (t, close, seconds) => `greatest(${close}, ${t} - ((${t} % ${day}) + ${day}) % ${day} + ${seconds})`,
    // Not due is what has not ended, and all from the first day on that is not.
    undue: (at, seconds, start, ceil) =>
      `least(${start(at)}, ${ceil(`(CAST(floor((${at} - ${seconds}) / ${day}) AS BIGINT) * ${day} + ${day})`)})`,
  },
}

/** The one number that a rule of any kind counts, in seconds. */
export function countedSeconds(rule: RuleTime): number {
  return rule.kind === 'lag' ? rule.seconds : rule.days * day + rule.minuteOfDay * minute
}

/** The rule as people read it: `end of interval + 20m`, `daily at 10:15 UTC, 1 day after t`. */
export function describeRule(rule: RuleTime): string {
  if (rule.kind === 'lag') return `end of interval + ${formatLag(rule.seconds)}`
  const hours = String(Math.floor(rule.minuteOfDay / 60)).padStart(2, '0')
  const minutes = String(rule.minuteOfDay % 60).padStart(2, '0')
  return `daily at ${hours}:${minutes} UTC, ${rule.days} ${rule.days === 1 ? 'day' : 'days'} after t`
}

function formatLag(seconds: number): string {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600}h`
  return seconds >= 60 && seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}
