import { describe, expect, test } from 'vitest'
import {
  governor,
  type Headers,
  newGovernor,
  nextSlot,
  parkedUntil,
  readLimits,
} from '../../src/sources/http/governor.ts'
import {
  classify,
  clockOf,
  describeFailure,
  describeOutcome,
  namedParameter,
  type Outcome,
  startBytes,
} from '../../src/sources/http/outcome.ts'

const at = 1_700_000_000_000
const secret = 'sk-Zq7/+"tail=='
const parameters = [
  { name: 'asset', key: 'a' },
  { name: 'since', key: 's' },
  { name: 'interval', key: 'i' },
  { name: 'timestamp_format', key: 'timestamp_format' },
]
const context: Parameters<typeof classify>[3] = { at, requestMs: 12, secrets: [secret], parameters }
const see = (status: number, body = '', headers: Headers = {}): Outcome =>
  classify(status, headers, body, context) as Outcome

test.each<[number, Outcome['kind']]>([
  [200, 'body'],
  [203, 'body'],
  [204, 'no_content'],
  [304, 'not_modified'],
  [400, 'refused'],
  [422, 'refused'],
  [401, 'unauthorised'],
  [403, 'forbidden'],
  [404, 'gone'],
  [410, 'gone'],
  [413, 'too_large'],
  [414, 'too_large'],
  [504, 'too_large'],
  [429, 'limited'],
  [408, 'again'],
  [425, 'again'],
  [500, 'again'],
  [502, 'again'],
  [503, 'again'],
  [520, 'again'],
  [206, 'unexpected'],
  [301, 'unexpected'],
  [307, 'unexpected'],
  [402, 'unexpected'],
  [418, 'unexpected'],
])('%i is %s, whatever the body says', (status, kind) => {
  for (const body of ['', '[]', '{"code":"unauthorized","error":"401"}', '<html>429 Too Many Requests</html>']) {
    expect(see(status, body).kind).toBe(kind)
  }
})

test('date, tag, request id and sandbox mark of an answer are read from its head', () => {
  const headers = {
    date: 'Tue, 14 Nov 2023 22:13:20 GMT',
    age: '30',
    etag: '"abc"',
    'x-request-id': 'r-1',
    'x-pitlake-sandbox': '7',
    'content-type': 'application/json',
    'set-cookie': 'never=kept',
  }
  expect(see(204, '', headers)).toEqual({
    kind: 'no_content',
    status: 204,
    at,
    date: 1_700_000_000,
    age: 30,
    requestMs: 12,
    etag: '"abc"',
    requestId: 'r-1',
    sandbox: '7',
  })
})

describe('the words of the provider', () => {
  test('are at most 300 characters on one line', () => {
    const outcome = see(400, `{"error":\n\t"${'x'.repeat(9_000)}"}`)
    expect(outcome.kind === 'refused' && outcome.words.length).toBe(300)
    expect(describeOutcome(outcome)).not.toMatch(/[\n\t]/)
  })

  test.each([
    ['plain', secret],
    ['in JSON', JSON.stringify(secret)],
    ['in an address', `https://host/p?a=BTC&api_key=${encodeURIComponent(secret)}`],
    ['as a header', `X-Api-Key: ${secret}`],
    ['across the cut at 300 characters', `${'y'.repeat(292)}${secret}`],
    ['across the end of what was read', secret.repeat(3_000).slice(0, startBytes - 4)],
  ])('never hold the key: %s', (_, body) => {
    for (const status of [400, 401, 403, 404, 413, 429, 500, 418]) {
      const shown = JSON.stringify(
        see(status, body, { 'x-request-id': secret, etag: secret, location: `/x?k=${secret}` }),
      )
      expect(shown).not.toContain('Zq7')
      expect(describeOutcome(see(status, body))).not.toContain('Zq7')
    }
  })

  test('a key cut in two by the end of what was read is not shown', () => {
    // Redaction shortens the text so much that its end moves into the first 300 characters.
    const long = 'K'.repeat(400)
    const body = long.repeat(41).slice(0, startBytes)
    const outcome = classify(400, {}, body, { ...context, secrets: [long] })
    expect(JSON.stringify(outcome)).not.toContain('KKKK')
  })
})

