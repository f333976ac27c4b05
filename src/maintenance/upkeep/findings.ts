import { archived } from '../../lake/ledger/archived-rows.ts'
import { bytesProblem, sha256File, type BytesProblem } from '../../lake/ledger/commit.ts'
import { isFolder } from '../../lake/store/files.ts'
import { codeOf, exists, isWritable, namesIn, statOf } from '../../lake/store/disk.ts'
import { readsWell } from '../../lake/store/engine.ts'
import { filesOnDisk, type StoredFile, isOnDisk, mergedFrom } from '../../lake/ledger/index-queries.ts'
import { dataVersion, decodeSegment, holderFile, inLake, ownFolders, places } from '../../lake/store/layout.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { commitLock, describeHolder, holderOf, isFree, pullLock, whileFree } from '../../lake/store/lock.ts'
import { markerOf, mirrorOf, readMarker } from '../../lake/store/marker.ts'
import { findOrphans, isLater } from '../../lake/ledger/spool-sweep.ts'
import { exportsOf, type Manifest, readManifest } from '../../query/views/manifest.ts'
import { vacuumLock } from './vacuum.ts'
import { viewsLock } from '../../query/views/build.ts'
import { lagsOfCopies, lagWords } from '../../lake/ledger/derived.ts'
import { lagsOfPages } from '../../lake/ledger/pages.ts'
import { lagOfViews } from '../../query/views/current.ts'
import { featurePrefix, ownPrefix } from '../../sources/points/own-rows.ts'
import { headProblems } from '../../trust/heads/stored.ts'
import { listStamps, lostStamps, readStampIfSound, type StampedFile, stampFile } from '../../lake/ledger/stamps.ts'
import { remakeHint } from '../../lake/ledger/entry.ts'
import { LakeError } from '../../base/errors.ts'

/** Weight of a finding. */
type Severity = 'damage' | 'notice'
type Row = readonly [severity: Severity, remedy: string]
const damage = (remedy: string): Row => ['damage', remedy]
/** Builds the row of a notice: costs nothing, or not yet. */
const notice = (remedy: string): Row => ['notice', remedy]

const copy = 'put it back from a copy of the lake'
const rebuild = 'run pitlake doctor --rebuild-ledger'
const orCopy = `${rebuild}; if it stays, put the file back from a copy of the lake`
const entry = `${copy}, or run pitlake doctor: it says what can be done without it`
const stamp =
  'put it back from a copy; without one pitlake doctor --forget-lost goes on: no point is lost, and its result ' +
  'cannot be replayed'
const head =
  'put it back from a copy of the lake, or from where you keep heads outside of it; without one run pitlake ' +
  'doctor --forget-lost, then pitlake head, which signs a new one: the log itself is whole'
const views = 'run pitlake views'

/**
 * Kinds of damage of a lake, each with its severity and remedy, unless the finding has its own (`instead`); in the
 * order in which to act: what a journal or an index does not know cannot be repaired by it, and views are made from all
 * the others.
 */
