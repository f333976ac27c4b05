import { isAccepted, type Standing, standingDifferences } from '../../lake/ledger/differences.ts'
import { type CoverageRow, type Json, type Provider, type Violation, violationId } from '../../lake/ledger/entry.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import type { Spool } from '../../lake/ledger/spool-sweep.ts'
import {
  type Body,
  type BodyResult,
  type ConflictStatus,
  type ConversionContext,
  type ConvertPart,
  type ConvertResult,
  emptyTally,
  type Existing,
  type WrittenFile,
} from '../points/conversion-types.ts'
import { type Retry, type Answered, type AnswerWithBody, hasBody } from './answers.ts'
import type { StagedFile, Ticket } from '../../lake/ledger/commit.ts'
import { footerOf } from '../../lake/ledger/draft.ts'
import {
  loadCoverage,
  type StoredFile,
  type StoredSeries,
  storedSeries,
  liveFiles,
} from '../../lake/ledger/index-queries.ts'
import { storedLosses } from '../../lake/ledger/lost-points.ts'
import { endingSeconds } from '../http/skew.ts'
import { convert } from '../points/convert.ts'
import { isRecent, partitionsOf, sharesMeta, sharesOf } from '../points/files.ts'
import { storedRevisable } from '../points/revisable.ts'
import { spacingsOf, weekdayOf } from '../points/spacing.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { inLake, pointsFile, recentFile, versionedName } from '../../lake/store/layout.ts'
import { ceil, type Instant, type Interval, longestSeconds, type Weekday, weeklyIntervals } from '../../base/time.ts'
import { type Ask, horizonOf } from './plan.ts'
import type { RunTally } from './run-summary.ts'
import type { MetricsSettings } from '../../catalog/settings.ts'
import type { During } from '../../base/stopwatch.ts'
import { knownAt } from './settle.ts'

/** Number of differing or missing points of one run that make an incident. */
export const manyAtOnce = 100
/** Maximum number of windows of a run that are requested a second time before their answers are believed. */
const mostAskedTwice = 200

/** The differences of a batch against those on record. */
export interface BatchDifferences {
  /** Violations that are not on record as standing. */
  readonly fresh: readonly Violation[]
  /** Violations, not on record as standing, that a person acknowledged while they were open. */
  readonly noted: readonly Violation[]
  /** State of the recorded differences according to the answers. */
  readonly statuses: readonly ConflictStatus[]
}

/** Compares the differences that a conversion found with those on record. */
export function differingIn(
  ledger: Ledger,
  standing: ReadonlyMap<string, readonly Standing[]>,
  { violations, statuses }: Pick<ConvertResult, 'violations' | 'statuses'>,
): BatchDifferences {
  const recognizers = new Map([...standing].map(([series, standingRows]) => [series, knownBy(standingRows)]))
  const found = violations.filter((violation) => recognizers.get(violation.series)?.(violation) !== true)
  const { true: noted = [], false: fresh = [] } = Object.groupBy(
    found,
    (violation) => `${isAccepted(ledger, violation)}`,
  )
  return {
    fresh,
    noted,
    statuses,
  }
}

/** Reads the recorded differences of these series that the last answer still showed. */
export function standingBySeries(ledger: Ledger, ids: readonly string[]): Map<string, Standing[]> {
  return Map.groupBy(standingDifferences(ledger, ids), ({ series }) => series)
}

function knownBy(standing: readonly Standing[]): (violation: Violation) => boolean {
  const points = new Set(standing.filter(({ until }) => until === undefined).map(violationId))
  const windows = standing.filter(({ until }) => until !== undefined)
  return (violation) =>
    points.has(violationId(violation)) ||
    (violation.kind === 'vanished' && windows.some(({ t, until = t }) => violation.t >= t && violation.t < until))
}

/**
 * Finds answers that need confirmation: in a run with very many differences, those with differences that were requested
 * only once.
 */
