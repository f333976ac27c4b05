import { expect, test } from 'vitest'
import { engineLossIn, refusal } from '../../src/query/refusal.ts'
import { reportedRefusal } from '../../src/interfaces/server/refusal.ts'
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

const join = 'pit_join(decisions, metric, interval, latency := NULL, max_age := NULL)'
const unfit = new Error(
  `Binder Error: Macro pit_join() does not support the supplied arguments. You might need to add explicit type casts.\nCandidate macros:\n\t${join}\n`,
)

test.each([
  [
    "SELECT ':= x', f(latensy := 1) FROM pit_join('d', 'm', '24h', LATENCY := (SELECT '1h'), max_agee := '1d')",
    'SQL: pit_join: expected an option of it: latency, max_age, got max_agee; did you mean `max_age`?',
  ],
  [
    "FROM pit_join('d', -- latensy := '1h'\n 'm')",
    'SQL: pit_join: expected pit_join(decisions, metric, interval), then options by name, got other arguments',
  ],
])('a macro that is called in a wrong way says what it takes: %s', (statement, words) => {
  const told = refusal(unfit, { ...failure, statement, script: statement })
  expect(told).toMatchObject({ kind: 'usage', message: words })
})

test.each([
  [
    "FROM pit_join('d', 'm', '24h', bakc := '1 day')",
    'expected an option of it: latency, back, got bakc; did you mean `back`?',
  ],
  [
    "FROM pit_join('d', 'm')",
    'expected pit_join(decisions, metric, interval), then options by name, got other arguments',
  ],
])('a macro of two forms says what both take: %s', (statement, words) => {
  const forms =
    'pit_join(decisions, metric, interval, latency := NULL)\n\tpit_join(decisions, metric, interval, back, latency := NULL)'
  for (const problem of [
    'does not support the supplied arguments. You might',
    'has multiple overloads that match the supplied arguments.\nIn',
  ]) {
    const error = new Error(`Binder Error: Macro pit_join() ${problem} …\nCandidate macros:\n\t${forms}\n`)
    expect(refusal(error, { ...failure, statement, script: statement }).message).toBe(`SQL: pit_join: ${words}`)
  }
})

test('decisions without a column that a join needs are named as such, not by the alias of the join', () => {
  const told = refusal(new Error('Binder Error: Values list "yours" does not have a column named "ts"'), failure)
  expect(told).toMatchObject({
    kind: 'usage',
    message:
      'SQL: expected decisions with the columns asset and ts, got none named ts; give your table a column ts, such as SELECT …, t AS ts',
  })
})

const less = 'query less data at once, or'
const memory =
  /^SQL: more memory than it may take; query less data at once, or raise it: --memory \d+(?:\.\d+)?(?:MB|GB)$/
const disk = `SQL: more disk than it may take; ${less} leave it more of the disk`

test.each([
  [
    'memory that did not suffice',
    'Out of Memory Error: failed to allocate data of size 16.0 MiB (34.2 MiB/38.1 MiB used)\n\nPossible solutions:\n* SET threads=X',
    memory,
  ],
  [
    'memory that did not suffice in a transaction',
    'TransactionContext Error: Out of Memory Error: could not allocate block',
    memory,
  ],
  ['memory that the allocator lacked', 'INTERNAL Error: std::bad_alloc', memory],
  ['memory that Node lacked', 'Array buffer allocation failed', memory],
  [
    'a limit of the spill',
    "Out of Memory Error: failed to offload data block of size 256.0 KiB (1.0 MB/1.0 MB used).\nThis limit was set by the 'max_temp_directory_size' setting.",
    disk,
  ],
  [
    'a disk that is full',
    'IO Error: Could not write file "/tmp/duckdb_temp_storage-0.tmp": No space left on device',
    disk,
  ],
])('%s is refused in one line of ours that says what to raise, as unfinished', (_, words, said) => {
  const told = refusal(new Error(words), failure)
  expect(told).toMatchObject({ kind: 'incomplete' })
  expect(told.message).toMatch(typeof said === 'string' ? new RegExp(`^${said}$`) : said)
  // What nobody put into words before a door tells it reads the same there.
  expect(reportedRefusal(new Error(words)).kind).toBe(words.startsWith('Array') ? 'unexpected' : 'incomplete')
})

test('a text that Node cannot hold is refused as one that is too long', () => {
  const told = refusal(new Error('Cannot create a string longer than 0x1fffffe8 characters'), failure)
  expect(told).toMatchObject({
    kind: 'usage',
    message: 'SQL: expected values of at most 500 MB each, got a longer one; cut texts with left(x, 1000)',
  })
})

test('words of a caller about memory stay a mistake of the query', () => {
  const told = refusal(new Error('Invalid Input Error: Out of Memory Error: max_temp_directory_size'), failure)
  expect(told).toMatchObject({ kind: 'usage' })
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