const kinds = {
  place_taken: damage('run pitlake doctor --repair: it moves the file aside, and nothing of it is removed'),
  newer_version: damage('this lake was written by a newer pitlake: update the program'),
  unreleased_version: damage(remakeHint),
  journal_lost: damage(
    'put journal/ back from a copy of the lake; without one pitlake doctor --adopt makes a journal anew for ' +
      'the files that hold together and moves the others, and pitlake doctor --repair moves all of it to a folder ' +
      'found-<instant>, so that a new lake can be begun; neither removes anything',
  ),
  entry_unfit: damage(
    'run pitlake doctor --repair: it moves this one entry to journal/aside/, and what it brought is asked for again',
  ),
  entry_lost: damage(entry),
  entry_torn: damage(entry),
  checkpoint_torn: damage('run pitlake doctor --repair'),
  ledger_lost: damage(rebuild),
  ledger_torn: damage(rebuild),
  ledger_differs: damage(rebuild),
  marker_differs: damage(
    'put the one that came from elsewhere, lake.json or journal/, back from a copy; where all data here are of ' +
      'the lake that the journal names, pitlake doctor --repair writes lake.json anew',
  ),
  file_linked: damage(
    'put the folder or file itself in place of the link, or mount it there: what a link leads to is not read',
  ),
  file_denied: damage('give this user the right to read it: nothing is lost'),
  file_lost: damage(copy),
  file_torn: damage(copy),
  file_changed: damage(copy),
  footer_differs: damage(orCopy),
  rows_differ: damage(orCopy),
  series_differs: damage(orCopy),
  calendar_differs: damage('run pitlake fetch --gaps, then pitlake verify again'),
  runs_lost: damage(
    'put them back from a copy; while the ledger is sound, pitlake doctor --repair keeps what it knows. No ' +
      'point is lost',
  ),
  clock_ahead: damage('see that the clock of this machine is right, then run pitlake doctor --repair'),
  stamp_lost: damage(stamp),
  stamp_torn: damage(stamp),
  head_lost: damage(head),
  head_changed: damage(head),
  views_missing: damage(views),
  views_torn: damage(views),
  views_moved: damage(views),
  views_behind: notice(views),
  copy_behind: notice('run pitlake publish, backup or pull again'),
  entry_stray: notice('nothing reads it; pitlake doctor --repair moves it to journal/aside/'),
  orphans: notice('nothing reads them; the next fetch or pitlake doctor --repair sweeps them away'),
  stale_lock: notice('it holds nothing back; pitlake doctor --repair removes the note'),
  disk_full: notice('make room: pitlake vacuum removes what no kept version needs'),
} as const satisfies Record<string, Row>

/** Kind of a finding; derived, so that `kinds` is the one list of them. */
export type DamageKind = keyof typeof kinds

/** Remedies that replace the one of a finding's kind. */
export const instead = {
  rebuild,
  views,
  stamp,
  copyAt: (newest: number) =>
    `this is a copy that is whole up to version ${newest}: pitlake doctor --rebuild-ledger goes back to it`,
  fold: `${copy}; without one run pitlake doctor --repair: the ledger knows what the journal lost`,
  backTo: (version: number) =>
    `${copy}; without one run pitlake doctor --repair: version ${version} stands again, and fetch asks for ` +
    'what was lost after it',
  adopt:
    `${copy}; without one run pitlake doctor --adopt: a journal is made anew for the data files, which stay; ` +
    'coverage, requests and versions are lost, and violations of entries that cannot be read',
  laterData:
    'put the entries back from a copy of the lake; without one pitlake doctor --repair moves these files to ' +
    'swept/, and fetch asks again',
  superseded:
    'it has left the view and only results stamped before may need it: put it back from a copy if you have one',
  asked: (again: string) => `${copy}, or run pitlake doctor --repair --forget-lost and ${again}`,
  refolded:
    'run pitlake doctor --repair: it is rebuilt from registry/raw while the bodies are there; else put it back ' +
    'from a copy',
  beyond: (why: string) => `${copy}: registry/raw cannot make it (${why})`,
  folder: 'run pitlake doctor --repair: it moves the folder aside and makes the views anew',
}

/** Damage: what is wrong, where, and what to do about it. */
export interface Damage {
  /** Kind of the finding, such as `file_lost`. */
  readonly kind: DamageKind
  /** `damage`: lost or unreadable. `notice`: nothing is lost. */
  readonly severity: Severity
  /** File or folder, relative to the lake. */
  readonly path: string
  /** What was found. */
  readonly found: string
  /** What to do. */
  readonly remedy: string
}

/** Builds a finding, with the severity and remedy of its kind unless it has others. */
export function finding(
  kind: DamageKind,
  path: string,
  found: string,
  standing: Partial<Pick<Damage, 'severity' | 'remedy'>> = {},
): Damage {
  const [severity, remedy] = kinds[kind]
  return { kind, severity, path, found, remedy, ...standing }
}