export function findDoubted(
  answers: readonly Answered[],
  { fresh }: BatchDifferences,
  { recorded, twice }: { readonly recorded: number; readonly twice: number },
): AnswerWithBody[] {
  if (twice === 0 && fresh.length + recorded <= manyAtOnce) return []
  const differing = new Set(fresh.map(({ request }) => request))
  return answers
    .filter(hasBody)
    .filter(({ request, again }) => !again && differing.has(request.id))
    .slice(0, Math.max(0, mostAskedTwice - twice))
}

/** The dependencies of converting a batch. */
export interface BatchContext {
  /** Id of the run. */
  readonly run: string
  readonly ledger: Ledger
  readonly spool: Spool
  /** Opens the engine, or returns the open one. */
  readonly engine: () => Promise<Engine>
  /** The provider under whose name the batch is committed. */
  readonly provider: Provider
  readonly settings: Pick<MetricsSettings, 'timestamp' | 'weekStart'>
  /** Differences of earlier batches of the run. */
  readonly differing: RunTally['differing']
  /** Measures how long parts of the work take. */
  readonly during: During
}

/** The result of a conversion, with its new points as files of the coming commit. */
export interface StagedConversion extends Omit<ConvertResult, 'files' | 'recent'> {
  /** Files in the spool, relative to the lake. */
  readonly files: readonly StagedFile[]
}

/** A batch after its conversion and the comparison with the recorded differences. */
export interface BatchComparison {
  readonly made: StagedConversion
  /** The answers that were converted: without those in `doubts`. */
  readonly batch: readonly Answered[]
  readonly differing: BatchDifferences
  /** Windows to request a second time before their first answer is believed. */
  readonly doubts: readonly Retry[]
}

/** Converts all answers, and once more without those that need a second answer first. */
export async function compareAll(
  context: BatchContext,
  ticket: Ticket,
  { batch, refused }: Pick<InferredIntervals, 'batch' | 'refused'>,
): Promise<BatchComparison> {
  const { ledger } = context
  const standing = standingBySeries(
    ledger,
    batch.map(({ ask }) => ask.series.id),
  )
  const convertThese = async (these: readonly Answered[]): Promise<Pick<BatchComparison, 'made' | 'differing'>> => {
    const staged = await convertAll(context, ticket, partitions(these, refused), standing)
    const bodies = [...refusals(these, refused), ...staged.bodies]
    return { made: { ...staged, bodies }, differing: differingIn(ledger, standing, staged) }
  }
  const all = await convertThese(batch)
  const doubts = findDoubted(batch, all.differing, context.differing)
  if (doubts.length === 0) return { ...all, batch, doubts: [] }
  const believed = batch.filter((answer) => !doubts.some((doubt) => doubt === answer))
  // Their points are not held in memory until the second answer arrives.
  const again = doubts.map((doubt) => ({
    ask: doubt.ask,
    doubted: { ...doubt, body: { ...doubt.body, lexed: undefined } },
  }))
  return { ...(await convertThese(believed)), batch: believed, doubts: again }
}

/** Builds results for bodies that contradict the interval of their series, as if the conversion had refused them. */
function refusals(batch: readonly Answered[], refused: ReadonlyMap<string, string>): BodyResult[] {
  const { kept: points, ...nothing } = emptyTally
  return batch.flatMap(({ ask, request }) => {
    const reason = refused.get(request?.id ?? '')
    if (request === null || reason === undefined) return []
    const body = { request: request.id, series: ask.series.id, state: 'poison' as const, reason }
    return [{ ...body, points, ...nothing, missing: [] }]
  })
}

/** Groups answers by partition, in the order in which a recent file is sorted. */
function partitions(batch: readonly Answered[], refused: ReadonlyMap<string, string>): (readonly AnswerWithBody[])[] {
  const withBody = batch.filter(hasBody).filter(({ request }) => !refused.has(request.id))
  const parts = Map.groupBy(withBody, ({ ask }) => `${ask.series.metric} ${ask.interval}`)
  return [...parts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, part]) => part)
}

