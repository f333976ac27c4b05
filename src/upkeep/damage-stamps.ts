import { sha256File } from '../ledger/commit.ts'
import type { Damage } from './damage.ts'
import { statOf } from '../store/disk.ts'
import { inLake, places } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { listStamps, lostStamps, readStamp, type StampedFile, stampFile } from '../ledger/stamps.ts'

/**
 * The notes of stamped results and what was copied for them; `thorough` reads all bytes. The data files that they name
 * are the journal's, and looked at with it.
 */
export async function checkStamps(ledger: Ledger, thorough: boolean): Promise<Damage[]> {
  const { root } = ledger
  const found: Damage[] = []
  for (const id of await lostStamps(ledger, root))
    found.push({
      kind: 'stamp_lost',
      severity: 'damage',
      path: stampFile(id),
      found: 'it is not there, and the ledger knows it',
      remedy: 'put it back from a copy; pitlake doctor --rebuild-ledger forgets it, and vacuum what it pins',
    })
  const copied = new Map<string, StampedFile>()
  for (const id of await listStamps(root)) {
    const torn = (what: string): void =>
      void found.push({
        kind: 'stamp_torn',
        severity: 'damage',
        path: stampFile(id),
        found: what,
        remedy: 'put it back from a copy, or remove it if its result is no longer needed: vacuum waits for it',
      })
    try {
      const { lake, files } = await readStamp(root, id)
      if (lake !== ledger.head().lake) torn(`it is of lake ${lake}`)
      for (const file of files) if (file.path.startsWith(`${places.stamps}/`)) copied.set(file.path, file)
    } catch {
      torn('it cannot be read')
    }
  }
  for (const file of copied.values()) {
    const problem = await copyProblem(root, file, thorough)
    if (problem)
      found.push({
        ...problem,
        severity: 'damage',
        path: file.path,
        remedy: 'put it back from a copy; only stamped results need it',
      })
  }
  return found
}

async function copyProblem(
  root: string,
  { path, bytes, sha256 }: StampedFile,
  thorough: boolean,
): Promise<Pick<Damage, 'kind' | 'found'> | undefined> {
  const size = (await statOf(inLake(root, path)))?.size
  if (size === undefined) return { kind: 'file_lost', found: 'it is not there' }
  if (size !== bytes) return { kind: 'file_torn', found: `${size} bytes, expected ${bytes}` }
  if (thorough && (await sha256File(inLake(root, path))) !== sha256)
    return { kind: 'file_changed', found: 'its bytes do not match the checksum in its note' }
  return undefined
}
