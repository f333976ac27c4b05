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
 * Builds the CTE `_pit_sought` over `_pit_newest (_pit_j, KEYS, _pit_k, t, o)`, the newest known point of each row: the
 * latest end `_pit_until` that its answer may have, and how far that lies before the end of the newest point, both in
 * microseconds. A row without a point, or with a gap in the resolved range, has none.
 */
export function soughtSql(keys: readonly string[], { interval, span }: EarlierPlaces): Sql {
  const own = keys.map((name) => (name === 'asset' ? 'CAST(n.asset AS VARCHAR) AS asset' : `n.${name}`)).join(', ')
  // Months are counted on the calendar of UTC: an instant with a zone would follow that of the session.
  return `_pit_sought AS MATERIALIZED (
  SELECT s._pit_j, ${columns('s', keys)}, s._pit_k, s._pit_until, s._pit_newest_end - s._pit_until AS _pit_shift
  FROM (
    SELECT e.*, epoch_us(make_timestamp(e._pit_newest_end) - ${span}) AS _pit_until
    FROM (
      SELECT n._pit_j, ${own}, n._pit_k, ${endSql('epoch_us(n.t)', interval, micros)} AS _pit_newest_end
      FROM _pit_newest AS n WHERE n.t IS NOT NULL AND n.o IS DISTINCT FROM ''
    ) AS e
  ) AS s
)`
}

/**
 * Builds the CTEs that end with `_pit_then (_pit_j, t, available_at, v, o, _pit_end, _pit_shift)`: for each row of
 * `_pit_newest` the newest known point that ended by `_pit_until`. `_pit_p` has the points.
 *
 * The start expected there is looked up first. For the other rows two blocks of 64 intervals are searched, the one in
 * which the span ends and the one before it, and if nothing in them was known, the newest earlier block in which
 * something was.
 */
export function earlierSql(keys: readonly string[], places: EarlierPlaces): Sql {
  const { interval, weekStart, lapses, vintageTexts } = places
  const known = (row: string): Sql => `p.available_at <= ${row}._pit_k${vintageTexts.current('p', `${row}._pit_k`)}`
  const same = (row: string): Sql => keys.map((name) => `p.${name} = ${row}.${name}`).join(' AND ')
  const size = `(64 * ${lengthSql(interval, micros)})`
  const start = startSql('s._pit_until', interval, { weekStart, back: '1', ticks: micros })
  const end = (row: string): Sql => endSql(`epoch_us(${row}.t)`, interval, micros)
  const blocks = `(SELECT p.*, epoch_us(p.t) // ${size} AS block FROM _pit_p AS p)`
  const [stable, lapsed] =
    lapses === null
      ? ['', '']
      : [
          ` WHERE NOT ${lapses}`,
          `
    UNION ALL
    SELECT w._pit_j, max(p.t) AS t FROM _pit_wide AS w JOIN _pit_p AS p ON ${same('w')} AND ${end('p')} <= w._pit_until AND ${known('w')}
    WHERE ${lapses} GROUP BY w._pit_j`,
        ]
  return `${soughtSql(keys, places)},
_pit_there AS MATERIALIZED (
  SELECT s._pit_j, p.t, p.available_at, p.v, p.o
  FROM (SELECT s.*, make_timestamptz(${start}) AS start FROM _pit_sought AS s) AS s
  JOIN _pit_p AS p ON ${same('s')} AND p.t = s.start AND ${known('s')}
),
_pit_without AS MATERIALIZED (
  SELECT s.*, s._pit_until // ${size} AS block FROM _pit_sought AS s ANTI JOIN _pit_there AS h ON h._pit_j = s._pit_j
),
_pit_close AS MATERIALIZED (
  SELECT s._pit_j, max(p.t) AS t
  FROM (SELECT w.*, w.block - near.n AS near_block FROM _pit_without AS w, (VALUES (0), (1)) AS near (n)) AS s
  JOIN ${blocks} AS p ON ${same('s')} AND p.block = s.near_block AND ${end('p')} <= s._pit_until AND ${known('s')}
  GROUP BY s._pit_j
),
_pit_wide AS MATERIALIZED (
  SELECT w.* FROM _pit_without AS w ANTI JOIN _pit_close AS c ON c._pit_j = w._pit_j
),
_pit_far AS MATERIALIZED (
  SELECT w._pit_j, ${columns('w', keys)}, w._pit_k, max(b.block) AS block
  FROM _pit_wide AS w
  JOIN (
    SELECT ${columns('p', keys)}, p.block, min(p.available_at) AS available_at
    FROM ${blocks} AS p SEMI JOIN _pit_wide AS w ON ${same('w')}${stable} GROUP BY ALL
  ) AS b ON ${keys.map((name) => `b.${name} = w.${name}`).join(' AND ')} AND b.block < w.block - 1 AND b.available_at <= w._pit_k
  GROUP BY ALL
),
_pit_behind AS (
  SELECT s._pit_j, ${columns('s', keys)}, s._pit_k, found.t
  FROM _pit_without AS s
  JOIN (
    FROM _pit_close
    UNION ALL
    SELECT f._pit_j, max(p.t) AS t FROM _pit_far AS f JOIN ${blocks} AS p ON ${same('f')} AND p.block = f.block AND ${known('f')}
    GROUP BY f._pit_j${lapsed}
  ) AS found ON found._pit_j = s._pit_j
),
_pit_then AS MATERIALIZED (
  SELECT h.*, ${end('h')} AS _pit_end, s._pit_shift
  FROM (
    FROM _pit_there
    UNION ALL
    SELECT e._pit_j, p.t, p.available_at, p.v, p.o FROM _pit_behind AS e JOIN _pit_p AS p ON ${same('e')} AND p.t = e.t AND ${known('e')}
  ) AS h JOIN _pit_sought AS s ON s._pit_j = h._pit_j
)`
}

function columns(row: string, names: readonly string[]): Sql {
  return names.map((name) => `${row}.${name}`).join(', ')
}