/** Reads, compares and writes all bodies of the batch together. */
async function convertAll(
  context: BatchContext,
  ticket: Ticket,
  answers: readonly (readonly AnswerWithBody[])[],
  standing: ReadonlyMap<string, readonly Standing[]>,
): Promise<StagedConversion> {
  const { run, ledger, spool, settings, during } = context
  const parts = partsOf(context, answers, standing)
  const beside = { ledger, spool, engine: await context.engine(), run, ticket }
  const how = { timestamp: settings.timestamp, weekStart: settings.weekStart, during }
  const staged = await convertBeside(beside, parts, begunOf(ledger, answers), how)
  return { ...staged, bodies: await withWeekday(context, answers.flat(), staged.bodies) }
}

/** The sources of stored points and the destination of new ones. */
export interface ConversionDeps {
  readonly ledger: Ledger
  readonly spool: Spool
  readonly engine: Engine
  /** Name of the run. */
  readonly run: string
  /** The coming commit. */
  readonly ticket: Ticket
}

/** A partition to convert, before its stored files and its output are known. */
export type PartToConvert = Omit<ConvertPart, 'existing' | 'out'>

/**
 * Converts parts together with the stored files of partitions that have begun, and stages new points as files of the
 * commit.
 */
export async function convertBeside(
  { ledger, spool, engine, run, ticket }: ConversionDeps,
  parts: readonly PartToConvert[],
  startedParts: readonly PartName[],
  how: Pick<ConversionContext, 'timestamp' | 'weekStart' | 'during' | 'reader'>,
): Promise<StagedConversion> {
  const overlapping = holding(liveFiles(ledger, { table: 'points' }), startedParts)
  const wholeFiles = partitionsOf(overlapping.filter((file) => !isRecent(file)))
  const whole = parts.map((part, p): ConvertPart => {
    const files = wholeFiles.get(`${part.metric} ${part.interval}`)?.files ?? []
    return { ...part, existing: existing(ledger, files), out: spool.file(partName(p)) }
  })
  const recent = { existing: existing(ledger, overlapping.filter(isRecent)), out: spool.file(recentName) }
  const dated = { observedAt: BigInt(ticket.committed_at), metadata: footerOf(ticket) }
  const result = await convert(engine, { parts: whole, recent, ...dated, ...how })
  return { ...result, files: stagedFiles(spool, parts, result, versionedName(ticket.version, run)) }
}

type PartName = Pick<ConvertPart, 'metric' | 'interval'>

/** Returns the partitions in which an answered series has points; in others there is nothing to compare. */
function begunOf(ledger: Ledger, answers: readonly (readonly AnswerWithBody[])[]): PartName[] {
  const storedById = storedSeries(
    ledger,
    answers.flat().map(({ ask }) => ask.series.id),
  )
  const has = ({ ask }: AnswerWithBody): boolean => (storedById.get(ask.series.id)?.points ?? 0) > 0
  return answers.flatMap((part): PartName[] => {
    const ask = part.find(has)?.ask
    return ask ? [{ metric: ask.series.metric, interval: ask.interval }] : []
  })
}

/** Lists the output of a conversion in the spool as files of a commit. */
function stagedFiles(
  spool: Spool,
  parts: readonly Pick<ConvertPart, 'metric' | 'interval'>[],
  result: Pick<ConvertResult, 'files' | 'recent'>,
  name: string,
): StagedFile[] {
  const files = parts.flatMap(({ metric, interval }, p): StagedFile[] => {
    const file = result.files[p]
    return file ? [staged(spool, partName(p), pointsFile(metric, interval, name), { ...file, metric, interval })] : []
  })
  if (result.recent) {
    const { shares, ...file } = result.recent
    const whole = { ...file, metric: null, interval: null, shares: sharesMeta(shares) }
    files.push(staged(spool, recentName, recentFile(name), whole))
  }
  return files
}

