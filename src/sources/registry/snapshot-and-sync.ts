import { heldBackEnd } from '../../lake/ledger/run-queries.ts'
import { NamedEndError } from '../../lake/ledger/job.ts'
import { eventTaker, Lines } from './poll-lines.ts'
import { readHeld, readLastEvents } from './status.ts'
import type { RegistryChange, Resources } from './bodies.ts'
import { canBeAsked } from './json.ts'
import { newPoll, observeState, type Poll, withMissing } from './history.ts'
import { redact } from '../../base/secrets.ts'
import {
  connectRegistry,
  type RegistryDeps,
  type RegistryInput,
  type RegistryRun,
  type RegistrySummary,
  verdictOf,
} from './run.ts'
import { readFeed, readWhole, stop, type Stopped, type FeedReading, type WholeRegistry } from './reading.ts'
import { type CommittedPoll, commitPoll } from './commit.ts'
import { providerOf } from '../../lake/ledger/provider.ts'
import { type FinishedPoll, passingFacts, type PollContext, registryState } from './staging.ts'
import { endedBy } from '../http/request-rows.ts'

/** Takes a dated snapshot of the whole registry. */
export async function registrySnapshot(input: RegistryInput, deps: RegistryDeps): Promise<RegistrySummary> {
  return await withRegistry('registry snapshot', input, deps, async (run) => await takeSnapshot(run, false))
}

/** Runs a registry job, one at a time on a lake; the summary states why it stopped before the end. */
async function withRegistry(
  name: string,
  input: RegistryInput,
  deps: RegistryDeps,
  work: (run: RegistryRun) => Promise<Stopped | null>,
): Promise<RegistrySummary> {
  return await connectRegistry({ name, lock: 'registry' }, input, deps, async (run) => {
    await begin(run)
    const stopped = await work(run)
    const { epoch, records } = registryState(run.ledger)
    const ended = { requests: run.connection.sent(), epoch, records, ...endedBy(stopped) }
    const value: RegistrySummary = { run: run.id, ...run.tally, ...ended }
    return { value, stopped_by: value.stopped_by, error: verdictOf(value) }
  })
}

async function begin({ connection, tally, job, ledger, begin: beginRun }: RegistryRun): Promise<void> {
  const follows = job === 'registry sync' && registryState(ledger).cursor !== null
  const plan = { begins_with: follows ? 'feed' : 'snapshot' }
  connection.log.note('planned', plan)
  await beginRun(plan, () => {
    const { events, pages, opened, updated, closed } = tally
    return { requests: connection.sent(), events, pages, opened, updated, closed }
  })
}

/** Follows the change feed to its tail; without a cursor, or in a new epoch, from a snapshot on. */
export async function registrySync(input: RegistryInput, deps: RegistryDeps): Promise<RegistrySummary> {
  return await withRegistry('registry sync', input, deps, followFeed)
}

function add({ tally, tell }: RegistryRun, { version: made, date, change, findings, newKeys }: CommittedPoll): void {
  tally.version = made.version
  tally.files_added += made.files_added
  if (!made.made) return
  tally.snapshot_date = date ?? tally.snapshot_date
  tally.opened += change.opened
  tally.updated += change.updated
  tally.closed += change.closed
  tally.findings += findings.length
  tally.schema_changes += newKeys.filter(({ initial }) => !initial).length
  for (const { kind, resource, id, detail } of findings.slice(0, 20))
    tell({ kind: 'note', text: `${kind}: ${resource} ${id}: ${detail}` })
  tell({ kind: 'committed', version: made.version, files: made.files_added })
}

/** Follows the feed from the stored cursor; a refused cursor means a new epoch, which begins with a snapshot. */
async function followFeed(run: RegistryRun): Promise<Stopped | null> {
  for (let epochs = 0; ; epochs++) {
    const { cursor } = registryState(run.ledger)
    if (cursor !== null) {
      const feed = isUsable(run, cursor) ? await takeFeed(run, cursor) : null
      if (feed && !feed.invalid) return feed.stopped
      run.tally.new_epoch = true
      if (epochs >= 2) return stop('failed', 'every cursor is refused at once')
      run.tell({
        kind: 'note',
        text: 'the feed has begun a new epoch: a snapshot shows what changed while it could not be followed',
      })
    }
    const stopped = await takeSnapshot(run, cursor !== null)
    if (stopped) return stopped
  }
}

async function takeFeed(run: RegistryRun, cursor: string): Promise<FeedReading> {
  const { ledger, withEngine, input, connection } = run
  const { resources } = input.catalogue
  const state = registryState(ledger)
  const poll = newPoll(await withEngine(async (engine) => await readHeld(ledger, engine, [...resources.keys()])))
  using lines = new Lines(connection.spool)
  const feed = await readEvents(run, { poll, lines, cursor })
  if (feed.invalid || (feed.pages === 0 && feed.stopped)) return feed
  const passing = feed.stopped ? {} : { polled: Math.floor(run.deps.now()) }
  const { as_of, raws, cursor: next } = feed
  const frame = {
    poll,
    lines,
    as_of,
    raws,
    cursor: next,
    epoch: state.epoch,
    wholeSource: null,
    disagreeing: [],
    passing,
  }
  add(run, await commitPoll(contextOf(run, 'registry sync'), { ...takeRequests(run), ...frame }))
  return feed
}

