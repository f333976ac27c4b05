import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { constants, createGzip } from 'node:zlib'
import { usage } from '../base/errors.ts'
import type { Sandbox } from './sandbox.ts'

/** Address at which a sandbox listens; port 0 takes a free one. */
interface ServeOptions {
  readonly port: number
  readonly host?: string
  /** Waits as long as answers in flight may take once it closes. */
  readonly grace?: () => Promise<void>
}

/** Bodies below this many bytes are not worth compressing. */
const smallBody = 1024

/** A sandbox that listens on a port of this machine. */
export interface ServedSandbox extends AsyncDisposable {
  readonly port: number
  /** The base address, without a path. */
  readonly url: string
  /** Stops listening and closes every connection. */
  readonly close: () => Promise<void>
}

/**
 * Puts a sandbox on a port of this machine; one in use is a usage error. Closing stops listening, lets answers in
 * flight end while `grace` lasts, then closes every connection.
 */
export async function serve(sandbox: Sandbox, options: ServeOptions): Promise<ServedSandbox> {
  const host = options.host ?? '127.0.0.1'
  const server = createServer({ keepAliveTimeout: 60_000, noDelay: true }, (incoming, outgoing) => {
    answer(sandbox, incoming, outgoing).catch((error: unknown) => failed(outgoing, error))
  })
  server.listen(options.port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause)
    const got = code === 'EADDRINUSE' ? 'a port in use' : code
    throw usage(`port ${options.port}`, { expected: 'a free port', got, next: 'try --port 0', cause })
  }
  const { port } = server.address() as AddressInfo
  const end = (): Promise<void> => close(server, options.grace)
  return { port, url: `http://${host}:${port}`, close: end, [Symbol.asyncDispose]: end }
}

async function close(server: Server, grace: (() => Promise<void>) | undefined): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  if (grace) await Promise.race([closed, grace()])
  server.closeAllConnections()
  await closed
}

async function answer(sandbox: Sandbox, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const closing = new AbortController()
  outgoing.once('close', () => closing.abort())
  const response = await sandbox.handle(requestOf(incoming, closing.signal))
  if (closing.signal.aborted) {
    await response.body?.cancel()
    return
  }
  if (response.type === 'error') {
    incoming.socket.resetAndDestroy()
    return
  }
  await send(response, incoming, outgoing, closing.signal)
}

/** Reports a defect of the sandbox instead of breaking the connection; a caller that went away needs no answer. */
function failed(outgoing: ServerResponse, error: unknown): void {
  if (outgoing.headersSent || outgoing.destroyed) outgoing.destroy()
  else outgoing.writeHead(500, { 'content-type': 'text/plain' }).end(`sandbox: ${String(error)}\n`)
}

/** Converts a request. No answer of the sandbox takes a body: a request with one is refused by its method. */
function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const pairs = incoming.rawHeaders.flatMap((name, i, all): [string, string][] =>
    i % 2 ? [] : [[name, all[i + 1] ?? '']],
  )
  const url = new URL(incoming.url ?? '/', `http://${incoming.headers.host ?? 'localhost'}`)
  return new Request(url, { method: incoming.method ?? 'GET', headers: pairs, signal })
}

/** Sends head and body; a body that fails ends the connection at that point. */
async function send(
  response: Response,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  closed: AbortSignal,
): Promise<void> {
  const headers: Record<string, string> = Object.fromEntries(response.headers)
  if (response.body === null) {
    outgoing.writeHead(response.status, headers).end()
    return
  }
  const reader = response.body.getReader()
  closed.addEventListener('abort', () => void reader.cancel().catch(() => {}), { once: true })
  const exact = headers['cache-control'] === 'no-transform'
  const first = await start(reader, exact)
  if (first.done && !exact) {
    const whole = Buffer.concat(first.chunks)
    if (whole.length < smallBody || !acceptsGzip(incoming)) {
      outgoing.writeHead(response.status, { ...headers, 'content-length': String(whole.length) }).end(whole)
      return
    }
  }
  const packed = !exact && acceptsGzip(incoming) && headers['content-encoding'] === undefined
  if (packed) {
    headers['content-encoding'] = 'gzip'
    headers['vary'] = 'accept-encoding'
    delete headers['content-length']
  }
  outgoing.writeHead(response.status, headers)
  const source = Readable.from(chunksOf(first, reader))
  source.once('error', () => breakOff(outgoing))
  outgoing.once('close', () => source.destroy())
  if (packed) source.pipe(createGzip({ level: constants.Z_BEST_SPEED })).pipe(outgoing)
  else source.pipe(outgoing)
}

/** The first chunks of a body. */
interface BodyStart {
  readonly chunks: readonly Uint8Array[]
  /** Whether they are all. */
  readonly done: boolean
}

async function start(reader: ReadableStreamDefaultReader<Uint8Array>, exact: boolean): Promise<BodyStart> {
  const chunks: Uint8Array[] = []
  while (!exact && chunks.length < 2 && (chunks[0]?.length ?? 0) <= 4 * smallBody) {
    const next = await reader.read()
    if (next.done) return { chunks, done: true }
    chunks.push(next.value)
  }
  return { chunks, done: false }
}

async function* chunksOf({ chunks, done }: BodyStart, reader: ReadableStreamDefaultReader<Uint8Array>) {
  yield* chunks
  while (!done) {
    const next = await reader.read()
    if (next.done) return
    yield next.value
  }
}

function acceptsGzip(incoming: IncomingMessage): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(incoming.headers['accept-encoding'] ?? '')
}

/** Lets the written bytes reach the other side, then destroys the connection. */
function breakOff(outgoing: ServerResponse): void {
  outgoing.flushHeaders()
  setImmediate(() => {
    const { socket } = outgoing
    socket?.write('', () => socket.destroy())
  })
}
