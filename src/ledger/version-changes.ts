import type { Index } from './row.ts'
import type { Micros } from '../time.ts'

/** Files, rows and bytes of one kind of change. */
export interface Change {
  readonly files: number
  readonly rows: number
  readonly bytes: number
}

/** What one commit changed. */
export interface VersionChange {
  readonly version: number
  readonly committed_at: Micros
  readonly job: string
  readonly run: string | null
  readonly points_added: number
  readonly added: Change
  /** Left the view: other files of the same version hold their rows. */
  readonly replaced: Change
  /** Their bytes were taken away by a vacuum. */
  readonly removed: Change
  readonly violations: number
  readonly stamps: number
  /** Whether availability rules came into force with it. */
  readonly rules: boolean
}

/** What every commit added, replaced and removed, oldest first. */
export function versionChanges(index: Index): VersionChange[] {
  const added = changesBy(index, 'min(added_version)')
  const replaced = changesBy(index, 'min(removed_version)')
  const removed = changesBy(index, 'min(dropped_version)')
  const violations = countsBy(index, 'violations', 'added_version')
  const stamps = countsBy(index, 'stamps', 'added_version')
  const rules = countsBy(index, 'rules', 'version')
  const rows = index.statement('SELECT version, committed_at, job, run, points_added FROM versions ORDER BY version')
  return rows.all().map((row) => {
    const version = Number(row['version'])
    return {
      version,
      committed_at: Number(row['committed_at']),
      job: String(row['job']),
      run: row['run'] === null ? null : String(row['run']),
      points_added: Number(row['points_added']),
      added: added.get(version) ?? nothing,
      replaced: replaced.get(version) ?? nothing,
      removed: removed.get(version) ?? nothing,
      violations: violations.get(version) ?? 0,
      stamps: stamps.get(version) ?? 0,
      rules: rules.has(version),
    }
  })
}

const nothing: Change = { files: 0, rows: 0, bytes: 0 }

/** A path counts once, when it first came or went, under however many labels it is listed. */
function changesBy(index: Index, first: string): Map<number, Change> {
  const rows = index.statement(
    `SELECT version, count(*) AS files, sum(rows) AS rows, sum(bytes) AS bytes FROM
       (SELECT ${first} AS version, max(rows) AS rows, max(bytes) AS bytes FROM files GROUP BY path)
     WHERE version IS NOT NULL GROUP BY version`,
  )
  return new Map(
    rows.all().map((row) => {
      const change = { files: Number(row['files']), rows: Number(row['rows']), bytes: Number(row['bytes']) }
      return [Number(row['version']), change]
    }),
  )
}

function countsBy(index: Index, table: string, column: string): Map<number, number> {
  const rows = index.statement(`SELECT ${column} AS version, count(*) AS n FROM ${table} GROUP BY 1`).all()
  return new Map(rows.map((row) => [Number(row['version']), Number(row['n'])]))
}
