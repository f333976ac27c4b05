import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { type Readable, Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { type Dispatcher, EnvHttpProxyAgent, errors } from 'undici'
import { LakeError, redact } from '../errors.ts'
import { header, type Headers } from './limits.ts'
import {
  type AgainReason,
  classify,
  type Context,
  type Outcome,
  type Parameter,
  startBytes,
  wordsOf,
} from './outcome.ts'

/** The only way a key travels. */
export interface KeyHeader {
  readonly name: 'X-Api-Key' | 'Authorization'
  readonly key: string
}

/** How long each part of one request may take, in milliseconds. */
export interface Timeouts {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** The values of the usual proxy variables, where they are set. */
export interface ProxySettings {
  readonly http?: string | undefined
  readonly https?: string | undefined
  readonly all?: string | undefined
  readonly none?: string | undefined
}

/** One provider's connection. */
export interface HttpOptions {
  /** Requests go to this origin and no other. */
  readonly base: string
  readonly key: KeyHeader
  readonly userAgent: string
  readonly connections: number
  /** Where it says nothing: 10 s to connect, 2 min to the first byte, 30 s without a byte, 30 min in all. */
  readonly timeouts?: Partial<Timeouts>
  /** The largest body that is kept, after decompression. */
  readonly maxBytes: number
  readonly proxy: ProxySettings
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The timeouts where configuration says nothing. */
const usualTimeouts: Timeouts = { connectMs: 10_000, firstByteMs: 120_000, idleMs: 30_000, totalMs: 1_800_000 }

/** One GET. The body of a 200 goes to `file`, which exists afterwards only if the outcome is `body`. */
export interface HttpRequest {
  readonly url: string
  readonly file: string
  readonly etag?: string | undefined
  /** What a refusal may name. */
  readonly parameters?: readonly Parameter[] | undefined
  readonly signal?: AbortSignal | undefined
}

/** An outcome with the head of the answer that led to it; no head where none came. */
export interface Reply {
  readonly outcome: Outcome
  readonly status: number | null
  readonly headers: Headers
}

/** Sends single requests; must be closed. */
export interface Http {
  readonly get: (request: HttpRequest) => Promise<Reply>
  readonly close: () => Promise<void>
}

/** How long the words of an error answer are waited for. */
const wordsMs = 5_000

/** A pool of connections to one provider. What the provider does is an outcome; a disk that fails is thrown. */
export function createHttp(options: HttpOptions): Http {
  const origin = new URL(options.base).origin
  const secrets = [options.key.key, ...proxySecrets(options.proxy)].filter((secret) => secret.length > 0)
  const dispatcher = createDispatcher(options)
  return {
    get: async (request) => {
      refuseForeign(request.url, origin, secrets)
      return await send(request, options, dispatcher, secrets)
    },
    close: async () => await dispatcher.destroy(),
  }
}

function timeoutsOf(options: HttpOptions): Timeouts {
  return { ...usualTimeouts, ...options.timeouts }
}

function createDispatcher(options: HttpOptions): Dispatcher {
  const { protocol, hostname } = new URL(options.base)
  const { proxy } = options
  const timeouts = timeoutsOf(options)
  const chosen = (protocol === 'https:' ? proxy.https : proxy.http) || proxy.all || ''
  return new EnvHttpProxyAgent({
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    headersTimeout: timeouts.firstByteMs,
    bodyTimeout: timeouts.idleMs,
    connect: { timeout: timeouts.connectMs },
    // Empty text, not undefined: what is not given must not be looked up in the process's environment.
    httpProxy: chosen,
    httpsProxy: chosen,
    noProxy: isLoopback(hostname) ? '*' : (proxy.none ?? ''),
  })
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
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

/** The key must never leave for another host, nor stand in an address. */
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
  const { statusCode: status, headers } = response
  const at = options.now()
  const outcome = await land(flight, response, at)
  return { outcome, status, headers }
}

async function land(flight: Flight, response: Dispatcher.ResponseData, at: number): Promise<Outcome> {
  const { statusCode: status, headers, body } = response
  const context = (): Context => ({
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
  const spooled = await spool(flight, body, headers)
  if (spooled.kind === 'fault') return fault(flight, spooled.error, status)
  const verdict = classify(status, headers, '', context())
  if (verdict.kind !== 'body') return verdict
  if (spooled.kind === 'ceiling') {
    return { ...verdict, kind: 'too_large', by: 'ceiling', words: '', code: null }
  }
  return { ...verdict, file: flight.request.file, bytes: spooled.bytes }
}

type Spooled =
  | { readonly kind: 'whole'; readonly bytes: number }
  | { readonly kind: 'ceiling' }
  | { readonly kind: 'fault'; readonly error: unknown }

/** Streams the body to the file with backpressure; whatever is not whole leaves no file. */
async function spool(flight: Flight, body: Readable, headers: Headers): Promise<Spooled> {
  const { maxBytes } = flight.options
  const counter = new Counter(maxBytes)
  const file = createWriteStream(flight.request.file)
  let diskError: unknown
  file.once('error', (error) => {
    // A stream that ended early closes the file with its own error; only the first one tells.
    if (isDiskError(error)) diskError = error
  })
  try {
    const decoders = decodersFor(headers)
    if (Number(header(headers, 'content-length') ?? 0) > maxBytes) throw new CeilingError()
    await pipeline([body, ...decoders, counter, file], { signal: flight.signal })
    if (decoders.length > 0 && counter.bytes === 0) throw new DecodingError('empty compressed body')
    return { kind: 'whole', bytes: counter.bytes }
  } catch (error) {
    body.on('error', () => undefined).destroy()
    await closed(file)
    const removed = rm(flight.request.file, { force: true })
    if (diskError !== undefined) {
      await removed.catch(() => undefined)
      throw diskFailure(flight.request.file, diskError)
    }
    await removed
    return error instanceof CeilingError ? { kind: 'ceiling' } : { kind: 'fault', error }
  }
}

/** A file that is still being opened would come back after its removal. */
async function closed(file: ReturnType<typeof createWriteStream>): Promise<void> {
  if (file.closed) return
  await new Promise<void>((resolve) => {
    file.once('close', resolve)
    file.destroy()
  })
}

class CeilingError extends Error {}
class DecodingError extends Error {}

/** Passes bytes through, counts them, and fails beyond the ceiling. */
class Counter extends Transform {
  bytes = 0
  readonly #ceiling: number

  constructor(ceiling: number) {
    super()
    this.#ceiling = ceiling
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: Error | null, chunk?: Buffer) => void): void {
    this.bytes += chunk.length
    if (this.bytes > this.#ceiling) done(new CeilingError())
    else done(null, chunk)
  }
}

/** undici's own decompression prints a warning and hides the end of the stream; zlib tells a cut body apart. */
function decodersFor(headers: Headers): Transform[] {
  const value = headers['content-encoding']
  const names = (typeof value === 'string' ? value : (value ?? []).join(',')).toLowerCase().split(',')
  return names
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')
    .toReversed()
    .map((name) => {
      if (name === 'gzip' || name === 'x-gzip') return createGunzip()
      if (name === 'deflate') return createInflate()
      if (name === 'br') return createBrotliDecompress()
      throw new DecodingError('unknown content encoding')
    })
}

/** The beginning of an error body as text; whatever goes wrong with it, the status stands. */
async function readStart(body: Readable, headers: Headers, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  const collector = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk)
      size += chunk.length
      done(size >= startBytes ? new CeilingError() : null)
    },
  })
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(wordsMs)])
    await pipeline([body, ...decodersFor(headers), collector], { signal: limit })
  } catch {
    // A cut, stalled or endless error body: the words end where it was left.
    body.on('error', () => undefined).destroy()
  }
  return Buffer.concat(chunks).toString('utf8').slice(0, startBytes)
}

