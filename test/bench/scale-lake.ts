import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { loadCatalogue } from '../../src/catalog/load.ts'
import type { Selection } from '../../src/catalog/series.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { requestRow } from '../../src/sources/http/request-rows.ts'
import { openSpool } from '../../src/lake/ledger/spool-sweep.ts'
import type { Answered } from '../../src/sources/metrics/answers.ts'
import { batchBytes } from '../../src/sources/metrics/ask-all.ts'
import { commitBatch } from '../../src/sources/metrics/commit-batch.ts'
import { unwatched } from '../../src/base/stopwatch.ts'
import type { BatchContext } from '../../src/sources/metrics/convert-batch.ts'
import type { Ask } from '../../src/sources/metrics/plan.ts'
import { planOn } from '../../src/sources/metrics/prepare.ts'
import { type MetricsInput, withMetrics } from '../../src/sources/metrics/run.ts'
import { mega } from '../../src/base/option-kinds.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { keepMemory } from '../../src/lake/store/memory.ts'
import { end } from '../../src/base/time.ts'
import { finishRun } from '../../src/maintenance/upkeep/finish.ts'
import { mostMemory } from './memory.ts'

/*
 * Lakes of any size that the program itself made: bodies as a provider would send them, of a plan against what the
 * ledger holds, then batches, conversion, commits, merges and views as in a fetch. Only the network is left out. What a
 * series holds is a function of its name and of `t`, so a build that was killed goes on by planning again.
 */

const catalogue = loadCatalogue()
const isHourly = ({ since, until, intervals }: Endpoint): boolean => since && until && intervals.includes('1h')
const named = (prefix: string, n: number): string[] =>
  Array.from({ length: n }, (_, i) => `${prefix}${String(i).padStart(2, '0')}`)

/** The metric with most points, at ten minutes for many assets; a fiftieth of them came a day late. */
export const big = 'indicators/sopr_adjusted_pit'
/** Every endpoint with hourly points. */
export const paths = [...catalogue.endpoints.values()].filter(isHourly).map(({ path }) => path)
const tens = paths.filter((path) => path !== big && catalogue.endpoints.get(path)?.intervals.includes('10m') === true)
/**
 * What is held: of every hour, and of every ten minutes. `PITLAKE_SCALE_GROUPS=2` leaves the last one out, over the
 * same range.
 */
const all = [
  { paths, assets: named('A', 21), intervals: ['1h'] },
  { paths: [big], assets: named('A', 76), intervals: ['10m'] },
  { paths: tens, assets: named('A', 13), intervals: ['10m'] },
] as const
const groups = all.slice(0, Number(process.env['PITLAKE_SCALE_GROUPS'] ?? all.length))

function anHour(of: readonly (typeof all)[number][]): number {
  return of.reduce((sum, { paths: own, assets, intervals }) => {
    return sum + own.length * assets.length * (intervals[0] === '1h' ? 1 : 6)
  }, 0)
}

const hour = 3600
/** Where every lake ends: a larger one begins earlier. */
export const until = Date.UTC(2026, 0, 1) / 1000

/** The range of a lake of so many points, in Unix seconds: 500 million are ten years. */
export function rangeOf(points: number): { readonly since: number; readonly until: number } {
  return { since: until - Math.round(points / anHour(all)) * hour, until }
}

/** How many points such a lake really holds. */
export const heldOf = (points: number): number => Math.round(points / anHour(all)) * anHour(groups)

/** What building came to, kept beside the lake. */
interface Built {
  readonly points: number
  readonly seconds: number
  /** Seconds of the processor, the making of bodies included; that of it which the conversions and commits took. */
  readonly cpu: number
  readonly converting: number
  readonly megabytes: number
}

const noteOf = (root: string): string => `${root}.json`

/** What the build of a lake came to so far. */
export function builtAt(root: string): Built {
  const none: Built = { points: 0, seconds: 0, cpu: 0, converting: 0, megabytes: 0 }
  return existsSync(noteOf(root)) ? (JSON.parse(readFileSync(noteOf(root), 'utf8')) as Built) : none
}

/** Nine tenths at once, then the rest in top-ups with their merges; goes on where a killed one ended. */
export async function buildLake(root: string, points: number, topUps = 30): Promise<Built> {
  const { since } = rangeOf(points)
  const hours = (until - since) / hour
  for (let n = 0; n <= topUps; n++) {
    const left = Math.round(((topUps - n) * hours) / (10 * topUps))
    await fetchUntil(root, points, { since, hours: until - left * hour, tens: until - left * hour })
  }
  rmSync(`${root}-bodies`, { recursive: true })
  return builtAt(root)
}

