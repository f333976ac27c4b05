import { chmod, lstat, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, type Disk, makeFolder } from './disk.ts'
import { inLake, places } from './layout.ts'

/**
 * Folders with unprocessed answers and records of runs, which only the owner of the lake may read; the umask decides
 * about all others.
 */
const privatePlaces = [places.spool, places.quarantine, places.runs, places.raw, places.swept] as const

const folderMode = 0o700
const fileMode = 0o600

/**
 * Makes a folder of the lake, relative to it, and its missing parents, each of them durable; private folders are closed
 * to others.
 */
export async function makeLakeFolder(disk: Disk, root: string, path: string): Promise<void> {
  const place = privatePlaces.find((folder) => isIn(path, folder))
  if (place === undefined) return await makeFolder(disk, inLake(root, path))
  await makeFolder(disk, dirname(inLake(root, place)))
  await makeFolder(disk, inLake(root, place), folderMode)
  await makeFolder(disk, inLake(root, path), folderMode)
}

function isIn(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`)
}

/**
 * Closes private folders that a copy left open, their files first; a folder that is already closed is not searched
 * again. A folder of a different user is left alone, and so is a link.
 */
export async function closePrivate(root: string): Promise<void> {
  for (const place of privatePlaces) await close(inLake(root, place))
}

async function close(folder: string): Promise<void> {
  try {
    const stats = await lstat(folder)
    if (!stats.isDirectory() || (stats.mode & 0o077) === 0) return
    for (const item of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, item.name)
      if (item.isDirectory()) await close(path)
      else if (item.isFile()) await chmod(path, fileMode)
    }
    await chmod(folder, folderMode)
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR', 'EPERM', 'EACCES', 'EROFS'].includes(codeOf(error) ?? '')) throw error
  }
}
