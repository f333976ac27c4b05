import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  type ReadStream,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  type WriteStream,
  writeSync,
} from 'node:fs'
import { appendFile, copyFile, lstat, mkdtemp, open, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { isWritable, realDisk } from './disk.ts'
import { inLake } from './layout.ts'

/*
 * Functions for reading files, and for writing those that are not committed yet: nothing here is durable. The steps of
 * a commit, and functions that remove and move files, are in `disk.ts`.
 */

/**
 * Mode of files that are not committed yet: for the owner of the lake only, because they may contain anything that a
 * provider sent.
 */
const ownerOnly = { mode: 0o600 }
const blockBytes = 1 << 20

/** Whether a file or folder of this name exists now. */
export function isThere(path: string): boolean {
  return existsSync(path)
}

/** Whether a real folder of this name exists, and not a link or a file. */
export async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() === true
}

/** Returns the path without links; the path itself if nothing exists there. */
export function realPath(path: string): string {
  return isThere(path) ? realpathSync(path) : path
}

/**
 * Returns the part of a file's path, relative to the lake, that is a link out of the lake; undefined if there is none.
 */
export function linkAbove(root: string, path: string): string | undefined {
  const home = realPath(root)
  const full = inLake(root, path)
  if (!isThere(full) || `${realpathSync.native(full)}/`.startsWith(`${home}/`)) return undefined
  const parts = path.split('/')
  const above = parts.map((_, n) => parts.slice(0, n + 1).join('/'))
  return above.find((part) => lstatSync(inLake(root, part)).isSymbolicLink()) ?? path
}

/** Reads the text of a file. */
export async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8')
}

/** Reads the text of a file; undefined if it cannot be read. */
export async function textOf(path: string): Promise<string | undefined> {
  return await readText(path).catch(() => undefined)
}

/** Reads the bytes of a file. */
export async function readBytes(path: string): Promise<Buffer> {
  return await readFile(path)
}

/** Reads the first bytes of a file, as many as `memory` has room for; fewer if it is shorter. */
export async function readInto(path: string, memory: Buffer): Promise<Buffer> {
  await using file = await open(path)
  let length = 0
  for (let read = -1; read !== 0 && length < memory.length; length += read)
    read = (await file.read(memory, length)).bytesRead
  return memory.subarray(0, length)
}

/** Reads the first and the last bytes of a file as text, one character per byte. */
export async function readEnds(path: string, length: number): Promise<readonly [head: string, tail: string]> {
  await using file = await open(path)
  const { size } = await file.stat()
  const read = async (at: number): Promise<string> => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, at)
    return buffer.toString('latin1', 0, bytesRead)
  }
  return [await read(0), await read(Math.max(0, size - length))]
}

/** Passes the file on in chunks of a megabyte until `take` returns false; returns the number of bytes read. */
export async function eachChunk(path: string, take: (chunk: Buffer, offset: number) => boolean): Promise<number> {
  const { size } = statSync(path)
  // Most bodies are far shorter than a chunk and are read at once.
  if (size < blockBytes) {
    if (size > 0) take(readFileSync(path), 0)
    return size
  }
  await using file = await open(path)
  const buffer = Buffer.from(new ArrayBuffer(blockBytes))
  let offset = 0
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, offset)
    if (bytesRead === 0 || !take(buffer.subarray(0, bytesRead), offset)) return offset
    offset += bytesRead
  }
}

/** Reads the bytes of a file from an offset on, block by block; an error destroys the stream. */
export function readStream(path: string, start = 0): ReadStream {
  return createReadStream(path, { start, highWaterMark: blockBytes })
}

/** Opens a stream into a file for the owner only; `a` appends to an existing file. */
export function writeStream(path: string, flags: 'w' | 'a' = 'w'): WriteStream {
  return createWriteStream(path, { ...ownerOnly, flags })
}

/** An open file to which blocks are written at once. */
export interface BlockWriter {
  readonly write: (bytes: Buffer) => void
  readonly close: () => void
}

/** Opens a new file for the owner alone. */
export function openBlocks(path: string): BlockWriter {
  const handle = openSync(path, 'w', ownerOnly.mode)
  return {
    write: (bytes: Buffer): void => {
      for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at)
    },
    close: (): void => closeSync(handle),
  }
}

/**
 * Returns the size of a file in bytes, 0 if there is none; synchronously, because waiting costs more than the call
 * itself.
 */
export function sizeNow(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Returns the size of a file in bytes. */
export async function sizeOf(path: string): Promise<number> {
  return (await stat(path)).size
}

/** Writes a file for the owner alone. */
export async function writePrivate(path: string, text: string | Uint8Array): Promise<void> {
  await writeFile(path, text, ownerOnly)
}

/** Adds text to a file for the owner alone. */
export async function appendPrivate(path: string, text: string): Promise<void> {
  await appendFile(path, text, ownerOnly)
}

/** Copies the bytes of a file. */
export async function copy(from: string, to: string): Promise<void> {
  await copyFile(from, to)
}

/** Sets the modification time of a file, in milliseconds since 1970. */
export async function touch(path: string, at: number): Promise<void> {
  await utimes(path, at / 1000, at / 1000)
}

/** Creates a folder outside of any lake for temporary files; disposing of it removes it. */
export async function temporaryFolder(within = tmpdir()): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(within, 'pitlake-'))
  return { path, [Symbol.asyncDispose]: () => realDisk.remove(path) }
}

/** Number by which Linux identifies a file system in memory. */
const memoryFiles = 0x1021994

/**
 * Returns the number of bytes that an engine may spill: three quarters of the free space, because others may need the
 * rest meanwhile.
 */
export function spillRoom(place: string): number {
  const { bavail, bsize } = statfsSync(dirname(place))
  return Math.floor(0.75 * bavail * bsize)
}

const spills = new Set<string>()

/**
 * Creates a private folder for data that do not fit into memory; on a disk if the system's temporary folder is in
 * memory.
 */
export function makeSpill(): string {
  const home = tmpdir()
  const isMemory = home === '/tmp' && statfsSync(home).type === memoryFiles
  const spill = mkdtempSync(join(isMemory && isWritable('/var/tmp') ? '/var/tmp' : home, 'pitlake-'))
  spills.add(spill)
  return spill
}

/** Removes such a folder with its contents. */
export function removeSpill(folder: string | undefined): void {
  if (folder !== undefined && spills.delete(folder)) rmSync(folder, { recursive: true, force: true })
}

/** Removes the spilled data of sessions that are still open, for a process that ends without closing them. */
export function removeSpills(): void {
  for (const folder of spills) removeSpill(folder)
}
