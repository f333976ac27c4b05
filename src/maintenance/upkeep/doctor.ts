import { resolve } from 'node:path'
import { LakeError } from '../../base/errors.ts'
import type { CommitDeps } from '../../lake/ledger/commit.ts'
import {
  checkFiles,
  checkHeads,
  checkLocks,
  checkCopies,
  checkMarker,
  checkOrphans,
  checkPlaces,
  checkViews,
  type Damage,
  type DamagedFile,
  type FilesHealth,
  finding,
  inOrder,
  instead,
  isGone,
  stampsHealth,
} from './findings.ts'
import { isBegun, refuseHalfMirror } from '../../lake/store/new-lake.ts'
import { isWritable } from '../../lake/store/disk.ts'
import { places } from '../../lake/store/layout.ts'
import type { Micros } from '../../base/time.ts'
import { refuseMirror } from '../../lake/store/marker.ts'
import type { IndexCell } from '../../lake/ledger/index-rows.ts'
import { Ledger, noLake } from '../../lake/ledger/ledger.ts'
import { RebuiltIndex } from '../../lake/ledger/rebuilt-index.ts'
import { observedAgain, type ObservedAgain } from '../../lake/ledger/lost-points.ts'
import type { Resources } from '../../sources/registry/bodies.ts'
import { type Adoption, adoptLost, endAdoption, isHalfAdopted } from './adopt.ts'
import { type ForgottenFiles, forgetLost } from './forget.ts'
import { judgeLake, judgeLakeWith, type LakeJudgement, moveFound, type Way } from './judgement.ts'
import { countStrayDataFiles, type StrayDataFiles } from '../../lake/store/parquet.ts'
import {
  clearJournal,
  clearPlaces,
  clearViews,
  foldIndex,
  forgetHeads,
  forgetStamps,
  goBack,
  keepRuns,
  mendMarker,
  rebuildIndex,
  rebuildRegistry,
  restoreMerged,
  tidy,
} from './repair.ts'
import { checkClock, mendClock } from './clock-ahead.ts'
import { checkRuns, strayFolders } from './damage-journal.ts'
import { readManifest } from '../../query/views/manifest.ts'
import { formatCount } from '../../base/figures.ts'

/** Options of the doctor. */
interface DoctorInput {
  readonly data: string
  /** Reads every byte and proves its checksum. */
  readonly thorough: boolean
  readonly rebuildLedger?: boolean
  /** Mends whatever can be mended without losing anything. */
  readonly repair?: boolean
  /** Removes damaged files from the lake; their windows are requested again. */
  readonly forgetLost?: boolean
  /**
   * Dependencies for rebuilding the journal of a lake that lost it, from its data files; null or absent: it is not
   * rebuilt.
   */
  readonly adopt?: Adoption | null
}

/** Rebuilds the views (`lake.duckdb` and `lake.sql`) of a lake. */
export type BuildViews = (ledger: Ledger) => Promise<unknown>

/** Resources of the doctor. */
interface DoctorDeps extends CommitDeps {
  /** Rebuilds the views; without it they are left as they are. */
  readonly views?: BuildViews
  /** The registry's resources, to read its bodies with; without them no file of it is rebuilt. */
  readonly resources?: Resources
  /** Reads the free bytes of a folder's disk; without it the space is not checked. */
  readonly space?: (path: string) => Promise<{ readonly free: number }>
}

/** Result of an examination. */
export interface Diagnosis {
  /** Id of the lake; null if it is not known. */
  readonly lake: string | null
  /** Newest version of the lake. */
  readonly version: number
  /** What was read: `files`, `bytes`, and `thorough` (whether checksums were compared). */
  readonly checked: { readonly files: number; readonly bytes: number; readonly thorough: boolean }
  /** What is wrong after the repairs. */
  readonly findings: readonly Damage[]
  /** Repairs in words. */
  readonly mended: readonly string[]
  /** Files that the lake goes on without; null if that was not requested. */
  readonly forgotten: ForgottenFiles | null
  /** Months of series that lost points with a file and did not get the same points back. */
  readonly observed_again: readonly ObservedAgain[]
}

