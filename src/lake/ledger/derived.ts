import { mirrorOf, readMarker } from '../store/marker.ts'
import { storedCopies } from './run-queries.ts'
import { listJournal } from './journal.ts'
import type { Ledger } from './ledger.ts'
import type { Index } from './index-rows.ts'

/** A thing derived from a lake that can be rebuilt: views, a page, a published table, a copy. */
export interface DerivedThing {
  /** Name in the plural: `these views`. */
  readonly name: string
  /** Version of the lake from which it was made; null if unknown. */
  readonly version: number | null
  /** Program that made it, in the spelling of entries (`pitlake 0.1.0`); null if unknown or irrelevant. */
  readonly program: string | null
  /** The command that rebuilds it. */
  readonly remedy: string
}

/** The state with which a derived thing is compared. */
export interface LakeState {
  /** Newest version in the journal. */
  readonly newest: number
  /** The running program; null if it does not matter which program made the thing. */
  readonly program: string | null
}

/** A derived thing that is behind its lake, or was made by a different program. */
export interface Lag {
  readonly thing: DerivedThing
  readonly lake: LakeState
  readonly because: 'version' | 'program'
}

/**
 * Compares a derived thing with the journal; null if it is of the newest version and of this program. A thing that is
 * ahead of the journal is not a lag but damage, which `doctor` reports.
 */
export function lagOf(thing: DerivedThing, lake: LakeState): Lag | null {
  if ((thing.version ?? 0) < lake.newest) return { thing, lake, because: 'version' }
  const isForeign = lake.program !== null && thing.program !== null && thing.program !== lake.program
  return isForeign ? { thing, lake, because: 'program' } : null
}

/** Describes a lag, with the command that ends it. */
export function lagText(lag: Lag): string {
  return `${lagWords(lag)}: run ${lag.thing.remedy}`
}

/** Describes a lag, without the command. */
export function lagWords({ thing, lake, because }: Lag): string {
  const { name, version, program } = thing
  const of = version === null ? 'of an unknown version' : `of version ${version}`
  return because === 'version'
    ? `${name} are ${of}, the lake is at ${lake.newest}`
    : `${name} were made by ${program}, this is ${lake.program}`
}

/** Lists the lags of the published tables and backups that a lake remembers; for a mirror, its own lag. */
export async function lagsOfCopies(ledger: Ledger): Promise<readonly Lag[]> {
  // A mirror contains the runs of its lake, whose copies are not its own.
  if ((await mirrorOf(ledger.root)) !== null) return [await lagOfMirror(ledger.root)].filter((lag) => lag !== null)
  const { version: newest } = ledger.head()
  return storedCopies(ledger).flatMap(({ job, destination, version, lake }) => {
    const what = job === 'backup' ? 'files of the backup' : 'published tables'
    const remedy = `pitlake ${job} ${destination}${lake === 0 ? '' : ' --lake'}`
    const lag = lagOf({ name: `${what} at ${destination}`, version, program: null, remedy }, { newest, program: null })
    return lag === null ? [] : [lag]
  })
}

/**
 * Compares a mirror with its lake; null for a lake that is not a mirror, and if the source is not a folder of that lake
 * on this machine. Costs a listing of both journals.
 */
export async function lagOfMirror(root: string): Promise<Lag | null> {
  const source = await mirrorOf(root)
  if (source === null || source.includes('://')) return null
  try {
    if ((await readMarker(source)) !== (await readMarker(root))) return null
    // The source is listed first, so that a version pulled meanwhile does not count as a lag.
    const { newest } = await listJournal(source)
    const { newest: version } = await listJournal(root)
    const thing = { name: 'the data of this mirror', version, program: null, remedy: `pitlake pull ${source}` }
    return lagOf(thing, { newest, program: null })
  } catch {
    // A source that this user may not read shows nothing.
    return null
  }
}

/**
 * Returns the extent to which the index has read the files of runs, as a text. Their lines make no version, but views
 * show them.
 */
export function runsMark(index: Index): string {
  const row = index.statement('SELECT count(*) AS files, coalesce(sum(offset), 0) AS bytes FROM run_files').get()
  return `${Number(row?.['files'])} files, ${Number(row?.['bytes'])} bytes`
}
