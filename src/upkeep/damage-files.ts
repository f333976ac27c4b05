import { archived } from '../ledger/archive.ts'
import { type BytesProblem, bytesProblem, sha256File } from '../ledger/commit.ts'
import { type Damage, finding, instead } from './damage.ts'
import { isFolder } from '../store/files.ts'
import { codeOf, exists, isWritable, namesIn, statOf } from '../store/disk.ts'
import { readsWell } from '../store/engine.ts'
import { filesOnDisk, type HeldFile, isOnDisk, mergedFrom } from '../ledger/held.ts'
import { dataVersion, decodeSegment, holderFile, inLake, places } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { commitLock, describeHolder, holderOf, isFree, pullLock, whileFree } from '../store/lock.ts'
import { markerOf, mirrorOf, readMarker } from '../store/marker.ts'
import { findOrphans, isLater } from '../ledger/sweep.ts'
import { type Manifest, readManifest, exportsOf } from '../views/manifest.ts'
import { vacuumLock } from './vacuum.ts'
import { viewsLock } from '../views/build.ts'
import { listStamps, lostStamps, readStamp, type StampedFile, stampFile } from '../ledger/stamps.ts'

/** A file of the lake that is not what the journal says, with the finding. */
export interface DamagedFile {
  readonly file: HeldFile
  readonly damage: Damage
}

/** What was read on the way. */
export interface FilesHealth {
  readonly damaged: readonly DamagedFile[]
  readonly files: number
  readonly bytes: number
}

/** Looks at every file that the journal names; `thorough` reads all bytes and proves their checksums. */
export async function checkFiles(ledger: Ledger, thorough: boolean): Promise<FilesHealth> {
  const byPath = new Map<string, HeldFile>()
  for (const file of filesOnDisk(ledger)) {
    const known = byPath.get(file.path)
    if (!known || known.removed_version !== null) byPath.set(file.path, file)
  }
  const damaged: DamagedFile[] = []
  const mirror = (await mirrorOf(ledger.root)) !== null
  let bytes = 0
  for (const file of byPath.values()) {
    const problem = await bytesProblem(ledger.root, file, thorough)
    // What left the view before it was pulled never came.
    if (mirror && file.removed_version !== null && problem?.kind === 'file_lost') continue
    bytes += file.bytes
    // A vacuum that was at work meanwhile has said so before it took the file away.
    if (problem && isOnDisk(ledger, file.path))
      damaged.push({
        file,
        damage: finding(problem.kind, problem.path, problem.found, await weightOf(ledger, file, problem)),
      })
  }
  return { damaged, files: byPath.size, bytes }
}

/** A file that left the view is only needed by stamped results of its time. */
async function weightOf(
  ledger: Ledger,
  file: HeldFile,
  problem: BytesProblem,
): Promise<Partial<Pick<Damage, 'severity' | 'remedy'>>> {
  if (!isGone(problem)) return {}
  if (file.removed_version !== null) return { severity: 'notice', remedy: instead.superseded }
  if (isForgettable(file)) return { remedy: instead.asked }
  return { remedy: (await hasBodies(ledger, file)) ? instead.refolded : instead.beyond(bodiesGone) }
}

const bodiesGone =
  'the bodies that made it are not there any more: without a copy what it held is lost; points and all other files stay'

/** Whether bodies of which a file of the registry was made are here, its own or those of the files that it was merged from. */
async function hasBodies(ledger: Ledger, file: HeldFile): Promise<boolean> {
  for (const input of mergedFrom(ledger, file))
    if ((await bytesProblem(ledger.root, input)) && !(await hasBodies(ledger, input))) return false
  if (mergedFrom(ledger, file).length > 0) return true
  const version = dataVersion(file.path)
  const bodies = filesOnDisk(ledger).filter(({ table, path }) => table === 'raw' && dataVersion(path) === version)
  for (const body of bodies) if (await bytesProblem(ledger.root, body, false)) return false
  return bodies.length > 0
}

/** Whether what was found is the end of the file's bytes, and not only a way to them that is closed. */
export function isGone({ kind }: Pick<Damage, 'kind'>): boolean {
  return kind !== 'file_linked' && kind !== 'file_denied'
}

