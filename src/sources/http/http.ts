import { createRequire } from 'node:module'
import { createReadStream, createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type * as Undici from 'undici'
import type { Dispatcher } from 'undici'
import { isLoopback } from '../../catalog/settings.ts'
import { LakeError } from '../../base/errors.ts'
import { redact } from '../../base/secrets.ts'
import { DecodingError, emptyCompressed, isDiskError, readStart, SlowError, spoolBody } from './body.ts'
import type { Headers } from './governor.ts'
import {
  classify,
  wordsOf,
  type AgainReason,
  type AnswerContext,
  type Outcome,
  type QueryParameter,
} from './outcome.ts'

const require = createRequire(import.meta.url)

/** Loads the HTTP client with the first connection, because most commands load this file and request nothing. */
const loadUndici = (): typeof Undici => require('undici') as typeof Undici

/** The values of the usual proxy variables that are set. */
export type ProxySettings = Readonly<Partial<Record<'http' | 'https' | 'all' | 'none', string | undefined>>>

/** The header that carries a provider's key. */
export type KeyHeader = 'X-Api-Key' | 'Authorization'

/** One provider's connection. */
interface HttpOptions {
  /** Requests go to this origin and no other. */
  readonly base: string
  /** The header with the key: the only way a key travels. */
  readonly key: { readonly name: KeyHeader; readonly key: string }
  /** Further texts that must not be written: the keys of this process for other providers. */
  readonly secrets: readonly string[]
  readonly userAgent: string
  readonly connections: number
  /** Time limits; by default 10 s to connect, 2 min to the first byte, 30 s without a byte, 30 min in all. */
  readonly timeouts?: Partial<Timeouts>
  /** Minimum bytes per second of a body, over 30 s; a slower one is abandoned. Any rate by default. */
  readonly smallestRate?: number | undefined
  /** Size of the largest body to store, in bytes after decompression. */
  readonly maxBytes: number
  readonly proxy: ProxySettings
  /** Returns the current time in milliseconds since 1970. */
  readonly now: () => number
}

/** Default time limits of the parts of one request, in milliseconds. */
const usualTimeouts = { connectMs: 10_000, firstByteMs: 120_000, idleMs: 30_000, totalMs: 1_800_000, paceMs: 30_000 }

type Timeouts = Readonly<typeof usualTimeouts>

/** One GET request. The body of a 200 goes to `file`, which exists afterwards only if the outcome is `body`. */
export interface HttpRequest {
  readonly url: string
  readonly file: string
  readonly etag?: string | undefined
  /** Parameters that a refusal may name. */
  readonly parameters?: readonly QueryParameter[] | undefined
  /** Longest wait for the headers, if it is shorter than usual. */
  readonly firstByteMs?: number | null | undefined
  readonly signal?: AbortSignal | undefined
}

/** An outcome with the status and headers of the answer that led to it; without them if there was no answer. */
export interface Reply {
  readonly outcome: Outcome
  readonly status: number | null
  readonly headers: Headers
}

/** Sends single requests to one provider; must be closed. */
export interface Http extends AsyncDisposable {
  /** Sends one request, once. */
  readonly get: (request: HttpRequest) => Promise<Reply>
  /** Ends requests under way as stopped, and closes the connections. */
  readonly close: () => Promise<void>
}

/**
 * Creates a pool of connections to one provider. The provider's behaviour is returned as an outcome; a failing disk is
 * thrown.
 */
export function createHttp(options: HttpOptions): Http {
  const origin = new URL(options.base).origin
  const all = [options.key.key, ...options.secrets, ...proxySecrets(options.proxy)]
  const secrets = [...new Set(all.filter((secret) => secret.length > 0))]
  const dispatcher = createDispatcher(options)
  const closing = new AbortController()
  // Requests under way then end as stopped, so that they are not repeated.
  const close = async (): Promise<void> => {
    closing.abort()
    await dispatcher.destroy()
  }
  return {
    get: async (request: HttpRequest): Promise<Reply> => {
      refuseForeign(request.url, origin, secrets)
      const signal = request.signal ? AbortSignal.any([request.signal, closing.signal]) : closing.signal
      return await send({ ...request, signal }, options, dispatcher, secrets)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

const timeoutsOf = (options: Pick<HttpOptions, 'timeouts'>): Timeouts => ({ ...usualTimeouts, ...options.timeouts })

/**
 * Creates the connections to one origin, through the proxy that is set for it; never through a proxy to this machine.
 */
function createDispatcher(options: Pick<HttpOptions, 'base' | 'connections' | 'timeouts' | 'proxy'>): Dispatcher {
  const { protocol } = new URL(options.base)
  const { proxy } = options
  const timeouts = timeoutsOf(options)
  const chosen = (protocol === 'https:' ? proxy.https : proxy.http) || proxy.all || ''
  const { EnvHttpProxyAgent } = loadUndici()
  return new EnvHttpProxyAgent({
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    headersTimeout: timeouts.firstByteMs,
    bodyTimeout: timeouts.idleMs,
    connect: { timeout: timeouts.connectMs },
    // Empty text, not undefined, so that undici does not look in the process's environment.
    httpProxy: chosen,
    httpsProxy: chosen,
    noProxy: isLoopback(options.base) ? '*' : (proxy.none ?? ''),
  })
}

/** Passwords of proxies are secrets like the key. */
function proxySecrets(proxy: ProxySettings): string[] {
  return [proxy.http, proxy.https, proxy.all].flatMap((address) => {
    if (!address || !URL.canParse(address)) return []
    const { password } = new URL(address)
    return [password, decodeSafely(password)]
  })
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Refuses a request that would send the key to a different host or contain it in its address. */
function refuseForeign(url: string, origin: string, secrets: readonly string[]): void {
  if (new URL(url).origin !== origin) {
    throw new LakeError('unexpected', { subject: 'request to a foreign host', expected: origin })
  }
  if (secrets.some((secret) => url.includes(secret) || url.includes(encodeURIComponent(secret)))) {
    throw new LakeError('unexpected', { subject: 'request address', expected: 'no secret in it' })
  }
}

/** One request under way. */
interface Flight {
  readonly request: HttpRequest
  readonly options: HttpOptions
  readonly secrets: readonly string[]
  readonly started: number
  readonly deadline: AbortSignal
  readonly signal: AbortSignal
}

async function send(
  request: HttpRequest,
  options: HttpOptions,
  dispatcher: Dispatcher,
  secrets: readonly string[],
): Promise<Reply> {
  if (request.signal?.aborted) return { outcome: { kind: 'stopped', by: 'signal' }, status: null, headers: {} }
  const deadline = AbortSignal.timeout(timeoutsOf(options).totalMs)
  const signal = request.signal ? AbortSignal.any([request.signal, deadline]) : deadline
  const flight: Flight = { request, options, secrets, started: options.now(), deadline, signal }
  const { key } = options.key
  const { pathname, search } = new URL(request.url)
  let response: Dispatcher.ResponseData
  try {
    response = await dispatcher.request({
      origin: new URL(request.url).origin,
      path: pathname + search,
      method: 'GET',
      headersTimeout: Math.min(timeoutsOf(options).firstByteMs, request.firstByteMs ?? Infinity),
      headers: {
        [options.key.name]: options.key.name === 'Authorization' ? `Bearer ${key}` : key,
        accept: 'application/json',
        'accept-encoding': 'gzip',
        'user-agent': options.userAgent,
        ...(request.etag === undefined ? {} : { 'if-none-match': request.etag }),
      },
      signal,
    })
  } catch (error) {
    return { outcome: fault(flight, error, null), status: null, headers: {} }
  }
  const headers = withoutKeys(response.headers, secrets)
  const at = options.now()
  return { outcome: await land(flight, response, headers, at), status: response.statusCode, headers }
}

/** Redacts keys in headers other than plain numbers, so that they may be stored. */
function withoutKeys(headers: Headers, secrets: readonly string[]): Headers {
  const clean = (value: string): string => (/^[\s\d.]*$/.test(value) ? value : redact(value, secrets))
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? clean(value) : value?.map(clean),
    ]),
  )
}

/** Determines the outcome of an answer whose headers were read at `at`. */
async function land(
  flight: Flight,
  { statusCode: status, body }: Dispatcher.ResponseData,
  headers: Headers,
  at: number,
): Promise<Outcome> {
  const context = (): AnswerContext => ({
    at,
    requestMs: flight.options.now() - flight.started,
    secrets: flight.secrets,
    parameters: flight.request.parameters ?? [],
  })
  if (status !== 200 && status !== 203) {
    const start = await readStart(body, headers, flight.signal)
    if (flight.request.signal?.aborted) return { kind: 'stopped', by: 'signal' }
    const verdict = classify(status, headers, start, context())
    if (verdict.kind !== 'body') return verdict
  }
  const { secrets, signal, request, options } = flight
  const { maxBytes, smallestRate: bytesPerSecond = 0, now } = options
  const pace = bytesPerSecond > 0 ? { bytesPerSecond, overMs: timeoutsOf(options).paceMs, now } : undefined
  const spooled = await spoolBody(body, headers, { file: request.file, maxBytes, secrets, signal, pace })
  if (spooled.kind === 'fault') return fault(flight, spooled.error, status)
  const verdict = classify(status, headers, '', context())
  if (verdict.kind !== 'body') return verdict
  if (spooled.kind !== 'whole') return { ...verdict, kind: 'too_large', by: spooled.kind, words: '', code: null }
  const { bytes, vain } = spooled
  return { ...verdict, file: flight.request.file, bytes, ...(vain !== undefined && { vain }) }
}

/** Determines the outcome of a failure below HTTP, with one word for the program and one line for people. */
function fault(flight: Flight, error: unknown, status: number | null): Outcome {
  if (flight.request.signal?.aborted) return { kind: 'stopped', by: 'signal' }
  const { code, words } = rootOf(error)
  const reason: AgainReason = flight.deadline.aborted ? 'timeout' : reasonOf(code, error, status !== null)
  const detail = flight.deadline.aborted ? 'the whole request took too long' : words
  return {
    kind: 'again',
    reason,
    status,
    waitMs: null,
    words: wordsOf(redact(detail, flight.secrets), flight.secrets),
    requestMs: flight.options.now() - flight.started,
  }
}

/** Returns the code of the error that caused all others around it, and its words. */
function rootOf(error: unknown): { readonly code: string; readonly words: string } {
  const first = error instanceof AggregateError && error.errors.length > 0 ? (error.errors[0] as unknown) : error
  const { code, message } = first as { code?: unknown; message?: unknown }
  const parts = [code, message].filter((part) => typeof part === 'string' && part !== '')
  return { code: typeof code === 'string' ? code : '', words: parts.join(': ') }
}

const connectCodes = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_PRX_TLS',
  'UND_ERR_PRX_CONN',
])

