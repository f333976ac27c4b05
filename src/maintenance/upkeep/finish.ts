import type { Catalogue } from '../../catalog/catalogue.ts'
import type { RewriteDeps } from '../../lake/ledger/commit.ts'
import type { RunEnd } from '../../lake/ledger/job.ts'

/** Dependencies of finishing a run. */
interface FinishDeps {
  readonly catalogue: Catalogue
  readonly deps: RewriteDeps
  readonly note: (text: string) => void
}

/**
 * Merges small files, on one thread, which takes the least memory, and leaves views of the newest version. The points
 * are committed already, so a failure to merge is a note, and the next run mends it.
 */
export async function finishRun(end: RunEnd, { catalogue, deps, note }: FinishDeps): Promise<void> {
  if (end.ledger.head().version === 0) return
  if (end.commits > 0)
    await noted('merging small files', note, async () => {
      // Loaded only now: a run that added nothing does not need it.
      const { mergeSmallFiles } = await import('./merge-jobs.ts')
      await mergeSmallFiles(end.ledger, { threads: 1, ...deps }, end.run)
    })
  const { makeVersionCurrent } = await import('../../query/views/current.ts')
  // The command reports at its end what keeps the views from being made: it tries once more.
  await makeVersionCurrent(end.ledger, { catalogue, deps }).catch(() => undefined)
}

async function noted(doing: string, note: (text: string) => void, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    note(`${doing} failed, the data are safe: ${error instanceof Error ? error.message : String(error)}`)
  }
}
