import { availableAt, type Rule } from '../catalog/availability.ts'
import { describeRule, lagOf } from '../catalog/rule-kinds.ts'
import type { Catalogue } from '../catalog/catalogue.ts'
import { globTest } from '../catalog/globs.ts'
import { type Arrivals, heldArrivals } from './arrivals.ts'
import { heldWeekStart } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Override } from '../config/config.ts'
import {
  day,
  floor,
  formatDuration,
  type Instant,
  type Interval,
  intervals,
  parseDuration,
  step,
  type Weekday,
} from '../time.ts'

/** What the observed arrivals say about a rule. */
type RuleVerdict = 'disproved' | 'imprecise' | 'kept' | 'conservative' | 'unproven'

/** What an audit looks at beside the lake. */
interface AuditInput {
  readonly catalogue: Catalogue
  /** Globs; undefined means all. */
  readonly paths: readonly string[] | undefined
  /** The rows that the configuration holds already: a proposal keeps what they say of other intervals. */
  readonly overrides: Readonly<Record<string, Override>>
  readonly now: Instant
}

/** Late points are dated by themselves; only where more than these are late is the rule itself wrong. */
const lateShare = 0.02
/** Where no more than one in so many comes five minutes after the rule's instant or later, the rule is only imprecise. */
const preciseOf = 20
/** What a configuration may hold. */
const longestLag = 366 * day
/** A rule this many times longer than nearly all arrivals could be shorter. */
const generous = 4

/** What the audit found, and the block of `pitlake.yaml` that mends it. */
export type AuditReport = Awaited<ReturnType<typeof auditAvailability>>

/** Holds every availability rule against the arrivals that the lake has seen. */
export async function auditAvailability(ledger: Ledger, { catalogue, paths, overrides, now }: AuditInput) {
  const globs = paths?.map(globTest)
  const wanted = (path: string): boolean => globs === undefined || globs.some((matches) => matches(path))
  const rows: AuditedRule[] = []
  const changes: RuleChange[] = []
  for (const { endpoint, interval, rules, arrivals } of await heldArrivals(ledger, catalogue, wanted)) {
    const row = judgeRule(endpoint.path, interval, rules, arrivals)
    rows.push(row)
    changes.push(...changeOf(row, rules, arrivals.ruled, { now, weekStart: heldWeekStart(ledger) }))
  }
  const broken = rows.filter(isBroken)
  const proposal = proposalOf(broken, overrides)
  const count = (verdict: RuleVerdict): number => rows.filter((row) => row.verdict === verdict).length
  return {
    rows,
    disproved: count('disproved'),
    imprecise: count('imprecise'),
    unproven: count('unproven'),
    /** One row for each disproved or imprecise endpoint, with a rule for each such interval. */
    proposal,
    /** What to do about them; null where there are none. */
    next: broken.length === 0 ? null : proposal === null ? askMore : paste,
    changes,
  }
}

const askMore = 'the arrivals do not say which lag would hold; run fetch more often, so that they do'
const paste = 'put the proposed block into pitlake.yaml, then run pitlake compact --redate'

/** Whether more arrivals came after the rule's instant than it may be late by. */
export function isBroken({ verdict }: { readonly verdict: RuleVerdict }): boolean {
  return verdict === 'disproved' || verdict === 'imprecise'
}

/** One endpoint and interval under audit. Lags in seconds after the end of the interval. */
export type AuditedRule = ReturnType<typeof judgeRule>

/**
 * Two late arrivals in a hundred are late points, more break the rule: it is imprecise where at least 95 in a hundred came
 * less than five minutes after its instant, else disproved. Without any known arrival nothing is proved: the provider
 * tells no `computed_at`, and no top-up has caught a point being late.
 */
