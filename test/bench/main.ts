import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { expand } from '../../src/catalog/series.ts'
import { plan } from '../../src/sources/metrics/plan.ts'
import { answerMetrics } from '../../src/sandbox/metrics.ts'
import { writeTopic } from './benchmarks-page.ts'
import { byTurns, figure, figures, judged, type Measured, median, scaled, share } from './measured.ts'

/** A text, or how to make it once the time is taken. */
type Result = string | (() => string)

/** Two ways to the same result, timed in turn; equal results are asserted before any time is believed. */
interface Pair {
  readonly name: string
  readonly baseline: string
  readonly bound: number
  readonly rounds: number
  readonly ours: () => Promise<Result>
  readonly theirs: () => Promise<Result>
  /** Whether both must give the same text. */
  readonly equal: boolean
  /** What ours must say where both cannot say the same. */
  readonly right?: (ours: string) => boolean
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const catalogue = loadCatalogue()
const day = 86_400
const now = Date.UTC(2026, 0, 1) / 1000

/** What can be measured, by topic: every one prints lines with ratios and fails where a bound is broken. */
const topics: Readonly<Record<string, () => Promise<void>>> = {
  peers: async () => await (await import('./peers.ts')).benchPeers(tell),
  basics: async () => {
    for (const pair of [startUp(), sandboxWindow(), planning()]) await run(pair)
  },
  convert: async () => tell(await (await import('./convert.ts')).benchConvert()),
  fetch: async () => tell(await (await import('./fetch.ts')).benchFetch()),
  first: async () => await (await import('./first.ts')).benchFirst(tell),
  idle: async () => tell(await (await import('./idle.ts')).benchIdle()),
  topup: async () => await (await import('./topup.ts')).benchTopUp(tell),
  views: async () => await (await import('./views.ts')).benchViews(tell),
  joins: async () => await (await import('./joins.ts')).benchJoins(tell),
  polars: async () => tell(await (await import('./polars.ts')).benchPolars()),
  rebuild: async () => tell(await (await import('./rebuild.ts')).benchRebuild()),
  publish: async () => tell(await (await import('./publish.ts')).benchPublish()),
  import: async () => tell(await (await import('./import.ts')).benchImport()),
  heads: async () => tell(await (await import('./heads.ts')).benchHeads()),
  serve: async () => tell(await (await import('./serve.ts')).benchServe()),
  page: async () => tell(await (await import('./page.ts')).benchPage()),
  lived: async () => tell(await (await import('./lived.ts')).benchLived()),
  registry: async () => await (await import('./registry.ts')).benchRegistry(tell),
  'registry-year': async () => tell(await (await import('./registry.ts')).benchRegistryYear()),
}

/** What needs packages of others, or an earlier program: of a share only where it is named.  */
const elsewhere = ['first', 'topup', 'polars', 'peers']

/** Runs the topics of the command line, all without any. */
async function main(): Promise<void> {
  const named = process.argv.slice(2)
  const unknown = named.filter((name) => !Object.hasOwn(topics, name))
  if (unknown.length > 0) throw new Error(`no topic ${unknown.join(', ')}; there are ${Object.keys(topics).join(', ')}`)
  console.log(share === 1 ? 'median of A B A B rounds in one run' : `${share} of each: what fails counts, no figure`)
  const minutes = Number(process.env['PITLAKE_BENCH_MINUTES'] ?? Infinity)
  const all = Object.entries(topics).filter(([name]) => named.length === 0 || named.includes(name))
  const some = all.filter(([name]) => !elsewhere.includes(name))
  for (const [name, bench] of share < 1 && named.length === 0 ? some : all) {
    if (performance.now() > minutes * 60_000) {
      console.log(`\n${name}: left out after ${minutes} minutes; npm run -s bench -- ${name}`)
      continue
    }
    console.log(`\n${name}`)
    const begun = performance.now()
    // What breaks here does not silence the figures of the rest.
    await bench().catch((error: unknown) => {
      said(`FAILED: ${error instanceof Error ? error.message : String(error)}`)
      process.exitCode = 1
    })
    const seconds = (performance.now() - begun) / 1000
    if (share === 1) await writeTopic({ name, seconds, lines: lines.splice(0), figures: figures.splice(0) }, topics)
  }
}

/** What the topic at hand has told so far. */
const lines: string[] = []

function said(line: string): void {
  lines.push(line)
  console.log(line)
}

function tell(measured: readonly Measured[]): void {
  for (const { line, within } of measured) {
    said(line)
    if (!within && share === 1) process.exitCode = 1
  }
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
    rounds: scaled(9),
    ours,
    theirs: node(['-e', '0']),
    equal: false,
    right: (text) => text.includes('Usage: pitlake'),
  }
}

/** A warm daily window of 4,000 points from the sandbox against serialising and encoding the same points. */
function sandboxWindow(): Pair {
  const env: Parameters<typeof answerMetrics>[1] = { catalogue, seed: 1, key: 'k', now: () => now }
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
    rounds: scaled(15),
    ours,
    theirs,
    equal: true,
  }
}

/** 100,000 series planned against merely expanding them. */
function planning(): Pair {
  const assets = Array.from({ length: 900 }, (_, i) => `A${i}`)
  const wanted = expand(catalogue, [{ assets, paths: ['*'] }])
  const limits: Parameters<typeof plan>[2] = {
    requestsPerMinute: 600,
    credits: { '*': 2 },
    gapsOnly: false,
    blocked: () => null,
  }
  const names = (all: readonly { readonly id: string }[]): string =>
    [...new Set(all.map(({ id }) => id))].toSorted().join('\n')
  const ours = async () => {
    const { asks } = plan(wanted, new Map(), limits, now)
    return () => names(asks.map(({ series }) => series))
  }
  const theirs = async () => {
    const made = expand(catalogue, [{ assets, paths: ['*'] }])
    return () => names(made.map(({ series }) => series))
  }
  return {
    name: `plan of ${wanted.length.toLocaleString('en-US')} series`,
    baseline: 'their expansion',
    bound: 2,
    rounds: scaled(7),
    ours,
    theirs,
    equal: true,
  }
}

async function run(pair: Pair): Promise<void> {
  const times: [number, number][] = []
  for (let round = -1; round < pair.rounds; round++) {
    const ways = [pair.ours, pair.theirs].map((way) => async () => await timed(way))
    const [[a, ours] = none, [b, theirs] = none] = await byTurns(round, ways)
    if (pair.equal ? ours !== theirs || ours === '' : !pair.right?.(ours))
      throw new Error(`${pair.name}: the results differ`)
    if (round >= 0) times.push([a, b])
  }
  const ours = median(times.map(([a]) => a))
  const theirs = median(times.map(([, b]) => b))
  figure(pair.name, { pitlake: times.map(([a]) => a / 1000), [pair.baseline]: times.map(([, b]) => b / 1000) })
  const ratio = median(times.map(([a, b]) => a / b))
  const line = `${pair.name}: ${ours.toFixed(1)} ms, ${pair.baseline}: ${theirs.toFixed(1)} ms, ratio ${ratio.toFixed(2)}`
  tell([judged(line, ratio, pair.bound)])
}

const none: [number, string] = [Number.NaN, '']

async function timed(work: () => Promise<Result>): Promise<[number, string]> {
  const start = performance.now()
  const result = await work()
  const took = performance.now() - start
  return [took, typeof result === 'string' ? result : result()]
}

await main()
