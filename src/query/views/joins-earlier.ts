import { endSql, lengthSql, micros, type Sql, startSql } from '../../base/intervals-sql.ts'
import type { Weekday } from '../../base/time.ts'
import { literal, slot, spanSql } from './joins-sql.ts'
import type { VintageWords } from './joins-vintages.ts'

/*
 * The joins with `back`: in place of the newest point that was knowable, one that ended a span before it. Both are taken
 * from the same knowledge. Each join is a macro of two forms; that without `back` does not contain any of this.
 */

/** SQL of the option `back`, an INTERVAL; a negative one is an error. */
export const backSpan =
  `coalesce(CASE WHEN epoch_us(${spanSql('back')}) < 0 THEN CAST(error('back is negative') AS INTERVAL) ` +
  `ELSE ${spanSql('back')} END, to_seconds(0))`

/** Interval and span of a join as places of a text. */
export const textOfSpan = { interval: slot('interval'), span: `CAST(${slot('span')} AS INTERVAL)` } as const

/** Values of these places: literals of the macro's parameters. */
export const spanPlaces = {
  interval: literal('CAST("interval" AS VARCHAR)'),
  span: literal(`CAST(${backSpan} AS VARCHAR)`),
} as const

/** Parts of the SQL of a join that differ between a macro and a text that it puts together. */
export interface EarlierPlaces {
  /** Name of the interval. */
  readonly interval: Sql
  /** The span, an INTERVAL. */
  readonly span: Sql
  readonly weekStart: Weekday
  /** Whether a known point may be withdrawn while nulls are skipped; null if there is no revisable metric. */
  readonly lapses: Sql | null
  readonly vintageTexts: VintageWords
}

/**
 * Builds the CTE `_pit_span_ends` over `_pit_newest (_pit_answer_id, KEYS, _pit_known_by, t, o)`, the newest known point of each row: the
 * latest end `_pit_until` that its answer may have, and how far that lies before the end of the newest point, both in
 * microseconds. A row without a point, or with a gap in the resolved range, has none.
 */
export function soughtSql(keys: readonly string[], { interval, span }: EarlierPlaces): Sql {
  const own = keys.map((name) => (name === 'asset' ? 'CAST(n.asset AS VARCHAR) AS asset' : `n.${name}`)).join(', ')
  // Months are counted on the calendar of UTC: an instant with a zone would follow that of the session.
  return `_pit_span_ends AS MATERIALIZED (
  SELECT s._pit_answer_id, ${columns('s', keys)}, s._pit_known_by, s._pit_until, s._pit_newest_end - s._pit_until AS _pit_shift
  FROM (
    SELECT e.*, epoch_us(make_timestamp(e._pit_newest_end) - ${span}) AS _pit_until
    FROM (
      SELECT n._pit_answer_id, ${own}, n._pit_known_by, ${endSql('epoch_us(n.t)', interval, micros)} AS _pit_newest_end
      FROM _pit_newest AS n WHERE n.t IS NOT NULL AND n.o IS DISTINCT FROM ''
    ) AS e
  ) AS s
)`
}

/**
 * Builds the CTEs that end with `_pit_earlier_points (_pit_answer_id, t, available_at, v, o, _pit_end, _pit_shift)`: for each row of
 * `_pit_newest` the newest known point that ended by `_pit_until`. `_pit_all_points` has the points.
 *
 * The start expected there is looked up first. For the other rows two blocks of 64 intervals are searched, the one in
 * which the span ends and the one before it, and if nothing in them was known, the newest earlier block in which
 * something was.
 */
