import { expect, test } from 'vitest'
import { visible, visibleLines } from '../../src/base/visible-text.ts'

test('control characters are spelt out, all other text stays', () => {
  expect(visible('a\u001b[31mb\u009b2J\u0007\u007f')).toBe(String.raw`a\u001b[31mb\u009b2J\u0007\u007f`)
  expect(visible('one\r\ntwo\tthree')).toBe(String.raw`one\r\ntwo\tthree`)
  expect(visible('user\u202egpj.exe\u2066x')).toBe(String.raw`user\u202egpj.exe\u2066x`)
  const plain = 'Ünïcödé 日本 😀 a–b “c” 1 234'
  expect(visible(plain)).toBe(plain)
})

test('each character that turns or splits a text is spelt out, and its neighbours are not', () => {
  const marks = [0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069, 0x0000, 0x001f, 0x0080, 0x009f]
  for (const mark of marks)
    expect(visible(`a${String.fromCodePoint(mark)}b`)).toBe(`a\\u${mark.toString(16).padStart(4, '0')}b`)
  for (const other of [0x061b, 0x061d, 0x200d, 0x2010, 0x2027, 0x202f, 0x2065, 0x206a, 0x0020, 0x00a0])
    expect(visible(`a${String.fromCodePoint(other)}b`)).toBe(`a${String.fromCodePoint(other)}b`)
})

test('in a text of several lines only line ends stay', () => {
  expect(visibleLines('a\u001bb\r\nc\n')).toBe(`a\\u001bb\\r\nc\n`)
})

test('a JSON document means the same afterwards', () => {
  const value = { a: '\u009b31m \u2028 \u202e \u007f', b: 'x\ny\t\u001b' }
  const document = JSON.stringify(value, null, 2)
  const shown = visibleLines(document)
  expect(JSON.parse(shown)).toEqual(value)
  expect(shown).not.toMatch(/[\u007f-\u009f\u2028\u202e]/)
})
