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
import { sessionCloses, sessionYears, type TradingCalendar } from '../../catalog/sessions.ts'
import { exportRule, type SourceMapping } from '../../catalog/sources.ts'
import { rowsAsNumbers, statement as ofPoints } from '../points/sql.ts'
import {
  type ColumnReading,
  readComponents,
  rawOf,
  readInstant,
  readValue,
  readWord,
  type Source,
  spellingSql,
} from './columns.ts'
import { exportDay, fileColumn, type OwnFiles, refuseGrown, unreadableFile } from './files.ts'

const statement = statementsIn(new URL('sql/', import.meta.url))

/** The dimensions of a series, as mappings name them. */
export const mappedWords = ['asset', 'currency', 'exchange', 'network'] as const
/** A dimension of a series, as mappings name it. */
export type Word = (typeof mappedWords)[number]

/** Files, and the mapping by which they are read. */
interface Reading {
  readonly given: OwnFiles
  readonly mapping: SourceMapping
}

/** A part of the key of a row: a dimension, or `day` if each file is the export of a day. */
export type RowKey = Word | 'day'

/** The user's rows in the table `user_rows`. */
export interface ImportedRows extends Reading {
  /** The interval of all rows. */
  readonly interval: Interval
  /** Columns of the table that key a row, in addition to its time. */
  readonly keys: readonly RowKey[]
  /** Keys whose names are numbered, as the enum `name_of_asset` …. */
  readonly typed: readonly Word[]
  /** Names of the table's columns. */
  readonly columns: ReadonlySet<string>
  /** Dimensions that the mapping states for all rows. */
  readonly constants: Readonly<Partial<Record<Word, string>>>
  readonly rows: number
  /** Rows that repeat a point. */
  readonly doubled: number
  /** Notes on what the mapping leaves open, and on the assumptions made. */
  readonly notes: readonly string[]
}

/**
 * Reads the mapped parts of the files into the table `user_rows`; the first row that cannot be used is an error. If each
 * series has a single row, which shows no interval, the stored interval is used if there is only one.
 */
