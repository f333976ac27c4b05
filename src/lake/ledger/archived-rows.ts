import type { Json, NamedState } from './entry.ts'
import { checkedValue } from './index-rows.ts'
import { real, shape } from '../../base/value-checks.ts'
import type { Micros } from '../../base/time.ts'

/** Tables whose old rows have moved from the ledger to Parquet files of the lake, in this order. */
export const archived = ['requests', 'coverage', 'runs', 'versions'] as const

/** A table with old rows in files of the lake. */
export type Archived = (typeof archived)[number]

const archivedShape = shape({ before: real, requests: real, credits: real })

/** The extent to which rows of the ledger have moved to files. */
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
 * SQL condition for the rows of a table that move to files. Requests that a live window or a violation names stay in
 * the ledger, and so do live windows.
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

/** Converts the extent to the form of an entry's state. */
export function toState(state: ArchivedState): NamedState {
  return { [stateKey]: { ...state } }
}

/** Reads the extent from the state of an entry or the index; undefined if no rows have moved yet. */
export function fromState(state: (key: string) => Json | undefined): ArchivedState | undefined {
  const value = state(stateKey)
  return value === undefined ? undefined : checkedValue(archivedShape, value, stateKey)
}

/** Deletes the rows from the index that the entry with this state moved to files. */
export function dropArchived(index: { exec(sql: string): void }, state: NamedState): void {
  const archivedBefore = fromState((key) => state[key])
  if (archivedBefore === undefined) return
  index.exec(`DELETE FROM requests WHERE ${archivable('requests', archivedBefore.before)}`)
  index.exec(`DELETE FROM coverage WHERE ${archivable('coverage', archivedBefore.before)}`)
  index.exec(`DELETE FROM runs WHERE ${archivable('runs', archivedBefore.before - month)} AND job <> 'verify'`)
}

/** Whether the index keeps rows of the table that are also in files: every version, and the runs of a month. */
export function isKept(table: Archived): boolean {
  return table === 'versions' || table === 'runs'
}
