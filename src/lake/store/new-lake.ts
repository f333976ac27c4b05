import { isFolder } from './files.ts'
import { existsSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import { entriesIn } from './disk.ts'
import { dataVersion, inLake, isRunName, places, ownFolders } from './layout.ts'
import { mirrorOf, readMarker } from './marker.ts'

/** Whether a lake was begun in a folder. */
export function isBegun(root: string): boolean {
  return [places.ledger, places.journal].some((place) => existsSync(inLake(root, place)))
}

/** Folders with data that only a journal explains. */
export const dataPlaces: readonly string[] = [places.points, places.assets, places.archive, places.registry]
const passing: readonly string[] = [places.spool, places.runs, places.quarantine, places.locks]
const files = [places.database, places.script, places.manifest]

/**
 * Refuses to start a new lake in a folder without a journal that contains names of pitlake's layout: foreign files
 * would be in danger, and a lake's own files have lost their journal. The remains of a killed first run are allowed,
 * and so are files outside the layout. `opened`: the folder has an index of pitlake, and it is empty.
 */
export async function refuseStranger(root: string, opened: boolean): Promise<void> {
  const marked = (await readMarker(root)) !== null
  await refuseHalfMirror(root)
  const newest = await newestData(root)
  if (newest !== undefined && !(newest === 1 && marked && opened)) throw journalLost(root)
  if (existsSync(inLake(root, places.ledger)) && !opened) throw stranger(root, places.ledger)
  if (marked || opened) return
  for (const place of ownFolders) {
    const fits = passing.includes(place) ? isPassing : () => false
    if (await standsFull(root, place, fits)) throw stranger(root, place)
  }
  for (const place of files) if (existsSync(inLake(root, place))) throw stranger(root, place)
}

/** Whether a name of `spool`, `runs`, `quarantine` or `locks` is one that a run of pitlake gives. */
function isPassing(name: string): boolean {
  return isRunName(name) || /\.(?:lock|json)(?:-journal)?$/.test(name)
}

/** Whether the path is a link, a file, or a folder with contents other than the allowed ones. */
async function standsFull(root: string, place: string, fits: (name: string) => boolean): Promise<boolean> {
  const path = inLake(root, place)
  const what = await lstat(path).catch(() => undefined)
  if (!what) return false
  if (!what.isDirectory()) return true
  return (await entriesIn(path)).some(({ name }) => !fits(name) && !name.startsWith('.tmp-'))
}

/** Returns the newest version in the names of data files; undefined if there are none. */
export async function newestData(root: string): Promise<number | undefined> {
  let newest: number | undefined
  for await (const path of ownData(root)) newest = Math.max(newest ?? 0, dataVersion(path) ?? 0)
  return newest
}

/** Lists the data files with names of pitlake's own pattern; follows no link. */
export async function* ownData(root: string): AsyncGenerator<string> {
  for (const place of dataPlaces) yield* ownFilesBelow(root, place)
}

/** Lists the files below a folder of the layout with names of pitlake's own pattern; follows no link. */
async function* ownFilesBelow(root: string, place: string): AsyncGenerator<string> {
  if (!(await isFolder(inLake(root, place)))) return
  for (const entry of await entriesIn(inLake(root, place))) {
    const path = `${place}/${entry.name}`
    if (entry.isDirectory()) yield* ownFilesBelow(root, path)
    else if (entry.isFile() && dataVersion(path) !== undefined) yield path
  }
}

function stranger(root: string, place: string): LakeError {
  return usage(`folder ${root}`, {
    expected: 'a lake, or a folder without names of the layout of one',
    got: `${join(root, place)}, but no journal`,
    next: 'name another folder with --data, or put that aside: nothing in it was touched',
  })
}

/**
 * Refuses a folder without a journal that is a mirror: a pull writes the journal last, so it is still running or was
 * killed.
 */
export async function refuseHalfMirror(root: string): Promise<void> {
  const source = await mirrorOf(root)
  if (source === null) return
  throw usage(`lake ${root}`, {
    expected: 'a mirror that is whole',
    got: `one that pitlake pull or restore ${source} did not finish`,
    next: 'run that again',
  })
}

function journalLost(root: string): LakeError {
  return new LakeError('integrity', {
    subject: `lake ${root}`,
    expected: 'the journal of the data files that stand there',
    got: 'data without a journal',
    next: 'put journal/ back from a copy, or run pitlake doctor: it says what can be saved',
  })
}
