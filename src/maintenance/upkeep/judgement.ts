import { type JournalHealth, type UnfitEntry, checkJournal, unfitEntry } from './damage-journal.ts'
import { bytesProblem, type CommitDeps } from '../../lake/ledger/commit.ts'
import { filesOnDisk } from '../../lake/ledger/index-queries.ts'
import { listJournal } from '../../lake/ledger/journal.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { RebuiltIndex } from '../../lake/ledger/rebuilt-index.ts'
import { listsAll } from '../../lake/ledger/live-digest.ts'
import { dataPlaces, newestData } from '../../lake/store/new-lake.ts'
import { metaLeft } from '../../lake/store/database.ts'
import { codeOf, isWritable, makeFolder, realDisk } from '../../lake/store/disk.ts'
import { isThere } from '../../lake/store/files.ts'
import { dataFooters } from '../../lake/store/parquet.ts'
import { entryFile, inLake, instantName, ownFolders, places } from '../../lake/store/layout.ts'
import { mirrorOf, readMarker } from '../../lake/store/marker.ts'
import { type Damage, type DamageKind, finding, instead } from './findings.ts'
import { lockCommit } from '../../lake/store/lock.ts'
import type { Micros } from '../../base/time.ts'

/*
 * Journal, index and data files each tell what the lake is. Where they do not agree this is the one place that says who
 * is right, and so what is to be done first; whoever mends asks again after each step.
 */

/**
 * Ways to reconcile journal, index and data: `rebuild` the index from the journal, which is whole; `copy`: the same,
 * but the index is a later one's, whose files are not here; `fold` the rows of the index into a checkpoint, since the
 * journal lost them; go `back` to the version before unreadable entries; `adopt` the data files, since neither explains
 * them.
 */
export type Way = 'whole' | 'newer' | 'unfit' | 'rebuild' | 'copy' | 'fold' | 'back' | 'adopt'

/** Returns the remedy of each way, for people; undefined for those that leave each finding its own remedy. */
function remedyOf(way: Way, { reach, newest }: JournalHealth): string | undefined {
  const { rebuild, copyAt, fold, backTo, adopt } = instead
  const all: Partial<Record<Way, string>> = { rebuild, copy: copyAt(newest), fold, back: backTo(reach), adopt }
  return all[way]
}

/** Judgement on a lake whose journal, index and data files may disagree. */
export interface LakeJudgement {
  /** The way to mend it. */
  readonly way: Way
  readonly journal: JournalHealth
  readonly findings: readonly Damage[]
}

/** Compares journal, index and the names of the data files with each other. */
export async function judgeLake(root: string): Promise<LakeJudgement> {
  using rebuilt = new RebuiltIndex(root)
  return await judgeLakeWith(root, rebuilt)
}

/** Judges a lake, and leaves in `rebuilt` what it has applied of the journal. */
export async function judgeLakeWith(root: string, rebuilt: RebuiltIndex): Promise<LakeJudgement> {
  const journal = await checkJournal(root)
  if (journal.newer) return { way: 'newer', journal, findings: journal.findings }
  const unfit = await unfitEntry(root, rebuilt)
  if (unfit) return { way: 'unfit', journal, findings: unfitFindings(journal, unfit) }
  // If the lake cannot be written an index is made in memory.
  const { ledger, found } = isWritable(root) ? await judgeIndex(root, journal) : { ledger: undefined, found: null }
  using _ = ledger
  const ahead = ledger === undefined ? null : await beyond(ledger, journal)
  const way = await wayOf(root, journal, ledger, ahead, found)
  const remedy = remedyOf(way, journal)
  const findings = [...journal.findings, ...(found ? [found] : []), ...(ahead ? [ahead.damage] : [])]
  return { way, journal, findings: findings.map((damage) => ({ ...damage, ...(remedy && { remedy }) })) }
}

function unfitFindings({ findings }: JournalHealth, { version, found }: UnfitEntry): Damage[] {
  const path = entryFile(version)
  return [...findings.filter((damage) => damage.path !== path), finding('entry_unfit', path, found)]
}

async function wayOf(
  root: string,
  journal: JournalHealth,
  ledger: Ledger | undefined,
  ahead: IndexAhead | null,
  damage: Damage | null,
): Promise<Way> {
  const { newest, broken, torn, reach } = journal
  const seen = ledger?.head().version ?? 0
  const data = await newestHere(root)
  if (ahead && !ahead.elsewhere && (newest > 0 || data <= seen + 1)) return 'fold'
  if (ahead?.elsewhere && broken.length === 0 && (newest > 0 || data === 0)) return 'copy'
  if (!ahead && ledger && (seen > reach || (broken.length === 0 && torn.length > 0))) return 'fold'
  if (broken.length > 0) return reach > 0 && broken.length === newest - reach ? 'back' : 'adopt'
  // A first commit that was killed leaves data of version 1 with a marker and an empty ledger: its job continues.
  const begun = data <= 1 && (data === 0 || (ledger !== undefined && seen === 0 && (await readMarker(root)) !== null))
  if (newest === 0 && !begun) return 'adopt'
  return damage ? 'rebuild' : 'whole'
}