/** Sorts the findings in the order in which they are to be repaired, damage before notices. */
export function inOrder(findings: readonly Damage[]): Damage[] {
  const order = Object.keys(kinds)
  const weight = ({ severity, kind }: Damage): number =>
    (severity === 'damage' ? 0 : order.length) + order.indexOf(kind)
  return findings.toSorted((a, b) => weight(a) - weight(b))
}

/** Builds the error for damage: the first finding with its remedy, and the number of others; null if there is none. */
export function damageVerdict(damages: readonly Damage[]): LakeError | null {
  const [first] = damages
  if (!first) return null
  const more = damages.length === 1 ? '' : ` (and ${damages.length - 1} more)`
  // Nothing is wrong with a lake of a different layout.
  const kind = first.kind === 'newer_version' || first.kind === 'unreleased_version' ? 'usage' : 'integrity'
  return new LakeError(kind, { subject: `${first.path}: ${first.found}${more}`, next: first.remedy })
}

/** File of the lake that differs from the journal, with the finding. */
export interface DamagedFile {
  readonly file: StoredFile
  readonly damage: Damage
}

/** Result of looking at the files that the journal names. */
export interface FilesHealth {
  readonly damaged: readonly DamagedFile[]
  /** Number of files. */
  readonly files: number
  /** Bytes of all files, as the journal lists them. */
  readonly bytes: number
}

/** Looks at every file that the journal names; `thorough` reads all bytes and proves their checksums. */
export async function checkFiles(ledger: Ledger, thorough: boolean): Promise<FilesHealth> {
  const byPath = new Map<string, StoredFile>()
  for (const file of filesOnDisk(ledger)) {
    const listedFile = byPath.get(file.path)
    if (!listedFile || listedFile.removed_version !== null) byPath.set(file.path, file)
  }
  const damaged: DamagedFile[] = []
  const mirror = (await mirrorOf(ledger.root)) !== null
  let bytes = 0
  for (const file of byPath.values()) {
    const problem = await bytesProblem(ledger.root, file, thorough)
    // Files that left the view before it was pulled never arrived.
    if (mirror && file.removed_version !== null && problem?.kind === 'file_lost') continue
    bytes += file.bytes
    // A vacuum that was at work meanwhile has recorded the removal before it removed the file.
    if (problem && isOnDisk(ledger, file.path))
      damaged.push({
        file,
        damage: finding(problem.kind, problem.path, problem.found, await weightOf(ledger, file, problem)),
      })
  }
  return { damaged, files: byPath.size, bytes }
}

/** Judges the severity of a damaged file: one that left the view is only needed by stamped results of its time. */
async function weightOf(
  ledger: Ledger,
  file: StoredFile,
  problem: BytesProblem,
): Promise<Partial<Pick<Damage, 'severity' | 'remedy'>>> {
  if (!isGone(problem)) return {}
  if (file.removed_version !== null) return { severity: 'notice', remedy: instead.superseded }
  if (isForgettable(file)) return { remedy: instead.asked(bringAgain(metricsIn(ledger, file))) }
  return { remedy: (await hasBodies(ledger, file)) ? instead.refolded : instead.beyond(bodiesGone) }
}

/** Lists the metrics of which a data file may contain points: one, or for a file of several all that the lake has. */
function metricsIn(ledger: Ledger, { table, metric }: StoredFile): string[] {
  if (table !== 'points') return []
  if (metric !== null) return [metric]
  const rows = ledger.statement('SELECT DISTINCT metric FROM series WHERE points > 0 ORDER BY metric').all()
  return rows.map((row) => String(row['metric']))
}

/** Names the command that restores points of these metrics: no provider has user data, and features are computed. */
export function bringAgain(metrics: readonly string[]): string {
  const user = metrics.filter((metric) => metric.startsWith(ownPrefix))
  const isFeature = metrics.some((metric) => metric.startsWith(featurePrefix))
  const isFetched = metrics.some((metric) => !metric.startsWith(ownPrefix) && !metric.startsWith(featurePrefix))
  const imports = user.map((metric) => `pitlake import FILE --as ${metric.slice(ownPrefix.length)}`)
  const parts = [
    ...(isFetched || metrics.length === 0 ? ['pitlake fetch'] : []),
    ...(user.length > 0 ? [`${imports.join(', ')} (only your files have them)`] : []),
    ...(isFeature ? ['pitlake features'] : []),
  ]
  return `then ${parts.join(', then ')}`
}

