import { closeSync, openSync, writeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Duplex, type Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { createRedactor } from '../../base/secrets.ts'
import { header, type Headers } from './governor.ts'
import { startBytes, type UselessReason } from './outcome.ts'

/** The destination of a body, and the limits on it. */
interface Target {
  readonly file: string
  /** Size of the largest body to store, in bytes after decompression. */
  readonly maxBytes: number
  readonly secrets: readonly string[]
  readonly signal: AbortSignal
  /** Minimum transfer rate, counted in bytes as sent. */
  readonly pace?: Pace | undefined
}

/** A minimum of bytes per second, on average over each period of `overMs` milliseconds; `now` in milliseconds. */
interface Pace {
  readonly bytesPerSecond: number
  readonly overMs: number
  readonly now: () => number
}

/** The result of streaming a body; `bytes` counts the decompressed bytes. */
type Spooled =
  | { readonly kind: 'whole'; readonly bytes: number; readonly vain: UselessReason | undefined }
  | { readonly kind: 'ceiling' }
  /** Next to nothing was sent for very much: more of it is not worth the disk. */
  | { readonly kind: 'bomb' }
  | { readonly kind: 'fault'; readonly error: unknown }

/**
 * Streams the body to the file with backpressure, with every key in it replaced; an incomplete body leaves no file. An
 * error of the disk is thrown unchanged.
 */
export async function spoolBody(body: Readable, headers: Headers, target: Target): Promise<Spooled> {
  const { maxBytes, signal, pace } = target
  const landed: Landed = { sent: 0, bytes: 0, start: '', diskError: undefined }
  try {
    const decoders = decodersFor(headers)
    if (Number(header(headers, 'content-length') ?? 0) > maxBytes) throw new CeilingError()
    const metered = Duplex.from((source: AsyncIterable<Buffer>) => meter(source, landed, pace))
    const measured = decoders.length > 0 || pace !== undefined ? [metered, ...decoders] : []
    const land = Duplex.from(async (source: AsyncIterable<Buffer>) => await landIn(source, target, landed))
    await pipeline([body, ...measured, land], { signal })
    if (decoders.length > 0 && landed.bytes === 0) throw new DecodingError(emptyCompressed)
    return { kind: 'whole', bytes: landed.bytes, vain: vainOf(landed) }
  } catch (error) {
    body.on('error', () => undefined).destroy()
    const removed = rm(target.file, { force: true })
    if (landed.diskError !== undefined) {
      await removed.catch(() => undefined)
      throw landed.diskError
    }
    await removed
    if (error instanceof CeilingError) return { kind: error.bomb ? 'bomb' : 'ceiling' }
    return { kind: 'fault', error }
  }
}

/** The part of a body that has arrived so far. */
interface Landed {
  /** Bytes as sent, if they are counted. */
  sent: number
  bytes: number
  /** First bytes of the body, without leading white space. */
  start: string
  /** Error that the disk reported. */
  diskError: Error | undefined
}

/** The body is larger than the limit allows. */
class CeilingError extends Error {
  readonly bomb: boolean

  constructor(bomb = false) {
    super()
    this.bomb = bomb
  }
}

/** The body is not encoded as its headers state. */
export class DecodingError extends Error {}
/** Message of this error for a compressed body without content. */
export const emptyCompressed = 'empty compressed body'

/** The body arrives so slowly that waiting for it would delay all other requests. */
export class SlowError extends Error {}

/**
 * Counts the bytes as the provider sent them, and ends a body that is too slow; a body without any further bytes is not
 * noticed here.
 */
async function* meter(source: AsyncIterable<Buffer>, landed: Landed, pace: Pace | undefined): AsyncGenerator<Buffer> {
  const { bytesPerSecond = 0, overMs = Infinity, now = () => 0 } = pace ?? {}
  let since = now()
  let before = 0
  for await (const chunk of source) {
    landed.sent += chunk.length
    const ms = now() - since
    if (ms >= overMs) {
      const received = landed.sent - before
      if (received < (bytesPerSecond * ms) / 1000)
        throw new SlowError(`${received} bytes in ${Math.round(ms / 1000)} s, less than ${bytesPerSecond} a second`)
      since += ms
      before = landed.sent
    }
    yield chunk
  }
}

/**
 * Ratio of decompressed to sent bytes that marks a bomb; lists of numbers compress by a factor of about twenty. Smaller
 * bodies than `bombBytes` are not judged.
 */
const bombShare = 200
const bombBytes = 32_000_000

/** Maximum bytes of a JSON text without content, with some white space around it. */
const hollowBytes = 64

/** Finds a problem with a whole body, as far as its beginning shows; undefined if there is none. */
function vainOf({ bytes, start }: Landed): UselessReason | undefined {
  if (start.startsWith('<')) return 'a page'
  return bytes <= hollowBytes && /^(?:\{\s*\}|null|"")?\s*$/.test(start) ? 'nothing' : undefined
}

/** Replaces keys, counts bytes, fails beyond the limit, and writes the rest. */
async function landIn(source: AsyncIterable<Buffer>, { file, maxBytes, secrets }: Target, landed: Landed) {
  const disk = <T>(step: () => T): T => {
    try {
      return step()
    } catch (error) {
      landed.diskError ??= error as Error
      throw error
    }
  }
  const handle = disk(() => openSync(file, 'w', 0o600))
  /** Writes synchronously: a small write that waits for a thread costs ten times as much. */
  const put = (bytes: Buffer): void =>
    disk(() => {
      for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at)
    })
  const redactor = createRedactor(secrets, 'data')
  try {
    for await (const chunk of source) {
      landed.bytes += chunk.length
      if (landed.start.length < hollowBytes)
        landed.start = (landed.start + chunk.toString('latin1', 0, 4096)).trimStart()
      const { sent, bytes } = landed
      if (sent > 0 && bytes > bombBytes && bytes > sent * bombShare) throw new CeilingError(true)
      if (bytes > maxBytes) throw new CeilingError()
      put(redactor.push(chunk))
    }
    put(redactor.end())
  } finally {
    disk(() => closeSync(handle))
  }
}