export function earlierSql(keys: readonly string[], places: EarlierPlaces): Sql {
  const { interval, weekStart, lapses, vintageTexts } = places
  const known = (row: string): Sql =>
    `p.available_at <= ${row}._pit_known_by${vintageTexts.current('p', `${row}._pit_known_by`)}`
  const same = (row: string): Sql => keys.map((name) => `p.${name} = ${row}.${name}`).join(' AND ')
  const size = `(64 * ${lengthSql(interval, micros)})`
  const start = startSql('s._pit_until', interval, { weekStart, back: '1', ticks: micros })
  const end = (row: string): Sql => endSql(`epoch_us(${row}.t)`, interval, micros)
  const blocks = `(SELECT p.*, epoch_us(p.t) // ${size} AS block FROM _pit_all_points AS p)`
  const [stable, lapsed] =
    lapses === null
      ? ['', '']
      : [
          ` WHERE NOT ${lapses}`,
          `
    UNION ALL
    SELECT w._pit_answer_id, max(p.t) AS t FROM _pit_far_spans AS w JOIN _pit_all_points AS p ON ${same('w')} AND ${end('p')} <= w._pit_until AND ${known('w')}
    WHERE ${lapses} GROUP BY w._pit_answer_id`,
        ]
  return `${soughtSql(keys, places)},
_pit_expected_hits AS MATERIALIZED (
  SELECT s._pit_answer_id, p.t, p.available_at, p.v, p.o
  FROM (SELECT s.*, make_timestamptz(${start}) AS start FROM _pit_span_ends AS s) AS s
  JOIN _pit_all_points AS p ON ${same('s')} AND p.t = s.start AND ${known('s')}
),
_pit_open_spans AS MATERIALIZED (
  SELECT s.*, s._pit_until // ${size} AS block FROM _pit_span_ends AS s ANTI JOIN _pit_expected_hits AS h ON h._pit_answer_id = s._pit_answer_id
),
_pit_near_points AS MATERIALIZED (
  SELECT s._pit_answer_id, max(p.t) AS t
  FROM (SELECT w.*, w.block - near.n AS near_block FROM _pit_open_spans AS w, (VALUES (0), (1)) AS near (n)) AS s
  JOIN ${blocks} AS p ON ${same('s')} AND p.block = s.near_block AND ${end('p')} <= s._pit_until AND ${known('s')}
  GROUP BY s._pit_answer_id
),
_pit_far_spans AS MATERIALIZED (
  SELECT w.* FROM _pit_open_spans AS w ANTI JOIN _pit_near_points AS c ON c._pit_answer_id = w._pit_answer_id
),
_pit_far_blocks AS MATERIALIZED (
  SELECT w._pit_answer_id, ${columns('w', keys)}, w._pit_known_by, max(b.block) AS block
  FROM _pit_far_spans AS w
  JOIN (
    SELECT ${columns('p', keys)}, p.block, min(p.available_at) AS available_at
    FROM ${blocks} AS p SEMI JOIN _pit_far_spans AS w ON ${same('w')}${stable} GROUP BY ALL
  ) AS b ON ${keys.map((name) => `b.${name} = w.${name}`).join(' AND ')} AND b.block < w.block - 1 AND b.available_at <= w._pit_known_by
  GROUP BY ALL
),
_pit_later_hits AS (
  SELECT s._pit_answer_id, ${columns('s', keys)}, s._pit_known_by, found.t
  FROM _pit_open_spans AS s
  JOIN (
    FROM _pit_near_points
    UNION ALL
    SELECT f._pit_answer_id, max(p.t) AS t FROM _pit_far_blocks AS f JOIN ${blocks} AS p ON ${same('f')} AND p.block = f.block AND ${known('f')}
    GROUP BY f._pit_answer_id${lapsed}
  ) AS found ON found._pit_answer_id = s._pit_answer_id
),
_pit_earlier_points AS MATERIALIZED (
  SELECT h.*, ${end('h')} AS _pit_end, s._pit_shift
  FROM (
    FROM _pit_expected_hits
    UNION ALL
    SELECT e._pit_answer_id, p.t, p.available_at, p.v, p.o FROM _pit_later_hits AS e JOIN _pit_all_points AS p ON ${same('e')} AND p.t = e.t AND ${known('e')}
  ) AS h JOIN _pit_span_ends AS s ON s._pit_answer_id = h._pit_answer_id
)`
}

function columns(row: string, names: readonly string[]): Sql {
  return names.map((name) => `${row}.${name}`).join(', ')
}
