import { existsSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { createHttp, type Http, type Reply } from '../../src/sources/http/http.ts'
import { makeFolder } from '../helpers/folders.ts'

type HttpRequest = Parameters<Http['get']>[0]

type HttpOptions = Parameters<typeof createHttp>[0]

/** What a provider answers in one test. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A provider on loopback for the tests of one file, closed after them. */
export interface Provider {
  readonly folder: string
  readonly base: () => string
  readonly seen: IncomingMessage[]
  readonly answer: (handler: Handler) => void
  readonly http: (changes?: Partial<HttpOptions>) => Http
  /** One request; no outcome may show the key, and only a body leaves a file. */
  readonly get: (handler: Handler, changes?: Partial<HttpOptions>, more?: Partial<HttpRequest>) => Promise<Got>
}

export interface Got extends Reply {
  file: string
}

/** Times that no machine is too slow for; tests of the times themselves have shorter ones. */
export const patient = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 120_000 } as const

/** A key with all that encodings can do to it. */
export const key = 'sk-Zq7/+"tail=='
/** A body of half a megabyte. */
export const body = JSON.stringify(
  Array.from({ length: 20_000 }, (_, i) => ({ t: 1_600_000_000 + i * 600, v: Math.sin(i) })),
)

export function provider(): Provider {
  const folder = makeFolder('http')
  const seen: IncomingMessage[] = []
  let handler: Handler = (_, response) => response.end('[]')
  let base = ''
  let open: Http[] = []
  let files = 0
  const server = createServer((request, response) => {
    seen.push(request)
    response.on('error', () => undefined)
    handler(request, response)
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    await Promise.all(open.map(async (http) => await http.close()))
    open = []
    seen.length = 0
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  })
  const http = (changes: Partial<HttpOptions> = {}): Http => {
    const made = createHttp({
      base,
      key: { name: 'X-Api-Key', key },
      secrets: [],
      userAgent: 'pitlake/0.1',
      connections: 4,
      timeouts: patient,
      maxBytes: 10_000_000,
      proxy: {},
      now: () => Date.now(),
      ...changes,
    })
    open.push(made)
    return made
  }
  const get = async (
    answer: Handler,
    changes: Partial<HttpOptions> = {},
    more: Partial<HttpRequest> = {},
  ): Promise<Got> => {
    handler = answer
    const file = more.file ?? join(folder, `${files++}.json`)
    const reply = await http(changes).get({ url: `${base}/v1/metrics/x?a=BTC`, ...more, file })
    expect(JSON.stringify(reply.outcome)).not.toContain('Zq7')
    expect(existsSync(file)).toBe(reply.outcome.kind === 'body')
    return { ...reply, file }
  }
  return { folder, base: () => base, seen, answer: (next) => void (handler = next), http, get }
}
