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
  /** How many are known; beyond `mostKeys` no more are learnt. */
  count: number
  /** Values and types that were told before (`changeLine`). */
  readonly reportedChanges: Set<string>
}

/** Objects whose keys are ids would otherwise teach for ever. */
const mostKeys = 2000
const deepest = 8

/** What tells one change of a resource's schema apart from every other of its kind. */
export function changeLine(kind: string, path: string, value: string | null): string {
  return JSON.stringify([kind, path, value])
}

/** No keys known. */
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

/** Learns the keys of a record; `report` is told the path of each that was not known, parents first. */
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
 * Whether a record is the held one but for members whose key was first shown after the instant, and but for the order
 * of keys; `later` is told where such members are there.
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

/** A key as a part of a path. */
const escaped = (key: string): string => (key.includes('.') ? key.replaceAll('.', '\\.') : key)

/** A held record and what is known of its resource's keys. */
interface DatedRecord {
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

/** A record of that member alone, if it is there. */
function memberOf(record: Fields, name: string): Fields {
  const value = record[name]
  return value === undefined ? {} : { [name]: value }
}

/** The status of a record and whether it is wound down by that; null where it has none. */
export function lifeOf({ status }: Fields): { readonly status: string; readonly retired: boolean } | null {
  return typeof status === 'string' ? { status, retired: ['inactive', 'deprecated'].includes(status) } : null
}
