import { clockOf, describeFailure, type Outcome } from '../net/outcome.ts'
import type { RequestRow } from './entry.ts'

/** What of a request's row its outcome does not tell. */
export interface Requested extends Pick<RequestRow, 'id' | 'run' | 'api' | 'attempts'> {
  readonly url: string
  /** When the answer came, milliseconds since 1970. */
  readonly at: number
}

/** What a request was about; what is left out is null. */
export type About = Partial<Pick<RequestRow, 'series' | 'since' | 'until' | 'credits' | 'points'>>

/** The row of a request, as the ledger keeps it; no key is in an address. */
export function requestRow({ url, at, ...requested }: Requested, outcome: Outcome, about: About): RequestRow {
  const { pathname, searchParams } = new URL(url)
  return {
    ...requested,
    path: pathname,
    query: Object.fromEntries(searchParams),
    series: null,
    since: null,
    until: null,
    status: 'status' in outcome ? outcome.status : null,
    outcome: outcome.kind,
    points: null,
    bytes: outcome.kind === 'body' ? outcome.bytes : null,
    credits: null,
    asked_at: Math.floor(at * 1000),
    seconds: 'requestMs' in outcome ? outcome.requestMs / 1000 : null,
    detail: outcome.kind === 'body' ? null : describeFailure(outcome),
    ...clockOf(outcome),
    ...about,
  }
}