/** Returns the files with points of these partitions; others, which may be damaged, are not opened. */
function holding(files: readonly StoredFile[], parts: readonly PartName[]): StoredFile[] {
  const wanted = new Set(parts.map(({ metric, interval }) => `${metric} ${interval}`))
  return files.filter((file) => sharesOf(file).some(({ metric, interval }) => wanted.has(`${metric} ${interval}`)))
}

/** The recent file of a conversion in its spool, and that of a partition. */
const recentName = 'recent.parquet'
const partName = (p: number): string => `${p}.parquet`

/** Groups answers into the partitions that they belong to. */
function partsOf(
  { ledger, provider }: Pick<BatchContext, 'ledger' | 'provider'>,
  answers: readonly (readonly AnswerWithBody[])[],
  standing: ReadonlyMap<string, readonly Standing[]>,
) {
  const ids = answers.flat().map(({ ask }) => ask.series.id)
  const coverage = loadCoverage(ledger, ids)
  const losses = storedLosses(ledger, ids)
  const revisableMetrics = new Set(storedRevisable(ledger))
  return answers.flatMap((part): PartToConvert[] => {
    const [first] = part
    if (!first) return []
    const { interval, endpoint } = first.ask
    const { path: metric, ask: wireName, overlap } = endpoint
    // Once a lake has vintages of a metric it continues to store them, even if a catalogue changes later.
    const revisable = endpoint.revisable || revisableMetrics.has(metric) ? ('observed' as const) : undefined
    const bodies = part.map((answer) => ({
      ...bodyOf(answer, coverage.get(answer.ask.series.id) ?? [], provider.synthetic),
      standing: standing.get(answer.ask.series.id),
      lost: losses.get(answer.ask.series.id),
    }))
    return [{ metric, wireName, interval, rules: endpoint.rules[interval], overlap, revisable, bodies }]
  })
}

/** Converts files of the lake to the form that conversions read. */
function existing(ledger: Ledger, files: readonly StoredFile[]): Existing[] {
  return files.map(({ path, min_t, max_t }) => ({ path: inLake(ledger.root, path), min_t, max_t }))
}

type Written = WrittenFile & Pick<StagedFile, 'metric' | 'interval'> & { readonly shares?: Json }

function staged(spool: Spool, temporary: string, path: string, file: Written): StagedFile {
  const { metric, interval, rows, digest, min_t, max_t, ...meta } = file
  const place = { temporary: spool.path(temporary), path, table: 'points', label: '', metric, interval }
  return { ...place, rows, min_t, max_t, digest, meta }
}

/** Adds a hint to the reason of a refused body if its weeks begin on a different weekday than the lake's. */
async function withWeekday(
  { engine, settings: { weekStart } }: Pick<BatchContext, 'engine' | 'settings'>,
  answers: readonly AnswerWithBody[],
  results: readonly BodyResult[],
): Promise<BodyResult[]> {
  return await Promise.all(
    results.map(async (result) => {
      if (result.state !== 'poison') return result
      const answer = answers.find(({ request }) => request.id === result.request)
      const file = answer?.body.file
      if (!answer || file === undefined || !weeklyIntervals.includes(answer.ask.interval)) return result
      const begins = await weekdayOf(await engine(), file, answer.ask.interval)
      if (begins === null || begins === weekStart) return result
      return { ...result, reason: `weeks that begin on ${begins}: set metrics.week_start (${weekStart})` }
    }),
  )
}

/**
 * Returns the time up to which points count as finished: by the provider's clock, limited to an hour beyond the local
 * one if the data are real.
 */
function horizonBy(date: Instant | null, local: Instant, synthetic: boolean): Instant {
  if (date === null) return local
  return synthetic ? date : Math.min(date, local + endingSeconds)
}

