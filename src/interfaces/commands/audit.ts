import { LakeError } from '../../base/errors.ts'
import {
  type AuditedRule,
  type AvailabilityAudit,
  type RuleChange,
  auditAvailability,
  isBroken,
} from '../../trust/availability-audit.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { several, span, table } from '../../base/figures.ts'
import { instantNow } from '../cli/context.ts'
import { answering } from '../cli/spec.ts'

export const auditAvailabilityCommand = answering({
  options: { '--paths LIST': 'endpoints, by comma, `*` as a glob', '--all': 'also list the rules that hold' },
  details: `pitlake knows an arrival if the provider sends computed_at, or if an earlier answer lacked the point. A rule is contradicted (exit 4)
if more than 2 % of the arrivals are later, and more than 5 % are later than the rule plus five minutes. It is imprecise (exit 0) if
more than 2 % are later, but at most 5 % are later than the rule plus five minutes. Without arrivals it is unconfirmed. Backfilled points
do not count.

The proposed block has a rule for each contradicted or imprecise interval. Below it the output shows what the rule would change. If
late points were only seen by a fetch long after, there is no block, because their lag is not known.`,
  answer: async ({ settings, catalogue, options: { paths, all }, now }) => {
    using ledger = await Ledger.openToRead(settings.data)
    const overrides = settings.metrics.availability
    const report = await auditAvailability(ledger, { catalogue, paths, overrides, now: instantNow({ now }) })
    const { contradicted, next } = report
    const wrong = contradicted > 0 &&
      next !== null && {
        subject: `${several(contradicted, 'availability rule is', 'availability rules are')} contradicted by arrivals`,
        next,
      }
    const error = wrong ? new LakeError('integrity', wrong) : null
    return { document: report, words: () => inWords(report, all), error }
  },
})

function inWords(report: AvailabilityAudit, all: boolean): string {
  const { rows, contradicted, imprecise, unconfirmed, proposal, changes, next } = report
  const order = ['contradicted', 'imprecise', 'conservative', 'unconfirmed', 'kept']
  const listed = rows
    .filter((row) => all || isBroken(row))
    .toSorted((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict) || a.metric.localeCompare(b.metric))
  const named = ({ metric, interval }: AuditedRule): string => `${metric} ${interval}`
  const latest = listed.flatMap((row) => {
    const { asset, t, arrived_at, rule_at } = row.worst ?? {}
    return t === undefined ? [] : [`${named(row)}: ${asset} ${t} arrived ${arrived_at}, rule ${rule_at}`]
  })
  const silent = rows.filter((row) => isBroken(row) && row.proposed_lag === null).map(named)
  const cells = listed.map(({ verdict, metric, interval, observations, late, p50, p95, p99, max, rule }) => {
    const lags = [p50, p95, p99, max].map((lag) => (lag === null ? null : span(lag)))
    return [verdict, metric, interval, observations, late, ...lags, rule]
  })
  return [
    `${several(rows.length, 'rule')}: ${contradicted} contradicted, ${imprecise} imprecise, ${unconfirmed} ` +
      'unconfirmed\n',
    listed.length === 0 ? '' : `\n${table(header, cells)}`,
    section('the latest arrivals:', latest),
    section('late, but the arrivals do not say by how much; nothing is proposed:', silent),
    proposal === null ? '' : `\nproposed for pitlake.yaml:\n\n${proposal}`,
    section('what that would change:', changes.map(effect)),
    // If a rule is contradicted the refusal reports it.
    contradicted > 0 || next === null ? '' : `\nnext: ${next}\n`,
  ].join('')
}

function section(head: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `\n${head}\n${lines.map((line) => `  ${line}\n`).join('')}`
}

function effect(change: RuleChange): string {
  const { metric, interval, lag, redated, newest_before: before, newest_after: after } = change
  const points = redated === 0 ? 'no stored point moves' : `${redated} stored points count as known later`
  const due =
    before === after ? `the newest point due stays ${after}` : `the newest point due goes from ${before} to ${after}`
  return `${metric} ${interval}: end of interval + ${lag}; ${points}, ${due}`
}

const header = ['verdict', 'metric', 'interval', 'known', 'late', 'p50', 'p95', 'p99', 'max', 'rule']