function reasonOf(code: string, error: unknown, answered: boolean): AgainReason {
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT' || error instanceof SlowError)
    return 'timeout'
  if (error instanceof DecodingError && error.message !== emptyCompressed) return 'protocol'
  if (answered) return 'cut'
  if (connectCodes.has(code) || code.startsWith('CERT_') || code.includes('CERT') || code.startsWith('ERR_TLS'))
    return 'connect'
  // A proxy that refuses the tunnel appears as an aborted request that this side did not abort.
  if (code === 'UND_ERR_ABORTED') return 'connect'
  if (error instanceof loadUndici().errors.HTTPParserError) return 'protocol'
  return 'reset'
}

/**
 * Encodes every byte except letters, digits and `-._~` as `%XX`: some servers would read `+` as a space, and AWS
 * requires this form.
 */
export function percentEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Some bytes of a local file. */
interface FilePart {
  readonly file: string
  readonly start: number
  readonly bytes: number
}

/** One request whose head and body are the caller's own. */
export interface Exchange {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Path with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | FilePart | undefined
  /** File for the body of a 200; it exists afterwards only if the body was complete. */
  readonly into?: string | undefined
}

/** Outcome of the request: an answer of any status, or none. */
export type ExchangeReply =
  | { readonly kind: 'answer'; readonly status: number; readonly headers: Headers; readonly body: Buffer }
  | { readonly kind: 'fault'; readonly code: string; readonly words: string }

