import { mirrorOf, readMarker } from '../store/marker.ts'
import { storedCopies } from './run-queries.ts'
import { listJournal } from './journal.ts'
import type { Ledger } from './ledger.ts'
import type { Index } from './index-rows.ts'

/** A thing that is made from a lake and can be made again: views, a page, a published table, a copy. */
export interface DerivedThing {
  /** What it is called, in the plural: `these views`. */
  readonly name: string
  /** Version of the lake that it was made from; null if that is not known. */
  readonly version: number | null
  /** Program that made it, as entries name it (`pitlake 0.1.0`); null if that is not known or does not matter. */
  readonly program: string | null
  /** The command that makes it again. */
  readonly remedy: string
}

/** What a derived thing is compared with. */
export interface LakeState {
  /** Newest version that the journal holds. */
  readonly newest: number
  /** The program that is running; null where it does not matter who made the thing. */
  readonly program: string | null
}

/** A derived thing that is behind its lake, or was made by a different program. */
export interface Lag {
  readonly thing: DerivedThing
  readonly lake: LakeState
  readonly because: 'version' | 'program'
}

/**
 * Compares a derived thing with the journal: null where it is of the newest version and of this program. A thing that
 * is ahead of the journal is damage, which `doctor` judges, and no lag.
 */
export function lagOf(thing: DerivedThing, lake: LakeState): Lag | null {
  if ((thing.version ?? 0) < lake.newest) return { thing, lake, because: 'version' }
  const isForeign = lake.program !== null && thing.program !== null && thing.program !== lake.program
  return isForeign ? { thing, lake, because: 'program' } : null
}

/** A lag in words, with the command that ends it. */
export function lagText(lag: Lag): string {
  return `${lagWords(lag)}: run ${lag.thing.remedy}`
}

/** A lag in words, without the command. */
export function lagWords({ thing, lake, because }: Lag): string {
  const { name, version, program } = thing
  const of = version === null ? 'of an unknown version' : `of version ${version}`
  return because === 'version'
    ? `${name} are ${of}, the lake is at ${lake.newest}`
    : `${name} were made by ${program}, this is ${lake.program}`
}

/**
 * How far the copies of a lake that it remembers are behind it: published tables and backups; of a mirror, how far it
 * is behind itself.
 */
export async function lagsOfCopies(ledger: Ledger): Promise<readonly Lag[]> {
  // A mirror has the runs of its lake; its copies are the business of that lake.
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
 * How far a mirror is behind its lake; null for a lake of its own, and where the source is no folder of that lake on
 * this machine. Costs a listing of both journals.
 */
export async function lagOfMirror(root: string): Promise<Lag | null> {
  const source = await mirrorOf(root)
  if (source === null || source.includes('://')) return null
  try {
    if ((await readMarker(source)) !== (await readMarker(root))) return null
    // Listed first: a version that is pulled meanwhile is then no lag.
    const { newest } = await listJournal(source)
    const { newest: version } = await listJournal(root)
    const thing = { name: 'the data of this mirror', version, program: null, remedy: `pitlake pull ${source}` }
    return lagOf(thing, { newest, program: null })
  } catch {
    // A source that this user may not read says nothing.
    return null
  }
}

/** How far the index has read the files of runs, as a text: their lines make no version, and views show them. */
export function runsMark(index: Index): string {
  const row = index.statement('SELECT count(*) AS files, coalesce(sum(offset), 0) AS bytes FROM run_files').get()
  return `${Number(row?.['files'])} files, ${Number(row?.['bytes'])} bytes`
}
