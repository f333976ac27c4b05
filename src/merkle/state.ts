import { leafHash, treeRoot } from './tree.ts'

/*
 * The state of a lake is a tree of trees over named values: a leaf is a name, a line feed and a value, and the value of a
 * tree is how many leaves it has and its root. Names are sorted by their bytes. Names may hold anything, values no line feed.
 */

/** A name with its value. */
export type Named = readonly [name: string, value: string]

/** The hashes of named values as leaves. */
export function namedLeaves(members: readonly Named[]): string[] {
  return members.map(([name, value]) => leafHash(`${name}\n${value}`))
}

/** The value of a tree over named values in their order. */
export function treeValue(members: readonly Named[]): string {
  return `${members.length} ${treeRoot(namedLeaves(members))}`
}

/** The group of the state in which the series of a metric stand. */
export function seriesGroup(metric: string): string {
  return `series ${metric}`
}

/** What of an entry stands in the log. */
interface LoggedEntry {
  readonly version: number
  /** Microseconds. */
  readonly committed_at: number
  /** SHA-256 of the entry. */
  readonly digest: string
  /** The value of the state after it; null for entries of earlier programs. */
  readonly root: string | null
}

/** The text of an entry as a leaf of the log. What was committed when is no part of one that tells no state. */
export function entryText({ version, committed_at, digest, root }: LoggedEntry): string {
  const at = root === null ? '-' : committed_at
  return `pitlake entry\nversion ${version}\ncommitted_at ${at}\nsha256 ${digest}\nstate ${root ?? '-'}\n`
}