/** Maximum bytes of an answer that are read into memory. */
const mostBytes = 1 << 28

/** Sends one request. A failing disk is thrown; anything that the other side does is returned. */
export type SendExchange = (exchange: Exchange, signal: AbortSignal) => Promise<ExchangeReply>

/** Connects to one origin. */
export function exchangesWith(options: Pick<HttpOptions, 'base' | 'connections' | 'timeouts' | 'proxy'>): SendExchange {
  const { origin } = new URL(options.base)
  const dispatcher = createDispatcher(options)
  return async ({ headers, body, into, ...rest }: Exchange, signal: AbortSignal): Promise<ExchangeReply> => {
    const sent = body === undefined || Buffer.isBuffer(body) ? body : partOf(body)
    try {
      const requestOptions = { ...rest, origin, headers: { ...headers }, body: sent ?? null, signal }
      const { statusCode: status, ...answer } = await dispatcher.request(requestOptions)
      const keptBody = into !== undefined && status === 200 ? await keep(answer.body, into, answer.headers) : undefined
      return { kind: 'answer', status, headers: answer.headers, body: keptBody ?? (await readAll(answer.body)) }
    } catch (error) {
      if (error instanceof LakeError || isDiskError(error)) throw error
      return { kind: 'fault', ...rootOf(error) }
    }
  }
}

function partOf({ file, start, bytes }: FilePart): Readable | Buffer {
  return bytes === 0 ? Buffer.alloc(0) : createReadStream(file, { start, end: start + bytes - 1 })
}

/** Streams a body into a file and returns no bytes; an incomplete body leaves no file. */
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
