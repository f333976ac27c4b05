import type { Ledger } from '../../lake/ledger/ledger.ts'
import { ownScript } from '../../query/altered-lake.ts'
import { openQuery, type SessionVariables, versionOf } from '../../query/lake.ts'
import type { PinnedQuery } from './stamped-rows.ts'
import { loadProvedStamp, refuseForgotten, refuseOutcome } from './stamp.ts'

/** Pins a query over the newest version. */
export async function sourceOfQuery(
  { root }: Ledger,
  query: string,
  variables: SessionVariables,
): Promise<PinnedQuery> {
  // Opened as any session would be: a lake without views, of a different folder or damaged gets the same error.
  using session = await openQuery(root)
  const version = await versionOf(session)
  const script = await ownScript(root)
  return { root, script, query, variables, anyVariable: false, version }
}

/** Pins a stamped result: its query over the version that it was made from, with the views of that time. */
export async function sourceOfStamp(ledger: Ledger, path: string): Promise<PinnedQuery> {
  const stamped = await loadProvedStamp(ledger, path)
  refuseOutcome(stamped.note, path)
  await refuseForgotten(ledger, stamped, path)
  return stamped.source
}
