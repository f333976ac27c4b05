import { commit, type CommitDeps } from '../../lake/ledger/commit.ts'
import { type BodyResult, type ConflictStatus, identityOf } from '../points/conversion-types.ts'
import {
  type CoverageRow,
  type Progress,
  type RequestRow,
  type RevertedViolations,
  type SeriesRow,
  type Violation,
  violationId,
} from '../../lake/ledger/entry.ts'
import { isAnswer } from '../../lake/ledger/coverage.ts'
import { loadCoverage, storedSeries, type StoredSeries } from '../../lake/ledger/index-queries.ts'
import { asDigests } from '../../lake/ledger/month-digests.ts'
import { monthsIn, seriesKey } from '../points/month-sums.ts'
import { revisableState } from '../points/revisable.ts'
import { freshValueTypes } from '../points/value-types.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { rulesOf } from '../points/datings.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { Ask } from './plan.ts'
import type { Purpose } from './run.ts'
import { requestIdWords } from '../http/outcome.ts'
import { formatMillis, type Interval, type Micros, step, unshownInterval, type Weekday } from '../../base/time.ts'
import { type Answered, type BatchResult, hasBody } from './answers.ts'
import {
  type BatchContext,
  compareAll,
  inferIntervals,
  manyAtOnce,
  type BatchDifferences,
  type StagedConversion,
} from './convert-batch.ts'
import { quarantineBody } from '../../lake/store/quarantine.ts'
import { knownAt, coverageFromBody, settleFailure } from './settle.ts'
import { keepingProven, onlyMissing, unusedOf, verifiedRows } from './verify-findings.ts'
import { incidentOf, type Standing, standingDifferences } from '../../lake/ledger/differences.ts'

/** The facts on which a judgement depends; `recorded` is the number of differences that the run recorded before. */
interface Judging {
  readonly recorded: number
  readonly at: Micros
  readonly intervalOf: (request: string | null) => Interval
}

/**
 * Decides how differences are recorded: as single findings or, if there are many at once, as an incident of the day.
 */
export function judgeDifferences(
  ledger: Ledger,
  { fresh, noted, statuses }: BatchDifferences,
  { recorded, at, intervalOf }: Judging,
) {
  const about = [...Map.groupBy(statuses, ({ standing }) => standing)]
  const over = about.filter(([, points]) => points.some(({ shown }) => shown === false))
  const standingSeen = about.flatMap(([difference, points]) =>
    points.some(({ shown }) => shown === true) ? [difference] : [],
  )
  const open = standingSeen.filter(({ accepted }) => accepted === null)
  const many = fresh.length + recorded > manyAtOnce
  const incident = many && fresh.length > 0 ? [incidentOf(ledger, 'metrics', formatMillis(at).slice(0, 10))] : []
  const alone = many ? [] : fresh
  const parts = incident.flatMap((id) =>
    inWindows(fresh, intervalOf).map((violation) => ({ ...violation, incident: id })),
  )
  return {
    violations: [...noted, ...alone, ...parts, ...over.flatMap(([difference, points]) => leftOf(difference, points))],
    passed: passedOf(
      ledger,
      over.map(([difference]) => difference),
    ),
    seen: {
      violations: [...alone, ...open.filter((difference) => difference.incident === undefined)],
      incidents: [...new Set([...open.flatMap((difference) => difference.incident ?? []), ...incident])],
      accepted: [...noted.map(violationId), ...standingSeen.flatMap(({ accepted }) => accepted ?? [])],
      recorded: fresh.length,
    },
  }
}

/** Returns the parts of a window that are still missing, with the time at which they were first found missing. */
function leftOf(standing: Standing, points: readonly ConflictStatus[]): Violation[] {
  if (standing.until === undefined) return []
  const remaining: Violation[] = []
  let run: ConflictStatus[] = []
  const close = (until: number): void => {
    const [first] = run
    if (first) remaining.push({ ...standing, t: first.t, until, points: run.length })
    run = []
  }
  for (const point of points) {
    if (point.shown === false) close(point.t)
    else run.push(point)
  }
  close(standing.until)
  return remaining
}

/**
 * Lists reverted violations in the shortest form: a whole incident of a series if none of its differences is open any
 * more.
 */
function passedOf(ledger: Ledger, over: readonly Standing[]): RevertedViolations[] {
  const groups = Map.groupBy(over, ({ series, incident }) => JSON.stringify([series, incident]))
  return [...groups.values()].map((group): RevertedViolations => {
    const [{ series, incident }] = group as [Standing]
    const ofIncident = standingDifferences(ledger, [series]).filter((difference) => difference.incident === incident)
    if (incident !== undefined && ofIncident.length === group.length) return { series, incident }
    const differences = group.map(({ t, kind, offered, until }) => ({
      t,
      kind,
      offered,
      ...(until !== undefined && { until }),
    }))
    return { series, ...(incident !== undefined && { incident }), differences }
  })
}