const diskCodes = new Set([
  'ENOSPC',
  'EACCES',
  'EROFS',
  'EDQUOT',
  'ENOENT',
  'EIO',
  'EMFILE',
  'ENFILE',
  'EPERM',
  'EISDIR',
  'ENOTDIR',
])

function isDiskError(error: unknown): boolean {
  const { code, syscall } = error as { code?: string; syscall?: string }
  return code !== undefined && diskCodes.has(code) && syscall !== 'connect' && syscall !== 'getaddrinfo'
}

function diskFailure(file: string, cause: unknown): LakeError {
  const got = String((cause as { code?: string }).code)
  const full = got === 'ENOSPC' || got === 'EDQUOT'
  const first = full ? 'make room' : got === 'ENOENT' ? 'see that the folder is in place' : 'see to the disk'
  const next = `${first}, then run the same command again: nothing committed is lost`
  return new LakeError('incomplete', { subject: `cannot write ${file}`, got, next, cause })
}

/** What went wrong below HTTP, in one word for the program and one line for people. */
function fault(flight: Flight, error: unknown, status: number | null): Outcome {
  if (flight.request.signal?.aborted) return { kind: 'stopped', by: 'signal' }
  const { code, message } = rootOf(error)
  const reason: AgainReason = flight.deadline.aborted ? 'timeout' : reasonOf(code, error, status !== null)
  const detail = flight.deadline.aborted
    ? 'the whole request took too long'
    : [code, message].filter(Boolean).join(': ')
  return {
    kind: 'again',
    reason,
    status,
    waitMs: null,
    words: wordsOf(redact(detail, flight.secrets), flight.secrets),
    requestMs: flight.options.now() - flight.started,
  }
}

function rootOf(error: unknown): { code: string; message: string } {
  const first = error instanceof AggregateError && error.errors.length > 0 ? (error.errors[0] as unknown) : error
  const { code, message } = first as { code?: unknown; message?: unknown }
  return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' }
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
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return 'timeout'
  if (error instanceof DecodingError && error.message !== 'empty compressed body') return 'protocol'
  if (answered) return 'cut'
  if (connectCodes.has(code) || code.startsWith('CERT_') || code.includes('CERT') || code.startsWith('ERR_TLS'))
    return 'connect'
  // A proxy that refuses the tunnel shows up as an aborted request that nobody aborted.
  if (code === 'UND_ERR_ABORTED') return 'connect'
  if (error instanceof errors.HTTPParserError) return 'protocol'
  return 'reset'
}
