import { LakeError } from '../errors.ts'
import { statOf } from '../store/disk.ts'
import type { Engine } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import { inLake } from '../store/layout.ts'
import { Ledger } from '../ledger/ledger.ts'

/**
 * Refuses a lake in which a file that the views read is not of the size that was committed. What lies under the same size is
 * proved by doctor and verify; a file that is not there is an error of whoever reads it.
 */
export async function refuseChanged(engine: Engine, folder: string): Promise<void> {
  using ledger = Ledger.glance(folder)
  if (ledger === undefined) return
  const [row] = await engine.rows('SELECT version FROM lake_info')
  const files = liveFiles(ledger, { version: Number(row?.['version']) })
  const sizes = await Promise.all(files.map(async ({ path }) => (await statOf(inLake(folder, path)))?.size))
  const changed = files.findIndex(({ bytes }, i) => sizes[i] !== undefined && sizes[i] !== bytes)
  const file = files[changed]
  if (file === undefined) return
  throw new LakeError('integrity', {
    subject: file.path,
    expected: `the ${file.bytes} bytes that were committed`,
    got: `${sizes[changed]} bytes`,
    next: 'run pitlake doctor to see what is damaged and what helps',
  })
}
