import { requireFileError } from '../../lake/store/file-errors.ts'
import { LakeError } from '../../base/errors.ts'
import { checkpointHeader } from '../../lake/ledger/checkpoint.ts'
import { isUnreleased, openSealed, refuseOtherLayout } from '../../lake/ledger/entry.ts'
import { loadCheckpointIndex } from '../../lake/ledger/checkpoint-writer.ts'
import { isFoldedSince, type Listing, listJournal, readEntry, type Sealed } from '../../lake/ledger/journal.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import type { RebuiltIndex } from '../../lake/ledger/rebuilt-index.ts'
import { readEntryText } from '../../lake/ledger/packed-entry.ts'
import { type Disk, entriesIn, makeFolder, statOf } from '../../lake/store/disk.ts'
import { asideFile, checkpointFile, entryFile, inLake, parseJournalName, places } from '../../lake/store/layout.ts'
import { type Damage, finding } from './findings.ts'

/** State of the journal, as far as it can be read. */
export interface JournalHealth {
  readonly findings: readonly Damage[]
  /** Lake of the journal: the one that most of its files name; null if none can be read. */
  readonly lake: string | null
  /** The newest version that any name in the journal speaks of. */
  readonly newest: number
  /** The version up to which it can be followed from its beginning; 0 for none. */
  readonly reach: number
  /** Versions that are needed to rebuild the ledger and cannot be read. */
  readonly broken: readonly number[]
  /** Damaged files of the journal, relative to the lake. */
  readonly torn: readonly string[]
  /** The digests of the entries that can be read, by version. */
  readonly digests: ReadonlyMap<number, string>
  /** Written by a program of a different layout: nothing further can be judged. */
  readonly newer: boolean
}

/** Problems of a file of the journal. */
type Problem = Pick<Damage, 'kind' | 'found'> & { readonly remedy?: string | undefined }

/** Fields of an entry that are compared with other entries. */
type Link = Pick<Sealed, 'digest'> & Pick<Sealed['entry'], 'lake' | 'previous'>

/** Reads every entry and checkpoint, proves each, and finds those that are missing. */
export async function checkJournal(root: string): Promise<JournalHealth> {
  const listed = await listJournal(root)
  const health = await healthOf(root, listed)
  // Entries that were merged into a checkpoint meanwhile are not lost.
  const folded = health.findings.length > 0 && (await isFoldedSince(root, listed))
  return folded ? await checkJournal(root) : health
}

async function healthOf(root: string, { entries, checkpoints, newest }: Listing): Promise<JournalHealth> {
  const findings: Damage[] = []
  const note = (path: string, { kind, found, remedy }: Problem): void =>
    void findings.push(finding(kind, path, found, remedy === undefined ? {} : { remedy }))
  const read = new Map<number, Link | Problem>()
  for (const version of entries) read.set(version, await linkOrProblem(root, version))
  const heads = new Map<number, Header | Problem>()
  for (const version of checkpoints) heads.set(version, await headerOrProblem(root, version))
  const lake = lakeOf([...heads.values(), ...read.values()])
  let folded = 0
  for (const [version, head] of heads) {
    const problem = 'kind' in head ? head : head.lake === lake ? undefined : foreign('checkpoint_torn', head.lake)
    if (problem) note(checkpointFile(version), problem)
    // A checkpoint of a different layout replaces its entries all the same.
    if (problem === undefined || isOtherLayout(problem)) folded = version
  }
  const broken: number[] = []
  const lostVersions: number[] = []
  let before: Link | undefined
  for (let version = Math.min(entries[0] ?? newest, folded + 1); version <= newest; version++) {
    const link = read.get(version)
    const problem = link === undefined ? undefined : problemOf(link, before, lake)
    before = link === undefined || 'kind' in link || link.lake !== lake ? undefined : link
    if (problem) note(entryFile(version), problem)
    else if (link === undefined && version > folded) lostVersions.push(version)
    if (version > folded && (problem ? !isOtherLayout(problem) : link === undefined)) broken.push(version)
  }
  findings.push(...lostEntries(lostVersions, checkpoints.at(-1) ?? 0))
  const torn = findings.filter(({ kind }) => kind.endsWith('_torn')).map(({ path }) => path)
  const digests = new Map(
    [...read].flatMap(([version, link]) => ('kind' in link ? [] : [[version, link.digest] as const])),
  )
  const reach = (broken[0] ?? newest + 1) - 1
  return { findings, lake, newest, reach, broken, torn, digests, newer: findings.some(isOtherLayout) }
}

