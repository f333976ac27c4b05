import type { Stressed } from '../results/stress.ts'
import { brief, inWords as condition, type StressRun } from '../results/stress-verdict.ts'
import { whole } from '../words/figures.ts'
import { table } from '../words/table.ts'

/** The outcome for people: the verdict, every run with a bar of its figure, and what each metric does alone. */
export function inWords(done: Stressed, file: string): string {
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
  return figure === null ? 'none' : brief(figure)
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
