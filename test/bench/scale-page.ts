import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { builtAt } from './scale-lake.ts'
import { root as project } from './provider.ts'
import { chart } from './pictures.ts'
import type { Answers, Took } from './scale.ts'

/** A lake with what was asked of it. */
interface Asked {
  readonly name: string
  readonly points: number
  readonly answers: Answers
}

type Who = 'ours' | 'duckdb' | 'polars'

/** What grows as n log n has this exponent between 5 and 500 million points; a tenth more is more than noise. */
const nLogN = 1.06
const marks = ['<!-- written by make bench-scale -->', '<!-- up to here -->'] as const
const build = 'build'

/** Puts what all lakes of a folder answered into docs/explanation/scale.md, and draws it. */
export async function writePage(lakes: string): Promise<void> {
  const sizes = readdirSync(lakes)
    .filter((name) => name.endsWith('.answers.json'))
    .map((name) => askedOf(lakes, name.replace('.answers.json', '')))
    .toSorted((a, b) => a.points - b.points)
  const names = [...new Set(sizes.flatMap(({ answers }) => Object.keys(answers)))].filter(
    (name) => !name.startsWith('copy of'),
  )
  const lines = [
    marks[0],
    '',
    `Measured by \`make bench-scale\` (\`POINTS=500000000\` for the large one) on ${machine()}. Each query ran in a separate process`,
    'under `--memory 2GB`. A cell shows its seconds of processor, start included, and its peak memory. The time by the clock is left out, because',
    'the machine was busy.',
    '',
    'The exponent is fitted over the lakes from 5 million points on, then over the largest two. There constant costs weigh least. An',
    `exponent of 1 is in proportion, and ${nLogN} is n log n. Faster growth is marked. Peers read the same Parquet files by the same rule and gave the same`,
    'answers. An empty cell means that a peer has no such query. Peers may use 12 GB.',
    '',
    '![seconds of processor by points](scale.svg)',
    '',
    ...table(
      ['', ...sizes.map(({ points }) => million(points)), 'exponent', 'bare DuckDB', 'polars'],
      names.map((name) => rowOf(name, sizes)),
    ),
    '',
    'Decision [4](../decisions/0004-put-joins-together-as-text-while-they-are-bound.md) describes the memory of joins.',
    '',
    ...builds(sizes),
    ...sizes.flatMap(unfinished),
    '',
    marks[1],
  ]
  const page = join(project, 'docs/explanation/scale.md')
  const [before = '', rest = ''] = readFileSync(page, 'utf8').split(marks[0])
  writeFileSync(page, `${before}${lines.join('\n')}${rest.split(marks[1])[1] ?? ''}`)
  writeFileSync(join(project, 'docs/explanation/scale.svg'), picture(names, sizes))
}

function askedOf(lakes: string, name: string): Asked {
  const answers = JSON.parse(readFileSync(join(lakes, `${name}.answers.json`), 'utf8')) as Answers
  const { points, cpu, megabytes, seconds } = builtAt(join(lakes, name))
  const held = Number(/\d+/.exec(answers['count']?.ours?.answer ?? '')?.[0] ?? points)
  return {
    name,
    points: held,
    answers: { [build]: { ours: { wall: seconds, cpu, megabytes, answer: '' } }, ...answers },
  }
}

/** What a question is about is whole in a lake that is not: then it counts as so large as that lake was to be. */
function sizeFor(question: string, { name, points }: Asked): number {
  const asked = Number.parseFloat(name) * 1e6
  return points < 0.98 * asked && /pit_|panel/.test(question) ? 0.9 * asked : points
}

/** What is to be said of a lake that was asked before it was whole. */
function unfinished({ name, points }: Asked): string[] {
  const asked = Number.parseFloat(name) * 1e6
  if (points > 0.98 * asked) return []
  const whole = 'nine tenths of the range are whole, which is what joins and panels ask, and not all is merged'
  return [
    '',
    `The lake of ${million(asked)} points was asked when ${million(points)} were built, for lack of time: ${whole}.`,
  ]
}

