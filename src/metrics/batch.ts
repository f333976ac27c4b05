import { commit, type StagedFile, type Ticket } from '../ledger/commit.ts'
import { footerOf } from '../ledger/draft.ts'
import { convert } from '../points/convert.ts'
import {
  type Body,
  type BodyResult,
  type ConvertPart,
  emptyTally,
  type Existing,
  type WrittenFile,
} from '../points/conversion.ts'
import {
  type CoverageRow,
  type Finding,
  type Json,
  type Progress,
  type Provider,
  type Regained,
  type RequestRow,
  type SeriesRow,
  type Verified,
  type Violation,
} from '../ledger/entry.ts'
import { heldCoverage, type HeldFile, heldSeries, type HeldSeries, liveFiles, sortViolations } from '../ledger/held.ts'
import { inLake, pointsFile, recentFile, versioned } from '../store/layout.ts'
import { heldLost } from '../ledger/lost.ts'
import { asDigests } from '../ledger/month-digests.ts'
import { monthsIn, seriesKey } from '../points/month-sums.ts'
import { identityOf } from '../points/order.ts'
import { isRecent, type Partition, partitionsOf, sharesMeta, sharesOf } from '../points/files.ts'
import { weekdayOf } from '../points/spacing.ts'
import { freshValueTypes } from '../points/value-types.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { rulesOf } from '../ledger/datings.ts'
import type { Ask } from './plan.ts'
import { requestIdWords } from '../net/outcome.ts'
import { endingSeconds } from '../net/skew.ts'
import { type Instant, type Interval, weeklyIntervals } from '../time.ts'
import { type Answered, type BatchResult, type Brought, isBrought } from './answered.ts'
import { inferIntervals } from './infer.ts'
import type { OpenRun } from './run.ts'
import { quarantineBody } from '../store/quarantine.ts'
import { knownAt, settleBody, settleFailure } from './settle.ts'
import { keepingProven, onlyMissing, unusedOf, verifiedRows } from './verified.ts'

/** A run and the provider under whose name it commits. */
interface BatchContext extends OpenRun {
  readonly provider: Provider
}

/** Converts every body of the batch and commits all of it as one version. */
export async function commitBatch(context: BatchContext, answers: readonly Answered[]): Promise<BatchResult> {
  const made: Made = { files: [], bodies: [], violations: [], findings: [], regained: [] }
  let coverage: readonly CoverageRow[] = []
  let again: Ask[] = []
  let verified: readonly Verified[] = []
  const { purpose, id: run, provider, input } = context
  const { weekStart } = input.settings.metrics
  const version = await commit(
    context.ledger,
    async (ticket) => {
      const known = seriesNamed(context.ledger, answers)
      const { batch, refused, shown } = await inferIntervals(context.engine, answers, known, weekStart)
      made.bodies.push(...refusals(batch, refused))
      await convertAll(context, ticket, partitions(batch, refused), made)
      const value_types = await freshValueTypes(context.ledger, await context.engine(), made.files)
      const settled = await settleBatch(context, batch, made.bodies, known)
      // A fetch settles all that it asked; a verify only what was missing, and says what came of each window.
      const verifying = purpose.name === 'verify'
      coverage = verifying
        ? onlyMissing(context.ledger, batch, settled.coverage)
        : keepingProven(context.ledger, settled.coverage)
      verified = verifying ? verifiedRows(batch, made.bodies, made.violations) : []
      again = settled.again
      return {
        job: purpose.name,
        run,
        provider,
        providerMoved: input.providerMoved,
        add: made.files,
        series: seriesRows(batch, made.bodies, shown),
        progress: await progressOf(context, batch, made),
        regained: made.regained,
        coverage,
        violations: made.violations,
        findings: made.findings,
        value_types,
        requests: batch.flatMap((one) => (one.request === null ? [] : [withPoints(one, one.request, made.bodies)])),
        rules: rulesOf(input.catalogue),
        verified,
      }
    },
    context.deps,
  )
  const unused = unusedOf(answers, made.bodies)
  for (const [series, bodies] of Map.groupBy(made.bodies, (body) => body.series)) {
    const points = bodies.reduce((sum, { beyond }) => sum + beyond, 0)
    if (points > 0) context.tell({ kind: 'beyond', series, points })
  }
  const { open, accepted } = sortViolations(context.ledger, made.violations)
  return { version, coverage, violations: open, accepted, verified, unused, asked: answers.filter(isBrought), again }
}

interface Made {
  readonly files: StagedFile[]
  readonly bodies: BodyResult[]
  readonly violations: Violation[]
  readonly findings: Finding[]
  readonly regained: Regained[]
}

/** What is held of the series that the answers are about; a few of maybe very many. */
function seriesNamed(ledger: Ledger, answers: readonly Answered[]): Map<string, HeldSeries> {
  return heldSeries(ledger, [...new Set(answers.map(({ ask }) => ask.series.id))])
}

