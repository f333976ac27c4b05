import { LakeError } from '../errors.ts'
import type { CommitDeps, StagedFile } from '../ledger/commit.ts'
import { liveFiles } from '../ledger/held.ts'
import { dataVersion, parseRegistryFile, versioned } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { readHeld, readLastEvents } from './held.ts'
import { eventTaker, Lines } from './lines.ts'
import type { Spool } from '../ledger/sweep.ts'
import { type BodyRead, readPage, readSnapshot, type Resources } from './bodies.ts'
import { cutApart } from './cut.ts'
import { newPoll, observeState, type Poll, withMissing } from './history.ts'
import { draftPoll, foldPoll } from './commit.ts'
import { enginesOf, type FinishedPoll, type PollContext, readRaw } from './staging.ts'
import { registryState } from './state.ts'

/** A version to be folded once more, between the lake as it was and as it became. */
interface Again {
  readonly resources: Resources
  readonly deps: CommitDeps
  readonly spool: Spool
  readonly before: Ledger
  readonly after: Ledger
  /** Arrays that the snapshot misses are empty ones. */
  readonly acceptShrink: boolean
}

/** Folds the bodies of a poll as it did; gives the files that this makes, in the spool. */
export async function foldAgain(again: Again): Promise<readonly StagedFile[]> {
  const { before, after, resources, spool, deps } = again
  const { lake, version, committed_at, provider } = after.head()
  const run = runOf(after)
  if (lake === null || provider === null || run === null) throw beyond(version, 'nothing says which run made it')
  const context: PollContext = {
    ledger: before,
    withEngine: enginesOf(spool),
    spool,
    resources,
    run,
    job: 'doctor',
    provider,
    providerMoved: false,
    rawDays: 1,
    deps,
  }
  const held = await context.withEngine(async (engine) => await readHeld(before, engine, [...resources.keys()]))
  using lines = new Lines(spool)
  const finished = await pollAgain(again, context, newPoll(held), lines)
  const folded = await foldPoll(finished)
  const { draft } = await draftPoll(finished, folded, { lake, version, committed_at })
  return draft.add ?? []
}

function beyond(version: number, got: string): LakeError {
  const expected = 'the bodies that made it'
  return new LakeError('integrity', {
    subject: `version ${version}`,
    expected,
    got,
    next: 'take its files from a copy',
  })
}

/** The run that the files of the newest version are named after. */
function runOf(after: Ledger): string | null {
  const own = versioned(after.head().version, '')
  for (const { path } of liveFiles(after)) {
    const id = parseRegistryFile(path)?.id
    if (id?.startsWith(own) === true) return id.slice(own.length).replace(/-(?:base|delta)$/, '')
  }
  return null
}

/** What the poll saw, read from the bodies that its commit listed; cursors and instants are those of the commit. */
async function pollAgain(again: Again, context: PollContext, poll: Poll, lines: Lines): Promise<FinishedPoll> {
  const { before, after, resources } = again
  const [then, now] = [registryState(before), registryState(after)]
  const { committed_at } = after.head()
  const whole = now.last?.observed_at === committed_at ? now.last.source : null
  const { cursor, epoch, last: shot } = now
  const nothing = { raws: [], requests: [], passing: {}, tags: {}, disagreeing: [], as_of: shot?.as_of ?? null }
  const frame = { ...context, ...nothing, poll, lines, cursor: cursor ?? '', epoch, whole }
  // Of a whole state that said nothing new no body is kept: what was held says it all.
  if (whole !== null && !isFresh(after)) return frame
  if (whole === 'lists') throw beyond(after.head().version, 'it was put together from lists')
  if (whole === null) {
    const last = await context.withEngine(async (engine) => await readLastEvents(before, engine))
    const take = eventTaker(poll, lines, last)
    let as_of: string | null = null
    for (const body of await bodies(again, 'feed')) {
      const page = sound(after, readPage(body, resources))
      for (const event of page.events) take(event)
      as_of = page.as_of ?? as_of
    }
    return { ...frame, as_of }
  }
  const [body] = await bodies(again, 'snapshot')
  const { records, disagreeing } = sound(after, readSnapshot(body, resources))
  const first = then.last === null
  const shown = again.acceptShrink ? withMissing(records, resources) : records
  observeState(poll, { records: shown, source: whole, first, inferred: !first && now.epoch > then.epoch })
  return { ...frame, disagreeing }
}

/** Whether the newest version brought more than dated tables. */
function isFresh(after: Ledger): boolean {
  const { version } = after.head()
  return liveFiles(after).some(({ path, table }) => {
    const own = parseRegistryFile(path)
    return own?.date === null && table !== 'snapshots' && dataVersion(path) === version
  })
}

function sound<T>(after: Ledger, read: BodyRead<T>): T {
  if (!read.ok) throw beyond(after.head().version, read.reason)
  return read.value
}

/** The bodies of a kind that the commit listed, in the order in which they came: at least one. */
async function bodies({ after }: Again, kind: string): Promise<[Buffer, ...Buffer[]]> {
  const { version } = after.head()
  const listed = liveFiles(after, { table: 'raw' }).filter((file) => file.meta['kind'] === kind)
  const found: Buffer[] = []
  for (const { path, rows, added_version } of listed) {
    if (added_version !== version) continue
    const bytes = await readRaw(after.root, path).catch(() => {
      throw beyond(version, `${path} is not there any more, or damaged`)
    })
    const apart = cutApart(Buffer.from(bytes))
    if (apart.length !== rows) throw beyond(version, `${path} holds ${apart.length} bodies, not ${rows}`)
    found.push(...apart)
  }
  const [first, ...others] = found
  if (!first) throw beyond(version, `no body of a ${kind} is listed with it`)
  return [first, ...others]
}
