import type { Sql } from '../../base/intervals-sql.ts'
import { quoteList } from '../../lake/store/engine.ts'

/*
 * The joins over points that may have several vintages. Of each a join gets all that were known, with the instant at which
 * the next one came: what was known at an instant is the row whose next had not come. In a lake without revisable series
 * nothing of this stands in their texts.
 */

/** What is wrong with the option `vintage` of a join, as a branch of a CASE. */
export const vintageMistake = `WHEN coalesce(CAST(vintage AS VARCHAR), '') NOT IN ('last', 'first') THEN error('vintage is ''last'' or ''first''')`

/** What of the texts of the joins depends on whether there are such metrics: for a lake in which the points of these metrics may have several vintages. */
export function vintageWords(revisable: readonly string[]) {
  const any = revisable.length > 0
  const given = (sql: Sql): Sql => (any ? sql : '')
  const list = quoteList(revisable)
  return {
    /** Whether a metric is such a one; null where none is. */
    isRevised: (name: Sql): Sql | null => (any ? `list_contains(${list}, ${name})` : null),
    /** A condition more on rows of a join that were known at an instant: none followed by then. */
    current: (row: string, at: Sql): Sql => given(` AND (${row}.until IS NULL OR ${row}.until > ${at})`),
    /** A condition alone on rows: it was the newest at all. */
    lived: (row: string): Sql => given(`\n  WHERE (${row}.until IS NULL OR ${row}.until > ${row}.available_at)`),
    /** The CTE of the points, or of all their vintages. */
    known: any ? '_pit_w AS NOT MATERIALIZED' : '_pit_p AS MATERIALIZED',
    /** A column more, for `vintages`. */
    observed: given(', known.observed_at'),
    /** The number of a point among those of its asset. */
    number: any ? 'dense_rank()' : 'row_number()',
    /** The CTE `_pit_p` over `known`: with what followed each row of the same keys, by the option only the first of them. */
    vintages: (keys: Sql, revised: Sql): Sql => {
      const order = `PARTITION BY ${keys}, w.t ORDER BY w.available_at, w.observed_at`
      return given(`
_pit_p AS MATERIALIZED (
  SELECT w.*, CAST(NULL AS TIMESTAMPTZ) AS until FROM _pit_w AS w WHERE NOT ${revised}
  UNION ALL
  SELECT w.*, CASE WHEN CAST(vintage AS VARCHAR) = 'last' THEN lead(w.available_at) OVER (${order}) END AS until FROM _pit_w AS w WHERE ${revised}
  QUALIFY CAST(vintage AS VARCHAR) = 'last' OR row_number() OVER (${order}) = 1
),`)
    },
  }
}
