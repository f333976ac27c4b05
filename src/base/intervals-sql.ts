import { day, type Interval, intervals, isInterval, measureOf, phaseOf, shortestSeconds, type Weekday } from './time.ts'

/**
 * The text of an SQL expression. Instants and lengths are BIGINT Unix seconds, free of time zones, unless said
 * otherwise.
 */
export type Sql = string

/** Ticks of a second: 1 where instants are seconds, this many where they are microseconds. */
export const micros = 1_000_000

/** The name of an interval, or an SQL expression that gives one. */
type IntervalSql = Sql

/** The start of the interval that contains the instant, or of the one `back` intervals before it. */
export function startSql(
  at: Sql,
  interval: IntervalSql,
  { weekStart = 'monday', back, ticks = 1 }: { weekStart?: Weekday; back?: Sql; ticks?: number } = {},
): Sql {
  return byInterval(interval, (name) => {
    const { seconds, months } = measureOf(name)
    if (months > 0) return monthsSql(at, months, back && `-(${back})`, ticks)
    const size = seconds * ticks
    const shifted = `(${at} - ${phaseOf(name, weekStart) * ticks})`
    const start = `${at} - ((${shifted} % ${size}) + ${size}) % ${size}`
    return back === undefined ? start : `${start} - CAST(${back} AS BIGINT) * ${size}`
  })
}

/** The start of the interval `n` further on from the interval start `t`; `n` may be negative. */
export function stepSql(t: Sql, interval: IntervalSql, n: number | Sql, ticks = 1): Sql {
  return byInterval(interval, (name) => {
    const { seconds, months } = measureOf(name)
    return months > 0 ? monthsSql(t, months, String(n), ticks) : `${t} + CAST(${n} AS BIGINT) * ${seconds * ticks}`
  })
}

/** The end of the interval that starts at `t`. */
export function endSql(t: Sql, interval: IntervalSql, ticks = 1): Sql {
  return stepSql(t, interval, 1, ticks)
}

/** True where `t` starts an interval. */
export function onGridSql(t: Sql, interval: IntervalSql, weekStart: Weekday = 'monday'): Sql {
  const each = (name: Interval): Sql => {
    const { seconds, months } = measureOf(name)
    if (months > 0) return `${monthsSql(t, months, undefined, 1)} = ${t}`
    return `(${t} - ${phaseOf(name, weekStart)}) % ${seconds} = 0`
  }
  return byInterval(interval, each, 'BOOLEAN')
}

/** The length of the interval, months and quarters at their shortest. */
export function lengthSql(interval: IntervalSql, ticks = 1): Sql {
  return byInterval(interval, (name) => String(shortestSeconds(name) * ticks))
}

/** How many intervals lie between two of their starts. */
export function countSql(since: Sql, until: Sql, interval: IntervalSql, ticks = 1): Sql {
  return byInterval(interval, (name) => {
    const { seconds, months } = measureOf(name)
    if (months === 0) return `(${until} - ${since}) // ${seconds * ticks}`
    return `date_diff('month', ${stamp(since, ticks)}, ${stamp(until, ticks)}) // ${months}`
  })
}

/** True where intervals of the one make up whole intervals of the other, which is longer. */
export function fitsSql(part: IntervalSql, coarser: IntervalSql): Sql {
  const pairs = intervals.flatMap((coarse) =>
    intervals.filter((fine) => fits(fine, coarse)).map((fine) => `'${fine} ${coarse}'`),
  )
  return `(CAST(${part} AS VARCHAR) || ' ' || CAST(${coarser} AS VARCHAR)) IN (${pairs.join(', ')})`
}

/** Whether every interval of the longer kind begins and ends with one of the shorter. */
function fits(part: Interval, coarser: Interval): boolean {
  const partMeasure = measureOf(part)
  const coarserMeasure = measureOf(coarser)
  if (partMeasure.weekly || shortestSeconds(part) >= shortestSeconds(coarser)) return false
  if (partMeasure.months > 0) return coarserMeasure.months % partMeasure.months === 0
  // Weeks, months and quarters begin at midnight, on any day.
  return (coarserMeasure.weekly || coarserMeasure.months > 0 ? day : coarserMeasure.seconds) % partMeasure.seconds === 0
}

/**
 * One expression where the interval is known by name, else a CASE; an interval that the table does not have is an
 * error.
 */
function byInterval(interval: IntervalSql, each: (name: Interval) => Sql, type = 'BIGINT'): Sql {
  if (isInterval(interval)) return `(${each(interval)})`
  const branches = intervals.map((name) => `WHEN '${name}' THEN ${each(name)}`)
  // Not by error(): what has side effects may not be named by an alias, and is never folded.
  const unknown = `CAST('no interval ' || coalesce(CAST(${interval} AS VARCHAR), 'NULL') AS ${type})`
  return `(CASE CAST(${interval} AS VARCHAR) ${branches.join(' ')} ELSE ${unknown} END)`
}

/** The first instant of the month or quarter that contains the instant, moved by `by` of them. */
function monthsSql(at: Sql, months: number, by: Sql | undefined, ticks: number): Sql {
  const count = months === 1 ? by : `(${by}) * ${months}`
  const moved = by === undefined ? '' : ` + to_months(CAST(${count} AS INTEGER))`
  const us = `epoch_us(date_trunc('${months === 1 ? 'month' : 'quarter'}', ${stamp(at, ticks)})${moved})`
  return ticks === micros ? us : `${us} // ${micros / ticks}`
}

function stamp(at: Sql, ticks: number): Sql {
  return ticks === micros ? `make_timestamp(${at})` : `make_timestamp(CAST((${at}) * ${micros / ticks} AS BIGINT))`
}
