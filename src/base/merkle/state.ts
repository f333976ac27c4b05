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

/** The leaf of an entry in the log. */
export function entryLeaf(version: number, digest: string, committed_at: number, root: string): string {
  return leafHash(`pitlake entry\nversion ${version}\ncommitted_at ${committed_at}\nsha256 ${digest}\nstate ${root}\n`)
}