/** Whether the lake can go on without the file: what it held is asked for again, or nothing builds on it. */
export function isForgettable(file: HeldFile): boolean {
  return ['points', 'redated', 'metric_assets', 'raw', ...archived].includes(file.table)
}

/** Files that no entry names and that no living run owns. */
export async function checkOrphans(ledger: Ledger): Promise<Damage[]> {
  try {
    return await orphansFound(ledger)
  } catch (error) {
    // Where this user may not look nothing is known to be left over; that its files cannot be read is told of them.
    if (codeOf(error) === 'EACCES') return []
    throw error
  }
}

async function orphansFound(ledger: Ledger): Promise<Damage[]> {
  const { root } = ledger
  if ((await findOrphans(ledger, true)).length === 0 || !isFree(root, pullLock)) return []
  const found = (await whileFree(root, commitLock, async () => await orphansNow(ledger))) ?? []
  // A pull, too, brings the files of a version before its entry.
  if (!isFree(root, pullLock)) return []
  const { version } = ledger.head()
  const { later = [], left = [] } = Object.groupBy(found, (path) => (isLater(path, version) ? 'later' : 'left'))
  return [...lostLater(later, version), ...leftOver(left)]
}

function leftOver([first, ...others]: readonly string[]): Damage[] {
  if (first === undefined) return []
  const what = others.length === 0 ? 'file that no version names' : 'files that no version names'
  return [finding('orphans', first, `${others.length + 1} ${what}`)]
}

/** Data of versions whose entries are gone, while those before them are whole. */
function lostLater(paths: readonly string[], version: number): Damage[] {
  if (paths.length === 0) return []
  const newest = Math.max(...paths.map((path) => dataVersion(path) ?? 0))
  const found = `it ends at version ${version}, and data of versions up to ${newest} stand here: what came in between is lost`
  return [finding('entry_lost', places.journal, found, { remedy: instead.laterData })]
}

/** What no entry names at this instant; the commit lock is held, for a commit moves its files in before its entry. */
async function orphansNow(ledger: Ledger): Promise<string[]> {
  // A journal that cannot be followed is a finding of its own, and nobody commits to it.
  await ledger.catchUp().catch(() => undefined)
  const orphans = await findOrphans(ledger, true)
  // A vacuum says what goes before it takes that away.
  const known = ledger.statement('SELECT 1 FROM files WHERE path = ?')
  return isFree(ledger.root, vacuumLock) ? orphans : orphans.filter((path) => !known.get(path))
}

/** A marker that is not this lake's: nothing is committed or swept beside it. */
export async function checkMarker(ledger: Ledger): Promise<Damage[]> {
  const { lake, version } = ledger.head()
  if (version === 0 || (await markerOf(ledger.root, lake)) !== 'other') return []
  const named = await readMarker(ledger.root)
  const found = `it names ${named === null ? 'no lake' : `the lake ${named}`}, the journal ${lake}`
  return [finding('marker_differs', places.marker, found)]
}

/** Names of holders whose lock nobody holds: left behind by a process that was killed. */
export async function staleLocks(root: string): Promise<string[]> {
  const stale: string[] = []
  for (const file of await namesIn(inLake(root, places.locks))) {
    if (!file.endsWith('.json')) continue
    const name = decodeSegment(file.slice(0, -'.json'.length))
    // Whoever lets go of a lock takes its name away first.
    const left = async (): Promise<boolean> => await exists(inLake(root, holderFile(name)))
    if ((await whileFree(root, name, left)) === true) stale.push(name)
  }
  return stale
}

/** The findings of `staleLocks`. */
export async function checkLocks(root: string): Promise<Damage[]> {
  const found: Damage[] = []
  for (const name of await staleLocks(root))
    found.push(finding('stale_lock', holderFile(name), `left by ${describeHolder(await holderOf(root, name))}`))
  return found
}

/** What is wrong with a file of the views, whatever it holds. */
async function viewProblem(root: string, severity: Damage['severity']): Promise<Damage | undefined> {
  for (const path of [places.database, places.script, places.manifest]) {
    const own = { severity, remedy: instead.folder }
    if (await isFolder(inLake(root, path))) return finding('views_torn', path, 'a folder stands in its place', own)
  }
  for (const path of [places.database, places.script])
    if (!(await statOf(inLake(root, path)))) return finding('views_missing', path, 'it is not there', { severity })
  const reads = await readsWell(inLake(root, places.database))
  return reads ? undefined : finding('views_torn', places.database, 'it cannot be read')
}

