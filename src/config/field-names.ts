import type { Catalogue, RegistryField, Resource } from '../catalog/catalogue.ts'
import type { EnvelopeKey } from '../catalog/wire.ts'

/** How a provider names what the registry's records hold and what stands around them, by the usual names. */
export interface RegistryNames {
  /** Around records. */
  readonly keys: Partial<Readonly<Record<EnvelopeKey, string>>>
  /** Of fields, by resource. */
  readonly fields: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** What nobody knows is refused, with what there is. */
type Refuse = (path: readonly string[], what: string, known: readonly string[]) => never

/** The resources as a provider names them; where a record has both names, the provider's own holds. */
export function namedResources(
  resources: Catalogue['resources'],
  { keys, fields }: RegistryNames,
  refuse: Refuse,
): Catalogue['resources'] {
  for (const [name, own] of Object.entries(fields)) {
    const resource = resources.get(name) ?? refuse(['registry', 'fields', name], 'a resource', [...resources.keys()])
    const known = Object.keys(resource.fields)
    for (const field of Object.keys(own))
      if (!known.includes(field)) refuse(['registry', 'fields', name, field], `a field of ${name}`, known)
  }
  return new Map(
    [...resources].map(([name, resource]) => [
      name,
      { ...resource, keys, fields: renamed(resource.fields, fields[name]) },
    ]),
  )
}

function renamed(fields: Resource['fields'], theirs: RegistryNames['fields'][string] = {}): Resource['fields'] {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]): [string, RegistryField] => {
      const own = theirs[name]
      return [name, own === undefined ? field : { ...field, keys: [...new Set([own, ...field.keys])] }]
    }),
  )
}
