import { LakeError } from '../errors.ts'
import { strayFolders } from '../ledger/aside.ts'
import { checkpointHeader } from '../ledger/checkpoint.ts'
import { refuseNewer } from '../ledger/entry.ts'
import { soundly } from '../ledger/fold.ts'
import { isFoldedSince, type Listing, listJournal, readEntry, type Sealed } from '../ledger/journal.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { statOf } from '../store/disk.ts'
import { checkpointFile, entryFile, inLake, places } from '../store/layout.ts'
import { type Damage, finding } from './damage.ts'

/** The journal as it can be read. */
export interface JournalHealth {
  readonly findings: readonly Damage[]
  /** The newest version that any name in the journal speaks of. */
  readonly newest: number
  /** Versions that are needed to rebuild the ledger and cannot be read. */
  readonly broken: readonly number[]
  /** Damaged files of the journal, relative to the lake. */
  readonly torn: readonly string[]
  /** Written by a newer program: nothing further can be judged. */
  readonly newer: boolean
}

/** What is wrong with a file of the journal. */
type Problem = Pick<Damage, 'kind' | 'found'> & { readonly remedy?: string | undefined }

/** Reads every entry and checkpoint, proves each, and finds what is missing between them. */
export async function checkJournal(root: string): Promise<JournalHealth> {
  const listed = await listJournal(root)
  const health = await healthOf(root, listed)
  // What was folded meanwhile is not lost.
  const folded = health.findings.length > 0 && (await isFoldedSince(root, listed))
  return folded ? await checkJournal(root) : health
}

async function healthOf(root: string, { entries, checkpoints, newest }: Listing): Promise<JournalHealth> {
  const findings: Damage[] = []
  const broken: number[] = []
  const note = (path: string, { kind, found, remedy }: Problem): void =>
    void findings.push(finding(kind, path, found, remedy === undefined ? {} : { remedy }))
  let folded = 0
  for (const version of checkpoints) {
    const problem = await checkpointProblem(root, version)
    if (problem) note(checkpointFile(version), problem)
    // One that this program is too old for stands in for its entries all the same.
    if (problem === undefined || problem.kind === 'newer_version') folded = version
  }
  const there = new Set(entries)
  let before: Sealed | undefined
  for (let version = Math.min(entries[0] ?? newest, folded + 1); version <= newest; version++) {
    const one = there.has(version) ? await entryOrProblem(root, version) : lost
    const follows = !before || 'kind' in one || one.entry.previous === before.digest
    const problem = 'kind' in one ? one : follows ? undefined : unlinked
    before = 'kind' in one ? undefined : one
    if (!problem || (problem === lost && version <= folded)) continue
    note(entryFile(version), problem)
    if (version > folded && problem.kind !== 'newer_version') broken.push(version)
  }
  const torn = findings.filter(({ kind }) => kind.endsWith('_torn')).map(({ path }) => path)
  return { findings, newest, broken, torn, newer: findings.some(({ kind }) => kind === 'newer_version') }
}

const lost: Problem = { kind: 'entry_lost', found: 'it is not there' }
const unlinked: Problem = { kind: 'entry_torn', found: 'it does not follow the entry before it' }

async function entryOrProblem(root: string, version: number): Promise<Sealed | Problem> {
  try {
    return await readEntry(root, version)
  } catch (error) {
    if (!(error instanceof LakeError)) throw error
    const [{ got = null } = {}] = error.complaints
    return newerIn(error) ?? { kind: 'entry_torn', found: got === null ? 'it cannot be read' : `found ${got}` }
  }
}

/** What a program of a newer layout wrote, and what to install. */
function newerIn(error: unknown): Problem | undefined {
  if (!(error instanceof LakeError) || error.kind !== 'usage') return undefined
  const [{ got, next } = {}] = error.complaints
  return { kind: 'newer_version', found: `found schema_version ${got}`, remedy: next }
}

/** What is wrong with a checkpoint's bytes; undefined when they are as they were written. */
async function checkpointProblem(root: string, version: number): Promise<Problem | undefined> {
  const torn = (found: string): Problem => ({ kind: 'checkpoint_torn', found })
  let header: { schema_version: number; version: number; program?: unknown }
  try {
    header = JSON.parse(await checkpointHeader(root, version)) as typeof header
    refuseNewer(header.schema_version, checkpointFile(version), header.program)
  } catch (error) {
    const newer = newerIn(error)
    if (newer) return newer
    const known = error instanceof LakeError || error instanceof SyntaxError
    return torn(known ? 'its bytes do not match its checksum' : 'it cannot be read')
  }
  return header.version === version ? undefined : torn(`it holds version ${header.version}`)
}

/** The findings of `strayFolders`. */
export async function checkStrays(root: string): Promise<Damage[]> {
  const found = 'a folder stands where an entry will'
  return (await strayFolders(root)).map((name) => finding('entry_stray', `${places.journal}/${name}`, found))
}

/** Files of runs that the ledger has read, that are not there any more, and that no sound checkpoint stands in for. */
export async function checkRuns(ledger: Ledger): Promise<Damage[]> {
  const missing = new Map<string, number>()
  for (const [name, offset] of offsetsOf(ledger)) {
    const size = (await statOf(inLake(ledger.root, `${places.runs}/${name}`)))?.size ?? 0
    if (size < offset) missing.set(name, offset)
  }
  if (missing.size === 0) return []
  const listed = await listJournal(ledger.root)
  let kept = new Map<string, number>()
  for (const version of listed.checkpoints.toReversed()) {
    using held = await soundly(ledger.root, version)
    if (held === undefined) continue
    kept = offsetsOf(held)
    break
  }
  const lost = [...missing].filter(([name, offset]) => (kept.get(name) ?? 0) < offset).map(([name]) => name)
  if (lost[0] === undefined) return []
  if (await isFoldedSince(ledger.root, listed)) return await checkRuns(ledger)
  const what = `${lost.length} ${lost.length === 1 ? 'file of a run is' : 'files of runs are'} gone or cut`
  const found = `${what}: only the ledger knows their requests, and what was asked again`
  return [finding('runs_lost', `${places.runs}/${lost[0]}`, found)]
}

function offsetsOf(ledger: Ledger): Map<string, number> {
  const rows = ledger.statement('SELECT name, offset FROM run_files ORDER BY name').all()
  return new Map(rows.map((row) => [String(row['name']), Number(row['offset'])]))
}
