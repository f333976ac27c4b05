import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { expand } from '../../src/catalog/series.ts'
import { type Limits, plan } from '../../src/metrics/plan.ts'
import type { JoinRatio } from './joins.ts'
import type { PolarsRatio } from './polars.ts'
import { answerMetrics, type MetricsEnv } from '../../src/sandbox/metrics.ts'
import { median } from './measured.ts'

/** Two ways to the same result, timed in turn; equal results are asserted before any time is believed. */
interface Pair {
  readonly name: string
  readonly baseline: string
  readonly bound: number
  readonly rounds: number
  readonly ours: () => Promise<string>
  readonly theirs: () => Promise<string>
  /** Whether both must give the same text. */
  readonly equal: boolean
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const catalogue = loadCatalogue()
const day = 86_400
const now = Date.UTC(2026, 0, 1) / 1000

/** What can be measured, by topic: every one prints lines with ratios and fails where a bound is broken. */
const topics: Readonly<Record<string, () => Promise<void>>> = {
  basics: async () => {
    for (const pair of [startUp(), sandboxWindow(), planning()]) await run(pair)
  },
  convert: async () => tell(await (await import('./convert.ts')).benchConvert()),
  fetch: async () => tell(await (await import('./fetch.ts')).benchFetch()),
  idle: async () => tell(await (await import('./idle.ts')).benchIdle()),
  topup: async () => await (await import('./topup.ts')).benchTopUp(tell),
  views: async () => say(await (await import('./views.ts')).benchViews()),
  joins: async () => {
    const ratios = await (await import('./joins.ts')).benchJoins()
    tell(ratios.map((ratio) => ({ line: joinLine(ratio), within: ratio.ratio <= ratio.bound })))
  },
  polars: async () => {
    const ratios = await (await import('./polars.ts')).benchPolars()
    tell(ratios.map((ratio) => ({ line: polarsLine(ratio), within: ratio.ours <= ratio.whole })))
  },
  rebuild: async () => tell(await (await import('./rebuild.ts')).benchRebuild()),
  publish: async () => tell(await (await import('./publish.ts')).benchPublish()),
  lived: async () => tell(await (await import('./lived.ts')).benchLived()),
  registry: async () => await (await import('./registry.ts')).benchRegistry(tell),
  'registry-year': async () => tell(await (await import('./registry.ts')).benchRegistryYear()),
}

/** Runs the topics of the command line, all without any. */
async function main(): Promise<void> {
  const named = process.argv.slice(2)
  const unknown = named.filter((name) => !Object.hasOwn(topics, name))
  if (unknown.length > 0) throw new Error(`no topic ${unknown.join(', ')}; there are ${Object.keys(topics).join(', ')}`)
  console.log('median of A B A B rounds in one run')
  for (const [name, bench] of Object.entries(topics)) {
    if (named.length > 0 && !named.includes(name)) continue
    console.log(`\n${name}`)
    await bench()
  }
}

function tell(measured: readonly { readonly line: string; readonly within: boolean }[]): void {
  for (const { line, within } of measured) {
    console.log(line)
    if (!within) process.exitCode = 1
  }
}

function joinLine({ name, ours, bare, strict, ratio, bound }: JoinRatio): string {
  const times = `${ours.toFixed(2)} s, bare ${bare.toFixed(2)} s, strict ${strict.toFixed(2)} s`
  return `${name}: ${times}, ratio ${ratio.toFixed(2)} (${ratio <= bound ? 'within' : 'ABOVE'} ${bound})`
}

function polarsLine({ name, ours, whole, tuned }: PolarsRatio): string {
  const times = `${ours.toFixed(2)} s, polars in one join ${whole.toFixed(2)} s, metric by metric ${tuned.toFixed(2)} s`
  const verdict = ours <= whole ? 'within' : 'ABOVE'
  return `${name}: ${times}, ratios ${(ours / whole).toFixed(2)} (${verdict} 1) and ${(ours / tuned).toFixed(2)}`
}

function say(lines: readonly string[]): void {
  for (const line of lines) console.log(line)
}

/** The time of `pitlake --help` against an empty Node. */
function startUp(): Pair {
  const node = (args: readonly string[]) => async () => {
    const done = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
    if (done.status !== 0) throw new Error(done.stderr)
    return done.stdout
  }
  const ours = node(['scripts/launch.cjs', '--help'])
  return {
    name: 'pitlake --help',
    baseline: 'node -e 0',
    bound: 3,
    rounds: 9,
    ours,
    theirs: node(['-e', '0']),
    equal: false,
  }
}

/** A warm daily window of 4,000 points from the sandbox against serialising and encoding the same points. */
function sandboxWindow(): Pair {
  const env: MetricsEnv = { catalogue, seed: 1, key: 'k', now: () => now, computedAt: true, unfinished: false }
  const query = `a=BTC&i=24h&s=${now - 4000 * day}&u=${now}`
  const request = () =>
    new Request(`http://127.0.0.1/v1/metrics/supply/current_pit?${query}`, { headers: { 'x-api-key': 'k' } })
  const ours = async () => await answerMetrics(request(), env).text()
  let points: unknown
  const theirs = async () => {
    points ??= JSON.parse(await ours())
    return await new Response(JSON.stringify(points)).text()
  }
  return {
    name: 'sandbox, window of 4,000 points',
    baseline: 'JSON.stringify of the points',
    bound: 10,
    rounds: 15,
    ours,
    theirs,
    equal: true,
  }
}

/** 100,000 series planned against merely expanding them. */
function planning(): Pair {
  const assets = Array.from({ length: 900 }, (_, i) => `A${i}`)
  const wanted = expand(catalogue, [{ assets, paths: ['*'] }])
  const limits: Limits = { requestsPerMinute: 600, credits: { '*': 2 }, gapsOnly: false, blocked: () => null }
  const ours = async () => String(plan(wanted, new Map(), limits, now).totals.series)
  const theirs = async () => String(expand(catalogue, [{ assets, paths: ['*'] }]).length)
  return {
    name: `plan of ${wanted.length.toLocaleString('en-US')} series`,
    baseline: 'their expansion',
    bound: 2,
    rounds: 7,
    ours,
    theirs,
    equal: true,
  }
}

async function run(pair: Pair): Promise<void> {
  const times: [number, number][] = []
  for (let round = -1; round < pair.rounds; round++) {
    const [a, ours] = await timed(pair.ours)
    const [b, theirs] = await timed(pair.theirs)
    if (pair.equal && ours !== theirs) throw new Error(`${pair.name}: the results differ`)
    if (round >= 0) times.push([a, b])
  }
  const ours = median(times.map(([a]) => a))
  const theirs = median(times.map(([, b]) => b))
  const ratio = median(times.map(([a, b]) => a / b))
  const verdict = ratio <= pair.bound ? 'within' : 'ABOVE'
  console.log(
    `${pair.name}: ${ours.toFixed(1)} ms, ${pair.baseline}: ${theirs.toFixed(1)} ms, ratio ${ratio.toFixed(2)} (${verdict} ${pair.bound})`,
  )
  if (ratio > pair.bound) process.exitCode = 1
}

async function timed(work: () => Promise<string>): Promise<[number, string]> {
  const start = performance.now()
  const result = await work()
  return [performance.now() - start, result]
}

await main()
