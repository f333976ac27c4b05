import { gravestOf, type LakeError } from '../errors.ts'
import type { Ended } from '../ledger/requests.ts'
import { contradicted, type Counts, unanswered } from '../ledger/verifying.ts'
import { verifyKinds, type RecordFinding } from './history.ts'
import { verdictOf } from './run.ts'

/** What can come of a check: nothing, not yet (the feed has news of it), nobody can say, or a kind of finding. */
export const registryResults = [...verifyKinds, 'pending', 'untold', 'identical'] as const

/** A finding as scripts read it, with the address that said so. */
export interface RegistryFinding extends Required<RecordFinding> {
  readonly address: string
}

/** What scripts read; names are relied on. */
export interface RegistryVerified extends Ended {
  readonly run: string
  readonly version: number
  readonly requests: number
  readonly budget: number | null
  /** Addresses that could be asked, those that were chosen, and what became of them. */
  readonly checks: Counts
  readonly results: Readonly<Record<(typeof registryResults)[number], number>>
  /** Filters of lists that the provider does not heed (`issuers?country`): lists by them say nothing. */
  readonly ignored: readonly string[]
  readonly findings: readonly RegistryFinding[]
  /** How many were found again of which a person had taken note: they are among the results and no findings. */
  readonly accepted: number
  readonly failures: readonly { readonly address: string; readonly reason: string }[]
}

/** The error that a verify of the registry ends with; null where the provider says what the lake holds. */
export function registryVerdict(summary: RegistryVerified): LakeError | null {
  const { findings, failures } = summary
  const next =
    'nothing held was changed: pitlake registry snapshot takes over what the provider says now, pitlake violations accept takes note'
  return gravestOf([
    contradicted(findings.length, 'contradictions of the registry', next),
    verdictOf(summary),
    unanswered(failures, 'addresses of the registry'),
  ])
}
