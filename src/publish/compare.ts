import { LakeError } from '../errors.ts'
import { sha256File } from '../ledger/commit.ts'
import type { StampedFile } from '../ledger/stamps.ts'
import { sizeOf } from '../store/files.ts'
import { type Destination, stopAt } from './destination.ts'

/**
 * Compares names and sizes of files with what is there, and the bytes, too, where they may pass through a `local` path. A
 * digest may be its beginning only; nothing is read where none is known.
 */
export async function comparedAt(
  to: Destination,
  wanted: readonly StampedFile[],
  reading?: { readonly local: string; readonly signal: AbortSignal },
) {
  const sizes = new Map<string, number>()
  for (const folder of new Set(wanted.map(({ path }) => path.slice(0, path.indexOf('/')))))
    for (const { path, bytes } of await to.list(folder)) sizes.set(path, bytes)
  const missing = new Set(wanted.filter(({ path, bytes }) => sizes.get(path) !== bytes).map(({ path }) => path))
  const changed = new Set<string>()
  for (const file of wanted) {
    if (!reading || file.sha256 === '' || missing.has(file.path)) continue
    stopAt(reading.signal, `reading ${to.uri}`)
    if (!(await to.get(file.path, reading.local))) missing.add(file.path)
    else if ((await unlike(reading.local, file)) !== null) changed.add(file.path)
  }
  return {
    /** Paths of no file, or of one of another size. */
    missing,
    /** Of files that are as long as they should be, with other bytes. */
    changed,
    /** Every path of their folders that is there. */
    there: new Set(sizes.keys()),
  }
}

/** How a local file differs from what it should be; null where it does not. */
export async function unlike(
  local: string,
  { bytes, sha256 }: StampedFile,
): Promise<{ readonly expected: string; readonly got: string } | null> {
  const size = await sizeOf(local)
  const digest = size === bytes ? await sha256File(local) : ''
  if (size === bytes && digest.startsWith(sha256)) return null
  const expected = `${bytes} bytes, SHA-256 ${sha256.slice(0, 12)}…`
  return { expected, got: size === bytes ? `SHA-256 ${digest.slice(0, 12)}…` : `${size} bytes` }
}

/** Refuses to name files that were taken and are not there: a destination that does not keep what it answers for. */
export async function requireThere(to: Destination, wanted: readonly StampedFile[]): Promise<void> {
  const { missing } = await comparedAt(to, wanted)
  const [first, ...others] = wanted.filter(({ path }) => missing.has(path))
  if (first === undefined) return
  const more = others.length === 0 ? '' : `, nor ${others.length} others`
  throw new LakeError('incomplete', {
    subject: `${to.uri}/${first.path}`,
    expected: `the ${first.bytes} bytes that it took`,
    got: `a list without them${more}`,
    next: 'no reader was told of them; look at that storage, then run the same command again',
  })
}
