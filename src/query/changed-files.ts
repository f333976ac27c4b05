import { LakeError } from '../base/errors.ts'
import type { Engine } from '../lake/store/engine.ts'
import { Ledger } from '../lake/ledger/ledger.ts'
import { type Manifest, readManifest, firstChanged, readByViews } from './views/manifest.ts'
import { bytesProblem } from '../lake/ledger/commit.ts'
import { filesOnDisk } from '../lake/ledger/index-queries.ts'
import { isThere } from '../lake/store/files.ts'
import { inLake } from '../lake/store/layout.ts'

/** Maximum bytes read on opening from files that are not proved intact: a second's work. */
const mostRead = 500_000_000

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
  const knownManifest = manifest?.version === version ? manifest : undefined
  await refuseOthers(ledger, knownManifest, version)
}

/** Refuses changed files among those that the views of a version read; with a manifest its exports count, too. */
export async function refuseOthers(ledger: Ledger, manifest: Manifest | undefined, version: number): Promise<void> {
  const changed = await firstChanged(ledger.root, readByViews(ledger, manifest, version), mostRead)
  if (changed === undefined) return
  const { path, bytes, expected, got } = changed
  const next =
    bytes === null ? 'run pitlake views: it rebuilds them' : 'run pitlake doctor to see what is damaged and what helps'
  throw new LakeError('integrity', { subject: path, expected, got, next })
}

/**
 * Finds damage in a lake that may explain an unforeseen failure: the engine reports only what it found in a file that
 * it cannot read. Null if every file is as it was committed, as far as that can be checked in a second.
 */
export async function damageBehind(folder: string, cause: unknown): Promise<LakeError | null> {
  using ledger = Ledger.glance(folder)
  if (ledger === undefined) return null
  const files = filesOnDisk(ledger).map(({ path, bytes, sha256 }) => ({ path, bytes, checksum: sha256 }))
  const missingFile = files.find(({ path }) => !isThere(inLake(folder, path)))
  const closed = missingFile && (await bytesProblem(folder, { ...missingFile, sha256: missingFile.checksum }, false))
  const wrong =
    missingFile === undefined
      ? await firstChanged(folder, files, mostRead)
      : {
          path: closed?.path ?? missingFile.path,
          expected: `the ${missingFile.bytes} bytes that were committed`,
          got: closed?.kind === 'file_denied' ? closed.found : 'no such file',
        }
  if (wrong === undefined) return absentBehind(cause)
  const { path, expected, got } = wrong
  const next = 'run pitlake doctor to see what is damaged and what helps'
  return new LakeError('integrity', { subject: path, expected, got, next, cause })
}

/**
 * Builds the error for a file of an earlier version that the engine did not find, and without which the lake still
 * works; null if the cause is different.
 */
function absentBehind(cause: unknown): LakeError | null {
  const [, subject] = /No files found that match the pattern "([^"]+\.parquet)"/.exec(String(cause)) ?? []
  if (subject === undefined) return null
  const got = 'no such file: the lake goes on without it'
  const next = 'put it back from a copy of the lake'
  return new LakeError('integrity', { subject, expected: 'a file of an earlier version', got, next, cause })
}
