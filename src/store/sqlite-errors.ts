import { accessSync, closeSync, constants, existsSync, openSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { LakeError } from '../errors.ts'
import { codeOf, diskError } from './disk.ts'
import { places } from './layout.ts'

/** SQLite's words for a damaged file, a full disk and a file that cannot be opened or written. */
export function explain(error: unknown, doing: string, path: string): unknown {
  if (codeOf(error) !== 'ERR_SQLITE_ERROR') return diskError(error, doing)
  const result = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  if (result === 11 || result === 26) return damaged('cannot be read', error)
  if (result === 5 || result === 6) return held(path, error)
  const codes: Readonly<Record<number, string>> = { 8: 'EACCES', 10: 'EIO', 13: 'ENOSPC', 14: 'EMFILE' }
  const usual = codes[result]
  if (usual === undefined) return error
  // A file that can be opened now could not be a moment ago: so many were open.
  const code = usual === 'ENOSPC' ? usual : (systemCode(path) ?? usual)
  return diskError(Object.assign(new Error(code, { cause: error }), { code }), doing)
}

/** Another program holds the file: the system does not tell which. */
function held(path: string, cause: unknown): LakeError {
  return new LakeError('busy', {
    subject: `${path} is locked`,
    expected: 'that nobody holds it for a minute',
    got: 'another program at work on it: SQLite does not say which (fuser or lsof does)',
    next: 'wait until it has ended, then run the same command again',
    cause,
  })
}

/** What the system says itself where SQLite says only that it cannot; undefined where it finds nothing wrong now. */
function systemCode(path: string): string | undefined {
  try {
    accessSync(dirname(path), constants.W_OK)
    if (existsSync(path)) closeSync(openSync(path, 'r+'))
    return statfsSync(dirname(path)).bavail === 0 ? 'ENOSPC' : undefined
  } catch (error) {
    return codeOf(error)
  }
}

/** The complaint about an index that is lost or cannot be read. */
export function damaged(what: string, cause?: unknown): LakeError {
  return new LakeError('integrity', {
    subject: `${places.ledger} ${what}`,
    next: 'run pitlake doctor --rebuild-ledger',
    cause,
  })
}
