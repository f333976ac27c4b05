import { quote, quoteName } from '../engine.ts'
import type { FileEntry } from '../entry.ts'
import { datedPointsSql, type EarlierDating } from '../redated.ts'
import { columnsMark } from '../registry-columns.ts'
import { columnsOf, isDated } from './columns.ts'
import { instantSql } from './template.ts'

/** What of a file its relation needs. */
export type Listed = Pick<FileEntry, 'path' | 'label' | 'table' | 'meta'>

/** One file that is read instead of many small ones. It is made anew from them; no entry of the journal names it. */
export interface Gathered {
  /** Absolute. */
  readonly path: string
  /** The files that it stands for, relative to the lake. */
  readonly files: ReadonlySet<string>
}

/** The relation over the files of a table, for FROM: absolute paths, and a typed empty one where there are none. */
export function filesSql(root: string, table: string, files: readonly Listed[]): string {
  if (isDated(table)) return datedSql(root, table, files)
  if (files.length === 0) return emptySql(columnsOf(table))
  return readSql(root, table, files, '')
}

const hive = 'hive_partitioning = true, hive_types = {metric: VARCHAR, interval: VARCHAR}'

/**
 * The relation over points files; sessions with an `observed_as_of` before a redating read the earlier files. Where a
 * gathered file stands for some of them, it is read in their place.
 */
export function pointsSql(
  root: string,
  files: readonly Listed[],
  earlier: readonly EarlierDating[],
  gathered?: Gathered,
): string {
  if (gathered === undefined) return datedSqlOf(root, readPoints(root, files), earlier)
  const names = columnsOf('points')
    .map(([name]) => quoteName(name))
    .join(', ')
  const others = files.filter(({ path }) => !gathered.files.has(path))
  const newest = `(SELECT ${names} FROM ${readPoints(root, others)}
  UNION ALL SELECT ${names} FROM ${fileSql(gathered.path)})`
  return datedSqlOf(root, newest, earlier)
}

/** The same over the list of absolute paths that an SQL expression gives; undefined where there are no files. */
export function listedPointsSql(root: string, list: string | undefined, earlier: readonly EarlierDating[]): string {
  return datedSqlOf(root, list === undefined ? readPoints(root, []) : `read_parquet(${list}, ${hive})`, earlier)
}

function datedSqlOf(root: string, newest: string, earlier: readonly EarlierDating[]): string {
  const read = (paths: readonly string[]): string =>
    readPoints(
      root,
      paths.map((path) => ({ path })),
    )
  return datedPointsSql(newest, earlier, read, instantSql('observed_as_of'))
}

/** The relation over points files alone. */
export function readPoints(root: string, files: readonly Pick<Listed, 'path'>[]): string {
  if (files.length === 0) return emptySql(columnsOf('points'))
  return `read_parquet(${pathList(root, files)}, ${hive})`
}

/** Columns that a file of an earlier time lacks are NULL; the types are those of the table whatever its files say. */
function readSql(root: string, table: string, files: readonly Listed[], options: string): string {
  const read = `read_parquet(${pathList(root, files)}, union_by_name = true${options})`
  return `(FROM ${emptySql(columnsOf(table))} UNION ALL BY NAME FROM ${read})`
}

/** One file may stand for several dates: the label, not the path, is the date. */
function datedSql(root: string, table: string, files: readonly Listed[]): string {
  const columns = columnsOf(table)
  if (files.length === 0) return emptySql([['snapshot_date', 'DATE'], ...columns])
  // One text instead of a literal for each: it is bound faster, and `range` tells the optimizer that the list is short.
  const lines = files.map((file) => `${file.label} ${file.path}`).join('\n')
  const names = columns.map(([name]) => `rows_read.${quoteName(name)}`).join(', ')
  return `(SELECT listed.snapshot_date, ${names}
    FROM (SELECT CAST(line[:10] AS DATE) AS snapshot_date, line[12:] AS path
      FROM (SELECT string_split(${quote(lines)}, chr(10))[n] AS line FROM range(1, ${files.length + 1}) AS numbers (n))) AS listed
    JOIN ${readDated(root, table, files)} AS rows_read ON rows_read.filename = ${quote(`${root}/`)} || listed.path)`
}

/**
 * Files whose columns are those of the table are read bare: only then are they opened no sooner than they are needed,
 * and not at all where the join asks for the files of other dates.
 */
function readDated(root: string, table: string, files: readonly Listed[]): string {
  const mark = columnsMark(table)
  if (files.every(({ meta }) => meta['columns'] === mark))
    return `read_parquet(${pathList(root, files)}, hive_partitioning = false, filename = true)`
  return readSql(root, table, files, ', hive_partitioning = false, filename = true')
}

/** A relation of these columns without a row. */
function emptySql(columns: readonly (readonly [name: string, type: string])[]): string {
  const typed = columns.map(([name, type]) => `CAST(NULL AS ${type}) AS ${quoteName(name)}`)
  return `(SELECT ${typed.join(', ')} WHERE false)`
}

/** One constant that is split when the query is bound: reads well, and opens faster than thousands of literals. */
function pathList(root: string, files: readonly Pick<Listed, 'path'>[]): string {
  const paths = [...new Set(files.map((file) => literalPath(file.path)))]
  return `list_transform(string_split(${quote(paths.join('\n'))}, chr(10)), lambda file: ${quote(`${literalPath(root)}/`)} || file)`
}

/** The path with what DuckDB would take for a pattern made literal. */
export function literalPath(path: string): string {
  return path.replaceAll(/[*?[]/g, (character) => `[${character}]`)
}

/** The relation over one Parquet file, for FROM. */
export function fileSql(path: string): string {
  return `read_parquet(${quote(literalPath(path))})`
}
