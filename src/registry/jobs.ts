import { LakeError } from '../errors.ts'
import { Lines } from './lines.ts'
import { readHeld, readLastEvents } from './held.ts'
import { canBeAsked, type FeedEvent, type Resources } from './bodies.ts'
import { newPoll, observeState, type Poll } from './history.ts'
import { redact } from '../secrets/secrets.ts'
import { type RegistryBench, type RegistryDeps, type RegistryInput, withRegistry } from './frame.ts'
import type { Stopped } from './asking.ts'
import { type Committed, commitPoll } from './commit.ts'
import { quarantineBody } from '../store/quarantine.ts'
import { eventTaker, withMissing } from './taking.ts'
import { type FeedRead, readFeed, readWhole, type Whole } from './reading.ts'
import { registryState, softFacts } from './state.ts'

/** What scripts read of a registry run; names are relied on. */
export interface RegistrySummary {
  readonly run: string
  readonly version: number
  readonly requests: number
  /** What the snapshot of this run was put together from; null without one. */
  readonly source: 'snapshot' | 'lists' | null
  /** The date of the snapshot that was added; null when it added nothing. */
  readonly snapshot_date: string | null
  readonly events: number
  readonly pages: number
  /** Events of types that this program does not know, by type. */
  readonly unknown: Readonly<Record<string, number>>
  readonly opened: number
  readonly updated: number
  readonly closed: number
  readonly files_added: number
  readonly findings: number
  readonly schema_changes: number
  readonly epoch: number
  readonly new_epoch: boolean
  readonly records: Readonly<Record<string, number>>
  readonly stopped_by: string | null
  /** When a spent quota comes back, Unix milliseconds. */
  readonly resume_at: number | null
  readonly words: string | null
}

/** Takes a dated snapshot of the whole registry. */
export async function registrySnapshot(input: RegistryInput, deps: RegistryDeps): Promise<RegistrySummary> {
  return await withRegistry('registry snapshot', input, deps, async (bench) => {
    const tally = newTally(bench)
    const stopped = await takeSnapshot(bench, tally, false)
    return { value: summaryOf(bench, tally, stopped), stopped }
  })
}

/** Follows the change feed to its tail; without a cursor, or in a new epoch, from a snapshot on. */
export async function registrySync(input: RegistryInput, deps: RegistryDeps): Promise<RegistrySummary> {
  return await withRegistry('registry sync', input, deps, async (bench) => {
    const tally = newTally(bench)
    const stopped = await followFeed(bench, tally)
    return { value: summaryOf(bench, tally, stopped), stopped }
  })
}

interface Tally {
  version: number
  source: 'snapshot' | 'lists' | null
  date: string | null
  events: number
  pages: number
  readonly unknown: Record<string, number>
  opened: number
  updated: number
  closed: number
  files: number
  findings: number
  schemaChanges: number
  newEpoch: boolean
}

function newTally({ ledger }: RegistryBench): Tally {
  return {
    version: ledger.head().version,
    source: null,
    date: null,
    events: 0,
    pages: 0,
    unknown: Object.create(null) as Tally['unknown'],
    opened: 0,
    updated: 0,
    closed: 0,
    files: 0,
    findings: 0,
    schemaChanges: 0,
    newEpoch: false,
  }
}

function summaryOf(bench: RegistryBench, tally: Tally, stopped: Stopped | null): RegistrySummary {
  const { epoch, records } = registryState(bench.ledger)
  return {
    run: bench.run,
    version: tally.version,
    requests: bench.asking.asker.sent(),
    source: tally.source,
    snapshot_date: tally.date,
    events: tally.events,
    pages: tally.pages,
    unknown: tally.unknown,
    opened: tally.opened,
    updated: tally.updated,
    closed: tally.closed,
    files_added: tally.files,
    findings: tally.findings,
    schema_changes: tally.schemaChanges,
    epoch,
    new_epoch: tally.newEpoch,
    records,
    stopped_by: stopped?.by ?? null,
    resume_at: stopped?.until ?? null,
    words: stopped?.words ?? null,
  }
}