test.each([
  ['{"code":"invalid_cursor","request_id":"1"}', 'invalid_cursor'],
  ['{"error":{"code":"invalid_parameter"}}', 'invalid_parameter'],
  ['{"errors":[{"code":"invalid_parameter"}]}', 'invalid_parameter'],
  ['{"error":"quota_exceeded"}', 'quota_exceeded'],
  ['{"error":"some words here"}', null],
  ['{"code":400}', null],
  ['{"code":', null],
  ['null', null],
  ['<html>code</html>', null],
])('the error code is read from %s', (body, code) => {
  const outcome = see(400, body)
  expect(outcome.kind === 'refused' && outcome.code).toBe(code)
})

test.each([
  ['unknown parameter "s"', 'since'],
  ['{"error":"unknown parameter \\"s\\""}', 'since'],
  ['{"error":"\\"i\\" is odd"}', 'interval'],
  ["'i' is not supported", 'interval'],
  ['invalid query param: s', 'since'],
  ['bad value in ?a=FOO', 'asset'],
  ['Interval not allowed for this metric', 'interval'],
  ['Timestamp format unknown', 'timestamp_format'],
  ['unknown parameter "zz"', null],
  ['a metric is not available; see the docs', null],
  ['I do not understand', null],
  ['', null],
])('the parameter named by %j is %s', (words, name) => expect(namedParameter(words, parameters)).toBe(name))

test.each<[string | undefined, number | null]>([
  [undefined, null],
  ['7', 7_000],
  ['2.5', 2_500],
  ['0', 0],
  ['-3', 0],
  ['999999', 999_999_000],
  ['5000000', 5_000_000_000],
  ['1700000100', 100_000],
  ['1700000100500', 100_500],
  ['Tue, 14 Nov 2023 22:14:20 GMT', 60_000],
  ['Tuesday, 14-Nov-23 22:14:20 GMT', 60_000],
  ['Tue Nov 14 22:14:20 2023', 60_000],
  ['2023-11-14T22:14:20Z', 60_000],
  ['2023-11-15T03:44:20+05:30', 60_000],
  ['2023-11-14T22:14:20', 60_000],
  ['Tue, 14 Nov 2023 22:00:00 GMT', 0],
  ['1000000000000', 0],
  ['999999999', 999_999_999_000],
  ['30s', null],
  ['soon', null],
])('a wait is read from Retry-After %s', (text, waitMs) => {
  const outcome = see(429, '', { 'retry-after': text })
  expect(outcome.kind === 'limited' && outcome.waitMs).toBe(waitMs)
  const again = see(503, '', { 'retry-after': text })
  expect(again.kind === 'again' && again.waitMs).toBe(waitMs)
})

