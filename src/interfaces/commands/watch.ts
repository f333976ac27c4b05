import { hostname } from 'node:os'
import { givenKeys } from '../../catalog/settings.ts'
import { listen, listenAt } from '../server/listen.ts'
import { usage } from '../../base/errors.ts'
import { priceOf } from '../../sources/metrics/plan.ts'
import { selectedPlaceholdersNow, unmappedError } from '../../sources/metrics/unmapped.ts'
import { publish } from '../../maintenance/publish/publish.ts'
import { redact } from '../../base/secrets.ts'
import { lockJob } from '../../lake/store/lock.ts'
import { refuseMirror } from '../../lake/store/marker.ts'
import { formatInstant, hour, type Instant, minute } from '../../base/time.ts'
import type { NextPoint } from '../../maintenance/watch/next-points.ts'
import { jobsOn, type PublishJob } from '../../maintenance/watch/jobs.ts'
import { watch, type WatchDeps, type WatchEvent, type WatchSleep } from '../../maintenance/watch/watch.ts'
import { formatCount, several } from '../../base/figures.ts'
import { instantNow, readContext, selectionOptions, selectionsOf } from '../cli/context.ts'
import { followingFeatures } from './follow.ts'
import { type JobHooks, openHooks } from './hooks.ts'
import { hasHooks } from './frame.ts'
import { destinationNamed } from './copies.ts'
import { showsOf } from './status.ts'
import { type Call, talking } from '../cli/spec.ts'
import { besideWorld, lakeWorld, noProvider, openedLake, spareHeap } from '../cli/world.ts'

export const watchCommand = talking({
  viewsAfter: true,
  asks: true,
  options: {
    ...selectionOptions,
    '--credits-per-day N': 'most credits of a UTC day, of all jobs together',
    '--reserve N': 'credits of these that watch leaves to other jobs',
    '--publish DEST': 'update published tables when idle, at most once an hour',
    '--listen ADDRESS': 'show page, /metrics and /healthz over HTTP',
    '--json': 'print a JSON document on a line for each event',
  },
  details: `Run one watch for each lake; a second one ends with exit code 7. Between requests watch holds no lock, so other jobs can run.
\`plan --due\` lists the points that watch waits for. SIGTERM or Ctrl-C ends it with exit code 0, or 4 if stored values differ at the
provider.

If the credits of a day are not enough for every request, coarser intervals come first, and requests for finer ones are spread over
the day. docs/how-to/fetch-and-schedule.md describes the details.`,
  run: async (typed) => {
    spareHeap()
    const call = await readContext(typed)
    const { settings, catalogue, options, now, sleep, signal, stdout, stderr, env } = call
    await refuseMirror(settings.data)
    const creditsPerDay = budgetOf(options)
    const at = options.listen === undefined ? null : listenAt(options.listen, settings)
    const watches = { metrics: settings.metrics.url !== null, registry: settings.registry.url !== null }
    if (!watches.metrics && !watches.registry) throw noProvider('pitlake watch')
    const selections = watches.metrics ? await selectionsOf(call) : []
    const version = await openedLake(call)
    const since = Math.floor(now() * 1000)
    const holder = { pid: process.pid, host: hostname(), command: 'pitlake watch', since }
    await using _ = await lockJob(settings.data, 'watch', holder)
    await using door = at === null ? null : await listen(at, settings, showsOf(call, creditsPerDay))
    if (door !== null) stderr(`listening at ${door.url}\n`)
    const tell = (kind: 'features' | 'hook') => (words: string) => log({ kind, at: instantNow(call), words })
    const features = catalogue.features.size === 0 ? null : followingFeatures(call, tell('features'))
    const jobsInput = { settings, catalogue, selections, watches, features, publish: publisher(call, options.publish) }
    const jobs = jobsOn(jobsInput, (command) => ({ ...besideWorld(call), ...lakeWorld(call, command) }))
    const { credits, weekStart } = settings.metrics
    const text = (event: WatchNews): string => (options.json ? JSON.stringify(plainly(event)) : lineOf(event))
    const log = (event: WatchNews): void => stdout(redact(`${text(event)}\n`, givenKeys(env)))
    const missing = unmappedError(await selectedPlaceholdersNow({ settings, catalogue, selections }))
    if (missing !== null) log({ kind: 'unmapped', at: instantNow(call), words: missing.message })
    const hooks = hasHooks(settings) ? await openHooks(call, 'watch', tell('hook')) : null
    const price = ({ series }: NextPoint): number => priceOf(credits, series.asset)
    const world = { now, sleep, signal, log }
    const code = await watch({ weekStart, price, creditsPerDay }, jobs, hooks ? hooked(world, hooks, version) : world)
    await hooks?.idle()
    return code
  },
})

