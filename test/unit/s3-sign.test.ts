import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { percentEncoded } from '../../src/sources/http/http.ts'
import { emptyPayload, signHeaders } from '../../src/maintenance/publish/s3-ask.ts'

// The four examples that Amazon's description of signature version 4 for S3 works out by hand.
const id = 'AKIAIOSFODNN7EXAMPLE'
const secret = ['wJalrXUtnFEMI', 'K7MDENG', 'bPxRfiCYEXAMPLEKEY'].join('/')
const host = 'examplebucket.s3.amazonaws.com'
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const examples: readonly [string, Parameters<typeof signHeaders>[0], string][] = [
  [
    'an object, a part of it',
    { method: 'GET', host, path: '/test.txt', headers: { range: 'bytes=0-9' }, payload: emptyPayload },
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ],
  [
    'an object that is put',
    {
      method: 'PUT',
      host,
      path: `/${percentEncoded('test$file.text')}`,
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      payload: sha256('Welcome to Amazon S3.'),
    },
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ],
  [
    'a query without a value',
    { method: 'GET', host, path: '/', query: { lifecycle: '' }, payload: emptyPayload },
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ],
  [
    'a list',
    { method: 'GET', host, path: '/', query: { prefix: 'J', 'max-keys': '2' }, payload: emptyPayload },
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ],
]

test.each(examples)('%s is signed as Amazon says', (_, request, signature) => {
  const headers = signHeaders(request, { id, secret }, 'us-east-1', Date.UTC(2013, 4, 24))
  expect(headers['authorization']).toContain(`Signature=${signature}`)
  expect(headers['authorization']).toContain(`Credential=${id}/20130524/us-east-1/s3/aws4_request`)
})

test('the token of a passing key is signed, and no sign of a name is left to chance', () => {
  const request: Parameters<typeof signHeaders>[0] = { method: 'GET', host, path: '/', payload: emptyPayload }
  const headers = signHeaders(
    request,
    { id, secret, token: 'of the hour' },
    'eu-west-1',
    Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  )
  expect(headers).toMatchObject({ 'x-amz-security-token': 'of the hour', 'x-amz-date': '20260102T030405Z' })
  expect(headers['authorization']).toContain('SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,')
  expect(percentEncoded("a b/c=d+e%é*'()!~")).toBe('a%20b%2Fc%3Dd%2Be%25%C3%A9%2A%27%28%29%21~')
})