const bodiesGone =
  'the bodies that made it are not there any more: without a copy what it held is lost; points and all other files stay'

/**
 * Whether the bodies from which a file of the registry was made are here, its own or those of the files that it was
 * merged from.
 */
async function hasBodies(ledger: Ledger, file: StoredFile): Promise<boolean> {
  for (const input of mergedFrom(ledger, file))
    if ((await bytesProblem(ledger.root, input)) && !(await hasBodies(ledger, input))) return false
  if (mergedFrom(ledger, file).length > 0) return true
  const version = dataVersion(file.path)
  const bodies = filesOnDisk(ledger).filter(({ table, path }) => table === 'raw' && dataVersion(path) === version)
  for (const body of bodies) if (await bytesProblem(ledger.root, body, false)) return false
  return bodies.length > 0
}

/** Whether a finding means that the file's bytes are lost, and not only a path to them that is closed. */
export const isGone = ({ kind }: Pick<Damage, 'kind'>): boolean => kind !== 'file_linked' && kind !== 'file_denied'

/** Whether the lake works without the file: its content is requested again, or nothing builds on it. */
export function isForgettable(file: StoredFile): boolean {
  return ['points', 'redated', 'metric_assets', 'raw', ...archived].includes(file.table)
}

/** Finds files that no entry names and that no living run owns. */
export async function checkOrphans(ledger: Ledger): Promise<Damage[]> {
  try {
    return await orphansFound(ledger)
  } catch (error) {
    // In folders that this user may not read no leftovers are known; unreadable files are findings of their own.
    if (codeOf(error) === 'EACCES') return []
    throw error
  }
}

