import { LakeError } from '../errors.ts'
import { howToGoOn } from '../net/outcome.ts'

/** How the asking of a run ended, as scripts read it; names are relied on. */
export interface Ended<By extends string = string> {
  /** Null where it came to its end by itself. */
  readonly stopped_by: By | null
  /** When a spent quota comes back, ISO text. */
  readonly resume_at: string | null
  /** What the provider said when it ended the run. */
  readonly words: string | null
}

/** The same of what stopped it, and until when (Unix milliseconds). */
export function endedBy<By extends string>(
  stop: { readonly by: By; readonly until: number | null; readonly words: string | null } | null,
): Ended<By> {
  const { by: stopped_by = null, until = null, words = null } = stop ?? {}
  return { stopped_by, resume_at: until === null ? null : new Date(until).toISOString(), words }
}

/** The error of a run that ended early, with what to do next; `otherwise` where it was neither its key nor a limit. */
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
      return new LakeError('stopped', { subject: `stopped early (${stopped_by})`, next: howToGoOn(resume_at) })
    default:
      return new LakeError('incomplete', { ...otherwise, got })
  }
}
