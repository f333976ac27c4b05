import { hash } from 'node:crypto'
import type { RegistryField } from '../../catalog/catalogue.ts'
import { quoteList, quotePaths } from '../../lake/store/engine.ts'
import { statementsIn } from '../../lake/store/sql.ts'
import type { Resources } from './bodies.ts'

/**
 * Prefix of the state's keys for acknowledged findings. It is in this file because the code for views needs nothing
 * else of a verify.
 */
export const acceptedPrefix = 'registry.accepted.'

/** A column of a registry table: its name, its DuckDB type and, for a field of records, its description. */
export type RegistryColumn = readonly [name: string, type: string, about?: string]

const text = (...names: readonly string[]): readonly RegistryColumn[] => names.map((name) => [name, 'VARCHAR'])

const plain = (name: string): RegistryColumn => [
  name,
  'VARCHAR',
  `${name.replaceAll('_', ' ')}, as the record says; NULL if not established`,
]

/**
 * Returns the columns for an answer in an issuer's document: the value as sent, its kind, and the reason in `None (…)`.
 */
const answer = (name: string): readonly RegistryColumn[] => [
  plain(name),
  [
    `${name}_answer`,
    'VARCHAR',
    `what the registry states about ${name}: not_established (it sent null), not_disclosed, none or named`,
  ],
  [
    `${name}_reason`,
    'VARCHAR',
    `why there is no ${name.replaceAll('_', ' ')}, if the registry says that there is none`,
  ],
]

/** Returns the columns of a named field, by its kind. */
export function fieldColumns(name: string, { kind }: Pick<RegistryField, 'kind'>): readonly RegistryColumn[] {
  return kind === 'answer' ? answer(name) : [plain(name)]
}

/** The key of an embedded row. */
const embedded: readonly RegistryColumn[] = [
  ['parent_type', 'VARCHAR', 'the kind of record that this one is embedded in'],
  ['parent_id', 'VARCHAR', 'the id of the record that this one is embedded in'],
  ['ordinal', 'INTEGER', 'the place among its siblings, from 0'],
  ['content_hash', 'VARCHAR', 'digest of the embedded record; the same whatever the order of its keys'],
]

/** Returns the tables of embedded rows, in the catalogue's order. */
export function embeddedTables(resources: Resources): readonly string[] {
  return [...new Set([...resources.values()].flatMap(({ embeds }) => Object.values(embeds)))]
}

/**
 * Returns the tables that have a history, dated snapshots and a view, with their typed fields: resources, then embedded
 * tables.
 */
export function recordTables(resources: Resources): ReadonlyMap<string, readonly RegistryColumn[]> {
  const resourceTables = [...resources.values()].map(
    ({ name, fields }) => [name, Object.entries(fields).flatMap(([field, spec]) => fieldColumns(field, spec))] as const,
  )
  return new Map([...resourceTables, ...embeddedTables(resources).map((table) => [table, embedded] as const)])
}

const instant = (name: string): RegistryColumn => [name, 'TIMESTAMPTZ']

/** Columns of the envelope's `as_of`, as written and as a timestamp, and of the time at which this lake observed it. */
const envelope: readonly RegistryColumn[] = [['as_of', 'VARCHAR'], instant('as_of_at'), instant('observed_at')]

/**
 * Returns the columns of a dated table. A date consists of a base layer and at most one delta: the rows of the delta
 * for an `entity` (the record, or the parent of embedded ones) replace all of its rows in the base; a `removed` row
 * states that none are left.
 */
function dated(fields: readonly RegistryColumn[]): readonly RegistryColumn[] {
  return [...text('layer', 'entity'), ['removed', 'BOOLEAN'], ...text('id'), ...fields, ...text('record'), ...envelope]
}

/**
 * Returns the columns of a history, with a row per opened version (`op`) or closed one (`closed_by`). `hash` is that of
 * the record's text as received. `superseded_at` is the time by which a later row of the same id was known; merging
 * writes it if both rows are in one file.
 */