/**
 * Whether the views are there and name the files where they are now, and what was made for them is as it was;
 * `thorough` reads its bytes. `root` is absolute.
 */
export async function checkViews(ledger: Ledger, root: string, thorough: boolean): Promise<Damage[]> {
  if (ledger.head().version === 0) return []
  // Where nothing can be written, readers make them in memory.
  const severity = isWritable(root) ? 'damage' : 'notice'
  const problem = await viewProblem(root, severity)
  if (problem) return [problem]
  const earlier = await readManifest(root)
  // The three files are put in place one after the other.
  if (!earlier && isWritable(root) && !isFree(root, viewsLock)) return []
  const manifest = earlier ?? (await readManifest(root))
  if (!manifest) {
    const found = 'it is not there, or not that of lake.sql and lake.duckdb: what they name is not known'
    return [finding('views_missing', places.manifest, found, { severity: 'notice' })]
  }
  // Another job may have committed, and made its views, meanwhile.
  const behind = manifest.version > ledger.head().version
  const { version } = behind ? await ledger.catchUp().catch(() => ledger.head()) : manifest
  if (manifest.version > version) {
    const ahead = `it is of version ${manifest.version}, the journal ends at ${version}: what came in between is lost`
    return [finding('views_moved', places.database, ahead, { severity })]
  }
  if (manifest.folder === root) return await checkExports(root, manifest, thorough)
  const found = `it names files in ${manifest.folder}: the lake was moved or copied`
  return [finding('views_moved', places.database, found, { severity })]
}

/** The name of an export begins with the checksum of its bytes. */
async function checkExports(root: string, manifest: Manifest, thorough: boolean): Promise<Damage[]> {
  const found: Damage[] = []
  for (const { path, checksum } of exportsOf(manifest)) {
    const file = inLake(root, path)
    if (!(await statOf(file))) found.push(finding('views_missing', path, 'it is not there'))
    else if (thorough && !(await sha256File(file)).startsWith(checksum))
      found.push(
        finding('file_changed', path, 'its bytes do not match the checksum in its name', { remedy: instead.views }),
      )
  }
  return found
}

/** Notes of stamps that are not there, and those that are damaged or lack what was kept for them. */
interface StampsHealth {
  readonly lost: readonly string[]
  readonly torn: readonly string[]
  readonly findings: readonly Damage[]
}

/**
 * Looks at the notes of stamped results and at what was copied for them; `thorough` reads all bytes. The data files that
 * they name are the journal's, and looked at with it.
 */
export async function stampsHealth(ledger: Ledger, thorough: boolean): Promise<StampsHealth> {
  const { root } = ledger
  const lost = await lostStamps(ledger, root)
  const findings = lost.map((id) => finding('stamp_lost', stampFile(id), 'it is not there, and the ledger knows it'))
  const torn = new Set<string>()
  const copied = new Map<string, StampedFile & { readonly of: string[] }>()
  for (const id of await listStamps(root)) {
    const note = await readStamp(root, id).catch(() => undefined)
    const wrong = note === undefined ? 'it cannot be read' : `it is of lake ${note.lake}`
    if (note?.lake !== ledger.head().lake) findings.push(finding('stamp_torn', stampFile(id), wrong))
    if (note?.lake !== ledger.head().lake) torn.add(id)
    for (const file of note?.files ?? [])
      if (file.path.startsWith(`${places.stamps}/`))
        copied.set(file.path, { ...file, of: [...(copied.get(file.path)?.of ?? []), id] })
  }
  for (const { of, ...file } of copied.values()) {
    const problem = await bytesProblem(root, file, thorough)
    if (!problem) continue
    findings.push(finding(problem.kind, problem.path, problem.found, isGone(problem) ? { remedy: instead.stamp } : {}))
    if (isGone(problem)) for (const id of of) torn.add(id)
  }
  return { lost, torn: [...torn], findings }
}
