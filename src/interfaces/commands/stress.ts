import { resolve } from 'node:path'
import { usage } from '../../base/errors.ts'
import { kinds } from '../../base/option-kinds.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { seenLags } from '../../trust/availability-audit.ts'
import { stressPicture } from '../report/page/stress.ts'
import { stamp } from '../../trust/results/stamp.ts'
import { type Quantile, quantiles } from '../../trust/results/stress-delays.ts'
import { sourceOfQuery, sourceOfStamp } from '../../trust/results/stress-source.ts'
import { withVintages } from '../../trust/results/stress-stamp.ts'
import { briefFigure, describeRun, type StressRun, stressWords } from '../../trust/results/stress-verdict.ts'
import {
  type ReadLags,
  stress,
  type Stressed,
  type StressInput,
  type StressSource,
} from '../../trust/results/stress.ts'
import { outFile, putOut } from '../../lake/store/output.ts'
import { formatDuration, parseDuration } from '../../base/time.ts'
import { table, formatCount } from '../../base/figures.ts'
import { verdictError, readGiven, stampedPath, timeoutOption, withinTime } from '../cli/context.ts'
import { checkEnding, knowledgeFlags } from './query.ts'
import { answering, type Call, showLive } from '../cli/spec.ts'
import { allVariables, stampEndings } from './stamp.ts'
import { lakeWorld, openedLake } from '../cli/world.ts'

const part = kinds.number('a number such as 0.5', (value) => value >= 0 && value < 1000)
const later = kinds.listOf({ name: 'span', read: lagOf })
const toAct = kinds.listOf({ name: 'span', read: (flag, text) => timeOf(flag, text) })
const lags = `delays of points: times such as 30m, and ${quantiles.join(', ')} of the observed lags`

const stressOptions = {
  '--statistic SQL': 'SQL of one number over the rows, which are the table result: avg(r) / stddev(r)',
  '--lag LIST': [lags, later, `${quantiles.join(',')},30m,1h`],
  '--latency LIST': ['time between knowing and acting: 15m,1h', toAct],
  '--vintages N': ['number of earlier versions of the lake to try', kinds.count(0), '3'],
  '--ts COL': ['column with the decision time of each row', 'ts'],
  '--labels LIST': 'columns that may look ahead, by comma: the return that follows a decision',
  '--within SHARE': ['largest relative change of the statistic that counts as holding; 0.5 is half of it', part, '0.5'],
  ...knowledgeFlags,
  '--out FILE': 'also stamp the outcome into a Parquet file, which pitlake replay repeats',
  '--plot FILE': 'also draw the statistic of each run as SVG',
  ...timeoutOption,
} as const

type Stressing = Call<typeof stressOptions>

export const stressCommand = answering({
  viewsBefore: true,
  args: { '<file>': 'the query, or a Parquet file that pitlake stamp wrote; `-` reads standard input' },
  options: stressOptions,
  details: `stress first tests the query like \`pitlake lookahead\`. A query that looks ahead is a leak (exit 4). Then it runs the query with each
delay, and at earlier versions.

Exit 0: the statistic holds under every delay. Exit 4: under a delay it changes by more than --within; the output names the metric
with the largest effect, and the longest lag at which the statistic holds. Exit 6: undecided, because the statistic is not a number,
or the query is not deterministic. Earlier versions are shown and do not change the verdict.

Example: pitlake stress q.sql --lag 30m,1h,1d --statistic 'avg(r) / stddev(r) * sqrt(365)'`,
  answer: async (call) => {
    const { options, catalogue, cwd } = call
    const [file = ''] = call.args
    const { data } = call.settings
    const { statistic = '', lag: lags, latency: latencies = [], within, out, plot, ts, labels = [] } = options
    const expected = "SQL of one number over the table result, such as 'avg(r) / stddev(r)'"
    if (statistic.trim() === '') throw usage('--statistic', { expected, got: 'nothing' })
    await openedLake(call)
    using ledger = await Ledger.openToRead(data)
    const readLags: ReadLags = async (metrics) => await seenLags(ledger, catalogue, metrics)
    const onRun = (done: number) => showLive(call, `${done} runs`)
    const stressInput: StressInput = { statistic, lags, latencies, within, ts, labels, seen: readLags, onRun }
    const query = readGivenQuery(call, file)
    const done = await (out === undefined
      ? stress(await openSource(call, ledger, query), stressInput, { folder: data, ...withinTime(call) })
      : stampOutcome(call, query, resolve(cwd, out), stressInput)
    ).finally(() => showLive(call, ''))
    if (plot !== undefined) await putOut(resolve(cwd, plot), stressPicture(done, file), data, '--plot')
    return {
      document: done,
      words: () => outcomeText(done, file),
      error: verdictError(file, done, done.verdict === 'leak' ? leaked : outcome),
    }
  },
})

const outcome = {
  good: 'holds',
  command: 'stress',
  bad: 'falls apart',
  next: 'decide later (latency := in the joins), or show by pitlake audit availability that points come sooner',
} as const

const leaked = {
  ...outcome,
  bad: 'looks ahead',
  next: 'name columns that may look ahead with --labels, and correct the others: pitlake lookahead shows each row',
} as const

/** Query, or the path of a stamped result, which has variables of its own. */
type Given = string | { readonly stamped: string }

