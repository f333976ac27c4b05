import { type SeriesName, readableSeries } from '../../catalog/series.ts'
import type { BodyResult } from '../points/conversion-types.ts'
import {
  type CoverageRow,
  type RequestRow,
  type Verified,
  type Violation,
  violationId,
} from '../../lake/ledger/entry.ts'
import { isPlain } from '../../lake/ledger/coverage.ts'
import { loadCoverage, liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { minus, type Window } from '../../base/windows.ts'
import type { Answered, BatchResult } from './answers.ts'
import { shownUrl } from './api.ts'
import { rowOf } from '../../lake/ledger/index-rows.ts'
import { noneOf } from '../../lake/ledger/verify-rounds.ts'
import { orNull, real, text } from '../../base/value-checks.ts'
import { Engine, quoteList, type Row, quotePaths } from '../../lake/store/engine.ts'
import { inLake } from '../../lake/store/layout.ts'
import type { Ask } from './plan.ts'
import { formatInstant, formatMillis } from '../../base/time.ts'

/** The results of a window that is requested again, the gravest first. */
const verifyResults = [
  ...(['changed', 'vanished', 'null filled', 'computed_at changed', 'revised'] as const),
  ...(['appended', 'identical'] as const),
] as const

/** The result of a window that was requested again. */
export type VerifyResult = (typeof verifyResults)[number]

/**
 * The recorded results of a window that was requested again without a comparison: the provider refused it, or no answer
 * was usable. The record keeps its position in the rotation, but it does not count as verified.
 */
const uncomparedResults = ['refused', 'unanswered'] as const

/** Whether an answer was compared with the stored points. */
export function isCompared({ result }: Pick<Verified, 'result'>): boolean {
  return !uncomparedResults.some((uncompared) => uncompared === result)
}

/** Outcomes of requests that the provider refuses; `not requested` if an earlier refusal of the same run applied. */
const refusingOutcomes: readonly string[] = ['forbidden', 'gone', 'refused', 'not requested']

/** Converts the kind of a violation to a result. */
function resultOfKind(kind: string): VerifyResult {
  return verifyResults.find((result) => result.replaceAll(' ', '_') === kind) ?? 'changed'
}

/** Lists the outcome of every window that was requested again, even if no answer could be compared. */
export function verifiedRows(
  batch: readonly Answered[],
  bodies: readonly BodyResult[],
  violations: readonly Violation[],
): Verified[] {
  const results = new Map(bodies.map((body) => [body.request, body]))
  const against = Map.groupBy(violations, (violation) => violation.request)
  return batch.flatMap(({ ask, request, again, cut }) => {
    const body = results.get(request?.id ?? '')
    const { since, until } = ask.settles
    // For a window that was cut, or could not be read the first time, its parts or the repeated request answer.
    const isPassing = cut === true || (body?.state === 'poison' && !again)
    if (request === null || since >= until || isPassing) return []
    if (body === undefined || body.state === 'poison') {
      const isRefused = body === undefined && refusingOutcomes.includes(request.outcome)
      const uncompared = isRefused ? 'refused' : 'unanswered'
      return [{ series: ask.series.id, since, until, at: request.asked_at, result: uncompared }]
    }
    const found = new Set((against.get(request.id) ?? []).map(({ kind }) => resultOfKind(kind)))
    const { added, addedFirst, vintages = 0 } = body
    if (vintages > 0) found.add('revised')
    if (added > vintages && addedFirst !== null && addedFirst < until) found.add('appended')
    const result = verifyResults.find((result) => found.has(result)) ?? 'identical'
    return [{ series: ask.series.id, since, until, at: request.asked_at, result }]
  })
}

/**
 * Keeps the answers about windows that are not fully covered; if points are stored, their absence upstream changes
 * nothing.
 */
export function onlyMissing(ledger: Ledger, batch: readonly Answered[], coverage: readonly CoverageRow[]) {
  const withBody = new Set(
    batch.flatMap(({ body, request }) => (body === null || request === null ? [] : [request.id])),
  )
  const answeredRows = coverage.filter(
    (row) => row.state !== 'failed' && row.request !== null && withBody.has(row.request),
  )
  const earlier = loadCoverage(ledger, [...new Set(answeredRows.map(({ series }) => series))])
  return answeredRows.flatMap((row) => {
    const plain = (earlier.get(row.series) ?? []).filter(isPlain)
    return minus([row], plain).map((window) => ({ ...row, ...window }))
  })
}

/**
 * Removes the parts of rows that would undo fully covered windows, of the lake or of an earlier row: each of their
 * points is stored, and no answer changes that.
 */
export function keepingProven(ledger: Ledger, coverage: readonly CoverageRow[]): CoverageRow[] {
  const plain = new Map<string, Window[]>()
  for (const [series, rows] of loadCoverage(ledger, [...new Set(coverage.map((row) => row.series))]))
    plain.set(series, rows.filter(isPlain))
  return coverage.flatMap((row) => {
    const proven = plain.get(row.series) ?? []
    if (!isPlain(row)) return minus([row], proven).map((window) => ({ ...row, ...window }))
    plain.set(row.series, [...proven, row])
    return [row]
  })
}

/** Collects the reasons why the last answers of series could not be used, by series. */
export function unusedOf(answers: readonly Answered[], bodies: readonly BodyResult[]): Map<string, string> {
  const poison = new Map(bodies.flatMap((body) => (body.state === 'poison' ? [[body.request, body.reason]] : [])))
  const unused = new Map<string, string>()
  for (const { ask, request, body, coverage } of answers) {
    const reason = poison.get(request?.id ?? '')
    if (reason !== undefined) unused.set(ask.series.id, `body: ${reason ?? 'undecodable'}`)
    else if (body === null)
      unused.set(
        ask.series.id,
        coverage[0]?.reason ?? (typeof request?.detail === 'string' ? request.detail : 'no answer'),
      )
  }
  return unused
}

/** One stored value that the provider no longer returns, with all facts for finding the cause. */
export interface Difference extends SeriesName {
  /** ISO text. */
  readonly t: string
  /** The way in which it differs. */
  readonly result: VerifyResult
  /** The stored value as JSON text; null if there is none. */
  readonly stored: string | null
  /** The provider's value as JSON text; null if it sent none. */
  readonly offered: string | null
  /** Time at which the stored value was received, ISO text; null if unknown. */
  readonly stored_at: string | null
  /** Time at which the provider's value was received, ISO text. */
  readonly offered_at: string
  /** Id of the request that returned the stored value; null if it is not on record. */
  readonly stored_request: string | null
  /** Id of the request that returned the provider's value; null for imported data. */
  readonly offered_request: string | null
  /** The provider's own id of that request; null if it gave none. */
  readonly provider_request: string | null
  /** The address of that request, without secrets; null if it was not sent by this run. */
  readonly address: string | null
}

/** A window without a usable answer. */
export interface Unanswered {
  /** Id of the series. */
  readonly series: string
  /** Start of the window. */
  readonly since: string
  /** End of the window, exclusive. */
  readonly until: string
  /** Reason for having no usable answer. */
  readonly reason: string
  /** Whether the provider refused it: requested again, it is refused again. */
  readonly refused: boolean
}

/** The results of the windows of a plan, as counts. */
export interface WindowEnds {
  readonly verified: number
  /** Windows whose refusal was on record before the run. */
  readonly refused: number
  readonly failures: Unanswered[]
  readonly left: number
}

const earlierOf = rowOf({ id: text, series: text, since: orNull(real), until: orNull(real), asked_at: real })

/** A request of an earlier run that returned a body. */
interface EarlierRequest {
  readonly id: string
  /** Id of the series. */
  readonly series: string
  /** Start of the requested range, seconds; null for none. */
  readonly since: number | null
  /** End of that range, half-open, seconds; null for none. */
  readonly until: number | null
  /** Microseconds. */
  readonly asked_at: number
}

type Compared = Pick<BatchResult, 'violations' | 'verified' | 'unused' | 'answersWithBody'>

/** The results of the batches of a verify so far. */
export class Findings {
  readonly #violations = new Map<string, Violation>()
  readonly #verified: Verified[] = []
  /** Series whose windows the provider refused. */
  readonly #refused = new Set<string>()
  readonly #unused = new Map<string, string>()
  readonly #requests = new Map<string, { readonly request: RequestRow; readonly provider: string | null }>()
  /** Requests by series whose rows are in files of the lake. */
  #archived = new Map<string, EarlierRequest[]>()

  readonly add = ({ violations, verified, unused, answersWithBody }: Compared): void => {
    for (const violation of violations) this.#violations.set(violationId(violation), violation)
    this.#verified.push(...verified.filter(isCompared))
    for (const { series, result } of verified) if (result === 'refused') this.#refused.add(series)
    for (const [series, reason] of unused) this.#unused.set(series, reason)
    const needed = new Set(violations.map(({ request }) => request))
    for (const { request, body } of answersWithBody)
      if (needed.has(request.id)) this.#requests.set(request.id, { request, provider: body.requestId })
  }

  /** Reads requests of differing series from files of the lake, so that `differences` can name one of them. */
  async readArchive(ledger: Ledger): Promise<void> {
    const series = [...new Set([...this.#violations.values()].map((violation) => violation.series))]
    const files = liveFiles(ledger, { table: 'requests' })
    if (series.length === 0 || files.length === 0) return
    using engine = await Engine.open(':memory:', { threads: 1 })
    const rows = await engine.rows<EarlierRequest & Row>(
      `SELECT series, id, epoch(since) AS since, epoch(until) AS until, epoch_us(asked_at)::DOUBLE AS asked_at
         FROM read_parquet(${quotePaths(files.map(({ path }) => inLake(ledger.root, path)))}, hive_partitioning = false)
         WHERE outcome = 'body' AND series IN (SELECT unnest(${quoteList(series)}))`,
    )
    this.#archived = Map.groupBy(rows, ({ series: id }) => id)
  }

  /** Counts windows by result. */
  results(): Record<VerifyResult, number> {
    const counts = noneOf(verifyResults)
    for (const { result } of this.#verified) counts[result as VerifyResult]++
    return counts
  }

  /**
   * Counts the windows of the plan by result: compared, refused as before (`refusedBefore`), without a usable answer,
   * or left for the next run.
   */
  windows(asks: readonly Ask[], refusedBefore: ReadonlySet<Ask>, stopped: boolean): WindowEnds {
    const verified = Map.groupBy(this.#verified, ({ series }) => series)
    const failures: Unanswered[] = []
    let windowsLeft = 0
    let refusedWindows = 0
    for (const ask of asks) {
      const { series, settles } = ask
      const [rest] = minus([settles], verified.get(series.id) ?? [])
      const reason = this.#unused.get(series.id)
      const isRefused = this.#refused.has(series.id)
      if (rest === undefined) continue
      if (reason === undefined && stopped) windowsLeft++
      else if (isRefused && refusedBefore.has(ask)) refusedWindows++
      else {
        const since = formatInstant(rest.since)
        const until = formatInstant(rest.until)
        failures.push({ series: series.id, since, until, reason: reason ?? 'no answer', refused: isRefused })
      }
    }
    return {
      verified: asks.length - failures.length - windowsLeft - refusedWindows,
      refused: refusedWindows,
      failures,
      left: windowsLeft,
    }
  }

  /** Every difference in full. */
  differences(
    ledger: Ledger,
    { base, secrets }: { readonly base: string; readonly secrets: readonly string[] },
  ): Difference[] {
    const before = new Map<string, EarlierRequest[]>()
    return [...this.#violations.values()].map((violation) => {
      const { series, t, kind, stored, offered, stored_at, offered_at, request } = violation
      const sent = this.#requests.get(request ?? '')
      const requests = before.get(series) ?? earlierRequests(ledger, series, this.#archived.get(series) ?? [])
      before.set(series, requests)
      return {
        ...readableSeries(series),
        t: formatInstant(t),
        result: resultOfKind(kind),
        stored,
        offered,
        stored_at: stored_at === null ? null : formatMillis(stored_at),
        offered_at: formatMillis(sent?.request.asked_at ?? offered_at),
        stored_request: broughtBy(requests, t, stored_at),
        offered_request: request,
        provider_request: sent?.provider ?? null,
        address: sent === undefined ? null : addressOf(base, sent.request, secrets),
      }
    })
  }
}

/** Reads the answered requests of a series, latest first. */
function earlierRequests(ledger: Ledger, series: string, archived: readonly EarlierRequest[]): EarlierRequest[] {
  const requestRow = ledger.statement("SELECT * FROM requests WHERE series = ? AND outcome = 'body'").all(series)
  return [...requestRow.map(earlierOf), ...archived].toSorted((a, b) => b.asked_at - a.asked_at)
}

/** Returns the last request before the value was stored whose range includes it; null if there is none. */
function broughtBy(requests: readonly EarlierRequest[], t: number, stored_at: number | null): string | null {
  const found = requests.find(
    ({ since, until, asked_at }) =>
      asked_at <= (stored_at ?? 0) && (since === null || since <= t) && (until === null || until > t),
  )
  return found === undefined ? null : found.id
}

function addressOf(base: string, { path, query }: RequestRow, secrets: readonly string[]): string {
  const text = new URLSearchParams(query).toString()
  return shownUrl(`${new URL(base).origin}${path}?${text}`, secrets)
}
