import { chmod, lstat, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, type Disk, makeFolder, realDisk } from './disk.ts'
import { inLake, places, quarantineFile } from './layout.ts'
import { readInto, writePrivate } from './files.ts'
import type { Micros } from '../../base/time.ts'
import { redactBytes } from '../../base/secrets.ts'

/** What answers and runs leave there as it came is for the owner of the lake alone; all else follows the umask. */
const privatePlaces = [places.spool, places.quarantine, places.runs, places.raw, places.swept] as const

const folderMode = 0o700
const fileMode = 0o600

/** Makes a folder of the lake, relative to it, and its missing parents, each of them durable; private ones closed. */
export async function makeLakeFolder(disk: Disk, root: string, path: string): Promise<void> {
  const place = privatePlaces.find((one) => isIn(path, one))
  if (place === undefined) return await makeFolder(disk, inLake(root, path))
  await makeFolder(disk, dirname(inLake(root, place)))
  await makeFolder(disk, inLake(root, place), folderMode)
  await makeFolder(disk, inLake(root, path), folderMode)
}

function isIn(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`)
}

/**
 * Closes the private folders that a copy left open, their files first: a folder that is closed already is
 * not looked through again. A folder that is not this user's is left as it is, and so is a link.
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

const quarantinedBytes = 4_000_000
/** Beyond the cut so much is read that a key which begins before it is seen whole. */
const beyond = 100_000

/** The request that brought a body. */
interface Asked {
  readonly id: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly asked_at: Micros
  readonly bytes: number | null
}

/**
 * Puts a body that is not applied into the quarantine, its first 4 MB and the request. Keys are replaced before
 * anything is cut or written, numbers that could be one too; both files appear under their names when they are whole.
 */
export async function quarantineBody(
  root: string,
  body: { readonly file: string },
  request: Asked,
  reason: string,
  secrets: readonly string[],
): Promise<void> {
  await makeLakeFolder(realDisk, root, places.quarantine)
  const clean = redactBytes(await readInto(body.file, Buffer.alloc(quarantinedBytes + beyond)), secrets, 'text')
  const { path, query, asked_at, bytes } = request
  const facts = { reason, path, query, asked_at, bytes }
  // The spool is swept: what a kill leaves there under a name of its own is no trace.
  const temporary = `${body.file}.aside`
  for (const [extension, content] of [
    ['.body', clean.subarray(0, quarantinedBytes)],
    ['.json', `${JSON.stringify(facts, null, 2)}\n`],
  ] as const) {
    await writePrivate(temporary, content)
    await realDisk.move(temporary, inLake(root, quarantineFile(request.id, extension)))
  }
}
