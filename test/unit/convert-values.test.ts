import { afterAll, beforeAll, expect, test } from 'vitest'
import { day } from '../../src/base/time.ts'
import { Converting, t1 } from '../helpers/converting.ts'

let made: Converting
beforeAll(async () => (made = await Converting.open()))
afterAll(() => made.close())

const doubles = [
  '-0.0',
  '0',
  '5e-324',
  '1.7976931348623157e308',
  '9007199254740993',
  '0.1',
  '-12',
  '1E5',
  '123456789012345678901234567890',
]
test.each([...doubles, '-0', '-0e0', '0.1000000000000000055511151231257827'])(
  'L7: %s is the same double',
  async (text) => {
    const { rows } = await made.values(`[{"t":${t1},"v":${text}}]`)
    expect(rows).toHaveLength(1)
    expect(Object.is(rows[0]?.['v'], JSON.parse(text))).toBe(true)
    const beside = await made.values(`[{"t":${t1},"v":${text},"note":"x"},{"t":${t1 + day},"v":null}]`)
    expect(Object.is(beside.rows[0]?.['v'], JSON.parse(text))).toBe(true)
  },
)

test('t may be spelled as any number that is whole', async () => {
  expect((await made.values(`[{"t":${t1}.0,"v":1},{"t":1.7093376e9,"v":2}]`)).rows).toMatchObject([
    { t: BigInt(t1) * 1_000_000n, v: 1 },
    { t: BigInt(t1 + day) * 1_000_000n, v: 2 },
  ])
})

test('the value may stand under another key, and under several', async () => {
  const lone = await made.values(`[{"t":${t1},"partitions":[1,2]},{"t":${t1 + day},"partitions":null}]`)
  expect(lone.rows.map((row) => [row['v'], row['o'], row['extra']])).toEqual([
    [null, '[1,2]', null],
    [null, null, null],
  ])
  const several = await made.values(`[{"t":${t1},"prices":[1],"partitions":[2]},{"t":${t1 + day},"prices":[3]}]`)
  expect(several.rows.map((row) => row['o'])).toEqual(['{"prices":[1],"partitions":[2]}', '{"prices":[3]}'])
  const empty = await made.values(`[{"t":${t1},"v":null},{"t":${t1 + day},"prices":[1],"partitions":[2]}]`)
  expect(empty.rows.map((row) => [row['v'], row['o'], row['extra']])).toEqual([
    [null, null, null],
    [null, '{"prices":[1],"partitions":[2]}', null],
  ])
  const scalar = await made.values(`[{"t":${t1},"price":5}]`)
  expect(scalar.rows).toMatchObject([{ v: null, o: '{"price":5}' }])
})

test('L7: unknown fields are stored next to the value', async () => {
  const { rows } = await made.values(
    `[{"t":${t1},"v":1,"q\\"k":"a","f":{"x":[null]}},{"t":${t1 + day},"v":2},{"t":${t1 + 2 * day},"v":{"a":1},"o":{"b":2}}]`,
  )
  expect(rows.map((row) => row['extra'])).toEqual(['{"q\\"k":"a","f":{"x":[null]}}', null, '{"o":{"b":2}}'])
  expect(rows.map((row) => row['v'])).toEqual([1, 2, null])
})

test('an identical duplicate is one point', async () => {
  const plain = await made.values(`[{"t":${t1},"v":1},{"t":${t1},"v":1.0},{"t":${t1 + day},"v":2}]`)
  expect(plain.only).toMatchObject({ state: 'ok', points: 3, added: 2 })
  const rich = await made.values(`[{"t":${t1},"o":{"a":1,"b":2}},{"t":${t1},"o":{"b":2,"a":1.0}}]`)
  expect(rich.only).toMatchObject({ state: 'ok', points: 2, added: 1 })
})

test('the text of an integer that a double does not hold goes to extra, and only of those', async () => {
  const values: readonly (readonly [string, string | null])[] = [
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['18446744073709551615', '18446744073709551615'],
    ['123456789012345678901234567890123456789012345', '123456789012345678901234567890123456789012345'],
    ['9007199254740991', null],
    ['9007199254740992', null],
    ['9007199254740994', null],
    ['10000000000000000000000', null],
    ['612345678901234600000', null],
    ['6.123456789012346e+20', null],
    ['1e300', null],
    ['9007199254740993.5', null],
  ]
  for (const [text, kept] of values) {
    const { only, rows } = await made.values(`[{"t":${t1},"v":${text}},{"t":${t1 + day},"v":1.5}]`)
    expect(only).toMatchObject({ state: 'ok', added: 2, beyond: kept === null ? 0 : 1 })
    expect(rows.map(({ v }) => v)).toEqual([Number(text), 1.5])
    expect(rows.map(({ extra }) => extra)).toEqual([kept === null ? null : `{"v":${kept}}`, null])
  }
  const { rows } = await made.values(`[{"t":${t1},"v":9007199254740993,"note":"x"}]`)
  expect(rows[0]?.['extra']).toBe('{"note":"x","v":9007199254740993}')
})

test('a point that names the requested asset and metric keeps both in extra', async () => {
  const named = `"asset":"btc","metric":"m"`
  const { only, rows } = await made.values(`[{"t":${t1},"v":1,${named}}]`)
  expect(only).toMatchObject({ state: 'ok', added: 1 })
  expect(rows[0]?.['extra']).toBe(`{${named}}`)
  const mapped = await made.values(`[{"t":${t1},"v":1,"metric":"real_name"}]`, { wireName: 'protocols/real_name' })
  expect(mapped.only.state).toBe('ok')
})
