import { fieldColumns, registryColumns } from '../registry/columns.ts'

/** Names and DuckDB types of the columns of a table, in their order. */
export type Columns = readonly (readonly [name: string, type: string])[]

/** Columns as SQL declares them: `id VARCHAR, since TIMESTAMPTZ`. */
export function declared(text: string): Columns {
  return text.split(',').map((one) => {
    const [name = '', type = ''] = one.trim().split(' ')
    return [name, type]
  })
}

const own: Readonly<Record<string, Columns>> = {
  points: declared(`asset VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR, t TIMESTAMPTZ,
    available_at TIMESTAMPTZ, observed_at TIMESTAMPTZ, v DOUBLE, o VARCHAR, basis VARCHAR, extra VARCHAR,
    computed_at TIMESTAMPTZ, available_rule_at TIMESTAMPTZ, params VARCHAR, metric VARCHAR, interval VARCHAR`),
  metric_assets: declared('id VARCHAR, symbol VARCHAR, addresses VARCHAR, record VARCHAR, observed_at TIMESTAMPTZ'),
}

/** The columns of a table's files; an unknown table is an error. */
export function columnsOf(table: string): Columns {
  const columns = own[table] ?? registryColumns[table]
  if (!columns) throw new RangeError(`no columns are known of table ${table}`)
  return columns
}

/** The tables of the registry that have dated snapshots and a history. */
export const resources: readonly string[] = Object.keys(fieldColumns)

/** Whether the table's files are whole states, each of a date. */
export function isDated(table: string): boolean {
  return resources.includes(table)
}
