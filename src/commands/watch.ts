import { hostname } from 'node:os'
import { givenKeys, type Settings } from '../config/settings.ts'
import { listen, listenAt } from '../door/listen.ts'
import { usage } from '../errors.ts'
import { priceOf } from '../metrics/plan.ts'
import { publish } from '../publish/publish.ts'
import { redact } from '../secrets/secrets.ts'
import { lockJob } from '../store/lock.ts'
import { refuseMirror } from '../store/marker.ts'
import { formatInstant, hour, type Instant, minute } from '../time.ts'
import type { NextPoint } from '../watch/due.ts'
import { type JobsInput, jobsOn } from '../watch/jobs.ts'
import { watch, type WatchDeps, type WatchEvent } from '../watch/watch.ts'
import { whole } from '../words/figures.ts'
import { readContext, selectionOptions, selectionsOf } from './context.ts'
import { openHooks, type OpenHooks } from './hooks.ts'
import { hasHooks } from './recorded.ts'
import { destinationNamed } from './publish.ts'
import { showsOf } from './shows.ts'
import { type Deps, talking } from './spec.ts'
import { besideWorld, lakeWorld, noProvider, openedLake, spareHeap } from './world.ts'

/** `watch`: keeps the lake fresh. */
export const watchCommand = talking({
  name: 'watch',
  ends: [3, 4, 6, 7],
  asks: true,
  options: {
    ...selectionOptions,
    '--credits-per-day N': 'spend at most so many credits a UTC day, other jobs included',
    '--reserve N': 'of these, leave so many to other jobs',
    '--publish DEST': 'bring published tables up to date when idle, hourly at most',
    '--listen ADDRESS': 'show page, /metrics and /healthz over HTTP',
    '--json': 'a JSON document a line for whatever happens',
  },
  details: `One process a lake (a second one: exit 7); no lock is held between polls, so that other jobs may work beside it. \`plan
--due\` lists what it waits for. SIGTERM or Ctrl-C ends it in good order: exit 0, or 4 where stored values differ upstream.
Where the credits do not reach for every poll, the coarser intervals come first, and the polls of the finer ones are
spread over the day. docs/watch.md has the rest.`,
  run: async (input, deps) => {
    spareHeap()
    const { settings, catalogue } = await readContext(input, deps)
    const root = settings.data
    await refuseMirror(root)
    const creditsPerDay = budgetOf(input.options)
    const { listen: address, publish: destination } = input.options
    const at = address === undefined ? null : listenAt(address, settings)
    const watches = watched(settings)
    const selections = watches.metrics ? await selectionsOf(input, { settings, catalogue }) : []
    const own = { settings, catalogue, selections, watches, publish: publisher(destination, deps, settings, catalogue) }
    const version = await openedLake(deps, root)
    const holder = {
      pid: process.pid,
      host: hostname(),
      command: 'pitlake watch',
      since: Math.floor(deps.now() * 1000),
    }
    await using _ = await lockJob(root, 'watch', holder)
    const shows = showsOf({ settings, catalogue, creditsPerDay }, deps)
    await using door = at === null ? null : await listen(at, settings, shows)
    if (door !== null) deps.stderr(`listening at ${door.url}\n`)
    const jobs = jobsOn(own, (command) => ({ ...besideWorld(deps), ...lakeWorld(deps, command) }))
    const { credits, weekStart } = settings.metrics
    const log = input.options.json ? jsonLines(deps) : lines(deps)
    const say = (words: string): void => log({ kind: 'hook', at: Math.floor(deps.now() / 1000), words })
    const hooks = hasHooks(settings) ? await openHooks({ settings, catalogue }, 'watch', deps, say) : null
    const price = ({ series }: NextPoint): number => priceOf(credits, series.asset)
    const world = { now: deps.now, sleep: deps.sleep, signal: deps.signal, log }
    const heard = hooks === null ? world : hooked(world, hooks, version)
    const code = await watch({ weekStart, price, creditsPerDay }, jobs, heard)
    await hooks?.idle()
    return code
  },
})

