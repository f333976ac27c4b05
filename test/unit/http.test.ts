// @module-tag alone
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { createHttp, Reply } from '../../src/sources/http/http.ts'
import { body, key, type Handler, provider } from './http-provider.ts'

const { answer, base, folder, get, http, seen } = provider()
const zipped = gzipSync(body)

describe('a whole body', () => {
  test.each<[string, Record<string, string>, Buffer]>([
    ['as it is', {}, Buffer.from(body)],
    ['in gzip', { 'content-encoding': 'gzip' }, zipped],
    ['in gzip, old name', { 'content-encoding': 'X-GZIP' }, zipped],
    [
      'in gzip of two members',
      { 'content-encoding': 'gzip' },
      Buffer.concat([gzipSync(body.slice(0, 99)), gzipSync(body.slice(99))]),
    ],
  ])('%s is in the file, byte for byte', async (_, headers, bytes) => {
    for (const length of [{}, { 'content-length': String(bytes.length) }]) {
      const { outcome, file, status } = await get((_request, response) => {
        response.writeHead(200, { ...headers, ...length, date: 'Tue, 14 Nov 2023 22:13:20 GMT' })
        for (let i = 0; i < bytes.length; i += 7_001) response.write(bytes.subarray(i, i + 7_001))
        response.end()
      })
      expect(outcome).toMatchObject({ kind: 'body', bytes: body.length, date: 1_700_000_000, file })
      expect(status).toBe(200)
      expect(readFileSync(file, 'utf8')).toBe(body)
    }
  })

  test('an empty body is a body, too: its meaning is decided later', async () => {
    expect((await get((_, response) => response.end())).outcome).toMatchObject({ kind: 'body', bytes: 0 })
  })

  test('is for the owner of the lake alone', async () => {
    const { file } = await get((_, response) => response.end(body))
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('replaces what an earlier try left', async () => {
    const { file } = await get((_, response) => response.end(body))
    await get((_, response) => response.end('[1]'), {}, { file })
    expect(readFileSync(file, 'utf8')).toBe('[1]')
  })

  test('a request sends the key in one header only, and an agent and a tag', async () => {
    await get((_, response) => response.end('[]'), {}, { etag: '"7"' })
    const { headers, url, method } = seen[0] ?? { headers: {}, url: '', method: '' }
    expect(headers).toMatchObject({
      'x-api-key': key,
      'user-agent': 'pitlake/0.1',
      'if-none-match': '"7"',
      'accept-encoding': 'gzip',
    })
    expect([method, url, headers.authorization]).toEqual(['GET', '/v1/metrics/x?a=BTC', undefined])
    await get((_, response) => response.end('[]'), { key: { name: 'Authorization', key } })
    expect(seen[1]?.headers.authorization).toBe(`Bearer ${key}`)
    expect(seen[1]?.headers['x-api-key']).toBeUndefined()
  })
})

test.each([
  ['deflate', deflateSync(body)],
  ['br', brotliCompressSync(body)],
  ['zstd', zstdCompressSync(body)],
  ['gzip, gzip', gzipSync(zipped)],
  ['br, gzip', gzipSync(brotliCompressSync(body))],
])('a body in %s, which was not requested, is refused before a decoder sees it', async (encoding, bytes) => {
  const refused = { kind: 'again', reason: 'protocol', words: 'content encoding: expected gzip or none' }
  const { outcome, file } = await get((_, response) => {
    response.writeHead(200, { 'content-encoding': encoding }).end(bytes)
  })
  expect(outcome).toMatchObject(refused)
  expect(existsSync(file)).toBe(false)
})

describe('the byte ceiling', () => {
  test.each<[string, Handler]>([
    [
      'told by its length',
      (_, response) => response.writeHead(200, { 'content-length': String(body.length) }).end(body),
    ],
    ['not told', (_, response) => void response.write(body, () => response.end())],
    [
      'after decompression',
      (_, response) =>
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(200_000, '['))),
    ],
    [
      'without any end',
      (_, response) => {
        const more = (): void =>
          void (response.writable && response.write(body, (error) => (error ? undefined : more())))
        more()
      },
    ],
  ])('%s', async (_, cutting) => {
    const { outcome } = await get(cutting, { maxBytes: 100_000 })
    expect(outcome).toMatchObject({ kind: 'too_large', by: 'ceiling' })
  })

  test('a body of exactly the ceiling is accepted', async () => {
    expect((await get((_, r) => r.end(body), { maxBytes: body.length })).outcome.kind).toBe('body')
    expect((await get((_, r) => r.end(body), { maxBytes: body.length - 1 })).outcome.kind).toBe('too_large')
  })
})

