import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import type { Destination } from '../../src/maintenance/publish/destination.ts'
import { destinationOf, s3At } from '../../src/maintenance/publish/s3.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { type Fault, type Heard, s3Key, type StandIn, standIn, webTo } from '../helpers/s3.ts'
import { scratch } from '../helpers/scratch.ts'

const home = scratch('s3')
const local = join(home, 'local')
let there: StandIn

beforeEach(async () => (there = await standIn()))
afterEach(async () => await there[Symbol.asyncDispose]())

const opened = (env: Readonly<Record<string, string>> = {}, text = 's3://lake/team/a b'): Destination =>
  s3At(text, webTo(there.url, env), 1000)

/** The n-th request of a method meets this. */
function once(method: string, fault: Fault, about: (heard: Heard) => boolean = () => true): void {
  let met = false
  there.fault = (heard) => {
    if (met || heard.method !== method || !about(heard)) return undefined
    met = true
    return fault
  }
}

/** The exit code and the words with which it fails. */
async function failure(doing: Promise<unknown>): Promise<[number, string]> {
  const error = await doing.catch((caught: unknown) => caught)
  return [exitCode(error), String(error)]
}

const isLog = ({ key }: Heard): boolean => key.endsWith('.json')

test('objects are made, read, listed over pages and removed, whatever their names', async () => {
  const to = opened()
  const names = ['log/0.json', "t/group=x/a+b (1)&'é%2F.parquet", 't/deep/er/c', 't/d', 't/e', 'tt/f']
  for (const name of names) {
    writeFileSync(local, name)
    await to.put(name, local)
  }
  expect((await to.list('t')).map(({ path }) => path).toSorted()).toEqual(names.slice(1, 5).toSorted())
  expect((await to.list('')).length).toBe(names.length)
  expect(await to.list('log')).toEqual([
    { path: 'log/0.json', bytes: 10, modified: Date.UTC(2026, 10, 22, 10, 11, 12) / 1000 },
  ])
  expect((await to.read(names[1] ?? ''))?.toString()).toBe(names[1])
  expect(await to.get(names[1] ?? '', local)).toBe(true)
  expect(readFileSync(local, 'utf8')).toBe(names[1])
  expect([...there.objects.keys()].every((key) => key.startsWith('team/a b/'))).toBe(true)
  await to.remove('t/d')
  await to.remove('t/d')
  expect(await to.read('t/d')).toBeUndefined()
  expect(await to.get('t/d', local)).toBe(false)
  await to.replace('hint', 'old')
  await to.replace('hint', 'new')
  expect((await to.read('hint'))?.toString()).toBe('new')
  expect(to.uri).toBe('s3://lake/team/a b')
})

test('of thirty writers that create one object one wins', async () => {
  const ends = await Promise.all(
    Array.from({ length: 30 }, async (_, n) => await opened().create('log/0.json', `${n}`)),
  )
  expect(ends.filter((end) => end === 'created')).toHaveLength(1)
  expect(there.objects.get('team/a b/log/0.json')?.toString()).toBe(String(ends.indexOf('created')))
})

test('a create whose answer is lost is read back: it was made, or another had been there', async () => {
  const to = opened()
  once('PUT', 'cut-after', isLog)
  expect(await to.create('log/0.json', 'mine')).toBe('created')
  once('PUT', 'cut-before', isLog)
  expect(await to.create('log/0.json', 'yours')).toBe('exists')
  once('PUT', { status: 503, code: 'SlowDown' }, isLog)
  expect(await to.create('log/1.json', 'mine')).toBe('created')
  once('PUT', { status: 409, code: 'ConditionalRequestConflict' }, isLog)
  expect(await to.create('log/1.json', 'yours')).toBe('exists')
  once('PUT', { status: 500, code: 'InternalError' }, isLog)
  expect(await to.create('log/2.json', 'mine')).toBe('created')
  expect([0, 1, 2].map((n) => there.objects.get(`team/a b/log/${n}.json`)?.toString())).toEqual([
    'mine',
    'mine',
    'mine',
  ])
})

test('if the check of a cut upload is cut too, the next try finds the object', async () => {
  const to = opened()
  await to.create('first.json', 'x')
  const faults: (Fault | undefined)[] = ['cut-after', 'cut-before']
  there.fault = () => faults.shift()
  expect(await to.create('log/0.json', 'mine')).toBe('created')
  faults.push('cut-before', 'cut-before')
  expect(await to.create('log/0.json', 'yours')).toBe('exists')
})

