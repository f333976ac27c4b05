import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isLoopback, type Settings } from '../../catalog/settings.ts'
import { usage } from '../../base/errors.ts'
import { redact } from '../../base/secrets.ts'
import { readStream } from '../../lake/store/files.ts'
import { longestHead, longestQuestion } from './bounds.ts'
import type { Asker } from './turns.ts'

/** File that is sent as an answer, and removed afterwards. */
interface SentFile extends AsyncDisposable {
  readonly path: string
  readonly bytes: number
}

/** A response of the server; several requests may share one. */
export interface HttpResponse {
  readonly status: number
  readonly type: string
  /** A text is cleared of keys; bytes and files are sent as they are. */
  readonly body: string | Uint8Array | SentFile
  readonly headers?: Readonly<Record<string, string>>
}

/** A request of a reader. */
export interface HttpQuestion extends Asker {
  readonly method: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** The body as text; it is not read before. */
  readonly body: () => Promise<string>
}

/** Handlers of the server by path. */
export type Routes = Readonly<Record<string, (question: HttpQuestion) => Promise<HttpResponse>>>

/** Conditions under which readers are admitted. */
interface Manner {
  /** Maximum number at once; further connections are closed. */
  readonly readers: number
  /** Paths that also take a POST; if there are some, an answer may take long. */
  readonly posts: readonly string[]
  /** Paths to which other sites may link; `/` by default. */
  readonly linked?: readonly string[]
  /** Paths without data, which are shown without a token, too. */
  readonly free?: readonly string[]
  /** Hears why an answer was not sent. */
  readonly note?: (words: string) => void
}

/** A page and some numbers are looked at by few. */
const few: Manner = { readers: 32, posts: [] }
/** Milliseconds that the server waits for its readers. */
interface Patience {
  /** Milliseconds for a whole head. */
  readonly head: number
  /** Milliseconds for a head and the whole body after it. */
  readonly body: number
  /** Milliseconds for a part of an answer to be taken. */
  readonly answer: number
}

const usualPatience: Patience = { head: 5000, body: 30_000, answer: 30_000 }
/** The part of the places that the connections of one address may take. */
const addressShare = 3 / 4
/** Number of longest bodies that are read and thrown away of one that is longer, so that its client gets the reason. */
const thrownAway = 64

/** Address at which a server listens. */
export interface ListenAddress {
  /** Host name or IP address, without brackets. */
  readonly host: string
  /** 0: any free port. */
  readonly port: number
}

/** Reads `--listen`; off loopback only if a token is set. */
export function listenAt(text: string, { token }: Pick<Settings, 'token'>): ListenAddress {
  const [, host = '', digits = ''] = /^([\w.:-]+|\[[\da-fA-F:.]+\]):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits)
  const url = `http://${host}`
  if (host === '' || (host.includes(':') && !host.startsWith('[')) || port > 65_535 || !URL.canParse(url))
    throw usage('--listen', { expected: 'an address and a port, such as 127.0.0.1:9464', got: `"${text}"` })
  if (token === null && !isLoopback(url))
    throw usage('--listen', {
      expected: 'an address of this machine alone, such as 127.0.0.1',
      got: host,
      next: 'set PITLAKE_TOKEN to listen elsewhere: readers have to know it',
    })
  return { host: new URL(url).hostname.replace(/^\[|\]$/g, ''), port }
}