function add(bench: RegistryBench, tally: Tally, done: Committed): void {
  const { version, files_added, made } = done.version
  tally.version = version
  tally.files += files_added
  if (!made) return
  tally.date = done.date ?? tally.date
  tally.opened += done.opened
  tally.updated += done.updated
  tally.closed += done.closed
  tally.findings += done.findings.length
  tally.schemaChanges += done.newKeys
  for (const { kind, resource, id, detail } of done.findings.slice(0, 20))
    bench.deps.onEvent({ kind: 'note', text: `${kind}: ${resource} ${id}: ${detail}` })
  bench.deps.onEvent({ kind: 'committed', version, files: files_added })
}

/** The feed from the held cursor; a refused cursor means a new epoch, which begins with a snapshot. */
async function followFeed(bench: RegistryBench, tally: Tally): Promise<Stopped | null> {
  for (let epochs = 0; ; epochs++) {
    const { cursor } = registryState(bench.ledger)
    if (cursor !== null) {
      const feed = isUsable(bench, cursor) ? await takeFeed(bench, tally, cursor) : null
      if (feed && !feed.invalid) return feed.stopped
      tally.newEpoch = true
      if (epochs >= 2) return { kind: 'stopped', by: 'failed', until: null, words: 'every cursor is refused at once' }
      bench.deps.onEvent({
        kind: 'note',
        text: 'the feed has begun a new epoch: a snapshot shows what changed while it could not be followed',
      })
    }
    const stopped = await takeSnapshot(bench, tally, cursor !== null)
    if (stopped) return stopped
  }
}

async function takeFeed(bench: RegistryBench, tally: Tally, cursor: string): Promise<FeedRead> {
  const { ledger, withEngine, asking, input, spool } = bench
  const { resources } = input.catalogue
  const state = registryState(ledger)
  const poll = newPoll(await withEngine(async (engine) => await readHeld(ledger, engine, [...resources.keys()])))
  const lines = new Lines(spool)
  try {
    const feed = await readEvents(bench, tally, { poll, lines, cursor })
    if (feed.invalid || (feed.pages === 0 && feed.stopped)) return feed
    const soft = feed.stopped ? {} : { polled: Math.floor(bench.deps.now()) }
    const frame = { whole: null, disagreeing: [], tags: softFacts(ledger).tags } as const
    const { as_of, raws } = feed
    const requests = asking.requests.splice(0)
    const finished = { ...frame, poll, lines, as_of, raws, cursor: feed.cursor, epoch: state.epoch, requests, soft }
    add(bench, tally, await commitPoll(contextOf(bench, 'registry sync', resources), finished))
    return feed
  } finally {
    lines.close()
  }
}

/** Reads the feed into the poll; events that repeat the last one of their entity leave no line. */
async function readEvents(
  bench: RegistryBench,
  tally: Tally,
  { poll, lines, cursor }: { poll: Poll; lines: Lines; cursor: string },
): Promise<FeedRead> {
  const { ledger, withEngine, asking, input } = bench
  const last = await withEngine(async (engine) => await readLastEvents(ledger, engine))
  const take = eventTaker(poll, lines, last)
  const onEvent = (event: FeedEvent): boolean => {
    const { type, resource } = event
    const news = take(event)
    if (news && resource === null) tally.unknown[type] = (tally.unknown[type] ?? 0) + 1
    return news
  }
  const feed = await readFeed(asking, input.catalogue.resources, cursor, input.settings.registry.pageLimit, onEvent)
  tally.events += feed.events
  tally.pages += feed.pages
  for (const [type, count] of Object.entries(tally.unknown))
    bench.deps.onEvent({ kind: 'note', text: `${count} events of the unknown type ${type} are kept as received` })
  return feed
}

/**
 * Whether a held cursor can be sent back. An earlier program stored what a provider sent, even a key, which no address may
 * show, and half a character, of which the index made the replacement sign: then only a snapshot helps.
 */
function isUsable({ secrets }: RegistryBench, cursor: string): boolean {
  return canBeAsked(redact(cursor, secrets)) && !cursor.includes('\uFFFD')
}

