import { isThere } from '../store/files.ts'
import { dataPlaces, ownData } from '../store/begin.ts'
import { dataFooters } from '../store/footers.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import { type Damage, finding } from './damage.ts'
import { makeFolder, realDisk, statOf } from '../store/disk.ts'
import { dataVersion, inLake, instantName, places, ownFolders } from '../store/layout.ts'
import { judge } from './judgement.ts'
import { lockCommit } from '../store/lock.ts'
import { readMarker } from '../store/marker.ts'
import type { Micros } from '../time.ts'

/** Data files without the journal and the ledger that explain them. */
export interface Found {
  readonly files: number
  readonly bytes: number
  /** The lakes that their footers name; more than one where folders were mixed. */
  readonly lakes: readonly string[]
  /** The newest version that they speak of. */
  readonly version: number
}

/** Counts the data files in a folder whose journal and ledger do not explain them. */
export async function whatIsLeft(root: string): Promise<Found> {
  const paths: string[] = []
  for await (const path of ownData(root)) paths.push(path)
  const sizes = await Promise.all(paths.map(async (path) => (await statOf(inLake(root, path)))?.size ?? 0))
  const footers = await dataFooters(root)
  const marker = await readMarker(root)
  const named = [...footers.flatMap(({ lake }) => lake ?? []), ...(marker === null ? [] : [marker])]
  return {
    files: paths.length,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    lakes: [...new Set(named)].toSorted(),
    version: Math.max(
      ...paths.map((path) => dataVersion(path) ?? 0),
      ...footers.map((one) => Number(one.version ?? 0)),
    ),
  }
}

/** Whether neither journal nor ledger explain the data in a folder. */
export async function isLost(root: string): Promise<boolean> {
  return (await judge(root)).way === 'adopt'
}

/** The finding of a lost lake. */
export function lostDamage({ files, bytes, lakes, version }: Found): Damage {
  const whose = lakes.length === 0 ? 'of an unknown lake' : `of the lake ${lakes.join(' and ')}`
  const what = `${files} data files (${bytes.toLocaleString('en-US')} bytes) ${whose}, up to version ${version}`
  return finding('journal_lost', places.journal, `${what}, without journal and ledger`)
}

/** What a lake leaves in its folder, its data last, beside locks, which die with their processes. */
const moved = [
  places.manifest,
  places.script,
  places.database,
  places.ledger,
  places.marker,
  ...ownFolders.filter((place) => place !== places.locks && !dataPlaces.includes(place)),
  ...dataPlaces,
]

/** The folder that takes what a lost lake left; no other has its name. */
export function foundFolder(now: Micros): string {
  return `found-${instantName(now)}`
}

/** Moves a lost lake into a folder of its own beside what the folder holds otherwise; nothing is removed. */
export async function moveFound(root: string, deps: CommitDeps): Promise<string[]> {
  const disk = deps.disk ?? realDisk
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  if (!(await isLost(root))) return []
  const folder = foundFolder(deps.nowMicros())
  await makeFolder(disk, inLake(root, folder))
  // The data go last: until then the folder is known for what it is, and the same command goes on.
  for (const place of moved)
    if (isThere(inLake(root, place))) await disk.move(inLake(root, place), inLake(root, `${folder}/${place}`))
  for (const place of [folder, '.']) await disk.syncFolder(inLake(root, place))
  return [`what the lost lake left was moved to ${folder}/`]
}
