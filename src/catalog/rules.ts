import { type Interval, intervals } from '../base/time.ts'
import type { Rule } from './availability.ts'
import { globTest, globWeight } from './globs.ts'
import { timeOf } from './rule-kinds.ts'
import type { AvailabilityRow } from './schema.ts'

/** A rule of the catalogue with its position, ready to be matched. */
export interface PlacedRule {
  readonly rule: Rule
  readonly intervals: readonly Interval[] | null
  readonly patterns: readonly { readonly text: string; readonly matches: (path: string) => boolean }[]
  readonly where: string
}

/** Two rules of the same weight that both claim one endpoint and interval until the same date. */
interface RuleClash {
  readonly interval: Interval
  readonly first: PlacedRule
  readonly second: PlacedRule
}

/** Converts a row of `availability:` to a rule. */
export function placeRule(row: AvailabilityRow, where: string): PlacedRule {
  const frame = {
    basis: row.basis,
    quote: row.quote ?? null,
    reason: row.reason ?? null,
    until: row.until ?? null,
    trust: 'provider' as const,
  }
  return {
    rule: { ...frame, ...timeOf(row) },
    intervals: row.intervals ?? null,
    patterns: row.paths.map((text) => ({ text, matches: globTest(text) })),
    where,
  }
}

/**
 * Determines the rules of one endpoint for each interval, sorted by `until`, an open one last: an exact path beats a
 * pattern, a pattern beats `*`, a rule with `intervals` beats one without; a rule that ends early is followed by the
 * next weaker one. Clashes are reported through the callback.
 */
export function resolveRules(
  path: string,
  placed: readonly PlacedRule[],
  clash: (found: RuleClash) => void,
): Record<Interval, readonly Rule[]> {
  const matching = placed.map((rule) => ({ rule, weight: weight(rule, path) })).filter((m) => m.weight > 0)
  const chains = intervals.map((interval) => {
    const here = matching.filter((m) => m.rule.intervals === null || m.rule.intervals.includes(interval))
    return [interval, chain(here, (first, second) => clash({ interval, first, second }))] as const
  })
  return Object.fromEntries(chains) as Record<Interval, readonly Rule[]>
}

function chain(
  matching: readonly { rule: PlacedRule; weight: number }[],
  clash: (first: PlacedRule, second: PlacedRule) => void,
): readonly Rule[] {
  const rules: Rule[] = []
  let reached = Number.NEGATIVE_INFINITY
  for (const level of [...new Set(matching.map((m) => m.weight))].toSorted((a, b) => b - a)) {
    const peers = matching.filter((m) => m.weight === level).map((m) => m.rule)
    const sorted = peers.toSorted((a, b) => (a.rule.until ?? Infinity) - (b.rule.until ?? Infinity))
    for (const [index, peer] of sorted.entries()) {
      const before = sorted[index - 1]
      if (before && before.rule.until === peer.rule.until) clash(before, peer)
      const until = peer.rule.until ?? Infinity
      if (until > reached) rules.push(peer.rule)
      reached = Math.max(reached, until)
    }
    if (reached === Infinity) break
  }
  return rules
}

/** Returns the weight of a rule for a path: 0 for no match; higher beats lower. */
function weight(rule: PlacedRule, path: string): number {
  const best = Math.max(0, ...rule.patterns.map(({ text, matches }) => globWeight(text, matches, path)))
  return best === 0 ? 0 : best * 2 + (rule.intervals === null ? 0 : 1)
}
