import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from '../../src/ledger/entry.ts'

/** The journal's entries as they stand on disk, oldest first. */
export function journalEntries(root: string): Entry[] {
  const folder = join(root, 'journal')
  const names = readdirSync(folder).filter((name) => /^\d+\.json$/.test(name))
  return names.toSorted().map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Entry)
}
