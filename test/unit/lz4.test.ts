import fc from 'fast-check'
import { expect, test } from 'vitest'
import { unpackLz4 } from '../../src/lake/store/lz4.ts'

const head = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]
const frame = (...blocks: readonly (readonly number[])[]): Uint8Array =>
  Uint8Array.from([
    ...head,
    ...blocks.flatMap((block) => [block.length & 255, block.length >> 8, 0, 0, ...block]),
    0,
    0,
    0,
    0,
  ])
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')
const letters = (word: string): number[] => [...Buffer.from(word, 'latin1')]

test('frames made by hand are unpacked: literals, repeats that overlap, long lengths, several blocks', () => {
  expect(text(unpackLz4(frame([0x50, ...letters('hello')]), 5))).toBe('hello')
  // "ab", then nine letters from two before: the copy reads what it writes.
  expect(text(unpackLz4(frame([0x25, ...letters('ab'), 2, 0, 0x00]), 11))).toBe('abababababa')
  const long = [0xf0, 255, 30, ...letters('x'.repeat(300))]
  expect(text(unpackLz4(frame(long), 300))).toBe('x'.repeat(300))
  const second = [0x04, 3, 0, 0x10, ...letters('!')]
  expect(text(unpackLz4(frame([0x30, ...letters('abc')], second), 12))).toBe('abcabcabcab!')
  const plain = Uint8Array.from([...head, 3, 0, 0, 0x80, ...letters('raw'), 0, 0, 0, 0])
  expect(text(unpackLz4(plain, 3))).toBe('raw')
})

test('a frame that is cut, refers before its beginning or is of another size is an error', () => {
  const good = frame([0x25, ...letters('ab'), 2, 0, 0x00])
  for (const [bytes, size] of [
    [good, 10],
    [good, 12],
    [good, 1e12],
    [good.subarray(0, 12), 11],
    [frame([0x25, ...letters('ab'), 3, 0, 0x00]), 11],
    [frame([0x25, ...letters('ab'), 0, 0, 0x00]), 11],
    [frame([0xf0]), 15],
    [Uint8Array.from([1, 2, 3, 4, 5, 6, 7]), 3],
  ] as const)
    expect(() => unpackLz4(bytes, size)).toThrow(RangeError)
})

test('arbitrary bytes after the head of a frame give an error or the requested number of bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(80), (bytes, size) => {
      try {
        expect(unpackLz4(frame([...bytes]), size)).toHaveLength(size)
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError)
      }
    }),
    { seed: 4, numRuns: 3000 },
  )
})
