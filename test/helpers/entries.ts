import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Entry } from '../../src/lake/ledger/entry.ts'
import { listJournal } from '../../src/lake/ledger/journal.ts'
import { checkpointFile, entryFile } from '../../src/lake/store/layout.ts'

/** The journal's entries as they stand on disk, oldest first. */
export function journalEntries(root: string): Entry[] {
  const folder = join(root, 'journal')
  const names = readdirSync(folder).filter((name) => /^\d+\.json$/.test(name))
  return names.toSorted().map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Entry)
}

/** The files of the journal that its newest checkpoint makes superfluous. */
export async function foldedFiles(root: string): Promise<string[]> {
  const { entries, checkpoints, folded } = await listJournal(root)
  return [
    ...entries.filter((version) => version <= folded).map(entryFile),
    ...checkpoints.filter((version) => version < folded).map(checkpointFile),
  ]
}
