import { LakeError, usage } from '../errors.ts'
import type { Exchanged } from '../net/exchange.ts'
import { dateOf, header } from '../net/limits.ts'
import { redact } from '../secrets/secrets.ts'
import type { S3Settings } from './s3-settings.ts'

/** An answer that is no success, or one that lacks what S3 says of a success. */
export type Refused = Extract<Exchanged, { kind: 'answer' }>

/** The name that S3 gives an error; a bare status has none. */
export function codeIn({ body, status }: Refused): string {
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
export function wordsIn(answer: Refused, { credentials }: S3Settings): string {
  const message = tag(answer.body.toString('utf8', 0, 65_536), 'Message') ?? ''
  const { id, secret, token } = credentials
  const secrets = [id, secret, ...(token === undefined ? [] : [token])]
  return redact(`${codeIn(answer)}${message === '' ? '' : ` (${message.slice(0, 200)})`}`, secrets)
}

/** What a person is told of a refusal that no further try would change. */
export function refusal(answer: Refused, settings: S3Settings, doing: string, now: number): LakeError {
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
function hostIn({ headers }: Refused): string {
  const to = header(headers, 'location')
  return to !== null && URL.canParse(to) ? ` to ${new URL(to).origin}` : ''
}

/** What a person is told where no answer came, or none but errors of the server. */
export function unreached(last: Exchanged, settings: S3Settings, doing: string): LakeError {
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