/** Finds what is wrong with a lake; repairs what the input requests, then looks again. */
export async function examine(input: DoctorInput, deps: DoctorDeps): Promise<Diagnosis> {
  const { data: root, rebuildLedger, repair, forgetLost, adopt } = input
  if (rebuildLedger || repair || forgetLost || adopt) await refuseMirror(root)
  const cleared = repair && isBegun(root) ? await clearPlaces(root) : []
  const occupied = isBegun(root) ? await checkPlaces(root) : []
  // If a file is in the place of a folder nothing else can be judged, and its remedy comes first.
  if (occupied.length > 0) return { ...nothingSeen, findings: occupied }
  const found = await examineFolders(input, deps)
  return { ...found, mended: [...cleared, ...found.mended] }
}

const nothingSeen: Diagnosis = {
  lake: null,
  version: 0,
  checked: { files: 0, bytes: 0, thorough: false },
  findings: [],
  mended: [],
  forgotten: null,
  observed_again: [],
}

async function examineFolders(input: DoctorInput, deps: DoctorDeps): Promise<Diagnosis> {
  const { data: root, rebuildLedger, repair, forgetLost, adopt } = input
  using rebuilt = new RebuiltIndex(root)
  const judged = await judgeLakeWith(root, rebuilt)
  if (judged.way === 'adopt') await refuseHalfMirror(root)
  if (judged.way === 'adopt' && adopt) return await adopted(input, adopt, deps)
  if (judged.way === 'adopt' && judged.journal.newest === 0) return await withoutJournal(input, deps)
  if (!isBegun(root)) throw noLake(root)
  const first = await look(input, deps, judged, rebuilt)
  // What follows may mend the journal.
  rebuilt.close()
  const half = Boolean(adopt) && (await isHalfAdopted(root))
  if (!(half || rebuildLedger || repair || forgetLost) || judged.way === 'newer') return first
  const mended = await mendIndex(input, half, judged, deps)
  using ledger = await ifSound(async () => await Ledger.open(root))
  const rest = ledger ? await mendFiles(ledger, input, deps) : undefined
  if (ledger) mended.push(...(rest?.done ?? []), ...(await mendViews(ledger, input, deps)))
  if (half) await endAdoption(root, deps)
  const diagnosis = await lookAgain(input, deps)
  const findings = diagnosis.findings.map((damage) => withReason(damage, rest?.beyond))
  return { ...diagnosis, findings, mended, forgotten: rest?.forgotten ?? null }
}

/** Examines data without journal and ledger: nothing else can be judged. */
async function withoutJournal(input: DoctorInput, deps: DoctorDeps): Promise<Diagnosis> {
  const left = await countStrayDataFiles(input.data)
  const mended = input.repair ? await moveFound(input.data, deps) : []
  const checked = { files: left.files, bytes: left.bytes, thorough: false }
  const findings = mended.length > 0 ? [] : [lostDamage(left)]
  return { lake: left.lakes[0] ?? null, version: 0, checked, findings, mended, forgotten: null, observed_again: [] }
}

/** Builds the finding of a lost lake. */
function lostDamage({ files, bytes, lakes, version }: StrayDataFiles): Damage {
  const whose = lakes.length === 0 ? 'of an unknown lake' : `of the lake ${lakes.join(' and ')}`
  const what = `${files} data files (${formatCount(bytes)} bytes) ${whose}, up to version ${version}`
  return finding('journal_lost', places.journal, `${what}, without journal and ledger`)
}

/** Goes the way that is judged right as far as the flags say so, and judges again after each step. */
async function mendIndex(
  { data: root, repair, rebuildLedger }: DoctorInput,
  half: boolean,
  first: LakeJudgement,
  deps: DoctorDeps,
): Promise<string[]> {
  const done = repair ? await clearJournal(root, deps) : []
  const rebuilt = async (): Promise<string[]> => (await ifSound(async () => await rebuildIndex(root, deps))) ?? []
  const steps: Partial<Record<Way, () => Promise<string[]>>> = {
    rebuild: rebuilt,
    fold: async () => await foldIndex(root, deps),
    back: async () => await goBack(root, deps),
  }
  let judged = done.length > 0 ? await judgeLake(root) : first
  for (let step = 0; repair === true && step < Object.keys(steps).length; step++) {
    const now = (await steps[judged.way]?.()) ?? []
    if (now.length === 0) break
    done.push(...now)
    judged = await judgeLake(root)
  }
  return rebuildLedger || half ? [...done, ...(await rebuilt())] : done
}

