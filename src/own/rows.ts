import { type LakeError, usage } from '../errors.ts'
import { onGridSql } from '../intervals-sql.ts'
import type { SourceMapping } from '../catalog/sources.ts'
import { statementsIn } from '../store/sql.ts'
import { type Engine, quote } from '../store/engine.ts'
import { type Interval, intervals, measureOf, type Weekday } from '../time.ts'
import { hint } from '../suggestion.ts'
import { exportRule } from '../catalog/sources.ts'
import { numbered } from '../points/sql.ts'
import {
  type ColumnReading,
  readComponents,
  readInstant,
  readValue,
  readWord,
  type Source,
  spellingSql,
} from './columns.ts'
import { exportDay, fileColumn, type OwnFiles, unreadableFile } from './files.ts'

const statement = statementsIn(new URL('sql/', import.meta.url))

/** The dimensions of a series, as mappings name them. */
const words = ['asset', 'currency', 'exchange', 'network'] as const
type Word = (typeof words)[number]

/** The user's rows in the table `own_rows`, and what they are keyed by. */
export interface TakenRows {
  readonly given: OwnFiles
  readonly mapping: SourceMapping
  readonly interval: Interval
  /** Dimensions that a column tells; `day` where each file is an export of one. */
  readonly keys: readonly (Word | 'day')[]
  /** Those of them whose names are numbered, as the type `own_asset` …. */
  readonly typed: readonly Word[]
  /** The columns of the table beside those. */
  readonly columns: ReadonlySet<string>
  /** Dimensions that the mapping tells for all. */
  readonly constants: Readonly<Partial<Record<Word, string>>>
  readonly rows: number
  /** Whether any row tells a point again. */
  readonly doubled: boolean
  /** What there is to say of how the mapping was read. */
  readonly notes: readonly string[]
}

/** Reads what a mapping takes of the files into the table `own_rows`; the first row that cannot be used is an error. */
export async function readRows(
  engine: Engine,
  given: OwnFiles,
  mapping: SourceMapping,
  weekStart: Weekday,
): Promise<TakenRows> {
  const { readings, keys, constants, notes } = readingsOf(given, mapping)
  const taken = [
    ...readings.filter(({ name }) => name !== '').map((one) => `${checked(one)} AS ${one.name}`),
    ...(keys.includes('day') ? [`${dayOf(given)} AS day`] : []),
  ]
  // What has no column of its own is only checked.
  const also = readings.filter(({ name }) => name === '').map(({ bad }) => bad)
  const source =
    also.length === 0
      ? given.relation
      : `${given.relation} WHERE CASE WHEN ${also.join(' OR ')} THEN error('own') ELSE true END`
  const order = [...keys, 'mark'].join(', ')
  let typed: Word[] = []
  try {
    typed = given.format === 'parquet' ? await enumKeys(engine, readings, source) : []
    const columns = typed.map((word) => `CAST(${word} AS own_${word}) AS ${word}`)
    const rows = `(SELECT ${taken.join(',\n  ')} FROM ${source})`
    const replaced = columns.length === 0 ? '' : `REPLACE (${columns.join(', ')})`
    await engine.run(statement('rows', { replaced, rows, order }))
  } catch (error) {
    throw (await faultOf(engine, given, readings)) ?? unreadableFile(given.files[0]?.path ?? 'the SELECT', error)
  }
  await refuseMixed(engine, given, mapping)
  const [counted] = await numbered<{ rows: number }>(engine, 'SELECT count(*) AS rows FROM own_rows')
  const rows = counted?.rows ?? 0
  if (rows === 0) throw usage(given.files[0]?.path ?? 'the SELECT', { expected: 'rows', got: 'none' })
  const { least = null, doubled = false } =
    (await numbered<Spacing>(engine, statement('spacing', { within: withinSql(keys) })))[0] ?? {}
  const interval = mapping.interval ?? (await intervalOf(engine, least))
  await refuseOffGrid(engine, given, mapping, interval, weekStart)
  const columns = new Set(readings.map(({ name }) => name))
  return { given, mapping, interval, keys, typed, columns, constants, rows, doubled, notes }
}

/** From so many names on they are no longer numbered. */
const mostNames = 65_535

