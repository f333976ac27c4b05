import { resolve } from 'node:path'
import type { Catalogue } from '../catalog/catalogue.ts'
import { usage } from '../errors.ts'
import { kinds } from '../kinds.ts'
import { Ledger } from '../ledger/ledger.ts'
import { seenLags } from '../report/arrivals.ts'
import { stressPicture } from '../report/page/stress.ts'
import { stamp } from '../results/stamp.ts'
import { type Quantile, quantiles } from '../results/stress-delays.ts'
import { sourceOfQuery, sourceOfStamp } from '../results/stress-source.ts'
import { withVintages } from '../results/stress-stamp.ts'
import { briefFigure, inWords as condition, type StressRun } from '../results/stress-verdict.ts'
import { stress, type Stressed, type StressInput, type StressSource } from '../results/stress.ts'
import { outFile, putOut } from '../store/output.ts'
import { formatDuration, parseDuration } from '../time.ts'
import { whole } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { withinTime, timeoutOption } from './context.ts'
import { knowledgeFlags } from './flags.ts'
import { judged, readGiven, stampedPath } from './given.ts'
import { checkEnding } from './query.ts'
import { answering, type Deps, type Input, showLive } from './spec.ts'
import { allVariables, stampEndings } from './stamp.ts'
import { lakeWorld, openedLake } from './world.ts'

const stressOptions = {
  '--figure SQL': 'one number over the rows, which are the table result: avg(r) / stddev(r)',
  '--lag LIST': {
    kind: kinds.listOf({ name: 'span', read: lagOf }),
    about: `how much later points come: times such as 30m, and ${quantiles.join(', ')} of the lags that were seen`,
    default: `${quantiles.join(',')},30m,1h`,
  },
  '--latency LIST': {
    kind: kinds.listOf({ name: 'span', read: timeOf }),
    about: 'how much more time is needed to act: 15m,1h',
  },
  '--vintages N': { kind: kinds.count(0), about: 'how many earlier versions of the lake to try', default: '3' },
  '--within SHARE': {
    kind: kinds.number('a number such as 0.5', (value) => value >= 0 && value < 1000),
    about: 'the part of itself by which the figure may move',
    default: '0.5',
  },
  ...knowledgeFlags,
  '--out FILE': 'also stamp the outcome into a Parquet file, which pitlake replay tries again',
  '--plot FILE': 'also draw the figures, as SVG',
  ...timeoutOption,
} as const

type Stressing = Input<typeof stressOptions>

/** `stress Q.sql|R.parquet`: how far a figure moves when points are known later, and which metric moves it. */
export const stressCommand = answering({
  name: 'stress',
  ends: [4, 5, 6, 7],
  args: [
    {
      name: 'file',
      about: 'the query, or a Parquet file that pitlake stamp wrote; `-` reads standard input',
      required: true,
    },
  ],
  options: stressOptions,
  details: `Exit 0: the figure bears what was tried. Exit 4: under one of the lags or latencies it moves, up or down, by more than
--within; the metric that moves it most is named, and the shortest lag that is enough. Exit 6: undecided, because the figure
is no number, or the query is not deterministic. Earlier versions are told and do not judge. Only --out writes: its file, and what pins the version beside the lake's stamps.

Example: pitlake stress q.sql --lag 30m,1h,1d --figure 'avg(r) / stddev(r) * sqrt(365)'`,
  answer: async (input, { settings, catalogue }, deps) => {
    const file = input.args[0] ?? ''
    const { figure, lag: lags, latency: latencies = [], within, out, plot } = input.options
    if (figure === undefined || figure.trim() === '')
      throw usage('--figure', {
        expected: "SQL of one number over the table result, such as 'avg(r) / stddev(r)'",
        got: 'nothing',
      })
    await openedLake(deps, settings.data)
    using ledger = await Ledger.openToRead(settings.data)
    const asked: StressInput = {
      figure,
      lags,
      latencies,
      within,
      seen: async (metrics) => await seenLags(ledger, catalogue, metrics),
      onRun: (done) => showLive(deps, `${done} runs`),
    }
    const done = await (out === undefined
      ? stress(await sourceOf(input, deps, ledger, file), asked, { folder: settings.data, ...withinTime(input, deps) })
      : stamped(input, deps, { root: settings.data, catalogue, file, out: resolve(deps.cwd, out), stress: asked })
    ).finally(() => showLive(deps, ''))
    if (plot !== undefined) await putOut(resolve(deps.cwd, plot), stressPicture(done, file), settings.data, '--plot')
    return { document: done, words: () => inWords(done, file), error: judged(file, done, outcome) }
  },
})

const outcome = {
  good: 'holds',
  command: 'stress',
  bad: {
    subject: 'falls apart',
    next: 'decide later (latency := in the joins), or show by pitlake audit availability that points come sooner',
  },
} as const

/** Tries the figure over exactly the newest version, or that of a stamped result, and pins what came of it. */
async function stamped(
  input: Stressing,
  deps: Deps,
  {
    root,
    catalogue,
    file,
    out,
    stress: asked,
  }: Readonly<{ root: string; catalogue: Catalogue; file: string; out: string; stress: StressInput }>,
): Promise<Stressed> {
  checkEnding(out, stampEndings)
  outFile(out, root).discard()
  const query = isStamped(file)
    ? { stamped: resultGiven(input, deps, file) }
    : readGiven(deps.cwd, file, 'a file with a query')
  const variables = allVariables(input)
  const made = await stamp(
    { root, catalogue, query, out, variables, stress: { ...asked, vintages: input.options.vintages } },
    withinTime(input, deps),
    lakeWorld(deps, 'stress'),
  )
  if (made.outcome === null) throw new RangeError('stamped without an outcome')
  return made.outcome
}

