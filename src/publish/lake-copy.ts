import pLimit from 'p-limit'
import { LakeError, usage } from '../errors.ts'
import { sha256File } from '../ledger/commit.ts'
import { decodeEntry } from '../ledger/entry.ts'
import type { StampedFile } from '../ledger/stamps.ts'
import { realDisk } from '../store/disk.ts'
import { readBytes, sizeOf } from '../store/files.ts'
import { checkpointFile, entryFile, inLake, places } from '../store/layout.ts'
import { mirrorMarker, parseMarker } from '../store/marker.ts'
import type { Destination } from './destination.ts'
import { neededBy } from './lake-files.ts'
import { digestOf, journalAt, type Listing, newestDigest, type Staged, stageJournal, Vanished } from './lake-journal.ts'

/** From where a lake is copied to where. */
export interface CopyInput {
  readonly from: Destination
  readonly to: Destination
  /** No version after this one is copied. */
  readonly until?: number
  /** What the copy says that it is a mirror of. */
  readonly mirrorOf: (lake: string) => string
  /** An empty folder of this machine for what is on the way; it gets a folder a try. */
  readonly scratch: string
  /** The entries that stand at the target can be read as quickly as local files. */
  readonly near: boolean
  /** Files that stand there are read and compared, too, not only their sizes. */
  readonly thorough?: boolean
}

/** What copying needs of the world. */
export interface CopyDeps {
  readonly signal: AbortSignal
  /** Told now and then how many of so many files have come. */
  readonly onFile?: (done: number, of: number) => void
}

/** What a copy came to. */
export interface Copied {
  readonly lake: string
  readonly version: number
  /** The version that stood there before; 0 for none. */
  readonly before: number
  /** What travelled: data files and what stamps need. */
  readonly files: number
  readonly bytes: number
  readonly entries: number
  readonly stamps: number
  /** The newest entry was written anew where the lake is, and so it was here. */
  readonly rewritten: boolean
}

/** Files that travel at once. */
const atOnce = 6
const mostTries = 5

/**
 * Makes the target hold what the newest version of a lake needs: the files that are missing, each checked against its
 * digest, then the notes of stamped results, then the journal, entry by entry. Whoever reads the target at any instant
 * finds a whole version; killed anywhere and run again it ends the same.
 */
export async function copyLake(input: CopyInput, deps: CopyDeps): Promise<Copied> {
  for (let tries = 1; ; tries++) {
    try {
      return await copyOnce({ ...input, scratch: `${input.scratch}/${tries}` }, deps)
    } catch (error) {
      if (!(error instanceof Vanished)) throw error
      // A lake that goes on merges and folds: then its newest version needs that file no longer.
      if (tries === mostTries)
        throw new LakeError('integrity', {
          subject: `${input.from.uri}: ${error.message}`,
          expected: 'a file that its journal names',
          got: 'no such file',
          next: 'run pitlake doctor where that lake is; nothing was taken over',
        })
    } finally {
      await realDisk.remove(`${input.scratch}/${tries}`)
    }
  }
}

async function copyOnce(input: CopyInput, deps: CopyDeps): Promise<Copied> {
  const { from, to } = input
  const source = await journalAt(from, input.until)
  if (source.newest === 0)
    throw usage(`no lake in ${from.uri}`, {
      expected: 'a journal',
      next: 'name a lake folder or what publish --lake wrote',
    })
  const target = await journalAt(to)
  using staged = await stage(input, source, target)
  const { lake, version, provider } = staged.index.head()
  if (lake === null) throw new RangeError('a version without a lake')
  await agree(input, lake, target)
  const before = target.newest
  const ahead = { lake, version: before, before, files: 0, bytes: 0, entries: 0, stamps: 0, rewritten: false }
  // What another publisher has brought further is left as it is.
  if (before > version && input.until !== undefined) return ahead
  const rewritten = await followsOn(input, staged, target)
  if (!(await to.read(places.marker)))
    await to.create(places.marker, mirrorMarker(lake, provider?.synthetic ?? false, input.mirrorOf(lake)))
  const needed = await neededBy(staged, from)
  const moved = await bringFiles(input, needed.files, deps)
  await bringRuns(input, deps)
  const stamps = await bringNotes(to, staged.root, needed.notes)
  const entries = await bringJournal(to, staged, target, rewritten)
  return { lake, version, before, ...moved, entries, stamps, rewritten }
}

