import type { ValueType } from './entry.ts'
import { type Index, rowOf } from './row.ts'
import { valueTypeFields } from './entry.ts'

const typeOf = rowOf(valueTypeFields)

/** What is said of the types of these metrics' values. */
export function heldValueTypes(index: Index, metrics: readonly string[]): ValueType[] {
  const one = index.statement(
    `SELECT metric, path, parent, type, nullif(after_type, '') AS after, available_at, ruled_at FROM value_types
     WHERE metric = ? AND removed_version IS NULL ORDER BY path, type, after_type, added_version`,
  )
  return metrics.flatMap((metric) => one.all(metric).map(typeOf))
}

/** How many changes of the types of values are known: what the view `schema_changes` tells of metrics. */
export function countValueChanges(index: Index): number {
  const [row] = index
    .statement(
      `WITH seen AS (
         SELECT metric, path, parent, type, after_type, min(available_at) AS at FROM value_types
         WHERE removed_version IS NULL GROUP BY metric, path, parent, type, after_type
       ), firsts AS (SELECT metric, path, parent, min(at) AS at FROM seen WHERE after_type = '' GROUP BY metric, path, parent)
       SELECT (SELECT count(*) FROM firsts f JOIN seen o ON o.metric = f.metric AND o.path = f.parent
           AND o.type = 'object' AND o.after_type = '' WHERE f.at > o.at)
         + (SELECT count(*) FROM (SELECT at, min(at) OVER (PARTITION BY metric, path) AS first FROM seen
           WHERE after_type = '' AND type <> 'null') WHERE at > first)
         + (SELECT count(*) FROM seen again JOIN seen first USING (metric, path, type) JOIN seen other USING (metric, path)
           WHERE again.after_type = other.type AND first.after_type = '' AND other.after_type = ''
             AND first.at < other.at AND again.at IS NOT NULL) AS changes`,
    )
    .all()
  return Number(row?.['changes'] ?? 0)
}
