import { randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LakeError } from '../../base/errors.ts'
import { codeOf, diskError } from './disk.ts'
import { places } from './layout.ts'

/** Time for which a writer waits for another one. */
export const busyMilliseconds = 60_000

/** Keeps the holds from being collected, which would give them back. */
const openDatabases = new Set<DatabaseSync>()

/** A file that this process has to itself. */
export interface FileHold {
  /** Gives the file back; once is enough. */
  readonly release: () => void
}

/**
 * Takes the file for this process alone; undefined while another holds it, for as long as is waited (nothing else goes
 * on then).
 */
export function holdFile(path: string, timeout = 0): FileHold | undefined {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout })
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    if ((error as { errcode?: number }).errcode === 5) return undefined
    throw explain(error, `lock ${path}`, path)
  }
  openDatabases.add(database)
  return {
    release: (): void => {
      if (openDatabases.delete(database)) database.close()
    },
  }
}

/** Opens an index's file, made with its folder if need be. */
export function openDatabase(path: string): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true })
  const database = new DatabaseSync(path, { timeout: busyMilliseconds })
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Has an index's file stand there, empty where it is new: whoever opens the lake fills it. */
export function beginDatabase(path: string): void {
  if (!existsSync(path)) openDatabase(path).close()
}

/**
 * The version that an index of ours has seen, or its shape, 0 while another process makes it; undefined where none
 * stands.
 */
export function metaLeft(path: string, key: 'version' | 'schema'): number | undefined {
  if (!existsSync(path)) return undefined
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: busyMilliseconds })
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
    if (tables.length === 0) return 0
    if (!['meta', 'versions', 'files', 'series'].every((table) => tables.some(({ name }) => name === table)))
      return undefined
    return Number(database.prepare('SELECT value FROM meta WHERE key = ?').get(key)?.['value'] ?? 0)
  } catch (error) {
    const result = ((error as { errcode?: number }).errcode ?? 0) & 0xff
    return result === 11 || result === 26 ? undefined : 0
  } finally {
    database?.close()
  }
}

/** Puts a closed index in place of another; nothing of this process comes in between. */
export function replaceDatabase(fresh: string, path: string): void {
  // Its file is there all the while: whoever looks now would take the index for lost.
  for (const suffix of besides) rmSync(path + suffix, { force: true })
  renameSync(fresh, path)
}

/** A path for an index that is to be, beside the one that it will replace. */
export function rebuildPath(path: string): string {
  return `${path}.rebuild-${randomUUID()}`
}

/** Takes away what killed processes left of indexes that were to be. */
export function removeUnfinished(path: string): void {
  const begin = `${basename(path)}.rebuild`
  for (const name of readdirSync(dirname(path)))
    if (name.startsWith(begin)) rmSync(join(dirname(path), name), { force: true })
}

const besides = ['-wal', '-shm', '-journal']

/** Removes an index's file and what stands beside it. */
export function removeDatabase(path: string): void {
  for (const suffix of ['', ...besides]) rmSync(path + suffix, { force: true })
}

/** SQLite's words for a damaged file, a full disk and a file that cannot be opened or written. */
export function explain(error: unknown, doing: string, path: string): unknown {
  if (codeOf(error) !== 'ERR_SQLITE_ERROR') return diskError(error, doing)
  const result = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  if (result === 11 || result === 26) return damagedIndexError('cannot be read', error)
  if (result === 5 || result === 6) return lockedError(path, error)
  const codes: Readonly<Record<number, string>> = { 8: 'EACCES', 10: 'EIO', 13: 'ENOSPC', 14: 'EMFILE' }
  const usual = codes[result]
  if (usual === undefined) return error
  // A file that can be opened now could not be a moment ago: so many were open.
  const code = usual === 'ENOSPC' ? usual : (systemCode(path) ?? usual)
  return diskError(Object.assign(new Error(code, { cause: error }), { code }), doing)
}

/** The error of a file that a different program holds; the system does not report which. */
function lockedError(path: string, cause: unknown): LakeError {
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
export function damagedIndexError(what: string, cause?: unknown): LakeError {
  return new LakeError('integrity', {
    subject: `${places.ledger} ${what}`,
    next: 'run pitlake doctor --rebuild-ledger',
    cause,
  })
}