function bodyOf({ ask, body, request }: AnswerWithBody, coverage: readonly CoverageRow[], synthetic: boolean): Body {
  const askedAt = Math.floor(request.asked_at / 1_000_000)
  const prior = coverage
    .filter((row) => row.state === 'covered' || row.state === 'empty')
    // An answer from the future does not count: a clock was wrong.
    .filter((row) => row.asked_at <= askedAt + endingSeconds)
    .map((row) => ({ since: row.since, until: row.until, askedAt: row.asked_at }))
  return {
    file: body.file,
    lexed: body.lexed,
    request: request.id,
    series: ask.series,
    since: ask.window?.since ?? null,
    until: ask.window?.until ?? null,
    askedAt: knownAt(askedAt, body.date),
    horizon: horizonBy(body.date, askedAt, synthetic),
    prior,
  }
}

/** Answers with the intervals that their points show. */
export interface InferredIntervals {
  /** All answers, each with its interval. */
  readonly batch: readonly Answered[]
  /** Reasons for which the interval of a body contradicts that of its series, by id of the request. */
  readonly refused: ReadonlyMap<string, string>
  /** Intervals that are shown for the first time, by id of the series. */
  readonly shownIntervals: ReadonlyMap<string, Interval>
}

/**
 * Sets the interval of answers of endpoints that take none to the smallest spacing of their points. An interval that is
 * on record, or under which points are stored provisionally (24h), stays; a body with wider points is then not part of
 * the series.
 */
export async function inferIntervals(
  engine: () => Promise<Engine>,
  batch: readonly Answered[],
  storedSeries: ReadonlyMap<string, StoredSeries>,
  weekStart: Weekday,
): Promise<InferredIntervals> {
  const refusals = new Map<string, string>()
  const shownIntervals = new Map<string, Interval>()
  const placed: Answered[] = []
  const spacings = await spacingsIn(engine, batch)
  for (const answered of batch) {
    const spacing = spacings.get(answered)
    if (spacing === undefined || !hasBody(answered)) {
      placed.push(answered)
      continue
    }
    const { ask, body, request } = answered
    const { id } = ask.series
    const storedRecord = storedSeries.get(id)
    const fixed =
      storedRecord?.settled ?? shownIntervals.get(id) ?? ((storedRecord?.points ?? 0) > 0 ? ask.interval : null)
    if (fixed !== null && spacing !== null && longestSeconds(spacing) > longestSeconds(fixed))
      refusals.set(request.id, `points ${spacing} apart in a series of ${fixed}`)
    if (spacing !== null && (fixed === null || fixed === spacing)) shownIntervals.set(id, spacing)
    const at = knownAt(Math.floor(request.asked_at / 1_000_000), body.date)
    placed.push({ ...answered, ask: onGridOf(ask, fixed ?? spacing ?? ask.interval, at, weekStart) })
  }
  return {
    batch: placed,
    /** Reasons for which a body cannot belong to its series, by request. */
    refused: refusals,
    /** Intervals that this batch was the first to show, by series. */
    shownIntervals,
  }
}

/**
 * Determines the spacing of the points of each answer of an endpoint that takes no interval; null if they show none.
 */
async function spacingsIn(
  engine: () => Promise<Engine>,
  batch: readonly Answered[],
): Promise<Map<Answered, Interval | null>> {
  const open = batch.filter(hasBody).filter(({ ask }) => ask.endpoint.intervals.length === 0)
  if (open.length === 0) return new Map()
  const files = open.map(({ body }) => body.file)
  const spacings = await spacingsOf(await engine(), files)
  return new Map(open.map((answer, i) => [answer, spacings[i] ?? null]))
}

/** Expresses a request on the grid of a different interval. */
function onGridOf(ask: Ask, interval: Interval, knownPoint: Instant, weekStart: Weekday): Ask {
  if (interval === ask.interval) return ask
  const { final } = horizonOf(ask.endpoint, interval, knownPoint, weekStart)
  const since = ceil(ask.settles.since, interval, weekStart)
  const until = Math.max(since, Math.min(ceil(ask.settles.until, interval, weekStart), final))
  return { ...ask, interval, settles: { since, until } }
}
