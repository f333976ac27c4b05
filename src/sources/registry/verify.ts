import { several } from '../../base/figures.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import { storedPassingFrom, storedStates } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { orNull, shape, text } from '../../base/value-checks.ts'
import type { Micros } from '../../base/time.ts'
import { Engine } from '../../lake/store/engine.ts'
import { acceptedPrefix } from './columns.ts'
import { findingLine, readFindings, readHeld, readKeys, readVerifyFindings, tableFiles } from './status.ts'
import { type RecordFinding, type VerifyKind, verifyKinds } from './history.ts'
import { gravestOf, type LakeError } from '../../base/errors.ts'
import { type Ended, endedBy } from '../http/request-rows.ts'
import {
  contradictionError,
  type Counts,
  noneOf,
  roundOf,
  unansweredError,
  type VerifyLimits,
} from '../../lake/ledger/verify-rounds.ts'
import { connectRegistry, type RegistryDeps, type RegistryInput, type RegistryRun, verdictOf } from './run.ts'
import type { Resource } from '../../catalog/catalogue.ts'
import { commit, type Ticket } from '../../lake/ledger/commit.ts'
import { providerOf } from '../../lake/ledger/provider.ts'
import { checkedValue } from '../../lake/ledger/index-rows.ts'
import { versionedName } from '../../lake/store/layout.ts'
import { readFeed, stop, type Stopped } from './reading.ts'
import { Lines } from './poll-lines.ts'
import { isUsable } from './snapshot-and-sync.ts'
import { registryState, stageTableFile } from './staging.ts'
import { type Comparing, compareCheck, type Suspect } from './verify-compare.ts'
import { type Check, chooseChecks, type Holding, type Seen, stateOf } from './verify-plan.ts'

/** A contradiction that a verify found and that is on record. */
export interface ListedFinding {
  /** Name for `violations acknowledge`. */
  readonly id: string
  readonly kind: VerifyKind
  readonly resource: string
  /** The registry's id of the record. */
  readonly record: string
  /** Description in words. */
  readonly detail: string
  /** The stored record that is contradicted, as JSON text; null if there is none. */
  readonly held: string | null
  /** The provider's record that contradicts it, as JSON text; null if there is none. */
  readonly offered: string | null
  /** Time at which it was found, microseconds. */
  readonly found_at: Micros
  /** Time at which a person acknowledged it, microseconds; null if nobody has. */
  readonly acknowledged_at: Micros | null
  /** The reason that the person gave; null if nobody has acknowledged it. */
  readonly why: string | null
  /** Whether the lake has stored a different state of the record since: nothing is left to look at. */
  readonly resolved: boolean
}

/** Returns the name of a finding for people; it differs for each offered record. */
const findingId = (finding: RecordFinding): string => sha256(findingLine(finding)).slice(0, 12)

/** Reads the acknowledgements of findings, by ids of the findings. */
function acceptedFindings(ledger: Ledger): Map<string, { readonly at: Micros; readonly why: string }> {
  const rows = storedStates(ledger, acceptedPrefix, shape({ why: text }))
  return new Map(rows.map(({ key, value, at }) => [key, { at, why: value.why }]))
}

/** Whether the finding needs attention: it was not acknowledged, and no later state of the record resolves it. */
export function isOpenFinding({
  acknowledged_at,
  resolved,
}: Pick<ListedFinding, 'acknowledged_at' | 'resolved'>): boolean {
  return acknowledged_at === null && !resolved
}

/** Kinds that a later state of the record in the lake settles. */
const settling: ReadonlySet<string> = new Set(['lost_event', 'wrong_retirement', 'silent_change'])

