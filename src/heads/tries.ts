import { usage } from '../errors.ts'
import { commit, type CommitDeps } from '../ledger/commit.ts'
import { sha256 } from '../ledger/entry.ts'
import { heldState } from '../ledger/held.ts'
import { proven } from '../ledger/row.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { listOf, shape, text, whole } from '../ledger/shape.ts'

const triesShape = shape({ queries: listOf(shape({ sha256: text, version: whole })) })

/** The state that names the queries which were to be tried, in their order. */
export const triesKey = 'tries'

/** The queries that were named before their results were seen, by the SHA-256 of their text, and in which version. */
export function heldTries(ledger: Ledger) {
  const value = heldState(ledger, triesKey)
  return value === undefined ? { queries: [] } : proven(triesShape, value, triesKey)
}

/** What naming a query came to. */
export interface Tried {
  readonly sha256: string
  /** The version that names it first. */
  readonly version: number
  /** How many queries are named now. */
  readonly count: number
}

/** Names a query in an entry of its own, before anybody sees its result: its text stays with whoever has it. */
export async function nameTry(ledger: Ledger, query: string, deps: CommitDeps): Promise<Tried> {
  const { provider, lake } = ledger.head()
  if (provider === null || lake === null)
    throw usage(`lake ${ledger.root}`, { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
  const named = sha256(query)
  await commit(
    ledger,
    async ({ version }) => {
      const { queries } = heldTries(ledger)
      if (queries.some((one) => one.sha256 === named)) return null
      const state = { [triesKey]: { queries: [...queries.map((one) => ({ ...one })), { sha256: named, version }] } }
      return await Promise.resolve({ job: 'try', run: `try-${version}`, provider, state })
    },
    deps,
  )
  const { queries } = heldTries(ledger)
  const own = queries.find((one) => one.sha256 === named)
  return { sha256: named, version: own?.version ?? 0, count: queries.length }
}
