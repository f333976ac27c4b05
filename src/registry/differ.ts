import type { Resource } from '../catalog/catalogue.ts'
import type { Fields } from './json.ts'
import { isSameBut, type KnownKeys, learnKeys, noKeys } from './keys.ts'

/** A held record and what is known of its resource's keys. */
export interface HeldRecord {
  readonly record: Fields
  /** When its text was first seen, in microseconds. */
  readonly at: number
  readonly keys: KnownKeys | undefined
}

/**
 * The members in which the provider's record differs from the held one, in the order in which they stand; none where
 * only the order of keys differs, or members whose keys came after the held text. A product that comes without its
 * deployments says nothing of them.
 */
export function differingMembers(resource: Resource, held: HeldRecord, offered: Fields): string[] {
  const keys = held.keys ?? noKeys()
  learnKeys(keys, offered, Number.POSITIVE_INFINITY, () => undefined)
  const silent = Object.keys(resource.holds).filter((key) => offered[key] === undefined)
  const names = [...new Set([...Object.keys(held.record), ...Object.keys(offered)])]
  return names.filter(
    (name) =>
      !silent.includes(name) &&
      !isSameBut(keys, memberOf(offered, name), memberOf(held.record, name), held.at, () => undefined),
  )
}

/** A record of that member alone, if it is there. */
function memberOf(record: Fields, name: string): Fields {
  const value = record[name]
  return value === undefined ? {} : { [name]: value }
}

/** The status of a record and whether it is wound down by that; null where it has none. */
export function lifeOf({ status }: Fields): { readonly status: string; readonly retired: boolean } | null {
  return typeof status === 'string' ? { status, retired: ['inactive', 'deprecated'].includes(status) } : null
}