function steps(fields: readonly RegistryColumn[]): readonly RegistryColumn[] {
  const head: readonly RegistryColumn[] = [
    ...text('id'),
    instant('at'),
    ...text('op', 'closed_by'),
    ['inferred', 'BOOLEAN'],
    ...text('source'),
  ]
  return [...head, ...fields, ...text('record', 'hash', 'as_of'), instant('as_of_at'), instant('superseded_at')]
}

/** Tables that only grow, in addition to the histories. */
const otherTables: Readonly<Record<string, readonly RegistryColumn[]>> = {
  /** One row per snapshot and table: its date, and the base and delta layers that it is made of. */
  snapshots: [
    ['snapshot_date', 'DATE'],
    instant('observed_at'),
    ...text('as_of'),
    instant('as_of_at'),
    ...text('source', 'resource', 'base', 'delta'),
    ['rows', 'BIGINT'],
  ],
  /** The events of the change feed that were news, as received. */
  events: [
    instant('at'),
    ['position', 'BIGINT'],
    ...text('entity_type', 'resource', 'entity_id', 'op', 'hash', 'event'),
  ],
  /**
   * Keys of records, values that no document lists and members that changed their type (`kind`: NULL and key, value,
   * type), by the poll that first showed them; those of the first snapshot are `initial`.
   */
  schema_changes: [...text('resource', 'path'), instant('at'), ['initial', 'BOOLEAN'], ...text('kind', 'value')],
  /** Records whose additive keys changed without a new version, in their present form. */
  absorbed: [...text('resource', 'id'), instant('at'), ...text('hash', 'record')],
  /**
   * Violations of the registry's own rules, and disagreements between two of its answers, with both records if they are
   * available.
   */
  registry_findings: [instant('at'), ...text('kind', 'resource', 'id', 'detail', 'held', 'offered')],
}

/** Names of the tables that only grow. */
export const growingTables: readonly string[] = Object.keys(otherTables)

/**
 * Computes a mark of the columns of a dated table: files with the same mark have the same columns of the same types.
 */
export function columnsMark(columns: readonly RegistryColumn[]): string {
  return hash('md5', JSON.stringify(columns.map(([name, type]) => [name, type]))).slice(0, 8)
}

/**
 * Returns the columns of a registry table by `FileEntry.table`, in the order of its files: a dated table,
 * `history.<table>`, or one of the rest. Without resources only those that every table of its kind has.
 */
export function tableColumns(table: string, resources?: Resources): readonly RegistryColumn[] {
  const fixedColumns = otherTables[table]
  if (fixedColumns !== undefined) return fixedColumns
  const name = table.replace(/^history\./, '')
  const fields = resources === undefined ? [] : recordTables(resources).get(name)
  if (!fields) throw new RangeError(`no columns are known of table ${table}`)
  return name === table ? dated(fields) : steps(fields)
}

/**
 * Names that no resource, embedded table or field may have: those of the registry's other tables, and of all columns
 * other than the fields.
 */
export const ownNames = {
  tables: [...growingTables, 'raw', 'history'],
  columns: [...dated([]), ...steps([])].map(([name]) => name),
}

/** The statements of this room. */
export const registryStatement = statementsIn(new URL('sql/', import.meta.url))

/**
 * SQL of a registry table's files as a relation for FROM; an empty relation, without typed fields, if there are none.
 * For files of several tables of one kind, `of` names the table of each file, as the column `of table`.
 */
export function relation(table: string, files: readonly string[], of?: readonly string[]): string {
  const columns = tableColumns(table).map(([name, type]) => `CAST(NULL AS ${type}) AS "${name}"`)
  const empty = `(SELECT ${columns.join(', ')} WHERE false)`
  if (files.length === 0) return empty
  const withTableName =
    of === undefined ? '' : `SELECT *, (${quoteList(of)})[CAST(file_index AS INTEGER) + 1] AS "of table" `
  // Older files may lack a column.
  return (
    `(FROM ${empty} UNION ALL BY NAME ${withTableName}FROM read_parquet(${quotePaths(files)}, union_by_name = ` +
    'true, hive_partitioning = false))'
  )
}
