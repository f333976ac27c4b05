import { usage } from '../errors.ts'
import type { JobDeps } from '../ledger/job.ts'
import { liesIn } from '../store/disk.ts'
import { below } from './below.ts'
import type { Destination } from './destination.ts'
import type { Copied, CopyDeps } from './lake-copy.ts'
import { lakeFolder, lakeGoing, leftOnTheWay, publishLake } from './publish-lake.ts'
import { publishing } from './publishing.ts'

/** Which lake is kept a second time, and where. */
export interface BackupInput {
  readonly root: string
  readonly to: Destination
  /** Reads what stands there already, too, and brings anew what is not as it should be. */
  readonly thorough: boolean
}

/** What a backup did. */
export interface BackedUp extends Copied {
  readonly destination: string
  /** Files there that its newest version needs no longer, and leftovers of killed copies: these are gone. */
  readonly removed: number
}

/**
 * Brings `lake/` of a destination up to the newest version of a lake, beside whatever writes to it: what is missing
 * travels, what that version and the stamped results do not need goes afterwards.
 */
export async function backup(input: BackupInput, deps: JobDeps & CopyDeps): Promise<BackedUp> {
  const { root, to, thorough } = input
  if (!to.uri.includes('://') && (liesIn(root, to.uri) || liesIn(to.uri, root)))
    throw usage(`destination ${to.uri}`, { expected: 'a folder apart from the lake', got: `one with or in ${root}` })
  // What publish writes to `lake/` is the same copy: one at a time.
  return await publishing({ root, name: 'backup' }, deps, async ({ ledger, id, spool, begin }) => {
    const { version } = ledger.head()
    const done = { files: 0, bytes: 0 }
    await using behind = new AsyncDisposableStack()
    // The copy must not hold a run that never ends: this one is written down behind it.
    behind.defer(async () => await begin({ version }, () => done))
    const copied = await publishLake({ root, to, version, run: id, scratch: spool.file('lake'), thorough }, deps)
    done.files = copied.files
    done.bytes = copied.bytes
    const going = await lakeGoing(to, ledger, deps.nowMicros())
    const left = (await leftOnTheWay(below(to, lakeFolder))).map(({ path }) => `${lakeFolder}/${path}`)
    const gone = new Set([...going.map(({ path }) => path), ...left])
    for (const path of gone) await to.remove(path)
    return { destination: to.uri, ...copied, removed: gone.size }
  })
}
