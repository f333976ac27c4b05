import { describeRule, type Rule } from '../catalog/availability.ts'
import type { Catalogue } from '../catalog/catalogue.ts'
import { globTest } from '../catalog/globs.ts'
import { type Arrivals, arrivalsOf } from '../lake/arrivals.ts'
import { Engine } from '../lake/engine.ts'
import { liveFiles } from '../lake/held.ts'
import { inLake } from '../lake/layout.ts'
import type { Ledger } from '../lake/ledger.ts'
import type { Interval } from '../time.ts'

/** What the observed arrivals say about a rule. */
export type RuleVerdict = 'disproved' | 'kept' | 'conservative' | 'unproven'

/** One endpoint and interval under audit. Lags in seconds after the end of the interval. */
export interface AuditRow {
  readonly metric: string
  readonly interval: Interval
  readonly rule: string
  readonly basis: Rule['basis']
  readonly verdict: RuleVerdict
  readonly points: number
  /** Points whose arrival is known. */
  readonly observations: number
  readonly backfilled: number
  readonly late: number
  readonly p50: number | null
  readonly p95: number | null
  readonly p99: number | null
  readonly max: number | null
  readonly worst: Arrivals['worst']
  /** The lag to write into the configuration; null where the rule may stay. */
  readonly proposed_lag: string | null
}

/** What the audit found, and the block of `pitlake.yaml` that mends it. */
export interface AuditReport {
  readonly rows: readonly AuditRow[]
  readonly disproved: number
  readonly unproven: number
  readonly proposal: string | null
}

const micros = 1_000_000
/** Late points are dated by themselves; only where more than these are late is the rule itself wrong. */
const lateShare = 0.02
/** A rule this many times longer than nearly all arrivals could be shorter. */
const generous = 4

/** Holds every availability rule against the arrivals that the lake has seen. */
export async function auditAvailability(
  ledger: Ledger,
  catalogue: Catalogue,
  paths: readonly string[] | undefined,
): Promise<AuditReport> {
  const wanted = paths?.map(globTest)
  const partitions = Map.groupBy(
    liveFiles(ledger, { table: 'points' }),
    ({ metric, interval }) => `${metric} ${interval}`,
  )
  const engine = await Engine.open()
  const rows: AuditRow[] = []
  try {
    for (const files of partitions.values()) {
      const { metric, interval } = files[0] ?? {}
      const endpoint = catalogue.endpoints.get(metric ?? '')
      if (!endpoint || !interval || (wanted && !wanted.some((matches) => matches(endpoint.path)))) continue
      const rules = endpoint.rules[interval]
      const arrivals = await arrivalsOf(
        engine,
        files.map(({ path }) => inLake(ledger.root, path)),
        interval,
        rules,
      )
      rows.push(judge(endpoint.path, interval, rules, arrivals))
    }
  } finally {
    engine.close()
  }
  const disproved = rows.filter(({ verdict }) => verdict === 'disproved')
  return {
    rows,
    disproved: disproved.length,
    unproven: rows.filter(({ verdict }) => verdict === 'unproven').length,
    proposal: proposalOf(disproved),
  }
}

/**
 * Two late arrivals in a hundred are late points, more disprove the rule. Without any known arrival nothing is proved:
 * the provider tells no `computed_at`, and no top-up has caught a point being late.
 */
export function judge(metric: string, interval: Interval, rules: readonly Rule[], arrivals: Arrivals): AuditRow {
  const rule = rules.at(-1)
  if (!rule) throw new RangeError(`${metric} has no rule`)
  const { told, seenLate, late, p99 } = arrivals
  const counted = told + seenLate - arrivals.backfilled
  const seconds = (lag: number | null): number | null => (lag === null ? null : lag / micros)
  const disproved = counted > 0 && late > counted * lateShare
  const lag = rule.kind === 'lag' ? rule.seconds : null
  const spare = lag !== null && p99 !== null && lag > generous * Math.max(p99 / micros, 60)
  return {
    metric,
    interval,
    rule: describeRule(rule),
    basis: rule.basis,
    verdict: counted === 0 ? 'unproven' : disproved ? 'disproved' : spare ? 'conservative' : 'kept',
    points: arrivals.points,
    observations: counted,
    backfilled: arrivals.backfilled,
    late,
    p50: seconds(arrivals.p50),
    p95: seconds(arrivals.p95),
    p99: seconds(p99),
    max: seconds(arrivals.max),
    worst: arrivals.worst,
    proposed_lag: disproved && p99 !== null ? lagText(p99 / micros) : null,
  }
}

const steps = [300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10_800, 14_400, 21_600, 28_800, 43_200, 86_400]

/** The next round lag that is not shorter. */
function lagText(seconds: number): string {
  const lag = steps.find((step) => step >= seconds) ?? Math.ceil(seconds / 86_400) * 86_400
  return lag % 3600 === 0 ? `${lag / 3600}h` : `${lag / 60}m`
}

/** Ready to paste into `pitlake.yaml`; where intervals of one endpoint differ, the longest lag. */
function proposalOf(rows: readonly AuditRow[]): string | null {
  if (rows.length === 0) return null
  const longest = new Map<string, AuditRow>()
  for (const row of rows) {
    const held = longest.get(row.metric)
    if (!held || (row.p99 ?? 0) > (held.p99 ?? 0)) longest.set(row.metric, row)
  }
  const lines = [...longest.values()].map((row) => `    "${row.metric}": { lag: ${row.proposed_lag} }`)
  return ['metrics:', '  availability:', ...lines, ''].join('\n')
}
