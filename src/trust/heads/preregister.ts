import { usage } from '../../base/errors.ts'
import { commit, type CommitDeps } from '../../lake/ledger/commit.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { storedPreregistered, preregisteredKey, type PreregisteredQuery } from '../../lake/ledger/log.ts'

/** Preregistered query, with the number of all of the lake. */
export interface NamedQuery extends PreregisteredQuery {
  readonly count: number
}

/** Names a query in an entry of its own, before anybody sees its result: its text stays with whoever has it. */
export async function preregister(ledger: Ledger, query: string, deps: CommitDeps): Promise<NamedQuery> {
  const { provider } = ledger.head()
  if (provider === null)
    throw usage('preregister', { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
  const named = sha256(query)
  const draft = async ({ version }: { readonly version: number }) => {
    const queries = storedPreregistered(ledger).map((query) => ({ ...query }))
    if (queries.some((query) => query.sha256 === named)) return null
    const state = { [preregisteredKey]: { queries: [...queries, { sha256: named, version }] } }
    return await Promise.resolve({ job: 'preregister', run: `preregister-${version}`, provider, state })
  }
  await commit(ledger, draft, deps)
  const queries = storedPreregistered(ledger)
  const { version = 0 } = queries.find((query) => query.sha256 === named) ?? {}
  return { sha256: named, version, count: queries.length }
}
