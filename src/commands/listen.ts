import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isLoopback, type Settings } from '../config/settings.ts'
import { usage } from '../errors.ts'
import { redact } from '../secrets/secrets.ts'

/** Where to listen: a host as the system takes it, and a port (0: a free one). */
export interface ListenAt {
  readonly host: string
  readonly port: number
}

/** An answer as it goes out; made anew for each request, or shared by several. */
export interface Shown {
  readonly status: number
  readonly type: 'text/html' | 'text/plain' | 'text/plain; version=0.0.4' | 'application/json'
  readonly body: string
}

/** What is shown at which path. */
export type Shows = Readonly<Record<string, () => Promise<Shown>>>

/** A door that is open. */
export interface Door extends AsyncDisposable {
  readonly url: string
}

/** So many readers at once; what comes beside is hung up on. */
const mostReaders = 32
/** Milliseconds that a head may take to come, and an answer to be taken. */
const patience = { head: 5000, answer: 30_000 }

/** Reads `--listen`; off loopback only where a token is set. */
export function listenAt(text: string, { token }: Pick<Settings, 'token'>): ListenAt {
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

/** Opens the door; an address that cannot be had is a mistake of the call. */
export async function listen(
  { host, port }: ListenAt,
  { token, secrets }: Pick<Settings, 'token' | 'secrets'>,
  shows: Shows,
): Promise<Door> {
  const limits = { headersTimeout: patience.head, requestTimeout: patience.head, keepAliveTimeout: patience.head }
  const server = createServer(
    { ...limits, connectionsCheckingInterval: 1000, maxHeaderSize: 8192 },
    (request, response) => {
      request.resume()
      const asked = { path: pathOf(request), allowed: allows(request, token), secrets }
      void answerTo(request, asked, shows).then((answer) => send(request, response, answer))
    },
  )
  server.maxConnections = mostReaders
  server.timeout = patience.answer
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const got = told[code ?? ''] ?? code ?? String(cause)
    throw usage(`--listen ${host}:${port}`, { expected: 'a free port of an address of this machine', got, cause })
  }
  const address = server.address()
  const open = typeof address === 'object' && address !== null ? address.port : port
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${open}`
  return { url, [Symbol.asyncDispose]: async () => await close(server) }
}

const told: Readonly<Record<string, string>> = {
  EADDRINUSE: 'a port in use',
  EADDRNOTAVAIL: 'an address of another',
  ENOTFOUND: 'a name that nobody knows',
  EACCES: 'a port that this user may not take',
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

function pathOf({ url = '' }: IncomingMessage): string | null {
  return URL.canParse(url, 'http://here') ? new URL(url, 'http://here').pathname : null
}

/**
 * Whether this reader may read. Without a token only who asks this machine by its own name: a page in a browser that was
 * told that a name of its own is 127.0.0.1 asks under that name.
 */
function allows({ headers, url = '' }: IncomingMessage, token: string | null): boolean {
  if (token === null) return headers.host !== undefined && isOwnName(headers.host)
  const asked = URL.canParse(url, 'http://here') ? new URL(url, 'http://here').searchParams.get('token') : null
  const shown = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1] ?? asked
  return shown !== null && timingSafeEqual(digest(shown), digest(token))
}

const isOwnName = (host: string): boolean => URL.canParse(`http://${host}`) && isLoopback(`http://${host}`)

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

interface Asked {
  readonly path: string | null
  readonly allowed: boolean
  readonly secrets: readonly string[]
}

async function answerTo({ method }: IncomingMessage, { path, allowed, secrets }: Asked, shows: Shows): Promise<Shown> {
  if (!allowed) return plain(401, 'not authorised: PITLAKE_TOKEN as `Authorization: Bearer …` or `?token=…`')
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'GET and HEAD only')
  const show = path !== null && Object.hasOwn(shows, path) ? shows[path] : undefined
  if (show === undefined) return plain(404, `nothing here; ${Object.keys(shows).join(', ')}`)
  try {
    const shown = await show()
    return { ...shown, body: redact(shown.body, secrets) }
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    return plain(503, redact(words, secrets))
  }
}

const plain = (status: number, words: string): Shown => ({ status, type: 'text/plain', body: `${words}\n` })

function send({ method }: IncomingMessage, response: ServerResponse, { status, type, body }: Shown): void {
  const bytes = Buffer.from(body)
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': bytes.length,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
    ...(status === 405 && { allow: 'GET, HEAD' }),
    // A page that stays open shows how the lake is.
    ...(type === 'text/html' && { refresh: '60' }),
  })
  response.end(method === 'HEAD' ? undefined : bytes)
}
