import { LakeError } from '../../base/errors.ts'
import type { Sql } from '../../base/intervals-sql.ts'
import { day } from '../../base/time.ts'
import { type Engine, lowerName, quoteName } from '../../lake/store/engine.ts'
import { rowsAsNumbers } from '../points/sql.ts'
import {
  type ColumnReading,
  type InstantRole,
  isBareDateSql,
  isSpelled,
  rawOf,
  readInstant,
  type Source,
  textOf,
} from './columns.ts'
import { keysOf, type OwnFiles, unreadableFile } from './files.ts'
import { unusableRow } from './row-faults.ts'

/*
 * A user's file as a table with the types that its values show: what an import does with the columns of a mapping, for
 * every column of a file that a query names.
 */

/** Purposes of the columns with times that pitlake itself reads, by their names in lower case. */
export type ClockRoles = Readonly<Partial<Record<string, InstantRole>>>

/** A user's file, read. */
export interface UserTable {
  /** SELECT of its rows, all columns with their types; the columns of `ClockRoles` are TIMESTAMPTZ. */
  readonly sql: Sql
  /** Types that the texts of columns show, by name; a column that shows none, or that has times, is missing. */
  readonly shownTypes: ReadonlyMap<string, string>
  /** Notes on the times in it, for people. */
  readonly notes: readonly string[]
}

/** A type that texts may show. */
interface ShownType {
  readonly type: string
  /** SQL condition that a text shows it. */
  readonly isShown: (text: Sql) => Sql
  /** Types of JSON with such a value; a JSON text is never a number. */
  readonly json: readonly string[]
}

const isWhole = (digits: number) => (text: Sql) => `regexp_full_match(${text}, '[-+]?(0|[1-9][0-9]{0,${digits - 1}})')`

/** Types that the texts of a column may show, in their order; a column in which some text shows none is text. */
const shownTypes: readonly ShownType[] = [
  { type: 'BOOLEAN', isShown: (text) => `lower(${text}) IN ('true', 'false')`, json: ['BOOLEAN'] },
  { type: 'BIGINT', isShown: isWhole(18), json: ['UBIGINT', 'BIGINT'] },
  {
    type: 'HUGEINT',
    isShown: (text) => `${isWhole(39)(text)} AND TRY_CAST(${text} AS HUGEINT) IS NOT NULL`,
    json: ['UBIGINT', 'BIGINT', 'HUGEINT', 'UHUGEINT'],
  },
  {
    type: 'DOUBLE',
    // Whole numbers with leading zeros are names, and only DuckDB reads `1_000` as a number.
    isShown: (text) =>
      `TRY_CAST(${text} AS DOUBLE) IS NOT NULL AND NOT regexp_full_match(${text}, '[-+]?0[0-9]+|.*_.*')`,
    json: ['UBIGINT', 'BIGINT', 'HUGEINT', 'UHUGEINT', 'DOUBLE'],
  },
  ...(
    [
      ['DATE', 'date'],
      ['TIMESTAMP', 'local'],
      ['TIMESTAMPTZ', 'zoned'],
    ] as const
  ).map(([type, spelling]) => ({
    type,
    isShown: (text: Sql) => `${isSpelled(text, spelling)} AND TRY_CAST(${text} AS ${type}) IS NOT NULL`,
    json: ['VARCHAR'],
  })),
]

/** The aggregates over the rows of a file by their names, such as `type_0`. */
type FileFacts = Readonly<Record<string, string | boolean | null>>

/**
 * Reads the columns of a file: times in the columns of `roles` as an import reads them, other texts by the types that
 * all of them show. The first row with a time that cannot be used is an error. `texts` are columns that stay text.
 */
export async function readUserTable(
  engine: Engine,
  files: OwnFiles,
  roles: ClockRoles,
  texts: readonly string[] = [],
): Promise<UserTable> {
  try {
    return await readColumns(engine, await withAllColumns(engine, files), roles, texts)
  } catch (error) {
    const [file] = files.files
    throw error instanceof LakeError || file === undefined ? error : unreadableFile(file.path, error)
  }
}

/** Returns the files with all of their columns, ready to be read. */
async function withAllColumns(engine: Engine, files: OwnFiles): Promise<OwnFiles> {
  await files.load?.(files.columns.map(({ name }) => name))
  return files.format === 'json' ? { ...files, columns: await keysOf(engine, files.relation, '') } : files
}

