import { type Complaint, type ErrorKind, LakeError } from '../../base/errors.ts'
import { isTooLarge } from '../../query/refusal.ts'
import type { Shown } from './listen.ts'

/** A refusal on its way from one process to another. */
interface ToldRefusal {
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

/** The same for whoever asked a door; no room in memory or on the disk is a kind of its own. */
export function toldRefusal(error: unknown): ToldRefusal {
  const full = isTooLarge(error) || ['ENOSPC', 'EDQUOT'].includes(String((error as NodeJS.ErrnoException).code))
  return { ...refusalIn(error), ...(full && { kind: 'incomplete' }) }
}

/** The same, to be thrown where it is told. */
export const thrownBy = ({ kind, complaints }: ToldRefusal): LakeError => new LakeError(kind as 'usage', complaints)

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
export function refusedOverHttp(error: unknown): Shown {
  const { message, kind } = thrownBy(toldRefusal(error))
  return { status: statuses[kind], type: 'text/plain', body: `${message}\n` }
}
