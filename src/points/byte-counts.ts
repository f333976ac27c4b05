import { eachChunk } from '../store/files.ts'

/** What the raw bytes of a body tell without being parsed. */
export interface ByteCounts {
  readonly quotes: number
  readonly commas: number
  /** Whether the letters occur of which `true`, `false`, `inf` cannot be written and the known keys are free: r, f. */
  readonly literals: boolean
  /** Whether a minus sign occurs. */
  readonly minus: boolean
  /** Whether a form feed or a vertical tab occurs: white space for DuckDB, not for JSON. */
  readonly strangeSpace: boolean
}

const quoteByte = 0x22
const commaByte = 0x2c

/**
 * Counts the bytes that betray what typed JSON reading converts in silence: a text where a number belongs, an unknown
 * key, a boolean, a trailing comma. Four bytes at a time, several gigabytes a second. Null for a body that begins
 * otherwise.
 */
export async function countBytes(file: string, begins: (start: string) => boolean): Promise<ByteCounts | null> {
  let quotes = 0
  let commas = 0
  let literals = false
  let minus = false
  let strangeSpace = false
  let fits = false
  await eachChunk(file, (chunk, offset) => {
    fits ||= offset === 0 && begins(chunk.toString('latin1', 0, sniffed))
    if (!fits) return false
    quotes += occurrences(chunk, quoteByte)
    commas += occurrences(chunk, commaByte)
    literals ||= chunk.includes(0x72) || chunk.includes(0x66)
    minus ||= chunk.includes(0x2d)
    strangeSpace ||= chunk.includes(0x0b) || chunk.includes(0x0c)
    return true
  })
  return fits ? { quotes, commas, literals, minus, strangeSpace } : null
}

/** So many bytes of a body's beginning show what its points look like. */
export const sniffed = 2048

/** What typed reading found in a body: points, values that are not null, instants of computing, values that are zero. */
export interface Read {
  readonly rows: number
  readonly numbers: number
  readonly told: number
  readonly zeros: number
}

/**
 * Every t, v and computed_at that is there brings the two quotes of its key; with no quote beyond them there is no
 * text and no further key; with no comma beyond those between them none trails; with no r and no f there is no
 * boolean. A null leaves the sums unequal, too; a point without v does not, so every point must have one.
 */
export async function agrees(
  counted: ByteCounts,
  { rows, numbers, told, zeros }: Read,
  file: string,
): Promise<boolean> {
  const keys = rows + numbers + told
  if (
    counted.strangeSpace ||
    numbers !== rows ||
    counted.literals ||
    counted.quotes !== 2 * keys ||
    counted.commas !== keys - 1
  )
    return false
  return zeros === 0 || !counted.minus || !(await hasNegativeZero(file))
}

/** Whether the body spells a zero as `-0`, which integer parsing turns into plain zero. */
async function hasNegativeZero(file: string): Promise<boolean> {
  let tail = ''
  let found = false
  await eachChunk(file, (chunk) => {
    const text = tail + chunk.toString('latin1')
    found = /-0(?![.\deE])/.test(text.slice(0, -1))
    tail = text.slice(-3)
    return !found
  })
  return found
}

/** How often the byte occurs: a zero byte of `word ^ pattern` marks it, and 255 words fit into four counters. */
function occurrences(chunk: Buffer, byte: number): number {
  const words = new Int32Array(chunk.buffer, chunk.byteOffset, chunk.length >> 2)
  const pattern = Math.imul(byte, 0x01010101)
  const low = 0x7f7f7f7f
  let total = 0
  for (let i = 0; i < words.length; ) {
    const stop = Math.min(words.length, i + 255)
    let lanes = 0
    for (; i < stop; i++) {
      const x = (words[i] as number) ^ pattern
      lanes = (lanes + (~(((x & low) + low) | x | low) >>> 7)) | 0
    }
    total += (lanes & 255) + ((lanes >>> 8) & 255) + ((lanes >>> 16) & 255) + (lanes >>> 24)
  }
  for (let i = words.length * 4; i < chunk.length; i++) if (chunk[i] === byte) total++
  return total
}
