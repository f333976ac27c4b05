import type { BodyResult } from '../points/conversion.ts'
import type { CoverageRow, Verified, Violation } from '../ledger/entry.ts'
import { isPlain } from '../ledger/coverage.ts'
import { heldCoverage } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { minus, type Window } from '../windows.ts'
import type { Answered } from './answered.ts'

/** What can come of a window that is asked again, the gravest first. */
export const verifyResults = [
  'changed',
  'vanished',
  'null filled',
  'computed_at changed',
  'revised',
  'appended',
  'identical',
] as const

/** What came of a window that was asked again. */
export type VerifyResult = (typeof verifyResults)[number]

/** How the kind of a violation is told as a result. */
export function resultOfKind(kind: string): VerifyResult {
  return verifyResults.find((result) => result.replaceAll(' ', '_') === kind) ?? 'changed'
}

/** What came of every window whose answer could be compared. */
export function verifiedRows(
  batch: readonly Answered[],
  bodies: readonly BodyResult[],
  violations: readonly Violation[],
): Verified[] {
  const results = new Map(bodies.map((body) => [body.request, body]))
  const against = Map.groupBy(violations, (violation) => violation.request)
  return batch.flatMap(({ ask, request }) => {
    const body = results.get(request?.id ?? '')
    if (request === null || body === undefined || body.state === 'poison') return []
    const { since, until } = ask.settles
    const found = new Set((against.get(request.id) ?? []).map(({ kind }) => resultOfKind(kind)))
    const { added, addedFirst, vintages = 0 } = body
    if (vintages > 0) found.add('revised')
    if (added > vintages && addedFirst !== null && addedFirst < until) found.add('appended')
    const result = verifyResults.find((one) => found.has(one)) ?? 'identical'
    return [{ series: ask.series.id, since, until, at: request.asked_at, result }]
  })
}

/** What answers say of windows that are not plainly covered: where points are held, their absence upstream changes nothing. */
export function onlyMissing(
  ledger: Ledger,
  batch: readonly Answered[],
  coverage: readonly CoverageRow[],
): CoverageRow[] {
  const brought = new Set(batch.flatMap(({ body, request }) => (body === null || request === null ? [] : [request.id])))
  const told = coverage.filter((row) => row.state !== 'failed' && row.request !== null && brought.has(row.request))
  const held = heldCoverage(ledger, [...new Set(told.map(({ series }) => series))])
  return told.flatMap((row) => {
    const plain = (held.get(row.series) ?? []).filter(isPlain)
    return minus([row], plain).map((window) => ({ ...row, ...window }))
  })
}

/**
 * The rows without what they would take away: where a window is plainly covered, by the lake or by an earlier row, each
 * of its points is held, and no answer unmakes that.
 */
export function keepingProven(ledger: Ledger, coverage: readonly CoverageRow[]): CoverageRow[] {
  const plain = new Map<string, Window[]>()
  for (const [series, rows] of heldCoverage(ledger, [...new Set(coverage.map((row) => row.series))]))
    plain.set(series, rows.filter(isPlain))
  return coverage.flatMap((row) => {
    const proven = plain.get(row.series) ?? []
    if (!isPlain(row)) return minus([row], proven).map((window) => ({ ...row, ...window }))
    plain.set(row.series, [...proven, row])
    return [row]
  })
}

/** Why the last answer of a series could not be used, by series. */
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
