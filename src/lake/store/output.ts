import { randomUUID } from 'node:crypto'
import { createWriteStream, existsSync, lstatSync, realpathSync, rmSync, statSync, type WriteStream } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import { codeOf, diskError } from './disk.ts'
import { places, ownFolders } from './layout.ts'

/** A file for the user while it is written, and the steps that finish or discard it. */
export interface OutFile {
  /** The name that it is written under; a session must be allowed to write it. */
  readonly path: string
  readonly finish: () => Promise<void>
  readonly discard: () => void
}

/**
 * Prepares a file that a command writes for the user: a regular file appears whole or not at all, a device or pipe is
 * written directly. Links are not followed, and no file in the layout of a lake is overwritten or added; a file next to
 * it, such as `data/status.html`, is allowed. `folder` is the lake in use, `flag` names the option in errors.
 */
export function outFile(file: string, folder: string | null, flag = '--out'): OutFile {
  const target = resolve(file)
  const home = dirname(target)
  if (!existsSync(home) || !statSync(home).isDirectory())
    throw usage(flag, {
      expected: 'a file in a folder that exists',
      got: target,
      next: 'make the folder, or name another one',
    })
  const link = lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink() === true
  const status = statSync(target, { throwIfNoEntry: false })
  if (status?.isDirectory() === true) throw usage(flag, { expected: 'a file', got: `the folder ${target}` })
  // /dev/stdout and the like are system links to open files or pipes; /dev/shm is an ordinary folder.
  if (home === '/dev' || home === '/dev/fd' || (status !== undefined && !status.isFile()))
    return { path: target, finish: async () => undefined, discard: () => undefined }
  if (link)
    throw usage(flag, {
      expected: 'a file',
      got: `the link ${target}`,
      next: 'name the file itself, or remove the link',
    })
  const place = join(realpathSync(home), basename(target))
  const owned = ownedPart(place, folder)
  if (owned !== undefined)
    throw usage(flag, {
      expected: 'a file outside the lake',
      got: target,
      next: `${owned} is the lake's own; another name or folder will do`,
    })
  const path = join(dirname(place), `.${basename(place)}.${randomUUID().slice(0, 8)}.part`)
  return { path, finish: async () => await rename(path, place), discard: () => rmSync(path, { force: true }) }
}

/** Opens a stream into such a file. */
export function streamTo({ path }: OutFile): WriteStream {
  return createWriteStream(path)
}

/** Writes a text for the user, under the rules of `outFile`. */
export async function putOut(file: string, text: string, folder: string | null, flag: string): Promise<void> {
  const out = outFile(file, folder, flag)
  try {
    await writeFile(out.path, text, { flag: out.path === resolve(file) ? 'w' : 'wx' })
    await out.finish()
  } catch (error) {
    out.discard()
    throw outError(error, file, flag)
  }
}

/**
 * Builds the error of a failed write: exit code 6 if the disk refuses it, otherwise a path that the user has to change.
 */
function outError(cause: unknown, file: string, flag: string): unknown {
  if (cause instanceof LakeError) return cause
  const got = codeOf(cause)
  if (got === 'ENOSPC' || got === 'EDQUOT' || got === 'EROFS' || got === 'EIO') return diskError(cause, flag)
  return usage(`${flag} ${file}`, {
    expected: 'a file that can be written',
    got: got ?? String(cause),
    next: 'name a file in a folder that you may write',
    cause,
  })
}

const ownFile = /^(?:lake\.(?:json|sql|duckdb|manifest\.json)|ledger\.sqlite|alarms\.json|pages\.json|arrivals\.json)/

/**
 * Returns the part of a lake's layout that the path would lie in or replace; undefined outside of every lake and next
 * to its files.
 */
function ownedPart(place: string, folder: string | null): string | undefined {
  const roots = folder !== null && existsSync(folder) ? [realpathSync(folder)] : []
  for (let up = dirname(place); ; up = dirname(up)) {
    if (isLake(up)) roots.push(up)
    if (up === dirname(up)) break
  }
  for (const root of roots) {
    const [first = '', ...rest] = relative(root, place).split(sep)
    // File systems that ignore case know these names in other spellings, too.
    const name = first.toLowerCase()
    if (
      name !== '..' &&
      (rest.length > 0 ? ownFolders.includes(name) : ownFolders.includes(name) || ownFile.test(name))
    )
      return join(root, first)
  }
  return undefined
}

function isLake(folder: string): boolean {
  const [journal, ...signs] = [places.journal, places.ledger, places.marker, places.script].map((name) =>
    existsSync(join(folder, name)),
  )
  return journal === true && signs.includes(true)
}