/** Lists the findings of verifies in these resources (null: all), oldest first. */
export async function listFindings(ledger: Ledger, resources: readonly string[] | null): Promise<ListedFinding[]> {
  if (tableFiles(ledger, 'registry_findings').length === 0) return []
  using engine = await Engine.open(':memory:', { threads: 1 })
  const rows = await readVerifyFindings(ledger, engine)
  const chosen = rows.filter(({ resource }) => resources?.includes(resource) ?? true)
  const storedEntities = await readHeld(ledger, engine, [...new Set(chosen.map(({ resource }) => resource))])
  const accepted = acceptedFindings(ledger)
  return chosen.map(({ id: record, ...row }) => {
    const id = findingId({ ...row, id: record })
    const note = accepted.get(id)
    const since = storedEntities.get(row.resource)?.get(record)?.at ?? 0
    const isSettled = settling.has(row.kind) && since > row.found_at
    return { ...row, id, record, acknowledged_at: note?.at ?? null, why: note?.why ?? null, resolved: isSettled }
  })
}

/** Results of a check: agreement, pending (the feed has news of it), undecidable, or a kind of finding. */
const registryResults = [...verifyKinds, 'pending', 'undecided', 'identical'] as const

/** The result of one check. */
type RegistryResult = (typeof registryResults)[number]

/** A finding for scripts, with the address whose answer showed it. */
interface RegistryFinding extends Required<RecordFinding> {
  readonly address: string
}

/** The result of a verify for scripts, which depend on the names. */
export interface RegistryVerified extends Ended {
  /** Id of the run. */
  readonly run: string
  /** Newest version of the lake. */
  readonly version: number
  /** Requests sent, repeats included. */
  readonly requests: number
  /** Most requests that it could send; null: no limit. */
  readonly budget: number | null
  /** Addresses that it could request, that it chose, and their results. */
  readonly checks: Counts
  /** Compared records and lists by result. */
  readonly results: Readonly<Record<RegistryResult, number>>
  /** Filters of lists that the provider ignores, such as `issuers?country`. */
  readonly ignored: readonly string[]
  /** Contradictions. */
  readonly findings: readonly RegistryFinding[]
  /** Acknowledged contradictions that were found again. */
  readonly acknowledged: number
  /** Addresses without a usable answer: `address`, `reason`. */
  readonly failures: readonly { readonly address: string; readonly reason: string }[]
}

/** Returns the error with which a verify of the registry ends; null if the provider agrees with the lake. */
export function registryVerdict(summary: RegistryVerified): LakeError | null {
  const { findings, failures } = summary
  const next =
    'nothing held was changed: pitlake registry snapshot takes over what the provider says now, pitlake ' +
    'violations acknowledge takes note'
  return gravestOf([
    contradictionError(findings.length, `${several(findings.length, 'contradiction')} of the registry`, next),
    verdictOf(summary),
    unansweredError(failures, `${several(failures.length, 'address', 'addresses')} of the registry`),
  ])
}

/** The input of a verify of the registry. */
interface RegistryVerifyInput extends RegistryInput, VerifyLimits {
  /** Names of resources; null: all. */
  readonly names: readonly string[] | null
}

/** Number of checks that are judged and remembered together. */
const portion = 100
/** Number of addresses in a row without a usable answer that end the run. */
const mostFailures = 5
/** Events become visible within minutes: a change without one is a finding only after that long. */
const eventDelayMs = 180_000

/**
 * Requests records by their own addresses and lists by their filters again, and compares them with the results of
 * snapshots and feed. A difference without any event in the feed is recorded; stored data do not change.
 */
export async function verifyRegistry(input: RegistryVerifyInput, deps: RegistryDeps): Promise<RegistryVerified> {
  return await connectRegistry({ name: 'registry verify', lock: 'verify' }, input, deps, async (run) => {
    const { ledger, id, connection } = run
    const { names, spreadDays } = input
    let budget = input.budget
    const round = roundOf(ledger, run.job, [names, budget, spreadDays], deps.nowMicros())
    const comparing = await comparingOf(run, input, () => budget !== null && connection.sent() >= budget)
    const chosen = chooseChecks(comparing.holding, { budget, spreadDays, begun: round.beganAt })
    budget = chosen.budget
    const course = newCourse(registryState(ledger).cursor ?? '')
    const plan = { ...round, checks: chosen.checks.length }
    connection.log.note('planned', plan)
    await run.begin(plan, () => {
      return { requests: connection.sent(), checks: course.verified, findings: course.findings.size }
    })
    const stopped = await askInPortions({ run, comparing, course }, chosen.checks)
    const { verified, results, failures } = course
    const failed = failures.length
    const ignored = [...comparing.ignored].toSorted()
    if (ignored.length > 0)
      run.tell({ kind: 'note', text: `filters that the provider does not heed: ${ignored.join(', ')}` })
    const checksLeft = chosen.checks.length - verified - failed
    const value: RegistryVerified = {
      run: id,
      version: ledger.head().version,
      requests: connection.sent(),
      budget,
      checks: { held: chosen.held, chosen: chosen.checks.length, verified, failed, left: checksLeft },
      results,
      ignored,
      findings: [...course.findings.values()],
      acknowledged: course.accepted.size,
      failures,
      ...endedBy(stopped),
    }
    return { value, stopped_by: value.stopped_by, error: registryVerdict(value) }
  })
}

