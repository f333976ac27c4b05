import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isNested, isNumbers, kindBits, lexBody } from '../../src/sources/points/lexer.ts'
import { scratch } from '../helpers/scratch.ts'

const folder = scratch('lexer')

function bodyOf(text: string | Uint8Array): string {
  const file = join(folder, 'body.json')
  writeFileSync(file, text)
  return file
}

test.each([
  ['', 'an empty body'],
  [' \n', 'an empty body'],
  ['[', 'a body that breaks off'],
  ['[{"t":1', 'a body that breaks off'],
  ['[{"t', 'a body that breaks off'],
  ['{"t":1}', 'an object instead of an array'],
  ['"t"', 'a text instead of an array'],
  ['<html>', 'HTML or XML instead of JSON'],
  ['null', 'null instead of an array'],
  ['-12', '-12 instead of an array'],
  ['nothing', 'a body that is no JSON'],
  [']', 'a body that is no JSON'],
  ['[1]', 'a point that is a number instead of an object (element 1)'],
  ['[{},"x"]', 'a point that is a text instead of an object (element 2)'],
  ['[{},{},[1]]', 'a point that is an array instead of an object (element 3)'],
  ['[null]', 'a point that is null instead of an object (element 1)'],
  ['[{"t":1}]]', 'something behind the array at byte 9'],
  ['[] 17', 'something behind the array at byte 3'],
  ['[{"t":1},]', 'broken JSON at byte 9'],
  ['[{"t":1},,{}]', 'broken JSON at byte 9'],
  ['[{"t":1,}]', 'broken JSON at byte 8'],
  ['[{"t":12 345}]', 'broken JSON at byte 9'],
  ['[{"t":1]', 'broken JSON at byte 7'],
  ['[{"t" 1}]', 'broken JSON at byte 6'],
  ['[{"t":NaN}]', 'NaN at byte 6, which is no JSON'],
  ['[{"t":-Infinity}]', '-Infinity at byte 6, which is no JSON'],
  ['[{"t":1e400}]', '1e400 at byte 6, which is beyond a double'],
  ['[{"t":1,"v":1e400}]', '1e400 at byte 12, which is beyond a double'],
  ['[{"o":{"a":-inf}}]', '-inf at byte 11, which is no JSON'],
  ['[{"t":1e}]', '1e at byte 6, which is no number'],
  [`[{"t":${'1'.repeat(513)}}]`, 'a number of more than 512 characters at byte 6'],
  ['[{"t":"a\u0001"}]', 'a control character in a text at byte 8'],
  ['['.repeat(65), 'a point that is an array instead of an object (element 1)'],
  [`[{"o":${'['.repeat(63)}`, 'nesting deeper than 64 at byte 68'],
])('%j is %s', async (text, problem) => expect((await lexBody(bodyOf(text))).problem).toBe(problem))

test('bytes that are not UTF-8 are refused, also at the very end', async () => {
  const open = Buffer.from('[{"v":"')
  const close = Buffer.from('"}]')
  expect((await lexBody(bodyOf(Buffer.concat([open, Buffer.from([0xc3, 0x28]), close])))).problem).toMatch(/UTF-8/)
  expect((await lexBody(bodyOf(Buffer.concat([open, Buffer.from('é✓', 'utf8'), close])))).problem).toBeNull()
})

test('keys are counted with the kinds of their values, numbers spelled -0 with their place', async () => {
  const text = '[{"t":1,"v":-0,"x":true},{"t":2,"v":null,"o":{"v":[1,"a"]}},{"t":-0.5,"computed_at":"2","v":[]}, {}]'
  const { problem, elements, keys, negativeZeros } = await lexBody(bodyOf(text))
  const { number, text: words, literal, nothing, nested } = kindBits
  expect({ problem, elements, negativeZeros }).toEqual({ problem: null, elements: 4, negativeZeros: [14] })
  expect(keys).toEqual({
    t: { count: 3, kinds: number },
    v: { count: 3, kinds: number | nothing | nested },
    o: { count: 1, kinds: nested },
    computed_at: { count: 1, kinds: words },
    other: { count: 1, kinds: literal },
  })
  expect([isNumbers(number | nothing), isNumbers(number | words), isNested(nested | nothing)]).toEqual([
    true,
    false,
    true,
  ])
})