/** The machine and the commit, as every page of figures names them. */
export function machine(): string {
  const [cpu] = cpus()
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: project, encoding: 'utf8' }).stdout.trim()
  const memory = Math.round(totalmem() / 2 ** 30)
  return `${cpus().length} cores (${cpu?.model.trim() ?? 'unknown'}), ${memory} GB, Node ${process.versions.node}, commit ${commit}`
}

const million = (points: number): string => `${points < 1e6 ? (points / 1e6).toFixed(1) : Math.round(points / 1e6)} M`

/** A table of Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [head, head.map((_, n) => (n === 0 ? '---' : '---:')), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

function rowOf(name: string, sizes: readonly Asked[]): string[] {
  const own = sizes.map(({ answers }) => cell(answers[name]?.ours))
  const peers = (['duckdb', 'polars'] as const).map((who) => {
    const last = sizes.findLast(({ answers }) => answers[name]?.[who] !== undefined)
    const exponent = exponentOf(name, who, sizes)
    const shown = exponent === null ? '' : ` (^${exponent.toFixed(2)})`
    return last === undefined ? '' : `${cell(last.answers[name]?.[who])}${shown}`
  })
  const exponents = [exponentOf(name, 'ours', sizes), exponentOf(name, 'ours', sizes, 2)]
  const told = exponents
    .flatMap((one) => (one === null ? [] : [one > nLogN + 0.1 ? `**${one.toFixed(2)}**` : one.toFixed(2)]))
    .join(', ')
  return [name, ...own, told, ...peers]
}

function cell(took: Took | undefined): string {
  if (took === undefined) return ''
  if (took.failed === 'out of memory') return 'more memory than it may take'
  if (took.failed !== undefined)
    return /ended after|cancelled/.test(took.failed) ? `not within ${Math.round(took.wall)} s of the clock` : 'failed'
  const seconds = took.cpu < 10 ? took.cpu.toFixed(1) : took.cpu.toFixed(0)
  return `${seconds} s, ${took.megabytes < 1000 ? `${took.megabytes} MB` : `${(took.megabytes / 1024).toFixed(1)} GB`}`
}

/**
 * The slope of seconds over points on logarithms, by least squares, of the largest so many lakes; null for fewer than
 * two.
 */
function exponentOf(name: string, who: Who, sizes: readonly Asked[], most = Infinity): number | null {
  const all = sizes.flatMap((asked) => {
    const { answers } = asked
    const took = answers[name]?.[who]
    const points = sizeFor(name, asked)
    return took === undefined || took.failed !== undefined || points < 4e6
      ? []
      : [[Math.log(points), Math.log(took.cpu)] as const]
  })
  const pairs = all.slice(-most)
  if (pairs.length < 2) return null
  const mean = (of: 0 | 1): number => pairs.reduce((sum, pair) => sum + pair[of], 0) / pairs.length
  const x = mean(0)
  const y = mean(1)
  const over = pairs.reduce((sum, pair) => sum + (pair[0] - x) * (pair[1] - y), 0)
  return over / pairs.reduce((sum, pair) => sum + (pair[0] - x) ** 2, 0)
}

/** Points a second of each build, beside the bare writing of one metric's rows. */
function builds(sizes: readonly Asked[]): string[] {
  const told = sizes.flatMap(({ points, answers }) => {
    const own = answers[build]?.ours
    const bare = answers['copy of the largest metric']?.duckdb
    if (own === undefined || bare === undefined || bare.failed !== undefined) return []
    const rows = Number(/\d+/.exec(bare.answer)?.[0] ?? 0)
    const rate = (count: number, cpu: number): string =>
      `${(count / cpu / 1e6).toFixed(2)} million points a second of processor`
    return [
      `${million(points)}: ${rate(points, own.cpu)}, a bare \`COPY\` of its largest metric ${rate(rows, bare.cpu)}`,
    ]
  })
  return told.length === 0
    ? []
    : [`Building, from bodies of JSON to journal, Parquet, merges and views: ${told.join('; ')}.`]
}

function picture(names: readonly string[], sizes: readonly Asked[]): string {
  const marked = names.flatMap((name) =>
    sizes.flatMap(({ points, answers }) => {
      const took = answers[name]?.ours
      return took === undefined || took.failed !== undefined ? [] : [{ name, x: points, y: took.cpu }]
    }),
  )
  return chart({ x: 'points', y: 'seconds of processor', lines: marked })
}
