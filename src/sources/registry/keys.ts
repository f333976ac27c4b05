import type { Resource } from '../../catalog/catalogue.ts'
import { type Fields, isFields, type Value } from './json.ts'

/** One key of the records of a resource, with the keys below it; `since` is the poll that first showed it. */
interface KeyNode {
  readonly since: number
  readonly below: Map<string, KeyNode>
}

/** The keys that the records of one resource are known to have. */
export interface KnownKeys {
  readonly top: Map<string, KeyNode>
  /** Number of known keys; beyond `mostKeys` no more are learned. */
  count: number
  /** Values and types that were reported before (`changeLine`). */
  readonly reportedChanges: Set<string>
}

/** Objects whose keys are ids would otherwise teach for ever. */
const mostKeys = 2000
const deepest = 8

/** Returns a text that identifies one change of a resource's schema. */
export function changeLine(kind: string, path: string, value: string | null): string {
  return JSON.stringify([kind, path, value])
}

/** Creates an empty set of known keys. */
export const noKeys = (): KnownKeys => ({ top: new Map(), count: 0, reportedChanges: new Set() })

/** Learns one key by its path, as `learnKeys` wrote it. */
export function addKey(keys: KnownKeys, path: string, since: number): void {
  let level = keys.top
  const parts = path.split(/(?<!\\)\./)
  for (const [i, part] of parts.entries()) {
    const node = level.get(part) ?? { since: i === parts.length - 1 ? since : 0, below: new Map<string, KeyNode>() }
    if (!level.has(part)) {
      level.set(part, node)
      keys.count++
    }
    level = node.below
  }
}

/** Learns the keys of a record; calls `report` with the path of each new one, parents first. */
export function learnKeys(keys: KnownKeys, record: Value, since: number, report: (path: string) => void): void {
  const visit = (level: Map<string, KeyNode>, value: Value, prefix: string, depth: number): void => {
    if (depth > deepest) return
    if (Array.isArray(value)) {
      for (const item of value as readonly Value[]) visit(level, item, prefix, depth + 1)
      return
    }
    if (!isFields(value)) return
    for (const key in value) {
      const member = value[key] ?? null
      const name = escaped(key)
      let node = level.get(name)
      if (!node) {
        if (keys.count >= mostKeys) continue
        node = { since, below: new Map() }
        level.set(name, node)
        keys.count++
        report(prefix + name)
      }
      if (typeof member === 'object' && member !== null) visit(node.below, member, `${prefix}${name}.`, depth + 1)
    }
  }
  visit(keys.top, record, '', 0)
}

/**
 * Whether a record equals the stored one, except for the order of keys and for members whose key first appeared after a
 * certain time; `later` is called for each such member.
 */
export function isSameBut(
  knownKeys: KnownKeys,
  record: Value,
  stored: Value,
  after: number,
  later: () => void,
): boolean {
  return agrees(knownKeys.top, record, stored, after, later)
}

/** Whether two values are the same but for the order of keys. */
export const isSame = (value: Value, stored: Value): boolean => agrees(undefined, value, stored, 0, () => undefined)

function agrees(
  level: ReadonlyMap<string, KeyNode> | undefined,
  value: Value,
  stored: Value,
  after: number,
  later: () => void,
): boolean {
  if (Array.isArray(value)) {
    if (!Array.isArray(stored)) return false
    const items = value as readonly Value[]
    const others = stored as readonly Value[]
    return (
      items.length === others.length && items.every((item, i) => agrees(level, item, others[i] ?? null, after, later))
    )
  }
  if (!isFields(value)) return Object.is(value, stored)
  if (!isFields(stored)) return false
  let members = 0
  for (const key in value) {
    const node = level?.get(escaped(key))
    if (node && node.since > after) {
      later()
      continue
    }
    if (!Object.hasOwn(stored, key) || !agrees(node?.below, value[key] ?? null, stored[key] ?? null, after, later))
      return false
    members++
  }
  return members === Object.keys(stored).length
}

/** Escapes a key as a part of a path. */
const escaped = (key: string): string => (key.includes('.') ? key.replaceAll('.', '\\.') : key)

/** A stored record, with the known keys of its resource. */
interface DatedRecord {
  readonly record: Fields
  /** Time at which its text was first seen, in microseconds. */
  readonly at: number
  readonly keys: KnownKeys | undefined
}

/**
 * Lists the members in which the provider's record differs from the stored one, in their order; ignores the order of
 * keys, and members whose keys appeared after the stored text. Deployments are ignored if the product was received
 * without them.
 */
export function differingMembers(resource: Resource, stored: DatedRecord, offered: Fields): string[] {
  const keys = stored.keys ?? noKeys()
  learnKeys(keys, offered, Number.POSITIVE_INFINITY, () => undefined)
  const silent = Object.keys(resource.holds).filter((key) => offered[key] === undefined)
  const names = [...new Set([...Object.keys(stored.record), ...Object.keys(offered)])]
  return names.filter(
    (name) =>
      !silent.includes(name) &&
      !isSameBut(keys, memberOf(offered, name), memberOf(stored.record, name), stored.at, () => undefined),
  )
}

/** Returns a record of one member alone; empty if the record does not have it. */
function memberOf(record: Fields, name: string): Fields {
  const value = record[name]
  return value === undefined ? {} : { [name]: value }
}

/** Returns the status of a record, and whether it means retirement; null if it has none. */
export function lifeOf({ status }: Fields): { readonly status: string; readonly retired: boolean } | null {
  return typeof status === 'string' ? { status, retired: ['inactive', 'deprecated'].includes(status) } : null
}
