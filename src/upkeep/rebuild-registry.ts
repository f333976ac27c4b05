import { dirname } from 'node:path'
import { LakeError, reasonIn } from '../errors.ts'
import { type CommitDeps, sha256File, bytesProblem } from '../ledger/commit.ts'
import type { DamagedFile } from './damage-files.ts'
import { exists, realDisk } from '../store/disk.ts'
import { type HeldFile, listInstead, liveFiles, mergedFrom } from '../ledger/held.ts'
import { dataVersion, inLake, parseRegistryFile } from '../store/layout.ts'
import { Ledger } from '../ledger/ledger.ts'
import { makeLakeFolder } from '../store/private.ts'
import { openSpool, type Spool } from '../ledger/sweep.ts'
import type { Resources } from '../registry/bodies.ts'
import { foldAgain } from '../registry/refold.ts'

/** What was rebuilt, told one by one, and why the others were not, by path. */
export interface RebuiltRegistry {
  readonly done: readonly string[]
  readonly beyond: ReadonlyMap<string, string>
}

/**
 * Makes lost files of the registry again from the bodies of the polls that made them: each poll is folded once more upon
 * what the lake held before it, and a file is taken only if its bytes are those that the journal names. What stands in
 * its place is set aside. Older files that the fold needs are made first; those that a merge took are left for its repair.
 */
export async function rebuildRegistry(
  ledger: Ledger,
  damaged: readonly DamagedFile[],
  resources: Resources | undefined,
  deps: CommitDeps,
): Promise<RebuiltRegistry> {
  const lost = damaged.map(({ file }) => file).filter((file) => file.removed_version === null && isMade(file))
  const beyond = new Map<string, string>()
  const done: string[] = []
  if (lost.length === 0 || resources === undefined) return { done, beyond }
  await using spool = await openSpool(ledger.root, `doctor-registry-${ledger.head().version}`, deps)
  const rebuilding: Rebuilding = { root: ledger.root, resources, deps, spool, sound: new Set(), tried: new Map(), done }
  for (const file of lost.toSorted((a, b) => a.added_version - b.added_version)) {
    const why = await reasonOf(async () => await supply(rebuilding, ledger, file))
    if (why !== null) beyond.set(file.path, why)
  }
  return { done, beyond }
}

/** Why work cannot be done with what is left of the lake; null where it was. */
async function reasonOf(work: () => Promise<unknown>): Promise<string | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (error instanceof Unfoldable) return error.message
    // What to do about the journal is said elsewhere: here it is only the reason.
    if (error instanceof LakeError) return error.complaints.map(reasonIn).join(', ')
    throw error
  }
}

interface Rebuilding {
  readonly root: string
  readonly resources: Resources
  readonly deps: CommitDeps
  readonly spool: Spool
  /** Files that are as the journal says. */
  readonly sound: Set<string>
  /** Why a version could not be folded again; null where it was. */
  readonly tried: Map<number, string | null>
  readonly done: string[]
}

/** Whether a file was made of registry bodies; these themselves are not. */
function isMade({ path, table }: HeldFile): boolean {
  return table !== 'raw' && parseRegistryFile(path) !== undefined
}

/** Makes every file of a version that is not as it should be; gives why not, if not. */
async function versionAgain(rebuilding: Rebuilding, version: number): Promise<string | null> {
  const known = rebuilding.tried.get(version)
  if (known !== undefined) return known
  const why = await reasonOf(async () => await makeAgain(rebuilding, version))
  rebuilding.tried.set(version, why)
  return why
}

async function makeAgain(rebuilding: Rebuilding, version: number): Promise<void> {
  using indexes = new DisposableStack()
  const at = async (until: number): Promise<Ledger> => {
    const index = indexes.use(await Ledger.inMemory(rebuilding.root, until))
    if (index.head().version !== until) throw new Unfoldable(`the journal cannot be read as of version ${until}`)
    return index
  }
  const [before, after] = [await at(version - 1), await at(version)]
  const own = liveFiles(after).filter((file) => dataVersion(file.path) === version && isMade(file))
  for (const file of liveFiles(before).filter((held) => isMade(held))) {
    const held = await supply(rebuilding, before, file)
    if (held[0] !== file) listInstead(before, file, held)
  }
  for (const acceptShrink of [false, true]) {
    const made = await foldAgain({ ...rebuilding, before, after, acceptShrink })
    for (const staged of made)
      for (const file of own) if (file.path === staged.path) await put(rebuilding, file, staged.temporary)
    if (own.every(({ path }) => rebuilding.sound.has(path))) break
  }
}

class Unfoldable extends Error {}

/** The sound files that hold what a file held: itself, made first where it is lost, or those that it was merged from. */
async function supply(rebuilding: Rebuilding, index: Ledger, file: HeldFile): Promise<readonly HeldFile[]> {
  if (await isSound(rebuilding, file)) return [file]
  const inputs = mergedFrom(index, file)
  if (inputs.length > 0) {
    const held: HeldFile[] = []
    for (const input of inputs) held.push(...(await supply(rebuilding, index, input)))
    return held
  }
  const why = await versionAgain(rebuilding, dataVersion(file.path) ?? 0)
  if (!rebuilding.sound.has(file.path))
    throw new Unfoldable(why ?? `${file.path} comes out with other bytes than it had`)
  return [file]
}

async function isSound({ root, sound }: Rebuilding, file: HeldFile): Promise<boolean> {
  if (sound.has(file.path)) return true
  if (await bytesProblem(root, file)) return false
  sound.add(file.path)
  return true
}

/** Puts a file in its place that is byte for byte what the journal names; a damaged one there is set aside. */
async function put(rebuilding: Rebuilding, file: HeldFile, temporary: string | null): Promise<void> {
  const { root, deps, done, sound } = rebuilding
  if (temporary === null || (await isSound(rebuilding, file))) return
  const made = inLake(root, temporary)
  if ((await sha256File(made)) !== file.sha256) return
  const disk = deps.disk ?? realDisk
  const full = inLake(root, file.path)
  if (await exists(full)) {
    const taken = await exists(`${full}.damaged`)
    const aside = taken ? `${file.path}.${deps.nowMicros()}.damaged` : `${file.path}.damaged`
    await disk.move(full, inLake(root, aside))
    done.push(`${file.path} was set aside as ${aside}`)
  }
  await disk.sync(made)
  await makeLakeFolder(disk, root, dirname(file.path))
  await disk.move(made, full)
  await disk.syncFolder(dirname(full))
  sound.add(file.path)
  done.push(`${file.path} was rebuilt from registry/raw, byte for byte`)
}