export async function readRows(
  engine: Engine,
  ownFiles: OwnFiles,
  mapping: SourceMapping,
  weekStart: Weekday,
  [knownInterval, ...others]: readonly Interval[] = [],
  sessions: ReadonlyMap<string, TradingCalendar> = new Map(),
): Promise<ImportedRows> {
  const reading = { given: ownFiles, mapping }
  const { readings, keys, constants, notes, used } = readingsOf(reading)
  await ownFiles.load?.(used)
  const takenColumns = readings
    .filter(({ name }) => name !== '')
    .map((reading) => `${checked(reading)} AS ${reading.name}`)
  // Readings without a column of their own are only checked.
  const also = readings.filter(({ name }) => name === '').map(({ bad }) => bad)
  const source =
    also.length === 0
      ? ownFiles.relation
      : `${ownFiles.relation} WHERE CASE WHEN ${also.join(' OR ')} THEN error('own') ELSE true END`
  const order = [...keys, 'mark'].join(', ')
  let typed: Word[] = []
  try {
    typed = ownFiles.format === 'parquet' ? await enumKeys(engine, readings, source) : []
    const columns = typed.map((word) => `CAST(${word} AS name_of_${word}) AS ${word}`)
    const rows = `(SELECT ${takenColumns.join(',\n  ')} FROM ${source})`
    const replaced = columns.length === 0 ? '' : `REPLACE (${columns.join(', ')})`
    await engine.run(statement('user_rows', { replaced, rows, order }))
  } catch (error) {
    throw (await faultOf(engine, reading)) ?? unreadableFile(ownFiles.files[0]?.path ?? 'the SELECT', error)
  }
  await refuseGrown(ownFiles.files)
  const same = keys.map((key) => `${key} IS NOT DISTINCT FROM lag(${key}) OVER ()`)
  const within = ['true', ...same].join(' AND ')
  const [lying] = await rowsAsNumbers<Spacing>(engine, statement('spacing', { within }))
  const { rows = 0, least = null } = lying ?? {}
  if (rows === 0 && ownFiles.format !== 'table')
    throw usage(ownFiles.files[0]?.path ?? 'the SELECT', { expected: 'rows', got: 'none' })
  const doubled = lying?.doubled ? await countAgain(engine, reading) : 0
  const usual = least === null && others.length === 0 ? knownInterval : undefined
  const interval = mapping.interval ?? usual ?? (await intervalOf(engine, least))
  await refuseOffGrid(engine, reading, interval, weekStart)
  await refuseOffSessions(engine, reading, interval, sessions)
  const columns: ReadonlySet<string> = new Set(readings.map(({ name }) => name))
  return { given: ownFiles, mapping, interval, keys, typed, columns, constants, rows, doubled, notes }
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

/**
 * Determines the mapped parts of each row. `keys`: the dimensions that have a column, and `day` if each file is an
 * export of one; `constants`: those that the mapping sets for all rows; `notes`: what it leaves open, and the
 * assumptions made; `used`: the columns.
 */
function readingsOf({ given, mapping }: Reading) {
  const names = given.columns.map(({ name }) => name)
  const takenNames = new Set<string>()
  const column = (key: keyof SourceMapping, name: string = key): Source => {
    const found = given.columns.find((column) => column.name === name)
    takenNames.add(name)
    if (found?.unreadable) throw found.unreadable
    if (found) return { column: name, type: found.type, json: given.format === 'json' }
    throw usage(`--${key.replace('_', '-')}`, {
      expected: `a column of the file (${names.join(', ')})`,
      got: name,
      next: hint(name, names) ?? 'pitlake import --guess FILE proposes a mapping',
    })
  }
  const constants: Partial<Record<Word, string>> = {}
  const keys: (Word | 'day')[] = []
  const readings: ColumnReading[] = []
  for (const word of mappedWords) {
    const source = mapping[word] ?? (word === 'asset' ? 'asset' : undefined)
    if (source?.startsWith('=')) constants[word] = source.slice(1)
    else if (source !== undefined) {
      keys.push(word)
      readings.push(readWord(word, column(word, source)))
    }
  }
  const t = column('t', mapping.t)
  const spelt = spellingSql(t)
  const dating = (['available_at', 'vintage'] as const).find((key) => mapping[key] !== undefined)
  const isExport = mapping.available === exportRule
  // If the time of availability is given, a day need not begin where the lake's does.
  readings.push(readInstant('interval', 't', t, { ...mapping, label: dating !== undefined || isExport }))
  if (spelt !== null) readings.push(likeFirst(t, spelt, given.relation))
  if (dating)
    readings.push(readInstant('knowledge', dating.replace('_', '-'), column(dating, mapping[dating]), mapping))
  const { components } = mapping
  const valued = (key: 'components' | 'value', name?: string): Source => valueSource(column(key, name), mapping)
  if (components) readings.push(...readComponents(components.map((component) => valued('components', component))))
  else readings.push(...readValue(valued('value', mapping.value)))
  if (isExport) {
    keys.push('day')
    readings.push({ name: 'day', flag: 'available', sql: dayOf(given), bad: 'false', raw: 'NULL', wanted: `''` })
  }
  const left = names.filter((name) => !takenNames.has(name))
  const naive = t.type === 'VARCHAR' || t.type === 'DATE' || t.type === 'TIMESTAMP' || t.json
  const notes = [
    ...(naive && mapping.zone === undefined ? ['times without a zone are UTC: --zone'] : []),
    ...(left.length > 0 ? [`columns that are not taken: ${left.join(', ')}`] : []),
  ]
  return { readings, keys, constants, notes, used: [...takenNames] }
}

/** Adds to a column of values the text that means a missing one, which only a column of texts can contain. */
function valueSource(source: Source, { null_text: nullText }: SourceMapping): Source {
  if (nullText === undefined || source.json || source.type === 'VARCHAR') return { ...source, nullText }
  throw usage('--null', {
    expected: `texts in the column ${source.column}`,
    got: source.type,
    next: 'leave --null away: what is missing there is null already; or read the column as text by a SELECT',
  })
}

/** Instants of one column are spelt in one way. */
function likeFirst(t: Source, spelt: Sql, relation: Sql): ColumnReading {
  const first = `(SELECT ${spelt} FROM ${relation} LIMIT 1)`
  const wanted = `CASE ${first} WHEN 0 THEN 'a time without a zone'
    WHEN 1 THEN 'a time with its zone' ELSE 'a number' END`
  const bad = `(${spelt}) <> ${first}`
  return { name: '', flag: 't', sql: '', raw: rawOf(t), bad, wanted: `${wanted} || ', as in the first row'` }
}

function checked({ sql, bad }: ColumnReading): string {
  return bad === 'false' ? sql : `CASE WHEN ${bad} THEN error('own') ELSE ${sql} END`
}

/**
 * SQL of the end of the day in the name of each row's file, in the mapped zone, in microseconds: the time from which
 * the row was known.
 */
function dayOf({ files }: OwnFiles): string {
  const days = files.map(({ path }) => {
    const day = exportDay(path)
    if (day === null)
      throw usage(path, { expected: 'a name with one date, as prices-2024-03-01.csv', got: 'none, or several' })
    return `WHEN ${quote(path)} THEN ${day}`
  })
  return `CAST(CASE ${fileColumn} ${days.join(' ')} END AS BIGINT)`
}

/** A defect of a row: the condition over the columns of the files and their readings, such as `_read_mark`. */
interface Wrong {
  readonly flag: string
  readonly wanted: string
  /** SQL of `wanted`, if it quotes the row; default: the text as it is. */
  readonly wantedSql?: Sql
  readonly bad: Sql
}

interface Fault extends Pick<Wrong, 'flag' | 'wanted'> {
  readonly file: string
  readonly n: number
  readonly raw: string | null
}

/**
 * Finds the first row of the files, or a later one, with an unusable value, or with the given fault, and builds an
 * error of one line; undefined if there is none.
 */
async function faultOf(engine: Engine, reading: Reading, knownFault?: Wrong, nth = 1) {
  const { given } = reading
  const { readings } = readingsOf(reading)
  const raw = readings.find(({ flag }) => flag === knownFault?.flag)?.raw ?? 'NULL'
  const wrong = knownFault
    ? [{ ...knownFault, wanted: knownFault.wantedSql ?? quote(knownFault.wanted), raw }]
    : readings.filter(({ bad }) => bad !== 'false')
  const branches = wrong.map(
    (reading) =>
      `WHEN ${reading.bad} THEN {'flag': ${quote(reading.flag)}, 'wanted': ${reading.wanted}, 'raw': ` +
      `${rawTextSql(given, reading.raw)}}`,
  )
  const read = readings.flatMap(({ name, sql }) => (name === '' ? [] : [`${sql} AS _read_${name}`]))
  const sql = statement('unusable_row', {
    file: given.files.length === 0 ? "''" : fileColumn,
    branches: branches.join('\n    '),
    source: `(SELECT *, ${read.join(', ')} FROM ${given.relation})`,
    nth,
    row: given.row ?? 'row_number() OVER ()',
  })
  const [fault] = await rowsAsNumbers<Fault>(engine, sql).catch(() => [])
  if (fault === undefined) return undefined
  const { file, n, flag, wanted, raw: got } = fault
  return usage(`${file === '' ? 'the SELECT' : file}: row ${n}: ${flag}`, {
    expected: wanted,
    got: got === null ? 'nothing' : JSON.stringify(got.slice(0, 60)),
    next: 'nothing of it was taken',
  })
}

/** SQL of a value as the files write it. */
function rawTextSql({ format }: OwnFiles, raw: Sql): Sql {
  return format === 'json' && raw !== 'NULL' ? `(${raw} ->> '$')` : `CAST(${raw} AS VARCHAR)`
}

/** Throws the error for the row of the files, the first or a later one, with this fault. */
export async function refuseRow(engine: Engine, reading: Reading, wrong: Wrong, nth?: number): Promise<never> {
  const expected = wrong.wanted
  const none = usage(reading.given.files[0]?.path ?? 'the SELECT', { expected, got: 'something else' })
  throw (await faultOf(engine, reading, wrong, nth)) ?? none
}

/** Counts the rows that repeat a point; two rows with different values for one point are an error. */
async function countAgain(engine: Engine, reading: Reading): Promise<number> {
  const { given, mapping } = reading
  const { keys, constants, readings } = readingsOf(reading)
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
  const [found] = await rowsAsNumbers<Readonly<Record<string, string | number>>>(engine, sql)
  if (!found?.['differs']) return Number(found?.['repeated'] ?? 0)
  const asset = found['asset'] ?? constants.asset
  const subject = `one value for ${asset} at `
  const otherwise = ', for which another row has a different value'
  const wanted = `${subject}${formatInstant(Number(found['mark']))}${otherwise}`
  // The lake knows the interval by its start, or by its end; you look for what the file has.
  const written = rawTextSql(given, readings.find(({ name }) => name === 'mark')?.raw ?? 'NULL')
  const wantedSql = `concat(${quote(subject)}, ${written}, ${quote(otherwise)})`
  const conditions = pointKeys.flatMap((key) => (key === 'day' ? [] : [`_read_${key} = ${quote(String(found[key]))}`]))
  const flag = mapping.components?.[0] ?? 'value'
  return await refuseRow(engine, reading, { flag, wanted, wantedSql, bad: conditions.join(' AND ') }, 2)
}

/** The distances between consecutive rows. */
interface Spacing {
  readonly rows: number
  readonly least: number | null
  readonly doubled: boolean
}

/** Returns the interval whose length is the smallest distance between two rows of a series. */
async function intervalOf(engine: Engine, least: number | null): Promise<Interval> {
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

async function refuseOffGrid(engine: Engine, reading: Reading, interval: Interval, weekStart: Weekday): Promise<void> {
  const off = (mark: string): Sql => `NOT ${onGridSql(mark, interval, weekStart)}`
  const [found] = await engine.rows<{ off: boolean }>(`SELECT EXISTS (FROM user_rows WHERE ${off('mark')}) AS off`)
  if (found?.off !== true) return
  const { zone = 'UTC', timestamp } = reading.mapping
  const ends = timestamp === 'interval_end'
  const next = `; in ${zone} it begins elsewhere: give dates in UTC and say so with --available end+5h or the like`
  const months = measureOf(interval).months === 3 ? ', in January, April, July or October' : ''
  const named = ends ? 'end of an interval of' : 'start of an interval of'
  const dates = ends ? ' (a date counts as the end of its day)' : ''
  const zoned = zone === 'UTC' ? '' : next
  const wanted = `the ${named} ${interval}, which begins by the UTC calendar${months}${dates}${zoned}`
  await refuseRow(engine, reading, { flag: 't', wanted, bad: off('_read_mark') })
}

/** Refuses rows on days without a session of the exchange that the mapping names. */
async function refuseOffSessions(
  engine: Engine,
  reading: Reading,
  interval: Interval,
  sessions: ReadonlyMap<string, TradingCalendar>,
): Promise<void> {
  const { sessions: code, timestamp } = reading.mapping
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
  const { first, last } = sessionYears
  const wanted = `a session of ${code}, of the years ${first} to ${last}; a SELECT can leave the row out`
  await refuseRow(engine, reading, { flag: 't', wanted, bad: off('_read_mark') })
}

/** SQL that creates the view `staged_points` of a session over the user's rows; `user_bodies` maps keys to bodies. */
export function stagedSql({ keys, typed, columns, mapping }: ImportedRows, start: string) {
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
