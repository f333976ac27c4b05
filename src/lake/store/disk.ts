import { accessSync, constants, type Dirent, realpathSync, statSync, type Stats } from 'node:fs'
import * as fs from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { LakeError } from '../../base/errors.ts'

/** The few durable steps that a commit is made of; tests put failures in here. */
export interface Disk {
  /** Forces the content of a file to the disk. */
  sync(path: string): Promise<void>
  /** Forces the names in a folder to the disk. */
  syncFolder(path: string): Promise<void>
  /** Moves a file within the file system, replacing any file with the new name. */
  move(from: string, to: string): Promise<void>
  /** Writes a new file and forces its content to the disk; an existing one is replaced. */
  write(path: string, text: string | Uint8Array): Promise<void>
  /** Gives a written file a second, final name; false if that name is taken. */
  claim(from: string, to: string): Promise<boolean>
  /** Adds text to the end of a file, made for its owner alone if need be, and forces it to the disk. */
  append(path: string, text: string): Promise<void>
  /** Removes a file or a whole folder; a missing one is not an error. */
  remove(path: string): Promise<void>
}

/** The file system of this machine. */
export const realDisk: Disk = {
  async sync(path) {
    await using file = await fs.open(path, 'r+')
    await file.sync()
  },
  async syncFolder(path) {
    await using folder = await fs.open(path, 'r').catch(ignoreUnsupported)
    if (!folder) return
    await folder.sync().catch(ignoreUnsupported)
  },
  async move(from, to) {
    await fs.rename(from, to)
  },
  async write(path, text) {
    await using file = await fs.open(path, 'w')
    await file.writeFile(text)
    await file.sync()
  },
  async claim(from, to) {
    try {
      await fs.link(from, to)
      await fs.rm(from, { force: true })
      return true
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false
      if (!noHardLinks.has(codeOf(error))) throw error
      if (await exists(to)) return false
      await fs.rename(from, to)
      return true
    }
  },
  async append(path, text) {
    await using file = await fs.open(path, 'a+', 0o600)
    const { size } = await file.stat()
    const tail = Buffer.alloc(1)
    if (size > 0) await file.read(tail, 0, 1, size - 1)
    const torn = size > 0 && tail[0] !== 0x0a
    await file.appendFile(torn ? `\n${text}` : text)
    await file.sync()
  },
  async remove(path) {
    await fs.rm(path, { force: true, recursive: true })
  },
}

/** Error codes of file systems without hard links. */
const noHardLinks = new Set<string | undefined>(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

/** Ignores the errors of systems on which folders cannot be opened or synced; any other error is thrown. */
function ignoreUnsupported(error: unknown): undefined {
  if (['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP'].includes(codeOf(error) ?? '')) return undefined
  throw error
}

/** The folders whose names this process has forced to the disk. */
const anchored = new WeakMap<Disk, Set<string>>()

/**
 * Makes the folder and its missing parents and forces the name of each to the disk, up to the mount point. A folder
 * that already exists may be left from a killed run: its name is forced too, once per process.
 */
export async function makeFolder(disk: Disk, path: string, mode = 0o777): Promise<void> {
  const first = await fs.mkdir(path, { recursive: true, mode })
  const anchoredFolders = anchored.get(disk) ?? new Set()
  anchored.set(disk, anchoredFolders)
  for (let at = resolve(path); at !== dirname(at); at = dirname(at)) {
    const fresh = first !== undefined && at.length >= resolve(first).length
    if (!fresh && (anchoredFolders.has(at) || (await isMount(at)))) return
    await disk.syncFolder(dirname(at)).catch((error: unknown) => {
      // A folder above the lake that this user cannot read: its names existed before the lake.
      if (fresh || codeOf(error) !== 'EACCES') throw error
    })
    anchoredFolders.add(at)
  }
}

async function isMount(path: string): Promise<boolean> {
  const [status, parent] = await Promise.all([statOf(path), statOf(dirname(path))])
  return status?.dev !== parent?.dev
}

/** Whether a path, or the target of its links, is a folder or lies in it, even if there is no such file. */
export function liesIn(folder: string, path: string): boolean {
  if (path.includes('\0')) return false
  const homes = [resolve(folder), realOf(resolve(folder))]
  return [resolve(path), realOf(resolve(path))].some((at) => homes.some((home) => `${at}/`.startsWith(`${home}/`)))
}

/** Resolves the links in a path as far as its folders exist. */
function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    return above === path ? path : join(realOf(above), basename(path))
  }
}

