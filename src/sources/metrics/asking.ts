import { writePrivate } from '../../lake/store/files.ts'
import { LakeError } from '../../base/errors.ts'
import {
  type AgainReason,
  describeOutcome,
  type Outcome,
  type DeniedOutcome,
  type NoContentOutcome,
  type TooLargeReason,
} from '../http/outcome.ts'
import { knownParameters, metricsUrl } from './api.ts'
import { type Ask, horizonOf } from './plan.ts'
import { seriesOfGonePath } from './path-refusals.ts'
import type { CoverageRow } from '../../lake/ledger/entry.ts'
import { isAnswer } from '../../lake/ledger/coverage.ts'
import { loadCoverage, storedSeries } from '../../lake/ledger/index-queries.ts'
import { refusalWords, standingRefusal } from '../../lake/ledger/refusals.ts'
import { requestRow, type About, type AnsweredRequest } from '../http/request-rows.ts'
import { type Answered, type AnswerBody, withoutAnswer } from './answers.ts'
import type { AskingState, RefusedAsk, RunTally, StoppedBy } from './run-summary.ts'
import { type IngestEvent, maxBodyBytes, type Purpose } from './run.ts'
import type { MetricsSettings } from '../../catalog/settings.ts'
import type { Wire } from '../../catalog/wire.ts'
import type { Connection } from '../http/connection.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import type { Spool } from '../../lake/ledger/spool-sweep.ts'
import { type AskedAt, halve, knownAt, settleFailure, settleRefusal, settleWhole, type SeriesRecord } from './settle.ts'
import { day, end, type Instant, longestSeconds, step, type Weekday } from '../../base/time.ts'
import type { Window } from '../../base/windows.ts'

/** The dependencies of requesting the windows of a plan, and what the run has learned so far. */
export interface Asking {
  /** Id of the run. */
  readonly run: string
  readonly ledger: Ledger
  readonly purpose: Pick<Purpose, 'name' | 'budget' | 'polls'>
  readonly wire: Wire
  readonly settings: Pick<MetricsSettings, 'timestamp' | 'weekStart'>
  readonly connection: Pick<Connection, 'ask' | 'base' | 'drain'> & { readonly spool: Pick<Spool, 'file'> }
  readonly tell: (event: IngestEvent) => void
  readonly tally: Pick<RunTally, 'answered'>
  /** Returns the current time in milliseconds since 1970. */
  readonly now: () => number
  readonly state: AskingState
}

const patience = 5
const firstAnswers = 10
const mostHalvings = 12
const halvingsAfterFaults = 2

/**
 * Requests one window until it is answered, in halves if the provider demands less; each part is returned as an answer
 * to commit. A run that is interrupted or refused returns nothing for windows that were not requested.
 */
export async function askWindow(asking: Asking, ask: Ask, again: boolean, depth = 0): Promise<Answered[]> {
  const { probes } = asking.state
  const probe = probes.get(ask.endpoint.path)
  if (ask.refused === undefined || depth > 0) return await askNow(asking, ask, again, depth)
  if (probe === undefined) {
    const firstRequest = askNow(asking, ask, again, depth)
    probes.set(
      ask.endpoint.path,
      firstRequest.catch(() => undefined),
    )
    return await firstRequest
  }
  await probe
  return await askNow(asking, ask, again, depth)
}

async function askNow(asking: Asking, ask: Ask, again: boolean, depth: number): Promise<Answered[]> {
  const closed = closedFor(asking, ask)
  if (closed !== undefined) return [unasked(asking, ask, closed)]
  const reply = await send(asking, { ask, again, depth })
  return reply === null ? [] : await answer(asking, reply)
}

type Sending = Pick<Reply, 'ask' | 'again' | 'depth'>

/** Sends one request, with at most `attempts` tries, and returns its final outcome; null if the run sends no more. */
async function send(asking: Asking, sending: Sending, attempts?: number): Promise<Reply | null> {
  const { state, purpose } = asking
  const { ask } = sending
  const dear = purpose.budget !== null && state.priced + ask.credits > purpose.budget
  if (dear) state.stopped ??= { by: 'budget', until: null, words: null }
  if (state.stopped !== null) return null
  state.priced += ask.credits
  const id = nextId(asking)
  const url = urlOf(asking, ask)
  const file = asking.connection.spool.file(`${id}.json`)
  asking.tell({ kind: 'request', id, ask })
  const parameters = knownParameters(asking.wire)
  const answeredRequest = await asking.connection.ask({ id, url, file, parameters, attempts }, aboutOf(ask))
  asking.tally.answered(ask, answeredRequest.outcome)
  asking.tell({ kind: 'answered', ask, outcome: answeredRequest.outcome })
  learn(asking, ask, answeredRequest.outcome)
  return { ...answeredRequest, ...sending }
}

