import { gravestOf, LakeError } from '../errors.ts'
import { type Ended, endedEarly } from '../ledger/ended.ts'
import type { IngestSummary } from './tally.ts'

/** What every job that asks for points says where it ended early. */
export function stoppedEarly(summary: Ended): LakeError | null {
  const next = 'see that PITLAKE_METRICS_URL is right and the network is up, then run the same command again'
  return endedEarly('metrics', summary, { subject: 'the provider cannot be reached', next })
}

/** The error that a fetch ends with after its work, with what to do next; null where all is well. */
export function verdict(summary: IngestSummary): LakeError | null {
  const { violations, incidents } = summary
  return gravestOf([
    differingPoints(violations - incidents),
    differingAtOnce(incidents),
    stoppedEarly(summary),
    unsettled(summary),
  ])
}

function differingPoints(violations: number): LakeError | null {
  if (violations === 0) return null
  const next = 'nothing stored was changed: see pitlake violations list, then pitlake violations accept'
  return new LakeError('integrity', { subject: `${violations} stored values differ upstream`, next })
}

/** What every job says of very many stored values that differ at once. */
export function differingAtOnce(incidents: number): LakeError | null {
  if (incidents === 0) return null
  const subject = `${incidents === 1 ? 'an incident' : `${incidents} incidents`}: very many stored values differ or are missing upstream at once`
  const next =
    'nothing stored was changed: the next fetch asks again, and what it finds as it was has passed; pitlake violations list tells how many'
  return new LakeError('integrity', { subject, next })
}

function unsettled({ windows, refused }: IngestSummary): LakeError | null {
  if (refused > 0) {
    const subject = `${refused} series that ${refused === 1 ? 'has' : 'have'} points ${refused === 1 ? 'is' : 'are'} refused`
    const next = 'asked again each day; pitlake violations list says which, accept takes note of a withdrawal'
    return new LakeError('incomplete', { subject, next })
  }
  if (windows.failed === 0) return null
  const next = 'run the same command again; pitlake sql "FROM coverage WHERE state = \'failed\'" gives the reasons'
  return new LakeError('incomplete', { subject: `${windows.failed} windows failed`, next })
}