test('an object of the same bytes that stood there before is not ours', async () => {
  expect(await opened().create('log/0.json', 'same')).toBe('created')
  expect(await opened().create('log/0.json', 'same')).toBe('exists')
})

test('a server that writes over what is there is refused before anything is committed', async () => {
  there.createOnly = false
  const to = opened()
  expect(await failure(to.create('log/0.json', 'x'))).toEqual([2, expect.stringContaining('If-None-Match')])
  expect(there.objects.has('team/a b/log/0.json')).toBe(false)
})

test('large files travel in parts and are there whole or not at all', async () => {
  const bytes = Buffer.from(Array.from({ length: 3501 }, (_, n) => n % 251))
  writeFileSync(local, bytes)
  const to = opened()
  await to.put('big', local)
  expect(there.objects.get('team/a b/big')).toEqual(bytes)
  expect(there.heard.filter(({ query }) => 'partNumber' in query)).toHaveLength(4)
  once('POST', 'cut-after', ({ query }) => 'uploadId' in query)
  await to.put('again', local)
  expect(there.objects.get('team/a b/again')).toEqual(bytes)
  once('PUT', { status: 403, code: 'AccessDenied' }, ({ query }) => query['partNumber'] === '3')
  expect((await failure(to.put('never', local)))[0]).toBe(3)
  expect(there.objects.has('team/a b/never')).toBe(false)
  expect(there.uploads.size).toBe(0)
})

test('an answer that is none of S3 is no list without files, and nothing is written over or removed upon it', async () => {
  const bytes = Buffer.alloc(2500, 7)
  const to = opened()
  await to.replace('big', 'as it was')
  writeFileSync(local, bytes)
  const none = [2, expect.stringMatching(/expected S3 at http.*an answer of something else.*AWS_ENDPOINT_URL/)]
  once('GET', 'bare')
  expect(await failure(to.list(''))).toEqual(none)
  once('POST', 'bare', ({ query }) => 'uploads' in query)
  expect(await failure(to.put('big', local))).toEqual(none)
  once('PUT', 'bare', ({ query }) => query['partNumber'] === '2')
  expect(await failure(to.put('big', local))).toEqual(none)
  expect(there.uploads.size).toBe(0)
  expect([...there.objects.values()].map(String)).toEqual(['as it was'])
})

test('the rest of a cut answer is requested again, and no torn file is left', async () => {
  const to = opened()
  there.objects.set('team/a b/x', Buffer.alloc(5000, 'x'))
  once('GET', 'cut-within')
  expect(await to.read('x')).toEqual(Buffer.alloc(5000, 'x'))
  once('GET', 'cut-within')
  expect(await to.get('x', local)).toBe(true)
  expect(readFileSync(local)).toEqual(Buffer.alloc(5000, 'x'))
  there.fault = () => 'cut-within'
  const never = join(home, 'never')
  expect((await failure(to.get('x', never)))[0]).toBe(6)
  expect(() => readFileSync(never)).toThrow('ENOENT')
})

test('failures that pass are waited out, with pauses, and not for ever', async () => {
  const web = webTo(there.url)
  const to = s3At('s3://lake/x', web)
  there.fault = () => ({ status: 503, code: 'SlowDown' })
  expect(await failure(to.read('a'))).toEqual([6, expect.stringContaining('run the same command again')])
  expect(web.waits).toHaveLength(5)
  expect(web.waits.every((wait, n) => wait === 200 * 2 ** n)).toBe(true)
})

test.each<[Fault, boolean]>([
  [{ status: 408, code: 'x' }, true],
  [{ status: 429, code: 'TooManyRequests' }, true],
  [{ status: 400, code: 'RequestTimeout' }, true],
  [{ status: 409, code: 'OperationAborted' }, true],
  [{ status: 502, code: 'x' }, true],
  [{ status: 501, code: 'NotImplemented' }, false],
  [{ status: 505, code: 'x' }, false],
  [{ status: 400, code: 'InvalidArgument' }, false],
])('a bucket that answers %j gets the request again: %s', async (fault, again) => {
  const to = opened()
  there.objects.set('team/a b/x', Buffer.from('here'))
  once('GET', fault)
  const read = await to.read('x').catch((error: unknown) => exitCode(error))
  expect(String(read)).toBe(again ? 'here' : '6')
  expect(there.heard).toHaveLength(again ? 2 : 1)
})

