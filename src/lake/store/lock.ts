import { mkdirSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { LakeError } from '../../base/errors.ts'
import { jsonOf } from '../../base/json.ts'
import { diskError, namesIn, realDisk } from './disk.ts'
import { textOf } from './files.ts'
import type { Micros } from '../../base/time.ts'
import { decodeSegment, holderFile, inLake, lockFile, places } from './layout.ts'
import { type FileHold, holdFile } from './database.ts'

/** Who holds a lock, for people; the lock itself is the operating system's and dies with its process. */
export interface Holder {
  readonly pid: number
  /** Name of the machine. */
  readonly host: string
  /** What the process does, such as `pitlake fetch`. */
  readonly command: string
  /** When the lock was taken, microseconds. */
  readonly since: Micros
}

/** A lock that is held. */
export interface Lock extends AsyncDisposable {
  release(): Promise<void>
}

/** What waiting needs from outside. */
interface Waiting {
  readonly sleep: (milliseconds: number) => Promise<unknown>
  readonly random: () => number
}

/** Whoever looks whether a lock is free holds it for less than this, in milliseconds. */
const looking = 100

/**
 * Takes a lock at once, or within so many milliseconds; undefined while another process, or another part of this one,
 * holds it.
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

/** The one job of its kind: a second one is told who is at work. */
export async function lockJob(root: string, name: string, holder: Holder, within = looking): Promise<Lock> {
  const lock = await tryLock(root, name, holder, within)
  if (lock) return lock
  throw await busy(root, name, `another ${name} job is at work on this lake`)
}

/** The short lock under which commits are made. */
export const commitLock = 'commit'

/** Held by whoever brings a mirror up to its lake. */
export const pullLock = 'pull'

/** Waits for the short lock under which commits are made one after the other. */
export async function lockCommit(root: string, holder: Holder, waiting: Waiting, seconds = 600): Promise<Lock> {
  const lock = await waitForLock(root, commitLock, holder, { ...waiting, seconds })
  if (lock) return lock
  throw await busy(root, commitLock, `another commit has been under way for ${seconds} s`)
}

/** Waits for a lock that everybody holds for a short while; undefined where it is not free within so many seconds. */
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

/** The refusal of whoever finds a lock taken: exit code 7, with the name of its holder. */
export async function busy(root: string, name: string, subject: string): Promise<LakeError> {
  return new LakeError('busy', {
    subject,
    got: describeHolder(await holderOf(root, name)),
    next: 'wait until it has ended, then run the same command again; a job that was killed holds nothing',
  })
}

/** Whether nobody holds the lock now; takes nothing that it keeps. */
export function isFree(root: string, name: string): boolean {
  const hold = take(root, name)
  hold?.release()
  return hold !== undefined
}

/** Does work while nobody holds the lock, and nobody can take it; undefined where somebody does. */
export async function whileFree<T>(root: string, name: string, work: () => Promise<T>): Promise<T | undefined> {
  const hold = take(root, name)
  if (!hold) return undefined
  try {
    return await work()
  } finally {
    hold.release()
  }
}

/** Who holds a lock, or held it last when its process was killed. */
export async function holderOf(root: string, name: string): Promise<Holder | undefined> {
  const text = await textOf(inLake(root, holderFile(name)))
  return text === undefined ? undefined : (jsonOf(text) as Holder | undefined)
}

/** `process 123 on host (pitlake fetch) since 2024-03-01T00:00:00.000Z`. */
export function describeHolder(holder: Holder | undefined): string {
  if (!holder) return 'a process that has not said its name yet'
  const since = new Date(holder.since / 1000).toISOString()
  return `process ${holder.pid} on ${holder.host} (${holder.command}) since ${since}`
}

function take(root: string, name: string, within = 0): FileHold | undefined {
  try {
    mkdirSync(inLake(root, places.locks), { recursive: true })
  } catch (error) {
    throw diskError(error, `lock ${name}`)
  }
  return holdFile(inLake(root, lockFile(name)), within)
}

const prefix = 'pin-'
/** Nobody else takes a run's pin; whoever looks whether it is free holds it for a moment. Milliseconds. */
const patience = 5000

/**
 * Keeps vacuum from what is in the view, or in the journal, since this instant, for as long as the pin is held: by a
 * process that copies the lake, or stamps a result. The operating system lets go of it when the process dies.
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

/** Since when the oldest copy that is being taken needs what is there; undefined while nobody takes one. */
export async function pinnedSince(root: string): Promise<Micros | undefined> {
  let oldest: Micros | undefined
  for (const file of await namesIn(inLake(root, places.locks))) {
    if (!file.startsWith(prefix) || !file.endsWith('.lock')) continue
    const name = decodeSegment(file.slice(0, -'.lock'.length))
    if (isFree(root, name)) continue
    const since = (await holderOf(root, name))?.since ?? 0
    oldest = Math.min(oldest ?? since, since)
  }
  return oldest
}
