import { isFields, type Value } from './json.ts'

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
}

/** Objects whose keys are ids would otherwise teach for ever. */
const mostKeys = 2000
const deepest = 8

/** No keys known. */
export function noKeys(): KnownKeys {
  return { top: new Map(), count: 0 }
}

/** Learns one key by its path, as `learnKeys` wrote it. */
export function addKey(known: KnownKeys, path: string, since: number): void {
  let level = known.top
  const parts = path.split(/(?<!\\)\./)
  for (const [i, part] of parts.entries()) {
    const node = level.get(part) ?? { since: i === parts.length - 1 ? since : 0, below: new Map<string, KeyNode>() }
    if (!level.has(part)) {
      level.set(part, node)
      known.count++
    }
    level = node.below
  }
}

/** Learns the keys of a record; `report` is told the path of each that was not known, parents first. */
export function learnKeys(known: KnownKeys, record: Value, since: number, report: (path: string) => void): void {
  visit(known, known.top, record, '', since, report, 0)
}

function visit(
  known: KnownKeys,
  level: Map<string, KeyNode>,
  value: Value,
  prefix: string,
  since: number,
  report: (path: string) => void,
  depth: number,
): void {
  if (depth > deepest) return
  if (Array.isArray(value)) {
    for (const item of value as readonly Value[]) visit(known, level, item, prefix, since, report, depth + 1)
    return
  }
  if (!isFields(value)) return
  for (const key in value) {
    const held = value[key] ?? null
    const name = key.replaceAll('.', '\\.')
    let node = level.get(name)
    if (!node) {
      if (known.count >= mostKeys) continue
      node = { since, below: new Map() }
      level.set(name, node)
      known.count++
      report(prefix + name)
    }
    if (typeof held === 'object' && held !== null) {
      visit(known, node.below, held, `${prefix}${name}.`, since, report, depth + 1)
    }
  }
}

/** The record without the members whose key was first shown after the instant. */
export function withoutLater(known: KnownKeys, record: Value, after: number): { value: Value; dropped: boolean } {
  const state = { dropped: false }
  return { value: strip(known.top, record, after, state), dropped: state.dropped }
}

function strip(level: ReadonlyMap<string, KeyNode>, value: Value, after: number, state: { dropped: boolean }): Value {
  if (Array.isArray(value)) return (value as readonly Value[]).map((item) => strip(level, item, after, state))
  if (!isFields(value)) return value
  const kept: [string, Value][] = []
  for (const [key, held] of Object.entries(value)) {
    const node = level.get(key.replaceAll('.', '\\.'))
    if (node && node.since > after) state.dropped = true
    else kept.push([key, node ? strip(node.below, held, after, state) : held])
  }
  return Object.fromEntries(kept)
}
