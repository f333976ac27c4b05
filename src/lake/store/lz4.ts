const magic = 0x18_4d_22_04

/** Bits of the descriptor of a frame. */
const flags = {
  version: 0xc0,
  blockChecksum: 0x10,
  contentSize: 0x08,
  contentChecksum: 0x04,
  dictionary: 0x01,
} as const

/** Bit in the size of a block that marks uncompressed contents. */
const plainBlock = 0x80_00_00_00
const plainSize = 0x7f_ff_ff_ff

/** Maximum number of bytes that one compressed byte can represent. */
const mostRatio = 255

/**
 * Unpacks an LZ4 frame (github.com/lz4/lz4, doc/lz4_Frame_format.md) to exactly `size` bytes; any other contents are an
 * error. Checksums are not compared.
 */
export function unpackLz4(frame: Uint8Array, size: number): Uint8Array {
  if (!(size >= 0 && size <= frame.length * mostRatio)) throw new RangeError(`LZ4: a frame of ${size} bytes`)
  const input = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  if (input.getUint32(0, true) !== magic) throw new RangeError('LZ4: no frame')
  const descriptor = input.getUint8(4)
  if ((descriptor & flags.version) !== 0x40 || (descriptor & flags.dictionary) !== 0)
    throw new RangeError('LZ4: a frame of another version, or with a dictionary')
  let place = 7 + (descriptor & flags.contentSize ? 8 : 0)
  const output = new Uint8Array(size)
  let filled = 0
  for (;;) {
    const head = input.getUint32(place, true)
    place += 4
    if (head === 0) break
    const end = place + (head & plainSize)
    if (end > frame.length) throw new RangeError('LZ4: a block is cut')
    if (head & plainBlock) {
      output.set(frame.subarray(place, end), filled)
      filled += end - place
    } else filled = unpackBlock(frame.subarray(place, end), output, filled)
    place = end + (descriptor & flags.blockChecksum ? 4 : 0)
  }
  if (filled !== size) throw new RangeError(`LZ4: ${filled} bytes instead of ${size}`)
  return output
}

/** Unpacks one block after the bytes unpacked so far, to which it may refer; returns the new end of these. */
function unpackBlock(block: Uint8Array, output: Uint8Array, from: number): number {
  let read = 0
  let filled = from
  const byte = (): number => {
    const value = block[read++]
    if (value === undefined) throw new RangeError('LZ4: a block is cut')
    return value
  }
  const length = (short: number): number => {
    if (short < 15) return short
    let total = short
    for (let more = 255; more === 255; ) {
      more = byte()
      total += more
    }
    return total
  }
  for (;;) {
    const token = byte()
    const literals = length(token >> 4)
    if (read + literals > block.length || filled + literals > output.length)
      throw new RangeError('LZ4: a block says more than it holds')
    output.set(block.subarray(read, read + literals), filled)
    read += literals
    filled += literals
    // A block ends after literals.
    if (read === block.length) return filled
    const distance = byte() | (byte() << 8)
    const copied = length(token & 15) + 4
    if (distance === 0 || distance > filled || filled + copied > output.length)
      throw new RangeError('LZ4: a block refers to what is not there')
    // The two ranges may overlap: a byte that was just written is copied again.
    const end = filled + copied
    for (; filled < end; filled++) output[filled] = output[filled - distance] ?? 0
  }
}
