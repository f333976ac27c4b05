import { commit, type CommitDeps, type Draft, type Ticket } from './commit.ts'
import type { Json } from './entry.ts'
import { heldState } from './held.ts'
import type { Ledger } from './ledger.ts'

/** A step from one schema of the lake to the next; what it changes on disk is part of its draft. */
export interface Migration {
  /** The schema that the lake has afterwards. */
  readonly to: number
  /** What it does, for people: it becomes part of the journal. */
  readonly about: string
  readonly draft: (ledger: Ledger, ticket: Ticket) => Promise<Pick<Draft, 'add' | 'remove' | 'state' | 'further'>>
}

/** Every step since schema 1, ascending; the last one leads to the schema that this program writes. */
const migrations: readonly Migration[] = []
const stateKey = 'schema_version'

/** The schema of a lake: 1 unless a migration said otherwise. */
export function lakeSchema(ledger: Ledger): number {
  const held: Json | undefined = heldState(ledger, stateKey)
  return typeof held === 'number' ? held : 1
}

/** Brings a lake forward, each step as a version of its own; one that is up to date or empty gets none. */
export async function migrate(
  ledger: Ledger,
  deps: CommitDeps,
  steps: readonly Migration[] = migrations,
): Promise<number> {
  let made = 0
  for (const { to, about, draft } of steps) {
    const version = await commit(
      ledger,
      async (ticket) => {
        const { provider } = ledger.head()
        if (!provider || lakeSchema(ledger) >= to) return null
        const changes = await draft(ledger, ticket)
        const run = `migrate-${to}-${ticket.version}`
        const state = { ...changes.state, [stateKey]: to }
        return { job: 'migrate', run, provider, ...changes, state, further: { ...changes.further, migration: about } }
      },
      deps,
    )
    if (version.made) made++
  }
  return made
}
