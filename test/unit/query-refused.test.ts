import { expect, test } from 'vitest'
import { refusal } from '../../src/query/refusal.ts'
import { refusedScalars } from '../../src/query/gate-lists.ts'

const failure = { statement: 'SELECT 1', script: 'SELECT 1', offset: 0, folder: '/lake' }

test.each([
  [
    'a stack trace of DuckDB',
    new Error('INTERNAL Error: Vector::Reference\n\nStack Trace:\n\n0  /opt/x.so(+0x1a2b) [0x7f00aa]'),
  ],
  [
    'an engine that gave up',
    new Error('FATAL Error: Failed: database has been invalidated because of /opt/x.so [0x7f00aa]'),
  ],
  ['a query too deep for the parser', new RangeError('Maximum call stack size exceeded')],
])('%s is refused in one line of ours, without paths, addresses or engine words', (_, cause) => {
  const told = refusal(cause, failure)
  expect(told).toMatchObject({ kind: 'usage' })
  expect(told.message).toMatch(/^SQL: expected a query that [^\n]*, got [^\n]*$/)
  expect(told.message).not.toMatch(/0x|\/opt|Stack|call stack/)
})

test('functions that sleep are refused by name', () => {
  expect([...refusedScalars]).toEqual(expect.arrayContaining(['pg_sleep', 'sleep_ms']))
})