/** Opens the server; an address that is not available is a mistake of the call. */
export async function listen(
  { host, port }: ListenAddress,
  settings: Readers,
  shows: Routes,
  manner: Manner = few,
  patience: Patience = usualPatience,
) {
  const requestTimeout = manner.posts.length === 0 ? patience.head : patience.body
  const limits = { headersTimeout: patience.head, requestTimeout, keepAliveTimeout: patience.head }
  // Read here, because as a module it loads the client of HTTP, too: 60 ms that other commands do not need.
  const { createServer } = await import('node:http')
  const server = createServer(
    { ...limits, connectionsCheckingInterval: patience.head / 5, maxHeaderSize: longestHead },
    (request, response) => {
      if (manner.posts.length > 0) response.setTimeout(0)
      const answer = answerTo(request, goneOf(response), settings, shows, manner)
      answer
        .then(async (shown) => await send(request, response, shown, patience))
        // An answer that cannot be sent, or whose file cannot be removed, must not end the server.
        .catch((error: unknown) => {
          response.destroy()
          const words = error instanceof Error ? error.message : String(error)
          manner.note?.(`an answer was not sent: ${redact(words, settings.secrets)}`)
        })
    },
  )
  boundConnections(server, manner.readers)
  server.on('clientError', refuseHead)
  server.timeout = patience.answer
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const got = portRefusals[code ?? ''] ?? code ?? String(cause)
    const next = 'end the program that uses it, or name another port'
    const expected = 'a free port of an address of this machine'
    throw usage(`--listen ${host}:${port}`, { expected, got, next: code === 'EADDRINUSE' ? next : undefined, cause })
  }
  const address = server.address()
  const open = typeof address === 'object' && address !== null ? address.port : port
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${open}`
  const close = async (): Promise<void> => {
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return { url, [Symbol.asyncDispose]: close }
}

/**
 * Keeps one client from taking every connection. Connections beyond the places are closed. The last place, and a place
 * beyond the share of an address, are made free again by closing the oldest connection without a whole request: for the
 * last place that of the address with most of them. A client that sends half a head, half a body or nothing loses its
 * place to one with a request.
 */
function boundConnections(server: Server, places: number): void {
  server.maxConnections = places
  const open = new Map<Socket, string>()
  /** Sockets that have sent no complete request since their last answer, the oldest first. */
  const idle = new Set<Socket>()
  const oldestIdle = (client: string): Socket | undefined => idle.values().find((socket) => open.get(socket) === client)
  const count = (sockets: Iterable<Socket>): Map<string, number> => {
    const counts = new Map<string, number>()
    for (const socket of sockets) counts.set(open.get(socket) ?? '', (counts.get(open.get(socket) ?? '') ?? 0) + 1)
    return counts
  }
  server.on('connection', (socket) => {
    const client = clientOf(socket)
    open.set(socket, client)
    idle.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      idle.delete(socket)
    })
    if ((count(open.keys()).get(client) ?? 0) > Math.ceil(places * addressShare)) oldestIdle(client)?.destroy()
    else if (open.size >= places) {
      const [[crowded] = ['']] = [...count(idle)].toSorted(([, a], [, b]) => b - a)
      oldestIdle(crowded)?.destroy()
    }
  })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    request.once('end', () => idle.delete(socket))
    response.once('close', () => {
      if (open.has(socket)) idle.add(socket)
    })
  })
}

/**
 * Identifies the client behind a connection: its address, of IPv6 the network of 64 bits, in which one machine has many
 * addresses.
 */
export function clientOf({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string {
  const plain = remoteAddress.replace(/^::ffff:(?=[\d.]+$)/i, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.replace(/%.*$/, '').split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}

const portRefusals: Readonly<Record<string, string>> = {
  EADDRINUSE: 'a port in use',
  EADDRNOTAVAIL: 'an address of a different machine',
  ENOTFOUND: 'an unknown host name',
  EACCES: 'a port that this user may not take',
}

/** Returns a signal that aborts when the reader goes away before it has its answer. */
function goneOf(response: ServerResponse): AbortSignal {
  const closing = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) closing.abort()
  })
  return closing.signal
}

/**
 * Whether this reader may read. Without a token only requests that address this machine by its own name are allowed,
 * and none from a page of another site: a page in a browser that was made to believe that its own name is 127.0.0.1
 * sends requests under that name.
 */
function allows({ headers }: IncomingMessage, url: URL | null, token: string | null): boolean {
  const { host, origin, authorization = '' } = headers
  if (token === null) return host !== undefined && isOwnName(host) && (origin === undefined || isOwnOrigin(origin))
  const shown = /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? url?.searchParams.get('token') ?? null
  return shown !== null && timingSafeEqual(digest(shown), digest(token))
}

/** Header in which a program names itself, so that it alternates with others at the places of its address. */
export const programHeader = 'pitlake-client'

const isOwnName = (host: string): boolean => URL.canParse(`http://${host}`) && isLoopback(`http://${host}`)
const isOwnOrigin = (origin: string): boolean => URL.canParse(origin) && isLoopback(origin)

/** Origins that a browser may report for a question; other sites may link only to the page of the lake. */
const ownSites: readonly unknown[] = ['same-origin', 'none']

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

