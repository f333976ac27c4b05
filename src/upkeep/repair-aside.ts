import { moveStray, setAside, strayFolders, unfitEntry } from '../ledger/aside.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import { realDisk } from '../store/disk.ts'
import { lockCommit } from '../store/lock.ts'

/** Takes out of the journal's way what no version can be made past: a last entry that cannot be applied, and folders. */
export async function clearJournal(root: string, deps: CommitDeps): Promise<string[]> {
  const disk = deps.disk ?? realDisk
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done: string[] = []
  for (const name of await strayFolders(root)) done.push(await moveStray(disk, root, name, deps.nowMicros()))
  const unfit = await unfitEntry(root)
  if (unfit) done.push(await setAside(disk, root, unfit))
  return done
}
