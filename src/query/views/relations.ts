import { quote, quoteName, literalPath, quotePath } from '../../lake/store/engine.ts'
import type { FileEntry } from '../../lake/ledger/entry.ts'
import { datedPointsSql, type EarlierDating } from '../../sources/points/datings.ts'
import { parquet } from '../../lake/store/parquet.ts'
import { columnsMark, type RegistryColumn, recordTables, tableColumns } from '../../sources/registry/columns.ts'
import { instantSql } from './template.ts'
import { bareOptions, placedOptions, placedFolder, isPlain, placedSql, mixedSql } from './read-points.ts'
import type { Resource } from '../../catalog/catalogue.ts'

/** The facts of a listed file that its relation depends on. */
type Listed = Pick<FileEntry, 'path' | 'label' | 'table' | 'meta'>

/**
 * Builds the relation over the files of a table, for FROM: absolute paths, and a typed empty relation if there are
 * none.
 */
export function filesSql(root: string, { columns, dated }: TableColumns, files: readonly Listed[]): string {
  if (dated) return datedSql(root, columns, files)
  if (files.length === 0) return emptySql(columns)
  return readSql(root, columns, files, '')
}

/**
 * Builds the relation `newest` over points files; sessions with an `observed_as_of` before a redating read the earlier
 * files.
 */
export function datedPoints(root: string, newest: string, earlier: readonly EarlierDating[]): string {
  const read = (paths: readonly string[]): string =>
    readPoints(
      root,
      paths.map((path) => ({ path })),
    )
  return datedPointsSql(newest, earlier, read, instantSql('observed_as_of'))
}

/** Builds the relation over points files alone, of both levels. */
export function readPoints(root: string, files: readonly Pick<Listed, 'path'>[]): string {
  if (files.length === 0) return emptySql(pointColumns)
  const placedOnes = files.filter(({ path }) => path.startsWith(placedFolder))
  const mixed = files.filter(({ path }) => !path.startsWith(placedFolder))
  if (isPlain(root) && mixed.length === 0) return `read_parquet(${pathList(root, files)}, ${placedOptions})`
  const reads = [
    ...(placedOnes.length === 0 ? [] : [placedSql(root, pathList(root, placedOnes))]),
    ...(mixed.length === 0 ? [] : [mixedSql(pathList(root, mixed))]),
  ]
  return `(${reads.join('\n  UNION ALL BY NAME ')})`
}

/**
 * Builds the SQL that reads files. Columns that a file of an earlier time lacks are NULL; the types are those of the
 * table, whatever its files have.
 */
function readSql(root: string, columns: TypedColumns, files: readonly Listed[], options: string): string {
  const read = `read_parquet(${pathList(root, files)}, union_by_name = true, ${bareOptions}${options})`
  return `(FROM ${emptySql(columns)} UNION ALL BY NAME FROM ${read})`
}

/** Builds the relation over dated files. One file may stand for several dates: the label, not the path, is the date. */
function datedSql(root: string, columns: TypedColumns, files: readonly Listed[]): string {
  if (files.length === 0) return emptySql([['snapshot_date', 'DATE'], ...columns])
  // One text instead of a literal for each: it is bound faster, and `range` shows the optimizer that the list is short.
  const lines = files.map((file) => `${file.label} ${file.path}`).join('\n')
  const names = columns.map(([name]) => `rows_read.${quoteName(name)}`).join(', ')
  return `(SELECT listed.snapshot_date, ${names}
    FROM (SELECT CAST(line[:10] AS DATE) AS snapshot_date, line[12:] AS path
      FROM (SELECT string_split(${quote(lines)}, chr(10))[n] AS line FROM range(1, ${files.length + 1}) AS numbers (n))) AS listed
    JOIN ${readDated(root, columns, files)} AS rows_read ON rows_read.filename = ${quote(`${root}/`)} || listed.path)`
}

/**
 * Builds the SQL that reads dated files. Those whose columns are the table's are read bare: only then are they opened
 * no sooner than needed, and not at all if the join queries files of other dates.
 */
function readDated(root: string, columns: TypedColumns, files: readonly Listed[]): string {
  const mark = columnsMark(columns)
  if (files.every(({ meta }) => meta['columns'] === mark))
    return `read_parquet(${pathList(root, files)}, hive_partitioning = false, filename = true)`
  return readSql(root, columns, files, ', filename = true')
}

/** Builds a relation of these columns without a row. */
export function emptySql(columns: TypedColumns): string {
  const typed = columns.map(([name, type]) => `CAST(NULL AS ${type}) AS ${quoteName(name)}`)
  return `(SELECT ${typed.join(', ')} WHERE false)`
}

/**
 * Formats paths as one constant that is split when the query is bound: reads well, and opens faster than thousands of
 * literals.
 */
function pathList(root: string, files: readonly Pick<Listed, 'path'>[]): string {
  const paths = [...new Set(files.map((file) => literalPath(file.path)))]
  return (
    `list_transform(string_split(${quote(paths.join('\n'))}, chr(10)), lambda file: ` +
    `${quote(`${literalPath(root)}/`)} || file)`
  )
}

/** Builds the relation over one Parquet file, for FROM. */
export function fileSql(path: string): string {
  return `read_parquet(${quotePath(path)}, ${bareOptions})`
}

/** Builds the relation over an exported table and its rows in files of the lake. */
export function ledgerSql(root: string, path: string, files: readonly Pick<Listed, 'path'>[]): string {
  if (files.length === 0) return fileSql(path)
  return parquet([path, ...files.map((file) => `${root}/${file.path}`)])
}

/** Names and DuckDB types of the columns of a table, in their order. */
export type TypedColumns = readonly RegistryColumn[]

/** Parses columns as SQL declares them: `id VARCHAR, since TIMESTAMPTZ`. */
export function parseColumns(text: string): TypedColumns {
  return text.split(',').map((part) => {
    const [name = '', type = ''] = part.trim().split(' ')
    return [name, type]
  })
}

/** The columns of the points' files; the last two are folders where each has its own. */
export const pointColumns =
  parseColumns(`asset VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR, t TIMESTAMPTZ,
  available_at TIMESTAMPTZ, observed_at TIMESTAMPTZ, v DOUBLE, o VARCHAR, basis VARCHAR, extra VARCHAR,
  computed_at TIMESTAMPTZ, available_rule_at TIMESTAMPTZ, params VARCHAR, metric VARCHAR, interval VARCHAR`)

/** The tables that are not of the registry. */
const otherTables: Readonly<Record<string, TypedColumns>> = {
  points: pointColumns,
  metric_assets: parseColumns('id VARCHAR, symbol VARCHAR, addresses VARCHAR, record VARCHAR, observed_at TIMESTAMPTZ'),
}

/** Columns of a table of the lake, and how its files are read. */
export interface TableColumns {
  readonly columns: TypedColumns
  /** Whether its files are dated snapshots: the label of a file is then its date. */
  readonly dated: boolean
}

/** Returns a table by its name; an unknown name is an error. */
export function tableOf(name: string, resources: ReadonlyMap<string, Resource>): TableColumns {
  const columns = otherTables[name] ?? tableColumns(name, resources)
  return { columns, dated: otherTables[name] === undefined && recordTables(resources).has(name) }
}
