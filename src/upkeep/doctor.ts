import { isThere } from '../store/files.ts'
import { resolve } from 'node:path'
import { LakeError } from '../errors.ts'
import { unfitEntry } from '../ledger/aside.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import { type Damage, finding } from './damage.ts'
import {
  checkFiles,
  checkLocks,
  checkMarker,
  checkOrphans,
  checkViews,
  type DamagedFile,
  type FilesHealth,
  checkStamps,
  isGone,
} from './damage-files.ts'
import { isBegun, refuseHalfMirror } from '../store/begin.ts'
import { metaLeft } from '../store/database.ts'
import { isWritable } from '../store/disk.ts'
import { listJournal } from '../ledger/journal.ts'
import { entryFile, inLake, places } from '../store/layout.ts'
import { mirrorOf, refuseMirror } from '../store/marker.ts'
import { Ledger, noLake } from '../ledger/ledger.ts'
import { type ObservedAgain, observedAgain } from '../ledger/lost.ts'
import type { Row } from '../ledger/row.ts'
import { isFromNote } from '../ledger/stamps.ts'
import type { Resources } from '../registry/bodies.ts'
import { adoptLost, type Adopting, endAdoption, isHalfAdopted } from './adopt.ts'
import { type ForgottenLoss, forgetLost } from './forget.ts'
import { lostDamage, lostLake, moveFound } from './found.ts'
import {
  clearJournal,
  keepRuns,
  lostBeyond,
  mendJournal,
  mendMarker,
  rebuildLedger,
  restoreMerged,
  tidy,
} from './repair.ts'
import { checkClock, mendClock } from './clock-ahead.ts'
import { rebuildRegistry } from './rebuild-registry.ts'
import { checkStrays, type JournalHealth, checkJournal, checkRuns } from './damage-journal.ts'

/** What the doctor is asked to look at and to mend. */
export interface DoctorInput {
  readonly data: string
  /** Reads every byte and proves its checksum. */
  readonly thorough: boolean
  readonly rebuildLedger?: boolean
  /** Mends whatever can be mended without losing anything. */
  readonly repair?: boolean
  /** Goes on without damaged files; their windows are asked for again. */
  readonly forgetLost?: boolean
  /** Makes the journal of a lake that lost it anew from its data files. */
  readonly adopt?: Adopting | null
}

/** What the doctor needs of the world. */
export interface DoctorDeps extends CommitDeps {
  /** Makes `lake.duckdb` and `lake.sql` anew; without it they are left as they are. */
  readonly views?: (ledger: Ledger) => Promise<unknown>
  /** The registry's resources, to read its bodies with; without them no file of it is rebuilt. */
  readonly resources?: Resources
  /** Free bytes of the disk that holds a folder; without it room is not looked at. */
  readonly space?: (path: string) => Promise<{ readonly free: number }>
}

/** What was found and done; findings are what is still wrong afterwards. */
export interface Diagnosis {
  readonly lake: string | null
  readonly version: number
  readonly checked: { readonly files: number; readonly bytes: number; readonly thorough: boolean }
  readonly findings: readonly Damage[]
  readonly mended: readonly string[]
  readonly forgotten: ForgottenLoss | null
  /** Months of series that lost points with a file and did not get the very same again. */
  readonly observed_again: readonly ObservedAgain[]
}