/** Combines consecutive points that an answer lacked into windows. */
function inWindows(violations: readonly Violation[], intervalOf: Judging['intervalOf']): Violation[] {
  const lacking = violations.filter(({ kind }) => kind === 'vanished')
  const windows: Violation[] = []
  for (const group of Map.groupBy(lacking, ({ series }) => series).values()) {
    let last: Violation | undefined
    for (const violation of group.toSorted((a, b) => a.t - b.t)) {
      const until = step(violation.t, intervalOf(violation.request), 1)
      if (last !== undefined && last.until !== undefined && violation.t < last.until) continue
      if (last?.until === violation.t) windows.pop()
      last =
        last?.until === violation.t
          ? { ...last, until, points: (last.points ?? 0) + 1 }
          : { ...violation, stored: null, stored_at: null, until, points: 1 }
      windows.push(last)
    }
  }
  return [...windows, ...violations.filter(({ kind }) => kind !== 'vanished')]
}

/** The dependencies of committing a batch, in addition to its conversion. */
export interface BatchCommit {
  /** The job: a verify records only missing points, and the result of each window. */
  readonly job: Purpose['name']
  readonly catalogue: Catalogue
  readonly providerMoved: boolean
  /** Texts that must not reach a quarantined body. */
  readonly secrets: readonly string[]
  readonly deps: CommitDeps
  /** Called for each series whose new points contain integers that a double cannot represent. */
  readonly onBeyond: (series: string, points: number) => void
}

/** Converts every body of the batch and commits all of it as one version. */
export async function commitBatch(
  context: BatchContext,
  { job, catalogue, providerMoved, secrets, deps, onBeyond }: BatchCommit,
  answers: readonly Answered[],
): Promise<BatchResult> {
  let done: (Omit<BatchResult, 'version'> & { readonly made: StagedConversion }) | undefined
  const { run, ledger, engine, provider, differing: before, during } = context
  const { weekStart } = context.settings
  const version = await commit(
    ledger,
    async (ticket) => {
      const storedSeries = seriesNamed(ledger, answers)
      const inferred = await during(
        'reading',
        async () => await inferIntervals(engine, answers, storedSeries, weekStart),
      )
      const { batch, doubts, differing, made } = await compareAll(context, ticket, inferred)
      const intervals = new Map(batch.map(({ ask, request }) => [request?.id ?? null, ask.interval]))
      const intervalOf = (request: string | null): Interval => intervals.get(request) ?? unshownInterval
      const judged = judgeDifferences(ledger, differing, {
        recorded: before.recorded,
        at: ticket.committed_at,
        intervalOf,
      })
      const learnt = await during('proving', async () => await learntFrom(context, batch, made))
      const coverageOfBatch = await settleBatch({ ledger, weekStart, secrets }, batch, made.bodies, storedSeries)
      // A fetch resolves everything that it requested; a verify only missing points, and records the result of each
      // window.
      const verifying = job === 'verify'
      const coverage = verifying
        ? onlyMissing(ledger, batch, coverageOfBatch.coverage)
        : keepingProven(ledger, coverageOfBatch.coverage)
      const verified = verifying ? verifiedRows(batch, made.bodies, made.violations) : []
      const again = [...coverageOfBatch.again.map((ask) => ({ ask, doubted: null })), ...doubts]
      const unused = unusedOf(answers, made.bodies)
      const revised = batch.flatMap(({ ask }) => (ask.endpoint.revisable ? [ask.series.metric] : []))
      done = { made, ...judged.seen, coverage, verified, unused, answersWithBody: answers.filter(hasBody), again }
      return {
        job,
        run,
        provider,
        providerMoved,
        add: made.files,
        series: seriesRows(batch, made.bodies, inferred.shownIntervals),
        regained: made.regained,
        coverage,
        violations: judged.violations,
        passed: judged.passed,
        findings: made.findings,
        ...learnt,
        requests: batch.flatMap((answer) =>
          answer.request === null ? [] : [withPoints(answer, answer.request, made.bodies)],
        ),
        rules: rulesOf(catalogue),
        ...(made.files.length > 0 && { state: revisableState(ledger, revised) }),
        verified,
      }
    },
    deps,
  )
  if (!done) throw new RangeError('a batch that nobody drafted')
  const { made, ...outcome } = done
  reportBeyond(made, onBeyond)
  return { version, ...outcome }
}

function reportBeyond({ bodies: all }: StagedConversion, onBeyond: BatchCommit['onBeyond']): void {
  for (const [series, bodies] of Map.groupBy(all, (body) => body.series)) {
    const points = bodies.reduce((sum, { beyond }) => sum + beyond, 0)
    if (points > 0) onBeyond(series, points)
  }
}

