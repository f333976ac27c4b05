import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { usage } from '../errors.ts'
import { codeOf, type Disk } from './disk.ts'
import { inLake, places } from './layout.ts'

interface Marker {
  readonly lake?: unknown
  readonly synthetic?: unknown
}

/** The id that the folder's marker tells; null where there is none, or one that is not a lake's. */
export async function readMarker(root: string): Promise<string | null> {
  const lake = (await read(root))?.lake
  return typeof lake === 'string' && /^[0-9a-f]{32}$/.test(lake) ? lake : null
}

/** Whose marker the folder bears: this lake's, none at all, or something that is not this lake's. */
export async function markerOf(root: string, lake: string | null): Promise<'own' | 'none' | 'other'> {
  const named = await readMarker(root)
  if (named !== null) return named === lake ? 'own' : 'other'
  return existsSync(inLake(root, places.marker)) ? 'other' : 'none'
}

/** Whether the marker tells that the lake's data are made up; null where it does not say. */
export async function markedSynthetic(root: string): Promise<boolean | null> {
  const synthetic = (await read(root))?.synthetic
  return typeof synthetic === 'boolean' ? synthetic : null
}

async function read(root: string): Promise<Marker | null> {
  try {
    return JSON.parse(await readFile(inLake(root, places.marker), 'utf8')) as Marker | null
  } catch (error) {
    if (error instanceof SyntaxError || ['ENOENT', 'EISDIR'].includes(codeOf(error) ?? '')) return null
    throw error
  }
}

/** Writes the marker where there is none; it never changes. The caller holds the commit lock. */
export async function setMarker(disk: Disk, root: string, lake: string, synthetic: boolean): Promise<void> {
  if ((await readMarker(root)) === lake) return
  const temporary = inLake(root, `.tmp-${places.marker}`)
  const about = 'this folder is a lake of pitlake; without this file nothing in it is ever swept'
  await disk.write(temporary, `${JSON.stringify({ lake, synthetic, about })}\n`)
  const made = await disk.claim(temporary, inLake(root, places.marker))
  if (!made) {
    await disk.remove(temporary)
    throw usage(places.marker, {
      expected: `the marker of the lake ${lake}`,
      got: (await readMarker(root)) ?? 'something else',
      next: 'name another folder with --data, or put the file aside if it does not belong there',
    })
  }
  await disk.syncFolder(root)
}