const nextId = ({ run, state }: Pick<Asking, 'run' | 'state'>): string =>
  `${run}-${String(++state.requestCount).padStart(6, '0')}`

/** Whether an answer without content is compared with stored points, as `[]` is. */
function comparesNothing(asking: Pick<Asking, 'ledger' | 'purpose'>, ask: Ask): boolean {
  return asking.purpose.name === 'verify' || knownOf(asking, ask).points > 0
}

/** Reads the ledger's present record of a series: a failure removes nothing from it, and a refusal is judged by it. */
function knownOf({ ledger }: Pick<Asking, 'ledger'>, { series: { id } }: Ask): SeriesRecord {
  const coverage = loadCoverage(ledger, [id]).get(id) ?? []
  const points = storedSeries(ledger, [id]).get(id)?.points ?? 0
  return { points, coverage, standing: standingRefusal(coverage) }
}

interface Reply extends AnsweredRequest {
  readonly ask: Ask
  readonly again: boolean
  readonly depth: number
}

function aboutOf({ series, window, credits }: Ask): About {
  return { series: series.id, since: window?.since ?? null, until: window?.until ?? null, credits }
}

async function answer(asking: Asking, reply: Reply): Promise<Answered[]> {
  const { ask, outcome } = reply
  switch (outcome.kind) {
    case 'body':
      return [answered(reply, [], outcome)]
    case 'no_content':
      if (comparesNothing(asking, ask)) return [answered(reply, [], await emptyBody(asking, reply, outcome))]
      return [answered(reply, settleWhole(ask, 'empty', null, askedOf(asking, reply)))]
    case 'forbidden':
    case 'gone':
      return [refusedPart(asking, reply, closing(asking, ask, outcome).refused)]
    case 'refused':
      return await afterRefusal(asking, reply, outcome.words)
    case 'too_large':
      if (isAbsurd(ask, outcome.by)) return [failed(asking, reply)]
      return (await halves(asking, reply, mostHalvings)) ?? [failed(asking, reply)]
    case 'again':
      if (!isOfSize(asking, reply, outcome.reason)) return [failed(asking, reply)]
      return (await halvesOnce(asking, reply)) ?? [failed(asking, reply)]
    case 'limited':
    case 'not_modified':
    case 'unexpected':
      return [failed(asking, reply)]
    case 'unauthorised':
    case 'parked':
    case 'stopped':
      return []
    default:
      return outcome satisfies never
  }
}

/**
 * Bytes that no single point needs: a body beyond the limit with fewer points than this implies is not a list of
 * points.
 */
const pointBytes = 1_000_000

/** Whether a smaller request would return as many bytes again, so that one such body is enough to judge. */
function isAbsurd(ask: Ask, by: TooLargeReason): boolean {
  return by === 'bomb' || (by === 'ceiling' && ask.points * pointBytes < maxBodyBytes)
}

/** Writes an answer without content as a body with an empty list of points. */
async function emptyBody(
  { connection }: Pick<Asking, 'connection'>,
  { row }: Reply,
  outcome: NoContentOutcome,
): Promise<AnswerBody> {
  const file = connection.spool.file(`${row.id}.json`)
  await writePrivate(file, '[]')
  return { ...outcome, kind: 'body', file, bytes: 0 }
}

function refusedPart(asking: Pick<Asking, 'ledger' | 'settings'>, reply: Reply, refused: RefusedAsk): Answered {
  const storedRecord = knownOf(asking, reply.ask)
  return answered(reply, settleRefusal(reply.ask, refused, storedRecord, askedOf(asking, reply)))
}

/** Returns the key under which a path is closed to series like this one. */
function pathKey(asking: Pick<Asking, 'ledger'>, ask: Ask): string {
  return `${knownOf(asking, ask).points > 0 ? 'held' : 'new'} ${ask.endpoint.path}`
}

