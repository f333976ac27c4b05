import { closeSync, openSync, writeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Duplex, type Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { createRedactor } from '../../base/secrets.ts'
import { header, type Headers } from './governor.ts'
import { startBytes, type UselessReason } from './outcome.ts'

/** Where a body goes and what may not go there. */
interface Target {
  readonly file: string
  /** The largest body that is kept, after decompression. */
  readonly maxBytes: number
  readonly secrets: readonly string[]
  readonly signal: AbortSignal
  /** The least that has to come, as sent. */
  readonly pace?: Pace | undefined
}

/** So many bytes a second have to come on average over each stretch of that time; `now` in milliseconds. */
interface Pace {
  readonly bytesPerSecond: number
  readonly overMs: number
  readonly now: () => number
}

/** How the streaming of a body ended; `bytes` as they came, decompressed. */
type Spooled =
  | { readonly kind: 'whole'; readonly bytes: number; readonly vain: UselessReason | undefined }
  | { readonly kind: 'ceiling' }
  /** Next to nothing was sent for very much: more of it is not worth the disk. */
  | { readonly kind: 'bomb' }
  | { readonly kind: 'fault'; readonly error: unknown }

/**
 * Streams the body to the file with backpressure, every key in it replaced; whatever is not whole leaves no file. A
 * disk that fails is thrown as it says it.
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
  /** Bytes as they were sent, where those are counted. */
  sent: number
  bytes: number
  /** What it begins with, from the first byte on that is no white space. */
  start: string
  /** What the disk said. */
  diskError: Error | undefined
}

/** The body is larger than may be kept. */
class CeilingError extends Error {
  readonly bomb: boolean

  constructor(bomb = false) {
    super()
    this.bomb = bomb
  }
}

/** The body is not encoded as its head says. */
export class DecodingError extends Error {}
/** What such an error says of a compressed body without a byte in it. */
export const emptyCompressed = 'empty compressed body'

/** The body comes so slowly that waiting for it holds up all the others. */
export class SlowError extends Error {}

/** Counts what the provider really sent, and ends what drips; what does not come at all is not seen here. */
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

/** Lists of numbers are compressed to a twentieth, never to so little; below so many bytes nothing is judged. */
const bombShare = 200
const bombBytes = 32_000_000

/** So long is JSON without anything in it, with some white space around, at most. */
const hollowBytes = 64

/** Problem with a whole body, as far as its beginning shows. */
function vainOf({ bytes, start }: Landed): UselessReason | undefined {
  if (start.startsWith('<')) return 'a page'
  return bytes <= hollowBytes && /^(?:\{\s*\}|null|"")?\s*$/.test(start) ? 'nothing' : undefined
}

/** Replaces keys, counts what comes, fails beyond the ceiling, and writes the rest. */
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
  /** At once: a small write that waits for a thread costs ten times as much. */
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
 * Decoders of a body: gzip once, which is all that is requested. Any other encoding is refused, so that no decoder runs
 * that the provider alone has chosen. undici's own decompression prints a warning and hides the end of the stream; zlib
 * tells a cut body apart.
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

/** How long the words of an error answer are waited for. */
const wordsMs = 5_000

/** The beginning of an error body as text; whatever goes wrong with it, the status stands. */
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

/** Whether an error is the file system's, not the connection's. */
export function isDiskError(error: unknown): boolean {
  const { code, syscall } = error as { code?: string; syscall?: string }
  return code !== undefined && diskCodes.has(code) && syscall !== 'connect' && syscall !== 'getaddrinfo'
}