/** The source's journal, proved; entries that stand at a near target need not travel, but for its last one. */
async function stage({ from, to, scratch, near }: CopyInput, source: Listing, target: Listing): Promise<Staged> {
  const same = source.newest >= target.newest
  const known = new Set(target.entries.filter((version) => same && version < target.newest).map(entryFile))
  const held = async (path: string): Promise<Buffer | undefined> =>
    near && known.has(path) ? await to.read(path) : undefined
  try {
    return await stageJournal(from, source, `${scratch}/near`, held)
  } catch (error) {
    if (!near || !(error instanceof LakeError) || known.size === 0) throw error
    // What stands here may be what does not fit.
    return await stageJournal(from, source, `${scratch}/all`, async () => undefined)
  }
}

/** The target must be empty, or a mirror of the same lake. */
async function agree({ from, to }: CopyInput, lake: string, target: Listing): Promise<void> {
  const text = await to.read(places.marker)
  if (!text && target.newest === 0) return
  const marker = text && parseMarker(text.toString())
  if (marker && marker.lake === lake && marker.mirrorOf !== null) return
  const got = marker ? `${marker.mirrorOf === null ? 'the' : 'a mirror of'} lake ${marker.lake}` : 'something else'
  throw usage(to.uri, {
    expected: `nothing, or a mirror of lake ${lake} (${from.uri})`,
    got,
    next: 'name another folder',
  })
}

/** Whether the target's newest entry was written anew at the source; any other difference between both is refused. */
async function followsOn({ from, to, scratch }: CopyInput, staged: Staged, target: Listing): Promise<boolean> {
  const { newest } = target
  const digest = await newestDigest(to, target, `${scratch}/target`)
  if (digest === null) return false
  const there = digestOf(staged.index, newest)
  if (there === digest) return false
  if (staged.entries.includes(newest)) {
    const text = await readBytes(inLake(staged.root, entryFile(newest)))
    if (decodeEntry(text.toString(), entryFile(newest)).entry.replaces === digest) return true
  }
  throw new LakeError('integrity', {
    subject: `${from.uri}: version ${newest}`,
    expected: `the entry that ${to.uri} holds, ${digest.slice(0, 12)}`,
    got: there === null ? `version ${staged.index.head().version} as the newest` : `another one, ${there.slice(0, 12)}`,
    next: 'that lake went back, or is another copy of it: mirror it into an empty folder',
  })
}

