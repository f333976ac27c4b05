import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { givenKeys, type Settings } from '../config/settings.ts'
import { usage } from '../errors.ts'
import { priceOf } from '../metrics/plan.ts'
import { destinationOf } from '../publish/open.ts'
import { publish } from '../publish/publish.ts'
import { redact } from '../secrets/secrets.ts'
import { realDisk } from '../store/disk.ts'
import { lockJob } from '../store/lock.ts'
import { refuseMirror } from '../store/marker.ts'
import { formatInstant, hour } from '../time.ts'
import { jobsOn, type JobsInput } from '../watch/jobs.ts'
import { watch, type WatchEvent } from '../watch/watch.ts'
import { countOption, readContext, selectionOptions, selectionsOf } from './context.ts'
import { number } from './print.ts'
import { type CommandSpec, type Deps, flagOption, type Input, textOption } from './spec.ts'
import { besideWorld, lakeWorld, openedLake, webOf } from './world.ts'

const told: ReadonlySet<string> = new Set(['--max-requests N', '--gaps'])

/** `watch`: keeps the lake fresh. */
export const watchCommand: CommandSpec = {
  name: 'watch',
  ends: [4, 6, 7],
  summary: 'Keep the lake fresh: ask each series when its next point is due, the registry hourly, until stopped.',
  asks: true,
  options: [
    ...selectionOptions.filter(({ flags }) => !told.has(flags)),
    { flags: '--credits-per-day N', about: 'spend at most so many credits a UTC day, other jobs included' },
    { flags: '--reserve N', about: 'of these, leave so many to other jobs' },
    { flags: '--publish DEST', about: 'bring published tables up to date when idle, hourly at most' },
    { flags: '--json', about: 'a JSON document a line for whatever happens' },
  ],
  details: `One process a lake (a second one: exit 7); no lock is held between polls, so that other jobs may work beside it. \`plan
--due\` lists what it waits for. SIGTERM or Ctrl-C ends it in good order: exit 0, or 4 where stored values differ upstream.
Where the credits do not reach for every poll, the coarser intervals come first, and the polls of the finer ones are
spread over the day. docs/watch.md has the rest.`,
  run: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    const root = settings.data
    await refuseMirror(root)
    const creditsPerDay = budgetOf(input)
    const watches = watched(settings)
    const selections = watches.metrics ? await selectionsOf(input, { settings, catalogue }) : []
    const own = { settings, catalogue, selections, watches, publish: publisher(input, deps, settings, catalogue) }
    await openedLake(deps, root)
    const holder = {
      pid: process.pid,
      host: hostname(),
      command: 'pitlake watch',
      since: Math.floor(deps.now() * 1000),
    }
    await using _ = await lockJob(root, 'watch', holder)
    const jobs = jobsOn(own, (command) => ({ ...besideWorld(deps), ...lakeWorld(deps, command) }))
    const { credits, weekStart } = settings.metrics
    return await watch({ weekStart, price: ({ series }) => priceOf(credits, series.asset), creditsPerDay }, jobs, {
      now: deps.now,
      sleep: deps.sleep,
      signal: deps.signal,
      log: flagOption(input, 'json') ? jsonLines(deps) : lines(deps),
    })
  },
}

function budgetOf(input: Input): number | null {
  const credits = countOption(input, 'creditsPerDay') ?? null
  const reserve = countOption(input, 'reserve') ?? 0
  if (reserve > 0 && credits === null) throw usage('--reserve', { expected: '--credits-per-day with it', got: 'none' })
  if (credits !== null && reserve >= credits)
    throw usage('--reserve', { expected: `less than the ${credits} credits of a day`, got: String(reserve) })
  return credits === null ? null : credits - reserve
}

/** The APIs that are set up; without any there is nothing to watch. */
function watched({ metrics, registry }: Settings): JobsInput['watches'] {
  const watches = { metrics: metrics.url !== null, registry: registry.url !== null }
  if (watches.metrics || watches.registry) return watches
  throw usage('pitlake watch', {
    expected: 'a provider in the environment',
    got: 'none',
    next: 'set PITLAKE_METRICS_URL and PITLAKE_METRICS_KEY, or those of the registry',
  })
}

/** Publishes to the named destination, at most hourly; null where none is named. */
function publisher(
  input: Input,
  deps: Deps,
  { data: root }: Settings,
  catalogue: JobsInput['catalogue'],
): JobsInput['publish'] {
  const name = textOption(input, 'publish')
  if (name === undefined) return null
  const reach = { disk: realDisk, mark: randomUUID().slice(0, 13), cwd: deps.cwd, web: webOf(deps) }
  const to = destinationOf(name, reach)
  let last = Number.NEGATIVE_INFINITY
  return async () => {
    if (deps.signal.aborted || Math.abs(deps.now() - last) < hour * 1000) return
    await publish({ root, catalogue, to }, lakeWorld(deps, 'watch'))
    last = deps.now()
  }
}

function jsonLines(deps: Deps): (event: WatchEvent) => void {
  const plain = (key: string, value: unknown): unknown =>
    instants.has(key) && typeof value === 'number' ? formatInstant(value) : value
  return (event) => deps.stdout(`${redact(JSON.stringify(event, plain), givenKeys(deps.env))}\n`)
}

const instants: ReadonlySet<string> = new Set(['at', 'until', 'next'])

function lines(deps: Deps): (event: WatchEvent) => void {
  return (event) => {
    const [part, words] = wordsOf(event)
    deps.stdout(redact(`${formatInstant(event.at)}  ${part.padEnd(8)}  ${words}\n`, givenKeys(deps.env)))
  }
}

function wordsOf(event: WatchEvent): readonly [part: string, words: string] {
  switch (event.kind) {
    case 'metrics': {
      const { series, brought, requests, version, next, error } = event
      const then = next === null ? '' : `; next ${formatInstant(next).slice(11, 16)}`
      const came = `${number(brought)} new points, ${number(series)} series due, ${number(requests)} requests`
      return ['metrics', `${came}, version ${version}${then}${error === null ? '' : `; ${error}`}`]
    }
    case 'registry': {
      const { brought, requests, version, error } = event
      const came = `${number(brought)} events, ${number(requests)} requests`
      return ['registry', `${came}, version ${version}${error === null ? '' : `; ${error}`}`]
    }
    case 'views':
      return ['views', `of version ${event.version}`]
    case 'trouble':
      return [event.of === 'tidy' ? 'views' : event.of, `rests until ${formatInstant(event.until)}: ${event.words}`]
    case 'clock':
      return ['clock', `went back ${number(event.back)} s: everything is planned anew`]
    case 'ended':
      return ['ended', event.code === 0 ? 'all that was brought is committed' : `with exit code ${event.code}`]
    default:
      return event satisfies never
  }
}
