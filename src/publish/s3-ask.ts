import { createHash } from 'node:crypto'
import { LakeError, usage } from '../errors.ts'
import { type Exchange, type Exchanged, exchangesWith, type FilePart } from '../net/exchange.ts'
import { dateOf, header } from '../net/limits.ts'
import { percentEncoded } from '../net/http.ts'
import { afterTry, noTries, type RetryPolicy } from '../net/retry.ts'
import { redact } from '../secrets/secrets.ts'
import { readStream } from '../store/files.ts'
import { stopAt, type Web } from './destination.ts'
import { readS3, type S3Settings } from './s3-settings.ts'
import { emptyPayload, queryText, signed } from './s3-sign.ts'

/** What a bucket said, of whatever status. */
export type S3Answer = Extract<Exchanged, { kind: 'answer' }>

/** One request to a bucket. */
export interface S3Call extends Pick<Exchange, 'method' | 'body' | 'into'> {
  /** Relative to the destination; left out for the bucket itself. */
  readonly path?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

/** What a try came to: a result, or a failure after which the next try may go better. */
type Try<T> = { readonly done: T } | { readonly again: Exchanged }

/** How a bucket is asked. */
export type S3Asking = ReturnType<typeof askS3>

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
export function askS3(text: string, web: Web) {
  let known: ReturnType<typeof connect> | undefined
  const ready = (): NonNullable<typeof known> => (known ??= connect(text, web))
  const settings = async (): Promise<S3Settings> => (await ready()).settings
  /** One try. */
  const once = async (call: S3Call): Promise<Exchanged> => {
    const { settings: own, exchange } = await ready()
    return await exchange(await toSend(call, own, web), web.signal)
  }
  /** What a person is told of an answer that will not change. */
  const refuse = async (answer: S3Answer, doing: string): Promise<LakeError> =>
    refusal(answer, await settings(), doing, web.now())
  /** Tries again, with growing pauses, while failures pass; then gives up with words. */
  const persist = async <T>(doing: string, attempt: () => Promise<Try<T>>): Promise<T> => {
    for (let tries = noTries; ; ) {
      const began = web.now()
      const result = await attempt()
      if ('done' in result) return result.done
      stopAt(web.signal, doing)
      const next = afterTry(retries, tries, outcomeOf(result.again, web.now() - began), web.random)
      if (next.kind === 'stop' || isLasting(result.again)) throw unreached(result.again, await settings(), doing)
      await web.wait(next.waitMs, web.signal)
      tries = next.tries
    }
  }
  /** The answer to a request that may be sent twice; failures that pass were waited out. */
  const ask = async (doing: string, call: S3Call): Promise<S3Answer> =>
    await persist<S3Answer>(doing, async () => {
      const got = await once(call)
      const done = lastingAnswer(got)
      return done ? { done } : { again: got }
    })
  /** The same, which must be a success. */
  const want = async (doing: string, call: S3Call): Promise<S3Answer> => {
    const answer = await ask(doing, call)
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refuse(answer, doing)
  }
  return { settings, once, persist, ask, want, refuse }
}

async function connect(text: string, web: Web) {
  const settings = await readS3(text, web.env)
  return { settings, exchange: exchangesWith({ base: settings.endpoint, connections, proxy: web.proxy }) }
}

/** The answer that the same request would get again; undefined where it may fare better later. */
export function lastingAnswer(got: Exchanged): S3Answer | undefined {
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

async function toSend(call: S3Call, { bucket, prefix, endpoint, region, credentials }: S3Settings, web: Web) {
  const { host, pathname } = new URL(endpoint)
  const key = call.path === undefined ? '' : `/${(prefix + call.path).split('/').map(percentEncoded).join('/')}`
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

/** The name that S3 gives an error; a bare status has none. */
export function codeIn({ body, status }: S3Answer): string {
  return tag(body.toString('utf8', 0, 65_536), 'Code') ?? `status ${status}`
}

/** The text of the first element of a name in an answer of S3. */
export function tag(xml: string, name: string): string | undefined {
  const text = new RegExp(String.raw`<${name}(?:\s[^>]*)?>([^<]*)</${name}>`).exec(xml)?.[1]
  return text === undefined ? undefined : unescaped(text)
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }

function unescaped(text: string): string {
  return text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name: string) => {
    const code = decimal === undefined ? (hex === undefined ? Number.NaN : Number.parseInt(String(hex), 16)) : +decimal
    return Number.isNaN(code) ? (entities[name] ?? whole) : String.fromCodePoint(code)
  })
}

const badKeys = new Set([
  'AccessDenied',
  'AllAccessDisabled',
  'ExpiredToken',
  'InvalidAccessKeyId',
  'InvalidToken',
  'SignatureDoesNotMatch',
  'TokenRefreshRequired',
])
const otherRegion = new Set(['AuthorizationHeaderMalformed', 'PermanentRedirect', 'IllegalLocationConstraintException'])

/** The words of a refusal, without the keys that S3 repeats in them. */
function wordsIn(answer: S3Answer, { credentials }: S3Settings): string {
  const message = tag(answer.body.toString('utf8', 0, 65_536), 'Message') ?? ''
  const { id, secret, token } = credentials
  const secrets = [id, secret, ...(token === undefined ? [] : [token])]
  return redact(`${codeIn(answer)}${message === '' ? '' : ` (${message.slice(0, 200)})`}`, secrets)
}

/** What a person is told of a refusal that no further try would change. */
function refusal(answer: S3Answer, settings: S3Settings, doing: string, now: number): LakeError {
  const code = codeIn(answer)
  const { bucket, endpoint, region } = settings
  const subject = `${doing} s3://${bucket}`
  const got = wordsIn(answer, settings)
  if (code === 'RequestTimeTooSkewed') {
    const there = dateOf(answer.headers)
    const off = there === null ? '' : `, ${Math.round(Math.abs(now - there) / 60_000)} minutes off`
    return usage('the clock of this machine', { expected: `that of ${endpoint}${off}`, got, next: 'set it right' })
  }
  if (code === 'NoSuchBucket')
    return usage(subject, {
      expected: `a bucket at ${endpoint}`,
      got: 'none of that name',
      next: `make it (aws s3 mb s3://${bucket}) or name another`,
    })
  const home = header(answer.headers, 'x-amz-bucket-region') ?? tag(answer.body.toString(), 'Region')
  if (otherRegion.has(code) || (answer.status === 301 && home !== undefined))
    return usage(subject, {
      expected: `the region of the bucket${home === undefined ? '' : `, ${home}`}`,
      got: region,
      next: home === undefined ? 'set AWS_REGION' : `set AWS_REGION=${home}`,
    })
  if (badKeys.has(code) || answer.status === 401 || answer.status === 403)
    return new LakeError('unauthorised', {
      subject,
      expected: 'a key that may read, list, write and remove there',
      got,
      next: 'see AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or AWS_PROFILE',
    })
  const strange = answer.status === 200
  const elsewhere = answer.status >= 300 && answer.status < 400
  if (strange || elsewhere || answer.status === 404 || answer.status === 405)
    return usage(subject, {
      expected: `S3 at ${endpoint}`,
      got: strange ? 'an answer of something else' : elsewhere ? `a redirect${hostIn(answer)}` : got,
      next: 'set AWS_ENDPOINT_URL to the address of an S3, or AWS_REGION to that of the bucket',
    })
  return new LakeError('incomplete', { subject, got, next: 'run the same command again' })
}

/** Where a redirect leads, without what its query may hold. */
function hostIn({ headers }: S3Answer): string {
  const to = header(headers, 'location')
  return to !== null && URL.canParse(to) ? ` to ${new URL(to).origin}` : ''
}

/** What a person is told where no answer came, or none but errors of the server. */
function unreached(last: Exchanged, settings: S3Settings, doing: string): LakeError {
  const { bucket, endpoint } = settings
  const subject = `${doing} s3://${bucket}`
  if (last.kind === 'fault' && ['ENOTFOUND', 'EAI_AGAIN'].includes(last.code))
    return usage(subject, {
      expected: `an S3 at ${endpoint}`,
      got: 'no such host',
      next: 'see AWS_ENDPOINT_URL and AWS_REGION',
    })
  return new LakeError('incomplete', {
    subject,
    expected: `an answer of ${endpoint}`,
    got: last.kind === 'fault' ? last.words : wordsIn(last, settings),
    next: 'run the same command again: nothing published is lost',
  })
}
