import { availableSql } from '../../catalog/availability-sql.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import { quote } from '../../lake/store/engine.ts'

/** A part of the values of own data that is known before the whole: it is joined like a metric of its own, `own/x#/open`. */
type EarlyPart = ReturnType<typeof earlyParts>[number]

/** All of them; a value that may be revised is known as a whole, from when it was observed or dated. */
export function earlyParts({ endpoints }: Catalogue) {
  return [...endpoints.values()].flatMap(({ path: metric, clocks = {}, intervals, revisable }) =>
    Object.entries(revisable ? {} : clocks).map(([pointer, rules]) => {
      const instants = intervals.map((one) => `WHEN '${one}' THEN ${availableSql(rules[one], startSeconds, one)}`)
      const at = `make_timestamptz((CASE "interval" ${instants.join(' ')} END) * 1000000)`
      // What came late, or with an instant of its own, came as a whole.
      const known = `CASE WHEN basis = 'stated' THEN ${at} ELSE available_at END`
      const dated = (relation: Sql): Sql =>
        `(SELECT * REPLACE (${known} AS available_at) FROM ${relation} WHERE metric = ${quote(metric)})`
      return { name: `${metric}#${pointer}`, metric, pointer, intervals, dated }
    }),
  )
}

const startSeconds = '(epoch_us(t) // 1000000)'

/** The path of a name, or the name itself where its pointer is a part that is known before the whole. */
export function partPath(parts: readonly EarlyPart[], path: Sql, pointer: Sql): Sql {
  if (parts.length === 0) return path
  const names = quote(`\t${parts.map(({ name }) => name).join('\t')}\t`)
  const whole = `concat(${path}, '#', ${pointer})`
  return `CASE WHEN ${pointer} IS NOT NULL AND contains(${names}, concat(chr(9), ${whole}, chr(9))) THEN ${whole} ELSE ${path} END`
}

/** The pointer of a component, as the view of components makes it. */
const made = `(coalesce('/' || replace(replace(part.key, '~', '~0'), '/', '~1'), '') || leaf.pointer)`

/**
 * What the view of components is made from: the points of the whole, and once more those of each part with a clock of its
 * own; and which of their components are told, behind a condition: each by one clock.
 */
export function clockedPoints(
  parts: readonly EarlyPart[],
  points: () => Sql,
  own: (part: EarlyPart) => Sql,
): Readonly<Record<string, () => Sql>> {
  if (parts.length === 0) return { clocked: points, clocked_too: () => '' }
  const isPart = (at: Sql): Sql => `(${made} = ${at} OR starts_with(${made}, ${at} || '/'))`
  const early = parts.map(({ metric, pointer }) => `(metric = ${quote(metric)} AND ${isPart(quote(pointer))})`)
  const each = (part: EarlyPart): Sql =>
    `UNION ALL SELECT *, ${quote(part.pointer)} AS early_part FROM (${own(part)}) AS early_points`
  return {
    clocked: () =>
      [`SELECT *, CAST(NULL AS VARCHAR) AS early_part FROM (${points()}) AS whole_points`, ...parts.map(each)].join(
        '\n',
      ),
    clocked_too: () =>
      ` AND CASE WHEN early_part IS NULL THEN NOT (${early.join(' OR ')}) ELSE ${isPart('early_part')} END`,
  }
}