const refusals: readonly [string, Fault, number, RegExp][] = [
  ['a key without the right', { status: 403, code: 'AccessDenied' }, 3, /AWS_PROFILE/],
  ['an expired token', { status: 400, code: 'ExpiredToken' }, 3, /AWS_SESSION_TOKEN/],
  [
    'a clock that is off',
    { status: 403, code: 'RequestTimeTooSkewed', headers: { date: 'Sun, 01 Nov 2020 00:00:00 GMT' } },
    2,
    /the clock of this machine: .*minutes off.*set it right/,
  ],
  [
    'another region',
    { status: 301, code: 'PermanentRedirect', headers: { 'x-amz-bucket-region': 'eu-west-3' } },
    2,
    /set AWS_REGION=eu-west-3/,
  ],
  ['a full server', { status: 507, code: 'XMinioStorageFull' }, 6, /XMinioStorageFull/],
  ['something else that answers', { status: 404, code: 'x' }, 2, /AWS_ENDPOINT_URL/],
  ['something else that has moved', { status: 301, code: 'x' }, 2, /AWS_ENDPOINT_URL/],
]

test.each(refusals)('%s is one line with its exit code, and no key in it', async (_, fault, code, words) => {
  there.fault = () => fault
  for (const act of [
    async (to: Destination) => await to.read('a'),
    async (to: Destination) => await to.list('a'),
    async (to: Destination) => await to.create('a', 'x'),
    async (to: Destination) => await to.remove('a'),
  ]) {
    const told = await failure(act(opened()))
    expect(told).toEqual([code, expect.stringMatching(words)])
    expect(told[1]).not.toMatch(new RegExp(`${s3Key.id}|${s3Key.secret}|\n`))
  }
})

test('unknown keys, a missing bucket and a missing host give different errors', async () => {
  for (const [to, code, words] of [
    [opened({ AWS_SECRET_ACCESS_KEY: 'another-secret-key' }), 3, 'SignatureDoesNotMatch'],
    [opened({ AWS_ACCESS_KEY_ID: 'another-key' }), 3, 'InvalidAccessKeyId'],
    [opened({}, 's3://other'), 2, 'aws s3 mb s3://other'],
    [opened({ AWS_ENDPOINT_URL: 'https://s3.nowhere.invalid' }), 2, 'no such host'],
    [opened({ AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }), 6, 'ECONNREFUSED'],
  ] as const)
    expect(await failure(to.read('a'))).toEqual([code, expect.stringContaining(words)])
})

test('an interrupt ends a wait in words', async () => {
  const stop = new AbortController()
  const web = { ...webTo(there.url), signal: stop.signal, wait: async () => stop.abort() }
  there.fault = () => 'cut-before'
  expect((await failure(s3At('s3://lake', web).read('a')))[0]).toBe(5)
})

const badTexts = ['s3://', 's3://UPPER/x', `s3://${s3Key.id}:${s3Key.secret}@lake/x`, 's3://lake/../x', 'gs://lake']
test.each(badTexts)('%s is refused in one line', (text) => {
  const open = (): unknown => destinationOf(text, { disk: realDisk, mark: 'm', web: webTo(there.url) })
  expect(open).toThrow(/s3:\/\/bucket\/prefix/)
  expect(open).not.toThrow(new RegExp(s3Key.secret))
})

test('a listing that leads to itself is an error, and no key of it is used', async () => {
  const to = opened()
  for (const name of ['a', 'b', 'c', 'd', 'e']) await to.replace(name, name)
  there.loops = true
  expect(await failure(to.list(''))).toEqual([
    6,
    expect.stringMatching(/listing s3:\/\/lake: expected a list that ends, got the same token again after 1 pages/),
  ])
})

test('a redirect says where to, without what its address may hold, and not that it may go better', async () => {
  const to = opened()
  for (const status of [301, 302, 307, 308]) {
    there.fault = () => ({
      status,
      code: 'TemporaryRedirect',
      headers: { location: 'https://else.example/x?token=abc' },
    })
    for (const doing of [async () => to.read('a'), async () => to.replace('a', 'b'), async () => to.list('')]) {
      expect(await failure(doing())).toEqual([
        2,
        expect.stringMatching(/got a redirect to https:\/\/else\.example; set AWS_ENDPOINT_URL/),
      ])
    }
  }
})