function readGivenQuery(call: Stressing, file: string): Given {
  if (!stampEndings.some((ending) => file.toLowerCase().endsWith(ending)))
    return readGiven(call, file, 'a file with a query')
  const path = { stamped: stampedPath(call, file) }
  if (Object.keys(allVariables(call)).length === 0) return path
  const got = '--as-of, --observed-as-of or --set'
  throw usage('pitlake stress', {
    expected: 'a stamped result with its own variables',
    got,
    next: 'leave them out, or name the file with the query',
  })
}

/** Tests the statistic over exactly the newest version, or that of a stamped result, and pins the outcome. */
async function stampOutcome(call: Stressing, query: Given, out: string, input: StressInput): Promise<Stressed> {
  const { catalogue, options } = call
  const { data: root } = call.settings
  checkEnding(out, stampEndings)
  outFile(out, root).discard()
  const variables = allVariables(call)
  const what = { root, catalogue, query, out, variables, stress: { ...input, vintages: options.vintages } }
  const stamped = await stamp(what, withinTime(call), lakeWorld(call, 'stress'))
  if (stamped.outcome === null) throw new RangeError('stamped without an outcome')
  return stamped.outcome
}

async function openSource(call: Stressing, ledger: Ledger, query: Given): Promise<StressSource> {
  const source = await (typeof query === 'string'
    ? sourceOfQuery(ledger, query, allVariables(call))
    : sourceOfStamp(ledger, query.stamped))
  return withVintages(ledger, source, call.options.vintages)
}

function lagOf(flag: string, text: string): number | Quantile {
  return quantiles.find((quantile) => quantile === text) ?? timeOf(flag, text, `, or ${quantiles.join(', ')}`)
}

const longest = 366 * 86_400

function timeOf(flag: string, text: string, beside = ''): number {
  const seconds = parseDuration(text)
  if (seconds !== undefined && seconds <= longest) return seconds
  throw usage(flag, { expected: `times such as 30m or ${formatDuration(86_400)}${beside}`, got: `"${text}"` })
}

/**
 * Formats the outcome as text: the verdict, each run with a bar of its statistic, and the effect of each metric alone.
 */
function outcomeText(
  { verdict, reason, statistic, rows, runs, notes, delay, metrics }: Stressed,
  file: string,
): string {
  const words = stressWords[verdict]
  const head = [`${file}: ${words}${reason === null ? '' : `, ${reason}`}`, ...notes.map((note) => `note: ${note}`)]
  const parts = [head.map((line) => `${line}\n`).join('')]
  if (statistic === null || verdict === 'leak') return parts.join('')
  const judged = runs.filter(({ kind }) => kind !== 'version')
  const bar = barOf([statistic, ...judged.map((run) => run.statistic)])
  const as = ['as it is', text(statistic), '', `of ${formatCount(rows)}`, bar(statistic)]
  const tried = judged.map((run) => [
    runLabel(run),
    text(run.statistic),
    share(run.moved),
    formatCount(run.changed),
    bar(run.statistic),
  ])
  parts.push(table(['known', 'statistic', 'moved', 'rows changed', ''], [as, ...tried]))
  const alone = metrics.map((metric) => [
    metric.metric,
    text(metric.statistic),
    share(metric.moved),
    percent(metric.share),
  ])
  if (delay !== null && alone.length > 0)
    parts.push(
      `of each metric alone, ${describeRun(delay)}:\n${table(['metric', 'statistic', 'moved', 'share'], alone)}`,
    )
  const versions = runs.filter(({ kind }) => kind === 'version')
  if (versions.length > 0)
    parts.push(`at earlier versions, and now with as_of = the time of that version:\n${versionTable(versions)}`)
  return parts.join('\n')
}

function versionTable(versions: readonly StressRun[]): string {
  const bar = barOf(versions.flatMap(({ statistic, before }) => [statistic, before]))
  const rows = versions.map(({ name, at, statistic, before, moved, changed }) => {
    const of = `${(at ?? '').slice(0, 16).replace('T', ' ')}Z`
    return [name, of, text(statistic), text(before), share(moved), formatCount(changed), bar(statistic)]
  })
  return table(['version', 'of', 'statistic then', 'statistic now', 'moved', 'rows changed', ''], rows)
}

function runLabel({ kind, name }: StressRun): string {
  if (kind === 'latency') return `${name} to act`
  return /^(?:p\d+|max)$/.test(name) ? `as late as ${name}` : `${name} later`
}

const text = (statistic: number | null): string => (statistic === null ? 'none' : briefFigure(statistic))
const share = (moved: number | null): string => (moved === null ? '' : percent(moved))

function percent(part: number): string {
  return `${Math.abs(part) < 0.1 ? Math.round(part * 1000) / 10 : Math.round(part * 100)} %`
}

const places = 30

/** Builds bars from one zero for all: values below it go to the left. */
function barOf(statistics: readonly (number | null)[]): (statistic: number | null) => string {
  const shown = statistics.filter((statistic) => statistic !== null)
  const low = Math.min(0, ...shown)
  const high = Math.max(0, ...shown)
  const unit = high === low ? 0 : places / (high - low)
  const zero = Math.round(-low * unit)
  return (statistic) => {
    if (statistic === null) return ''
    const length = Math.max(statistic === 0 ? 0 : 1, Math.round(Math.abs(statistic) * unit))
    const below = statistic < 0
    return `${' '.repeat(Math.max(0, below ? zero - length : zero))}${(below ? '▒' : '█').repeat(length)}`
  }
}
