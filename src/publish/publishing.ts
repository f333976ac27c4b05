import { usage } from '../errors.ts'
import { type JobDeps, type Run, withLake } from '../ledger/job.ts'
import { openSpool, type Spool } from '../ledger/sweep.ts'

/** A run of whoever changes a destination, of a lake that has a version. */
export interface PublishingRun extends Run {
  readonly lake: string
  /** For what is on the way; gone at the end. */
  readonly spool: Spool
}

/** The frame of every job that writes to a destination: one at a time, and none without something to publish. */
export async function publishing<T>(
  { root, name }: { readonly root: string; readonly name: string },
  deps: JobDeps,
  work: (run: PublishingRun) => Promise<T>,
): Promise<T> {
  return await withLake({ root, name, lock: 'publish' }, deps, async (run) => {
    const { lake } = run.ledger.head()
    if (lake === null)
      throw usage(`lake ${root}`, { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
    await using spool = await openSpool(root, run.id, deps)
    return { value: await work({ ...run, lake, spool }), stopped_by: null, error: null }
  })
}