/** The same world, whose hooks hear of each turn that left a newer version and of the end, and are asked about each minute. */
function hooked(world: WatchDeps, hooks: OpenHooks, version: number): WatchDeps {
  let seen = version
  let looked = Number.NEGATIVE_INFINITY
  const look = (): void => {
    looked = world.now()
    hooks.look()
  }
  const log = (event: WatchEvent): void => {
    world.log(event)
    const isTurn = event.kind === 'metrics' || event.kind === 'registry'
    if (event.kind !== 'ended' && !(isTurn && event.version > seen)) return
    if (isTurn) seen = event.version
    look()
    hooks.done({ event: plainly(event) })
  }
  const sleep: WatchDeps['sleep'] = async (ms, signal) => {
    if (Math.abs(world.now() - looked) >= minute * 1000) look()
    await world.sleep(ms, signal)
  }
  return { ...world, log, sleep }
}

interface Budgeting {
  readonly creditsPerDay: number | null | undefined
  readonly reserve: number | undefined
}

function budgetOf({ creditsPerDay: credits = null, reserve = 0 }: Budgeting): number | null {
  if (reserve > 0 && credits === null) throw usage('--reserve', { expected: '--credits-per-day with it', got: 'none' })
  if (credits !== null && reserve >= credits)
    throw usage('--reserve', { expected: `less than the ${credits} credits of a day`, got: String(reserve) })
  return credits === null ? null : credits - reserve
}

/** The APIs that are set up; without any there is nothing to watch. */
function watched({ metrics, registry }: Settings): JobsInput['watches'] {
  const watches = { metrics: metrics.url !== null, registry: registry.url !== null }
  if (watches.metrics || watches.registry) return watches
  throw noProvider('pitlake watch')
}

/** Publishes to the named destination, at most hourly; null where none is named. */
function publisher(
  name: string | undefined,
  deps: Deps,
  { data: root }: Settings,
  catalogue: JobsInput['catalogue'],
): JobsInput['publish'] {
  if (name === undefined) return null
  const to = destinationNamed(name, deps)
  let last = Number.NEGATIVE_INFINITY
  return async () => {
    if (deps.signal.aborted || Math.abs(deps.now() - last) < hour * 1000) return
    await publish({ root, catalogue, to }, lakeWorld(deps, 'watch'))
    last = deps.now()
  }
}

/** What a watch says: what happens, and hooks that failed. */
type WatchNews = WatchEvent | { readonly kind: 'hook'; readonly at: Instant; readonly words: string }

/** Each event as a line of JSON. */
function jsonLines(deps: Deps): (event: WatchNews) => void {
  return (event) => deps.stdout(`${redact(JSON.stringify(plainly(event)), givenKeys(deps.env))}\n`)
}

/** An event under the names that scripts rely on, its instants as text. */
function plainly(event: WatchNews): object {
  const plain = Object.entries(event).map(([key, value]): [string, unknown] => [
    key,
    instants.has(key) && typeof value === 'number' ? formatInstant(value) : value,
  ])
  return Object.fromEntries(plain)
}

const instants: ReadonlySet<string> = new Set(['at', 'until', 'next'])

/** Each event as a line for people. */
function lines(deps: Deps): (event: WatchNews) => void {
  return (event) => {
    const [part, words] = wordsOf(event)
    deps.stdout(redact(`${formatInstant(event.at)}  ${part.padEnd(8)}  ${words}\n`, givenKeys(deps.env)))
  }
}

function wordsOf(event: WatchNews): readonly [part: string, words: string] {
  switch (event.kind) {
    case 'metrics': {
      const { series, brought, requests, version, next, error } = event
      const then = next === null ? '' : `; next ${formatInstant(next).slice(11, 16)}`
      const came = `${whole(brought)} new points, ${whole(series)} series due, ${whole(requests)} requests`
      return ['metrics', `${came}, version ${version}${then}${error === null ? '' : `; ${error}`}`]
    }
    case 'registry': {
      const { brought, requests, version, error } = event
      const came = `${whole(brought)} events, ${whole(requests)} requests`
      return ['registry', `${came}, version ${version}${error === null ? '' : `; ${error}`}`]
    }
    case 'views':
      return ['views', `of version ${event.version}`]
    case 'trouble':
      return [event.of === 'tidy' ? 'views' : event.of, `rests until ${formatInstant(event.until)}: ${event.words}`]
    case 'clock':
      return ['clock', `went back ${whole(event.back)} s: everything is planned anew`]
    case 'hook':
      return ['hook', event.words]
    case 'ended':
      return ['ended', event.code === 0 ? 'all that was brought is committed' : `with exit code ${event.code}`]
    default:
      return event satisfies never
  }
}
