import { usage } from '../../base/errors.ts'
import { onGridSql, type Sql } from '../../base/intervals-sql.ts'
import { statementsIn } from '../../lake/store/sql.ts'
import { type Engine, quote } from '../../lake/store/engine.ts'
import {
  day,
  formatInstant,
  type Interval,
  intervals,
  longestSeconds,
  measureOf,
  shortestSeconds,
  type Weekday,
} from '../../base/time.ts'
import { hint } from '../../base/suggestion.ts'
import { sessionCloses, type TradingCalendar } from '../../catalog/sessions.ts'
import type { SourceMapping } from '../../catalog/sources.ts'
import { rowsAsNumbers, statement as ofPoints } from '../points/sql.ts'
import { type ColumnReading, isBareDateSql } from './columns.ts'
import { type OwnFiles, refuseGrown, selectName, unreadableFile } from './files.ts'
import { rawTextSql, refuseRow, unusableRow } from './row-faults.ts'
import { mappedWords, planRows, type RowPlan, type Word } from './row-plan.ts'

const statement = statementsIn(new URL('sql/', import.meta.url))

/** Files to read, and what the lake and the catalogue know about their rows. */
export interface RowsInput {
  readonly given: OwnFiles
  readonly mapping: SourceMapping
  /** Day on which the weeks of the lake begin. */
  readonly weekStart: Weekday
  /** Intervals that the lake stores under this name; default: none. */
  readonly storedIntervals?: readonly Interval[] | undefined
  /** Calendars of the exchanges that a mapping may name; default: none. */
  readonly sessions?: ReadonlyMap<string, TradingCalendar>
}

/** The user's rows in the table `user_rows`. */
export interface ImportedRows extends RowPlan {
  /** The interval of all rows. */
  readonly interval: Interval
  /** Keys whose names are numbered, as the enum `name_of_asset` …. */
  readonly typed: readonly Word[]
  /** Names of the table's columns. */
  readonly columns: ReadonlySet<string>
  readonly rows: number
  /** Rows that repeat a point. */
  readonly doubled: number
}

/**
 * Reads the mapped parts of the files into the table `user_rows`; the first row that cannot be used is an error. If each
 * series has a single row, which shows no interval, the stored interval is used if there is only one.
 */
export async function readRows(engine: Engine, input: RowsInput): Promise<ImportedRows> {
  const { given, mapping, weekStart, sessions = new Map<string, TradingCalendar>() } = input
  const plan = planRows(given, mapping)
  const typed = await loadRows(engine, plan)
  await refuseGrown(given.files)
  const spacing = await measureSpacing(engine, plan)
  const doubled = spacing.doubled ? await countRepeated(engine, plan) : 0
  const interval = mapping.interval ?? (await chooseInterval(engine, spacing, input.storedIntervals))
  await refuseOffGrid(engine, plan, interval, weekStart)
  await refuseOffSessions(engine, plan, interval, sessions)
  const columns = new Set(plan.readings.flatMap(({ name }) => name ?? []))
  const notes = [...plan.notes, ...(await midnightNotes(engine, plan))]
  return { ...plan, notes, interval, typed, columns, rows: spacing.rows, doubled }
}

/** SQL that ends the statement at a row that cannot be used; the error itself is built by `unusableRow`. */
const stopSql = "error('a row that cannot be used')"

/** Fills the table `user_rows`, sorted like a points file; returns the keys whose names are numbered. */
async function loadRows(engine: Engine, plan: RowPlan): Promise<Word[]> {
  const { given, readings, keys } = plan
  await given.load?.(plan.used)
  const cells = readings.flatMap(({ name, sql, bad, isNeeded }) => {
    if (name === null) return []
    const usable = isNeeded ? `coalesce(${sql}, ${stopSql})` : `CASE WHEN ${bad} THEN ${stopSql} ELSE ${sql} END`
    return [`${bad === 'false' ? sql : usable} AS ${name}`]
  })
  const checks = readings.flatMap(({ name, bad }) => (name === null ? [bad] : []))
  const source =
    checks.length === 0
      ? given.relation
      : `${given.relation} WHERE CASE WHEN ${checks.join(' OR ')} THEN ${stopSql} ELSE true END`
  try {
    const typed = given.format === 'parquet' ? await enumKeys(engine, readings, source) : []
    const numbered = typed.map((word) => `CAST(${word} AS name_of_${word}) AS ${word}`)
    const replaced = numbered.length === 0 ? '' : `REPLACE (${numbered.join(', ')})`
    const rows = `(SELECT ${cells.join(',\n  ')} FROM ${source})`
    await engine.run(statement('user_rows', { replaced, rows, order: [...keys, 'mark'].join(', ') }))
    return typed
  } catch (error) {
    throw (await unusableRow(engine, plan)) ?? unreadableFile(given.files[0]?.path ?? selectName, error)
  }
}