async function orphansFound(ledger: Ledger): Promise<Damage[]> {
  const { root } = ledger
  if ((await findOrphans(ledger, true)).length === 0 || !isFree(root, pullLock)) return []
  const found = (await whileFree(root, commitLock, async () => await orphansNow(ledger))) ?? []
  // A pull, too, adds the files of a version before its entry.
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

/** Finds data of versions whose entries are gone, while those before them are whole. */
function lostLater(paths: readonly string[], version: number): Damage[] {
  if (paths.length === 0) return []
  const newest = Math.max(...paths.map((path) => dataVersion(path) ?? 0))
  const dataEnd = `data of versions up to ${newest} stand here`
  const found = `it ends at version ${version}, and ${dataEnd}: what came in between is lost`
  return [finding('entry_lost', places.journal, found, { remedy: instead.laterData })]
}

/** Lists files that no entry names now, under the commit lock, because a commit moves its files in before its entry. */
async function orphansNow(ledger: Ledger): Promise<string[]> {
  // A journal that cannot be followed is a finding of its own, and no process commits to it.
  await ledger.catchUp().catch(() => undefined)
  const orphans = await findOrphans(ledger, true)
  // A vacuum records what it removes before it does so.
  const listedFile = ledger.statement('SELECT 1 FROM files WHERE path = ?')
  return isFree(ledger.root, vacuumLock) ? orphans : orphans.filter((path) => !listedFile.get(path))
}

/** Lists places of the layout that contain a file instead of a folder. */
export async function takenPlaces(root: string): Promise<string[]> {
  const takenPlaces: string[] = []
  for (const place of ownFolders) if ((await statOf(inLake(root, place)))?.isFile() === true) takenPlaces.push(place)
  return takenPlaces
}

/** Lists the findings of `takenPlaces`. */
export async function checkPlaces(root: string): Promise<Damage[]> {
  return (await takenPlaces(root)).map((place) => finding('place_taken', place, 'a file stands where a folder belongs'))
}

/** Finds files below `heads/` that differ from what was stored. */
export async function checkHeads(ledger: Ledger): Promise<Damage[]> {
  return (await headProblems(ledger)).map(({ kind, path, found }) => finding(kind, path, found))
}

/** Finds a marker that is not this lake's: nothing is committed or swept while it is there. */
export async function checkMarker(ledger: Ledger): Promise<Damage[]> {
  const { lake, version } = ledger.head()
  if (version === 0 || (await markerOf(ledger.root, lake)) !== 'other') return []
  const named = await readMarker(ledger.root)
  const found = `it names ${named === null ? 'no lake' : `the lake ${named}`}, the journal ${lake}`
  return [finding('marker_differs', places.marker, found)]
}

/** Lists the names of locks that are free but still have a holder's file, left behind by a killed process. */
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

/** Lists the findings of `staleLocks`. */
export async function checkLocks(root: string): Promise<Damage[]> {
  const found: Damage[] = []
  for (const name of await staleLocks(root))
    found.push(finding('stale_lock', holderFile(name), `left by ${describeHolder(await holderOf(root, name))}`))
  return found
}

/** Finds a problem with a file of the views, whatever its content. */
async function viewProblem(root: string, severity: Severity): Promise<Damage | undefined> {
  for (const path of [places.database, places.script, places.manifest]) {
    const standing = { severity, remedy: instead.folder }
    if (await isFolder(inLake(root, path))) return finding('views_torn', path, 'a folder stands in its place', standing)
  }
  for (const path of [places.database, places.script])
    if (!(await statOf(inLake(root, path)))) return finding('views_missing', path, 'it is not there', { severity })
  const reads = await readsWell(inLake(root, places.database))
  return reads ? undefined : finding('views_torn', places.database, 'it cannot be read')
}

/**
 * Checks that the views exist and name the files in their current place, and that what was made for them is unchanged;
 * `thorough` reads its bytes. `root` is absolute.
 */
export async function checkViews(ledger: Ledger, root: string, thorough: boolean): Promise<Damage[]> {
  if (ledger.head().version === 0) return []
  // If the lake cannot be written, readers make them in memory.
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
  const behindNow = await checkLag(root)
  if (manifest.folder === root) return [...behindNow, ...(await checkExports(root, manifest, thorough))]
  const found = `it names files in ${manifest.folder}: the lake was moved or copied`
  return [finding('views_moved', places.database, found, { severity })]
}

/** Finds views that are older than the journal, unless they are being rebuilt just now. */
async function checkLag(root: string): Promise<Damage[]> {
  const lag = await lagOfViews(root)
  if (lag === null || (isWritable(root) && !isFree(root, viewsLock))) return []
  const found = `it is of version ${lag.thing.version ?? 'no known number'}, the lake is at ${lag.lake.newest}`
  return [finding('views_behind', places.database, found)]
}

/** Finds published tables, backups and pages that are behind the lake, or a mirror behind its source. */
export async function checkCopies(ledger: Ledger): Promise<Damage[]> {
  return [...(await lagsOfCopies(ledger)), ...(await lagsOfPages(ledger))].map((lag) =>
    finding('copy_behind', places.journal, lagWords(lag), { remedy: `run ${lag.thing.remedy}` }),
  )
}

/** Checks exports, whose names begin with the checksum of their bytes. */
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

/**
 * Checks the notes of stamped results and the copies that were made for them; `thorough` reads all bytes. The data
 * files that they name are the journal's, and checked with it.
 */
export async function stampsHealth(ledger: Ledger, thorough: boolean) {
  const { root } = ledger
  const lostIds = await lostStamps(ledger, root)
  const findings = lostIds.map((id) => finding('stamp_lost', stampFile(id), 'it is not there, and the ledger knows it'))
  const torn = new Set<string>()
  const copied = new Map<string, StampedFile & { readonly of: string[] }>()
  for (const id of await listStamps(root)) {
    const note = await readStampIfSound(root, id)
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
  return { lost: lostIds, torn: [...torn], findings }
}