/**
 * Returns resources whose hooks hear of each turn that left a newer version and of the end, and are checked each
 * minute.
 */
function hooked(world: WatchDeps, hooks: JobHooks, version: number): WatchDeps {
  let lastVersion = version
  let looked = Number.NEGATIVE_INFINITY
  const look = (): void => {
    looked = world.now()
    hooks.look()
  }
  const log = (event: WatchEvent): void => {
    world.log(event)
    const isTurn = event.kind === 'metrics' || event.kind === 'registry'
    if (event.kind !== 'ended' && !(isTurn && event.version > lastVersion)) return
    if (isTurn) lastVersion = event.version
    look()
    hooks.done({ event: plainly(event) })
  }
  const sleep: WatchSleep = async (ms, signal) => {
    if (Math.abs(world.now() - looked) >= minute * 1000) look()
    await world.sleep(ms, signal)
  }
  return { ...world, log, sleep }
}

/** Options of the budget, in credits. */
type BudgetOptions = Readonly<Record<'creditsPerDay' | 'reserve', number | undefined>>

function budgetOf({ creditsPerDay: credits, reserve = 0 }: BudgetOptions): number | null {
  if (credits === undefined) {
    if (reserve > 0) throw usage('--reserve', { expected: '--credits-per-day with it', got: 'none' })
    return null
  }
  if (reserve < credits) return credits - reserve
  throw usage('--reserve', { expected: `less than the ${credits} credits of a day`, got: String(reserve) })
}

/** Publishes to the named destination, at most hourly; null if none is named. */
function publisher(call: Call, name: string | undefined): PublishJob | null {
  if (name === undefined) return null
  const { catalogue, now, signal } = call
  const { data: root } = call.settings
  const to = destinationNamed(name, call)
  let last = Number.NEGATIVE_INFINITY
  return async () => {
    if (signal.aborted || Math.abs(now() - last) < hour * 1000) return
    await publish({ root, catalogue, to }, lakeWorld(call, 'watch'))
    last = now()
  }
}

/** News of a watch: events, the state of features, hooks that failed, and what is selected but never requested. */
type WatchNews =
  | WatchEvent
  | { readonly kind: 'features' | 'hook' | 'unmapped'; readonly at: Instant; readonly words: string }

/** Converts an event to the names on which scripts depend, its instants as text. */
function plainly(event: WatchNews): object {
  const text = (key: string, value: unknown): unknown =>
    instants.has(key) && typeof value === 'number' ? formatInstant(value) : value
  return Object.fromEntries(Object.entries(event).map(([key, value]) => [key, text(key, value)]))
}

const instants: ReadonlySet<string> = new Set(['at', 'until', 'next'])

/** Formats an event as a line for people. */
function lineOf(event: WatchNews): string {
  const [part, words] = wordsOf(event)
  return `${formatInstant(event.at)}  ${part.padEnd(8)}  ${words}`
}

function wordsOf(event: WatchNews): readonly [part: string, words: string] {
  switch (event.kind) {
    case 'metrics':
    case 'registry': {
      const { kind, brought, requests, version, error } = event
      const news = kind === 'metrics' ? `new points, ${formatCount(event.series)} series due` : 'events'
      const next = kind === 'metrics' && event.next !== null ? `; next ${formatInstant(event.next).slice(11, 16)}` : ''
      const then = `${next}${error === null ? '' : `; ${error}`}`
      return [kind, `${formatCount(brought)} ${news}, ${several(requests, 'request')}, version ${version}${then}`]
    }
    case 'views':
      return ['views', `of version ${event.version}`]
    case 'trouble':
      return [event.of === 'tidy' ? 'views' : event.of, `rests until ${formatInstant(event.until)}: ${event.words}`]
    case 'clock':
      return ['clock', `went back ${formatCount(event.back)} s: everything is planned again`]
    case 'features':
    case 'hook':
    case 'unmapped':
      return [event.kind, event.words]
    case 'ended':
      return ['ended', event.code === 0 ? 'everything received is committed' : `with exit code ${event.code}`]
    default:
      return event satisfies never
  }
}
