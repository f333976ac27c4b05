import { startSql } from '../intervals-sql.ts'
import { type Interval, day, intervals, shortestSeconds, type Weekday, weekdays } from '../time.ts'
import { type Engine, quote, type Row } from '../store/engine.ts'

/** Fewer points say nothing about a spacing. */
const enough = 3

/**
 * The longest interval that fits between the two nearest points of a body; null with fewer than three, and for a body that
 * is no array of points, which its conversion refuses.
 */
export async function spacingOf(engine: Engine, file: string): Promise<Interval | null> {
  const rows = await rowsOf(
    engine,
    `SELECT count(*) AS points, min(t - earlier) AS gap
     FROM (SELECT t, lag(t) OVER (ORDER BY t) AS earlier FROM (SELECT DISTINCT t FROM ${timesOf(file)}))`,
  )
  const { points = 0, gap } = rows?.[0] ?? {}
  return Number(points) < enough ? null : snapped(Number(gap))
}

function snapped(gap: number): Interval {
  const fits = intervals.filter((interval) => gap >= shortestSeconds(interval))
  return fits.at(-1) ?? intervals[0]
}

/** The day on which all weeks of a body begin; null where they do not all begin at the midnight of one day. */
export async function weekdayOf(engine: Engine, file: string, weekly: Interval): Promise<Weekday | null> {
  const rows = await rowsOf(
    engine,
    `SELECT DISTINCT t - ${startSql('t', weekly)} AS phase FROM ${timesOf(file)} LIMIT 2`,
  )
  return rows?.length === 1 ? (weekdays[Number(rows[0]?.['phase']) / day] ?? null) : null
}

function timesOf(file: string): string {
  const read = `read_json(${quote(file)}, format = 'array', hive_partitioning = false, compression = 'uncompressed', columns = {t: 'DOUBLE'})`
  return `(SELECT t FROM ${read} WHERE t IS NOT NULL)`
}

async function rowsOf(engine: Engine, sql: string): Promise<Row[] | null> {
  return await engine.rows(sql).catch(() => null)
}
