import { createHash } from 'node:crypto'
import { LakeError } from '../errors.ts'
import { type Exchange, type Exchanged, type FilePart, type Line, openLine } from '../net/exchange.ts'
import { afterTry, noTries, type RetryPolicy } from '../net/retry.ts'
import { readStream } from '../store/files.ts'
import type { Web } from './destination.ts'
import { codeIn, refusal, type Refused, unreached } from './s3-refusal.ts'
import { readS3, type S3Settings } from './s3-settings.ts'
import { emptyPayload, percent, queryText, signed } from './s3-sign.ts'

/** One request to a bucket. */
export interface Call extends Pick<Exchange, 'method' | 'body' | 'into'> {
  /** Relative to the destination; left out for the bucket itself. */
  readonly path?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

/** What a try came to: a result, or a failure after which the next try may go better. */
export type Try<T> = { readonly done: T } | { readonly again: Exchanged }

/** How a bucket is asked. */
export interface Asking {
  readonly settings: () => Promise<S3Settings>
  /** One try. */
  readonly once: (call: Call) => Promise<Exchanged>
  /** Tries again, with growing pauses, while failures pass; then gives up with words. */
  readonly persist: <T>(doing: string, attempt: () => Promise<Try<T>>) => Promise<T>
  /** The answer to a request that may be sent twice; failures that pass were waited out. */
  readonly ask: (doing: string, call: Call) => Promise<Refused>
  /** What a person is told of an answer that will not change. */
  readonly refuse: (answer: Refused, doing: string) => Promise<LakeError>
}

const retries: RetryPolicy = {
  attempts: 6,
  limitedAttempts: 6,
  baseMs: 400,
  capMs: 20_000,
  totalMs: 900_000,
  faultMs: 900_000,
}
const connections = 8

/** Asks the bucket of an address, with what the environment says of keys and places. */
export function askS3(text: string, web: Web): Asking {
  let known: Promise<{ settings: S3Settings; line: Line }> | undefined
  const ready = (): NonNullable<typeof known> => (known ??= connect(text, web))
  const settings = async (): Promise<S3Settings> => (await ready()).settings
  const once = async (call: Call): Promise<Exchanged> => {
    const { settings: own, line } = await ready()
    return await line.send(await toSend(call, own, web), web.signal)
  }
  const refuse = async (answer: Refused, doing: string): Promise<LakeError> =>
    refusal(answer, await settings(), doing, web.now())
  const persist: Asking['persist'] = async (doing, attempt) => {
    for (let tries = noTries; ; ) {
      const began = web.now()
      const result = await attempt()
      if ('done' in result) return result.done
      if (web.signal.aborted)
        throw new LakeError('stopped', { subject: doing, got: 'an interrupt', next: 'run the same command again' })
      const next = afterTry(retries, tries, outcomeOf(result.again, web.now() - began), web.random)
      if (next.kind === 'stop' || isLasting(result.again)) throw unreached(result.again, await settings(), doing)
      await web.wait(next.waitMs, web.signal)
      tries = next.tries
    }
  }
  const ask: Asking['ask'] = async (doing, call) =>
    await persist(doing, async () => {
      const got = await once(call)
      const done = lastingAnswer(got)
      return done ? { done } : { again: got }
    })
  return { settings, once, persist, ask, refuse }
}

async function connect(text: string, web: Web): Promise<{ settings: S3Settings; line: Line }> {
  const settings = await readS3(text, web.env)
  return { settings, line: openLine({ base: settings.endpoint, connections, proxy: web.proxy }) }
}

/** The answer that the same request would get again; undefined where it may fare better later. */
export function lastingAnswer(got: Exchanged): Refused | undefined {
  if (got.kind === 'fault' || [408, 429].includes(got.status)) return undefined
  if (got.status >= 500) return [501, 505, 507].includes(got.status) ? got : undefined
  const passing = ['RequestTimeout', 'SlowDown', 'ConditionalRequestConflict', 'OperationAborted']
  return got.status >= 400 && passing.includes(codeIn(got)) ? undefined : got
}

/** No host of that name, or one that is not who it says it is: waiting changes nothing. */
function isLasting(got: Exchanged): boolean {
  return got.kind === 'fault' && /^ENOTFOUND$|CERT|^ERR_TLS/.test(got.code)
}

function outcomeOf(got: Exchanged, requestMs: number): Parameters<typeof afterTry>[2] {
  const status = got.kind === 'answer' ? got.status : null
  return { kind: 'again', reason: 'status', status, waitMs: null, words: '', requestMs }
}

async function toSend(call: Call, { bucket, prefix, endpoint, region, credentials }: S3Settings, web: Web) {
  const { host, pathname } = new URL(endpoint)
  const key = call.path === undefined ? '' : `/${(prefix + call.path).split('/').map(percent).join('/')}`
  const path = `${pathname === '/' ? '' : pathname}/${bucket}${key}`
  const { method, query, body, into } = call
  const payload = body === undefined ? emptyPayload : await digestOf(body)
  const streamed = body !== undefined && !Buffer.isBuffer(body)
  const headers = { ...call.headers, ...(streamed && { 'content-length': String(body.bytes) }) }
  const unsigned = { method, host, path, payload, headers, ...(query && { query }) }
  const text = queryText(query)
  return {
    method,
    path: text === '' ? path : `${path}?${text}`,
    headers: signed(unsigned, credentials, region, web.now()),
    body,
    into,
  }
}

/** S3 refuses a body that is another than was signed: a byte that changes on the way is never kept. */
async function digestOf(body: Buffer | FilePart): Promise<string> {
  const hash = createHash('sha256')
  if (Buffer.isBuffer(body)) return hash.update(body).digest('hex')
  let left = body.bytes
  for await (const chunk of readStream(body.file, body.start)) {
    hash.update((chunk as Buffer).subarray(0, left))
    left -= (chunk as Buffer).length
    if (left <= 0) break
  }
  return hash.digest('hex')
}
