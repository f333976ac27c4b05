import type { Complain } from '../base/errors.ts'
import type { RegistryField, Resource } from './catalogue.ts'
import type { FieldRow, ResourceRow, SourceFile } from './schema.ts'

/** The position of a part of a resource. */
interface ResourcePlace {
  /** `file:line`. */
  readonly source: string
  /** Name of the part in a complaint. */
  readonly subject: string
}

/** A resource as written, with the positions of its parts in the file. */
interface Placed {
  readonly name: string
  readonly row: ResourceRow
  /** Returns the position of the part at the path. */
  readonly at: (...path: readonly string[]) => ResourcePlace
}

/** Paths below the base of the registry that are no lists. */
const ownPaths = ['/snapshot', '/changes', '/changes/head']

/** Collects the registry's resources from all files, and reports contradictions within a resource or between files. */
export function resourcesOf(files: readonly SourceFile[], complain: Complain): ReadonlyMap<string, Resource> {
  const rows = files.flatMap(({ yaml, content }) =>
    Object.entries(content.resources ?? {}).map(([name, row]): Placed => {
      const at = (...path: readonly string[]): ResourcePlace => {
        const source = yaml.where(['resources', name, ...path])
        return { source, subject: `${source}: ${['resources', name, ...path].join('.')}` }
      }
      return { name, row, at }
    }),
  )
  const sets = setsOf(files, rows, complain)
  const names = new Set(rows.map(({ name }) => name))
  const resources = new Map<string, Resource>()
  const takenPaths = new Map(ownPaths.map((path) => [path, 'the registry itself']))
  for (const { name, row, at } of rows) {
    const { entity, path, embeds } = row
    const { source } = at()
    // A snapshot may name an array by either word; events use the singular.
    for (const word of new Set([name, entity, path])) {
      const before = takenPaths.get(word.toLowerCase())
      if (before === undefined) takenPaths.set(word.toLowerCase(), source)
      else complain(at().subject, 'each name and path once', `${word}, which is that of ${before}`)
    }
    const sharedTables = Object.entries(embeds).filter(([, table]) => names.has(table))
    const ownTables = Object.entries(embeds).filter(([, table]) => !names.has(table))
    for (const [key, table] of sharedTables)
      if (`${name} ${key} ${table}` !== 'products deployments deployments')
        complain(at('embeds', key).subject, 'a table of its own', `the resource ${table}`)
    const fields = Object.entries(row.fields).map(([field, spec]): [string, RegistryField] => [
      field,
      fieldOf(field, spec, at('fields', field), sets, names, complain),
    ])
    resources.set(name, {
      ...row,
      name,
      source,
      fields: Object.fromEntries(fields),
      embeds: Object.fromEntries(ownTables),
      holds: Object.fromEntries(sharedTables),
    })
  }
  return resources
}

type Sets = ReadonlyMap<string, { readonly open: boolean; readonly values: readonly string[] }>

function fieldOf(
  field: string,
  spec: FieldRow,
  { source, subject }: ResourcePlace,
  sets: Sets,
  names: ReadonlySet<string>,
  complain: Complain,
): RegistryField {
  const { keys = [field], kind, values, to = null } = spec
  const set = values === undefined ? undefined : sets.get(values)
  if (values !== undefined && !set)
    complain(subject, `a value set of registry_sets (${[...sets.keys()].join(', ')})`, values)
  if ((kind === 'reference') !== (to !== null)) complain(subject, '`to` with kind reference and only there', kind)
  if (to !== null && !names.has(to)) complain(subject, `a resource (${[...names].join(', ')})`, to)
  return { keys, kind, values: set?.values ?? [], open: set?.open ?? true, to, source }
}

/** Collects the value sets of fields, and reports those that no field of any file refers to. */
function setsOf(files: readonly SourceFile[], rows: readonly Placed[], complain: Complain): Sets {
  const used = new Set(rows.flatMap(({ row }) => Object.values(row.fields).map(({ values }) => values)))
  for (const { yaml, content } of files)
    for (const set of Object.keys(content.registry_sets ?? {}))
      if (!used.has(set)) {
        const where = yaml.where(['registry_sets', set])
        complain(`${where}: registry_sets.${set}`, 'a value set that a field refers to', 'a set that no field uses')
      }
  return new Map(files.flatMap(({ content }) => Object.entries(content.registry_sets ?? {})))
}
