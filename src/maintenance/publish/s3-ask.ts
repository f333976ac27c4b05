import type { Outcome } from '../../sources/http/outcome.ts'
import { createHash, createHmac } from 'node:crypto'
import { join } from 'node:path'
import { exchangesWith, percentEncoded } from '../../sources/http/http.ts'
import { isLoopback } from '../../catalog/settings.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { readStream, textOf } from '../../lake/store/files.ts'
import { dateOf, header } from '../../sources/http/governor.ts'
import { afterTry, noTries, type RetryPolicy } from '../../sources/http/retry.ts'
import { redact } from '../../base/secrets.ts'
import { stopAt, type Web } from './destination.ts'

/** Sends a request to one origin. */
type SendExchange = ReturnType<typeof exchangesWith>

/** Answer of any status to a request, or the fault that prevented one. */
type Exchanged = Awaited<ReturnType<SendExchange>>

/** One request. */
type Exchange = Parameters<SendExchange>[0]

/** A key pair, with the token of a passing one. */
interface Credentials {
  readonly id: string
  readonly secret: string
  readonly token?: string | undefined
}

/** A request as it will be sent. */
interface UnsignedRequest {
  readonly method: string
  readonly host: string
  /** Percent-encoded. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** SHA-256 of the body, hex. */
  readonly payload: string
}

/** Digest of an empty body. */
export const emptyPayload = createHash('sha256').digest('hex')

/** Formats the query in the order in which it is signed and sent. */
function queryText(query: Readonly<Record<string, string>> = {}): string {
  const pairs = Object.entries(query).map(([name, value]) => [percentEncoded(name), percentEncoded(value)] as const)
  const sorted = pairs.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return sorted.map(([name, value]) => `${name}=${value}`).join('&')
}

/**
 * Builds the headers of a request to S3 with its signature (AWS Signature Version 4); `at` in milliseconds since 1970.
 */
export function signHeaders(
  { method, host, path, query, headers = {}, payload }: UnsignedRequest,
  { id, secret, token }: Credentials,
  region: string,
  at: number,
): Record<string, string> {
  const instant = new Date(at).toISOString().replaceAll(/[-:]|\.\d{3}/g, '')
  const day = instant.slice(0, 8)
  const all: Record<string, string> = {
    ...headers,
    host,
    'x-amz-content-sha256': payload,
    'x-amz-date': instant,
    ...(token !== undefined && { 'x-amz-security-token': token }),
  }
  const names = Object.keys(all).toSorted()
  const lines = names.map((name) => `${name}:${all[name]?.trim()}\n`).join('')
  const canonical = [method, path, queryText(query), lines, names.join(';'), payload].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', instant, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = [day, region, 's3', 'aws4_request'].reduce<Buffer | string>(hmac, `AWS4${secret}`)
  const signature = hmac(key, text).toString('hex')
  const signed = `SignedHeaders=${names.join(';')}, Signature=${signature}`
  const authorization = `AWS4-HMAC-SHA256 Credential=${id}/${scope}, ${signed}`
  return { ...all, authorization }
}

const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()

type Environment = Readonly<Record<string, string | undefined>>

/** Address of a bucket, and the key for it. */
export interface S3Settings {
  readonly bucket: string
  /** Beginning of all keys; it ends with `/` unless it is empty. */
  readonly prefix: string
  /** Origin and path before the bucket, without a trailing slash. */
  readonly endpoint: string
  readonly region: string
  readonly credentials: Credentials
}

/**
 * Parses bucket and prefix from an `s3://` text; the prefix ends with `/` unless it is empty. An error does not show
 * what may be a key in the text.
 */
export function parseS3(text: string): { readonly bucket: string; readonly prefix: string } {
  const [, bucket = '', path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/s.exec(text) ?? []
  const parts = path.split('/').filter((part) => part !== '')
  if (bucket === '' || parts.some((part) => part === '.' || part === '..'))
    throw usage('destination s3://…', {
      expected: 's3://bucket/prefix (3 to 63 small letters, digits, dots and hyphens), no key in it',
      got: text.includes('@') ? 'an address with a user' : text,
    })
  return { bucket, prefix: parts.map((part) => `${part}/`).join('') }
}

/** Reads from the environment and the profile files all that AWS's own programs would, as far as it concerns S3. */
export async function readS3(text: string, env: Environment): Promise<S3Settings> {
  const { bucket, prefix } = parseS3(text)
  const profile = await readProfile(env)
  const endpoint = first(env['AWS_ENDPOINT_URL_S3'], env['AWS_ENDPOINT_URL'], profile.values['endpoint_url'])
  const named = first(env['AWS_REGION'], env['AWS_DEFAULT_REGION'], profile.values['region'])
  const region = named ?? 'us-east-1'
  if (!/^[a-z0-9-]{1,40}$/i.test(region))
    throw usage('AWS_REGION', { expected: 'the name of a region, such as eu-central-1', got: region })
  const home = `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`
  return {
    bucket,
    prefix,
    endpoint: endpoint === undefined ? home : checkEndpoint(endpoint),
    region,
    credentials: credentialsOf(env, profile),
  }
}

function first(...values: readonly (string | undefined)[]): string | undefined {
  return values.map((value) => value?.trim()).find((value) => value !== undefined && value !== '')
}

function checkEndpoint(endpoint: string): string {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const wanted = 'an address such as https://minio.example.org:9000'
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.search !== '')
    throw usage('AWS_ENDPOINT_URL', { expected: wanted, got: url ? `${url.protocol}//${url.host}` : 'something else' })
  if (url.protocol === 'http:' && !isLoopback(endpoint))
    throw usage('AWS_ENDPOINT_URL', { expected: 'https (http only to loopback)', got: `http://${url.host}` })
  return endpoint.replace(/\/+$/, '')
}

