import { type Complaint, type ErrorKind, LakeError, usage } from '../../base/errors.ts'
import { codeOf } from '../../lake/store/disk.ts'
import { refusal } from '../../query/refusal.ts'
import type { HttpResponse } from './listen.ts'

/** Refusal in transfer from one process to another. */
export interface ToldRefusal {
  readonly kind: ErrorKind
  readonly complaints: readonly Complaint[]
}

/** Converts an error to data; its cause stays in the process that threw it. */
export function refusalIn(error: unknown): ToldRefusal {
  const { kind, complaints } =
    error instanceof LakeError
      ? error
      : new LakeError('unexpected', { subject: error instanceof Error ? error.message : String(error) })
  return { kind, complaints: complaints.map(({ subject, expected, got, next }) => ({ subject, expected, got, next })) }
}

/** Error of the engine that was not put into our words. */
const ofEngine = /^[A-Z]\w*(?: \w+)* Error: /

/**
 * Builds the refusal for a client of an interface, in our own words also if something failed that is not the query
 * itself.
 */
export function reportedRefusal(error: unknown): ToldRefusal {
  if (['ENOSPC', 'EDQUOT'].includes(codeOf(error) ?? ''))
    return refusalIn(
      new LakeError('incomplete', {
        subject: 'no room is left on the disk for the answer',
        next: 'query less data at once, or make room',
      }),
    )
  const isRaw = error instanceof Error && !(error instanceof LakeError) && ofEngine.test(error.message)
  return refusalIn(isRaw ? refusal(error, { statement: '', script: '', offset: 0, folder: 'the lake' }) : error)
}

/** Builds the error of a tool that cannot answer about a part of the lake, on a server with an `as_of` limit. */
export function wholeLakeOnly(tool: string, wall: string): LakeError {
  return usage(tool, {
    expected: 'the whole lake',
    got: `what was known at ${wall} (--as-of)`,
    next: 'ask a server that was started without --as-of, or the command line',
  })
}

/** Returns the error of a refusal, to be thrown in the other process. */
export const thrownBy = ({ kind, complaints }: ToldRefusal): LakeError => new LakeError(kind as 'usage', complaints)

/**
 * Builds the refusal for clients of a lake that cannot be opened: the reason, with its paths, is for the operator of
 * the server. A cancel and a lack of memory or disk reveal nothing of the lake, and stay as they are.
 */
export function unopenedLake(error: unknown): LakeError {
  const refusal = reportedRefusal(error)
  if (['stopped', 'incomplete', 'busy'].includes(refusal.kind)) return thrownBy(refusal)
  return new LakeError('integrity', {
    subject: 'the lake',
    expected: 'views that can be opened',
    got: 'none',
    next: 'whoever runs the server finds the reason on its stderr, and by pitlake doctor',
    cause: error instanceof LakeError ? (error.cause ?? error) : error,
  })
}

const statuses = {
  usage: 400,
  stopped: 504,
  incomplete: 507,
  busy: 503,
  unauthorised: 500,
  integrity: 500,
  unexpected: 500,
}

/** Builds a refusal over HTTP. */
export function refusedOverHttp(error: unknown): HttpResponse {
  const { message, kind } = thrownBy(reportedRefusal(error))
  return { status: statuses[kind], type: 'text/plain', body: `${message}\n` }
}