type Readers = Pick<Settings, 'token' | 'secrets'>

async function answerTo(
  request: IncomingMessage,
  closed: AbortSignal,
  { token, secrets }: Readers,
  shows: Routes,
  { posts, linked = ['/'], free = [] }: Manner,
): Promise<HttpResponse> {
  const { method = '', headers, url: address = '' } = request
  const url = URL.canParse(address, 'http://here') ? new URL(address, 'http://here') : null
  const path = url?.pathname ?? null
  const client = clientOf(request.socket)
  const posted = path !== null && posts.includes(path)
  if (!posted) request.resume()
  const isFree = token !== null && path !== null && free.includes(path)
  if (!isFree && !allows(request, url, token))
    return plain(401, 'not authorised: PITLAKE_TOKEN as `Authorization: Bearer …` or `?token=…`')
  const allow = posted ? 'GET, POST' : 'GET, HEAD'
  if (!allow.split(', ').includes(method))
    return { ...plain(405, `${allow.replace(',', ' and')} only`), headers: { allow } }
  if (!(path !== null && linked.includes(path)) && !ownSites.includes(headers['sec-fetch-site'] ?? 'none'))
    return plain(403, 'refused: the request comes from a page of a different site (Sec-Fetch-Site)')
  const show = path !== null && Object.hasOwn(shows, path) ? shows[path] : undefined
  if (show === undefined) return plain(404, `nothing here; ${Object.keys(shows).join(', ')}`)
  try {
    const query = new URLSearchParams(url?.searchParams)
    query.delete('token')
    const program = [headers[programHeader]].flat()[0]
    const shown = await show({
      method,
      query,
      headers,
      client,
      program,
      closed,
      body: async () => await bodyOf(request),
    })
    return { ...shown, body: typeof shown.body === 'string' ? redact(shown.body, secrets) : shown.body }
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    return plain(503, redact(words, secrets))
  }
}

/** Answers to requests that Node does not read, by its code. */
const headRefusals: Readonly<Record<string, readonly [status: string, words: string]>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    `the head: expected at most ${longestHead} bytes, got more; send SQL as the body of a POST`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not arrive in time'],
}

/** Answers a request that Node does not read in one line, and hangs up. */
function refuseHead({ code = '' }: NodeJS.ErrnoException, socket: Duplex): void {
  const [status, words] = headRefusals[code] ?? ['400 Bad Request', 'the request: expected HTTP, got something else']
  const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8`
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy()
  // Whoever still sends hears no answer: the rest is read and thrown away, so much of it.
  let left = thrownAway * longestQuestion
  socket.removeAllListeners('data')
  socket.on('data', (part: Buffer) => {
    left -= part.length
    if (left < 0) socket.destroy()
  })
  socket.end(`${head}\r\ncontent-length: ${words.length + 1}\r\n\r\n${words}\n`, () => {
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.destroy()
  })
}

/** Reads the body of a request as text, if it is not too long. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  // Whoever still sends hears no answer: a body that is too long is read to its end first.
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes <= longestQuestion) parts.push(part)
    if (bytes > thrownAway * longestQuestion) break
  }
  if (bytes > longestQuestion) throw usage('the body', { expected: `at most ${longestQuestion} bytes`, got: 'more' })
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
  } catch (cause) {
    throw usage('the body', { expected: 'UTF-8', got: 'other bytes', cause })
  }
}

const plain = (status: number, words: string): HttpResponse => ({ status, type: 'text/plain', body: `${words}\n` })

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  shown: HttpResponse,
  patience: Patience,
): Promise<void> {
  const { status, type, body, headers } = shown
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  response.setTimeout(patience.answer)
  response.writeHead(status, {
    'content-type': typeof body === 'string' ? `${type}; charset=utf-8` : type,
    ...(status !== 304 && { 'content-length': 'path' in bytes ? bytes.bytes : bytes.length }),
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    // The unread part of a body is not read for the next question.
    ...(!request.complete && { connection: 'close' }),
    ...headers,
  })
  if (!('path' in bytes)) return void response.end(request.method === 'HEAD' ? undefined : bytes)
  await using file = bytes
  await pipeline(readStream(file.path), response).catch(() => undefined)
}