function isStamped(file: string): boolean {
  return stampEndings.some((ending) => file.toLowerCase().endsWith(ending))
}

async function sourceOf(input: Stressing, deps: Deps, ledger: Ledger, file: string): Promise<StressSource> {
  const source = isStamped(file)
    ? await sourceOfStamp(ledger, resultGiven(input, deps, file))
    : await sourceOfQuery(ledger, readGiven(deps.cwd, file, 'a file with a query'), allVariables(input))
  return withVintages(ledger, source, input.options.vintages)
}

function resultGiven(input: Stressing, deps: Deps, file: string): string {
  const path = stampedPath(deps.cwd, file)
  if (Object.keys(allVariables(input)).length === 0) return path
  throw usage('pitlake stress', {
    expected: 'a stamped result with its own variables',
    got: '--as-of, --observed-as-of or --set',
  })
}

function lagOf(flag: string, text: string): number | Quantile {
  return quantiles.find((one) => one === text) ?? timeOf(flag, text, `, or ${quantiles.join(', ')}`)
}

const longest = 366 * 86_400

function timeOf(flag: string, text: string, beside = ''): number {
  const seconds = parseDuration(text)
  if (seconds !== undefined && seconds <= longest) return seconds
  throw usage(flag, { expected: `times such as 30m or ${formatDuration(86_400)}${beside}`, got: `"${text}"` })
}

/** The outcome for people: the verdict, every run with a bar of its figure, and what each metric does alone. */
function inWords(done: Stressed, file: string): string {
  const { verdict, reason, figure, rows, runs, notes } = done
  const said = verdict === 'falls' ? 'falls apart' : verdict
  const lines = [`${file}: ${said}${reason === null ? '' : `, ${reason}`}`]
  for (const note of notes) lines.push(`note: ${note}`)
  const parts = [`${lines.join('\n')}\n`]
  if (figure !== null) parts.push(runsTable(figure, rows, runs), metricsTable(done), versionsTable(runs))
  return parts.filter((part) => part !== '').join('\n')
}

function runsTable(figure: number, rows: number, runs: readonly StressRun[]): string {
  const judged = runs.filter(({ kind }) => kind !== 'version')
  const bar = barOf([figure, ...judged.map((run) => run.figure)])
  const cells = judged.map((run) => [
    label(run),
    text(run.figure),
    share(run.moved),
    whole(run.changed),
    bar(run.figure),
  ])
  return table(
    ['known', 'figure', 'moved', 'rows changed', ''],
    [['as it is', text(figure), '', `of ${whole(rows)}`, bar(figure)], ...cells],
  )
}

function metricsTable({ delay, metrics }: Stressed): string {
  if (delay === null || metrics.length === 0) return ''
  const cells = metrics.map((one) => [one.metric, text(one.figure), share(one.moved), percent(one.share)])
  return `of each metric alone, ${condition(delay)}:\n${table(['metric', 'figure', 'moved', 'share'], cells)}`
}

function versionsTable(runs: readonly StressRun[]): string {
  const versions = runs.filter(({ kind }) => kind === 'version')
  if (versions.length === 0) return ''
  const bar = barOf(versions.flatMap(({ figure, before }) => [figure, before]))
  const cells = versions.map((run) => [
    run.name,
    `${(run.at ?? '').slice(0, 16).replace('T', ' ')}Z`,
    text(run.figure),
    text(run.before),
    share(run.moved),
    whole(run.changed),
    bar(run.figure),
  ])
  const header = ['version', 'of', 'figure then', 'figure now', 'moved', 'rows changed', '']
  return `as it came out at earlier versions, beside what the lake says now that was knowable then:\n${table(header, cells)}`
}

function label({ kind, name }: StressRun): string {
  if (kind === 'latency') return `${name} to act`
  return /^(?:p\d+|max)$/.test(name) ? `as late as ${name}` : `${name} later`
}

function text(figure: number | null): string {
  return figure === null ? 'none' : briefFigure(figure)
}

function share(moved: number | null): string {
  return moved === null ? '' : percent(moved)
}

function percent(part: number): string {
  const points = Math.abs(part) < 0.1 ? Math.round(part * 1000) / 10 : Math.round(part * 100)
  return `${points} %`
}

const places = 30

/** Bars from one zero for all: to its left what is below it. */
function barOf(figures: readonly (number | null)[]): (figure: number | null) => string {
  const known = figures.filter((figure) => figure !== null)
  const [low, high] = [Math.min(0, ...known), Math.max(0, ...known)]
  const unit = high === low ? 0 : places / (high - low)
  const zero = Math.round(-low * unit)
  return (figure) => {
    if (figure === null) return ''
    const length = Math.max(figure === 0 ? 0 : 1, Math.round(Math.abs(figure) * unit))
    return figure < 0
      ? `${' '.repeat(Math.max(0, zero - length))}${'▒'.repeat(length)}`
      : `${' '.repeat(zero)}${'█'.repeat(length)}`
  }
}