/** Whether a program of a different layout wrote it: nothing is wrong with it, and this program cannot judge it. */
const isOtherLayout = ({ kind }: Pick<Damage, 'kind'>): boolean =>
  kind === 'newer_version' || kind === 'unreleased_version'

/** Finds the lake that most of them name; of equals the one that is named first. */
function lakeOf(all: readonly ({ readonly lake: string | null } | Problem)[]): string | null {
  const counts = new Map<string | null, number>()
  for (const link of all) if (!('kind' in link)) counts.set(link.lake, (counts.get(link.lake) ?? 0) + 1)
  return [...counts].toSorted(([, count], [, other]) => other - count)[0]?.[0] ?? null
}

function foreign(kind: 'entry_torn' | 'checkpoint_torn', lake: string | null): Problem {
  return { kind, found: `it is of the lake ${lake}` }
}

function problemOf(link: Link | Problem, before: Link | undefined, lake: string | null): Problem | undefined {
  if ('kind' in link) return link
  if (link.lake !== lake) return foreign('entry_torn', link.lake)
  const follows = !before || link.previous === before.digest
  return follows ? undefined : { kind: 'entry_torn', found: 'it does not follow the entry before it' }
}

/** Finds missing entries, adjacent ones in one finding; a damaged checkpoint is reported itself. */
function lostEntries(versions: readonly number[], folded: number): Damage[] {
  const reported = new Set(versions.filter((version) => version > folded))
  return [...reported].flatMap((version) => {
    if (reported.has(version - 1)) return []
    let last = version
    while (reported.has(last + 1)) last++
    const others = last === version ? '' : `, nor are those up to ${entryFile(last)}`
    return [finding('entry_lost', entryFile(version), `it is not there${others}`)]
  })
}

async function linkOrProblem(root: string, version: number): Promise<Link | Problem> {
  try {
    const { entry, digest } = await readEntry(root, version)
    return { lake: entry.lake, previous: entry.previous, digest }
  } catch (error) {
    requireFileError(error, `reading ${entryFile(version)}`)
    if (!(error instanceof LakeError)) throw error
    const [{ got = null } = {}] = error.complaints
    return otherLayoutIn(error) ?? { kind: 'entry_torn', found: got === null ? 'it cannot be read' : `found ${got}` }
  }
}

/** Reports a file that a program of a different layout wrote, and what to do about it. */
function otherLayoutIn(error: unknown): Problem | undefined {
  if (!(error instanceof LakeError) || error.kind !== 'usage') return undefined
  const [{ got, next } = {}] = error.complaints
  const kind = isUnreleased(Number(got ?? Number.NaN)) ? 'unreleased_version' : 'newer_version'
  return { kind, found: `found layout ${got}`, remedy: next }
}

interface Header {
  readonly lake: string | null
  readonly version: number
  readonly schema_version: number
  readonly program?: unknown
}

/** Reads the first line of a checkpoint whose bytes are as they were written; else returns the problem. */
async function headerOrProblem(root: string, version: number): Promise<Header | Problem> {
  const torn = (found: string): Problem => ({ kind: 'checkpoint_torn', found })
  try {
    const header = JSON.parse(await checkpointHeader(root, version)) as Header
    refuseOtherLayout(header.schema_version, checkpointFile(version), header.program)
    return header.version === version ? header : torn(`it holds version ${header.version}`)
  } catch (error) {
    requireFileError(error, `reading ${checkpointFile(version)}`)
    const isExpected = error instanceof LakeError || error instanceof SyntaxError
    return otherLayoutIn(error) ?? torn(isExpected ? 'its bytes do not match its checksum' : 'it cannot be read')
  }
}

