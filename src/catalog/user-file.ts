import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { LakeError, usage } from '../base/errors.ts'

/** Bytes of a file of settings at most: those that people write have some thousands. */
const longestSettings = 16_000_000

/**
 * Reads a file of settings (a configuration, a catalogue): a regular file of at most 16 MB. A device, a pipe or a
 * folder is refused before a byte of it is read; opening a pipe does not wait for its writer.
 */
export function readSettingsFile(path: string, subject: string, expected: string): Buffer {
  let handle: number
  try {
    handle = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    // The file is not to blame if the process may open no more files.
    if (code === 'EMFILE' || code === 'ENFILE')
      throw new LakeError('incomplete', {
        subject,
        got: `${code}: too many open files`,
        next: 'raise the limit (ulimit -n), then run the same command again',
        cause,
      })
    // A socket cannot be opened at all.
    throw usage(subject, { expected, got: code === 'ENXIO' ? 'a socket' : (code ?? 'another error'), cause })
  }
  try {
    const stat = fstatSync(handle)
    if (!stat.isFile()) throw usage(subject, { expected: 'a regular file', got: kindOf(stat) })
    return readAtMost(handle, longestSettings, subject)
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException
    if (syscall === undefined) throw cause
    throw usage(subject, { expected, got: code ?? 'another error', cause })
  } finally {
    closeSync(handle)
  }
}

/** Reads an open file, which may still grow; more than `most` bytes are refused. */
function readAtMost(handle: number, most: number, subject: string): Buffer {
  const blocks: Buffer[] = []
  for (let bytes = 0; ; ) {
    const block = Buffer.allocUnsafe(1 << 16)
    const read = readSync(handle, block)
    if (read === 0) return Buffer.concat(blocks)
    bytes += read
    if (bytes > most) throw usage(subject, { expected: `at most ${most / 1_000_000} MB`, got: 'more' })
    blocks.push(block.subarray(0, read))
  }
}

/** Reads a file that a person names on a command line, or standard input: of any kind, of bounded length. */
export function readBounded(file: string | 0, most: number, subject: string): string {
  const handle = file === 0 ? 0 : openSync(file, 'r')
  try {
    return readAtMost(handle, most, subject).toString('utf8')
  } finally {
    if (handle !== 0) closeSync(handle)
  }
}

function kindOf(stat: ReturnType<typeof fstatSync>): string {
  if (stat.isDirectory()) return 'a folder'
  if (stat.isFIFO()) return 'a pipe'
  return stat.isSocket() ? 'a socket' : 'a device'
}
