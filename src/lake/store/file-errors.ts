import { LakeError } from '../../base/errors.ts'
import { diskError, saidCode } from './disk.ts'
import { jobTooLarge } from './memory.ts'

/** Codes for a lack of disk space, memory or open files, and for a disk that refuses every write. */
const lackCodes: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EMFILE', 'ENFILE', 'ENOMEM'])
const deniedCodes: ReadonlySet<string | undefined> = new Set(['EACCES', 'EPERM'])

/** Builds the error for a machine that lacks memory, disk space or open files; undefined for any other cause. */
export function machineLack(cause: unknown, doing: string): LakeError | undefined {
  const large = jobTooLarge(cause, doing)
  if (large !== undefined) return large
  const explained = lackCodes.has(saidCode(cause)) ? diskError(cause, doing) : undefined
  return explained instanceof LakeError ? explained : undefined
}

/**
 * Throws an error of reading a file again, in plain words, unless it shows that the file is missing or damaged. A lack
 * of memory, disk space or open files, a missing permission and a cancel say nothing about the file: a repair would
 * replace or set aside one that is whole.
 */
export function requireFileError(error: unknown, doing: string): void {
  if (error instanceof LakeError) {
    if (['integrity', 'usage', 'unexpected'].includes(error.kind)) return
    throw error
  }
  const lack = machineLack(error, doing)
  if (lack !== undefined) throw lack
  const code = saidCode(error)
  if (deniedCodes.has(code))
    throw new LakeError('incomplete', {
      subject: doing,
      got: `${code}: permission denied`,
      next: 'give this user the right to read it, then run the same command again',
      cause: error,
    })
  if (error instanceof Error && error.message.startsWith('INTERRUPT')) throw error
}