/** A profile of AWS. */
interface AwsProfile {
  readonly name: string
  /** Values by key, from both files. */
  readonly values: Readonly<Record<string, string>>
}

/** Reads a profile from both files; a value in the credentials' file wins. */
async function readProfile(env: Environment): Promise<AwsProfile> {
  const name = first(env['AWS_PROFILE'], env['AWS_DEFAULT_PROFILE']) ?? 'default'
  const folder = join(env['HOME'] ?? env['USERPROFILE'] ?? '/', '.aws')
  const config = sectionsOf((await textOf(env['AWS_CONFIG_FILE'] ?? join(folder, 'config'))) ?? '')
  const keys = sectionsOf((await textOf(env['AWS_SHARED_CREDENTIALS_FILE'] ?? join(folder, 'credentials'))) ?? '')
  const found = [config.get(`profile ${name}`) ?? config.get(name), keys.get(name)]
  if (found.every((section) => section === undefined) && name !== 'default')
    throw usage(`AWS_PROFILE ${name}`, {
      expected: 'a profile of the files in ~/.aws',
      got: 'none of that name',
      next: `add it: aws configure --profile ${name}`,
    })
  return { name, values: Object.assign({}, ...found) as Readonly<Record<string, string>> }
}

/**
 * Parses the sections of an AWS profile file by name: `key = value` a line, `#` and `;` begin comments, indented lines
 * are nested.
 */