/** Bodies that contradict the interval of their series, as if their conversion had refused them. */
function refusals(batch: readonly Answered[], refused: ReadonlyMap<string, string>): BodyResult[] {
  const { kept: points, ...nothing } = emptyTally
  return batch.flatMap(({ ask, request }) => {
    const reason = refused.get(request?.id ?? '')
    if (request === null || reason === undefined) return []
    return [
      { request: request.id, series: ask.series.id, state: 'poison' as const, reason, points, ...nothing, missing: [] },
    ]
  })
}

/** By partition, in the order in which a recent file is sorted. */
function partitions(batch: readonly Answered[], refused: ReadonlyMap<string, string>): (readonly Brought[])[] {
  const brought = batch.filter(isBrought).filter(({ request }) => !refused.has(request.id))
  const parts = Map.groupBy(brought, ({ ask }) => `${ask.series.metric} ${ask.interval}`)
  return [...parts].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, part]) => part)
}

/** Reads, compares and writes all bodies of the batch together. */
async function convertAll(
  context: BatchContext,
  ticket: Ticket,
  answers: readonly (readonly Brought[])[],
  made: Made,
): Promise<void> {
  const { ledger, connection } = context
  const { spool } = connection
  const { timestamp, weekStart } = context.input.settings.metrics
  const held = liveFiles(ledger, { table: 'points' })
  const name = versioned(ticket.version, context.id)
  const parts = partsOf(context, answers, partitionsOf(held.filter((file) => !isRecent(file))))
  const recent = { existing: existing(ledger, recentOf(held, parts)), out: spool.file(recentName) }
  const metadata = footerOf(ticket)
  const observedAt = BigInt(ticket.committed_at)
  const result = await convert(await context.engine(), { parts, recent, timestamp, weekStart, observedAt, metadata })
  made.bodies.push(...(await withWeekday(context, answers.flat(), result.bodies)))
  made.violations.push(...result.violations)
  made.findings.push(...result.findings)
  made.regained.push(...result.regained)
  for (const [p, { metric, interval }] of parts.entries()) {
    const file = result.files[p]
    if (file)
      made.files.push(staged(context, ownName(p), pointsFile(metric, interval, name), { ...file, metric, interval }))
  }
  if (!result.recent) return
  const { shares, ...file } = result.recent
  const whole = { ...file, metric: null, interval: null, shares: sharesMeta(shares) }
  made.files.push(staged(context, recentName, recentFile(name), whole))
}

/** The recent files that hold points of these partitions: no other one is opened, which may be damaged. */
function recentOf(held: readonly HeldFile[], parts: readonly ConvertPart[]): HeldFile[] {
  const wanted = new Set(parts.map(({ metric, interval }) => `${metric} ${interval}`))
  const holds = (file: HeldFile): boolean =>
    sharesOf(file).some(({ metric, interval }) => wanted.has(`${metric} ${interval}`))
  return held.filter((file) => isRecent(file) && holds(file))
}

const recentName = 'recent.parquet'

function ownName(p: number): string {
  return `${p}.parquet`
}

/** The partitions that the answers are about. */
function partsOf(
  { ledger, connection, provider, input }: BatchContext,
  answers: readonly (readonly Brought[])[],
  held: ReadonlyMap<string, Partition<HeldFile>>,
): ConvertPart[] {
  const ids = answers.flat().map(({ ask }) => ask.series.id)
  const coverage = heldCoverage(ledger, ids)
  const names = input.settings.metrics.paths
  const lost = heldLost(ledger, ids)
  return answers.flatMap((part, p): ConvertPart[] => {
    const [first] = part
    if (!first) return []
    const { interval, endpoint } = first.ask
    const { path: metric, overlap } = endpoint
    const bodies = part.map((one) => ({
      ...bodyOf(one, coverage.get(one.ask.series.id) ?? [], provider.synthetic),
      lost: lost.get(one.ask.series.id),
    }))
    const files = existing(ledger, held.get(`${metric} ${interval}`)?.own ?? [])
    const out = connection.spool.file(ownName(p))
    return [
      {
        metric,
        wireName: names[metric],
        interval,
        rules: endpoint.rules[interval],
        overlap,
        bodies,
        existing: files,
        out,
      },
    ]
  })
}

function existing(ledger: Ledger, files: readonly HeldFile[]): Existing[] {
  return files.map(({ path, min_t, max_t }) => ({ path: inLake(ledger.root, path), min_t, max_t }))
}

type Written = WrittenFile & Pick<StagedFile, 'metric' | 'interval'> & { readonly shares?: Json }

function staged({ connection }: BatchContext, temporary: string, path: string, file: Written): StagedFile {
  const { metric, interval, rows, digest, min_t, max_t, ...meta } = file
  const place = { temporary: connection.spool.path(temporary), path, table: 'points', label: '', metric, interval }
  return { ...place, rows, min_t, max_t, digest, meta }
}

