import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { usage } from '../../base/errors.ts'
import { jsonOf } from '../../base/json.ts'
import { codeOf, type Disk } from './disk.ts'
import { inLake, places } from './layout.ts'

interface Marker {
  readonly lake?: unknown
  readonly synthetic?: unknown
  readonly mirror_of?: unknown
}

/** Reads the lake's id from the folder's marker; null if there is no marker, or if it contains no such id. */
export async function readMarker(root: string): Promise<string | null> {
  const lake = (await read(root))?.lake
  return typeof lake === 'string' && /^[0-9a-f]{32}$/.test(lake) ? lake : null
}

/** Compares the folder's marker with a lake: it belongs to this lake, is missing, or belongs to anything else. */
export async function markerOf(root: string, lake: string | null): Promise<'own' | 'none' | 'other'> {
  const named = await readMarker(root)
  if (named !== null) return named === lake ? 'own' : 'other'
  return existsSync(inLake(root, places.marker)) ? 'other' : 'none'
}

/** Whether the marker declares the lake's data synthetic; null if it does not state this. */
export async function markedSynthetic(root: string): Promise<boolean | null> {
  const synthetic = (await read(root))?.synthetic
  return typeof synthetic === 'boolean' ? synthetic : null
}

/** Returns the source of which the folder is a mirror; null for a lake of its own. */
export async function mirrorOf(root: string): Promise<string | null> {
  const source = (await read(root))?.mirror_of
  return typeof source === 'string' ? source : null
}

/** Refuses to write to a mirror, because its contents come from another lake. */
export async function refuseMirror(root: string): Promise<void> {
  const source = await mirrorOf(root)
  if (source === null) return
  throw usage(`lake ${root}`, {
    expected: 'a lake of its own',
    got: `a mirror of ${source}, which only pitlake pull and pitlake views write to`,
    next: 'run it where the lake is, then pitlake pull here; pitlake pull --thorough repairs a mirror',
  })
}

/** Formats the marker of a mirror. */
export function mirrorMarker(lake: string, synthetic: boolean, source: string): string {
  const about = 'this folder is a mirror of a lake of pitlake: pitlake pull writes to it, and nothing else'
  return `${JSON.stringify({ lake, synthetic, mirror_of: source, about })}\n`
}

/** Formats the marker of a lake of its own. */
export function lakeMarker(lake: string, synthetic: boolean): string {
  const about = 'this folder is a lake of pitlake; without this file nothing in it is ever swept'
  return `${JSON.stringify({ lake, synthetic, about })}\n`
}

/** Parses the lake and the source from the text of a marker; undefined if the text is not a marker. */
export function parseMarker(text: string): { readonly lake: string; readonly mirrorOf: string | null } | undefined {
  const { lake, mirror_of } = (jsonOf(text) ?? {}) as Marker
  return typeof lake === 'string' ? { lake, mirrorOf: typeof mirror_of === 'string' ? mirror_of : null } : undefined
}

async function read(root: string): Promise<Marker | null> {
  try {
    return JSON.parse(await readFile(inLake(root, places.marker), 'utf8')) as Marker | null
  } catch (error) {
    if (error instanceof SyntaxError || ['ENOENT', 'EISDIR'].includes(codeOf(error) ?? '')) return null
    throw error
  }
}

/** Writes the marker if there is none; a marker never changes. The caller has the commit lock. */
export async function setMarker(disk: Disk, root: string, lake: string, synthetic: boolean): Promise<void> {
  if ((await readMarker(root)) === lake) return
  const temporary = inLake(root, `.tmp-${places.marker}`)
  await disk.write(temporary, lakeMarker(lake, synthetic))
  const isClaimed = await disk.claim(temporary, inLake(root, places.marker))
  if (!isClaimed) {
    await disk.remove(temporary)
    throw usage(places.marker, {
      expected: `the marker of the lake ${lake}`,
      got: (await readMarker(root)) ?? 'something else',
      next: 'name another folder with --data, or put the file aside if it does not belong there',
    })
  }
  await disk.syncFolder(root)
}