/** Number of names from which on they are not numbered. */
const mostNames = 65_535

/**
 * Creates enums (`name_of_asset` …) of the names in columns that can be read alone, and returns which: numbers are sorted,
 * compared and joined in half the time of texts.
 */
async function enumKeys(engine: Engine, readings: readonly ColumnReading[], source: string): Promise<Word[]> {
  const computed: Word[] = []
  for (const { name, sql } of readings) {
    const word = mappedWords.find((mapped) => mapped === name)
    if (word === undefined) continue
    await engine.run(
      `CREATE OR REPLACE TEMP TABLE names AS FROM (SELECT DISTINCT ${sql} AS name FROM ${source}) LIMIT ` +
        `${mostNames + 1}`,
    )
    // An enum cannot contain a name with NUL; the check of the rows reports it.
    const few = 'SELECT CASE WHEN bool_or(contains(name, chr(0))) THEN 0 ELSE count(name) END AS n FROM names'
    const [counted] = await rowsAsNumbers<{ n: number }>(engine, few)
    if (counted === undefined || counted.n === 0 || counted.n > mostNames) continue
    await engine.run(
      `CREATE TYPE name_of_${word} AS ENUM (SELECT name FROM names WHERE name IS NOT NULL ORDER BY name); DROP TABLE names`,
    )
    computed.push(word)
  }
  return computed
}

/** The rows of the table, and the distances between consecutive ones. */
interface Spacing {
  readonly rows: number
  /** Smallest distance between two rows of a series, in seconds; null if each series has one row. */
  readonly least: number | null
  /** Whether two rows of a series have the same time. */
  readonly doubled: boolean
}

/** Counts the rows and measures their distances; no rows are an error, except in a table of the engine itself. */
async function measureSpacing(engine: Engine, { given, keys }: RowPlan): Promise<Spacing> {
  const same = keys.map((key) => `${key} IS NOT DISTINCT FROM lag(${key}) OVER ()`)
  const sql = statement('spacing', { within: ['true', ...same].join(' AND ') })
  const [spacing] = await rowsAsNumbers<Spacing>(engine, sql)
  if ((spacing?.rows ?? 0) === 0 && given.format !== 'table')
    throw usage(given.files[0]?.path ?? selectName, { expected: 'rows', got: 'none' })
  return spacing ?? { rows: 0, least: null, doubled: false }
}

/** A point that several rows give. */
interface RepeatedPoint extends Readonly<Record<string, string | number | boolean | null>> {
  /** Number of all rows that repeat an earlier one. */
  readonly repeated: number
  /** Whether two rows give different values for the point. */
  readonly differs: boolean
}

/** Counts the rows that repeat a point; two rows with different values for one point are an error. */
async function countRepeated(engine: Engine, plan: RowPlan): Promise<number> {
  const { mapping, keys, readings } = plan
  const has = (name: string): boolean => readings.some((reading) => reading.name === name)
  const dated = has('computed') && (mapping.revisable === true || mapping.vintage !== undefined)
  const pointKeys = ['mark', ...(dated ? ['computed'] : []), ...keys]
  const dependentNames = ['v', 'o', 'extra', 'computed'].filter((name) => has(name) && !pointKeys.includes(name))
  const rowSql = (name: string): Sql =>
    name === 'o' || name === 'extra'
      ? `canonical_json(coalesce(${name}, 'null'))`
      : `coalesce(CAST(${name} AS VARCHAR), '')`
  const differs = dependentNames.map((name) => `count(DISTINCT ${rowSql(name)}) > 1`).join(' OR ')
  await engine.run(ofPoints('canonical_json'))
  const sql = statement('repeated_rows', { point_keys: pointKeys.join(', '), differs })
  const [point] = await rowsAsNumbers<RepeatedPoint>(engine, sql)
  if (point?.differs) await refuseDiffering(engine, plan, point, pointKeys)
  return point?.repeated ?? 0
}

