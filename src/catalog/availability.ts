import { day, end, type Instant, type Interval, longestSeconds, minute } from '../time.ts'

/** Where an availability rule comes from: the API description, a conservative guess, the user's configuration. */
export type RuleBasis = 'stated' | 'assumed' | 'override'

interface RuleFrame {
  readonly basis: RuleBasis
  /** The sentence of the API description, for stated rules. */
  readonly quote: string | null
  /** Why this lag was assumed, for the others. */
  readonly reason: string | null
  /** The rule holds for interval starts before this instant; null while it is the last one. */
  readonly until: Instant | null
  /** Config only: the rule wins over the provider's `computed_at`. */
  readonly trust: 'provider' | 'rule'
}

/** When a point may first be known: a lag after its interval's end, or a clock time some days after `t`. */
export type Rule =
  | (RuleFrame & { readonly kind: 'lag'; readonly seconds: number })
  | (RuleFrame & { readonly kind: 'clock'; readonly minuteOfDay: number; readonly days: number })

/** The rule in force for an interval that starts at `t`; rules are sorted by `until`, the open one last. */
export function ruleFor(rules: readonly Rule[], t: Instant): Rule {
  const rule = rules.find((r) => r.until === null || t < r.until)
  if (!rule) throw new RangeError('a list of rules must end in one without `until`')
  return rule
}

/** The instant from which the point `t` counts as knowable; never before the end of its interval. */
export function availableAt(rules: readonly Rule[], t: Instant, interval: Interval): Instant {
  const rule = ruleFor(rules, t)
  const close = end(t, interval)
  if (rule.kind === 'lag') return close + rule.seconds
  const midnight = Math.floor(t / day) * day
  return Math.max(close, midnight + rule.days * day + rule.minuteOfDay * minute)
}

/** How many seconds later than its rule the provider computes a point of history from before the metric existed. */
export function backfillAfter(interval: Interval): number {
  return Math.max(30 * day, 30 * longestSeconds(interval))
}

/** The rule as people read it: `end of interval + 20m`, `daily at 10:15 UTC, 1 day after t`. */
export function describeRule(rule: Rule): string {
  if (rule.kind === 'lag') return `end of interval + ${formatLag(rule.seconds)}`
  const hours = String(Math.floor(rule.minuteOfDay / 60)).padStart(2, '0')
  const minutes = String(rule.minuteOfDay % 60).padStart(2, '0')
  return `daily at ${hours}:${minutes} UTC, ${rule.days} ${rule.days === 1 ? 'day' : 'days'} after t`
}

function formatLag(seconds: number): string {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600}h`
  return seconds >= 60 && seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}
