import { startSql } from '../../base/intervals-sql.ts'
import { type Interval, day, offeredIntervals, shortestSeconds, type Weekday, weekdays } from '../../base/time.ts'
import { type Engine, type Row, quotePaths } from '../../lake/store/engine.ts'
import { requireBodyError } from './body-errors.ts'

/** Minimum number of points that show a spacing. */
const minPoints = 3

/**
 * Determines the longest interval that fits between the two nearest points of each body; null with fewer than three,
 * and for a body that is not an array of points, which its conversion refuses. One statement for all bodies, unless one
 * of them cannot be read.
 */
export async function spacingsOf(engine: Engine, files: readonly string[]): Promise<(Interval | null)[]> {
  if (files.length === 0) return []
  const rows = await rowsOf(
    engine,
    `SELECT body, count(*) AS points, min(t - earlier) AS gap
     FROM (SELECT body, t, lag(t) OVER (PARTITION BY body ORDER BY t) AS earlier FROM (SELECT DISTINCT body, t
       FROM ${timesOf(files)}))
     GROUP BY body`,
  )
  if (rows === null && files.length > 1)
    return (await Promise.all(files.map(async (file) => await spacingsOf(engine, [file])))).flat()
  const gaps = new Map(rows?.map(({ body, points, gap }) => [body, Number(points) < minPoints ? null : Number(gap)]))
  return files.map((_, body) => {
    const gap = gaps.get(body) ?? null
    return gap === null ? null : snapped(gap)
  })
}

function snapped(gap: number): Interval {
  const fits = offeredIntervals.filter((interval) => gap >= shortestSeconds(interval))
  return fits.at(-1) ?? offeredIntervals[0]
}

/** Returns the day on which all weeks of a body begin; null if they do not all begin at the midnight of one weekday. */
export async function weekdayOf(engine: Engine, file: string, weekly: Interval): Promise<Weekday | null> {
  const rows = await rowsOf(
    engine,
    `SELECT DISTINCT t - ${startSql('t', weekly)} AS phase FROM ${timesOf([file])} LIMIT 2`,
  )
  return rows?.length === 1 ? (weekdays[Number(rows[0]?.['phase']) / day] ?? null) : null
}

function timesOf(files: readonly string[]): string {
  const read =
    `read_json(${quotePaths(files)}, format = 'array', hive_partitioning = false, compression = 'uncompressed', ` +
    `columns = {t: 'DOUBLE'})`
  return `(SELECT CAST(file_index AS INTEGER) AS body, t FROM ${read} WHERE t IS NOT NULL)`
}

async function rowsOf(engine: Engine, sql: string): Promise<Row[] | null> {
  try {
    return await engine.rows(sql)
  } catch (error) {
    requireBodyError(error)
    return null
  }
}
