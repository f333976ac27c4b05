import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { createServer as createTcp, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createGzip, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { body, key, type Handler, patient, provider } from './http-provider.ts'

const { answer, base, folder, get, http, seen } = provider()
const zipped = gzipSync(body)

describe('a cut body is asked again', () => {
  const cuts: [string, Handler][] = [
    [
      'by length',
      (_, response) => {
        response.writeHead(200, { 'content-length': String(body.length) })
        response.write(body.slice(0, 5_000), () => response.destroy())
      },
    ],
    [
      'by a reset inside a chunked body',
      (_, response) => response.write(body.slice(0, 5_000), () => response.socket?.resetAndDestroy()),
    ],
    [
      'by the end of a chunked body without its last chunk',
      (_, response) => response.write(body.slice(0, 5_000), () => response.socket?.end()),
    ],
    [
      'in gzip, though the transport ends well',
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped.subarray(0, zipped.length - 100))
      },
    ],
    [
      'in gzip, only the checksum missing',
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped.subarray(0, zipped.length - 8))
      },
    ],
    [
      'in gzip, with its length told',
      (_, response) => {
        const part = zipped.subarray(0, 5_000)
        response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': String(part.length) }).end(part)
      },
    ],
    [
      'in gzip, a byte wrong',
      (_, response) => {
        const wrong = Buffer.from(zipped)
        wrong[wrong.length >> 1] = (wrong[wrong.length >> 1] ?? 0) ^ 0xff
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(wrong)
      },
    ],
    ['in gzip, nothing at all', (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end()],
  ]
  test.each(cuts)('%s', async (_, cutting) => {
    expect((await get(cutting)).outcome).toMatchObject({ kind: 'again', reason: 'cut', status: 200, waitMs: null })
  })
})

describe('what unfolds to more than 32 MB', () => {
  const zip = (text: string | Buffer): Handler => {
    const packed = gzipSync(text, { level: 1 })
    return (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed)
  }

  test('is a bomb where next to nothing was sent', async () => {
    const { outcome } = await get(zip(Buffer.alloc(33_000_000, ' ')), { maxBytes: 100_000_000 })
    expect(outcome).toMatchObject({ kind: 'too_large', by: 'bomb' })
  })

  test('is a body where as much was sent as numbers need', async () => {
    const text = randomBytes(1_000_000).toString('hex').repeat(17)
    const { outcome } = await get(zip(text), { maxBytes: 100_000_000 })
    expect(outcome).toMatchObject({ kind: 'body', bytes: text.length })
  })
})

test('an encoding in two headers is read as one list', async () => {
  const { outcome } = await get((_, response) => {
    response.setHeader('content-encoding', ['identity', 'gzip'])
    response.end(zipped)
  })
  expect(outcome).toMatchObject({ kind: 'body', bytes: body.length })
})

describe('timeouts', () => {
  const soon = { timeouts: { ...patient, firstByteMs: 400, idleMs: 400 } }

  test('a request whose first byte is late ends in a timeout and is repeated', async () => {
    const { outcome } = await get(() => undefined, soon)
    expect(outcome).toMatchObject({ kind: 'again', reason: 'timeout', status: null })
    expect(outcome.kind === 'again' && outcome.words).toMatch(/^UND_ERR_HEADERS_TIMEOUT/)
  })

  test('a request whose body stops ends in a timeout and is repeated', async () => {
    const { outcome } = await get((_, response) => void response.write(body.slice(0, 3_000)), soon)
    expect(outcome).toMatchObject({ kind: 'again', reason: 'timeout', status: 200 })
    expect(outcome.kind === 'again' && outcome.words).toMatch(/^UND_ERR_BODY_TIMEOUT/)
  })

  test('a body that trickles is cut off by the time for the whole request', async () => {
    let timer: NodeJS.Timeout | undefined
    const { outcome } = await get((_, response) => void (timer = setInterval(() => response.write('[1,'), 50)), {
      timeouts: { ...patient, totalMs: 700 },
    })
    clearInterval(timer)
    expect(outcome).toMatchObject({ kind: 'again', reason: 'timeout', words: 'the whole request took too long' })
  })

  test('a slow body that keeps coming is let through', async () => {
    const { outcome } = await get((_, response) => {
      void (async () => {
        for (let i = 0; i < 8; i++) {
          response.write('[')
          await wait(150)
        }
        response.end(']')
      })()
    }, soon)
    expect(outcome).toMatchObject({ kind: 'body', bytes: 9 })
  })

  const drips = { smallestRate: 1_000, timeouts: { ...patient, paceMs: 300 } }
  const dripping =
    (encoding?: string): Handler =>
    (_, response) => {
      const gzip = createGzip()
      const body = encoding === undefined ? response : gzip
      if (encoding !== undefined) gzip.pipe(response.setHeader('content-encoding', encoding))
      const timer = setInterval(() => {
        body.write('[')
        if (body === gzip) gzip.flush()
      }, 20)
      response.on('close', () => clearInterval(timer))
    }

  test.each([
    ['plain', undefined],
    ['compressed', 'gzip'],
  ])('a body that drips is given up: %s', async (_, encoding) => {
    const { outcome } = await get(dripping(encoding), drips)
    expect(outcome).toMatchObject({ kind: 'again', reason: 'timeout', status: 200 })
    expect(outcome.kind === 'again' && outcome.words).toMatch(/^\d+ bytes in \d s, less than 1000 a second$/)
  })

  test('a body that comes faster than the smallest rate is let through, however long it takes', async () => {
    const { outcome } = await get((_, response) => {
      void (async () => {
        for (let i = 0; i < 12; i++) {
          response.write('['.repeat(2_000))
          await wait(100)
        }
        response.end(']')
      })()
    }, drips)
    expect(outcome).toMatchObject({ kind: 'body', bytes: 24_001 })
  })

  test('a body that begins like a web page is reported as one', async () => {
    const page = await get((_, response) => response.end(' \n<!doctype html><p>Sign in'))
    expect(page.outcome).toMatchObject({ kind: 'body', vain: 'a page' })
    const points = await get((_, response) => response.end(' \n["<"]'))
    expect(points.outcome).not.toHaveProperty('vain')
  })

  test.each(['', '{}', ' {\n} ', 'null'])('JSON without content is reported: %j', async (text) => {
    expect((await get((_, response) => response.end(text))).outcome).toMatchObject({ kind: 'body', vain: 'nothing' })
  })

  test.each(['[]', '{"data":[]}', '[null]', '0'])(
    'JSON that states emptiness is no silent answer: %j',
    async (text) => {
      expect((await get((_, response) => response.end(text))).outcome).not.toHaveProperty('vain')
    },
  )

  test('the head may be waited for less long than usual', async () => {
    const { outcome } = await get(() => undefined, {}, { firstByteMs: 300 })
    expect(outcome).toMatchObject({ kind: 'again', reason: 'timeout', status: null })
  })

  test('an error answer whose body never ends keeps its status', async () => {
    const { outcome } = await get(
      (_, response) => void response.writeHead(400).write('{"error":"unknown parameter \\"s\\""'),
      soon,
      { parameters: [{ name: 'since', key: 's' }] },
    )
    expect(outcome).toMatchObject({
      kind: 'refused',
      parameter: 'since',
      words: '{"error":"unknown parameter \\"s\\""',
    })
  })
})

