import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Web } from '../../src/maintenance/publish/destination.ts'
import { signHeaders } from '../../src/maintenance/publish/s3-ask.ts'

/** What a request meets instead of, or after, its answer. */
export type Fault =
  | { readonly status: number; readonly code: string; readonly headers?: Readonly<Record<string, string>> }
  /** The connection ends before the request was heard, or when all was done but nothing answered. */
  | 'cut-before'
  | 'cut-after'
  /** Half of the body, then the end. */
  | 'cut-within'
  /** 200, and nothing that S3 would say. */
  | 'bare'
  /** 200, and what came is not kept. */
  | 'forgets'

/** One request as the stand-in heard it. */
export interface Heard {
  readonly method: string
  /** The object's key; '' for the bucket. */
  readonly key: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: IncomingMessage['headers']
}

/** Keys that the stand-in takes. */
export const s3Key = { id: 'AKIDSTANDIN0000000', secret: ['stand', 'in', 'secret', '0123456789'].join('-') }

/** An S3 on this machine with exact semantics: create-only writes, pages, parts, signatures. */
export interface StandIn extends AsyncDisposable {
  readonly url: string
  readonly objects: Map<string, Buffer>
  readonly heard: Heard[]
  readonly uploads: Map<string, Map<number, Buffer>>
  /** Asked for each request, in their order. */
  fault: (heard: Heard) => Fault | undefined
  /** False: as servers do that never heard of If-None-Match. */
  createOnly: boolean
  /** Objects on a page of a list. */
  page: number
  /** Whether each page of a list leads to the first one again. */
  loops: boolean
}

/** Starts one with an empty bucket `lake`. */
export async function standIn(): Promise<StandIn> {
  const state: Omit<StandIn, 'url' | typeof Symbol.asyncDispose> = {
    objects: new Map(),
    heard: [],
    uploads: new Map(),
    fault: () => undefined,
    createOnly: true,
    page: 3,
    loops: false,
  }
  const server = createServer((request, response) => void answer(state, request, response))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  })
}

/** The world of a client of it; waits are as long as nothing and counted. */
export function webTo(url: string, env: Readonly<Record<string, string>> = {}): Web & { waits: number[] } {
  const waits: number[] = []
  return {
    now: () => Date.now(),
    wait: async (ms) => void waits.push(ms),
    random: () => 0.5,
    signal: new AbortController().signal,
    proxy: {},
    waits,
    env: {
      AWS_ENDPOINT_URL: url,
      AWS_ACCESS_KEY_ID: s3Key.id,
      AWS_SECRET_ACCESS_KEY: s3Key.secret,
      AWS_CONFIG_FILE: '/nowhere',
      AWS_SHARED_CREDENTIALS_FILE: '/nowhere',
      ...env,
    },
  }
}

type State = Omit<StandIn, 'url' | typeof Symbol.asyncDispose>

async function answer(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const url = new URL(request.url ?? '/', 'http://x')
  const [bucket = '', ...rest] = url.pathname.slice(1).split('/')
  const heard: Heard = {
    method: request.method ?? '',
    key: decodeURIComponent(rest.join('/')),
    query: Object.fromEntries(url.searchParams),
    headers: request.headers,
  }
  state.heard.push(heard)
  const fault = state.fault(heard)
  if (fault === 'cut-before') return void request.socket.destroy()
  if (fault === 'forgets') return void response.writeHead(200).end()
  if (fault === 'bare') return void response.writeHead(200).end('<html>Welcome</html>')
  const refused = typeof fault === 'object' ? fault : refusal(request, url, bucket, body)
  if (refused) {
    response.writeHead(refused.status, { 'content-type': 'application/xml', ...refused.headers })
    const message = `<Message>about ${s3Key.id} and ${s3Key.secret}</Message>`
    return void response.end(`<?xml version="1.0"?><Error><Code>${refused.code}</Code>${message}</Error>`)
  }
  const { status, headers = {}, text = Buffer.alloc(0) } = act(state, heard, body)
  if (fault === 'cut-after') return void request.socket.destroy()
  const length = heard.method === 'HEAD' ? headers['content-length'] : String(text.length)
  response.writeHead(status, { ...headers, ...(length !== undefined && { 'content-length': length }) })
  if (fault !== 'cut-within') return void response.end(heard.method === 'HEAD' ? undefined : text)
  response.write(text.subarray(0, text.length / 2))
  setImmediate(() => request.socket.destroy())
}

