import type { Catalogue } from '../catalog/catalogue.ts'
import { type RegistryColumn, recordTables, tableColumns } from '../registry/columns.ts'

/** Names and DuckDB types of the columns of a table, in their order. */
export type Columns = readonly RegistryColumn[]

/** Columns as SQL declares them: `id VARCHAR, since TIMESTAMPTZ`. */
export function declared(text: string): Columns {
  return text.split(',').map((one) => {
    const [name = '', type = ''] = one.trim().split(' ')
    return [name, type]
  })
}

/** The columns of the points' files; the last two are folders where each has its own. */
export const pointColumns = declared(`asset VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR, t TIMESTAMPTZ,
  available_at TIMESTAMPTZ, observed_at TIMESTAMPTZ, v DOUBLE, o VARCHAR, basis VARCHAR, extra VARCHAR,
  computed_at TIMESTAMPTZ, available_rule_at TIMESTAMPTZ, params VARCHAR, metric VARCHAR, interval VARCHAR`)

/** The tables that are not of the registry. */
const own: Readonly<Record<string, Columns>> = {
  points: pointColumns,
  metric_assets: declared('id VARCHAR, symbol VARCHAR, addresses VARCHAR, record VARCHAR, observed_at TIMESTAMPTZ'),
}

/** The columns of a table's files, and whether these are whole states, each of a date. */
export interface Table {
  readonly columns: Columns
  readonly dated: boolean
}

/** A table by its name; one that the catalogue does not know is an error. */
export function tableOf(name: string, resources: Catalogue['resources']): Table {
  const columns = own[name] ?? tableColumns(name, resources)
  return { columns, dated: own[name] === undefined && recordTables(resources).has(name) }
}
