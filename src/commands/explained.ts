import { exitCode, LakeError } from '../errors.ts'
import { damageBehind } from '../query/changed.ts'
import { NotWhereNamed } from '../query/refusal.ts'
import { diskError } from '../store/disk.ts'
import { tooLarge } from '../store/memory.ts'

/**
 * What was thrown where nobody foresaw it, as what it comes from: a file of the lake that is damaged or gone, or a disk
 * that would not take it; else itself.
 */
export async function explained(thrown: unknown, command: string, data: string): Promise<unknown> {
  // What was told while a thing was closed hides nothing of why it had to be.
  const error: unknown = thrown instanceof Error && 'suppressed' in thrown ? thrown.suppressed : thrown
  const unforeseen = exitCode(error) === 1
  if (!unforeseen && !(error instanceof NotWhereNamed)) return error
  const damage = await damageBehind(data, error)
  if (damage !== null || !unforeseen) return damage ?? error
  const large = tooLarge(error, `pitlake ${command}`)
  if (large) return large
  const told = diskError(error, `pitlake ${command}`)
  return told instanceof LakeError && told.kind === 'incomplete' ? told : error
}