/**
 * Returns the decoders of a body: gzip once, which is all that is requested. Any other encoding is refused, so that the
 * provider cannot choose a decoder. undici's own decompression prints a warning and hides the end of the stream; zlib
 * recognises a cut body.
 */
function decodersFor(headers: Headers): Transform[] {
  const value = headers['content-encoding']
  const listed = (typeof value === 'string' ? value : (value ?? []).join(',')).toLowerCase().split(',')
  const names = listed.map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity')
  if (names.length === 0) return []
  if (names.length > 1 || (names[0] !== 'gzip' && names[0] !== 'x-gzip'))
    throw new DecodingError('content encoding: expected gzip or none')
  return [createGunzip()]
}

/** Longest wait for the words of an error answer, in milliseconds. */
const wordsMs = 5_000

/** Reads the beginning of an error body as text; if that fails, the status still counts. */
export async function readStart(body: Readable, headers: Headers, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  const collector = Duplex.from(async (source: AsyncIterable<Buffer>) => {
    let size = 0
    for await (const chunk of source) {
      chunks.push(chunk)
      if ((size += chunk.length) >= startBytes) return
    }
  })
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(wordsMs)])
    await pipeline([body, ...decodersFor(headers), collector], { signal: limit })
  } catch {
    // An error body that is cut, stalled or endless: the words end there.
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

/** Whether an error is the file system's, not the connection's. */
export function isDiskError(error: unknown): boolean {
  const { code, syscall } = error as { code?: string; syscall?: string }
  return code !== undefined && diskCodes.has(code) && syscall !== 'connect' && syscall !== 'getaddrinfo'
}