/** Reads the stored series to which the answers belong, usually a few of very many. */
function seriesNamed(ledger: Ledger, answers: readonly Answered[]): Map<string, StoredSeries> {
  return storedSeries(ledger, [...new Set(answers.map(({ ask }) => ask.series.id))])
}

interface BatchSettling {
  readonly ledger: Ledger
  readonly weekStart: Weekday
  /** Texts that must not reach a quarantined body. */
  readonly secrets: readonly string[]
}

async function settleBatch(
  { ledger, weekStart, secrets }: BatchSettling,
  batch: readonly Answered[],
  bodies: readonly BodyResult[],
  storedSeries: ReadonlyMap<string, StoredSeries>,
): Promise<{ coverage: CoverageRow[]; again: Ask[] }> {
  const byRequest = new Map(bodies.map((body) => [body.request, body]))
  const coverage: CoverageRow[] = []
  const again: Ask[] = []
  for (const answered of batch) {
    const { ask } = answered
    const result = byRequest.get(answered.request?.id ?? '')
    if (!result || !hasBody(answered)) {
      coverage.push(...answered.coverage)
      continue
    }
    const { id, asked_at } = answered.request
    const at = knownAt(Math.floor(asked_at / 1_000_000), answered.body.date)
    const request = { at, request: id, weekStart }
    if (result.state !== 'poison')
      coverage.push(...coverageFromBody(ask, result, storedSeries.get(ask.series.id)?.first_t ?? null, request))
    else if (!answered.again) again.push(ask)
    else {
      const reason = result.reason ?? 'undecodable'
      await quarantineBody(ledger.root, answered.body, answered.request, reason, secrets)
      const storedRows = loadCoverage(ledger, [ask.series.id]).get(ask.series.id) ?? []
      coverage.push(
        ...settleFailure(ask, `body: ${result.reason ?? 'undecodable'}`, storedRows.filter(isAnswer), request),
      )
    }
  }
  return { coverage, again }
}

/**
 * Builds the rows of series for the journal; a series without an interval of its own gets one once good points have
 * shown it.
 */
function seriesRows(batch: readonly Answered[], bodies: readonly BodyResult[], shown: ReadonlyMap<string, Interval>) {
  const sound = new Set(bodies.filter(({ state }) => state === 'ok').map(({ series }) => series))
  const rows = new Map<string, SeriesRow>()
  for (const { ask } of batch) {
    const { series } = ask
    const settledInterval = series.interval ?? (sound.has(series.id) ? (shown.get(series.id) ?? null) : null)
    rows.set(series.id, { ...series, settled: settledInterval })
  }
  return [...rows.values()]
}

/** Determines new types of values, and the progress of each series and month, from a converted batch. */
export async function learntFrom(
  { engine, ledger }: Pick<BatchContext, 'engine' | 'ledger'>,
  batch: readonly { readonly ask: Pick<Ask, 'series' | 'interval'> }[],
  { bodies, files }: Pick<StagedConversion, 'bodies' | 'files'>,
) {
  const value_types = await freshValueTypes(ledger, await engine(), files)
  const named = new Map(
    batch.map(({ ask }) => [seriesKey(ask.series.metric, ask.interval, identityOf(ask.series)), ask.series.id]),
  )
  const find = (key: string): string | undefined => named.get(key)
  const months = await monthsIn(await engine(), ledger.root, files, find)
  const bodiesBySeries = Map.groupBy(bodies, ({ series }) => series)
  const progress = [...bodiesBySeries].flatMap(([series, results]): Progress[] => {
    const ts = results.flatMap(({ addedFirst, addedLast }) => [addedFirst, addedLast]).filter((t) => t !== null)
    const points = results.reduce((sum, { added }) => sum + added, 0)
    if (points === 0 || ts.length === 0) return []
    const digests = asDigests(months.get(series) ?? new Map<string, never>())
    const vintages = results.reduce((sum, body) => sum + (body.vintages ?? 0), 0)
    const bounds = { first_t: Math.min(...ts), last_t: Math.max(...ts) }
    return [{ series, points, ...bounds, ...digests, ...(vintages > 0 && { vintages }) }]
  })
  return { value_types, progress }
}

function withPoints({ body }: Answered, request: RequestRow, bodies: readonly BodyResult[]): RequestRow {
  const result = bodies.find((body) => body.request === request.id)
  if (!result) return request
  const poison = result.state === 'poison'
  return {
    ...request,
    points: result.points,
    outcome: poison ? 'poison' : request.outcome,
    detail: poison && body ? `${result.reason ?? ''}${requestIdWords(body)}` : result.reason,
  }
}
