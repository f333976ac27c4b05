import { LakeError } from '../errors.ts'
import { howToGoOn } from '../net/outcome.ts'
import type { IngestSummary } from './tally.ts'

/** The error that a fetch ends with after its work, with what to do next; null where all is well. */
export function verdict(summary: IngestSummary): LakeError | null {
  const { stopped_by, words, violations, windows, refused } = summary
  const said = words === null || words === '' ? undefined : words
  if (stopped_by === 'unauthorised') {
    const next = 'check PITLAKE_METRICS_KEY'
    return new LakeError('unauthorised', { subject: 'the provider refuses the key', got: said, next })
  }
  if (violations > 0) {
    const next = 'nothing stored was changed: see pitlake violations list, then pitlake violations accept'
    return new LakeError('integrity', { subject: `${violations} stored values differ upstream`, next })
  }
  if (stopped_by === 'unreachable') {
    const next = 'see that PITLAKE_METRICS_URL is right and the network is up, then run the same command again'
    return new LakeError('incomplete', { subject: 'the provider cannot be reached', got: said, next })
  }
  if (stopped_by !== null)
    return new LakeError('stopped', { subject: `stopped early (${stopped_by})`, next: howToGoOn(summary.resume_at) })
  if (refused > 0) {
    const subject = `${refused} series that ${refused === 1 ? 'has' : 'have'} points ${refused === 1 ? 'is' : 'are'} refused`
    const next = 'asked again each day; pitlake violations list says which, accept takes note of a withdrawal'
    return new LakeError('incomplete', { subject, next })
  }
  if (windows.failed === 0) return null
  const next = 'run the same command again; pitlake sql "FROM coverage WHERE state = \'failed\'" gives the reasons'
  return new LakeError('incomplete', { subject: `${windows.failed} windows failed`, next })
}
