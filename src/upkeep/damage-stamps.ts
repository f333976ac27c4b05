import { bytesProblem } from '../ledger/commit.ts'
import { type Damage, finding } from './damage.ts'
import { places } from '../store/layout.ts'
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
    found.push(finding('stamp_lost', stampFile(id), 'it is not there, and the ledger knows it'))
  const copied = new Map<string, StampedFile>()
  for (const id of await listStamps(root)) {
    const torn = (what: string): void => void found.push(finding('stamp_torn', stampFile(id), what))
    try {
      const { lake, files } = await readStamp(root, id)
      if (lake !== ledger.head().lake) torn(`it is of lake ${lake}`)
      for (const file of files) if (file.path.startsWith(`${places.stamps}/`)) copied.set(file.path, file)
    } catch {
      torn('it cannot be read')
    }
  }
  const remedy = 'put it back from a copy; only stamped results need it'
  for (const file of copied.values()) {
    const problem = await bytesProblem(root, file, thorough)
    if (problem) found.push(finding(problem.kind, file.path, problem.found, { remedy }))
  }
  return found
}