/** An address without a usable answer. */
interface FailedAddress {
  readonly address: string
  readonly reason: string
}

/** The results of a verify so far. */
interface VerifyCourse {
  /** Checks by result. */
  readonly results: Record<RegistryResult, number>
  readonly findings: Map<string, RegistryFinding>
  /** Acknowledged findings that were found again, by their lines. */
  readonly accepted: Set<string>
  readonly failures: FailedAddress[]
  /** Position in the feed, and the records (`resource id`) with new events. */
  readonly feed: { cursor: string; readonly news: Set<string> }
  /** Checks that were answered. */
  verified: number
  /** Addresses without a usable answer, in a row. */
  failedInRow: number
}

/** Creates the course of a verify before its first answer. */
function newCourse(cursor: string): VerifyCourse {
  return {
    results: noneOf(registryResults),
    findings: new Map<string, RegistryFinding>(),
    accepted: new Set<string>(),
    failures: [],
    feed: { cursor, news: new Set<string>() },
    verified: 0,
    failedInRow: 0,
  }
}

const seenKey = 'registry.seen.'
/** Prefix of the state's keys for the last request to an address whose answer did not agree with the lake. */
const triedKey = 'registry.tried.'
const seenShape = shape({ etag: orNull(text), digest: text })

async function comparingOf(run: RegistryRun, input: RegistryVerifyInput, isSpent: () => boolean): Promise<Comparing> {
  const { ledger, withEngine, asking } = run
  const chosen = ({ name }: Resource): boolean => input.names?.includes(name) ?? true
  const resources = [...input.catalogue.resources.values()].filter(chosen)
  const seenLists = new Map<string, Seen>()
  for (const [address, { at, value }] of storedPassingFrom(ledger, seenKey))
    seenLists.set(address, { at, ...checkedValue(seenShape, value, `${seenKey}${address}`) })
  return await withEngine(async (engine) => {
    const names = resources.map(({ name }) => name)
    const storedEntities = await readHeld(ledger, engine, names, resources)
    const { pageLimit } = input.settings.registry
    const tried = new Map([...storedPassingFrom(ledger, triedKey)].map(([address, { at }]) => [address, at]))
    const holding: Holding = { resources, storedEntities, seenLists, tried, pageLimit }
    const keys = await readKeys(ledger, engine)
    return { ledger, withEngine, asking, holding, keys, ignored: new Set<string>(), isSpent }
  })
}

/** A verify under way. */
interface Verifying {
  readonly run: RegistryRun
  readonly comparing: Comparing
  readonly course: VerifyCourse
}

async function askInPortions(verifying: Verifying, checks: readonly Check[]): Promise<Stopped | null> {
  const { run, course } = verifying
  if (!isUsable(run, course.feed.cursor)) return needsSync('the cursor of the feed cannot be sent back')
  for (let n = 0; n < checks.length; n += portion) {
    const stopped = await workPortion(verifying, checks.slice(n, n + portion))
    if (stopped) return stopped
  }
  return null
}

const needsSync = (why: string): Stopped => stop('failed', `${why}: run pitlake registry sync first`)

/** A check whose answer is as stored, or decides nothing. */
interface SoundCheck {
  readonly check: Check
  /** The entity tag of its answer; null if it has none. */
  readonly etag: string | null
}

