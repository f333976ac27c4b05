import { rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Selection } from '../../src/catalog/series.ts'
import type { IngestSummary } from '../../src/sources/metrics/run-summary.ts'
import { type Changes, fetchOnce } from './fetching.ts'
import { makeFolder } from './folders.ts'

/**
 * What a provider of a test answers to a path: JSON, or a status with text and headers; the text in pieces of `size`.
 */
export type Answers = (path: string, query: URLSearchParams) => unknown

/** An answer with a status of its own, or a body with headers of its own. */
interface Special {
  readonly status?: number
  readonly text?: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly size?: number
  /** Closes the connection instead of answering. */
  readonly closed?: true
}

/** A provider on loopback that does not call itself a sandbox, and a lake. */
export interface OwnProvider {
  readonly root: string
  readonly url: string
  /** Path and query of every request. */
  readonly seen: string[]
  readonly clock: { now: number }
  answer(answers: Answers): void
  /** Does something while nobody listens there. */
  away<T>(work: () => Promise<T>): Promise<T>
  fetch(selection: Selection, changes?: Changes): Promise<IngestSummary>
}

async function inPieces(response: ServerResponse, { text = '', size = text.length }: Special): Promise<void> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  for (let at = 0; at < bytes.length; at += Math.max(1, size)) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve))
    response.write(bytes.subarray(at, at + Math.max(1, size)))
  }
  response.end()
}

/**
 * Runs the test against a server that answers what it is told; an answer `{status, text}` is one with that status,
 * `{headers, body}` one with those headers.
 */
export async function withProvider(now: number, test: (own: OwnProvider) => Promise<void>): Promise<void> {
  const root = makeFolder('own')
  const seen: string[] = []
  const clock = { now }
  let answers: Answers = () => []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const address = new URL(request.url ?? '/', 'http://localhost')
    seen.push(request.url ?? '')
    const answer = answers(address.pathname.replace('/v1/metrics/', ''), address.searchParams)
    const special = answer as Special | null
    if (special?.closed) return void request.socket.destroy()
    response.setHeader('date', new Date(clock.now * 1000).toUTCString())
    for (const [name, value] of Object.entries(special?.headers ?? {})) response.setHeader(name, value)
    if (typeof special?.status === 'number') void inPieces(response.writeHead(special.status), special)
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(special?.body ?? answer))
  })
  const listen = async (port: number): Promise<void> =>
    await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    await closed
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  try {
    await test({
      root,
      url,
      seen,
      clock,
      answer: (next) => void (answers = next),
      away: async (work) => {
        await close()
        try {
          return await work()
        } finally {
          await listen(port)
        }
      },
      fetch: async (selection, changes) =>
        await fetchOnce({ root, url, now: () => clock.now }, selection, changes ?? {}),
    })
  } finally {
    await close()
    rmSync(root, { recursive: true, force: true })
  }
}
