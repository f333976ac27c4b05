import { day, type Interval, intervals, isInterval, measureOf, phaseOf, shortestSeconds, type Weekday } from './time.ts'

/** The text of an SQL expression. Timestamps and lengths are BIGINT Unix seconds, free of time zones, unless noted. */
export type Sql = string

/** Ticks per second for microseconds; expressions on seconds use 1. */
export const micros = 1_000_000

/** The name of an interval, or an SQL expression for one. */
type IntervalSql = Sql

/** SQL for the start of the interval that contains a timestamp, or of the one `back` intervals before it. */
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

/** SQL for the start of the interval `n` after the interval start `t`; `n` may be negative. */
export function stepSql(t: Sql, interval: IntervalSql, n: number | Sql, ticks = 1): Sql {
  return byInterval(interval, (name) => {
    const { seconds, months } = measureOf(name)
    return months > 0 ? monthsSql(t, months, String(n), ticks) : `${t} + CAST(${n} AS BIGINT) * ${seconds * ticks}`
  })
}

/** SQL for the end of the interval that starts at `t`. */
export function endSql(t: Sql, interval: IntervalSql, ticks = 1): Sql {
  return stepSql(t, interval, 1, ticks)
}

/** SQL condition: `t` is the start of an interval. */
export function onGridSql(t: Sql, interval: IntervalSql, weekStart: Weekday = 'monday'): Sql {
  const each = (name: Interval): Sql => {
    const { seconds, months } = measureOf(name)
    if (months > 0) return `${monthsSql(t, months, undefined, 1)} = ${t}`
    return `(${t} - ${phaseOf(name, weekStart)}) % ${seconds} = 0`
  }
  return byInterval(interval, each, 'BOOLEAN')
}

/** SQL for the length of the interval, months and quarters at their shortest. */
export function lengthSql(interval: IntervalSql, ticks = 1): Sql {
  return byInterval(interval, (name) => String(shortestSeconds(name) * ticks))
}

/** SQL for the number of intervals between two interval starts. */
export function countSql(since: Sql, until: Sql, interval: IntervalSql, ticks = 1): Sql {
  return byInterval(interval, (name) => {
    const { seconds, months } = measureOf(name)
    if (months === 0) return `(${until} - ${since}) // ${seconds * ticks}`
    return `date_diff('month', ${stamp(since, ticks)}, ${stamp(until, ticks)}) // ${months}`
  })
}

/** SQL condition: whole intervals of `part` add up to one interval of `coarser`, which is longer. */
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

/** Builds one expression if the interval is known by name, otherwise a CASE; an unknown interval is an error. */
function byInterval(interval: IntervalSql, each: (name: Interval) => Sql, type = 'BIGINT'): Sql {
  if (isInterval(interval)) return `(${each(interval)})`
  const branches = intervals.map((name) => `WHEN '${name}' THEN ${each(name)}`)
  // Not error(): an expression with side effects cannot be named by an alias, and is never folded.
  const unknown = `CAST('no interval ' || coalesce(CAST(${interval} AS VARCHAR), 'NULL') AS ${type})`
  return `(CASE CAST(${interval} AS VARCHAR) ${branches.join(' ')} ELSE ${unknown} END)`
}

/** SQL for the start of the month or quarter that contains a timestamp, moved by `by` of them. */
function monthsSql(at: Sql, months: number, by: Sql | undefined, ticks: number): Sql {
  const count = months === 1 ? by : `(${by}) * ${months}`
  const moved = by === undefined ? '' : ` + to_months(CAST(${count} AS INTEGER))`
  const us = `epoch_us(date_trunc('${months === 1 ? 'month' : 'quarter'}', ${stamp(at, ticks)})${moved})`
  return ticks === micros ? us : `${us} // ${micros / ticks}`
}

function stamp(at: Sql, ticks: number): Sql {
  return ticks === micros ? `make_timestamp(${at})` : `make_timestamp(CAST((${at}) * ${micros / ticks} AS BIGINT))`
}