async function mendFiles(ledger: Ledger, input: DoctorInput, deps: DoctorDeps) {
  const findMissing = async (): Promise<DamagedFile[]> =>
    (await checkFiles(ledger, input.thorough)).damaged.filter(({ damage }) => isGone(damage))
  const done: string[] = []
  /** Reasons why files of the registry could not be rebuilt, by path. */
  let beyond: ReadonlyMap<string, string> = new Map()
  if (input.repair) {
    const lostFiles = await findMissing()
    done.push(...(await mendMarker(ledger, deps)))
    const rebuilt = await rebuildRegistry(ledger, lostFiles, deps.resources, deps)
    beyond = rebuilt.beyond
    done.push(...rebuilt.done, ...(await restoreMerged(ledger, lostFiles, deps)))
  }
  const forgotten = input.forgetLost ? await forgetLost(ledger, await findMissing(), deps) : null
  if (input.forgetLost)
    done.push(...(await forgetStamps(ledger, input.thorough, deps)), ...(await forgetHeads(ledger, deps)))
  if (input.repair)
    done.push(...(await mendClock(ledger, deps)), ...(await keepRuns(ledger, deps)), ...(await tidy(ledger, deps)))
  return { done, forgotten, beyond }
}

/** Rebuilds the views if they are not those of this version: after any repair they match the ledger. */
async function mendViews(ledger: Ledger, { data: root, thorough }: DoctorInput, deps: DoctorDeps): Promise<string[]> {
  if (!deps.views) return []
  const done = await clearViews(root)
  const { version } = ledger.head()
  const of = (await readManifest(root))?.version ?? 0
  if (of === version && (await checkViews(ledger, resolve(root), thorough)).length === 0) return done
  try {
    await deps.views(ledger)
  } catch (error) {
    // Repairs stay reported; a missing file is a finding, any other reason is shown by `pitlake views`.
    if (error instanceof LakeError && error.kind !== 'integrity') throw error
    return done
  }
  const lostText =
    of > version ? `: they were of version ${of}, which the journal lost; fetch requests what is missing` : ''
  return [...done, `${places.database} and ${places.script} were rebuilt${lostText}`]
}

/** Adds the reason to damage that could not be repaired from registry/raw. */
function withReason(damage: Damage, beyond: ReadonlyMap<string, string> = new Map()): Damage {
  const why = beyond.get(damage.path)
  return why === undefined ? damage : { ...damage, remedy: instead.beyond(why) }
}

async function adopted(input: DoctorInput, adopting: Adoption, deps: DoctorDeps) {
  const mended = await adoptLost(input.data, adopting, deps)
  using ledger = await Ledger.open(input.data)
  await deps.views?.(ledger)
  await endAdoption(input.data, deps)
  return { ...(await lookAgain(input, deps)), mended }
}

/** Awaits work; undefined if the state of the lake prevents it: that stays among the findings. */
async function ifSound<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof LakeError && error.kind === 'integrity') return undefined
    throw error
  }
}

/** An open lake as it is looked at. */
interface OpenLake {
  readonly ledger: Ledger
  /** Absolute. */
  readonly root: string
  readonly thorough: boolean
  readonly now: Micros
  readonly damaged: readonly DamagedFile[]
}

/** Checks of a lake whose index can be read; those with `writable` only if what they find can be repaired. */
const looks: readonly {
  readonly writable?: true
  readonly look: (seen: OpenLake) => readonly Damage[] | Promise<readonly Damage[]>
}[] = [
  { look: ({ damaged }) => onePerWay(damaged.map(({ damage }) => damage)) },
  { look: ({ ledger }) => checkMarker(ledger) },
  { writable: true, look: ({ ledger }) => checkOrphans(ledger) },
  { look: ({ ledger }) => checkRuns(ledger) },
  { look: async ({ ledger, thorough }) => (await stampsHealth(ledger, thorough)).findings },
  { look: ({ ledger }) => checkHeads(ledger) },
  { look: ({ ledger, now }) => checkClock(ledger, now) },
  { look: ({ ledger, root, thorough }) => checkViews(ledger, root, thorough) },
  { look: ({ ledger }) => checkCopies(ledger) },
]

/** Keeps one finding for each kind and path: a folder that cannot be opened hides many files. */
function onePerWay(damages: readonly Damage[]): Damage[] {
  return [...new Map(damages.map((damage) => [`${damage.kind} ${damage.path}`, damage])).values()]
}

