import { type LakeError, usage } from '../../base/errors.ts'
import type { Sql } from '../../base/intervals-sql.ts'

/** A column of the user's files, as the rows of all of them have it. */
export interface FileColumn {
  readonly name: string
  /** DuckDB's type. */
  readonly type: string
  /**
   * Reason for which the values of this column cannot be read exactly; an error only if the mapping uses the column.
   */
  readonly unreadable?: LakeError
}

/** Builds the refusal of one column of one file. */
export function refuseColumn(file: string, column: string, expected: string, got: string, next: string): LakeError {
  return usage(`${file}: column ${column}`, { expected, got, next })
}

const signed = ['TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT']
const integers = new Set([...signed, 'UTINYINT', 'USMALLINT', 'UINTEGER', 'UBIGINT', 'HUGEINT', 'UHUGEINT'])
/** Types whose values are all representable as doubles. */
const doubles = new Set(['TINYINT', 'SMALLINT', 'INTEGER', 'UTINYINT', 'USMALLINT', 'UINTEGER', 'FLOAT', 'DOUBLE'])
const micros = new Set(['TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP'])
const instants = new Set([...micros, 'TIMESTAMP_NS', 'TIMESTAMP WITH TIME ZONE', 'DATE'])

const isDecimal = (type: string): boolean => type.startsWith('DECIMAL')

/**
 * Returns the type that represents the values of all these types exactly: one of them or a wider one, otherwise text,
 * which is read like CSV. Undefined if there is none.
 */
export function exactType(types: readonly string[]): string | undefined {
  const [first, ...others] = new Set(types)
  if (first === undefined || others.length === 0) return first
  const all = [first, ...others]
  if (all.every((type) => signed.includes(type))) return 'BIGINT'
  if (all.every((type) => integers.has(type) && type !== 'UHUGEINT')) return 'HUGEINT'
  if (all.every((type) => doubles.has(type))) return 'DOUBLE'
  if (all.every((type) => micros.has(type))) return 'TIMESTAMP'
  const isNumber = (type: string): boolean => integers.has(type) || doubles.has(type) || isDecimal(type)
  const isText = (type: string): boolean => type === 'VARCHAR'
  if (all.every((type) => isNumber(type) || isText(type))) return 'VARCHAR'
  if (all.every((type) => instants.has(type) || isText(type))) return 'VARCHAR'
  return undefined
}

/** SQL of a column of one type as a different one from `exactType`; a FLOAT is first converted to a double. */
export function widenSql(column: Sql, from: string, to: string): Sql {
  if (from === to) return column
  return from === 'FLOAT' && to === 'VARCHAR'
    ? `CAST(CAST(${column} AS DOUBLE) AS VARCHAR)`
    : `CAST(${column} AS ${to})`
}
