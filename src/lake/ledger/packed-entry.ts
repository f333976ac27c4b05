import { requireFileError } from '../store/file-errors.ts'
import { crc32, gunzipSync, gzipSync } from 'node:zlib'
import { LakeError } from '../../base/errors.ts'
import { readBytes, sizeNow } from '../store/files.ts'
import { entryFile, inLake } from '../store/layout.ts'
import { damagedDocument, putItBack } from './entry.ts'

// Entries are stored in the journal as gzip. The digest that identifies an entry is that of its text, so it does not
// depend on the compressor, and `zcat` shows exactly what was hashed.

/**
 * Bytes of the largest entry, of its text and of its file; a file that decompresses to more is refused before it takes
 * the memory.
 */
export const longestEntry = 256_000_000

/** First bytes of each file of an entry: gzip, without a name, a time, or the system that wrote it. */
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

/** Decompresses the text of an entry from the bytes of its file; `name` is used in messages. */
export function unpackEntry(packed: Buffer, name: string): string {
  const subject = `journal entry ${name}`
  if (packed.length === 0) throw damagedDocument(subject, 'an empty file')
  if (!packed.subarray(0, header.length).equals(header)) throw damagedDocument(subject, 'something else')
  const text = gunzipped(packed, subject)
  // Bytes after the end would otherwise go unnoticed.
  const trailer = packed.subarray(-trailerLength)
  if (trailer.readUInt32LE(0) !== crc32(text) || trailer.readUInt32LE(4) !== text.length)
    throw damagedDocument(subject, 'bytes that do not match its checksum')
  return text.toString()
}

function gunzipped(packed: Buffer, subject: string): Buffer {
  try {
    return gunzipSync(packed, { maxOutputLength: longestEntry })
  } catch (error) {
    requireFileError(error, `reading ${subject}`)
    const large = error instanceof RangeError
    const got = large ? `more than ${longestEntry} bytes` : 'bytes that do not match its checksum'
    throw damagedDocument(subject, got, error)
  }
}

/** Reads the text of the entry of a version from a lake's journal. */
export async function readEntryText(root: string, version: number): Promise<string> {
  const name = entryFile(version)
  const packed = await boundedBytes(inLake(root, name)).catch((cause: unknown) => {
    requireFileError(cause, `reading journal entry ${name}`)
    throw new LakeError('integrity', { subject: `journal entry ${name} cannot be read`, next: putItBack, cause })
  })
  if (packed === undefined) throw damagedDocument(`journal entry ${name}`, `a file of more than ${longestEntry} bytes`)
  return unpackEntry(packed, name)
}

/** Reads the bytes of a file; undefined if there are more than an entry may have. */
async function boundedBytes(path: string): Promise<Buffer | undefined> {
  return sizeNow(path) > longestEntry ? undefined : await readBytes(path)
}
