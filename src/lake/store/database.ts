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

/**
 * Databases of the current holds; the reference protects them from garbage collection, which would release the files.
 */
const openDatabases = new Set<DatabaseSync>()

/** A file that this process has to itself. */
export interface FileHold {
  /** Releases the file; later calls do nothing. */
  readonly release: () => void
}

/**
 * Takes a file for this process alone; undefined if another process still has it after `timeout` milliseconds, during
 * which this process is blocked.
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

/** Creates an index's file, empty if it is new; the next opening of the lake fills it. */
export function beginDatabase(path: string): void {
  if (!existsSync(path)) openDatabase(path).close()
}

/**
 * Reads the version or the shape of the index in a file, 0 while another process builds it; undefined if there is no
 * such index.
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

/** Replaces an index by a closed one, without letting anything else of this process run in between. */
export function replaceDatabase(fresh: string, path: string): void {
  // The file exists at all times: a process that looked in between would take the index for lost.
  for (const suffix of besides) rmSync(path + suffix, { force: true })
  renameSync(fresh, path)
}

/** Returns a path for a new index, next to the one that it will replace. */
export function rebuildPath(path: string): string {
  return `${path}.rebuild-${randomUUID()}`
}

/** Removes unfinished indexes that killed processes left behind. */
export function removeUnfinished(path: string): void {
  const begin = `${basename(path)}.rebuild`
  for (const name of readdirSync(dirname(path)))
    if (name.startsWith(begin)) rmSync(join(dirname(path), name), { force: true })
}

const besides = ['-wal', '-shm', '-journal']

/** Removes an index's file and the files that SQLite keeps next to it. */
export function removeDatabase(path: string): void {
  for (const suffix of ['', ...besides]) rmSync(path + suffix, { force: true })
}

/**
 * Explains SQLite's errors of a damaged file, a full disk and a file that cannot be opened or written; returns other
 * errors unchanged.
 */
export function explain(error: unknown, doing: string, path: string): unknown {
  if (codeOf(error) !== 'ERR_SQLITE_ERROR') return diskError(error, doing)
  const result = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  if (result === 11 || result === 26) return damagedIndexError('cannot be read', error)
  if (result === 5 || result === 6) return lockedError(path, error)
  const codes: Readonly<Record<number, string>> = { 8: 'EACCES', 10: 'EIO', 13: 'ENOSPC', 14: 'EMFILE' }
  const usual = codes[result]
  if (usual === undefined) return error
  // If a file can be opened now but could not a moment ago, too many were open.
  const code = usual === 'ENOSPC' ? usual : (systemCode(path) ?? usual)
  return diskError(Object.assign(new Error(code, { cause: error }), { code }), doing)
}

/** Builds the error of a file that a different program has locked; the system does not report which. */
function lockedError(path: string, cause: unknown): LakeError {
  return new LakeError('busy', {
    subject: `${path} is locked`,
    expected: 'an unlocked file within a minute',
    got: 'a different program that uses it (fuser or lsof shows which)',
    next: 'wait until it has ended, then run the same command again',
    cause,
  })
}

/**
 * Returns the error code of the system if SQLite reports only that it cannot open a file; undefined if nothing is wrong
 * now.
 */
function systemCode(path: string): string | undefined {
  try {
    accessSync(dirname(path), constants.W_OK)
    if (existsSync(path)) closeSync(openSync(path, 'r+'))
    return statfsSync(dirname(path)).bavail === 0 ? 'ENOSPC' : undefined
  } catch (error) {
    return codeOf(error)
  }
}

/** Builds the error about an index that is lost or cannot be read. */
export function damagedIndexError(what: string, cause?: unknown): LakeError {
  return new LakeError('integrity', {
    subject: `${places.ledger} ${what}`,
    next: 'run pitlake doctor --rebuild-ledger',
    cause,
  })
}
