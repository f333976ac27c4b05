import type { Json, NamedState } from './entry.ts'
import { checkedValue } from './index-rows.ts'
import { real, shape } from '../../base/value-checks.ts'
import type { Micros } from '../../base/time.ts'

/** What of the ledger's own rows has left it for Parquet files of the lake: these tables, in this order. */
export const archived = ['requests', 'coverage', 'runs', 'versions'] as const

/** A table whose old rows stand in files of the lake. */
export type Archived = (typeof archived)[number]

const archivedShape = shape({ before: real, requests: real, credits: real })

/** How far rows of the ledger have moved into files. */
export interface ArchivedState {
  /** Rows older than this timestamp (microseconds) are in files. */
  readonly before: Micros
  /** Requests among these rows. */
  readonly requests: number
  /** Credits that these requests cost. */
  readonly credits: number
}

const stateKey = 'archived'
const month = 30 * 86_400_000_000

/**
 * The rows of a table that go, as a condition. What a live window or a violation names stays at hand, as do windows
 * that hold.
 */
export function archivable(table: Archived, before: Micros): string {
  switch (table) {
    case 'requests':
      return `asked_at < ${before} AND id NOT IN (SELECT request FROM coverage WHERE removed_version IS NULL
        AND request IS NOT NULL UNION SELECT request FROM violations WHERE request IS NOT NULL)`
    case 'coverage':
      return `removed_version <= (SELECT coalesce(max(version), 0) FROM versions WHERE committed_at < ${before})`
    case 'runs':
      return `started_at < ${before}`
    case 'versions':
      return `committed_at < ${before}`
    default:
      return table satisfies never
  }
}

/** Puts it in the form of an entry's state. */
export function toState(state: ArchivedState): NamedState {
  return { [stateKey]: { ...state } }
}

/** What an entry or the index says of it; undefined where nothing went yet. */
export function fromState(state: (key: string) => Json | undefined): ArchivedState | undefined {
  const value = state(stateKey)
  return value === undefined ? undefined : checkedValue(archivedShape, value, stateKey)
}

/** Takes out of the index what the entry that set this state put into files. */
export function dropArchived(index: { exec(sql: string): void }, state: NamedState): void {
  const archivedBefore = fromState((key) => state[key])
  if (archivedBefore === undefined) return
  index.exec(`DELETE FROM requests WHERE ${archivable('requests', archivedBefore.before)}`)
  index.exec(`DELETE FROM coverage WHERE ${archivable('coverage', archivedBefore.before)}`)
  index.exec(`DELETE FROM runs WHERE ${archivable('runs', archivedBefore.before - month)} AND job <> 'verify'`)
}

/** The tables of which the index keeps rows that stand in files already: every version, the runs of a month. */
export function isKept(table: Archived): boolean {
  return table === 'versions' || table === 'runs'
}
