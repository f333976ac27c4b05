import { usage } from '../../base/errors.ts'
import { commit, type CommitDeps } from '../../lake/ledger/commit.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import { heldState } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { checkedValue } from '../../lake/ledger/index-rows.ts'
import { listOf, shape, text, wholeNumber } from '../../base/value-checks.ts'

const triesShape = shape({ queries: listOf(shape({ sha256: text, version: wholeNumber })) })

/** A query that was named before its result was seen. */
export interface PreregisteredQuery {
  /** SHA-256 of its text. */
  readonly sha256: string
  /** Version of the lake that names it. */
  readonly version: number
}

/** Preregistered query, with the number of all of the lake. */
export interface NamedQuery extends PreregisteredQuery {
  readonly count: number
}

/** Queries of the lake that were named before their results were seen, the earliest first. */
export function heldTries(ledger: Ledger): readonly PreregisteredQuery[] {
  const value = heldState(ledger, 'tries')
  return value === undefined ? [] : checkedValue(triesShape, value, 'tries').queries
}

/** Names a query in an entry of its own, before anybody sees its result: its text stays with whoever has it. */
export async function nameTry(ledger: Ledger, query: string, deps: CommitDeps): Promise<NamedQuery> {
  const { provider } = ledger.head()
  if (provider === null)
    throw usage('preregister', { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
  const named = sha256(query)
  const draft = async ({ version }: { readonly version: number }) => {
    const queries = heldTries(ledger).map((one) => ({ ...one }))
    if (queries.some((one) => one.sha256 === named)) return null
    const tries = { queries: [...queries, { sha256: named, version }] }
    return await Promise.resolve({ job: 'preregister', run: `preregister-${version}`, provider, state: { tries } })
  }
  await commit(ledger, draft, deps)
  const queries = heldTries(ledger)
  const { version = 0 } = queries.find((one) => one.sha256 === named) ?? {}
  return { sha256: named, version, count: queries.length }
}