async function bringFiles(
  input: CopyInput,
  needed: readonly StampedFile[],
  { signal, onFile }: CopyDeps,
): Promise<{ files: number; bytes: number }> {
  const { from, to, scratch } = input
  const missing = await missingAt(input, needed)
  const limit = pLimit(atOnce)
  const failed = new AbortController()
  let done = 0
  const ends = await Promise.allSettled(
    missing.map(
      async (file, n) =>
        await limit(async () => {
          if (failed.signal.aborted) return
          try {
            stopAt(signal, from, to)
            await bringFile(from, to, file, `${scratch}/file-${n}`)
            onFile?.(++done, missing.length)
          } catch (error) {
            failed.abort()
            throw error
          }
        }),
    ),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return { files: missing.length, bytes: missing.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** What does not stand at the target as it should, by its size, or by its bytes where everything is read. */
async function missingAt(
  { to, scratch, thorough }: CopyInput,
  needed: readonly StampedFile[],
): Promise<readonly StampedFile[]> {
  const there = new Map<string, number>()
  for (const place of new Set(needed.map(({ path }) => path.slice(0, path.indexOf('/')))))
    for (const { path, bytes } of await to.list(place)) there.set(path, bytes)
  const missing: StampedFile[] = []
  for (const file of needed) {
    const stands = there.get(file.path) === file.bytes
    const local = `${scratch}/there`
    const sound = stands && (thorough !== true || ((await to.get(file.path, local)) && (await isSound(local, file))))
    if (!sound) missing.push(file)
  }
  return missing
}

async function isSound(local: string, { bytes, sha256 }: StampedFile): Promise<boolean> {
  return (await sizeOf(local)) === bytes && (await sha256File(local)).startsWith(sha256)
}

async function bringFile(from: Destination, to: Destination, file: StampedFile, local: string): Promise<void> {
  const { path, bytes, sha256 } = file
  if (!(await from.get(path, local))) throw new Vanished(path)
  const [size, digest] = [await sizeOf(local), await sha256File(local)]
  if (size !== bytes || !digest.startsWith(sha256))
    throw new LakeError('integrity', {
      subject: `${from.uri}: ${path}`,
      expected: `${bytes} bytes, SHA-256 ${sha256.slice(0, 12)}…`,
      got: size === bytes ? `SHA-256 ${digest.slice(0, 12)}…` : `${size} bytes`,
      next: 'run pitlake doctor where that lake is; nothing was taken over',
    })
  await to.put(path, local)
  await realDisk.remove(local)
}

/** What runs wrote down only ever grows; a last line without its end does not count. */
async function bringRuns({ from, to, scratch }: CopyInput, { signal }: CopyDeps): Promise<void> {
  const there = new Map((await to.list(places.runs)).map(({ path, bytes }) => [path, bytes]))
  for (const { path, bytes } of await from.list(places.runs)) {
    if (!/^runs\/[\w%.-]+\.jsonl$/.test(path) || bytes <= (there.get(path) ?? 0)) continue
    stopAt(signal, from, to)
    const local = `${scratch}/run`
    if (await from.get(path, local)) await to.put(path, local)
    await realDisk.remove(local)
  }
}

async function bringNotes(to: Destination, root: string, notes: readonly string[]): Promise<number> {
  const there = new Set((await to.list(places.stamps)).map(({ path }) => path))
  const missing = notes.filter((path) => !there.has(path))
  for (const path of missing) await to.create(path, await readBytes(inLake(root, path)))
  return missing.length
}

/** The checkpoint, which makes older entries superfluous, then the entries in their order: each of them is a commit. */
async function bringJournal(to: Destination, staged: Staged, target: Listing, rewritten: boolean): Promise<number> {
  const { checkpoint, root } = staged
  if (rewritten) await to.remove(entryFile(target.newest))
  if (checkpoint !== null && !target.checkpoints.includes(checkpoint))
    await to.put(checkpointFile(checkpoint), inLake(root, checkpointFile(checkpoint)))
  const old = (version: number): boolean => version <= (checkpoint ?? 0)
  for (const version of target.entries.filter(old)) await to.remove(entryFile(version))
  for (const version of target.checkpoints)
    if (old(version) && version !== checkpoint) await to.remove(checkpointFile(version))
  const held = rewritten ? target.newest - 1 : target.newest
  const fresh = staged.entries.filter((version) => version > held)
  for (const version of fresh) {
    const bytes = await readBytes(inLake(root, entryFile(version)))
    if ((await to.create(entryFile(version), bytes)) === 'created') continue
    if ((await to.read(entryFile(version)))?.equals(bytes) !== true)
      throw new LakeError('integrity', {
        subject: `${to.uri}/${entryFile(version)}`,
        expected: 'no entry, or the same',
        got: 'another one',
        next: 'two lakes of one id are copied there: name another folder for one of them',
      })
  }
  return fresh.length
}

function stopAt(signal: AbortSignal, from: Destination, to: Destination): void {
  if (!signal.aborted) return
  throw new LakeError('stopped', {
    subject: `copying ${from.uri} to ${to.uri}`,
    got: 'an interrupt',
    next: 'run the same command again: what has come is kept',
  })
}
