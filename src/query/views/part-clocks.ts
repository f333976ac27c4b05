import { availableSql } from '../../catalog/availability-sql.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import type { Interval } from '../../base/time.ts'
import { quote } from '../../lake/store/engine.ts'

/**
 * A component of the values of user data that is known before the whole value; joins treat it as a metric,
 * `own/x#/open`.
 */
export interface EarlyPart {
  /** Path and pointer, such as `own/x#/open`. */
  readonly name: string
  /** Path of the metric. */
  readonly metric: string
  /** JSON pointer of the component, `/open`. */
  readonly pointer: string
  /** The intervals of the metric. */
  readonly intervals: readonly Interval[]
  /**
   * Returns, for a relation of points, its points of this metric with the `available_at` of the component, for FROM.
   */
  readonly dated: (relation: Sql) => Sql
}

/**
 * Returns all early parts of a catalogue. A value that may be revised is known as a whole, from when it was observed or
 * dated.
 */
export function earlyParts({ endpoints }: Catalogue): EarlyPart[] {
  return [...endpoints.values()].flatMap(({ path: metric, clocks = {}, intervals, revisable }) =>
    Object.entries(revisable ? {} : clocks).map(([pointer, rules]) => {
      const instants = intervals.map(
        (interval) => `WHEN '${interval}' THEN ${availableSql(rules[interval], startSeconds, interval)}`,
      )
      const at = `make_timestamptz((CASE "interval" ${instants.join(' ')} END) * 1000000)`
      // Points that came late, or with an instant of their own, came as a whole.
      const knownAt = `CASE WHEN basis = 'stated' THEN ${at} ELSE available_at END`
      const dated = (relation: Sql): Sql =>
        `(SELECT * REPLACE (${knownAt} AS available_at) FROM ${relation} WHERE metric = ${quote(metric)})`
      return { name: `${metric}#${pointer}`, metric, pointer, intervals, dated }
    }),
  )
}

const startSeconds = '(epoch_us(t) // 1000000)'

/**
 * Builds the SQL of the path of a name, or of the name itself if its pointer is a part that is known before the whole.
 */
export function partPath(parts: readonly EarlyPart[], path: Sql, pointer: Sql): Sql {
  if (parts.length === 0) return path
  const names = quote(`\t${parts.map(({ name }) => name).join('\t')}\t`)
  const whole = `concat(${path}, '#', ${pointer})`
  return (
    `CASE WHEN ${pointer} IS NOT NULL AND contains(${names}, concat(chr(9), ${whole}, chr(9))) THEN ${whole} ` +
    `ELSE ${path} END`
  )
}

/** The pointer of a component, as the view of components makes it. */
const componentName = `(coalesce('/' || replace(replace(part.key, '~', '~0'), '/', '~1'), '') || leaf.pointer)`

/**
 * Builds the inputs of the view of components: the points of the whole, and again those of each part with a separate
 * clock; and a condition that shows each component by one clock only.
 */
export function clockedPoints(
  parts: readonly EarlyPart[],
  points: () => Sql,
  partSql: (part: EarlyPart) => Sql,
): Readonly<Record<string, () => Sql>> {
  if (parts.length === 0) return { points_by_clock: points, clock_condition: () => '' }
  const isPart = (at: Sql): Sql => `(${componentName} = ${at} OR starts_with(${componentName}, ${at} || '/'))`
  const early = parts.map(({ metric, pointer }) => `(metric = ${quote(metric)} AND ${isPart(quote(pointer))})`)
  const each = (part: EarlyPart): Sql =>
    `UNION ALL SELECT *, ${quote(part.pointer)} AS early_part FROM (${partSql(part)}) AS early_points`
  return {
    points_by_clock: () =>
      [`SELECT *, CAST(NULL AS VARCHAR) AS early_part FROM (${points()}) AS whole_points`, ...parts.map(each)].join(
        '\n',
      ),
    clock_condition: () =>
      ` AND CASE WHEN early_part IS NULL THEN NOT (${early.join(' OR ')}) ELSE ${isPart('early_part')} END`,
  }
}