/** Judges a lake and looks through it. */
async function lookAgain(input: DoctorInput, deps: DoctorDeps): Promise<Diagnosis> {
  using rebuilt = new RebuiltIndex(input.data)
  return await look(input, deps, await judgeLakeWith(input.data, rebuilt), rebuilt)
}

/** Looks through a lake; `rebuilt` is what the judgement has applied of its journal. */
async function look(
  input: DoctorInput,
  deps: DoctorDeps,
  judged: LakeJudgement,
  rebuilt: RebuiltIndex,
): Promise<Diagnosis> {
  const { data: root, thorough } = input
  const findings = [...judged.findings]
  let files: FilesHealth = { damaged: [], files: 0, bytes: 0 }
  const writable = isWritable(root)
  using ledger = await openAnyhow(root, judged)
  if (judged.way !== 'newer') {
    if (judged.way === 'whole' && ledger && writable && (await differs(ledger, rebuilt)))
      findings.push(finding('ledger_differs', places.ledger, 'it differs from the journal of this lake'))
    findings.push(...(await checkStrays(root)))
    if (ledger) {
      files = await checkFiles(ledger, thorough)
      const seen = { ledger, root: resolve(root), thorough, now: deps.nowMicros(), damaged: files.damaged }
      for (const look of looks) if (writable || !look.writable) findings.push(...(await look.look(seen)))
    }
    if (writable) findings.push(...(await checkLocks(root)), ...(await checkSpace(root, files.bytes, deps)))
  }
  const head = ledger?.head()
  return {
    lake: head?.lake ?? null,
    version: head?.version ?? 0,
    checked: { files: files.files, bytes: files.bytes, thorough },
    findings: inOrder(findings),
    mended: [],
    forgotten: null,
    observed_again: ledger ? observedAgain(ledger) : [],
  }
}

/** Lists the findings of `strayFolders`. */
async function checkStrays(root: string): Promise<Damage[]> {
  const found = 'a folder stands where an entry will'
  return (await strayFolders(root)).map((name) => finding('entry_stray', `${places.journal}/${name}`, found))
}

/**
 * Opens the index to look through, by the way that is judged right: the sound one, one made in memory, or the one that
 * was left.
 */
async function openAnyhow(root: string, { way, journal }: LakeJudgement): Promise<Ledger | undefined> {
  if (way === 'newer' || way === 'adopt') return undefined
  if (way === 'unfit' || way === 'fold' || way === 'copy') return Ledger.asLeft(root)
  if (way === 'whole') return await Ledger.openToRead(root)
  return await ifSound(async () => await Ledger.inMemory(root, journal.reach))
}

/** Whether the ledger is not what the journal makes; one that moves on meanwhile is not judged. */
async function differs(ledger: Ledger, rebuilt: RebuiltIndex): Promise<boolean> {
  const whole = await rebuilt.upTo()
  const before = progress(ledger)
  if (before !== progress(whole)) return false
  // The notes record the stamps: they are looked at one by one.
  const tables = ledger.tables().filter((table) => table !== 'stamps')
  const other = tables.some((table) => !sameRows(ledger.cellsIn(table), whole.cellsIn(table)))
  return other && progress(ledger) === before
}

/** Identifies how far an index has read. */
const progress = (ledger: Ledger): string => JSON.stringify([ledger.head().version, ...ledger.rowsOf('run_files')])

/** Whether two tables of the same columns have the same cells in the same order. */
function sameRows(left: Iterable<readonly IndexCell[]>, right: Iterable<readonly IndexCell[]>): boolean {
  const others = right[Symbol.iterator]()
  for (const row of left) {
    const other = others.next()
    if (other.done === true || row.some((cell, i) => !isSameCell(cell, other.value[i]))) return false
  }
  return others.next().done === true
}

function isSameCell(cell: IndexCell, other: IndexCell | undefined): boolean {
  if (cell === other) return true
  return cell instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(cell, other) === 0
}

const leastFree = 1_000_000_000

/** Checks free space: a fetch, a merge and the views need room in addition to the stored files. */
async function checkSpace(root: string, bytes: number, deps: DoctorDeps): Promise<Damage[]> {
  const { free = Infinity } = (await deps.space?.(root)) ?? {}
  const wanted = Math.max(leastFree, bytes / 10)
  if (free >= wanted) return []
  const megabytes = (count: number) => `${formatCount(count / 1e6)} MB`
  return [finding('disk_full', '.', `${megabytes(free)} are left on the disk, less than ${megabytes(wanted)}`)]
}