async function takeSnapshot(bench: RegistryBench, tally: Tally, refused: boolean): Promise<Stopped | null> {
  const { ledger, withEngine, asking, input, spool } = bench
  const { resources } = input.catalogue
  const whole = await readWhole(asking, resources, input.settings.registry.pageLimit)
  if (whole.kind === 'stopped') return whole
  if (whole.limited !== null)
    bench.deps.onEvent({
      kind: 'note',
      text: `the snapshot is refused (${whole.limited}): the lists were read instead`,
    })
  const state = registryState(ledger)
  const newEpoch = refused || (state.cursor !== null && !isUsable(bench, state.cursor))
  const poll = newPoll(await withEngine(async (engine) => await readHeld(ledger, engine, [...resources.keys()])))
  const records = input.acceptShrink ? withMissing(whole.records, resources) : whole.records
  const first = state.last === null
  observeState(poll, { records, source: whole.source, first, inferred: newEpoch })
  await holdBack(bench, whole, poll, resources)
  const lines = new Lines(spool)
  try {
    const held = newEpoch ? null : state.cursor
    let cursor = held ?? whole.cursor ?? ''
    let feed: FeedRead | null = null
    if (whole.source === 'lists') {
      feed = await readEvents(bench, tally, { poll, lines, cursor: whole.cursor ?? '' })
      if (feed.stopped) return feed.stopped
      if (held === null) cursor = feed.cursor
    }
    const { as_of, source, disagreeing } = whole
    const tags = softFacts(ledger).tags
    const raws = [...whole.raws, ...(feed?.raws ?? [])]
    const epoch = state.epoch + (newEpoch || first ? 1 : 0)
    const requests = asking.requests.splice(0)
    const frame = { poll, lines, as_of, raws, cursor, epoch, disagreeing, requests, tags }
    const done = await commitPoll(contextOf(bench, 'registry snapshot', resources), {
      ...frame,
      whole: source,
      soft: {},
    })
    tally.source = source
    add(bench, tally, done)
    return null
  } finally {
    lines.close()
  }
}

function contextOf(bench: RegistryBench, job: string, resources: Resources): Parameters<typeof commitPoll>[0] {
  const { ledger, withEngine, spool, run, deps, input } = bench
  const frame = { providerMoved: input.providerMoved, rawDays: input.settings.registry.rawDays }
  return { ledger, withEngine, spool, resources, run, job, provider: bench.provider(), deps, ...frame }
}

/** One resource may lose so many records whatever their share. */
const alwaysAllowed = 10

/** A snapshot that loses a resource, or too much of it, waits for a person: nothing of it is applied. */
async function holdBack(bench: RegistryBench, whole: Whole, poll: Poll, resources: Resources): Promise<void> {
  const { shrinkLimit } = bench.input.settings.registry
  if (bench.input.acceptShrink) return
  const losses: string[] = []
  let [had, lost] = [0, 0]
  for (const name of resources.keys()) {
    const held = [...(poll.held.get(name)?.values() ?? [])].filter(({ open }) => open)
    if (held.length === 0) continue
    const missing = !whole.records.has(name)
    const told = poll.outlook.get(name)
    const gone = missing ? held.length : held.filter(({ id }) => told?.get(id)?.incoming === null).length
    had += held.length
    lost += gone
    const much = gone > shrinkLimit * held.length && gone > alwaysAllowed
    if (missing || gone === held.length || much)
      losses.push(`${name} ${held.length} -> ${missing ? 'missing' : held.length - gone}`)
  }
  if (losses.length === 0 && lost <= Math.max(shrinkLimit * had, alwaysAllowed)) return
  const request = bench.asking.requests.at(-1)
  const raw = whole.raws[0]
  const got =
    losses.length === 0 ? `${lost} of ${had} records gone` : `${losses.join(', ')} (${lost} of ${had} records gone)`
  if (request && raw && !raw.known)
    await quarantineBody(bench.ledger.root, raw, request, `held back: ${got}`, bench.secrets)
  throw new LakeError('integrity', {
    subject: 'the snapshot is held back',
    expected: `at most ${Math.round(shrinkLimit * 100)} % of the records gone`,
    got,
    next: 'nothing was applied; if this is right, run it again with --accept-shrink',
  })
}