/** Whether the path names something. */
export async function exists(path: string): Promise<boolean> {
  return (await statOf(path)) !== undefined
}

/** Reads the facts of a file; undefined if it does not exist. */
export async function statOf(path: string): Promise<Stats | undefined> {
  return fs.stat(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
    throw error
  })
}

/** Whether this process may write into a folder. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Whether this process may read a file, or look into a folder. */
export function isReadable(path: string): boolean {
  try {
    const folder = statSync(path).isDirectory()
    accessSync(path, folder ? constants.R_OK | constants.X_OK : constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** Lists the names in a folder, sorted; empty if it does not exist. */
export async function namesIn(path: string): Promise<string[]> {
  return (await entriesIn(path)).map(({ name }) => name)
}

/** Lists the contents of a folder, sorted by name, without following links; empty if it does not exist. */
export async function entriesIn(path: string): Promise<Dirent[]> {
  const entries: Dirent[] = await fs.readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  })
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** Returns the system's error code of a thrown value; undefined if it has none. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

const sayings: Readonly<Record<string, readonly [got: string, next: string]>> = {
  ENOSPC: ['no space left on the disk', 'make room, then run the same command again: nothing committed is lost'],
  EDQUOT: ['the disk quota is used up', 'make room, then run the same command again: nothing committed is lost'],
  EACCES: ['permission denied', 'give this user the right to write there, then run the same command again'],
  EPERM: ['the operation is not permitted', 'give this user the right to write there, then run the same command again'],
  EROFS: ['the file system is read-only', 'mount it writable or name another folder with --data'],
  ENOENT: ['it is not there any more', 'see that the folder is in place, then run the same command again'],
  EEXIST: ['it is there already', 'run pitlake doctor: it finds a file in place of a folder'],
  EIO: ['the disk reports an input/output error', 'check the disk, then run pitlake doctor'],
  EMFILE: ['too many open files', 'raise the limit (ulimit -n), then run the same command again'],
  ENOMEM: ['not enough memory', 'close some programs, then run the same command again'],
  ENFILE: ['too many open files on this machine', 'close some programs, then run the same command again'],
  EISDIR: ['there is a folder where a file belongs', 'move it away, then run the same command again'],
  ENOTDIR: [
    'there is a file where a folder belongs',
    'move it away (in a lake pitlake doctor --repair does), then run the same command again',
  ],
}

/** Patterns for errors that DuckDB and SQLite report only in words, with their codes. */
const inWords: readonly (readonly [RegExp, string])[] = [
  [/no space left on device|database or disk is full/i, 'ENOSPC'],
  [/too many open files/i, 'EMFILE'],
  [/permission denied/i, 'EACCES'],
  [/read-only file system|attempt to write a readonly database/i, 'EROFS'],
  [/no such file or directory|disk i\/o error|unable to open database file/i, 'ENOENT'],
]

/** Returns the system's code of an error, which engines report in words only; undefined for any other error. */
export function saidCode(error: unknown): string | undefined {
  const code = codeOf(error)
  if (code !== undefined && sayings[code] !== undefined) return code
  const message = error instanceof Error ? error.message : ''
  return inWords.find(([words]) => words.test(message))?.[1] ?? code
}

/**
 * Turns a failure of the file system into plain words with a remedy; returns any other error unchanged. A disk that
 * refuses a write ends a run as unfinished; a file that is in the way, or missing, is an unexpected error.
 */
export function diskError(error: unknown, doing: string): unknown {
  const code = saidCode(error)
  const saying = code === undefined ? undefined : sayings[code]
  if (error instanceof LakeError || !saying) return error
  const path = (error as { path?: unknown }).path
  const subject = typeof path === 'string' ? `${doing}, ${path}` : doing
  const kind = code === 'ENOENT' || code === 'EEXIST' ? 'unexpected' : 'incomplete'
  return new LakeError(kind, { subject, got: `${code}: ${saying[0]}`, next: saying[1], cause: error })
}

/** Returns the bytes of the disk of a folder: all of them, and those that are free. */
export async function spaceAt(path: string): Promise<{ readonly free: number; readonly total: number }> {
  const { bavail, blocks, bsize } = await fs.statfs(path)
  return { free: bavail * bsize, total: blocks * bsize }
}