/** Brings a lake up to these instants; gives how many points were new. */
export async function fetchUntil(
  root: string,
  points: number,
  to: { readonly since: number; readonly hours: number; readonly tens: number },
): Promise<number> {
  const now = Math.max(Math.max(to.hours, to.tens) + 2 * 86_400, behindAll(root))
  const env = { PITLAKE_METRICS_URL: 'http://127.0.0.1:9', PITLAKE_METRICS_KEY: 'key-of-the-bench', PITLAKE_DATA: root }
  const settings = resolveSettings({ flags: {}, env, cwd: dirname(root) })
  const input: MetricsInput = { settings, catalogue, now, maxRequests: null, providerMoved: false }
  const deps = depsAt(now)
  const purpose = { name: 'fetch', budget: null, onBatch: () => undefined } as const
  // Written over and over: ext4 looks at every inode that was freed in the last minutes before it makes a file.
  const bodies = `${root}-bodies`
  mkdirSync(bodies, { recursive: true })
  let added = 0
  await withMetrics(input, deps, purpose, async ({ run, tally }) => {
    const selections = groups.map(({ intervals, ...own }): Selection => {
      return { ...own, intervals: [...intervals], since: to.since, until: intervals[0] === '1h' ? to.hours : to.tens }
    })
    const plan = await planOn({ ...input, selections, gapsOnly: false }, run.ledger)
    await using spool = await openSpool(root, run.id, deps)
    using engine = await Engine.open(':memory:', { threads: 1, tempDirectory: spool.file('duckdb') })
    await engine.run('SET enable_external_file_cache = false')
    const provider = { metrics: 'sandbox:1', synthetic: true }
    const context: BatchContext = {
      run: run.id,
      ledger: run.ledger,
      spool,
      engine: async () => await Promise.resolve(engine),
      provider,
      settings: settings.metrics,
      differing: tally.differing,
      during: unwatched,
    }
    const { secrets } = settings
    const how = { job: 'fetch', catalogue, providerMoved: false, secrets, deps, onBeyond: () => undefined } as const
    if (plan.asks.length > 0) await run.begin({ ...plan.totals }, () => ({ points: added }))
    for (const batch of batches(plan.asks)) {
      const begun = timed()
      const answers = batch.map((ask, n) =>
        answerOf(ask, join(bodies, `${n}.json`), { run: run.id, n: asked + n, now }),
      )
      asked += batch.length
      const converting = timed()
      const { version } = await commitBatch(context, how, answers)
      added += version.points_added
      note(root, { points: version.points_added, since: begun, converting })
      if (process.env['PITLAKE_BENCH_TELL'] !== undefined) tellProgress(root, points)
    }
    return { value: undefined, stopped_by: null, error: null }
  })
  return added
}

/** A second behind what was committed: commits of a clock that stands before that all stand in its millisecond. */
function behindAll(root: string): number {
  using ledger = Ledger.asLeft(root)
  return Math.ceil((ledger?.head().committed_at ?? 0) / 1e6) + 1
}

let asked = 0

/** The world at an instant by which all is known, with the end that every fetch has. */
function depsAt(now: number) {
  const begun = performance.now()
  const elapsed = (): number => performance.now() - begun
  const deps = {
    now: () => now * 1000 + elapsed(),
    nowMicros: () => Math.floor(now * 1_000_000 + elapsed() * 1000),
    sleep: async (ms: number) => await setTimeout(ms),
    random: Math.random,
    holder: { pid: process.pid, host: hostname(), command: 'bench' },
    program: 'pitlake bench',
    signal: new AbortController().signal,
    proxy: {},
    onEvent: (): void => undefined,
  }
  const said = (text: string): never => {
    throw new Error(text)
  }
  return {
    ...deps,
    wait: deps.sleep,
    atEnd: async (done: Parameters<typeof finishRun>[0]) => {
      const since = timed()
      if (process.env['PITLAKE_SCALE_UNTOLD'] === undefined) await finishRun(done, { catalogue, deps, note: said })
      else {
        const { mergeSmallFiles } = await import('../../src/maintenance/upkeep/merge-jobs.ts')
        await mergeSmallFiles(done.ledger, { threads: 1, ...deps }, done.run)
      }
      note(done.ledger.root, { points: 0, since, converting: since })
    },
  }
}