/** Finds what is wrong with a lake; mends what it is told to, then looks again. */
export async function examine(input: DoctorInput, deps: DoctorDeps): Promise<Diagnosis> {
  if (input.rebuildLedger || input.repair || input.forgetLost || input.adopt) await refuseMirror(input.data)
  const lost = await lostLake(input.data)
  if (lost) await refuseHalfMirror(input.data)
  if (lost && input.adopt) return await adopted(input, input.adopt, deps)
  if (lost) {
    const mended = input.repair ? await moveFound(input.data, deps) : []
    const checked = { files: lost.files, bytes: lost.bytes, thorough: false }
    const findings = mended.length > 0 ? [] : [lostDamage(lost)]
    return { lake: lost.lakes[0] ?? null, version: 0, checked, findings, mended, forgotten: null, observed_again: [] }
  }
  if (!isBegun(input.data)) throw noLake(input.data)
  const first = await look(input, deps)
  const half = Boolean(input.adopt) && (await isHalfAdopted(input.data))
  if (!(half || input.rebuildLedger || input.repair || input.forgetLost) || first.journal.newer) return first.diagnosis
  const mended: string[] = []
  if (input.repair) mended.push(...(await clearJournal(input.data, deps)), ...(await mendJournal(input.data, deps)))
  if (half || input.rebuildLedger)
    mended.push(...((await ifSound(async () => [await rebuildLedger(input.data, deps)])) ?? []))
  let forgotten: ForgottenLoss | null = null
  let beyond: ReadonlyMap<string, string> = new Map()
  using ledger = await ifSound(async () => await Ledger.open(input.data))
  if (ledger) {
    const gone = ({ damaged }: FilesHealth): DamagedFile[] => damaged.filter(({ damage }) => isGone(damage))
    if (input.repair) {
      mended.push(...(await mendMarker(ledger, first.files.damaged, deps)))
      const rebuilt = await rebuildRegistry(ledger, gone(first.files), deps.resources, deps)
      beyond = rebuilt.beyond
      mended.push(...rebuilt.done, ...(await restoreMerged(ledger, gone(first.files), deps)))
    }
    if (input.forgetLost) forgotten = await forgetLost(ledger, gone(await checkFiles(ledger, input.thorough)), deps)
    if (input.repair)
      mended.push(...(await mendClock(ledger, deps)), ...(await keepRuns(ledger, deps)), ...(await tidy(ledger, deps)))
    const stale =
      (await checkViews(ledger, resolve(input.data), input.thorough)).length > 0 ||
      ledger.head().version > first.diagnosis.version
    if (stale && (half || input.repair || input.forgetLost)) {
      await deps.views?.(ledger)
      mended.push(`${places.database} and ${places.script} were made anew`)
    }
  }
  if (half) await endAdoption(input.data, deps)
  const { diagnosis } = await look(input, deps)
  return { ...diagnosis, findings: diagnosis.findings.map((damage) => withReason(damage, beyond)), mended, forgotten }
}

/** What could not be made from registry/raw says why. */
function withReason(damage: Damage, beyond: ReadonlyMap<string, string>): Damage {
  const why = beyond.get(damage.path)
  return why === undefined
    ? damage
    : { ...damage, remedy: `put it back from a copy of the lake: registry/raw cannot make it (${why})` }
}

async function adopted(input: DoctorInput, adopting: Adopting, deps: DoctorDeps): Promise<Diagnosis> {
  const mended = await adoptLost(input.data, adopting, deps)
  using ledger = await Ledger.open(input.data)
  await deps.views?.(ledger)
  await endAdoption(input.data, deps)
  const { diagnosis } = await look(input, deps)
  return { ...diagnosis, mended }
}

/** What work gives; undefined where the lake does not let it: that stays among the findings. */
async function ifSound<T>(work: () => Promise<T>, any = false): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof LakeError && (any || error.kind === 'integrity')) return undefined
    throw error
  }
}

interface Look {
  readonly diagnosis: Diagnosis
  readonly journal: JournalHealth
  readonly files: FilesHealth
}

async function look(input: DoctorInput, deps: DoctorDeps): Promise<Look> {
  const root = input.data
  const journal = await checkJournal(root)
  const nothing: FilesHealth = { damaged: [], files: 0, bytes: 0 }
  if (journal.newer)
    return { diagnosis: diagnosisOf(undefined, nothing, journal.findings, input), journal, files: nothing }
  const unfit = await unfitEntry(root)
  const index = unfit
    ? { ledger: Ledger.asLeft(root), findings: [finding('entry_unfit', entryFile(unfit.version), unfit.found)] }
    : await openAnyhow(root, journal)
  using ledger = index.ledger
  const before = journal.findings.filter(({ path }) => !unfit || path !== entryFile(unfit.version))
  const found = [...before, ...index.findings, ...(await checkStrays(root))]
  let files = nothing
  if (ledger) {
    files = await checkFiles(ledger, input.thorough)
    const damages = files.damaged.map(({ damage }) => damage)
    // A closed way to many files is one finding.
    found.push(...new Map(damages.map((damage) => [`${damage.kind} ${damage.path}`, damage])).values())
    found.push(...(await checkMarker(ledger)))
    if (isWritable(root)) found.push(...(await checkOrphans(ledger)))
    found.push(...(await checkRuns(ledger)), ...(await checkStamps(ledger, input.thorough)))
    found.push(...checkClock(ledger, deps.nowMicros()))
    found.push(...(await checkViews(ledger, resolve(root), input.thorough)))
  }
  if (isWritable(root)) found.push(...(await checkLocks(root)), ...(await checkSpace(root, files.bytes, deps)))
  return { diagnosis: diagnosisOf(ledger, files, found, input), journal, files }
}

function diagnosisOf(
  ledger: Ledger | undefined,
  files: FilesHealth,
  findings: readonly Damage[],
  input: DoctorInput,
): Diagnosis {
  const head = ledger?.head()
  const weight = (damage: Damage) => (damage.severity === 'damage' ? 0 : 1)
  return {
    lake: head?.lake ?? null,
    version: head?.version ?? 0,
    checked: { files: files.files, bytes: files.bytes, thorough: input.thorough },
    findings: findings.toSorted((a, b) => weight(a) - weight(b)),
    mended: [],
    forgotten: null,
    observed_again: ledger ? observedAgain(ledger) : [],
  }
}