/** The results of the checks of one portion. */
interface Asked {
  /** Every check that got an answer, or none that could be used. */
  readonly tried: Check[]
  /** Answered as stored. */
  readonly sound: SoundCheck[]
  readonly suspects: Suspect[]
  /** Answered without deciding anything. */
  readonly untold: SoundCheck[]
  /** Reason for ending the portion early; null if it did not. */
  stopped: Stopped | null
}

async function workPortion(verifying: Verifying, checks: readonly Check[]): Promise<Stopped | null> {
  const { course } = verifying
  const askedChecks = await askAll(verifying, checks)
  const judged = askedChecks.stopped === null ? await judge(verifying, askedChecks.suspects) : null
  const stopped = askedChecks.stopped ?? (judged?.kind === 'stopped' ? judged : null)
  const found = judged?.kind === 'judged' ? judged : { found: [], sound: [], checks: 0 }
  // Differences that were not judged yet are requested again by the next run of this round.
  const unjudged = new Set(stopped === null ? [] : askedChecks.suspects.map(({ check }) => check))
  const tried = askedChecks.tried.filter((check) => !unjudged.has(check))
  await keep(verifying, { tried, sound: [...askedChecks.sound, ...askedChecks.untold, ...found.sound] }, found.found)
  course.results.identical += askedChecks.sound.length + found.sound.length
  course.results.undecided += askedChecks.untold.length
  course.verified += askedChecks.sound.length + askedChecks.untold.length + found.sound.length + found.checks
  return stopped
}

async function askAll({ comparing, course }: Verifying, checks: readonly Check[]): Promise<Asked> {
  const askedChecks: Asked = { tried: [], sound: [], suspects: [], untold: [], stopped: null }
  for (const check of checks) {
    if (comparing.isSpent()) break
    const done = await compareCheck(comparing, check)
    if (done.kind === 'stopped') {
      const alone = done.by === 'failed' || done.by === 'undecodable'
      if (alone) askedChecks.tried.push(check)
      if (alone) course.failures.push({ address: check.address, reason: done.words })
      if (alone && ++course.failedInRow < mostFailures) continue
      askedChecks.stopped = done
      return askedChecks
    }
    course.failedInRow = 0
    askedChecks.tried.push(check)
    askedChecks.suspects.push(...done.suspects)
    if (done.untold) askedChecks.untold.push({ check, etag: null })
    else if (done.suspects.length === 0) askedChecks.sound.push({ check, etag: done.etag })
  }
  return askedChecks
}

interface Judged extends Pick<Asked, 'sound'> {
  readonly kind: 'judged'
  readonly found: readonly Suspect[]
  /** Number of checks that were completed. */
  readonly checks: number
}

/**
 * Separates findings from changes that the lake has not received yet: reads the feed from the lake's position, and
 * drops suspects with new events there. A real provider gets the time that its events need, and is then requested
 * again.
 */
async function judge(verifying: Verifying, suspects: readonly Suspect[]): Promise<Judged | Stopped> {
  const { run, course } = verifying
  const of = (all: readonly Suspect[]): Check[] => [...new Set(all.map(({ check }) => check))]
  if (suspects.length === 0) return { kind: 'judged', found: [], sound: [], checks: 0 }
  const checks = of(suspects)
  const failures = course.failures.length
  let rest = await withoutNews(verifying, suspects)
  if ('kind' in rest) return rest
  let sound: SoundCheck[] = []
  if (rest.length > 0 && run.ledger.head().provider?.synthetic !== true) {
    const text = `${rest.length} records differ: asked again when the feed had time to tell of them`
    run.tell({ kind: 'note', text })
    await run.deps.wait(eventDelayMs, run.deps.signal)
    const again = await askAll(verifying, of(rest))
    if (again.stopped) return again.stopped
    sound = again.sound
    rest = await withoutNews(verifying, again.suspects)
    if ('kind' in rest) return rest
  }
  const failed = course.failures.length - failures
  const ended = checks.length - sound.length - failed
  course.results.pending += ended - of(rest).length
  return { kind: 'judged', found: rest, sound, checks: ended }
}

