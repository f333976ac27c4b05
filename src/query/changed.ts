import { LakeError } from '../errors.ts'
import type { Engine } from '../store/engine.ts'
import { Ledger } from '../ledger/ledger.ts'
import { type Manifest, readManifest, firstChanged, readByViews } from '../views/manifest.ts'

/** So much is read on opening of files that nobody proved where they stand: a second's work. */
export const mostRead = 500_000_000

/**
 * Refuses a lake in which a file that the views read is not as it was committed, or as it was made for them. Files that
 * were touched since the views were made are read whole; the size of all others is compared.
 */
export async function refuseChanged(engine: Engine, folder: string): Promise<void> {
  using ledger = Ledger.glance(folder)
  if (ledger === undefined) return
  const [row] = await engine.rows('SELECT version FROM lake_info')
  const version = Number(row?.['version'])
  const manifest = await readManifest(folder, ['script'])
  const known = manifest?.version === version ? manifest : undefined
  await refuseOthers(ledger, known, version)
}

/** The same of the files that the views of a version read, whose manifest is told where its exports count, too. */
export async function refuseOthers(ledger: Ledger, manifest: Manifest | undefined, version: number): Promise<void> {
  const changed = await firstChanged(ledger.root, readByViews(ledger, manifest, version), mostRead)
  if (changed === undefined) return
  const { path, bytes, expected, got } = changed
  const next =
    bytes === null
      ? 'run pitlake views: it makes them anew'
      : 'run pitlake doctor to see what is damaged and what helps'
  throw new LakeError('integrity', { subject: path, expected, got, next })
}
