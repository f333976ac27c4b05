import type { Sql } from '../../base/intervals-sql.ts'
import { quoteList } from '../../lake/store/engine.ts'

/*
 * The joins over points that may have several vintages. Of each a join gets all that were known, with the instant at
 * which the next one came: what was known at an instant is the row whose next had not come. In a lake without revisable
 * series nothing of this stands in their texts.
 */

/** Problem with the option `vintage` of a join, as a branch of a CASE. */
export const vintageMistake =
  `WHEN coalesce(CAST(vintage AS VARCHAR), '') NOT IN ('last', 'first') THEN error('vintage is ''last'' or ` +
  `''first''')`

/** SQL of the three switches of a join on which the use of vintages depends. */
interface VintageSwitches {
  /** Whether nulls are skipped. */
  readonly skips: Sql
  /** Whether the metric is revisable. */
  readonly revised: Sql
  /** Whether each point counts by its last vintage. */
  readonly last: Sql
}

/** The parts of the joins' SQL that differ if some metrics of the lake are revisable. */
export interface VintageWords {
  /** Returns whether a metric is revisable; null if the lake has no revisable metric. */
  readonly isRevised: (name: Sql) => Sql | null
  /** Returns a further condition on rows that were known at the instant `at`: no later vintage was known by then. */
  readonly current: (row: string, at: Sql) => Sql
  /** Returns a WHERE clause on rows: each was the newest vintage at some instant. */
  readonly lived: (row: string) => Sql
  /** Returns the head of the CTE of the points, or of all their vintages; `kept` if the points are read once for all. */
  readonly known: (kept: boolean) => Sql
  /** Returns a further column of rows, used by `vintages`; empty if there is no revisable metric. */
  readonly observed: (row: string) => Sql
  /**
   * Returns a condition on the rows of a join that skips nulls. A withdrawn point passes it: the order of vintages must
   * be known first, otherwise the value before the withdrawal would be answered for ever.
   */
  readonly counted: (row: string, switches: VintageSwitches) => Sql
  /** Returns whether a known point may be withdrawn while nulls are skipped; null if there is no revisable metric. */
  readonly mayLapse: (switches: VintageSwitches) => Sql | null
  /** Window function that numbers the points of an asset. */
  readonly number: Sql
  /**
   * Returns the CTE `_pit_all_points` over `known`: each vintage with the instant of the next one, or the first vintages only.
   */
  readonly vintages: (keys: Sql, revised: Sql, skips: Sql) => Sql
}

/** Returns the vintage-dependent SQL for a lake in which the points of these metrics may have several vintages. */
export function vintageWords(revisable: readonly string[]): VintageWords {
  const any = revisable.length > 0
  const ifAny = (sql: Sql): Sql => (any ? sql : '')
  const list = quoteList(revisable)
  return {
    isRevised: (name: Sql): Sql | null => (any ? `list_contains(${list}, ${name})` : null),
    current: (row: string, at: Sql): Sql => ifAny(` AND (${row}.until IS NULL OR ${row}.until > ${at})`),
    lived: (row: string): Sql => ifAny(`\n  WHERE (${row}.until IS NULL OR ${row}.until > ${row}.available_at)`),
    known: (kept: boolean): Sql =>
      any ? '_pit_vintages AS NOT MATERIALIZED' : `_pit_all_points AS ${kept ? '' : 'NOT '}MATERIALIZED`,
    observed: (row: string): Sql => ifAny(`, ${row}.observed_at`),
    counted: (row: string, { skips, revised, last }: VintageSwitches): Sql =>
      `NOT ${skips} OR ${row}.v IS NOT NULL OR ${row}.o IS NOT NULL${ifAny(` OR (${revised} AND ${last})`)}`,
    mayLapse: ({ skips, revised, last }: VintageSwitches): Sql | null =>
      any ? `(${skips} AND ${revised} AND ${last})` : null,
    number: any ? 'dense_rank()' : 'row_number()',
    vintages: (keys: Sql, revised: Sql, skips: Sql): Sql => {
      const order = `PARTITION BY ${keys}, w.t ORDER BY w.available_at, w.observed_at`
      return ifAny(`
_pit_all_points AS MATERIALIZED (
  SELECT w.*, CAST(NULL AS TIMESTAMPTZ) AS until FROM _pit_vintages AS w WHERE NOT ${revised}
  UNION ALL
  SELECT w.*, CASE WHEN CAST(vintage AS VARCHAR) = 'last' THEN lead(w.available_at) OVER (${order}) END AS until FROM _pit_vintages AS w WHERE ${revised}
  QUALIFY CASE WHEN CAST(vintage AS VARCHAR) = 'last' THEN NOT ${skips} OR w.v IS NOT NULL OR w.o IS NOT NULL
    ELSE row_number() OVER (${order}) = 1 END
),`)
    },
  }
}