/** The key of a refusal that applies to the rest of the run. */
interface Closing {
  /** Key in `closed`. */
  readonly key: string
  readonly refused: RefusedAsk
}

/**
 * Determines what a 403 or 404 closes. A 403 closes the path; for a series with points only this series, if others of
 * the path are answered. A 404 closes the series, and the path once enough different series return it and none is
 * answered.
 */
function closing(asking: Pick<Asking, 'ledger' | 'state'>, ask: Ask, { kind, words }: DeniedOutcome): Closing {
  const { id } = ask.series
  const { points } = knownOf(asking, ask)
  const isAlone =
    (answersOthers(asking, ask) && (points > 0 || kind === 'gone')) ||
    (kind === 'gone' && points <= 0 && storedPaths(asking).has(ask.endpoint.path))
  if (isAlone) return { key: id, refused: { scope: 'series', words: refusalWords(`${kind} alone`, words) } }
  const key = pathKey(asking, ask)
  const refusal: RefusedAsk = { scope: 'path', words: refusalWords(kind, words) }
  const isUndecided =
    kind === 'gone' && ask.refused === undefined && (asking.state.goneSeries.get(key)?.size ?? 0) < seriesOfGonePath
  return { key: isUndecided ? id : key, refused: refusal }
}

/** Whether other series of the path were answered in this run. */
function answersOthers({ state }: Pick<Asking, 'state'>, { series: { id }, endpoint }: Ask): boolean {
  return [...state.answering].some((seriesId) => seriesId !== id && seriesId.startsWith(`${endpoint.path}|`))
}

/** Returns the paths with stored points: the provider has them, whatever it answers for a further series. */
function storedPaths({ state, ledger }: Pick<Asking, 'ledger' | 'state'>): ReadonlySet<string> {
  state.storedPaths ??= new Set(
    [...storedSeries(ledger).values()].flatMap((series) => (series.points > 0 ? [series.metric] : [])),
  )
  return state.storedPaths
}

function closedFor(asking: Pick<Asking, 'ledger' | 'state'>, ask: Ask): RefusedAsk | undefined {
  const { closed, refusedBefore } = asking.state
  if (closed.size === 0 && refusedBefore.size === 0) return undefined
  const before = refusedBefore.get(ask.series.id)
  if (before !== undefined && ask.window !== null && ask.window.until <= before.until)
    return { scope: 'range', words: before.words }
  return closed.get(ask.series.id) ?? closed.get(pathKey(asking, ask)) ?? closed.get(`held ${ask.endpoint.path}`)
}

/** Maximum number of points of a short window, whose length is no reason to refuse it. */
const shortPoints = 100
const probePoints = 10

/** Whether the window itself is short, or the endpoint takes no shorter one. */
function isShort({ window, points, endpoint }: Ask): boolean {
  return window === null || !endpoint.since || !endpoint.until || points <= shortPoints
}

/** Whether halving the window is not worth it: its points are fewer than the search for the border costs. */
function isSmall({ window, points, endpoint }: Ask): boolean {
  return window === null || !endpoint.since || !endpoint.until || points <= probePoints
}

/** Whether the window ends so lately that a provider of any history has it. */
function isRecentWindow({ window, interval }: Ask, now: Instant): boolean {
  return window === null || now - window.until <= Math.max(90 * day, 10 * longestSeconds(interval))
}

/**
 * Returns the shortest and newest window that the provider should have, to learn whether the series or the range was
 * refused.
 */
function probeOf(ask: Ask, now: Instant, weekStart: Weekday): Ask {
  const { final } = horizonOf(ask.endpoint, ask.interval, now, weekStart)
  const window = { since: step(final, ask.interval, -probePoints), until: final }
  // It resolves only what it returns; a refusal is resolved by the window of the original request.
  return { ...ask, window, settles: { since: window.since, until: window.since }, points: probePoints }
}

/**
 * Handles a 400. It concerns the whole series only once a short recent window was refused, too. A long window of a
 * series that is answered is halved, the newer half first; everything before a short refused part counts as refused
 * with it.
 */