/** Refuses the second row of a point for which two rows give different values. */
async function refuseDiffering(
  engine: Engine,
  plan: RowPlan,
  point: RepeatedPoint,
  pointKeys: readonly string[],
): Promise<never> {
  const { given, mapping, constants, readings } = plan
  const subject = `one value for ${point['asset'] ?? constants.asset} at `
  const otherwise = ', for which another row has a different value'
  const wanted = `${subject}${formatInstant(Number(point['mark']))}${otherwise}`
  // The lake knows the interval by its start, or by its end; you look for what the file has.
  const written = rawTextSql(given, readings.find(({ name }) => name === 'mark')?.raw ?? 'NULL')
  const wantedSql = `concat(${quote(subject)}, ${written}, ${quote(otherwise)})`
  const conditions = pointKeys.flatMap((key) => (key === 'day' ? [] : [`_read_${key} = ${quote(String(point[key]))}`]))
  const flag = mapping.components?.[0] ?? 'value'
  return await refuseRow(engine, plan, { flag, wanted, wantedSql, bad: conditions.join(' AND ') }, 2)
}

/**
 * Chooses the interval whose length is the smallest distance between two rows of a series; if no series has two rows,
 * the only stored interval.
 */
async function chooseInterval(
  engine: Engine,
  { least }: Spacing,
  [storedInterval, ...others]: readonly Interval[] = [],
): Promise<Interval> {
  if (least === null && storedInterval !== undefined && others.length === 0) return storedInterval
  // Rows of whole years also begin with a month and a quarter; read as these they would be known too early.
  const fits = intervals.find(
    (name) => least !== null && least >= shortestSeconds(name) && least <= longestSeconds(name),
  )
  if (fits !== undefined && (measureOf(fits).months === 0 || (await areStarts(engine, fits)))) return fits
  const got = least === null ? 'one row a series, or none' : `rows ${least} seconds apart`
  throw usage('--interval', {
    expected: `one of ${intervals.join(', ')}`,
    got,
    next: 'say the interval; irregular series are not taken: make them bars by a SELECT',
  })
}

/** Whether every row is at the start of an interval of months. */
async function areStarts(engine: Engine, interval: Interval): Promise<boolean> {
  const [found] = await engine.rows(`SELECT bool_and(${onGridSql('mark', interval)}) AS all_start FROM user_rows`)
  return found?.['all_start'] === true
}

async function refuseOffGrid(engine: Engine, plan: RowPlan, interval: Interval, weekStart: Weekday): Promise<void> {
  const off = (mark: string): Sql => `NOT ${onGridSql(mark, interval, weekStart)}`
  const [found] = await engine.rows<{ off: boolean }>(`SELECT EXISTS (FROM user_rows WHERE ${off('mark')}) AS off`)
  if (found?.off !== true) return
  const { zone = 'UTC', timestamp } = plan.mapping
  const ends = timestamp === 'interval_end'
  const next = `; in ${zone} it begins elsewhere: give dates in UTC and say so with --available end+5h or the like`
  const months = measureOf(interval).months === 3 ? ', in January, April, July or October' : ''
  const named = ends ? 'end of an interval of' : 'start of an interval of'
  const dates = ends ? ' (a date counts as the end of its day)' : ''
  const zoned = zone === 'UTC' ? '' : next
  const wanted = `the ${named} ${interval}, which begins by the UTC calendar${months}${dates}${zoned}`
  await refuseRow(engine, plan, { flag: 't', wanted, bad: off('_read_mark') })
}