/** The index to look through: the ledger if it is sound, else one made in memory, else the ledger as it was left. */
async function openAnyhow(
  root: string,
  journal: JournalHealth,
): Promise<{ ledger: Ledger | undefined; findings: Damage[] }> {
  const findings: Damage[] = []
  const damage = (kind: Damage['kind'], found: string) => findings.push(finding(kind, places.ledger, found))
  const unlessBroken = async (open: () => Promise<Ledger>): Promise<Ledger | undefined> =>
    journal.broken.length > 0 ? undefined : await ifSound(open, true)
  if (!isWritable(root)) return { ledger: await unlessBroken(async () => await Ledger.openToRead(root)), findings }
  const left = Ledger.asLeft(root)
  const path = inLake(root, places.ledger)
  // Another job makes it at this moment, or was killed at that; a mirror has its journal sooner.
  const begins = !left && metaLeft(path, 'version') === 0 && (journal.newest === 0 || (await mirrorOf(root)) !== null)
  if (begins) return { ledger: await Ledger.openToRead(root), findings }
  if (!left) {
    const there = isThere(path)
    damage(there ? 'ledger_torn' : 'ledger_lost', there ? 'it cannot be read' : 'it is not there')
    return { ledger: await unlessBroken(async () => await Ledger.inMemory(root)), findings }
  }
  const { version } = left.head()
  // Listed anew, and after the ledger was asked: another job may have committed since the journal was read.
  const newest = Math.max(journal.newest, (await listJournal(root)).newest)
  if (version > newest) findings.push(await ahead(left, version, newest))
  if (version > newest || journal.broken.length > 0 || journal.torn.length > 0) return { ledger: left, findings }
  left.close()
  try {
    const ledger = await Ledger.openToRead(root)
    if (await differs(ledger)) damage('ledger_differs', 'it says something else than the journal beside it')
    return { ledger, findings }
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind !== 'integrity') throw error
    damage('ledger_differs', error.message)
    return { ledger: await ifSound(async () => await Ledger.inMemory(root), true), findings }
  }
}

/** Entries are lost, or the folder is a copy into which the ledger came later than the journal: its files tell. */
async function ahead(ledger: Ledger, version: number, newest: number): Promise<Damage> {
  const lost = await lostBeyond(ledger, newest)
  const found = `the ledger has seen version ${version}, the journal ends at ${newest}`
  const [what, remedy] =
    lost.length === 0
      ? [
          found,
          'put the missing entries back from a copy; while the ledger is sound, pitlake doctor --repair does without them',
        ]
      : [
          `${found}, and ${lost.length} of the files that it names beyond that are not here`,
          `this is a copy that is whole up to version ${newest}: pitlake doctor --rebuild-ledger goes back to it`,
        ]
  return finding('entry_lost', places.journal, what, { remedy })
}

/** Whether the ledger is not what the journal makes; one that moves on meanwhile is not judged. */
async function differs(ledger: Ledger): Promise<boolean> {
  using made = await Ledger.inMemory(ledger.root)
  const before = progress(ledger)
  if (before !== progress(made)) return false
  const other = ledger.tables().some((table) => !sameRows(journalRows(ledger, table), journalRows(made, table)))
  return other && progress(ledger) === before
}

/** The rows that the journal tells of; the notes of stamps are looked at one by one. */
function* journalRows(ledger: Ledger, table: string): Iterable<Row> {
  for (const row of ledger.rowsOf(table)) if (table !== 'stamps' || !isFromNote(row)) yield row
}

/** How far an index has come. */
function progress(ledger: Ledger): string {
  return JSON.stringify([ledger.head().version, ...ledger.rowsOf('run_files')])
}

function sameRows(left: Iterable<unknown>, right: Iterable<unknown>): boolean {
  const others = right[Symbol.iterator]()
  for (const row of left) {
    const other = others.next()
    if (other.done === true || JSON.stringify(row) !== JSON.stringify(other.value)) return false
  }
  return others.next().done === true
}

const leastFree = 1_000_000_000

/** A fetch, a merge and the views need room beside what is there. */
async function checkSpace(root: string, bytes: number, deps: DoctorDeps): Promise<Damage[]> {
  const { free = Infinity } = (await deps.space?.(root)) ?? {}
  const wanted = Math.max(leastFree, bytes / 10)
  if (free >= wanted) return []
  const megabytes = (count: number) => `${Math.round(count / 1e6).toLocaleString('en-US')} MB`
  return [finding('disk_full', '.', `${megabytes(free)} are left on the disk, less than ${megabytes(wanted)}`)]
}
