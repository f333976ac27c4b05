import { LakeError } from '../errors.ts'
import { strayFolders, type Unfit } from '../ledger/aside.ts'
import { checkpointHeader } from '../ledger/checkpoint.ts'
import { journalSchema } from '../ledger/entry.ts'
import { listJournal, readEntry, type Sealed } from '../ledger/journal.ts'
import { checkpointFile, entryFile, places } from '../store/layout.ts'

/** What can be wrong with a lake. */
export type DamageKind =
  | 'ledger_lost'
  | 'ledger_torn'
  | 'ledger_differs'
  | 'entry_lost'
  | 'entry_torn'
  | 'journal_lost'
  | 'entry_unfit'
  | 'entry_stray'
  | 'checkpoint_torn'
  | 'newer_version'
  | 'file_lost'
  | 'file_torn'
  | 'file_changed'
  | 'footer_differs'
  | 'rows_differ'
  | 'series_differs'
  | 'runs_lost'
  | 'stamp_lost'
  | 'stamp_torn'
  | 'calendar_differs'
  | 'orphans'
  | 'stale_lock'
  | 'views_missing'
  | 'views_torn'
  | 'views_moved'
  | 'disk_full'
  | 'clock_ahead'
  | 'marker_differs'

/** One thing that is wrong, where, and what to do about it. */
export interface Damage {
  readonly kind: DamageKind
  /** `damage` is lost or unreadable; a `notice` costs nothing, or not yet. */
  readonly severity: 'damage' | 'notice'
  /** Relative to the lake. */
  readonly path: string
  readonly found: string
  readonly remedy: string
}

/** The finding of something that is lost or unreadable. */
export function lostIn(kind: DamageKind, path: string, found: string, remedy: string): Damage {
  return { kind, severity: 'damage', path, found, remedy }
}

/** The finding of something that costs nothing, or not yet. */
export function notice(kind: DamageKind, path: string, found: string, remedy: string): Damage {
  return { kind, severity: 'notice', path, found, remedy }
}

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

const fromCopy = 'put it back from a copy of the lake'

/** Reads every entry and checkpoint, proves each, and finds what is missing between them. */
export async function checkJournal(root: string): Promise<JournalHealth> {
  const { entries, checkpoints } = await listJournal(root)
  const findings: Damage[] = []
  const torn: string[] = []
  let newer = false
  let folded = 0
  for (const version of checkpoints) {
    const found = await checkpointProblem(root, version)
    if (found === undefined) folded = Math.max(folded, version)
    else if (found.newer) newer = note(findings, newerFinding(checkpointFile(version), found.text))
    else {
      torn.push(checkpointFile(version))
      findings.push(lostIn('checkpoint_torn', checkpointFile(version), found.text, 'run pitlake doctor --repair'))
    }
  }
  const read = await readAll(root, entries)
  const newest = Math.max(entries.at(-1) ?? 0, checkpoints.at(-1) ?? 0)
  const broken: number[] = []
  let before: Sealed | undefined
  for (let version = Math.min(entries[0] ?? newest, folded + 1); version <= newest; version++) {
    const one = read.get(version)
    const file = entryFile(version)
    const needed = version > folded
    if (one === undefined) {
      before = undefined
      if (!needed) continue
      broken.push(version)
      findings.push(lostIn('entry_lost', file, 'it is not there', remedyFor()))
    } else if ('problem' in one) {
      before = undefined
      if (one.newer) newer = note(findings, newerFinding(file, one.problem))
      else {
        if (needed) broken.push(version)
        torn.push(file)
        findings.push(lostIn('entry_torn', file, one.problem, remedyFor()))
      }
    } else {
      if (before && one.entry.previous !== before.digest) {
        broken.push(version)
        torn.push(file)
        findings.push(lostIn('entry_torn', file, 'it does not follow the entry before it', remedyFor()))
      }
      before = one
    }
  }
  return { findings, newest, broken, torn, newer }
}

function remedyFor(): string {
  return `${fromCopy}; while the ledger is sound, pitlake doctor --repair does without it`
}

function note(findings: Damage[], damage: Damage): true {
  findings.push(damage)
  return true
}

function newerFinding(path: string, found: string): Damage {
  const remedy = 'this lake was written by a newer pitlake: update the program'
  return lostIn('newer_version', path, found, remedy)
}

type Read = Sealed | { readonly problem: string; readonly newer: boolean }

async function readAll(root: string, versions: readonly number[]): Promise<Map<number, Read>> {
  const read = new Map<number, Read>()
  for (const version of versions) {
    try {
      read.set(version, await readEntry(root, version))
    } catch (error) {
      if (!(error instanceof LakeError)) throw error
      const [complaint] = error.complaints
      const problem = complaint?.got === undefined ? 'it cannot be read' : `found ${complaint.got}`
      read.set(version, { problem, newer: error.kind === 'usage' })
    }
  }
  return read
}

/** What is wrong with a checkpoint's bytes; undefined when they are as they were written. */
async function checkpointProblem(root: string, version: number): Promise<{ text: string; newer: boolean } | undefined> {
  let header: { schema_version: number; version: number }
  try {
    header = JSON.parse(await checkpointHeader(root, version)) as typeof header
  } catch (error) {
    const known = error instanceof LakeError || error instanceof SyntaxError
    return { text: known ? 'its bytes do not match its checksum' : 'it cannot be read', newer: false }
  }
  if (header.schema_version > journalSchema)
    return { text: `found schema_version ${header.schema_version}`, newer: true }
  return header.version === version ? undefined : { text: `it holds version ${header.version}`, newer: false }
}

/** The finding of an unfit entry. */
export function unfitDamage({ version, found }: Unfit): Damage {
  const remedy =
    'run pitlake doctor --repair: it moves this one entry to journal/aside/, and what it brought is asked for again'
  return lostIn('entry_unfit', entryFile(version), found, remedy)
}

/** The findings of `strayFolders`. */
export async function checkStrays(root: string): Promise<Damage[]> {
  const remedy = 'nothing reads it; pitlake doctor --repair moves it to journal/aside/'
  return (await strayFolders(root)).map((name) =>
    notice('entry_stray', `${places.journal}/${name}`, 'a folder stands where an entry will', remedy),
  )
}
