import { day, end, type Instant, type Interval, longestSeconds } from '../base/time.ts'
import { countedSeconds, ruleKinds, type RuleTime } from './rule-kinds.ts'

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

/** When a point may first be known. */
export type Rule = RuleFrame & RuleTime

/** The rule in force for an interval that starts at `t`; rules are sorted by `until`, the open one last. */
export function ruleFor(rules: readonly Rule[], t: Instant): Rule {
  const rule = rules.find((r) => r.until === null || t < r.until)
  if (!rule) throw new RangeError('a list of rules must end in one without `until`')
  return rule
}

/**
 * The instant from which the point `t` counts as knowable; before the end of its interval only where a mapping of own
 * data says so.
 */
export function availableAt(rules: readonly Rule[], t: Instant, interval: Interval): Instant {
  const rule = ruleFor(rules, t)
  return ruleKinds[rule.kind].at(t, end(t, interval), countedSeconds(rule))
}

/** How many seconds later than its rule the provider computes a point of history from before the metric existed. */
export function backfillAfter(interval: Interval): number {
  return Math.max(30 * day, 30 * longestSeconds(interval))
}
