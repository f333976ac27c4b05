import { closeSync, openSync, writeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { type Readable, Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { createRedactor, type Redactor } from '../secrets/secrets.ts'
import { header, type Headers } from './limits.ts'
import { startBytes, type Vain } from './outcome.ts'

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
  | { readonly kind: 'whole'; readonly bytes: number; readonly vain: Vain | undefined }
  | { readonly kind: 'ceiling' }
  /** Next to nothing was sent for very much: more of it is not worth the disk. */
  | { readonly kind: 'bomb' }
  | { readonly kind: 'fault'; readonly error: unknown }

/**
 * Streams the body to the file with backpressure, every key in it replaced; whatever is not whole leaves no file. A
 * disk that fails is thrown as it says it.
 */
export async function spoolBody(body: Readable, headers: Headers, target: Target): Promise<Spooled> {
  const { maxBytes, signal } = target
  const sent = new Meter(target.pace)
  let landing: Landing | undefined
  try {
    landing = new Landing(target, sent)
    const decoders = decodersFor(headers)
    if (Number(header(headers, 'content-length') ?? 0) > maxBytes) throw new CeilingError()
    const measured = decoders.length > 0 || target.pace !== undefined ? [sent, ...decoders] : []
    await pipeline([body, ...measured, landing], { signal })
    if (decoders.length > 0 && landing.bytes === 0) throw new DecodingError(emptyCompressed)
    return { kind: 'whole', bytes: landing.bytes, vain: landing.vain() }
  } catch (error) {
    body.on('error', () => undefined).destroy()
    landing?.destroy()
    const removed = rm(target.file, { force: true })
    const diskError = landing === undefined ? (error as Error) : landing.diskError
    if (diskError !== undefined) {
      await removed.catch(() => undefined)
      throw diskError
    }
    await removed
    if (error instanceof CeilingError) return { kind: error.bomb ? 'bomb' : 'ceiling' }
    return { kind: 'fault', error }
  }
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
class Meter extends Transform {
  bytes = 0
  readonly #pace: Pace | undefined
  #stretch: { readonly at: number; readonly bytes: number }

  constructor(pace?: Pace) {
    super()
    this.#pace = pace
    this.#stretch = { at: pace?.now() ?? 0, bytes: 0 }
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: Error | null, chunk?: Buffer) => void): void {
    this.bytes += chunk.length
    done(this.#tooSlow(), chunk)
  }

  #tooSlow(): Error | null {
    if (this.#pace === undefined) return null
    const { bytesPerSecond, overMs, now } = this.#pace
    const [at, { at: since, bytes: before }] = [now(), this.#stretch]
    if (at - since < overMs) return null
    this.#stretch = { at, bytes: this.bytes }
    const least = (bytesPerSecond * (at - since)) / 1000
    if (this.bytes - before >= least) return null
    const seconds = Math.round((at - since) / 1000)
    return new SlowError(`${this.bytes - before} bytes in ${seconds} s, less than ${bytesPerSecond} a second`)
  }
}

/** Lists of numbers are compressed to a twentieth, never to so little; below so many bytes nothing is judged. */
const bombShare = 200
const bombBytes = 32_000_000

/** So long is JSON without anything in it, with some white space around, at most. */
const hollowBytes = 64

/** Replaces keys, counts what comes, fails beyond the ceiling, and writes the rest. */
class Landing extends Writable {
  bytes = 0
  /** What it begins with, from the first byte on that is no white space. */
  #start = ''
  /** What the disk said. */
  diskError: Error | undefined
  readonly #file: number
  readonly #ceiling: number
  readonly #sent: Meter
  readonly #redactor: Redactor

  constructor({ file, maxBytes, secrets }: Target, sent: Meter) {
    super()
    this.#file = openSync(file, 'w', 0o600)
    this.#ceiling = maxBytes
    this.#sent = sent
    this.#redactor = createRedactor(secrets, 'data')
  }

  /** What is wrong with all of it, as far as its beginning shows. */
  vain(): Vain | undefined {
    if (this.#start.startsWith('<')) return 'a page'
    return this.bytes <= hollowBytes && /^(?:\{\s*\}|null|"")?\s*$/.test(this.#start) ? 'nothing' : undefined
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.bytes += chunk.length
    if (this.#start.length < hollowBytes) this.#start = (this.#start + chunk.toString('latin1', 0, 4096)).trimStart()
    const { bytes: sent } = this.#sent
    if (sent > 0 && this.bytes > bombBytes && this.bytes > sent * bombShare) done(new CeilingError(true))
    else if (this.bytes > this.#ceiling) done(new CeilingError())
    else this.#disk(() => this.#put(this.#redactor.push(chunk)), done)
  }

  override _final(done: (error?: Error) => void): void {
    this.#disk(() => this.#put(this.#redactor.end()), done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#disk(
      () => closeSync(this.#file),
      (failed) => done(failed ?? error),
    )
  }

  /** At once: a small write that waits for a thread costs ten times as much. */
  #put(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at)
  }

  #disk(step: () => void, done: (error?: Error) => void): void {
    try {
      step()
    } catch (error) {
      this.diskError ??= error as Error
      done(error as Error)
      return
    }
    done()
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

/** How long the words of an error answer are waited for. */
const wordsMs = 5_000

/** The beginning of an error body as text; whatever goes wrong with it, the status stands. */
export async function readStart(body: Readable, headers: Headers, signal: AbortSignal): Promise<string> {
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

/** Whether an error is the file system's, not the connection's. */
export function isDiskError(error: unknown): boolean {
  const { code, syscall } = error as { code?: string; syscall?: string }
  return code !== undefined && diskCodes.has(code) && syscall !== 'connect' && syscall !== 'getaddrinfo'
}
