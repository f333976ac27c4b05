import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { type Figure, median } from './measured.ts'
import { ratios } from './pictures.ts'
import { cache, dltVersion } from './programs.ts'
import { root as project } from './provider.ts'
import { machine, table } from './scale-page.ts'

/** The result of a topic, kept so that the page can be made of several runs of one commit. */
interface TopicResult {
  readonly name: string
  readonly seconds: number
  /** Results in words, each with its bound if it has one. */
  readonly lines: readonly string[]
  readonly figures: readonly Figure[]
}

/** A kept result, with where and when it was measured. */
export interface KeptResult extends TopicResult {
  /** Machine, version of Node and commit. */
  readonly machine: string
  /** Load average at the end: number of processes that wanted a processor. */
  readonly load: number
}

/** A figure with the median seconds of pitlake and of its fastest peer. */
interface Comparison {
  readonly topic: string
  readonly figure: Figure
  readonly ours: number
  readonly best: { readonly name: string; readonly seconds: number }
}

const folder = join(cache, 'bench')
const page = join(project, 'docs/contributing/benchmarks.md')

/** Keeps the result of a topic, and writes the page if each of the topics was measured on this machine and commit. */
export async function writeTopic(result: TopicResult, topics: readonly string[]): Promise<void> {
  const kept: KeptResult = { machine: machine(), load: loadavg()[0] ?? 0, ...result }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${result.name}.json`), JSON.stringify(kept, null, 1))
  const results = topics.flatMap((name) => {
    const file = join(folder, `${name}.json`)
    const found = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KeptResult) : undefined
    return found?.machine === kept.machine ? [found] : []
  })
  const missing = topics.filter((name) => results.every((measured) => measured.name !== name))
  if (missing.length > 0)
    return console.log(`the page of benchmarks waits for ${missing.join(', ')}, measured on this commit`)
  writeFileSync(page, pageOf(results))
  const [peers, others] = [true, false].map((isQueries) =>
    results.filter(({ name }) => (name === 'queries') === isQueries),
  )
  for (const [name, drawn = []] of Object.entries({ peers, others }))
    writeFileSync(join(project, `docs/contributing/benchmarks-${name}.svg`), ratios(drawn.flatMap(bars)))
}

function comparisonsOf({ name: topic, figures }: TopicResult): Comparison[] {
  return figures.flatMap((figure) => {
    const { pitlake: ours = [], ...peers } = figure.times
    const [best] = Object.entries(peers)
      .flatMap(([name, times]) => (times.length === 0 ? [] : [{ name, seconds: median(times) }]))
      .toSorted((a, b) => a.seconds - b.seconds)
    return best === undefined || ours.length === 0 ? [] : [{ topic, figure, ours: median(ours), best }]
  })
}

const ratioOf = ({ ours, best }: Comparison): number => ours / best.seconds

/** Writes the page of benchmarks from the results of all topics. */
export function pageOf(results: readonly KeptResult[]): string {
  const all = results.flatMap(comparisonsOf).toSorted((a, b) => ratioOf(b) - ratioOf(a))
  const failures = results.flatMap(({ name, lines }) =>
    lines.filter((line) => /FAILED|cannot be had|failed:/.test(line)).map((line) => `- \`${name}\`: ${line}`),
  )
  const load = Math.max(...results.map((result) => result.load))
  const minutes = results.reduce((sum, { seconds }) => sum + seconds, 0) / 60
  return [
    '# Benchmarks',
    '',
    'This page compares pitlake with other programs that answer the same questions. In each row the answers are equal, and the run asserts that.',
    '',
    `\`make bench\` measured everything in ${minutes.toFixed(0)} minutes on ${results[0]?.machine}. At most ${load.toFixed(0)} processes wanted its processors at the end of a topic.`,
    '',
    `The peers are ${peerVersions().join(', ')}. They use two threads and their best settings: they read only the columns that they need, push filters down and declare types.`,
    '',
    '- A time is the median of several rounds. The programs take turns in each round.',
    '- The ratio is the time of pitlake to the time of the fastest peer. Above 1 the peer is faster.',
    '- *Processor* is the time that all processors spent. It says the same on a machine that has other work, which the time by the clock does not.',
    '',
    'The page [scale](../explanation/scale.md) shows what a lake costs as it grows.',
    '',
    ...(failures.length === 0 ? [] : ['These could not be measured:', '', ...failures, '']),
    '## Where a peer is faster',
    '',
    ...summary(all.filter((comparison) => ratioOf(comparison) > 1)),
    '',
    '## Where pitlake is faster',
    '',
    ...summary(all.filter((comparison) => ratioOf(comparison) <= 1)),
    '',
    '## In pictures',
    '',
    'A bar is the time of the peer divided by the time of pitlake. Left of 1 the peer is faster.',
    '',
    '![the same queries in six engines](benchmarks-peers.svg)',
    '',
    '![everything else](benchmarks-others.svg)',
    '',
    '## Every result',
    '',
    ...results.flatMap(topicSection),
  ].join('\n')
}

