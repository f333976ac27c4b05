import { type Complaint, type ErrorKind, LakeError } from '../../base/errors.ts'
import { codeOf } from '../../lake/store/disk.ts'
import { refusal } from '../../query/refusal.ts'
import type { HttpResponse } from './listen.ts'

/** A refusal on its way from one process to another. */
export interface ToldRefusal {
  readonly kind: ErrorKind
  readonly complaints: readonly Complaint[]
}

/** What was thrown as data; what caused it stays where it was thrown. */
export function refusalIn(error: unknown): ToldRefusal {
  const { kind, complaints } =
    error instanceof LakeError
      ? error
      : new LakeError('unexpected', { subject: error instanceof Error ? error.message : String(error) })
  return { kind, complaints: complaints.map(({ subject, expected, got, next }) => ({ subject, expected, got, next })) }
}

/** An error of the engine that nobody has put into words of ours. */
const ofEngine = /^[A-Z]\w*(?: \w+)* Error: /

/** The refusal for a client of an interface, in words of ours also if something failed that is not the query itself. */
export function reportedRefusal(error: unknown): ToldRefusal {
  if (['ENOSPC', 'EDQUOT'].includes(codeOf(error) ?? ''))
    return refusalIn(
      new LakeError('incomplete', {
        subject: 'no room is left on the disk for the answer',
        next: 'ask for less at once, or make room',
      }),
    )
  const isRaw = error instanceof Error && !(error instanceof LakeError) && ofEngine.test(error.message)
  return refusalIn(isRaw ? refusal(error, { statement: '', script: '', offset: 0, folder: 'the lake' }) : error)
}

/** Returns the error of a refusal, to be thrown in the other process. */
export const thrownBy = ({ kind, complaints }: ToldRefusal): LakeError => new LakeError(kind as 'usage', complaints)

/**
 * The refusal for clients of a lake that cannot be opened: the reason, with its paths, is for whoever runs the server.
 * A cancel and a lack of memory or disk tell nothing of the lake, and stay as they are.
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

/** A refusal over HTTP. */
export function refusedOverHttp(error: unknown): HttpResponse {
  const { message, kind } = thrownBy(reportedRefusal(error))
  return { status: statuses[kind], type: 'text/plain', body: `${message}\n` }
}
