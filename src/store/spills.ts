import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const spills = new Set<string>()

/** A folder that nobody else may enter, for what does not fit into memory. */
export function makeSpill(): string {
  const spill = mkdtempSync(join(tmpdir(), 'pitlake-'))
  spills.add(spill)
  return spill
}

/** Removes such a folder with all that is in it. */
export function removeSpill(folder: string | undefined): void {
  if (folder !== undefined && spills.delete(folder)) rmSync(folder, { recursive: true, force: true })
}

/** Removes what sessions spilled that are still at work: for whoever ends without closing them. */
export function removeSpills(): void {
  for (const folder of spills) removeSpill(folder)
}