async function afterRefusal(asking: Asking, reply: Reply, providerWords: string): Promise<Answered[]> {
  const { ask, depth } = reply
  const { state } = asking
  const { id } = ask.series
  const { at, weekStart } = askedOf(asking, reply)
  const seriesRefusal: RefusedAsk = { scope: 'series', words: refusalWords('refused', providerWords) }
  const parts: Answered[] = []
  if (!state.answering.has(id)) {
    if (asking.purpose.name === 'verify' || (isShort(ask) && isRecentWindow(ask, at)))
      state.closed.set(id, seriesRefusal)
    else parts.push(...(await askWindow(asking, probeOf(ask, at, weekStart), reply.again, depth + 1)))
    if (state.closed.has(id)) return [...parts, refusedPart(asking, reply, seriesRefusal)]
    // The subject of the refusal is unknown: the next run requests it again.
    if (!state.answering.has(id)) return state.stopped === null ? [...parts, failed(asking, reply)] : parts
  }
  const two = isSmall(ask) || depth >= mostHalvings ? null : halve(ask)
  if (two === null) {
    const words = refusalWords('range', providerWords)
    state.refusedBefore.set(id, { until: ask.window?.until ?? 0, words })
    return [...parts, refusedPart(asking, reply, { scope: 'range', words })]
  }
  parts.push(cut(reply))
  for (const half of two.toReversed()) parts.push(...(await askWindow(asking, half, reply.again, depth + 1)))
  return parts
}

/**
 * Whether a smaller request may succeed after a failure: not if the connection failed, nor if the request was small.
 */
function isOfSize(
  { purpose, state }: Pick<Asking, 'purpose' | 'state'>,
  { ask, depth }: Reply,
  reason: AgainReason,
): boolean {
  if (depth >= halvingsAfterFaults || isShort(ask)) return false
  // If no series is answered, the window is not the cause; a run that is repeated in minutes notices then.
  if (purpose.polls === true && state.answering.size === 0) return false
  return reason === 'status' || reason === 'timeout' || reason === 'cut'
}

/** Requests both halves of a window, each once: if neither is answered the size was not to blame. */
async function halvesOnce(asking: Asking, reply: Reply): Promise<Answered[] | null> {
  const two = halve(reply.ask)
  if (two === null) return null
  const replies: Reply[] = []
  for (const ask of two) {
    const half = await send(asking, { ask, again: reply.again, depth: reply.depth + 1 }, 1)
    if (half !== null) replies.push(half)
  }
  const isFault = ({ outcome }: Reply): boolean => outcome.kind === 'again'
  if (replies.every(isFault)) return [failed(asking, reply), ...replies.map(cut)]
  const parts = [cut(reply)]
  for (const half of replies) parts.push(...(await answer(asking, half)))
  return parts
}

/**
 * Requests halves of a window until the provider answers them; the rest is not tried if not even the smallest window of
 * a series is answered.
 */
async function halves(asking: Asking, reply: Reply, most: number): Promise<Answered[] | null> {
  const two = reply.depth < most ? halve(reply.ask) : null
  if (two === null) return null
  const [first, second] = two
  const parts = await askWindow(asking, first, reply.again, reply.depth + 1)
  const isUseful = ({ body, coverage }: Answered): boolean =>
    body !== null || coverage.some(({ state }) => state !== 'failed')
  if (asking.state.stopped !== null || parts.some(isUseful))
    return [cut(reply), ...parts, ...(await askWindow(asking, second, reply.again, reply.depth + 1))]
  return [failed(asking, reply), ...parts.map((part) => ({ ...part, coverage: [], cut: true as const }))]
}

/** Records what an outcome shows about more than its own window. */
function learn(asking: Pick<Asking, 'connection' | 'ledger' | 'state' | 'wire'>, ask: Ask, outcome: Outcome): void {
  const { state } = asking
  const stop = (by: StoppedBy, words: string | null, until: number | null = null) => {
    state.stopped ??= { by, until, words }
    asking.connection.drain()
  }
  if (outcome.kind === 'unauthorised') stop('unauthorised', outcome.words)
  if (outcome.kind === 'parked') stop('quota', outcome.words, outcome.until)
  if (outcome.kind === 'stopped') stop(outcome.by, 'words' in outcome ? outcome.words : null)
  if (outcome.kind === 'forbidden' || outcome.kind === 'gone') {
    if (outcome.kind === 'gone') {
      const path = pathKey(asking, ask)
      state.goneSeries.set(path, (state.goneSeries.get(path) ?? new Set<string>()).add(ask.series.id))
    }
    const { key, refused } = closing(asking, ask, outcome)
    state.closed.set(key, refused)
  }
  if (outcome.kind === 'body' || outcome.kind === 'no_content') state.answering.add(ask.series.id)
  const isConnectionLost = outcome.kind === 'again' && outcome.reason === 'connect'
  state.unreachable = isConnectionLost ? state.unreachable + 1 : 0
  if ('status' in outcome && outcome.status !== null) state.reached = true
  // If there was no connection from the beginning, the other requests are not tried either.
  if (state.unreachable >= (state.reached ? patience : 1)) stop('unreachable', describeOutcome(outcome))
  firstLessons(asking, ask, outcome, stop)
}

