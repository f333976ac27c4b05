import { type Index, rowOf } from './row.ts'
import { count, orNull, type Proven, real, shape, text } from './shape.ts'

const change = shape({ files: count, rows: count, bytes: count })

/** Files, rows and bytes of one kind of change. */
export type Change = Proven<typeof change>

const changesOf = rowOf({
  version: count,
  /** Microseconds. */
  committed_at: count,
  job: text,
  run: orNull(text),
  points_added: real,
  added: change,
  /** Left the view: other files of the same version hold their rows. */
  replaced: change,
  /** Their bytes were taken away by a vacuum. */
  removed: change,
  violations: count,
  stamps: count,
  rules: count,
})

/** What one commit changed; `rules`: whether availability rules came into force with it. */
export type VersionChange = Omit<ReturnType<typeof changesOf>, 'rules'> & { readonly rules: boolean }

/** What every commit added, replaced and removed, oldest first. */
export function versionChanges(index: Index): VersionChange[] {
  const changes = (of: string): string =>
    `LEFT JOIN (SELECT ${of}_in AS version, json_object('files', count(*), 'rows', sum(rows), 'bytes', sum(bytes)) AS ${of}
       FROM path GROUP BY 1) USING (version)`
  const counted = (table: string, column = 'added_version'): string =>
    `LEFT JOIN (SELECT ${column} AS version, count(*) AS ${table} FROM ${table} GROUP BY 1) USING (version)`
  const nothing = `'{"files":0,"rows":0,"bytes":0}'`
  // A path counts once, when it first came or went, under however many labels it is listed.
  const rows = index.statement(
    `WITH path AS MATERIALIZED (SELECT min(added_version) AS added_in, min(removed_version) AS replaced_in,
         min(dropped_version) AS removed_in, max(rows) AS rows, max(bytes) AS bytes FROM files GROUP BY path)
     SELECT version, committed_at, job, run, points_added, coalesce(added, ${nothing}) AS added,
       coalesce(replaced, ${nothing}) AS replaced, coalesce(removed, ${nothing}) AS removed,
       coalesce(violations, 0) AS violations, coalesce(stamps, 0) AS stamps, coalesce(rules, 0) AS rules
     FROM versions ${['added', 'replaced', 'removed'].map(changes).join(' ')}
       ${counted('violations')} ${counted('stamps')} ${counted('rules', 'version')} ORDER BY version`,
  )
  return rows.all().map((row) => {
    const { rules, ...rest } = changesOf(row)
    return { ...rest, rules: rules > 0 }
  })
}
