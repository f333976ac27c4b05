import type { Catalogue } from '../../catalog/catalogue.ts'
import type { RewriteDeps } from '../../lake/ledger/commit.ts'
import type { RunEnd } from '../../lake/ledger/job.ts'
import { readManifest } from '../../query/views/manifest.ts'

/** What finishing a run needs. */
interface FinishDeps {
  readonly catalogue: Catalogue
  readonly deps: RewriteDeps
  readonly note: (text: string) => void
}

/**
 * Merges small files, on one thread, which takes the least memory, and makes the views anew. The points are committed
 * already, so a failure here is a note, and the next run or `pitlake views` mends it. A run that changed and asked
 * nothing leaves views alone that are whole.
 */
export async function finishRun({ ledger, run, commits, requests }: RunEnd, { catalogue, deps, note }: FinishDeps) {
  const idle = commits === 0 && requests === 0
  if (ledger.head().version === 0 || (idle && (await readManifest(ledger.root)))) return
  await noted('telling the state', note, async () => {
    const { completeState } = await import('../../trust/heads/complete.ts')
    await completeState(ledger, deps)
  })
  if (commits > 0)
    await noted('merging small files', note, async () => {
      // Loaded only now, as the views are: a run that brought nothing needs neither.
      const { mergeSmallFiles } = await import('./compact.ts')
      await mergeSmallFiles(ledger, { threads: 1, ...deps }, run)
    })
  await noted('making the views', note, async () => {
    const { buildViews } = await import('../../query/views/build.ts')
    await buildViews(ledger, { catalogue, deps })
  })
}

async function noted(doing: string, note: (text: string) => void, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    note(`${doing} failed, the data are safe: ${error instanceof Error ? error.message : String(error)}`)
  }
}
