import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { everyForm } from '../helpers/spellings.ts'

/**
 * A number in [0, 1) that depends on nothing but the words: the same request of the same round gets the same answer.
 */
export function chance(...words: readonly (string | number)[]): number {
  let hash = 2166136261
  for (const char of words.join(' ')) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619)
  hash ^= hash >>> 15
  hash = Math.imul(hash, 2246822507)
  hash ^= hash >>> 13
  return ((hash >>> 0) % 1_000_003) / 1_000_003
}

/** One of the list, by the same words. */
export function pick<T>(list: readonly T[], ...words: readonly (string | number)[]): T {
  return list[Math.floor(chance(...words) * list.length)] as T
}

/** What a hostile provider is made of. */
interface Making {
  /** Unix seconds. */
  readonly now: () => number
  readonly keys: readonly string[]
}

/** A provider of both APIs that tells the truth or anything else, as the seed of the round says. */
export interface Hostile {
  readonly url: string
  /** `path asset t value` of every number that was ever sent in a list of points. */
  readonly sent: ReadonlySet<string>
  /** Which round it is and how much of what it says is bad, from 0 to 1. */
  round: { seed: number; malice: number }
  close(): Promise<void>
}

const day = 86_400

/** Starts the provider on loopback. */
export async function hostile({ now, keys }: Making): Promise<Hostile> {
  const sent = new Set<string>()
  const visits = new Map<string, number>()
  const state = { round: { seed: 0, malice: 0 } }
  const server = createServer((request, response) => {
    const address = request.url ?? '/'
    const { seed, malice } = state.round
    const visit = (visits.get(`${seed} ${address}`) ?? 0) + 1
    visits.set(`${seed} ${address}`, visit)
    const words = [seed, address, visit]
    response.on('error', () => undefined)
    answer({ request, response, words, bad: chance('bad', ...words) < malice, now: now(), keys, sent })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent,
    get round() {
      return state.round
    },
    set round(next) {
      state.round = next
      visits.clear()
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly words: readonly (string | number)[]
  readonly bad: boolean
  readonly now: number
  readonly keys: readonly string[]
  readonly sent: Set<string>
}

function answer(asked: Asked): void {
  const { request, response, words, bad, now, sent } = asked
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
  const head: Record<string, string> = { 'content-type': 'application/json', date: new Date(now * 1000).toUTCString() }
  if (bad) Object.assign(head, badHead(asked))
  const status = bad && chance('status?', ...words) < 0.35 ? badStatus(asked, head) : 200
  const good = pathname.startsWith('/registry/')
    ? registryText(asked, pathname.replace('/registry/v1', ''), searchParams)
    : pathname.endsWith('/assets')
      ? assetsText(asked)
      : pointsText(asked, pathname, searchParams)
  const text =
    status === 200 ? (bad ? badText(asked, good) : good) : `{"error":"${echo(asked)}","code":"${echo(asked)}"}`
  if (status === 200) note(sent, pathname.replace('/v1/metrics/', ''), searchParams.get('a') ?? '', text)
  send(asked, status, head, text)
  void response
}

/** Sends it whole, cut, in small pieces, compressed, or with a length that is none. */
function send({ response, words, bad }: Asked, status: number, head: Record<string, string>, text: Buffer | string) {
  const bytes = Buffer.from(text)
  const way = bad
    ? pick(['whole', 'whole', 'pieces', 'pieces', 'gzip', 'torn gzip', 'cut', 'longer'], 'way', ...words)
    : 'whole'
  if (way === 'gzip' || way === 'torn gzip') {
    const packed = gzipSync(bytes)
    response.writeHead(status, { ...head, 'content-encoding': 'gzip' })
    response.end(way === 'gzip' ? packed : packed.subarray(0, Math.floor(packed.length / 2)))
  } else if (way === 'cut') {
    response.writeHead(status, head)
    response.write(bytes.subarray(0, Math.floor(bytes.length * chance('cut', ...words))), () => response.destroy())
  } else if (way === 'longer') {
    response.writeHead(status, { ...head, 'content-length': String(bytes.length + 7) })
    response.write(bytes, () => response.destroy())
  } else {
    response.writeHead(status, head)
    const size = way === 'pieces' ? 1 + Math.floor(chance('size', ...words) * 300) : bytes.length
    for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size))
    response.end()
  }
}

function note(sent: Set<string>, path: string, asset: string, text: Buffer | string): void {
  const body = Buffer.from(text)
    .toString('utf8')
    .replace(/^\uFEFF/, '')
  let list: unknown
  try {
    list = JSON.parse(body)
  } catch {
    return
  }
  if (!Array.isArray(list)) return
  for (const point of list as readonly ({ t?: unknown; v?: unknown } | null)[])
    if (typeof point?.t === 'number') sent.add(`${path} ${asset} ${point.t} ${String(point.v)}`)
}

/** What is true of a series: a daily value that anybody can work out. */
export function truth(path: string, asset: string, t: number): number {
  return Math.round(chance('truth', path, asset, t) * 1e9) / 1e3
}

function pointsText(asked: Asked, pathname: string, query: URLSearchParams): string {
  const path = pathname.replace('/v1/metrics/', '')
  const asset = query.get('a') ?? ''
  const since = Math.ceil(Number(query.get('s') ?? asked.now - 20 * day) / day) * day
  const until = Math.min(Number(query.get('u') ?? asked.now), asked.now - day)
  const list: string[] = []
  for (let t = since; t <= until && list.length < 3_000; t += day)
    list.push(`{"t":${t},"v":${truth(path, asset, t)}${asked.bad ? `,"note":"${echo(asked)}"` : ''}}`)
  return `[${list.join(',')}]`
}

function assetsText(asked: Asked): string {
  const odd = [
    'constructor',
    '__proto__',
    'toString',
    '..\\/x',
    'a/../b',
    'y'.repeat(300),
    '\\ud800',
    '\u{1F600}',
    echo(asked),
    '',
  ]
  const ids = asked.bad ? ['BTC', ...odd] : ['BTC', 'ETH']
  return `[${ids.map((id) => `{"id":"${id}","symbol":"${id}"}`).join(',')}]`
}

/** Every form of every key, one after the other. */
function echo({ keys, words }: Asked): string {
  const key = pick(keys, 'key', ...words)
  return pick(Object.values(everyForm(key)), 'form', ...words)
}

function badHead(asked: Asked): Record<string, string> {
  const { words, keys, now } = asked
  const key = pick(keys, 'head', ...words)
  const heads: readonly Record<string, string>[] = [
    { etag: `"${key}"`, 'x-request-id': key },
    { date: new Date((now - 40 * 60) * 1000).toUTCString(), age: '99999999999999' },
    { date: new Date((now + 30 * 60) * 1000).toUTCString() },
    { date: new Date((now - 90 * 60) * 1000).toUTCString() },
    { date: 'yesterday', age: '-5' },
    { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '9999999999999999' },
    { 'x-ratelimit-limit': '-1', 'x-ratelimit-remaining': key, 'x-quota-daily-remaining': '0' },
    { 'retry-after': '9999999999999999' },
    { 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' },
    { 'retry-after': '1' },
    { 'content-encoding': 'nonsense' },
    { 'content-type': `text/html; charset=${key}` },
    { 'content-disposition': '../../etc/passwd', link: `<https://x/?api_key=${key}>; rel=next` },
    {},
  ]
  return pick(heads, 'heads', ...words)
}

function badStatus({ words, keys }: Asked, head: Record<string, string>): number {
  const status = pick(
    [201, 204, 206, 301, 302, 304, 307, 400, 403, 404, 410, 413, 418, 422, 429, 500, 502, 503, 504],
    's',
    ...words,
  )
  if (status >= 300 && status < 400)
    head['location'] = `http://elsewhere.example/?api_key=${encodeURIComponent(keys[0] ?? '')}`
  return status
}

/** The body made wrong in one of many ways. */
function badText(asked: Asked, good: string): Buffer | string {
  const { words, now } = asked
  const last = (text: string): string => good.replace(/\]$/, good.length > 2 ? `,${text}]` : `${text}]`)
  const t = Math.floor(now / day) * day - 3 * day
  const ways: readonly (() => Buffer | string)[] = [
    () => good,
    () => good,
    () => '',
    () => 'null',
    () => '{}',
    () => `\uFEFF${good}`,
    () => ` \n\t${good}\r\n`,
    () => good.slice(0, Math.floor(good.length * chance('slice', ...words))),
    () => `<html>${echo(asked)}</html>`,
    () => last(`{"t":${t},"v":NaN}`),
    () => last(`{"t":${t},"v":1e999}`),
    () => last(`{"t":"${t}","v":1}`),
    () => last(`{"t":${t}000,"v":1}`),
    () => last(`{"t":${t}.5,"v":1}`),
    () => last(`{"t":${t + 1},"v":1}`),
    () => last(`{"t":${t},"v":1},{"t":${t},"v":2}`),
    () => last(`{"t":${t + 30 * day},"v":1}`),
    () => last(`{"t":${t - 4000 * day},"v":1}`),
    () => last(`{"t":-${t},"v":1}`),
    () => last('{"v":1}'),
    () => last('[]'),
    () => last('"x"'),
    () => last(`{"t":${t},"v":1,"v":2}`),
    () => last(`{"t":${t},"t":${t - day},"v":1}`),
    () => last(`{"t":${t},"v":{"__proto__":1,"constructor":{"a":[1,null,"${echo(asked)}"]}}}`),
    () => last(`{"t":${t},"v":1,"__proto__":{"x":1},"toString":2,"${echo(asked)}":3}`),
    () => last(`{"t":${t},"v":1,"computed_at":"${echo(asked)}"}`),
    () => last(`{"t":${t},"v":1,"computed_at":99999999999999}`),
    () => last(`{"t":${t},"v":"${echo(asked)}"}`),
    () => last(`{"t":${t},"v":true}`),
    () => last(`{"t":${t},"v":${'['.repeat(200)}${']'.repeat(200)}}`),
    () =>
      Buffer.concat([Buffer.from(last(`{"t":${t},"v":"`)), Buffer.from([0xff, 0xc0, 0x00, 0x22]), Buffer.from('}]')]),
    () => good.replaceAll(/(?<="v":)[\d.]+/g, (value) => String(Number(value) + 1)),
    () =>
      good.replaceAll(/(?<="(?:id|next_cursor|cursor|entity_id|op|entity_type)":)"[^"]*"/g, () => `"${echo(asked)}"`),
    () => good.replaceAll(/(?<="(?:next_cursor|cursor)":)"[^"]*"/g, '"\\ud800"'),
    () => good.replaceAll('"has_more":false', '"has_more":true'),
    () => good.replaceAll(/(?<="id":)"[^"]*"/g, '"__proto__"'),
    () => good.replaceAll(/"(?:name|status)":/g, () => `"${echo(asked)}":`),
    () => good.replaceAll(/\{/g, '{"":null,'),
  ]
  return pick(ways, 'ways', ...words)()
}

const plural: Readonly<Record<string, string>> = { issuer: 'issuers', product: 'products', deployment: 'deployments' }

/** A registry whose records change by the day. */
function registryText(asked: Asked, path: string, query: URLSearchParams): string {
  const today = Math.floor(asked.now / day)
  const extra = asked.bad ? { note: 'NOTE' } : {}
  const record = (type: string, n: number): Record<string, unknown> => {
    const parent =
      type === 'issuer'
        ? {}
        : type === 'product'
          ? { issuer_id: `i${n}` }
          : { product_id: `p${n}`, verification_status: 'verified' }
    return { id: `${type[0]}${n}`, name: `${type} ${n} of ${Math.floor((today + n) / 5)}`, ...parent, ...extra }
  }
  const as_of = new Date(asked.now * 1000).toISOString()
  const all = (type: string): unknown[] => Array.from({ length: 8 }, (_, n) => record(type, n))
  const told = ((): unknown => {
    if (path === '/snapshot')
      return {
        as_of,
        cursor: `c${today}`,
        ...Object.fromEntries(Object.entries(plural).map(([one, many]) => [many, all(one)])),
      }
    if (path === '/changes/head') return { cursor: `c${today}` }
    if (path === '/changes') {
      const from = /^c(\d+)$/.exec(query.get('since') ?? '')
      if (from === null) return { error: { code: 'invalid_cursor' } }
      const data = Object.keys(plural).flatMap((entity_type) =>
        all(entity_type).map((one, n) => ({
          entity_type,
          entity_id: `${entity_type[0]}${n}`,
          op: 'updated',
          record: one,
        })),
      )
      return { as_of, data: Number(from[1]) < today ? data : [], next_cursor: `c${today}`, has_more: false }
    }
    return { as_of, data: all(path.slice(1, -1)), next_cursor: null, has_more: false }
  })()
  return JSON.stringify(told).replaceAll('NOTE', echo(asked))
}