/** Finds the newest version in the names of data files; 0 for none, and where this user may not look. */
async function newestHere(root: string): Promise<number> {
  try {
    return (await newestData(root)) ?? 0
  } catch (error) {
    if (codeOf(error) === 'EACCES') return 0
    throw error
  }
}

/** Judges the index: returns it if it is one of this journal, however far it has come; else what is wrong with it. */
async function judgeIndex(root: string, journal: JournalHealth) {
  const wrong = (kind: DamageKind, found: string) => ({
    ledger: undefined,
    found: finding(kind, places.ledger, found),
  })
  const ledger = Ledger.asLeft(root)
  if (ledger) {
    const ownId = journal.lake ?? (await lakeOfData(root))
    const strange = strangeIn(ledger, ownId, journal)
    if (strange === undefined) return { ledger, found: null }
    ledger.close()
    return wrong('ledger_differs', strange)
  }
  const path = inLake(root, places.ledger)
  if (!isThere(path)) return journal.newest > 0 ? wrong('ledger_lost', 'it is not there') : { ledger, found: null }
  // Another job makes it at this moment, or was killed at that; a mirror has its journal sooner.
  const begins = metaLeft(path, 'version') === 0 && (journal.newest === 0 || (await mirrorOf(root)) !== null)
  // An index of a different shape is rebuilt when it is opened.
  const shape = (metaLeft(path, 'schema') ?? 0) > 0
  return begins || shape ? { ledger, found: null } : wrong('ledger_torn', 'it cannot be read')
}

/** Finds the lake that all footers name, if no journal identifies the folder; null if they name none, or several. */
async function lakeOfData(root: string): Promise<string | null> {
  const lakes = new Set((await dataFooters(root)).flatMap(({ lake }) => lake ?? []))
  const [only = null] = lakes
  return lakes.size === 1 ? only : null
}

/** Explains why this journal did not make an index; undefined if it did. */
function strangeIn(ledger: Ledger, ownId: string | null, { digests }: JournalHealth): string | undefined {
  const { lake, version } = ledger.head()
  if (version > 0 && ownId !== null && lake !== ownId)
    return `it is of the lake ${lake}, what stands beside it of ${ownId}`
  for (const row of ledger.statement('SELECT version, digest FROM versions').iterate())
    if ((digests.get(Number(row['version'])) ?? row['digest']) !== row['digest'])
      return `it knows another version ${Number(row['version'])} than the journal beside it`
  return listsAll(ledger) ? undefined : 'it does not list the files that the journal names'
}

/** An index with versions that the journal lacks. */
interface IndexAhead {
  readonly damage: Damage
  /** Whether none of the files is here that only the index names. */
  readonly elsewhere: boolean
}

/**
 * Finds the versions that only the index knows: entries are lost, or the folder is a copy to which the index was added
 * later.
 */
async function beyond(ledger: Ledger, journal: JournalHealth): Promise<IndexAhead | null> {
  const { version } = ledger.head()
  // Listed again, and after the ledger was read: another job may have committed since the journal was read.
  const newest = Math.max(journal.newest, (await listJournal(ledger.root)).newest)
  if (version <= newest) return null
  const lostData = await lostBeyond(ledger, newest)
  const elsewhere = lostData.named > 0 && lostData.paths.length === lostData.named
  const found = `the ledger has seen version ${version}, the journal ends at ${newest}`
  const what = elsewhere ? `, and ${lostData.named} of the files that it names beyond that are not here` : ''
  return { damage: finding('entry_lost', places.journal, `${found}${what}`), elsewhere }
}

/** Lists the files of versions that only the ledger knows: how many it names, and which of them are missing. */
export async function lostBeyond(ledger: Ledger, newest: number) {
  const late = filesOnDisk(ledger).filter(({ added_version }) => added_version > newest)
  const paths: string[] = []
  for (const file of late)
    if ((await bytesProblem(ledger.root, file, false))?.kind === 'file_lost') paths.push(file.path)
  return { named: late.length, paths }
}

/** Whether neither journal nor ledger explain the data in a folder. */
export const isLakeLost = async (root: string): Promise<boolean> => (await judgeLake(root)).way === 'adopt'

/** Paths of a lake in its folder, its data last, without locks, which die with their processes. */
const moved = [
  places.manifest,
  places.script,
  places.database,
  places.ledger,
  places.marker,
  ...ownFolders.filter((place) => place !== places.locks && !dataPlaces.includes(place)),
  ...dataPlaces,
]

/** Names the folder for what a lost lake left; no other has its name. */
export const foundFolder = (now: Micros): string => `found-${instantName(now)}`

/** Moves a lost lake into a separate folder within its folder; nothing is removed. */
export async function moveFound(root: string, deps: CommitDeps): Promise<string[]> {
  const disk = deps.disk ?? realDisk
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  if (!(await isLakeLost(root))) return []
  const folder = foundFolder(deps.nowMicros())
  await makeFolder(disk, inLake(root, folder))
  // The data go last: until then the folder is known for what it is, and the same command goes on.
  for (const place of moved)
    if (isThere(inLake(root, place))) await disk.move(inLake(root, place), inLake(root, `${folder}/${place}`))
  for (const place of [folder, '.']) await disk.syncFolder(inLake(root, place))
  return [`what the lost lake left was moved to ${folder}/`]
}