/** Finds files of runs that the ledger has read, that no longer exist, and that no sound checkpoint replaces. */
export async function checkRuns(ledger: Ledger): Promise<Damage[]> {
  const missing = new Map<string, number>()
  for (const [name, offset] of offsetsOf(ledger)) {
    const size = (await statOf(inLake(ledger.root, `${places.runs}/${name}`)))?.size ?? 0
    if (size < offset) missing.set(name, offset)
  }
  if (missing.size === 0) return []
  const listed = await listJournal(ledger.root)
  let keptOffsets = new Map<string, number>()
  for (const version of listed.checkpoints.toReversed()) {
    using checkpointIndex = await loadCheckpointIndex(ledger.root, version)
    if (checkpointIndex === undefined) continue
    keptOffsets = offsetsOf(checkpointIndex)
    break
  }
  const lostRuns = [...missing].filter(([name, offset]) => (keptOffsets.get(name) ?? 0) < offset).map(([name]) => name)
  if (lostRuns[0] === undefined) return []
  if (await isFoldedSince(ledger.root, listed)) return await checkRuns(ledger)
  const what = `${lostRuns.length} ${lostRuns.length === 1 ? 'file of a run is' : 'files of runs are'} gone or cut`
  const found = `${what}: only the ledger knows their requests, and what was requested again`
  return [finding('runs_lost', `${places.runs}/${lostRuns[0]}`, found)]
}

function offsetsOf(ledger: Ledger): Map<string, number> {
  const rows = ledger.statement('SELECT name, offset FROM run_files ORDER BY name').all()
  return new Map(rows.map((row) => [String(row['name']), Number(row['offset'])]))
}

/** A last entry whose bytes are sound and that cannot be applied to the lake before it. */
export interface UnfitEntry {
  readonly version: number
  /** SHA-256 of the entry, hex. */
  readonly digest: string
  /** The reason in words. */
  readonly found: string
}

/**
 * Finds the journal's last entry, if its bytes are sound and everything before it is, but it cannot be applied. Older
 * versions could commit such a one; no command opens the lake while it is there.
 */
export async function unfitEntry(root: string, rebuilt: RebuiltIndex): Promise<UnfitEntry | undefined> {
  const { newest: version, folded } = await listJournal(root)
  if (folded >= version) return undefined
  const text = await readEntryText(root, version).catch((error: unknown) => {
    requireFileError(error, `reading ${entryFile(version)}`)
    return undefined
  })
  const digest = text === undefined ? undefined : soundDigest(text, version)
  if (text === undefined || digest === undefined) return undefined
  const before = await rebuilt.upTo(version - 1).catch(() => undefined)
  if (before?.head().version !== version - 1) return undefined
  try {
    const { entry } = before.rehearse(text, entryFile(version))
    const follows = entry.version === version && entry.previous === before.head().digest
    return follows ? undefined : { version, digest, found: 'it does not follow the entry before it' }
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind !== 'integrity') throw error
    const [complaint] = error.complaints
    return { version, digest, found: `it cannot be applied: ${complaint?.got ?? error.message}` }
  }
}

/**
 * Reads the digest of a text of this program's schema whose bytes are as they were written; undefined for any other
 * text.
 */
function soundDigest(text: string, version: number): string | undefined {
  try {
    const { body, digest } = openSealed(text, entryFile(version))
    const { schema_version } = JSON.parse(body) as { schema_version?: unknown }
    refuseOtherLayout(schema_version, entryFile(version))
    return digest
  } catch {
    return undefined
  }
}

/**
 * Moves an unfit entry out of the journal; its successor takes its number and names its digest. Hold the commit lock.
 */
export async function setAside(disk: Disk, root: string, { version, digest }: UnfitEntry): Promise<string> {
  await makeFolder(disk, inLake(root, places.aside))
  await disk.move(inLake(root, entryFile(version)), inLake(root, asideFile(version, digest)))
  for (const place of [places.aside, places.journal]) await disk.syncFolder(inLake(root, place))
  return `${entryFile(version)} was set aside as ${asideFile(version, digest)}`
}

/** Lists folders with the name of an entry or a checkpoint: no version can use that name. */
export async function strayFolders(root: string): Promise<string[]> {
  const entries = await entriesIn(inLake(root, places.journal))
  return entries.filter((entry) => entry.isDirectory() && parseJournalName(entry.name)).map(({ name }) => name)
}
