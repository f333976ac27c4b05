import { createReadStream, createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { LakeError } from '../errors.ts'
import { isDiskError } from './body.ts'
import { createDispatcher, type HttpOptions, rootOf } from './http.ts'
import type { Headers } from './limits.ts'

/** Some bytes of a local file. */
export interface FilePart {
  readonly file: string
  readonly start: number
  readonly bytes: number
}

/** One request whose head and body are the caller's own. */
export interface Exchange {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** With the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | FilePart | undefined
  /** Where the body of a 200 goes; the file is there afterwards only if it came whole. */
  readonly into?: string | undefined
}

/** What came of it: an answer of any status, or none. */
export type Exchanged =
  | { readonly kind: 'answer'; readonly status: number; readonly headers: Headers; readonly body: Buffer }
  | { readonly kind: 'fault'; readonly code: string; readonly words: string }

/** What is read into memory of an answer. */
const mostBytes = 1 << 28

/** What sends requests to one origin. A disk that fails is thrown; whatever the other side does comes back. */
export function exchangesWith(options: Pick<HttpOptions, 'base' | 'connections' | 'timeouts' | 'proxy'>) {
  const { origin } = new URL(options.base)
  const dispatcher = createDispatcher(options)
  return async ({ headers, body, into, ...rest }: Exchange, signal: AbortSignal): Promise<Exchanged> => {
    const sent = body === undefined || Buffer.isBuffer(body) ? body : partOf(body)
    try {
      const asked = { ...rest, origin, headers: { ...headers }, body: sent ?? null, signal }
      const { statusCode: status, ...answer } = await dispatcher.request(asked)
      const kept = into !== undefined && status === 200 ? await keep(answer.body, into, answer.headers) : undefined
      return { kind: 'answer', status, headers: answer.headers, body: kept ?? (await readAll(answer.body)) }
    } catch (error) {
      if (error instanceof LakeError || isDiskError(error)) throw error
      return { kind: 'fault', ...rootOf(error) }
    }
  }
}

function partOf({ file, start, bytes }: FilePart): Readable | Buffer {
  return bytes === 0 ? Buffer.alloc(0) : createReadStream(file, { start, end: start + bytes - 1 })
}

/** Streams a body into a file and gives no bytes back; a short one leaves no file. */
async function keep(body: Readable, into: string, headers: Headers): Promise<Buffer> {
  const file = createWriteStream(into, { mode: 0o600 })
  try {
    await pipeline(body, file)
    const length = headers['content-length']
    if (typeof length === 'string' && Number(length) !== file.bytesWritten)
      throw Object.assign(new Error(`${file.bytesWritten} of ${length} bytes came`), { code: 'UND_ERR_SHORT' })
    return Buffer.alloc(0)
  } catch (error) {
    await rm(into, { force: true })
    throw error
  }
}

async function readAll(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > mostBytes)
      throw new LakeError('unexpected', { subject: 'answer', expected: `at most ${mostBytes} bytes`, got: 'more' })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
