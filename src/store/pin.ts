import type { Micros } from '../time.ts'
import { namesIn, realDisk } from './disk.ts'
import { decodeSegment, holderFile, inLake, lockFile, places } from './layout.ts'
import { busy, type Holder, holderOf, isFree, type Lock, tryLock } from './lock.ts'

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
