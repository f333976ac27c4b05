import { existsSync, mkdirSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { LakeError } from '../../base/errors.ts'
import { jsonOf } from '../../base/json.ts'
import { codeOf, diskError, namesIn, realDisk } from './disk.ts'
import { textOf } from './files.ts'
import type { Micros } from '../../base/time.ts'
import { shape, text, type ValueCheck, wholeNumber } from '../../base/value-checks.ts'
import { decodeSegment, holderFile, inLake, lockFile, places } from './layout.ts'
import { type FileHold, holdFile } from './database.ts'

/**
 * The process that has a lock, for people; the lock itself belongs to the operating system and ends with its process.
 */
export interface Holder {
  readonly pid: number
  /** Name of the machine. */
  readonly host: string
  /** Command of the process, such as `pitlake fetch`. */
  readonly command: string
  /** Time at which the lock was taken, microseconds. */
  readonly since: Micros
}

/** A lock that this process has taken. */
export interface Lock extends AsyncDisposable {
  release(): Promise<void>
}

/** The dependencies of waiting for a lock. */
interface Waiting {
  readonly sleep: (milliseconds: number) => Promise<unknown>
  readonly random: () => number
}

/** Longest time for which a process takes a lock only to see whether it is free, in milliseconds. */
const looking = 100

/**
 * Takes a lock at once, or within `within` milliseconds; undefined while another process, or another part of this one,
 * has it.
 */
export async function tryLock(root: string, name: string, holder: Holder, within = 0): Promise<Lock | undefined> {
  const hold = take(root, name, within)
  if (!hold) return undefined
  const file = inLake(root, holderFile(name))
  try {
    await writeFile(file, `${JSON.stringify(holder)}\n`)
  } catch (error) {
    hold.release()
    throw diskError(error, `lock ${name}`)
  }
  const release = async (): Promise<void> => {
    await rm(file, { force: true }).catch(() => undefined)
    hold.release()
  }
  return { release, [Symbol.asyncDispose]: release }
}

/** Takes the lock of a kind of job, of which only one may run; a second one gets an error that names the first. */
export async function lockJob(root: string, name: string, holder: Holder, within = looking): Promise<Lock> {
  const lock = await tryLock(root, name, holder, within)
  if (lock) return lock
  throw await busy(root, name, `another ${name} job is at work on this lake`)
}

/** The short lock under which commits are made. */
export const commitLock = 'commit'

/** The lock of a process that updates a mirror from its lake. */
export const pullLock = 'pull'

/** Waits for the short lock under which commits are made one after the other. */
export async function lockCommit(root: string, holder: Holder, waiting: Waiting, seconds = 600): Promise<Lock> {
  const lock = await waitForLock(root, commitLock, holder, { ...waiting, seconds })
  if (lock) return lock
  throw await busy(root, commitLock, `another commit has been under way for ${seconds} s`)
}

/** Waits for a lock that is only ever taken briefly; undefined if it is not free within `seconds`. */
export async function waitForLock(
  root: string,
  name: string,
  holder: Holder,
  { sleep, random, seconds }: Waiting & { readonly seconds: number },
): Promise<Lock | undefined> {
  let waited = 0
  for (let pause = 2; waited <= seconds * 1000; pause = Math.min(pause * 1.5, 100)) {
    const lock = await tryLock(root, name, holder)
    if (lock) return lock
    const milliseconds = pause * (0.5 + random())
    await sleep(milliseconds)
    waited += milliseconds
  }
  return undefined
}

/** Builds the error for a lock that is taken: exit code 7, with the process that has it. */
export async function busy(root: string, name: string, subject: string): Promise<LakeError> {
  return new LakeError('busy', {
    subject,
    got: describeHolder(await holderOf(root, name)),
    next: 'wait until it has ended, then run the same command again; a job that was killed holds nothing',
  })
}

/** Whether the lock is free now; does not keep it. */
export function isFree(root: string, name: string): boolean {
  const hold = take(root, name)
  hold?.release()
  return hold !== undefined
}

/** Does work while no process has the lock and none can take it; undefined if it is taken. */
export async function whileFree<T>(root: string, name: string, work: () => Promise<T>): Promise<T | undefined> {
  const hold = take(root, name)
  if (!hold) return undefined
  try {
    return await work()
  } finally {
    hold.release()
  }
}

const checkHolder: ValueCheck<Holder> = shape({ pid: wholeNumber, host: text, command: text, since: wholeNumber })

/**
 * Reads the process that has a lock, or that had it last if it was killed; undefined if the file that names it is
 * missing, half written or damaged.
 */
export async function holderOf(root: string, name: string): Promise<Holder | undefined> {
  const holder = jsonOf((await textOf(inLake(root, holderFile(name)))) ?? '')
  return checkHolder(holder) === undefined ? (holder as Holder) : undefined
}

/** Describes a holder: `process 123 on host (pitlake fetch) since 2024-03-01T00:00:00.000Z`. */
export function describeHolder(holder: Holder | undefined): string {
  if (!holder) return 'a process that has not said its name yet'
  const since = new Date(holder.since / 1000).toISOString()
  return `process ${holder.pid} on ${holder.host} (${holder.command}) since ${since}`
}

function take(root: string, name: string, within = 0): FileHold | undefined {
  try {
    makeMissing(inLake(root, places.locks))
  } catch (error) {
    throw diskError(error, `lock ${name}`)
  }
  return holdFile(inLake(root, lockFile(name)), within)
}

/**
 * Makes a folder and its missing parents, one by one: the recursive mkdir of Node reports ENOENT on a read-only file
 * system, and does not end in `/proc`.
 */
function makeMissing(folder: string): void {
  const missing: string[] = []
  for (let at = folder; !existsSync(at); at = dirname(at)) missing.push(at)
  for (const path of missing.toReversed())
    try {
      mkdirSync(path)
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    }
}

const prefix = 'pin-'
/**
 * Longest wait for the pin of a run, in milliseconds; only a process that checks whether it is free may have it, for a
 * moment.
 */
const patience = 5000

/**
 * Protects the files that have been in the view or the journal since `holder.since` from vacuum, while a process copies
 * the lake or stamps a result. The operating system releases the pin when the process dies.
 */
export async function pin(root: string, run: string, holder: Holder): Promise<Lock> {
  const name = `${prefix}${run}`
  const lock = await tryLock(root, name, holder, patience)
  if (!lock) throw await busy(root, name, `the pin of run ${run} is taken`)
  const release = async (): Promise<void> => {
    await lock.release()
    for (const file of [holderFile(name), lockFile(name)]) await realDisk.remove(inLake(root, file))
  }
  return { release, [Symbol.asyncDispose]: release }
}

/** Returns the time from which the oldest running copy needs the files; undefined if there is none. */
export async function pinnedSince(root: string): Promise<Micros | undefined> {
  let oldest: Micros | undefined
  for (const file of await namesIn(inLake(root, places.locks))) {
    if (!file.startsWith(prefix) || !file.endsWith('.lock')) continue
    const name = decodeSegment(file.slice(0, -'.lock'.length))
    if (isFree(root, name)) continue
    // A copy that does not say since when it needs the files may need every one.
    const since = (await holderOf(root, name))?.since ?? 0
    oldest = Math.min(oldest ?? since, since)
  }
  return oldest
}
