import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { readStream } from './files.ts'

/** Compressions of text files, with the ending of their names and the first bytes of their content. */
const compressions = [
  { name: 'gzip', ending: '.gz', mark: Buffer.from([0x1f, 0x8b]), decompressor: createGunzip },
  { name: 'zstd', ending: '.zst', mark: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), decompressor: createZstdDecompress },
] as const

/** Finds the compression that the name of a file states, in upper or lower case; undefined if it states none. */
function compressionOf(path: string) {
  return compressions.find(({ ending }) => path.toLowerCase().endsWith(ending))
}

/**
 * Builds the option of read_csv and read_json that names the compression of files; '' if they have none or several.
 * DuckDB itself recognises it only by endings in lower case.
 */
export function decompressionSql(...paths: readonly string[]): string {
  const names = new Set(paths.map((path) => compressionOf(path)?.name))
  const [name] = names
  return names.size > 1 || name === undefined ? '' : `, compression = '${name}'`
}

/** Returns the ending of the name of a file by the compression of its content: `.gz`, `.zst` or ''. */
export function compressedEnding(content: Buffer): string {
  return compressions.find(({ mark }) => content.subarray(0, mark.length).equals(mark))?.ending ?? ''
}

/** Reads a compressed file to its end; rejects if it is cut off, because DuckDB would read the part that there is. */
export async function proveWhole(path: string): Promise<void> {
  const decompressor = compressionOf(path)?.decompressor()
  if (decompressor === undefined) return
  await pipeline(readStream(path), decompressor, async (chunks: AsyncIterable<unknown>) => {
    for await (const _ of chunks);
  })
}