export function judgeRule(metric: string, interval: Interval, rules: readonly Rule[], arrivals: Arrivals) {
  const rule = rules.at(-1)
  if (!rule) throw new RangeError(`${metric} has no rule`)
  const { points, computed, seenLate, backfilled, watched, late, soon, ruled, supported, worst } = arrivals
  const { p50, p95, p99, max } = arrivals
  const counted = computed + seenLate - backfilled
  const all = counted + watched
  const broken = counted > 0 && late > all * lateShare
  const imprecise = broken && (late - soon) * preciseOf <= all
  const lag = lagOf(rule)
  const spare = lag !== null && p99 !== null && lag > generous * Math.max(p99, 60)
  const proposed = broken && supported !== null ? roundLag(supported) : null
  const longer = proposed !== null && (lag === null || proposed > lag) && proposed <= longestLag ? proposed : null
  const verdict: RuleVerdict =
    counted === 0 ? 'unproven' : imprecise ? 'imprecise' : broken ? 'disproved' : spare ? 'conservative' : 'kept'
  return {
    metric,
    interval,
    rule: describeRule(rule),
    basis: rule.basis,
    verdict,
    points,
    /** Points whose arrival is known. */
    observations: counted,
    backfilled,
    /** Points without a known arrival that the lake was there to see: they came in time as far as anybody knows. */
    watched,
    late,
    /** Those of the late ones that came less than five minutes after the rule's instant. */
    soon,
    /** Points that the rule dates: where it is too early, they count as known too early. */
    ruled,
    p50,
    p95,
    p99,
    max,
    worst,
    /** The lag to write into the configuration; null where the rule may stay, or nobody knows how late the points were. */
    proposed_lag: longer === null ? null : lagText(longer),
  }
}

/** What a pasted rule changes, now. */
export type RuleChange = ReturnType<typeof changeOf>[number]

/** What the proposed lag would change for the points of an interval; nothing where none is proposed. */
function changeOf(
  { metric, interval, proposed_lag: lag }: AuditedRule,
  rules: readonly Rule[],
  /** Stored points that the rule dates: they would count as known later. The others keep the instants that they arrived at. */
  redated: number,
  at: Today,
) {
  const rule = rules.at(-1)
  if (lag === null || !rule) return []
  const proposed: Rule = { ...rule, kind: 'lag', seconds: parseDuration(lag) ?? 0, basis: 'override', until: null }
  // The newest `t` that counts as published, an ISO date: what `plan` and `fetch` ask for.
  const newest = (own: readonly Rule[]): string => dateOf(newestDue(own, interval, at))
  return [{ metric, interval, lag, redated, newest_before: newest(rules), newest_after: newest([proposed]) }]
}

interface Today {
  readonly now: Instant
  readonly weekStart: Weekday
}

/** The newest interval start whose point counts as published. */
function newestDue(rules: readonly Rule[], interval: Interval, { now, weekStart }: Today): Instant {
  let t = floor(now, interval, weekStart)
  while (availableAt(rules, t, interval) > now) t = step(t, interval, -1)
  return t
}

const dateOf = (t: Instant): string => `${new Date(t * 1000).toISOString().slice(0, 16)}Z`

const steps = [
  300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10_800, 14_400, 21_600, 28_800, 43_200, 64_800, 86_400,
]

/** The next round lag that is not shorter, in seconds. */
function roundLag(seconds: number): number {
  return steps.find((round) => round >= seconds) ?? Math.ceil(seconds / 86_400) * 86_400
}

const lagText = (seconds: number): string => (seconds % 3600 === 0 ? `${seconds / 3600}h` : `${seconds / 60}m`)

/** Ready to paste into `pitlake.yaml`: for each endpoint what its row says already, and a rule for each such interval. */
export function proposalOf(rows: readonly AuditedRule[], overrides: AuditInput['overrides']): string | null {
  const proposed = rows.filter(({ proposed_lag }) => proposed_lag !== null)
  if (proposed.length === 0) return null
  const lines = [...Map.groupBy(proposed, ({ metric }) => metric)].map(([metric, own]) => {
    const mine = own.toSorted((a, b) => intervals.indexOf(a.interval) - intervals.indexOf(b.interval))
    const rules = new Map(mine.map(({ interval, proposed_lag }) => [interval, `${interval}: { lag: ${proposed_lag} }`]))
    const kept = Object.entries(overrides[metric] ?? {}).filter(([key]) => !rules.has(key as Interval))
    return `    "${metric}": { ${[...kept.map(written), ...rules.values()].join(', ')} }`
  })
  return ['metrics:', '  availability:', ...lines, ''].join('\n')
}

/** A key of an override as the configuration spells it. */
function written([key, value]: readonly [string, unknown]): string {
  if (Array.isArray(value)) return `${key}: [${value.join(', ')}]`
  if (typeof value === 'object' && value !== null) return `${key}: { ${Object.entries(value).map(written).join(', ')} }`
  if (key === 'lag') return `lag: ${formatDuration(Number(value))}`
  if (key === 'until') return `until: ${new Date(Number(value) * 1000).toISOString()}`
  return `${key}: ${typeof value === 'string' ? `"${value}"` : String(value)}`
}