describe('no answer', () => {
  test('a request to a closed port fails to connect and is repeated', async () => {
    const gone = createTcp()
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve))
    const away = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`
    await new Promise((resolve) => gone.close(resolve))
    const { outcome } = await get(() => undefined, { base: away }, { url: `${away}/x` })
    expect(outcome).toMatchObject({ kind: 'again', reason: 'connect', status: null })
  })

  test.each<[string, string, string]>([
    ['a reset before the head', '', 'reset'],
    ['noise instead of HTTP', 'SSH-2.0-nonsense\r\n\r\n', 'protocol'],
  ])('%s', async (_, noise, reason) => {
    const tcp = createTcp((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => (noise === '' ? socket.resetAndDestroy() : socket.end(noise)))
    })
    await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
    const there = `http://127.0.0.1:${(tcp.address() as AddressInfo).port}`
    const { outcome } = await get(() => undefined, { base: there }, { url: `${there}/x` })
    await new Promise((resolve) => tcp.close(resolve))
    expect(outcome).toMatchObject({ kind: 'again', reason, status: null })
  })

  test('a closed client ends running requests as stopped, without a repetition', async () => {
    const asked = Promise.withResolvers<void>()
    answer(() => asked.resolve())
    const client = http()
    const waiting = client.get({ url: `${base()}/x`, file: join(folder, 'closing') })
    await asked.promise
    await client.close()
    expect((await waiting).outcome).toEqual({ kind: 'stopped', by: 'signal' })
    const late = await client.get({ url: `${base()}/x`, file: join(folder, 'closed') })
    expect(late.outcome).toEqual({ kind: 'stopped', by: 'signal' })
  })

  test('a stop before and during the request', async () => {
    const stop = new AbortController()
    const answered = await get(
      (_, response) => void response.write('[', () => stop.abort()),
      {},
      { signal: stop.signal },
    )
    expect(answered.outcome).toEqual({ kind: 'stopped', by: 'signal' })
    const count = seen.length
    expect((await get(() => undefined, {}, { signal: stop.signal })).outcome.kind).toBe('stopped')
    expect(seen).toHaveLength(count)
  })
})

describe('what is thrown', () => {
  test.each(['https://127.0.0.1/x', 'http://127.0.0.1:1/x', 'http://evil.example/x'])(
    'a request to a different host is refused: %s',
    async (url) => {
      await expect(http().get({ url, file: join(folder, 'none') })).rejects.toThrow('foreign host')
      expect(seen).toHaveLength(0)
    },
  )

  test('a key in the address', async () => {
    const url = `${base()}/x?api_key=${encodeURIComponent(key)}`
    const error: unknown = await http()
      .get({ url, file: join(folder, 'none') })
      .catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(Error)
    expect(String(error)).not.toContain('Zq7')
    expect(seen).toHaveLength(0)
  })

  test.each(['missing/folder/x.json', '.'])('a file that cannot be written: %s', async (name) => {
    answer((_, response) => response.end(body))
    mkdirSync(folder, { recursive: true })
    await expect(http().get({ url: `${base()}/x`, file: join(folder, name) })).rejects.toThrow(/^(?:ENOENT|EISDIR)/)
  })
})
