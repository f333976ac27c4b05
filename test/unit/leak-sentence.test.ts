import { expect, test } from 'vitest'
import { leakSentence } from '../../src/trust/lookahead/sentence.ts'

const leak = {
  as_of: '2024-03-02T09:30:00.000000Z',
  row: { ts: '2024-03-02T00:00:00.000000Z', asset: 'BTC' },
  column: 'v',
  full: 745_390,
  truncated: 800_705.25,
  future: 'cut',
} as const

test('a leak is written as one sentence with time, row and both values', () => {
  expect(leakSentence(leak)).toBe(
    'on 2024-03-02 (asset BTC) the query gives v 745,390; with only the data known at 2024-03-02T09:30:00Z it gives 800,705.25',
  )
  const small = { ...leak, row: { ts: '2024-03-02T06:00:00Z' }, full: 1.0062999949, truncated: null }
  expect(leakSentence({ ...small, future: 'other values' })).toBe(
    'on 2024-03-02T06:00:00Z the query gives v 1.0063; with different later data it gives null',
  )
})

test('a leak sentence writes whole numbers beyond 2^53 exactly', () => {
  const large = { ...leak, full: 9007199254740993n, truncated: 9007199254740995n }
  expect(leakSentence(large)).toMatch(/gives v 9007199254740993; .* it gives 9007199254740995$/)
})

test('a leak sentence says that a row appears or disappears with the future', () => {
  const row = { ...leak, column: null }
  expect(leakSentence({ ...row, full: 'there', truncated: null })).toMatch(/there is a row; .* there is none$/)
  expect(leakSentence({ ...row, full: null, truncated: 'there' })).toMatch(/there is no row; .* there is one$/)
})
