import { createHash, createHmac } from 'node:crypto'
import { percentEncoded } from '../net/http.ts'

/** A key pair, with the token of a passing one. */
export interface Credentials {
  readonly id: string
  readonly secret: string
  readonly token?: string | undefined
}

/** A request as it will be sent. */
export interface Unsigned {
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

/** Of nothing. */
export const emptyPayload = createHash('sha256').digest('hex')

/** The query in the order in which it is signed and sent. */
export function queryText(query: Unsigned['query'] = {}): string {
  const pairs = Object.entries(query).map(([name, value]) => [percentEncoded(name), percentEncoded(value)] as const)
  const sorted = pairs.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return sorted.map(([name, value]) => `${name}=${value}`).join('&')
}

/** The headers of a request to S3 with its signature (AWS Signature Version 4); `at` in milliseconds since 1970. */
export function signed(
  { method, host, path, query, headers = {}, payload }: Unsigned,
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
  const authorization = `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`
  return { ...all, authorization }
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
