import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { type Figure, median } from './measured.ts'
import { ratios } from './pictures.ts'
import { cache } from './programs.ts'
import { root as project } from './provider.ts'
import { machine, table } from './scale-page.ts'

/** What a topic came to, kept so that the page can be made of runs in pieces. */
interface Topic {
  readonly name: string
  readonly seconds: number
  readonly lines: readonly string[]
  readonly figures: readonly Figure[]
  /** Where it ran. */
  readonly machine?: string
  /** How many processes wanted the processors at its end. */
  readonly load?: number
}

const folder = join(cache, 'bench')

/** Keeps what a topic came to, and writes docs/contributing/benchmarks.md, where it has all that stands there. */
export async function writeTopic(topic: Topic, topics: object): Promise<void> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, `${topic.name}.json`),
    JSON.stringify({ machine: machine(), load: loadavg()[0], ...topic }, null, 1),
  )
  const names = Object.keys(topics)
  const made = names.flatMap((name) => {
    const file = join(folder, `${name}.json`)
    return existsSync(file) ? [JSON.parse(readFileSync(file, 'utf8')) as Topic] : []
  })
  const file = join(project, 'docs/contributing/benchmarks.md')
  const told = [...readFileSync(file, 'utf8').matchAll(/^### (.+)$/gm)].map(([, name]) => name ?? '')
  const lost = told.filter((name) => made.every((one) => one.name !== name))
  // A page of one topic would stand for all that others measured elsewhere.
  if (lost.length > 0)
    return console.log(`docs/contributing/benchmarks.md is left: ${lost.join(', ')} were not measured here`)
  writeFileSync(file, page(made, names))
  const peers = made.filter(({ name }) => name === 'queries')
  const others = made.filter(({ name }) => name !== 'queries')
  for (const [name, own] of Object.entries({ peers, others }))
    writeFileSync(join(project, `docs/contributing/benchmarks-${name}.svg`), ratios(own.flatMap(bars)))
}

/** A question with the middle of ours and of each peer. */
interface Compared {
  readonly topic: string
  readonly figure: Figure
  readonly ours: number
  readonly best: { readonly name: string; readonly seconds: number }
}

function comparedOf({ name: topic, figures }: Topic): Compared[] {
  return figures.flatMap((figure) => {
    const { pitlake: own = [], ...others } = figure.times
    const [best] = Object.entries(others)
      .flatMap(([name, times]) => (times.length === 0 ? [] : [{ name, seconds: median(times) }]))
      .toSorted((a, b) => a.seconds - b.seconds)
    return best === undefined || own.length === 0 ? [] : [{ topic, figure, ours: median(own), best }]
  })
}

function page(made: readonly Topic[], names: readonly string[]): string {
  const all = made.flatMap(comparedOf)
  const worse = all.filter(({ ours, best }) => best.seconds < ours).toSorted((a, b) => ratioOf(b) - ratioOf(a))
  const better = all.filter(({ ours, best }) => best.seconds >= ours).toSorted((a, b) => ratioOf(b) - ratioOf(a))
  const missing = names.filter((name) => made.every((topic) => topic.name !== name))
  const failed = made.flatMap(({ name, lines }) =>
    lines.filter((line) => /FAILED|cannot be had|failed:/.test(line)).map((line) => `- \`${name}\`: ${line}`),
  )
  const places = Map.groupBy(made, (topic) => (topic.machine ?? '').split(', commit ')[0] ?? '')
  const commits = (own: readonly Topic[]): string =>
    [...new Set(own.map((topic) => topic.machine?.split(', commit ')[1] ?? ''))].join(', ')
  const where = [...places].map(([place, own]) => `${place}, commits ${commits(own)}`).join('; ')
  return [
    '# Benchmarks',
    '',
    'This page compares pitlake with other engines on the same queries. In each row the answers are equal, and the run asserts that.',
    '',
    `\`make bench\` measured it on ${where}.`,
    '',
    '- A cell shows the median of several rounds and, in brackets, the smallest and the largest. Rounds alternate between the programs.',
    '- The ratio is pitlake to the fastest peer. Above 1 the peer is faster.',
    '- Peers use two threads and their best settings: only the needed columns, filters pushed down, declared types.',
    '- On a busy machine, trust only the rows marked *processor*.',
    '',
    'What a lake costs as it grows: [scale](../explanation/scale.md).',
    '',
    ...(missing.length === 0
      ? []
      : [`Not measured in this run: ${missing.map((name) => `\`${name}\``).join(', ')}.`, '']),
    ...(failed.length === 0 ? [] : ['These topics could not be measured:', '', ...failed, '']),
    '## Where a peer wins',
    '',
    ...rows(worse),
    '',
    '## Where no peer wins',
    '',
    ...rows(better),
    '',
    '## In pictures',
    '',
    'Seconds of the peer divided by seconds of pitlake. Left of 1 the peer is faster.',
    '',
    '![the same queries in six engines](benchmarks-peers.svg)',
    '',
    '![everything else](benchmarks-others.svg)',
    '',
    '## All results',
    '',
    ...made.flatMap(({ name, lines, seconds, load }) => [
      `### ${name}`,
      '',
      `\`npm run -s bench -- ${name}\`, ${seconds.toFixed(0)} s${load === undefined ? '' : `, a load of ${load.toFixed(0)} at its end`}`,
      '',
      ...lines.map((line) => `- ${line}`),
      '',
    ]),
  ].join('\n')
}

const ratioOf = ({ ours, best }: Compared): number => ours / best.seconds

function rows(all: readonly Compared[]): string[] {
  if (all.length === 0) return ['Nowhere.']
  return table(
    ['', 'pitlake', 'peers', 'ratio'],
    all.map((one) => {
      const { pitlake: own = [], ...others } = one.figure.times
      const peers = Object.entries(others).filter(([, times]) => times.length > 0)
      const told = peers.map(([name, times]) => `${name} ${spread(times)}`).join('; ')
      return [`${one.figure.name} (\`${one.topic}\`)`, spread(own), told, ratioOf(one).toFixed(2)]
    }),
  )
}

function spread(times: readonly number[]): string {
  const shown = (seconds: number): string =>
    seconds < 1 ? `${(seconds * 1000).toFixed(0)} ms` : `${seconds.toFixed(2)} s`
  return `${shown(median(times))} (${shown(Math.min(...times))} to ${shown(Math.max(...times))})`
}

function bars({ figures }: Topic) {
  return figures.flatMap(({ name, times: { pitlake: own = [], ...others } }) =>
    Object.entries(others).flatMap(([peer, times]) =>
      times.length === 0 || own.length === 0 ? [] : [{ name, peer, ratio: median(times) / median(own) }],
    ),
  )
}