test.each<[Headers, Partial<ReturnType<typeof readLimits>>]>([
  [
    { 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1700000030' },
    { limit: 600, remaining: 0, resetMs: 30_000 },
  ],
  [
    { 'x-rate-limit-limit': '600', 'x-rate-limit-remaining': '12', 'x-rate-limit-reset': '30' },
    { limit: 600, remaining: 12, resetMs: 30_000 },
  ],
  [
    { 'ratelimit-limit': '100, 100;w=60', 'ratelimit-reset': '9' },
    { limit: 100, remaining: null, resetMs: 9_000 },
  ],
  [
    { 'x-ratelimit-limit': '0', 'x-ratelimit-remaining': 'many' },
    { limit: null, remaining: null },
  ],
  [{ 'x-ratelimit-limit': ['50', '60'] }, { limit: 50 }],
  [{ 'x-quota-daily-remaining': '3' }, { dailyRemaining: 3, limit: null }],
  // The provider's clock is an hour behind: its reset is measured against its own Date.
  [{ 'x-ratelimit-reset': '1699996430', date: 'Tue, 14 Nov 2023 21:13:20 GMT' }, { resetMs: 30_000 }],
])('limits are read from the headers %j', (headers, signs) => expect(readLimits(headers, at)).toMatchObject(signs))

test('a redirect is described without host, credentials or query', () => {
  const outcome = see(302, '', { location: 'https://user:pw@elsewhere.example/x?api_key=abc' })
  expect(outcome.kind === 'unexpected' && outcome.location).toBe('another address')
  expect(describeOutcome(outcome)).not.toMatch(/elsewhere|abc|pw/)
})

test.each([
  ['//elsewhere.example/x', 'another address'],
  ['\\\\elsewhere.example\\x', 'another address'],
  ['/v2/x', 'another path of the same host'],
  ['v2//x', 'another path of the same host'],
])('a redirect to %s goes to %s', (location, where) => {
  const outcome = see(302, '', { location })
  expect(outcome.kind === 'unexpected' && outcome.location).toBe(where)
  expect(describeOutcome(outcome)).toBe(`unexpected status 302 (redirect to ${where}): `)
})

const answer = see(204, '', { date: 'Tue, 14 Nov 2023 22:13:20 GMT', age: '30' }) as Extract<
  Outcome,
  { kind: 'no_content' }
>

test.each<[Outcome, string]>([
  [{ ...answer, kind: 'body', status: 200, file: 'f', bytes: 12 }, '200, 12 bytes'],
  [see(204), '204, no body'],
  [see(304), '304, no body'],
  [see(403, 'no'), '403: no'],
  [see(503, 'later'), '503: later'],
  [{ kind: 'again', reason: 'reset', status: null, waitMs: null, words: 'gone', requestMs: 1 }, 'reset: gone'],
  [{ kind: 'stopped', by: 'signal' }, 'interrupted'],
  [{ kind: 'stopped', by: 'max_requests' }, 'the number of requests allowed to this run is used up'],
  [see(418, 'tea'), 'unexpected status 418: tea'],
  [see(413, 'less'), '413: less'],
  [{ kind: 'parked', until: 1_700_000_000_001, words: 'wait' }, 'no more requests before 2023-11-14T22:13:21Z: wait'],
])('the outcome %j is described as %s', (outcome, words) => expect(describeOutcome(outcome)).toBe(words))

test('a request row keeps the clock of an answer that showed one', () => {
  expect(clockOf(answer)).toEqual({ provider_date: 1_700_000_000 })
  expect(clockOf(see(204))).toEqual({})
  expect(clockOf({ kind: 'stopped', by: 'signal' })).toEqual({})
})

test('blank headers count as missing', () => {
  expect(see(204, '', { etag: ' ', 'x-request-id': '', date: '  ' })).toMatchObject({
    etag: null,
    requestId: null,
    date: null,
  })
})

const endless = ['9999999999999999', '9'.repeat(400), '99999999999', 'Fri, 31 Dec 275759 23:59:59 GMT']

test.each(endless)('a wait until %s ends at an instant that can be written', (text) => {
  for (const headers of [
    { 'retry-after': text },
    { 'x-ratelimit-limit': '9', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': text },
  ]) {
    const sent = governor(newGovernor({ perMinute: 600 }), { kind: 'request-sent', at })
    const told = governor(sent, { kind: 'response', at, ticket: 1, status: 429, headers })
    const until = parkedUntil(told, at)
    expect(until).toBeGreaterThan(at + 86_400_000)
    expect(nextSlot(told, at)).toBeLessThan(Number.MAX_SAFE_INTEGER)
    expect(describeOutcome({ kind: 'parked', until: until ?? 0, words: 'wait' })).toMatch(/before \d{4}-\d\d-\d\dT/)
  }
})

test.each<[number, Headers, string]>([
  [400, { 'x-request-id': 'req-1' }, '{"error":"no"}'],
  [403, { 'x-amzn-requestid': 'req-1' }, ''],
  [404, {}, '{"error":{"code":"gone","request_id":"req-1"}}'],
  [429, { 'request-id': 'req-1' }, '{"request_id":"another"}'],
  [500, {}, '{"requestId":"req-1"}'],
  [503, { 'x-correlation-id': 'req-1' }, '<html>'],
  [504, { 'cf-ray': 'req-1' }, ''],
])('a failed request keeps the provider\u2019s name for it: %i %j %s', (status, headers, body) => {
  expect(describeFailure(see(status, body, headers))).toMatch(/ \(request id req-1\)$/)
  expect(describeOutcome(see(status, body, headers))).not.toContain('(request id')
})

test('a request id that equals the key is not shown', () => {
  const long = 'abcdefgh-12345678'
  const outcome = (headers: Headers, body: string): Outcome =>
    classify(500, headers, body, { ...context, secrets: [long] }) as Outcome
  expect(describeFailure(outcome({}, `{"request_id":"${long}"}`))).toContain('(request id [key])')
  expect(describeFailure(outcome({ 'x-request-id': `x-${long}` }, ''))).toContain('(request id x-[key])')
})
