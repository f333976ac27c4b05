import { expect, test } from 'vitest'
import { engineLossIn, refusal } from '../../src/query/refusal.ts'
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
  [
    'a query too deep for the grammar of DuckDB',
    new Error('Parser Error: memory exhausted at or near "("\n\nLINE 1: (('),
  ],
  [
    'a query too deep for the binder of DuckDB',
    new Error('Binder Error: Max expression depth limit of 1000 exceeded. Use "SET max_expression_depth TO x" to …'),
  ],
  ['a name of many parts', new Error('Parser Error: NameListToString NOT IMPLEMENTED')],
])('%s is refused in one line of ours, without paths, addresses or engine words', (_, cause) => {
  const told = refusal(cause, failure)
  expect(told).toMatchObject({ kind: 'usage' })
  expect(told.message).toMatch(/^SQL: expected a query that [^\n]*, got [^\n]*$/)
  expect(told.message).not.toMatch(/0x|\/opt|Stack|call stack|SET max|exhausted|NOT IMPL/)
})

test('functions that sleep are refused by name', () => {
  expect([...refusedScalars]).toEqual(expect.arrayContaining(['pg_sleep', 'sleep_ms']))
})

test.each([
  ['a fatal error', 'FATAL Error: Failed to append', 'caused'],
  ['the refusal of a database that a fatal error closed', 'FATAL Error: Failed: database has been invalidated', 'met'],
  ['an internal error', 'INTERNAL Error: Failed to bind', undefined],
  ['words of the caller', 'Invalid Input Error: FATAL Error: database has been invalidated', undefined],
])('%s is recognised as a loss of the engine or not, also after it was put into our words', (_, message, loss) => {
  const error = new Error(message)
  expect([engineLossIn(error), engineLossIn(refusal(error, failure))]).toEqual([loss, loss])
})