/** What of the clock and of the processor had passed at an instant. */
interface Timed {
  readonly wall: number
  readonly cpu: NodeJS.CpuUsage
}

const timed = (): Timed => ({ wall: performance.now(), cpu: process.cpuUsage() })

function note(root: string, done: { points: number; since: Timed; converting: Timed }): void {
  const before = builtAt(root)
  const cpuOf = ({ cpu }: Timed): number => {
    const { user, system } = process.cpuUsage(cpu)
    return (user + system) / 1e6
  }
  const built: Built = {
    points: before.points + done.points,
    seconds: before.seconds + (performance.now() - done.since.wall) / 1000,
    cpu: before.cpu + cpuOf(done.since),
    converting: before.converting + cpuOf(done.converting),
    megabytes: Math.max(before.megabytes, mostMemory()),
  }
  mkdirSync(dirname(noteOf(root)), { recursive: true })
  writeFileSync(noteOf(root), JSON.stringify(built))
}

function tellProgress(root: string, points: number): void {
  const built = builtAt(root)
  const rate = (built.points / built.seconds / 1e6).toFixed(2)
  console.log(
    `${(built.points / 1e6).toFixed(1)} of ${points / 1e6} M points, ${rate} M points/s, ${built.megabytes} MB`,
  )
}

/** As many bytes at a time as a fetch commits. */
function* batches(asks: readonly Ask[]): Generator<Ask[]> {
  let batch: Ask[] = []
  let bytes = 0
  for (const ask of asks) {
    batch.push(ask)
    bytes += ask.points * 35
    if (bytes < batchBytes && batch.length < 2000) continue
    yield batch
    ;[batch, bytes] = [[], 0]
  }
  if (batch.length > 0) yield batch
}

/** A body in the spool as if it had been asked for. */
function answerOf(ask: Ask, file: string, { run, n, now }: { run: string; n: number; now: number }): Answered {
  const id = `${run}-${n}`
  const text = bodyOf(ask)
  writeFileSync(file, text)
  const answer = {
    status: 200,
    at: now * 1000,
    date: now,
    age: 0,
    requestMs: 1,
    etag: null,
    requestId: null,
    sandbox: '1',
  }
  const body = { kind: 'body', file, bytes: text.length, ...answer } as const
  const requested = {
    id,
    run,
    api: 'metrics',
    url: `http://127.0.0.1/${ask.series.id}`,
    at: body.at,
    attempts: 1,
  } as const
  const { window, series, credits } = ask
  const about = { series: series.id, since: window?.since ?? null, until: window?.until ?? null, credits }
  return { ask, request: requestRow(requested, body, about), body, coverage: [], again: false }
}

/** A value with two decimals for each interval, a slow wave and noise; of the big metric also when it was computed. */
function bodyOf({ series, interval, window }: Ask): string {
  if (window === null) throw new RangeError(`${series.id} takes no range`)
  const seed = [...series.id].reduce((sum, letter) => (Math.imul(sum, 31) + letter.charCodeAt(0)) | 0, 7)
  const step = end(0, interval)
  const told = series.metric === big
  const points: string[] = []
  for (let t = window.since; t < window.until; t += step) {
    const mixed = Math.imul((t / step) ^ seed, 2_654_435_761) >>> 8
    const cents = 5_000_000 + Math.floor(4_000_000 * Math.sin(t / 4e6 + seed)) + (mixed % 10_000)
    const low = cents % 100
    const late = mixed % 50 === 0 ? 86_400 : 60 + (mixed % 300)
    const computed = told ? `,"computed_at":${t + step + late}` : ''
    points.push(`{"t":${t},"v":${Math.floor(cents / 100)}.${low < 10 ? '0' : ''}${low}${computed}}`)
  }
  return `[${points.join(',')}]`
}

// Builds a lake, or brings one so many seconds further: `ROOT POINTS [HOURLY TENS]`.
if (process.argv[1] === import.meta.filename) {
  keepMemory(2 * 1024 * mega, 'the bench')
  const [root = '', points, hours, tens] = process.argv.slice(2)
  const size = Number(points)
  if (hours === undefined) console.log(JSON.stringify(await buildLake(root, size)))
  else {
    const to = { since: rangeOf(size).since, hours: until + Number(hours), tens: until + Number(tens) }
    console.log(JSON.stringify([{ added: await fetchUntil(root, size, to) }]))
  }
}
