import { type CommitDeps, notePassing, sha256File } from '../../lake/ledger/commit.ts'
import { storedPassingFrom } from '../../lake/ledger/index-queries.ts'
import { runName } from '../../lake/ledger/job.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { statOf } from '../../lake/store/disk.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { mirrorOf } from '../../lake/store/marker.ts'

/** Clock, disk and holder that storing a head needs. */
export type HeadDeps = Pick<CommitDeps, 'nowMicros' | 'holder' | 'disk'>

const prefix = `${places.heads}/`

/** Records the digest of a file below `heads/`, so that its loss or change is noticed. */
export async function recordHeadFile(ledger: Ledger, path: string, deps: HeadDeps): Promise<void> {
  await note(ledger, path, await sha256File(inLake(ledger.root, path)), deps)
}

/** Forgets the digest of a file below `heads/`: the lake goes on without it. */
export async function forgetHeadFile(ledger: Ledger, path: string, deps: HeadDeps): Promise<void> {
  await note(ledger, path, null, deps)
}

async function note(ledger: Ledger, path: string, value: string | null, deps: HeadDeps): Promise<void> {
  await notePassing(ledger, runName(deps, 'head'), path, { at: Math.floor(deps.nowMicros()), value }, deps.disk)
}

/** Reads the SHA-256 of each file below `heads/` that this lake stored, by its path. */
export function recordedHeadFiles(ledger: Ledger): ReadonlyMap<string, string> {
  const recorded = new Map<string, string>()
  // The facts of a pulled lake are a third party's: only names that this program makes are considered.
  for (const [name, { value }] of storedPassingFrom(ledger, prefix))
    if (typeof value === 'string' && /^\d{10,15}\.(?:txt|tsr)$/.test(name)) recorded.set(prefix + name, value)
  return recorded
}

/** A file below `heads/` that is not as it was stored. */
export interface HeadProblem {
  readonly kind: 'head_lost' | 'head_changed'
  readonly path: string
  readonly found: string
}

/** Compares the files below `heads/` with the digests that were recorded when they were stored. */
export async function headProblems(ledger: Ledger): Promise<HeadProblem[]> {
  const problems: HeadProblem[] = []
  const isMirror = (await mirrorOf(ledger.root)) !== null
  for (const [path, digest] of recordedHeadFiles(ledger)) {
    const full = inLake(ledger.root, path)
    const stats = await statOf(full)
    // A mirror may have been pulled from a place without heads.
    if (stats === undefined && isMirror) continue
    if (stats === undefined) problems.push({ kind: 'head_lost', path, found: 'it is not there' })
    else if (!stats.isFile() || (await sha256File(full)) !== digest)
      problems.push({ kind: 'head_changed', path, found: 'its bytes do not match their checksum on record' })
  }
  return problems
}