function sectionsOf(text: string): Map<string, Record<string, string>> {
  const sections = new Map<string, Record<string, string>>()
  let section: Record<string, string> | undefined
  for (const line of text.split(/\r?\n/)) {
    const [, title] = /^\[\s*([^\]]*?)\s*\]/.exec(line) ?? []
    const [, key, value = ''] = /^([A-Za-z0-9_]+)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (title !== undefined) sections.set(title.replace(/\s+/g, ' '), (section = {}))
    else if (key !== undefined && section) section[key.toLowerCase()] = value.replace(/\s[#;].*$/, '')
  }
  return sections
}

function credentialsOf(env: Environment, { name, values }: AwsProfile): Credentials {
  const keyPair = [env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY']].map((text) => first(text))
  const [id, secret] = keyPair.some((text) => text !== undefined)
    ? keyPair
    : [first(values['aws_access_key_id']), first(values['aws_secret_access_key'])]
  const hasKeys = keyPair.some((text) => text !== undefined)
  const token = hasKeys ? first(env['AWS_SESSION_TOKEN']) : first(values['aws_session_token'])
  if (id !== undefined && secret !== undefined) return { id, secret, token }
  const lacking = id === undefined ? 'AWS_ACCESS_KEY_ID' : 'AWS_SECRET_ACCESS_KEY'
  const elsewhere = Object.keys(values).find((key) => /^(?:sso_|role_arn|credential_process|source_profile)/.test(key))
  throw usage(lacking, {
    expected: 'the key of the bucket, there or in a profile of ~/.aws/credentials',
    got: elsewhere === undefined ? 'nothing' : `a profile ${name} that fetches its key (${elsewhere})`,
    next:
      elsewhere === undefined
        ? 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE'
        : `run eval "$(aws configure export-credentials --profile ${name} --format env)" first`,
  })
}

/** Answer of a bucket, of any status. */
export type S3Answer = Extract<Exchanged, { kind: 'answer' }>

/** One request to a bucket. */
export interface S3Call extends Pick<Exchange, 'method' | 'body' | 'into'> {
  /** Relative to the destination; left out for the bucket itself. */
  readonly path?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

/** Outcome of a try: a result, or a failure after which the next try may succeed. */
type Try<T> = { readonly done: T } | { readonly again: Exchanged }

const pauses = { baseMs: 400, capMs: 20_000, totalMs: 900_000, faultMs: 900_000 }
const retries: RetryPolicy = { attempts: 6, limitedAttempts: 6, ...pauses }
const connections = 8

/** A connection to a bucket. */
interface S3Connection {
  readonly settings: S3Settings
  readonly exchange: SendExchange
}

/** Requests to a bucket. `doing` is the beginning of the sentence for an error: `reading`. */
export interface S3Requests {
  /** Returns the settings; they are read once. */
  readonly settings: () => Promise<S3Settings>
  /** Sends a request once. */
  readonly once: (call: S3Call) => Promise<Exchanged>
  /** Repeats an attempt, with growing pauses, while its failures may pass; then throws. */
  readonly persist: <T>(doing: string, attempt: () => Promise<Try<T>>) => Promise<T>
  /** Returns the answer to a request that may be sent twice, after failures that passed. */
  readonly ask: (doing: string, call: S3Call) => Promise<S3Answer>
  /** Returns the answer to such a request; any status but a success is thrown. */
  readonly want: (doing: string, call: S3Call) => Promise<S3Answer>
  /** Returns the error for an answer that will not change. */
  readonly refuse: (answer: S3Answer, doing: string) => Promise<LakeError>
}

/** Returns the requests to the bucket of an address, with keys and places from the environment. */
export function askS3(text: string, web: Web): S3Requests {
  let connection: Promise<S3Connection> | undefined
  const ready = (): Promise<S3Connection> => (connection ??= connect(text, web))
  const settings = async (): Promise<S3Settings> => (await ready()).settings
  const once = async (call: S3Call): Promise<Exchanged> => {
    const { settings: s3Settings, exchange } = await ready()
    return await exchange(await toSend(call, s3Settings, web), web.signal)
  }
  const refuse = async (answer: S3Answer, doing: string): Promise<LakeError> =>
    refusal(answer, await settings(), doing, web.now())
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
  const ask = async (doing: string, call: S3Call): Promise<S3Answer> =>
    await persist<S3Answer>(doing, async () => {
      const got = await once(call)
      const done = lastingAnswer(got)
      return done ? { done } : { again: got }
    })
  const want = async (doing: string, call: S3Call): Promise<S3Answer> => {
    const answer = await ask(doing, call)
    if (answer.status >= 200 && answer.status < 300) return answer
    throw await refuse(answer, doing)
  }
  return { settings, once, persist, ask, want, refuse }
}

async function connect(text: string, web: Web): Promise<S3Connection> {
  const settings = await readS3(text, web.env)
  return { settings, exchange: exchangesWith({ base: settings.endpoint, connections, proxy: web.proxy }) }
}

/** Returns the answer that the same request would get again; undefined if it may succeed later. */
export function lastingAnswer(got: Exchanged): S3Answer | undefined {
  if (got.kind === 'fault' || [408, 429].includes(got.status)) return undefined
  if (got.status >= 500) return [501, 505, 507].includes(got.status) ? got : undefined
  const passing = ['RequestTimeout', 'SlowDown', 'ConditionalRequestConflict', 'OperationAborted']
  return got.status >= 400 && passing.includes(codeIn(got)) ? undefined : got
}

/**
 * Whether a failure will last: no host of that name, or one that is not who it claims to be. Waiting changes nothing.
 */
const isLasting = (got: Exchanged): boolean => got.kind === 'fault' && /^ENOTFOUND$|CERT|^ERR_TLS/.test(got.code)

function outcomeOf(got: Exchanged, requestMs: number): Outcome {
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
    headers: signHeaders(unsigned, credentials, region, web.now()),
    body,
    into,
  }
}

/**
 * Computes the digest of a body. S3 refuses a body that differs from the signed one: a byte that changes on the way is
 * never stored.
 */
async function digestOf(body: NonNullable<Exchange['body']>): Promise<string> {
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

/** Reads the name that S3 gives an error; `status N` for a bare status. */
export function codeIn({ body, status }: S3Answer): string {
  return tag(body.toString('utf8', 0, 65_536), 'Code') ?? `status ${status}`
}

/** Reads the text of the first element of a name in an answer of S3. */
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

/** Reads the words of a refusal, without the keys that S3 repeats in them. */
function wordsIn(answer: S3Answer, { credentials }: S3Settings): string {
  const message = tag(answer.body.toString('utf8', 0, 65_536), 'Message') ?? ''
  const { id, secret, token } = credentials
  const secrets = [id, secret, ...(token === undefined ? [] : [token])]
  return redact(`${codeIn(answer)}${message === '' ? '' : ` (${message.slice(0, 200)})`}`, secrets)
}

/** Builds the error for a refusal that no further try would change. */
function refusal(answer: S3Answer, settings: S3Settings, doing: string, now: number): LakeError {
  const code = codeIn(answer)
  const { bucket, endpoint, region } = settings
  const subject = `${doing} s3://${bucket}`
  const got = wordsIn(answer, settings)
  if (code === 'RequestTimeTooSkewed') {
    const providerDate = dateOf(answer.headers)
    const off = providerDate === null ? '' : `, ${Math.round(Math.abs(now - providerDate) / 60_000)} minutes off`
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

/** Formats the target of a redirect, without its query, which may contain secrets. */
function hostIn({ headers }: S3Answer): string {
  const to = header(headers, 'location')
  return to !== null && URL.canParse(to) ? ` to ${new URL(to).origin}` : ''
}

/** Builds the error for no answer, or none but errors of the server. */
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
