import { hash } from 'node:crypto'

/*
 * Merkle trees in the form of RFC 6962: a leaf is hashed after 0x00, a node is the hash of 0x01 and both hashes below
 * it, and of n leaves the largest power of two below n belongs to the left subtree. Hashes are hex.
 */

type Hashes = readonly string[]

/** Computes the hash of a leaf from its text. */
export function leafHash(text: string): string {
  return hash('sha256', `\0${text}`)
}

/** Computes the hash of two adjacent trees. */
function nodeHash(left: string, right: string): string {
  return hash('sha256', Buffer.from(`01${left}${right}`, 'hex'))
}

/** Returns how many of n leaves belong to the left subtree. */
function split(n: number): number {
  let left = 1
  while (left * 2 < n) left *= 2
  return left
}

/** Computes the root over hashes of leaves, in their order. */
export function treeRoot(leaves: Hashes, from = 0, to = leaves.length): string {
  if (to - from <= 1) return leaves[from] ?? hash('sha256', '')
  const middle = from + split(to - from)
  return nodeHash(treeRoot(leaves, from, middle), treeRoot(leaves, middle, to))
}

/** Lists the hashes that lead from a leaf to the root, the lowest first. */
export function inclusionProof(leaves: Hashes, index: number, from = 0, to = leaves.length): string[] {
  if (to - from <= 1) return []
  const middle = from + split(to - from)
  return index < middle
    ? [...inclusionProof(leaves, index, from, middle), treeRoot(leaves, middle, to)]
    : [...inclusionProof(leaves, index, middle, to), treeRoot(leaves, from, middle)]
}

/**
 * Computes the hashes which prove that the tree over the first `size` leaves is a prefix of the tree over all of them.
 */
export function consistencyProof(leaves: Hashes, size: number): string[] {
  const part = (m: number, from: number, to: number, isComplete: boolean): string[] => {
    if (m === to - from) return isComplete ? [] : [treeRoot(leaves, from, to)]
    const left = split(to - from)
    const middle = from + left
    return m <= left
      ? [...part(m, from, middle, isComplete), treeRoot(leaves, middle, to)]
      : [...part(m - left, middle, to, false), treeRoot(leaves, from, middle)]
  }
  return size <= 0 ? [] : part(size, 0, leaves.length, true)
}