/** Refuses rows on days without a session of the exchange that the mapping names. */
async function refuseOffSessions(
  engine: Engine,
  plan: RowPlan,
  interval: Interval,
  sessions: ReadonlyMap<string, TradingCalendar>,
): Promise<void> {
  const { sessions: code, timestamp } = plan.mapping
  if (code === undefined) return
  const calendar = sessions.get(code)
  if (calendar === undefined) {
    const codes = [...sessions.keys()].toSorted()
    throw usage('--sessions', { expected: `one of ${codes.join(', ')}`, got: code, next: hint(code, codes) })
  }
  if (interval !== '24h') throw usage('--sessions', { expected: 'daily values (24h)', got: interval })
  const marks = sessionCloses(calendar).map(({ day: at }) => (timestamp === 'interval_end' ? at + day : at))
  await engine.run(`CREATE OR REPLACE TEMP TABLE session_marks AS SELECT unnest([${marks.join(', ')}]) AS mark`)
  const off = (mark: string): Sql => `${mark} NOT IN (SELECT mark FROM session_marks)`
  const [found] = await engine.rows<{ off: boolean }>(
    `SELECT EXISTS (FROM user_rows WHERE ${off('user_rows.mark')}) AS off`,
  )
  if (found?.off !== true) return
  const { first, last } = calendar.years
  const wanted = `a session of ${code}, of the years ${first} to ${last}; a SELECT can leave the row out`
  await refuseRow(engine, plan, { flag: 't', wanted, bad: off('_read_mark') })
}

/**
 * Notes columns of times that are all midnights, although a date would count from the end of its day: some programs
 * write dates so, and the values would be known a day early.
 */
async function midnightNotes(engine: Engine, { given, mapping, instants }: RowPlan): Promise<string[]> {
  if (given.format === 'table') return []
  const notes: string[] = []
  for (const { role, source } of instants) {
    if (source.type === 'DATE' || (role === 'interval' && mapping.timestamp !== 'interval_end')) continue
    const micros = role === 'interval' ? 'mark * 1000000' : 'computed'
    const shown = `epoch_us(timezone(${quote(mapping.zone ?? 'UTC')}, make_timestamptz(${micros})))`
    const [found] = await engine.rows<{ midnights: boolean }>(
      `SELECT NOT EXISTS (FROM user_rows WHERE ${shown} % ${day * 1_000_000} <> 0)
         AND NOT coalesce((SELECT ${isBareDateSql(source)} FROM ${given.relation} LIMIT 1), false) AS midnights`,
    )
    if (found?.midnights === true)
      notes.push(`each time in ${source.column} is the beginning of a day; if it means the whole day, write a date`)
  }
  return notes
}

/** The view of the user's rows as points. */
export interface StagedView {
  /** Whether the rows are joined with the bodies by their keys. */
  readonly joins: boolean
  readonly sql: Sql
}

/** SQL that creates the view `staged_points` of a session over the user's rows; `user_bodies` maps keys to bodies. */
export function stagedSql({ keys, typed, columns, mapping }: ImportedRows, start: string): StagedView {
  // Bodies and the names of one enum have the same numbers.
  const [key = '', ...others] = keys
  const joins = others.length > 0 || keys.length !== typed.length
  const body = joins ? 'body' : key === '' ? '0' : `CAST(enum_code(${key}) AS INTEGER)`
  const local = `make_timestamp(CAST((day + 86400) * 1000000 AS BIGINT))`
  const instant = `epoch_us(timezone(${quote(mapping.zone ?? 'UTC')}, ${local}))`
  const payload = Object.entries({ v: 'DOUBLE', o: 'VARCHAR', extra: 'VARCHAR', computed: 'BIGINT' }).map(
    ([name, type]) =>
      columns.has(name)
        ? name
        : `${name === 'computed' && keys.includes('day') ? instant : `CAST(NULL AS ${type})`} AS ${name}`,
  )
  const source = joins ? `user_rows JOIN user_bodies USING (${keys.join(', ')})` : 'user_rows'
  return { joins, sql: statement('staged_points', { body, start, source, values: payload.join(', ') }) }
}
