import { usage } from '../../base/errors.ts'
import { commit, type CommitDeps } from '../../lake/ledger/commit.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { storedPreregistered, preregisteredKey, type PreregisteredQuery } from '../../lake/ledger/log.ts'

/** Preregistered queries, in the order in which they were given. */
export interface Preregistration {
  /** Hash of the text of each query, and the version that recorded it first. */
  readonly queries: readonly PreregisteredQuery[]
  /** Number of all preregistered queries of the lake. */
  readonly count: number
}

/**
 * Records queries in one entry, before anybody sees their results. The lake stores the hashes of their texts. Queries
 * that were recorded earlier keep their version; if all were, no version is made.
 */
export async function preregister(
  ledger: Ledger,
  texts: readonly string[],
  deps: CommitDeps,
): Promise<Preregistration> {
  const { provider } = ledger.head()
  if (provider === null)
    throw usage('preregister', { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
  const hashes = [...new Set(texts.map((text) => sha256(text)))]
  const draft = async ({ version }: { readonly version: number }) => {
    const queries = storedPreregistered(ledger).map((query) => ({ ...query }))
    const known = new Set(queries.map((query) => query.sha256))
    const added = hashes.filter((hash) => !known.has(hash)).map((hash) => ({ sha256: hash, version }))
    if (added.length === 0) return null
    const state = { [preregisteredKey]: { queries: [...queries, ...added] } }
    return await Promise.resolve({ job: 'preregister', run: `preregister-${version}`, provider, state })
  }
  await commit(ledger, draft, deps)
  const stored = new Map(storedPreregistered(ledger).map((query) => [query.sha256, query]))
  return { queries: hashes.flatMap((hash) => stored.get(hash) ?? []), count: stored.size }
}
