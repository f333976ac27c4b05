import type { Draft } from './draft.ts'
import type { Provider } from './entry.ts'
import type { Ledger } from './ledger.ts'

/*
 * How a change of layout goes in. `journalSchema` (entry.ts) is what entries, checkpoints and footers of this program
 * say; it rises with every set of changes that an older program would misread, and an older program then refuses the
 * lake. A lake of an older schema is read as it is, by every reading command; the first commit of a newer program makes
 * a version of its own before anything else is written (job `migrate`), which names each step of the list below.
 *
 *   - A new key of an entry or of its rows: optional in entry.ts (older entries lack it), told in
 *     one word in `about` of the newest step.
 *   - A new table, column or key of the index: src/ledger/sql, and one more for `indexSchema` (ledger.ts); it is made
 *     anew from the journal, in every lake, without a commit.
 *   - State that a lake of before needs: `state` of the step.
 *   - Another set of changes, after a release: one more for `journalSchema`, a new step, and new lakes in test/lakes.
 */

/** A step from one schema of the lake to the next. */
export interface Migration {
  /** The schema that the lake has afterwards. */
  readonly to: number
  /** What it does, for people: it becomes part of the journal. */
  readonly about: string
  /** State that older lakes lack. */
  readonly state?: (ledger: Ledger) => NonNullable<Draft['state']>
}

/** Every step since schema 1, ascending; the last one leads to the schema that this program writes. */
export const migrations: readonly Migration[] = [
  {
    to: 2,
    about:
      'a marker; stamps as notes; accepted violations; the clock of each answer; entries are checked, and one may name the entry that it replaces; types of values; recent files',
  },
  { to: 3, about: 'digests of the points of each series and month; what was lost and came again' },
]

/** The draft of the version that brings a lake of an older schema forward; undefined where there is nothing to do. */
export function migration(
  ledger: Ledger,
  provider: Provider | null,
  steps: readonly Migration[] = migrations,
): Draft | undefined {
  const { schema, version } = ledger.head()
  const due = steps.filter(({ to }) => to > schema)
  const newest = due.at(-1)
  if (!newest || !provider) return undefined
  const state = Object.assign({}, ...due.map((step) => step.state?.(ledger) ?? {})) as NonNullable<Draft['state']>
  const about = due.map(({ to, about: words }) => `${to}: ${words}`)
  return { job: 'migrate', run: `migrate-${newest.to}-${version + 1}`, provider, state, further: { migration: about } }
}
