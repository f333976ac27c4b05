import { day, end, type Instant, type Interval, longestSeconds } from '../base/time.ts'
import { countedSeconds, ruleKinds, type RuleTime } from './rule-kinds.ts'

/** Origin of an availability rule: the API description, a conservative guess, or the user's configuration. */
export type RuleBasis = 'stated' | 'assumed' | 'override'

interface RuleFrame {
  readonly basis: RuleBasis
  /** The sentence of the API description, for stated rules. */
  readonly quote: string | null
  /** Reason for assuming this lag; null for a stated rule. */
  readonly reason: string | null
  /** End of validity: the rule applies to interval starts before this timestamp; null for the last rule. */
  readonly until: Instant | null
  /** Source that dates a point: the provider's `computed_at`, or the rule in spite of it (config only). */
  readonly trust: 'provider' | 'rule'
}

/** A rule for the time from which a point may be known. */
export type Rule = RuleFrame & RuleTime

/** Returns the rule in force for an interval that starts at `t`; rules are sorted by `until`, the open one last. */
export function ruleFor(rules: readonly Rule[], t: Instant): Rule {
  const rule = rules.find((r) => r.until === null || t < r.until)
  if (!rule) throw new RangeError('a list of rules must end in one without `until`')
  return rule
}

/**
 * Returns the timestamp from which the point `t` counts as knowable; it precedes the end of its interval only if a
 * mapping of user data says so.
 */
export function availableAt(rules: readonly Rule[], t: Instant, interval: Interval): Instant {
  const rule = ruleFor(rules, t)
  return ruleKinds[rule.kind].at(t, end(t, interval), countedSeconds(rule))
}

/**
 * Returns the delay, in seconds after the rule, beyond which a point counts as backfilled: history from before the
 * metric existed.
 */
export function backfillAfter(interval: Interval): number {
  return Math.max(30 * day, 30 * longestSeconds(interval))
}
