import type { Catalogue } from '../../catalog/catalogue.ts'
import { type Complain, type Complaint, LakeError } from '../../base/errors.ts'
import { fieldColumns, ownNames } from '../../sources/registry/columns.ts'
import { type ObjectText, readObjects } from './template.ts'

/** Columns that the views add to those of the files, or use. */
const viewColumns = ['valid_from', 'valid_to', 'snapshot_date', 'assumed', 'filename', 'is_base']

/**
 * Refuses resources whose tables or fields would take a name of the lake's own, and those that lack a field that a view
 * reads by name; reports the file and line of each.
 */
export function refuseClashes({ resources }: Catalogue): void {
  const complaints: Complaint[] = []
  const complain: Complain = (subject, expected, got) => complaints.push({ subject, expected, got })
  const objects = readObjects([])
  const tables = new Set([...ownNames.tables, ...objects.map(({ name }) => name)])
  for (const { name, source, fields, embeds } of resources.values()) {
    for (const table of [name, ...Object.values(embeds)])
      if (tables.has(table)) complain(`${source}: resources.${name}`, 'a table that the lake has not itself', table)
    const columns = new Set([...ownNames.columns, ...viewColumns])
    for (const [field, spec] of Object.entries(fields))
      for (const [column] of fieldColumns(field, spec)) {
        if (columns.has(column))
          complain(`${spec.source}: resources.${name}.fields.${field}`, 'a column that the table has not yet', column)
        columns.add(column)
      }
  }
  for (const { file, table, field } of objects.flatMap(readsOf)) {
    const resource = resources.get(table)
    if (resource?.fields[field] === undefined)
      complain(
        `${resource?.source ?? 'catalog'}: resources.${table}`,
        `the field ${field}, which ${file} reads`,
        'none',
      )
  }
  if (complaints.length > 0) throw new LakeError('usage', complaints)
}

/** Parses the fields that an object's file reads from its header: `reads: products name symbol, issuers name.` */
function readsOf({ file, header }: ObjectText): { file: string; table: string; field: string }[] {
  const [, list = ''] = /^-- reads: ((?:.|\n-- {3})*)\.$/m.exec(header) ?? []
  return list.split(',').flatMap((part) => {
    const [table = '', ...fields] = part.replaceAll('\n--', '').trim().split(/\s+/)
    return fields.map((field) => ({ file, table, field }))
  })
}
