import { expect, test } from 'vitest'
import { visible, visibleLines } from '../../src/visible.ts'

test('what a terminal would act on is spelt out, everything else stays', () => {
  expect(visible('a\u001b[31mb\u009b2J\u0007\u007f')).toBe(String.raw`a\u001b[31mb\u009b2J\u0007\u007f`)
  expect(visible('one\r\ntwo\tthree')).toBe(String.raw`one\r\ntwo\tthree`)
  expect(visible('user\u202egpj.exe\u2066x')).toBe(String.raw`user\u202egpj.exe\u2066x`)
  const plain = 'Ünïcödé 日本 😀 a–b “c” 1 234'
  expect(visible(plain)).toBe(plain)
})

test('of several lines only the line ends stay', () => {
  expect(visibleLines('a\u001bb\r\nc\n')).toBe(`a\\u001bb\\r\nc\n`)
})

test('a JSON document means the same afterwards', () => {
  const value = { a: '\u009b31m \u2028 \u202e \u007f', b: 'x\ny\t\u001b' }
  const document = JSON.stringify(value, null, 2)
  const shown = visibleLines(document)
  expect(JSON.parse(shown)).toEqual(value)
  expect(shown).not.toMatch(/[\u007f-\u009f\u2028\u202e]/)
})