/** Names and versions of the packages that are peers, as they are pinned. */
function peerVersions(): string[] {
  const pins = (file: string): Map<string, string> =>
    new Map(
      [...readFileSync(join(project, 'test/python', file), 'utf8').matchAll(/^([\w.-]+)==([\w.]+)/gm)].map(
        ([, name = '', version = '']) => [name, version],
      ),
    )
  const peers = pins('requirements.txt')
  const readers = pins('requirements-readers.txt')
  const newest = pins('requirements-python-newest.txt')
  const { devDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
    readonly devDependencies: Readonly<Record<string, string>>
  }
  return [
    `DuckDB ${peers.get('duckdb')} and ${newest.get('duckdb')}`,
    `polars ${peers.get('polars')}`,
    `pandas ${readers.get('pandas')}`,
    `chdb ${readers.get('chdb')} (ClickHouse in a process)`,
    `deltalake ${readers.get('deltalake')}`,
    `dlt ${dltVersion}`,
    `parquetjs-lite ${devDependencies['parquetjs-lite']}`,
  ]
}

function summary(comparisons: readonly Comparison[]): string[] {
  if (comparisons.length === 0) return ['Nowhere.']
  return table(
    ['', 'pitlake', 'fastest peer', 'ratio'],
    comparisons.map((comparison) => [
      `${comparison.figure.name} ([${comparison.topic}](#${comparison.topic}))`,
      shown(comparison.ours),
      `${comparison.best.name}, ${shown(comparison.best.seconds)}`,
      ratioOf(comparison).toFixed(2),
    ]),
  )
}

/** Shows every way of every figure of a topic, and what else it found. */
function topicSection({ name, lines, figures, seconds }: KeptResult): string[] {
  const rows = figures.flatMap((figure) => {
    const ours = median(figure.times['pitlake'] ?? [])
    return Object.entries(figure.times).flatMap(([way, times]) =>
      times.length === 0
        ? []
        : [[figure.name, way, shown(median(times)), rangeOf(times), (ours / median(times)).toFixed(2)]],
    )
  })
  return [
    `### ${name}`,
    '',
    `\`npm run -s bench -- ${name}\` took ${seconds.toFixed(0)} s.`,
    '',
    ...(rows.length === 0 ? [] : [...table(['', 'program', 'median', 'range', 'pitlake to it'], rows), '']),
    ...lines.map((line) => `- ${line}`),
    '',
  ]
}

const rangeOf = (times: readonly number[]): string => `${shown(Math.min(...times))} to ${shown(Math.max(...times))}`

const shown = (seconds: number): string =>
  seconds < 1 ? `${(seconds * 1000).toFixed(0)} ms` : `${seconds.toFixed(2)} s`

function bars({ figures }: TopicResult) {
  return figures.flatMap(({ name, times: { pitlake: ours = [], ...peers } }) =>
    Object.entries(peers).flatMap(([peer, times]) =>
      times.length === 0 || ours.length === 0 ? [] : [{ name, peer, ratio: median(times) / median(ours) }],
    ),
  )
}