function refusal(request: IncomingMessage, url: URL, bucket: string, body: Buffer): Exclude<Fault, string> | undefined {
  const given = (name: string): string => String(request.headers[name] ?? '')
  const [, names = ''] = /SignedHeaders=([^,]+)/.exec(given('authorization')) ?? []
  const payload = createHash('sha256').update(body).digest('hex')
  if (given('x-amz-content-sha256') !== payload) return { status: 400, code: 'XAmzContentSHA256Mismatch' }
  if (!given('authorization').includes(`Credential=${s3Key.id}/`)) return { status: 403, code: 'InvalidAccessKeyId' }
  const date = given('x-amz-date').replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5')
  const own = ['host', 'x-amz-content-sha256', 'x-amz-date']
  const headers = Object.fromEntries(
    names.split(';').flatMap((name) => (own.includes(name) ? [] : [[name, given(name)]])),
  )
  const query = Object.fromEntries(url.searchParams)
  const unsigned = { method: request.method ?? '', host: given('host'), path: url.pathname, query, headers, payload }
  const region = /Credential=[^/]+\/\d+\/([^/]+)/.exec(given('authorization'))?.[1] ?? ''
  if (signHeaders(unsigned, s3Key, region, Date.parse(date))['authorization'] !== given('authorization'))
    return { status: 403, code: 'SignatureDoesNotMatch' }
  return bucket === 'lake' ? undefined : { status: 404, code: 'NoSuchBucket' }
}

interface Acted {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: Buffer
}

function act(state: State, { method, key, query, headers }: Heard, body: Buffer): Acted {
  const { objects, uploads } = state
  const { uploadId = '' } = query
  if (key === '') return { status: 200, text: Buffer.from(listed(state, query)) }
  if (method === 'POST' && 'uploads' in query) {
    const id = randomBytes(8).toString('hex')
    uploads.set(id, new Map())
    return { status: 200, text: Buffer.from(`<R><UploadId>${id}</UploadId></R>`) }
  }
  if (uploadId !== '' && !uploads.has(uploadId))
    return { status: 404, text: Buffer.from('<Error><Code>NoSuchUpload</Code></Error>') }
  if (method === 'PUT' && uploadId !== '') {
    uploads.get(uploadId)?.set(Number(query['partNumber']), body)
    return { status: 200, headers: { etag: `"${query['partNumber']}"` } }
  }
  if (method === 'POST') {
    const numbers = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>&quot;\1&quot;/g)].map(Number)
    const parts = uploads.get(uploadId)
    objects.set(key, Buffer.concat([...(parts ?? [])].toSorted(([a], [b]) => a - b).map(([, part]) => part)))
    uploads.delete(uploadId)
    return { status: 200, text: Buffer.from(`<R><ETag>"${numbers.length}"</ETag></R>`) }
  }
  if (method === 'DELETE') {
    if (uploadId === '') objects.delete(key)
    else uploads.delete(uploadId)
    return { status: 204 }
  }
  const there = objects.get(key)
  if (method === 'PUT') {
    if (state.createOnly && headers['if-none-match'] === '*' && there)
      return { status: 412, text: Buffer.from('<Error><Code>PreconditionFailed</Code></Error>') }
    objects.set(key, body)
    return { status: 200 }
  }
  if (!there) return { status: 404, text: Buffer.from('<Error><Code>NoSuchKey</Code></Error>') }
  return { status: 200, headers: { 'content-length': String(there.length) }, text: there }
}

function listed({ objects, page, loops }: State, query: Heard['query']): string {
  const after = loops ? '' : (query['continuation-token'] ?? '')
  const keys = [...objects.keys()].filter((key) => key.startsWith(query['prefix'] ?? '')).toSorted()
  const left = keys.filter((key) => key > after)
  const items = left.slice(0, page).map((key) => {
    const size = objects.get(key)?.length
    return `<Contents><Key>${key.replaceAll('&', '&amp;').replaceAll("'", '&#39;')}</Key><LastModified>2026-11-22T10:11:12.345Z</LastModified><Size>${size}</Size></Contents>`
  })
  const more = left.length > page
  const next = more ? `<NextContinuationToken>${left[page - 1]}</NextContinuationToken>` : ''
  return `<ListBucketResult><IsTruncated>${more}</IsTruncated>${items.join('')}${next}</ListBucketResult>`
}