describe('other answers', () => {
  test('the words of a compressed error are read, the key in them is not shown', async () => {
    const { outcome } = await get((_, response) => {
      response.writeHead(401, { 'content-encoding': 'gzip' }).end(gzipSync(JSON.stringify({ error: `bad key ${key}` })))
    })
    expect(outcome).toMatchObject({ kind: 'unauthorised', words: '{"error":"bad key [key]"}' })
  })

  test('a redirect is not followed', async () => {
    const { outcome } = await get((_, response) =>
      response.writeHead(302, { location: `http://evil.example/?k=${key}` }).end(),
    )
    expect(outcome).toMatchObject({ kind: 'unexpected', status: 302, location: 'another address' })
    expect(seen).toHaveLength(1)
  })

  test('an endless error body is left after its beginning', async () => {
    const { outcome } = await get((_, response) => {
      response.writeHead(500)
      const more = (): void =>
        void (response.writable && response.write('x'.repeat(65_536), (error) => (error ? undefined : more())))
      more()
    })
    expect(outcome.kind === 'again' && outcome.words).toBe('x'.repeat(300))
  })

  test.each([204, 304])('status %i leaves no body file', async (status) => {
    const { outcome } = await get((_, response) => response.writeHead(status).end())
    expect(outcome.kind).toBe(status === 204 ? 'no_content' : 'not_modified')
  })

  test('limits are read from the head', async () => {
    const { outcome, headers } = await get((_, r) =>
      r.writeHead(429, { 'retry-after': '4000' }).end('{"code":"rate_limited"}'),
    )
    expect(outcome).toMatchObject({ kind: 'limited', waitMs: 4_000_000, code: 'rate_limited' })
    expect(headers['retry-after']).toBe('4000')
  })

  test('connections are used again after errors', async () => {
    answer((_, response) => response.writeHead(404).end('{"error":"gone"}'))
    const one = http({ connections: 1 })
    const sockets = new Set<Socket>()
    for (let i = 0; i < 5; i++) await one.get({ url: `${base()}/x`, file: join(folder, 'none') })
    for (const request of seen) sockets.add(request.socket)
    expect(sockets.size).toBe(1)
  })
})

describe('proxies', () => {
  async function proxied(
    changes: Partial<Parameters<typeof createHttp>[0]>,
    url: string,
  ): Promise<{ asked: string[]; heads: string; reply: Reply }> {
    const asked: string[] = []
    let heads = ''
    const proxy = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      response.end('[]')
    })
    proxy.on('connect', (request, socket) => {
      asked.push(`CONNECT ${request.url}`)
      heads += JSON.stringify(request.headers)
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const address = `http://me:Zq7pw@127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const settings = Object.fromEntries(
      Object.keys(changes.proxy ?? {}).map((name) => [name, name === 'none' ? changes.proxy?.none : address]),
    )
    const reply = await http({ ...changes, proxy: settings }).get({ url, file: join(folder, 'proxied') })
    proxy.closeAllConnections()
    await new Promise((resolve) => proxy.close(resolve))
    return { asked, heads, reply }
  }

  test.each(['https', 'all'])('%s_proxy gets a tunnel request and never the key', async (name) => {
    const url = 'https://provider.invalid/v1/metrics/x'
    const { asked, heads, reply } = await proxied({ base: url, proxy: { [name]: '' } }, url)
    expect(asked).toEqual(['CONNECT provider.invalid:443'])
    expect(heads).not.toMatch(/Zq7\/|api-key/i)
    expect(reply.outcome).toMatchObject({ kind: 'again', reason: 'connect' })
    expect(JSON.stringify(reply.outcome)).not.toContain('Zq7')
  })

  test('no_proxy and the wrong scheme go straight', async () => {
    const url = 'https://provider.invalid/x'
    expect((await proxied({ base: url, proxy: { https: '', none: '.invalid' } }, url)).asked).toEqual([])
    expect((await proxied({ base: url, proxy: { http: '' } }, url)).asked).toEqual([])
  })

  test('loopback never goes through a proxy', async () => {
    answer((_, response) => response.end('[]'))
    const { asked, reply } = await proxied({ proxy: { http: '', all: '' } }, `${base()}/x`)
    expect([asked, reply.outcome.kind]).toEqual([[], 'body'])
  })
})

test('a large body takes no memory: it waits for the disk', async () => {
  const chunk = Buffer.alloc(1 << 20, '1')
  const size = 300
  const before = process.memoryUsage().arrayBuffers
  let peak = 0
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().arrayBuffers - before)), 5)
  const { outcome } = await get(
    (_, response) => {
      let left = size
      const more = (): void => void (left-- > 0 ? response.write(chunk, more) : response.end())
      more()
    },
    { maxBytes: 1e9 },
  )
  clearInterval(timer)
  expect(outcome).toMatchObject({ kind: 'body', bytes: size << 20 })
  expect(peak).toBeLessThan(100 << 20)
})
