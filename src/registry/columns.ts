import { hash } from 'node:crypto'

/** A column of a registry table: its name and its DuckDB type. */
export type Column = readonly [name: string, type: string]

const text = (...names: readonly string[]): readonly Column[] => names.map((name) => [name, 'VARCHAR'])

/** The three answers of an issuer's document: the value as sent, which answer it is, and the reason behind `None (…)`. */
const answer = (name: string): readonly Column[] => text(name, `${name}_answer`, `${name}_reason`)

/** The typed fields of every resource, in the order of the views; the embedded ones lead with their key. */
export const fieldColumns: Readonly<Record<string, readonly Column[]>> = {
  issuers: [
    ...text('name', 'status', 'jurisdiction'),
    ...answer('custodian'),
    ...answer('governing_law'),
    ...answer('regulator'),
  ],
  assets: text('name', 'asset_class', 'ticker', 'isin'),
  products: text('name', 'issuer_id', 'asset_id', 'status', 'symbol', 'isin'),
  deployments: text('product_id', 'chain_id', 'status', 'verification_status', 'address'),
  venues: text('name', 'venue_type'),
  derivatives: text('symbol', 'status'),
  provenance: embedded(),
  documents: embedded(),
  listings: embedded(),
}

function embedded(): readonly Column[] {
  return [...text('parent_type', 'parent_id'), ['ordinal', 'INTEGER'], ...text('content_hash')]
}

const instant = (name: string): Column => [name, 'TIMESTAMPTZ']

/** The envelope's `as_of` as it was written and as an instant, and when this lake observed it. */
const envelope: readonly Column[] = [['as_of', 'VARCHAR'], instant('as_of_at'), instant('observed_at')]

/**
 * A row of a dated table. A date is a base layer and at most one delta: what the delta says of an `entity` (the record,
 * or the parent of embedded ones) replaces all that the base says of it; `removed` rows say that nothing is left.
 */
function dated(fields: readonly Column[]): readonly Column[] {
  return [...text('layer', 'entity'), ['removed', 'BOOLEAN'], ...text('id'), ...fields, ...text('record'), ...envelope]
}

/**
 * A row per opened version (`op`) or closed one (`closed_by`); `hash` is that of the record's text as received. By
 * `superseded_at` a later row of the same id was known: merging writes it where both stand in one file.
 */
function steps(fields: readonly Column[]): readonly Column[] {
  const head: readonly Column[] = [
    ...text('id'),
    instant('at'),
    ...text('op', 'closed_by'),
    ['inferred', 'BOOLEAN'],
    ...text('source'),
  ]
  return [...head, ...fields, ...text('record', 'hash', 'as_of'), instant('as_of_at'), instant('superseded_at')]
}

const others: Readonly<Record<string, readonly Column[]>> = {
  /** One row per snapshot and table: its date, and the base and delta layers that it is made of. */
  snapshots: [
    ['snapshot_date', 'DATE'],
    instant('observed_at'),
    ...text('as_of'),
    instant('as_of_at'),
    ...text('source', 'resource', 'base', 'delta'),
    ['rows', 'BIGINT'],
  ],
  /** The events of the change feed that said something new, as received. */
  events: [
    instant('at'),
    ['position', 'BIGINT'],
    ...text('entity_type', 'resource', 'entity_id', 'op', 'hash', 'event'),
  ],
  /** Keys of records by the poll that first showed them; those of the first snapshot are `initial`. */
  schema_changes: [...text('resource', 'path'), instant('at'), ['initial', 'BOOLEAN']],
  /** Records as they are since additive keys came to them without a new version. */
  absorbed: [...text('resource', 'id'), instant('at'), ...text('hash', 'record')],
  /** What the registry did against its own rules, and where two of its answers disagree. */
  registry_findings: [instant('at'), ...text('kind', 'resource', 'id', 'detail')],
}

/** A mark of the columns of a dated table: files with the same mark have the same columns of the same types. */
export function columnsMark(table: string): string {
  return hash('md5', JSON.stringify(registryColumns[table] ?? [])).slice(0, 8)
}

/** The columns of every registry table by `FileEntry.table`: dated tables, `history.<table>`, and the rest. */
export const registryColumns: Readonly<Record<string, readonly Column[]>> = {
  ...Object.fromEntries(Object.entries(fieldColumns).map(([name, fields]) => [name, dated(fields)])),
  ...Object.fromEntries(Object.entries(fieldColumns).map(([name, fields]) => [`history.${name}`, steps(fields)])),
  ...others,
}