/** Reads the feed into the poll; events that repeat the last one of their entity leave no line. */
async function readEvents(
  run: RegistryRun,
  { poll, lines, cursor }: { poll: Poll; lines: Lines; cursor: string },
): Promise<FeedReading> {
  const { ledger, withEngine, asking, input, tally } = run
  const last = await withEngine(async (engine) => await readLastEvents(ledger, engine))
  const take = eventTaker(poll, lines, last)
  const onEvent = (event: RegistryChange): boolean => {
    const { type, resource } = event
    const news = take(event)
    if (news && resource === null) tally.unknown[type] = (tally.unknown[type] ?? 0) + 1
    return news
  }
  const feed = await readFeed(asking, input.catalogue.resources, cursor, input.settings.registry.pageLimit, onEvent)
  tally.events += feed.events
  tally.pages += feed.pages
  for (const [type, count] of Object.entries(tally.unknown))
    run.tell({ kind: 'note', text: `${count} events of the unknown type ${type} are kept as received` })
  return feed
}

/**
 * Whether a stored cursor can be sent back; if not, only a snapshot helps. An address must not contain a key, even one
 * that was set after the cursor was received. A rebuilt journal has the replacement character in place of an ill-formed
 * cursor.
 */
export function isUsable({ input }: RegistryRun, cursor: string): boolean {
  return canBeAsked(redact(cursor, input.settings.secrets)) && !cursor.includes('\uFFFD')
}

async function takeSnapshot(run: RegistryRun, wasRefused: boolean): Promise<Stopped | null> {
  const { ledger, withEngine, asking, input, connection, tally } = run
  const { resources } = input.catalogue
  const reading = await readWhole(asking, resources, input.settings.registry.pageLimit)
  if (reading.kind === 'stopped') return reading
  if (reading.limited !== null)
    run.tell({
      kind: 'note',
      text: `the snapshot is refused (${reading.limited}): the lists were read instead`,
    })
  const state = registryState(ledger)
  const newEpoch = wasRefused || (state.cursor !== null && !isUsable(run, state.cursor))
  const poll = newPoll(await withEngine(async (engine) => await readHeld(ledger, engine, [...resources.keys()])))
  const records = input.acceptShrink ? withMissing(reading.records, resources) : reading.records
  const first = state.last === null
  observeState(poll, { records, source: reading.source, first, inferred: newEpoch })
  await holdBack(run, reading, poll, resources)
  using lines = new Lines(connection.spool)
  const storedCursor = newEpoch ? null : state.cursor
  let cursor = storedCursor ?? reading.cursor
  let feed: FeedReading | null = null
  if (reading.source === 'lists') {
    feed = await readEvents(run, { poll, lines, cursor: reading.cursor })
    if (feed.stopped) return feed.stopped
    if (storedCursor === null) cursor = feed.cursor
  }
  const { as_of, source, disagreeing } = reading
  const raws = [...reading.raws, ...(feed?.raws ?? [])]
  const epoch = state.epoch + (newEpoch || first ? 1 : 0)
  const frame = { poll, lines, as_of, raws, cursor, epoch, wholeSource: source, disagreeing, passing: {} }
  const done = await commitPoll(contextOf(run, 'registry snapshot'), { ...takeRequests(run), ...frame })
  tally.source = source
  add(run, done)
  return null
}

/** Builds the context for committing a poll of the run. */
function contextOf(run: RegistryRun, job: string): PollContext {
  const { id, ledger, withEngine, connection, deps, input } = run
  const { rawDays } = input.settings.registry
  const provider = connection.provider() ?? providerOf(ledger)
  const { catalogue, providerMoved } = input
  const about = { run: id, job, provider, providerMoved, rawDays, deps, resources: catalogue.resources }
  return { ledger, withEngine, spool: connection.spool, ...about }
}

/** Takes the requests of the run so far, for the commit that names them. */
function takeRequests({ asking, ledger }: RegistryRun): Pick<FinishedPoll, 'requests' | 'tags'> {
  return { requests: asking.requests.splice(0), tags: passingFacts(ledger).tags }
}

/** Number of records that one resource may lose, whatever their share. */
const alwaysAllowed = 10

/** Holds back a snapshot that loses a resource, or too much of it, until a person decides: nothing of it is applied. */
async function holdBack(run: RegistryRun, snapshot: WholeRegistry, poll: Poll, resources: Resources): Promise<void> {
  const { shrinkLimit } = run.input.settings.registry
  if (run.input.acceptShrink) return
  const losses: string[] = []
  let had = 0
  let lostEntities = 0
  for (const name of resources.keys()) {
    const openEntities = [...(poll.storedEntities.get(name)?.values() ?? [])].filter(({ open }) => open)
    if (openEntities.length === 0) continue
    const missing = !snapshot.records.has(name)
    const outlooks = poll.outlook.get(name)
    const goneEntities = missing
      ? openEntities.length
      : openEntities.filter(({ id }) => outlooks?.get(id)?.incoming === null).length
    had += openEntities.length
    lostEntities += goneEntities
    const much = goneEntities > shrinkLimit * openEntities.length && goneEntities > alwaysAllowed
    if (missing || goneEntities === openEntities.length || much)
      losses.push(`${name} ${openEntities.length} -> ${missing ? 'missing' : openEntities.length - goneEntities}`)
  }
  if (losses.length === 0 && lostEntities <= Math.max(shrinkLimit * had, alwaysAllowed)) return
  const request = run.asking.requests.at(-1)
  const raw = snapshot.raws[0]
  const got =
    losses.length === 0
      ? `${lostEntities} of ${had} records gone`
      : `${losses.join(', ')} (${lostEntities} of ${had} records gone)`
  if (request && raw && !raw.isKnown) await run.asking.quarantine(raw, request, `held back: ${got}`)
  const next = 'nothing was applied; if this is right, run it again with --accept-shrink'
  const expected = `at most ${Math.round(shrinkLimit * 100)} % of the records gone`
  throw new NamedEndError(heldBackEnd, 'integrity', { subject: 'the snapshot is held back', expected, got, next })
}