/**
 * Makes enums (`own_asset` …) of the names in columns that can be read alone, and tells which: numbers are sorted,
 * compared and joined in half the time of texts.
 */
async function enumKeys(engine: Engine, readings: readonly ColumnReading[], source: string): Promise<Word[]> {
  const made: Word[] = []
  for (const { name, sql } of readings) {
    const word = words.find((one) => one === name)
    if (word === undefined) continue
    await engine.run(
      `CREATE OR REPLACE TEMP TABLE names AS FROM (SELECT DISTINCT ${sql} AS name FROM ${source}) LIMIT ${mostNames + 1}`,
    )
    // A type takes no name with a NUL; who checks the rows tells it.
    const few = 'SELECT CASE WHEN bool_or(contains(name, chr(0))) THEN 0 ELSE count(name) END AS n FROM names'
    const [counted] = await numbered<{ n: number }>(engine, few)
    if (counted === undefined || counted.n === 0 || counted.n > mostNames) continue
    await engine.run(
      `CREATE TYPE own_${word} AS ENUM (SELECT name FROM names WHERE name IS NOT NULL ORDER BY name); DROP TABLE names`,
    )
    made.push(word)
  }
  return made
}

const named = [...words, 't', 'value', 'available_at', 'vintage'] as const

/** What a mapping takes of each row. */
function readingsOf(given: OwnFiles, mapping: SourceMapping) {
  const column = (flag: keyof SourceMapping, name: string): Source => sourceOf(given, flag, name)
  const constants: Partial<Record<Word, string>> = {}
  const keys: (Word | 'day')[] = []
  const readings: ColumnReading[] = []
  for (const word of words) {
    const said = mapping[word] ?? (word === 'asset' ? 'asset' : undefined)
    if (said === undefined) continue
    if (said.startsWith('=')) constants[word] = said.slice(1)
    else {
      keys.push(word)
      readings.push(readWord(word, column(word, said)))
    }
  }
  const t = column('t', mapping.t ?? 't')
  const spelt = spellingSql(t)
  const told = mapping.available_at ?? mapping.vintage
  // Where it is told when a value was known, a day needs not begin where the lake's does.
  const label = told !== undefined || mapping.available === exportRule
  readings.push(readInstant('mark', 't', t, { ...mapping, label }))
  if (spelt !== null) readings.push({ name: 'spelt', flag: 't', sql: spelt, bad: 'false', raw: 'NULL', wanted: '' })
  if (told !== undefined)
    readings.push(
      readInstant(
        'computed',
        mapping.vintage === undefined ? 'available-at' : 'vintage',
        column('available_at', told),
        mapping,
      ),
    )
  const { components, value = 'value' } = mapping
  readings.push(
    ...(components
      ? readComponents(components.map((one) => column('components', one)))
      : readValue(column('value', value))),
  )
  const exports = mapping.available === exportRule
  if (exports) keys.push('day')
  return { readings, keys, constants, notes: notesOf(given, mapping, t) }
}

function sourceOf({ columns, format }: OwnFiles, flag: keyof SourceMapping, name: string): Source {
  const found = columns.find((one) => one.name === name)
  if (found) return { column: name, type: found.type, json: format === 'json' }
  const names = columns.map((one) => one.name).filter((one) => one !== fileColumn)
  throw usage(`--${flag.replace('_', '-')}`, {
    expected: `a column of the file (${names.join(', ')})`,
    got: name,
    next: hint(name, names) ?? 'pitlake import --guess FILE proposes a mapping',
  })
}

/** What the mapping leaves open and how it is taken. */
function notesOf({ columns }: OwnFiles, mapping: SourceMapping, t: Source): string[] {
  const taken = new Set([
    ...named.map((flag) => mapping[flag]),
    ...(mapping.components ?? []),
    'asset',
    't',
    'value',
    fileColumn,
  ])
  const left = columns.map(({ name }) => name).filter((name) => !taken.has(name))
  const naive = t.type === 'VARCHAR' || t.type === 'DATE' || t.type === 'TIMESTAMP' || t.json
  return [
    ...(naive && mapping.zone === undefined ? ['times without a zone are UTC: --zone'] : []),
    ...(left.length > 0 ? [`columns that are not taken: ${left.join(', ')}`] : []),
  ]
}