/**
 * Stops the run on a mistake of the whole configuration: a refused parameter in the first answer, or no answers but
 * 403.
 */
function firstLessons(
  { state, wire }: Pick<Asking, 'state' | 'wire'>,
  ask: Ask,
  outcome: Outcome,
  stop: (by: StoppedBy, words: string | null) => void,
) {
  const { first } = state
  if (!('status' in outcome) || outcome.status === null || first.answers >= firstAnswers) return
  first.answers++
  const parameter = outcome.kind === 'refused' ? outcome.parameter : null
  if (first.answers === 1 && outcome.kind === 'refused' && parameter !== null && parameter !== 'asset') {
    const mapping = Object.entries(wire.queryKeys).map(([name, key]) => `${name}: ${key}`)
    throw new LakeError('usage', {
      subject: `the provider refuses the parameter ${parameter}`,
      expected: 'query keys that it knows',
      got: mapping.join(', '),
      next: `set metrics.query_keys (it says: ${outcome.words})`,
    })
  }
  // A repeated refusal of a path shows nothing about the key, unless the series had points.
  if (outcome.kind === 'forbidden' && ask.refused !== 'new') {
    first.forbidden++
    first.paths.add(ask.endpoint.path)
  }
  if (first.forbidden === firstAnswers && first.paths.size >= 3)
    stop('unauthorised', outcome.kind === 'forbidden' ? outcome.words : null)
}

function urlOf({ wire, settings, connection }: Pick<Asking, 'wire' | 'settings' | 'connection'>, ask: Ask): string {
  const { series, endpoint } = ask
  return metricsUrl(connection.base, wire, {
    series,
    endpoint,
    window: settings.timestamp === 'interval_end' ? endsOf(ask) : ask.window,
  })
}

/** Converts the window for a provider whose `t` are interval ends: to the ends of its intervals. */
function endsOf({ window, interval }: Ask): Window | null {
  return window && { since: end(window.since, interval), until: end(window.until, interval) }
}

function answered(reply: Reply, coverage: readonly CoverageRow[], body: AnswerBody | null = null): Answered {
  return { ask: reply.ask, request: reply.row, body, coverage, again: reply.again }
}

/** Builds an answer whose parts are requested instead. */
const cut = (reply: Reply): Answered => ({ ...answered(reply, []), cut: true })

function failed(asking: Pick<Asking, 'ledger' | 'settings'>, reply: Reply): Answered {
  const covered = knownOf(asking, reply.ask).coverage.filter(isAnswer)
  return answered(reply, settleFailure(reply.ask, describeOutcome(reply.outcome), covered, askedOf(asking, reply)))
}

function unasked(asking: Asking, ask: Ask, refused: RefusedAsk): Answered {
  const at = asking.now()
  const outcome: Outcome = { kind: 'stopped', by: 'max_requests' }
  const whose = { id: nextId(asking), run: asking.run, api: 'metrics' } as const
  const requested = { ...whose, url: urlOf(asking, ask), at, attempts: 0 }
  const row = { ...requestRow(requested, outcome, aboutOf(ask)), outcome: 'not requested' }
  const coverage = settleRefusal(ask, refused, knownOf(asking, ask), askedOf(asking, { at, row, outcome }))
  if (ask.refused === undefined) return withoutAnswer(ask, coverage, row)
  // A path that is tried daily would add a request row per asset every day.
  return withoutAnswer(
    ask,
    coverage.map((row) => ({ ...row, request: null })),
  )
}

function askedOf(
  { settings: { weekStart } }: Pick<Asking, 'settings'>,
  { at, row, outcome }: Pick<Reply, 'at' | 'row' | 'outcome'>,
): AskedAt {
  const date = 'date' in outcome ? outcome.date : null
  return { at: knownAt(Math.floor(at / 1000), date), request: row.id, weekStart }
}