async function readColumns(
  engine: Engine,
  given: OwnFiles,
  roles: ClockRoles,
  texts: readonly string[],
): Promise<UserTable> {
  const json = given.format === 'json'
  const isTyped = given.format === 'parquet' || given.format === 'table'
  const isDated = given.columns.some(({ name }) => roles[lowerName(name)] === 'knowledge')
  const columns = given.columns.map(({ name: column, type }) => {
    const source: Source = { column, type, json }
    const named = roles[lowerName(column)]
    // Rows that are known from a time on are no decisions.
    const role = isDated && named === 'decision' ? undefined : named
    const reading = role && readInstant(role, column, source, { noNumbers: true })
    const isText = isTyped || texts.includes(lowerName(column))
    return { source, role, reading, isText }
  })
  const aggregates = columns.flatMap(({ source, reading, isText }, n) =>
    reading ? clockAggregates(source, reading, n) : isText ? [] : [`${shownTypeSql(source)} AS type_${n}`],
  )
  const [facts = {}] =
    aggregates.length === 0
      ? []
      : await rowsAsNumbers<FileFacts>(engine, `SELECT ${aggregates.join(', ')} FROM ${given.relation}`)
  const readings = columns.flatMap(({ reading }) => reading ?? [])
  if (columns.some((_, n) => facts[`bad_${n}`] === true)) {
    const refusal = await unusableRow(engine, { given, readings })
    if (refusal !== undefined) throw refusal
  }
  const cells = columns.map(({ source, reading }, n) => {
    const cell = reading ? `make_timestamptz(${reading.sql})` : typedSql(source, facts[`type_${n}`])
    return `${cell} AS ${quoteName(source.column)}`
  })
  const notes = columns.flatMap(({ source, role }, n) =>
    role === 'knowledge'
      ? clockNotes(source.column, facts[`dates_${n}`] === true, facts[`midnights_${n}`] === true)
      : [],
  )
  const types = columns.flatMap(({ source }, n): [string, string][] => {
    const type = facts[`type_${n}`]
    return typeof type === 'string' ? [[source.column, type]] : []
  })
  return { sql: `SELECT ${cells.join(', ')} FROM ${given.relation}`, shownTypes: new Map(types), notes }
}

/** Builds the aggregates over a column with times: whether one cannot be used, is a bare date, or all are midnights. */
function clockAggregates(source: Source, { sql, bad }: ColumnReading, n: number): readonly Sql[] {
  const isDate = isBareDateSql(source)
  return [
    `bool_or(${bad}) AS bad_${n}`,
    `bool_or(${isDate}) AS dates_${n}`,
    `bool_and(${sql} % ${day * 1_000_000} = 0 AND NOT (${isDate})) AS midnights_${n}`,
  ]
}

/** Notes how dates are read as times of knowledge, and midnights that may stand for dates. */
function clockNotes(column: string, hasDates: boolean, isMidnights: boolean): readonly string[] {
  if (hasDates) return [`a date in ${column} counts from the end of its day, UTC`]
  return isMidnights
    ? [`each time in ${column} is the beginning of a day; if it means the whole day, write a date`]
    : []
}

/** SQL aggregate of the type that all texts of a column show; NULL if they show none, or if there are none. */
function shownTypeSql(source: Source): Sql {
  const text = textOf(source) ?? 'CAST(NULL AS VARCHAR)'
  const raw = rawOf(source)
  const branches = shownTypes.map(({ type, isShown, json }) => {
    const types = json.map((name) => `'${name}'`).join(', ')
    const isOfJson = source.json ? `json_type(${raw}) IN (${types}) AND ` : ''
    return `WHEN bool_and(${isOfJson}${isShown(`trim(${text})`)}) FILTER (WHERE ${text} IS NOT NULL) THEN '${type}'`
  })
  const words = source.json
    ? `WHEN bool_and(json_type(${raw}) = 'VARCHAR') FILTER (WHERE ${text} IS NOT NULL) THEN 'VARCHAR'`
    : ''
  return `CASE ${branches.join(' ')} ${words} END`
}

/** SQL of a value in its type; without a type as the file has it. */
function typedSql(source: Source, type: FileFacts[string] | undefined): Sql {
  if (typeof type !== 'string') return rawOf(source)
  return type === 'VARCHAR' ? `${textOf(source)}` : `CAST(trim(${textOf(source)}) AS ${type})`
}