function checked({ sql, bad }: ColumnReading): string {
  return bad === 'false' ? sql : `CASE WHEN ${bad} THEN error('own') ELSE ${sql} END`
}

/** The end of the day that each row's file names, in the mapped zone, in microseconds: when what it says was known. */
function dayOf({ files }: OwnFiles): string {
  const days = files.map(({ path }) => {
    const day = exportDay(path)
    if (day === null)
      throw usage(path, { expected: 'a name with one date, as prices-2024-03-01.csv', got: 'none, or several' })
    return `WHEN ${quote(path)} THEN ${day}`
  })
  return `CAST(CASE ${fileColumn} ${days.join(' ')} END AS BIGINT)`
}

/** The first row that cannot be used, as an error of one line; undefined where all can. */
async function faultOf(
  engine: Engine,
  given: OwnFiles,
  readings: readonly ColumnReading[],
): Promise<LakeError | undefined> {
  const branches = readings
    .filter(({ bad }) => bad !== 'false')
    .map(
      ({ flag, wanted, raw, bad }) =>
        `WHEN ${bad} THEN {'flag': ${quote(flag)}, 'wanted': ${quote(wanted)}, 'raw': ${shownSql(given, raw)}}`,
    )
  return await rowError(
    engine,
    given,
    statement('fault', {
      file: fileOf(given),
      branches: branches.join('\n    '),
      source: given.relation,
      nth: 1,
      row: rowOf(given),
    }),
  )
}

/** What stands in a file, as text. */
const shownSql = ({ format }: OwnFiles, raw: string): string =>
  format === 'json' && raw !== 'NULL' ? `(${raw} ->> '$')` : `CAST(${raw} AS VARCHAR)`

const fileOf = ({ files }: OwnFiles): string => (files.length === 0 ? "''" : fileColumn)

const rowOf = ({ row = 'row_number() OVER ()' }: OwnFiles): string => row

interface Fault {
  readonly file: string
  readonly n: number
  readonly flag: string
  readonly wanted: string
  readonly raw: string | null
}

/** What a statement finds of a row, with the row's number in its file. */
async function rowError(engine: Engine, given: OwnFiles, sql: string): Promise<LakeError | undefined> {
  const [fault] = await numbered<Fault>(engine, sql).catch(() => [])
  if (fault === undefined) return undefined
  const { file, n, flag, wanted, raw } = fault
  let first = 1
  if (given.files.length > 1) {
    const sql = `SELECT min(n) AS first FROM (SELECT ${fileColumn}, ${rowOf(given)} AS n FROM ${given.relation}) WHERE ${fileColumn} = ${quote(file)}`
    first = (await numbered<{ first: number }>(engine, sql))[0]?.first ?? 1
  }
  const got = raw === null ? 'nothing' : JSON.stringify(raw.slice(0, 60))
  return usage(`${file === '' ? 'the SELECT' : file}: row ${n - first + 1}: ${flag}`, {
    expected: wanted,
    got,
    next: 'nothing of it was taken',
  })
}

/** The row of the files at which a condition over their columns first holds. */
export async function refuseRow(
  engine: Engine,
  { given, mapping }: Pick<TakenRows, 'given' | 'mapping'>,
  where: (mark: string) => string,
  told: { readonly flag: string; readonly wanted: string },
  nth = 1,
): Promise<never> {
  const { readings } = readingsOf(given, mapping)
  const all = readings.filter(({ name }) => name !== '' && name !== 'o' && name !== 'extra')
  const source = `(SELECT *, ${all.map(({ name, sql }) => `${sql} AS own_${name}`).join(', ')} FROM ${given.relation})`
  const raw = readings.find(({ flag }) => flag === told.flag)?.raw ?? 'NULL'
  const branches = `WHEN ${where('own_mark')} THEN {'flag': ${quote(told.flag)}, 'wanted': ${quote(told.wanted)}, 'raw': ${shownSql(given, raw)}}`
  const error = await rowError(
    engine,
    given,
    statement('fault', { file: fileOf(given), branches, source, nth, row: rowOf(given) }),
  )
  throw error ?? usage(given.files[0]?.path ?? 'the SELECT', { expected: told.wanted, got: 'something else' })
}

