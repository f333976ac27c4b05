import { columnsOf, type Columns } from '../../lake/store/parquet.ts'
import { type Engine, quote, quoteName, quotePaths } from '../../lake/store/engine.ts'
import type { LakeError } from '../../base/errors.ts'
import { exactType, type FileColumn, refuseColumn, widenSql } from './file-columns.ts'

/** Files whose columns have the same names and types, in their order. */
interface AlikeFiles {
  readonly paths: readonly string[]
  readonly relation: string
  readonly columns: Columns
  /** Reasons for which columns cannot be read exactly, by name. */
  readonly unreadable: ReadonlyMap<string, LakeError>
}

/** Parquet files as one relation, and its columns. */
interface ParquetRelation {
  readonly relation: string
  readonly columns: readonly FileColumn[]
}

/**
 * Reads Parquet files by the names of their columns. DuckDB would cast each file to the types of the first; here each
 * file is read with its own types, and a column gets the type that represents the values of all files exactly, or is
 * refused.
 */
export async function readParquetFiles(
  engine: Engine,
  paths: readonly string[],
  fileColumn: string,
): Promise<ParquetRelation> {
  const alike: AlikeFiles[] = []
  for (const group of await groupBySchema(engine, paths)) alike.push(await describeAlike(engine, group, fileColumn))
  const [first, ...others] = alike
  if (first === undefined) throw new RangeError('no Parquet file was named')
  const names = new Map<string, string>()
  for (const { columns } of alike)
    for (const { name } of columns) if (!names.has(name.toLowerCase())) names.set(name.toLowerCase(), name)
  const columns = [...names.values()].map((name) => unite(name, alike))
  if (others.length === 0) return { relation: first.relation, columns }
  const selected = alike.map(({ relation, ...files }) => {
    const cells = columns.map(({ name, type, unreadable }) => {
      const found = unreadable ? undefined : columnOf(files, name)
      const cell = found ? widenSql(quoteName(found.name), found.type, type) : `CAST(NULL AS ${type})`
      return `${cell} AS ${quoteName(name)}`
    })
    return `SELECT ${[...cells, fileColumn].join(', ')} FROM ${relation}`
  })
  return { relation: `(${selected.join(' UNION ALL ')})`, columns }
}

/** Finds a column by name; as in SQL, case is ignored. */
const columnOf = ({ columns }: Pick<AlikeFiles, 'columns'>, name: string) =>
  columns.find((column) => column.name.toLowerCase() === name.toLowerCase())

function unite(name: string, alike: readonly AlikeFiles[]): FileColumn {
  const columnGroups = alike.map((files) => ({ files, column: columnOf(files, name) }))
  const types = columnGroups.flatMap(({ column }) => column?.type ?? [])
  const type = exactType(types)
  const next = 'import these files apart, or write them with one type'
  const refusal = columnGroups.flatMap(({ files, column }) => (column && files.unreadable.get(column.name)) || [])[0]
  if (refusal) return { name, type: type ?? 'VARCHAR', unreadable: refusal }
  const lacking = columnGroups.find(({ column }) => column === undefined)
  if (lacking) {
    const expected = `the columns of the other files, as ${columnGroups.find(({ column }) => column)?.files.paths[0]}`
    const unreadable = refuseColumn(lacking.files.paths[0] ?? '', name, expected, 'no such column', next)
    return { name, type: type ?? 'VARCHAR', unreadable }
  }
  if (type !== undefined) return { name, type }
  const [firstGroup] = columnGroups
  const differingGroup = columnGroups.find(
    ({ column }) => exactType([firstGroup?.column?.type ?? '', column?.type ?? '']) === undefined,
  )
  const expected = `${firstGroup?.column?.type}, as in ${firstGroup?.files.paths[0]}, or a type that goes with it`
  const strange = differingGroup ?? columnGroups[1]
  const got = strange?.column?.type ?? ''
  return { name, type: 'VARCHAR', unreadable: refuseColumn(strange?.files.paths[0] ?? '', name, expected, got, next) }
}

/** Groups files by their schemas. */
async function groupBySchema(engine: Engine, paths: readonly string[]): Promise<string[][]> {
  const schemas = await engine.rows<{ file: string; schema: string }>(
    `SELECT file_name AS file, md5(string_agg(concat_ws(chr(1), name, coalesce(type, ''), coalesce(type_length, ''),
       coalesce(repetition_type, ''), coalesce(num_children, 0), coalesce(converted_type, ''), coalesce(scale, 0),
       coalesce(precision, 0), coalesce(logical_type, ''), coalesce(duckdb_type, '')), chr(2)
         ORDER BY column_id)) AS schema
     FROM parquet_schema(${quotePaths(paths)}) GROUP BY file_name`,
  )
  const bySchema = new Map(schemas.map(({ file, schema }) => [file, schema]))
  return [...Map.groupBy(paths, (path) => bySchema.get(path)).values()]
}

async function describeAlike(engine: Engine, paths: readonly string[], fileColumn: string): Promise<AlikeFiles> {
  const relation = `read_parquet(${quotePaths(paths)}, filename = ${quote(fileColumn)}, hive_partitioning = false)`
  const all = await columnsOf(engine, relation)
  const columns = all.filter(({ name }) => name !== fileColumn)
  return { paths, relation, columns, unreadable: await findUnreadable(engine, paths[0] ?? '', columns) }
}

/** A node of the tree of columns in the footer of a file. */
interface SchemaNode {
  readonly children: number
  /** Part of it that DuckDB would cut or misread; null if it reads all of it exactly. */
  readonly flaw: string | null
}

const mostDigits = 38

/** Finds the columns of a file with values that DuckDB would cut or misread, in whole or in part. */
async function findUnreadable(engine: Engine, path: string, columns: Columns): Promise<ReadonlyMap<string, LakeError>> {
  const nodes = await engine.rows<{ [K in keyof SchemaNode]: SchemaNode[K] }>(
    `SELECT coalesce(num_children, 0)::INTEGER AS children, CASE
       WHEN type = 'INT96' THEN 'instants of the old type INT96, of which nanoseconds would be lost'
       WHEN duckdb_type = 'TIMESTAMP WITH TIME ZONE' AND contains(logical_type, 'NANOS=NanoSeconds')
         THEN 'nanoseconds with a zone, which would be cut'
       WHEN precision > ${mostDigits} AND contains(coalesce(logical_type, converted_type), 'ecimal')
         OR precision > ${mostDigits} AND converted_type = 'DECIMAL'
         THEN 'decimals of ' || precision || ' digits' END AS flaw
     FROM parquet_schema(${quotePaths([path])}) ORDER BY column_id`,
  )
  const [root, ...rest] = nodes
  const unreadable = new Map<string, LakeError>()
  let place = 0
  for (let nth = 0; nth < (root?.children ?? 0); nth++) {
    let flaw: string | null = null
    for (let open = 1; open > 0; open--) {
      const node = rest[place++]
      flaw ??= node?.flaw ?? null
      open += node?.children ?? 0
    }
    const name = columns[nth]?.name
    if (flaw === null || name === undefined) continue
    const expected = `instants in microseconds or decimals of at most ${mostDigits} digits, which can be read exactly`
    unreadable.set(name, refuseColumn(path, name, expected, flaw, 'write the file with such a type'))
  }
  return unreadable
}