test('JSON that is cut between two chunks is read as if uncut', async () => {
  const rows = Array.from({ length: 150_000 }, (_, i) => ({
    t: 1_600_000_000 + i * 600,
    v: i / 7,
    computed_at: i,
    longer_key: -i,
  }))
  const text = JSON.stringify(rows).replaceAll(':0,', ':-0,')
  const { problem, elements, keys, negativeZeros } = await lexBody(bodyOf(text))
  expect({ problem, elements }).toEqual({ problem: null, elements: rows.length })
  expect(negativeZeros).toEqual([...text.matchAll(/-0(?=[,}])/g)].map(({ index }) => index + 2))
  for (const key of ['t', 'v', 'computed_at', 'other'] as const)
    expect(keys[key]).toEqual({ count: rows.length, kinds: kindBits.number })
})

test('points of numbers become columns, also where two chunks share one', async () => {
  const points = Array.from({ length: 90_000 }, (_, i) => {
    const space = i % 3 === 0 ? ' ' : ''
    const v = i % 7 === 0 ? 'null' : i % 11 === 0 ? '-0' : String(Math.sqrt(i) * 10 ** (i % 40))
    const computed = i % 5 === 0 ? '' : `,"computed_at":${space}${i % 13 === 0 ? 'null' : i * 600.25}`
    return `{"t":${space}${i * 600},${space}"v":${v}${computed}}`
  })
  // Bodies whose chunks end at other bytes of a point.
  for (const pad of [0, 9, 23, 37]) {
    const text = `${' '.repeat(pad)}[${points.join(', ')}]`
    const { columns, elements, keys, negativeZeros } = await lexBody(bodyOf(text))
    const parsed = JSON.parse(text) as { t: number; v: number | null; computed_at?: number | null }[]
    expect(elements).toBe(points.length)
    expect(columns?.rows).toBe(points.length)
    expect(columns?.t).toEqual(Float64Array.from(parsed, ({ t }) => t))
    expect(columns?.v).toEqual(Float64Array.from(parsed, ({ v }) => v ?? Number.NaN))
    expect(columns?.computed).toEqual(Float64Array.from(parsed, ({ computed_at: at }) => at ?? Number.NaN))
    expect(negativeZeros).toEqual([...text.matchAll(/-0(?=[,}])/g)].map(({ index }) => index + 2))
    const { number, nothing } = kindBits
    expect(keys).toMatchObject({
      t: { count: points.length, kinds: number },
      v: { count: points.length, kinds: number | nothing },
      computed_at: { count: parsed.filter((point) => 'computed_at' in point).length, kinds: number | nothing },
    })
  }
})

test('a body with one point of a different kind has no columns, and all its keys are counted', async () => {
  const plain = Array.from({ length: 30_000 }, (_, i) => `{"t":${i},"v":-0}`)
  for (const odd of ['{"t":1,"v":-0,"o":[]}', '{"v":-0}', '{"t":1,"v":-0,"v":-0}', '{"t":null,"v":-0}']) {
    for (const place of [0, 15_000, 30_000]) {
      const text = `[${plain.toSpliced(place, 0, odd).join(',')}]`
      const { columns, elements, keys, negativeZeros, problem } = await lexBody(bodyOf(text))
      expect({ columns, elements, problem }).toEqual({ columns: null, elements: 30_001, problem: null })
      expect(keys.v.count).toBe(text.split('"v"').length - 1)
      expect(negativeZeros).toEqual([...text.matchAll(/-0/g)].map(({ index }) => index + 2))
    }
  }
})

test('bytes that are not UTF-8 are found behind points that became columns', async () => {
  const points = Array.from({ length: 60_000 }, (_, i) => `{"t":${i},"v":${i}}`).join(',')
  for (const pad of [0, 3, 11]) {
    const before = Buffer.from(`[${' '.repeat(pad)}${points},{"t":1,"x":"`)
    const after = Buffer.from(`"},${points}]`)
    const read = async (bytes: Buffer) => (await lexBody(bodyOf(Buffer.concat([before, bytes, after])))).problem
    expect(await read(Buffer.from('é✓'))).toBeNull()
    expect(await read(Buffer.from([0xc3, 0x28]))).toBe('bytes that are not UTF-8')
  }
})