/** Instants of one column are spelt in one way. */
async function refuseMixed(engine: Engine, given: OwnFiles, mapping: SourceMapping): Promise<void> {
  const spelt = spellingSql(sourceOf(given, 't', mapping.t ?? 't'))
  if (spelt === null) return
  const [kinds] = await numbered<{ least: number; most: number }>(
    engine,
    'SELECT min(spelt) AS least, max(spelt) AS most FROM own_rows',
  )
  if (kinds === undefined || kinds.least === kinds.most) return
  const [first] = await numbered<{ spelt: number }>(engine, `SELECT ${spelt} AS spelt FROM ${given.relation} LIMIT 1`)
  const wanted = ['a time without a zone', 'a time with its zone', 'a number'][first?.spelt ?? 0] ?? ''
  await refuseRow(engine, { given, mapping }, () => `own_spelt <> ${first?.spelt ?? 0}`, {
    flag: 't',
    wanted: `${wanted}, as in the first row`,
  })
}

/** How rows that follow one another lie. */
interface Spacing {
  readonly least: number | null
  readonly doubled: boolean
}

/** Whether a row is of the same series as the one before it. */
function withinSql(keys: TakenRows['keys']): string {
  return keys.length === 0 ? 'true' : keys.map((key) => `${key} IS NOT DISTINCT FROM lag(${key}) OVER ()`).join(' AND ')
}

/** The interval whose length the smallest distance between two rows of a series is. */
async function intervalOf(engine: Engine, least: number | null): Promise<Interval> {
  const begins = 'make_timestamp(mark * 1000000)'
  const months = `SELECT bool_and(${begins} = date_trunc('month', ${begins})) AS monthly FROM own_rows`
  const isMonthly = least !== null && least >= 28 * 86_400 && (await engine.rows(months))[0]?.['monthly'] === true
  const fits = intervals.find((name) => {
    const measure = measureOf(name)
    return measure.months > 0 ? isMonthly : measure.seconds === least
  })
  if (fits !== undefined) return fits
  const got = least === null ? 'one row a series, or none' : `rows ${least} seconds apart`
  throw usage('--interval', {
    expected: `one of ${intervals.join(', ')}`,
    got,
    next: 'say the interval; irregular series are not taken: make them bars by a SELECT',
  })
}

async function refuseOffGrid(
  engine: Engine,
  given: OwnFiles,
  mapping: SourceMapping,
  interval: Interval,
  weekStart: Weekday,
): Promise<void> {
  const off = `NOT ${onGridSql('mark', interval, weekStart)}`
  const [found] = await engine.rows<{ off: boolean }>(`SELECT EXISTS (FROM own_rows WHERE ${off}) AS off`)
  if (found?.off !== true) return
  const next =
    mapping.zone === undefined || mapping.zone === 'UTC'
      ? ''
      : `; in ${mapping.zone} it begins elsewhere: give dates in UTC and say so with --available end+5h or the like`
  const wanted = `the start of an interval of ${interval}, which begins by the UTC calendar${next}`
  await refuseRow(engine, { given, mapping }, (mark) => off.replaceAll('mark', mark), { flag: 't', wanted })
}

/** Makes the view `staged` of a session over the user's rows; `own_bodies` says which keys are which body. */
export function stagedSql({ keys, typed, columns, mapping }: TakenRows, start: string) {
  // Bodies and the names of one enum are numbered alike.
  const [key = '', ...others] = keys
  const joins = others.length > 0 || keys.length !== typed.length
  const body = joins ? 'body' : key === '' ? '0' : `CAST(enum_code(${key}) AS INTEGER)`
  const local = `make_timestamp(CAST((day + 86400) * 1000000 AS BIGINT))`
  const told = `epoch_us(timezone(${quote(mapping.zone ?? 'UTC')}, ${local}))`
  const held = Object.entries({ v: 'DOUBLE', o: 'VARCHAR', extra: 'VARCHAR', computed: 'BIGINT' }).map(
    ([name, type]) =>
      columns.has(name)
        ? name
        : `${name === 'computed' && keys.includes('day') ? told : `CAST(NULL AS ${type})`} AS ${name}`,
  )
  const source = joins ? `own_rows JOIN own_bodies USING (${keys.join(', ')})` : 'own_rows'
  return { joins, sql: statement('staged', { body, start, source, held: held.join(', ') }) }
}