/** A week that begins on another day than the lake's is told by its name. */
async function withWeekday(
  { engine, input }: BatchContext,
  answers: readonly Brought[],
  results: readonly BodyResult[],
): Promise<BodyResult[]> {
  const { weekStart } = input.settings.metrics
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

/** Up to when points count as finished: by the provider's clock, unless a real one runs far ahead in a single answer. */
function horizonBy(date: Instant | null, local: Instant, synthetic: boolean): Instant {
  if (date === null) return local
  return synthetic ? date : Math.min(date, local + endingSeconds)
}

function bodyOf({ ask, body, request }: Brought, coverage: readonly CoverageRow[], synthetic: boolean): Body {
  const askedAt = Math.floor(request.asked_at / 1_000_000)
  const prior = coverage
    .filter((row) => row.state === 'covered' || row.state === 'empty')
    // One of the future is none: a clock was wrong.
    .filter((row) => row.asked_at <= askedAt + endingSeconds)
    .map((row) => ({ since: row.since, until: row.until, askedAt: row.asked_at }))
  return {
    file: body.file,
    request: request.id,
    series: ask.series,
    since: ask.window?.since ?? null,
    until: ask.window?.until ?? null,
    askedAt: knownAt(askedAt, body.date),
    horizon: horizonBy(body.date, askedAt, synthetic),
    prior,
  }
}

async function settleBatch(
  context: BatchContext,
  batch: readonly Answered[],
  bodies: readonly BodyResult[],
  known: ReadonlyMap<string, HeldSeries>,
): Promise<{ coverage: CoverageRow[]; again: Ask[] }> {
  const byRequest = new Map(bodies.map((body) => [body.request, body]))
  const coverage: CoverageRow[] = []
  const again: Ask[] = []
  const { secrets, metrics } = context.input.settings
  const { weekStart } = metrics
  for (const answered of batch) {
    const { ask } = answered
    const result = byRequest.get(answered.request?.id ?? '')
    if (!result || !isBrought(answered)) {
      coverage.push(...answered.coverage)
      continue
    }
    const { id, asked_at } = answered.request
    const at = knownAt(Math.floor(asked_at / 1_000_000), answered.body.date)
    const asked = { at, request: id, weekStart }
    if (result.state !== 'poison')
      coverage.push(...settleBody(ask, result, known.get(ask.series.id)?.first_t ?? null, asked))
    else if (!answered.again) again.push(ask)
    else {
      const reason = result.reason ?? 'undecodable'
      await quarantineBody(context.ledger.root, answered.body, answered.request, reason, secrets)
      const held = heldCoverage(context.ledger, [ask.series.id]).get(ask.series.id) ?? []
      const covered = held.filter((row) => row.state !== 'failed')
      coverage.push(...settleFailure(ask, `body: ${result.reason ?? 'undecodable'}`, covered, asked))
    }
  }
  return { coverage, again }
}

/** Series as the journal names them; without an interval of its own one is settled once good points have shown it. */
function seriesRows(
  batch: readonly Answered[],
  bodies: readonly BodyResult[],
  shown: ReadonlyMap<string, Interval>,
): SeriesRow[] {
  const sound = new Set(bodies.filter(({ state }) => state === 'ok').map(({ series }) => series))
  const rows = new Map<string, SeriesRow>()
  for (const { ask } of batch) {
    const { series } = ask
    const settled = series.interval ?? (sound.has(series.id) ? (shown.get(series.id) ?? null) : null)
    rows.set(series.id, { ...series, settled })
  }
  return [...rows.values()]
}

/** What the batch brought to each series, and what of each month. */
async function progressOf(
  { engine, ledger }: BatchContext,
  batch: readonly Answered[],
  { bodies, files }: Made,
): Promise<Progress[]> {
  const named = new Map(
    batch.map(({ ask }) => [seriesKey(ask.series.metric, ask.interval, identityOf(ask.series)), ask.series.id]),
  )
  const months = await monthsIn(await engine(), ledger.root, files, (key) => named.get(key))
  const brought = Map.groupBy(bodies, ({ series }) => series)
  return [...brought].flatMap(([series, own]): Progress[] => {
    const ts = own.flatMap(({ addedFirst, addedLast }) => [addedFirst, addedLast]).filter((t) => t !== null)
    const points = own.reduce((sum, { added }) => sum + added, 0)
    if (points === 0 || ts.length === 0) return []
    const digests = asDigests(months.get(series) ?? new Map<string, never>())
    return [{ series, points, first_t: Math.min(...ts), last_t: Math.max(...ts), ...digests }]
  })
}

function withPoints({ body }: Answered, request: RequestRow, bodies: readonly BodyResult[]): RequestRow {
  const result = bodies.find((one) => one.request === request.id)
  if (!result) return request
  const poison = result.state === 'poison'
  return {
    ...request,
    points: result.points,
    outcome: poison ? 'poison' : request.outcome,
    detail: poison && body ? `${result.reason ?? ''}${requestIdWords(body)}` : result.reason,
  }
}
