import { expect, test } from 'vitest'
import { jsonOf, jsonText, repeatedKey } from '../../src/base/json.ts'

test.each<[string, string | undefined]>([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":1,"b":{"a":2}}', undefined],
  ['{"a":{"b":1},"b":2}', undefined],
  ['{"a":{"b":1},"a":2}', 'a'],
  ['{"x":[{"a":1},{"a":2}],"a":3}', undefined],
  ['{"x":[{"a":1,"b":2,"a":3}]}', 'a'],
  ['{"a":"}","b":"{\\"a\\":1","c":"a"}', undefined],
  ['{"a":"\\"a\\":","\\u0061" :1}', 'a'],
  ['{}', undefined],
])('in %s the repeated key is found: %s', (text, key) => expect(repeatedKey(text)).toBe(key))

test('a text is read with a byte order mark or without, and whole numbers are written as they are', () => {
  expect([jsonOf('\uFEFF{"a":1}'), jsonOf('{"a":1}'), jsonOf('{"a":'), jsonOf('')]).toEqual([
    { a: 1 },
    { a: 1 },
    undefined,
    undefined,
  ])
  expect(jsonText({ a: 9_007_199_254_740_993n, b: 1 })).toBe('{"a":"9007199254740993","b":1}')
})
