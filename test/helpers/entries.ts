import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Entry } from '../../src/lake/ledger/entry.ts'
import { listJournal } from '../../src/lake/ledger/journal.ts'
import { packEntry } from '../../src/lake/ledger/packed-entry.ts'
import { checkpointFile, entryFile } from '../../src/lake/store/layout.ts'

/** The journal's entries as they stand on disk, oldest first. */
export function journalEntries(root: string): Entry[] {
  const folder = join(root, 'journal')
  const names = readdirSync(folder).filter((name) => /^\d+\.json\.gz$/.test(name))
  return names.toSorted().map((name) => JSON.parse(entryText(join(folder, name))) as Entry)
}

/** The text in the file of an entry; knows nothing of the reader under test. */
export function entryText(path: string): string {
  return gunzipSync(readFileSync(path)).toString()
}

/** Writes the text of an entry to its file. */
export function writeEntryText(path: string, text: string): void {
  writeFileSync(path, packEntry(text, path))
}

/** The files of the journal that its newest checkpoint makes superfluous. */
export async function foldedFiles(root: string): Promise<string[]> {
  const { entries, checkpoints, folded } = await listJournal(root)
  return [
    ...entries.filter((version) => version <= folded).map(entryFile),
    ...checkpoints.filter((version) => version < folded).map(checkpointFile),
  ]
}
