import { LakeError } from '../errors.ts'
import { auditAvailability, type AuditReport, type AuditedRule, isBroken, type RuleChange } from '../report/audit.ts'
import { Ledger } from '../ledger/ledger.ts'
import { kinds } from '../kinds.ts'
import { span } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { answering } from './spec.ts'

/** `audit availability`: rule against observation. */
export const auditCommand = answering({
  name: 'audit availability',
  ends: [4],
  options: {
    '--paths LIST': { kind: kinds.list('metrics'), about: 'endpoints, by comma, `*` as a glob' },
    '--all': 'also list the rules that hold',
  },
  details: `An arrival is known where the provider tells computed_at, or where a top-up caught a point being late. A rule that more
than two known arrivals in a hundred break is disproved (exit 4), or only imprecise (exit 0) where at least 95 in a hundred
came less than five minutes after its instant; one without any known arrival is unproven.
Points computed long after their interval, or with the history of a series before it began (backfilled), do not count.
The proposed block holds a rule for each disproved or imprecise interval; below it stands what it would change. There is none where
late points were only seen by a top-up long after: that they were late is known then, but not by how much.`,
  answer: async (input, { settings, catalogue }, deps) => {
    using ledger = await Ledger.openToRead(settings.data)
    const { paths, all } = input.options
    const report = await auditAvailability(ledger, {
      catalogue,
      paths,
      overrides: settings.metrics.availability,
      now: Math.floor(deps.now() / 1000),
    })
    return { document: report, words: () => inWords(report, all), error: verdict(report) }
  },
})

function verdict({ disproved, next }: AuditReport): LakeError | null {
  if (disproved === 0 || next === null) return null
  return new LakeError('integrity', { subject: `${disproved} availability rules disproved`, next })
}

function inWords(report: AuditReport, all: boolean): string {
  const { rows, disproved, imprecise, unproven, proposal, changes, next } = report
  const order = ['disproved', 'imprecise', 'conservative', 'unproven', 'kept']
  const listed = rows
    .filter((row) => all || isBroken(row))
    .toSorted((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict) || a.metric.localeCompare(b.metric))
  const head = `${rows.length} rules: ${disproved} disproved, ${imprecise} imprecise, ${unproven} unproven\n`
  const lags = listed.length === 0 ? '' : `\n${table(header, listed.map(cells))}`
  const evidence = listed.flatMap(({ metric, interval, worst }) =>
    worst === null
      ? []
      : [`  ${metric} ${interval}: ${worst.asset} ${worst.t} arrived ${worst.arrived_at}, rule ${worst.rule_at}\n`],
  )
  const worst = evidence.length === 0 ? '' : `\nthe latest arrivals:\n${evidence.join('')}`
  const silent = rows.filter((row) => isBroken(row) && row.proposed_lag === null)
  const none = silent.map(({ metric, interval }) => `  ${metric} ${interval}\n`)
  const without =
    none.length === 0 ? '' : `\nlate, but the arrivals do not say by how much; nothing is proposed:\n${none.join('')}`
  const block = proposal === null ? '' : `\nproposed for pitlake.yaml:\n\n${proposal}`
  const effects = changes.length === 0 ? '' : `\nwhat that would change:\n${changes.map(effect).join('')}`
  // Where a rule is disproved the refusal says it.
  const advice = disproved > 0 || next === null ? '' : `\nnext: ${next}\n`
  return `${head}${lags}${worst}${without}${block}${effects}${advice}`
}

/** What the proposal does to one endpoint and interval. */
function effect({ metric, interval, lag, redated, newest_before: before, newest_after: after }: RuleChange): string {
  const points = redated === 0 ? 'no stored point moves' : `${redated} stored points count as known later`
  const due =
    before === after ? `the newest point due stays ${after}` : `the newest point due goes from ${before} to ${after}`
  return `  ${metric} ${interval}: end of interval + ${lag}; ${points}, ${due}\n`
}

const header = ['verdict', 'metric', 'interval', 'known', 'late', 'p50', 'p95', 'p99', 'max', 'rule']

function cells(row: AuditedRule): (string | number | null)[] {
  const { verdict, metric, interval, observations, late, rule } = row
  const lags = [row.p50, row.p95, row.p99, row.max].map((lag) => (lag === null ? null : span(lag)))
  return [verdict, metric, interval, observations, late, ...lags, rule]
}
