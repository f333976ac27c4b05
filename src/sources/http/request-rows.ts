import { type Asker, type AskerDeps, type AskRequest, createAsker } from './ask.ts'
import { clockOf, describeFailure, resumeHint, type Outcome } from './outcome.ts'
import type { RequestRow } from '../../lake/ledger/entry.ts'
import { LakeError } from '../../base/errors.ts'

/** The fields of a request's row that its outcome does not contain. */
interface Requested extends Pick<RequestRow, 'id' | 'run' | 'api' | 'attempts'> {
  readonly url: string
  /** Time of the answer, milliseconds since 1970. */
  readonly at: number
}

/** The subject of a request; a field that is left out is null. */
export type About = Partial<Pick<RequestRow, 'series' | 'since' | 'until' | 'credits' | 'points'>>

/** Builds the row of a request for the ledger; an address never contains a key. */
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

/** A request that has its final outcome. */
export interface AnsweredRequest {
  readonly outcome: Outcome
  /** Time of the answer, milliseconds since 1970. */
  readonly at: number
  /** The request as the ledger records it. */
  readonly row: RequestRow
}

/** Sends one request, with repeats, until its final outcome. */
export type AskOne = (request: AskRequest, about?: About) => Promise<AnsweredRequest>

/** Creates an asker that returns each outcome with its row, which includes the number of attempts. */
export function createRowAsker(
  deps: AskerDeps,
  whose: Pick<RequestRow, 'run' | 'api'>,
): Pick<Asker, 'drain' | 'sent'> & { readonly ask: AskOne } {
  const attempts = new Map<string, number>()
  const asker = createAsker({
    ...deps,
    onEvent: (event) => {
      if (event.kind === 'sent') attempts.set(event.id, event.attempt)
      deps.onEvent?.(event)
    },
  })
  const ask: AskOne = async (request, about = {}) => {
    const outcome = await asker.ask(request)
    const { id, url } = request
    const at = 'at' in outcome ? outcome.at : deps.now()
    const row = requestRow({ ...whose, id, url, at, attempts: attempts.get(id) ?? 0 }, outcome, about)
    attempts.delete(id)
    return { outcome, at, row }
  }
  return { ...asker, ask }
}

/** The end of a run's requests in the form for scripts, which depend on these names. */
export interface Ended<By extends string = string> {
  /** Reason for ending early; null if the run did not. */
  readonly stopped_by: By | null
  /** Time at which a spent quota is renewed; null if none is spent. */
  readonly resume_at: string | null
  /** Text of the provider when it ended the run; null if there is none. */
  readonly words: string | null
}

/** Converts the reason that stopped a run, and its end (Unix milliseconds), to the form for scripts. */
export function endedBy<By extends string>(
  stop: { readonly by: By; readonly until: number | null; readonly words: string | null } | null,
): Ended<By> {
  const { by: stopped_by = null, until = null, words = null } = stop ?? {}
  return { stopped_by, resume_at: until === null ? null : new Date(until).toISOString(), words }
}

/** Reasons for ending early after which the same command continues, in words. */
const resumableStops = {
  signal: 'it was interrupted',
  max_requests: '--max-requests allows no more requests',
  budget: 'its credits allow no more requests',
  quota: "the provider's quota is spent",
} as const

/**
 * Builds the error of a run that ended early, with the next step; `otherwise` applies if neither the key nor a limit
 * was the reason.
 */
export function endedEarly(
  api: 'metrics' | 'registry',
  { stopped_by, resume_at, words }: Ended,
  otherwise: { readonly subject: string; readonly next: string },
): LakeError | null {
  const got = words || undefined
  switch (stopped_by) {
    case null:
      return null
    case 'unauthorised': {
      const subject = `the ${api === 'metrics' ? 'provider' : 'registry'} refuses the key`
      return new LakeError('unauthorised', { subject, got, next: `check PITLAKE_${api.toUpperCase()}_KEY` })
    }
    case 'signal':
    case 'max_requests':
    case 'budget':
    case 'quota':
      return new LakeError('stopped', {
        subject: `stopped early, because ${resumableStops[stopped_by]}`,
        next: resumeHint(resume_at),
      })
    default:
      return new LakeError('incomplete', { ...otherwise, got })
  }
}
