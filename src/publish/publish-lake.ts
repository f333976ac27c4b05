import type { CommitDeps } from '../ledger/commit.ts'
import { realDisk } from '../store/disk.ts'
import { pin } from '../store/pin.ts'
import { below } from './below.ts'
import type { Destination } from './destination.ts'
import { folderAt } from './folder.ts'
import { type Copied, type CopyDeps, copyLake } from './lake-copy.ts'

/** The folder of a destination that a lake is copied to. */
export const lakeFolder = 'lake'

/** Which version of which lake is copied, under the name of which run; `scratch` is a folder for what is on the way. */
export interface LakeInput {
  readonly root: string
  readonly to: Destination
  readonly version: number
  readonly run: string
  readonly scratch: string
}

/** Copies journal, stamps and the files of a version under `lake/` of a destination, for `pitlake pull`. */
export async function publishLake(input: LakeInput, deps: CommitDeps & CopyDeps): Promise<Copied> {
  const { root, to, version, run, scratch } = input
  const from = folderAt(root, { disk: deps.disk ?? realDisk, mark: run })
  await using held = new AsyncDisposableStack()
  held.use(await pin(root, run, { ...deps.holder, since: deps.nowMicros() }, deps))
  return await copyLake(
    { from, to: below(to, lakeFolder), until: version, mirrorOf: (lake) => `lake ${lake}`, scratch, near: false },
    deps,
  )
}
