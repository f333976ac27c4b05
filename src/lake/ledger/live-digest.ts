import { hash } from 'node:crypto'
import { LakeError } from '../../base/errors.ts'
import { places } from '../store/layout.ts'
import type { IndexCell, Index, IndexRow } from './index-rows.ts'

/*
 * The index stores, with its version, a digest of its live files: a sum of hashes, so that an entry adds the files that
 * it lists and subtracts those that it removes. The digest is computed from the entries, while views are built from the
 * rows: if a row was added or lost without the journal, the two no longer agree.
 */

const sumBits = 64
/** Key of the sum in `meta`. */
export const liveKey = 'live'

const columns =
  'path, label, tbl, metric, interval, rows, bytes, min_t, max_t, digest, sha256, meta, added_version' as const

/** Returns the digest after adding (or removing) these rows of `files`. */
export function withRows(sum: string, rows: Iterable<IndexRow>, sign: 1n | -1n = 1n): string {
  let total = BigInt(sum)
  for (const row of rows) {
    const cells = columns.split(', ').map((column): IndexCell => row[column] ?? null)
    total += sign * BigInt(`0x${hash('sha256', JSON.stringify(cells)).slice(0, sumBits / 4)}`)
  }
  return BigInt.asUintN(sumBits, total).toString()
}

/** Reads the rows of the live files, or of those of a path. */
export function liveRows(index: Index, path?: string): IndexRow[] {
  const ofPath = path === undefined ? '' : ' AND path = ?'
  const found = index.statement(`SELECT ${columns} FROM files WHERE removed_version IS NULL${ofPath}`)
  return found.all(...(path === undefined ? [] : [path]))
}

/** Reads the digest of the live files from the index; that of no file before the first entry. */
export function readLiveDigest(index: Index): string {
  const row = index.statement('SELECT value FROM meta WHERE key = ?').get(liveKey)
  return row === undefined ? '0' : String(JSON.parse(String(row['value'])))
}

/** Whether the files that the index lists are those that its entries named. */
export function listsAll(index: Index): boolean {
  return readLiveDigest(index) === withRows('0', liveRows(index))
}

/**
 * Refuses an index that lists other files than the journal: views over it would answer short, and a sweep would take
 * them.
 */
export function proveLive(index: Index): void {
  if (listsAll(index)) return
  throw new LakeError('integrity', {
    subject: `${places.ledger} does not list the files that the journal names`,
    next: 'run pitlake doctor --rebuild-ledger',
  })
}
