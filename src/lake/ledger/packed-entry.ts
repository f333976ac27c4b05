import { crc32, gunzipSync, gzipSync } from 'node:zlib'
import { LakeError } from '../../base/errors.ts'
import { readBytes, sizeNow } from '../store/files.ts'
import { entryFile, inLake } from '../store/layout.ts'
import { damagedDocument, putItBack } from './entry.ts'

// Entries stand in the journal as gzip. The digest that an entry is named by is that of its text: it does not depend on
// who compressed it, and `zcat` shows what was hashed.

/**
 * Bytes of the largest entry, its text and its file: what decompresses to more is refused before it takes the memory.
 */
export const longestEntry = 256_000_000

/** What each file of an entry begins with: gzip, without a name, a time, or the system that wrote it. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])
/** Bytes at the end of a gzip file: checksum and length of the text. */
const trailerLength = 8

/** Compresses the text of an entry for its file; one that could not be read back is refused. */
export function packEntry(text: string, name: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length > longestEntry)
    throw new LakeError('incomplete', {
      subject: `journal entry ${name}`,
      expected: `at most ${longestEntry} bytes`,
      got: `${bytes.length}`,
      next: 'request fewer series at once, then run the same command again',
    })
  const packed = gzipSync(bytes)
  header.copy(packed)
  return packed
}

/** The text in the bytes of an entry's file; `name` is used in messages. */
export function unpackEntry(packed: Buffer, name: string): string {
  const subject = `journal entry ${name}`
  if (packed.length === 0) throw damagedDocument(subject, 'an empty file')
  if (!packed.subarray(0, header.length).equals(header)) throw damagedDocument(subject, 'something else')
  const text = gunzipped(packed, subject)
  // Bytes behind the end would go unnoticed otherwise.
  const trailer = packed.subarray(-trailerLength)
  if (trailer.readUInt32LE(0) !== crc32(text) || trailer.readUInt32LE(4) !== text.length)
    throw damagedDocument(subject, 'bytes that do not match its checksum')
  return text.toString()
}

function gunzipped(packed: Buffer, subject: string): Buffer {
  try {
    return gunzipSync(packed, { maxOutputLength: longestEntry })
  } catch (error) {
    const large = error instanceof RangeError
    const got = large ? `more than ${longestEntry} bytes` : 'bytes that do not match its checksum'
    throw damagedDocument(subject, got, error)
  }
}

/** The text of the entry of a version in a lake's journal. */
export async function readEntryText(root: string, version: number): Promise<string> {
  const name = entryFile(version)
  const packed = await boundedBytes(inLake(root, name)).catch((cause: unknown) => {
    throw new LakeError('integrity', { subject: `journal entry ${name} cannot be read`, next: putItBack, cause })
  })
  if (packed === undefined) throw damagedDocument(`journal entry ${name}`, `a file of more than ${longestEntry} bytes`)
  return unpackEntry(packed, name)
}

/** The bytes of a file; undefined if there are more than an entry has. */
async function boundedBytes(path: string): Promise<Buffer | undefined> {
  return sizeNow(path) > longestEntry ? undefined : await readBytes(path)
}