async function withoutNews({ run: { asking, input }, course: { feed } }: Verifying, suspects: readonly Suspect[]) {
  if (suspects.length === 0) return suspects
  const { pageLimit } = input.settings.registry
  const read = await readFeed(asking, input.catalogue.resources, feed.cursor, pageLimit, ({ resource, id }) => {
    if (resource !== null) feed.news.add(`${resource} ${id}`)
    return true
  })
  if (read.stopped) return read.stopped
  if (read.invalid) return needsSync('the feed has begun a new epoch')
  feed.cursor = read.cursor
  return suspects.filter(({ resource, id }) => !feed.news.has(`${resource} ${id}`))
}

/** Records the requests and the agreeing answers, and each finding that is not on record, once. */
async function keep(
  { run, course }: Verifying,
  { tried, sound }: Pick<Asked, 'tried' | 'sound'>,
  suspects: readonly Suspect[],
): Promise<void> {
  const { ledger, withEngine, connection, asking, deps, id, job } = run
  const requests = asking.requests.splice(0)
  const isSound = new Set(sound.map(({ check }) => check.address))
  const passing = Object.fromEntries([
    ...sound.map(({ check, etag }) => [`${seenKey}${check.address}`, { etag, digest: check.digest }] as const),
    ...tried.flatMap(({ address }) => (isSound.has(address) ? [] : [[`${triedKey}${address}`, {}] as const])),
  ])
  let still: readonly Suspect[] = []
  await commit(
    ledger,
    async (ticket) => {
      still = await unmoved(run, suspects)
      const knownFindings =
        still.length === 0 ? null : await withEngine(async (engine) => await readFindings(ledger, engine))
      const fresh = new Map(still.map((suspect) => [findingLine(suspect), suspect]))
      for (const line of knownFindings ?? []) fresh.delete(line)
      const staged = fresh.size === 0 ? null : await stageFindings(run, ticket, [...fresh.values()])
      const provider = connection.provider() ?? providerOf(ledger)
      const frame = { job, run: id, provider, requests, passing }
      if (staged === null) return frame
      return { ...frame, add: [staged] }
    },
    deps,
  )
  const acceptances = acceptedFindings(ledger)
  for (const suspect of still) {
    const line = findingLine(suspect)
    if (course.findings.has(line) || course.accepted.has(line)) continue
    const { kind, resource, id: entityId, detail, address } = suspect
    course.results[kind as RegistryResult]++
    if (acceptances.has(findingId(suspect))) {
      course.accepted.add(line)
      continue
    }
    course.findings.set(line, { ...withoutCheck(suspect), address })
    run.tell({ kind: 'note', text: `${kind}: ${resource} ${entityId}: ${detail}` })
  }
}

/**
 * Suspects whose stored records are still those that were compared: a job that ran meanwhile may have changed others.
 */
async function unmoved({ ledger, withEngine }: RegistryRun, found: readonly Suspect[]): Promise<readonly Suspect[]> {
  if (found.length === 0) return found
  const names = [...new Set(found.map(({ resource }) => resource))]
  const storedEntities = await withEngine(async (engine) => await readHeld(ledger, engine, names))
  return found.filter(({ resource, id, state }) => stateOf(storedEntities.get(resource)?.get(id)) === state)
}

async function stageFindings({ connection, withEngine, id }: RegistryRun, ticket: Ticket, found: readonly Suspect[]) {
  const { spool } = connection
  const table = 'registry_findings'
  using lines = new Lines(spool)
  for (const suspect of found) lines.add(table, withoutCheck(suspect))
  const constants = { at: ticket.committed_at }
  const file = { table, lines: table, id: versionedName(ticket.version, id), date: null, constants, meta: {} }
  return await withEngine(async (engine) => await stageTableFile(engine, { spool, lines, ticket }, file))
}

/** Converts a suspect to a finding. */
function withoutCheck({ kind, resource, id, detail, held = null, offered = null }: Suspect): Required<RecordFinding> {
  return { kind, resource, id, detail, held, offered }
}
