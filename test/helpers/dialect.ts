import type { Catalogue } from '../../src/catalog/catalogue.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { end, formatInstant, type Instant, type Interval, isInterval, weekdays } from '../../src/base/time.ts'

/** What the documents leave open. */
const open = {
  /** What becomes of a query key that is not known. */
  unknown: ['refused', 'ignored'],
  timestamp: ['interval_start', 'interval_end'],
  week: weekdays,
  computed_at: ['seconds', 'milliseconds', 'text', 'none'],
  /** Whether the day that is not over has a point, which moves. */
  unfinished: ['hidden', 'shown'],
  assets: ['objects', 'ids', 'symbols', 'data', 'map', 'none'],
} as const
type Open = typeof open

/** How a provider may speak otherwise than the usual one: names, and what the documents leave open. */
interface ProviderDialect extends Readonly<{ [K in keyof Open]: Open[K][number] }> {
  /** Query keys by the usual one. */
  readonly query: Readonly<Record<string, string>>
  /** Keys in all bodies by the usual one. */
  readonly body: Readonly<Record<string, string>>
  /** Response headers by the usual one; an empty name drops the header. */
  readonly header: Readonly<Record<string, string>>
  /** The body of a snapshot stands under this key; empty: it does not. */
  readonly wrap: string
}

const usual: ProviderDialect = {
  unknown: 'refused',
  timestamp: 'interval_start',
  week: 'monday',
  computed_at: 'seconds',
  unfinished: 'hidden',
  assets: 'objects',
  query: {},
  body: {},
  header: {},
  wrap: '',
}

/**
 * Has a sandbox speak otherwise: `query:s=start`, `body:t=time`, `header:etag=`, `timestamp=interval_end` and the like.
 */
export function speaking(sandbox: Sandbox, { wire }: Catalogue, texts: readonly string[]): Sandbox {
  if (texts.length === 0) return sandbox
  const dialect = parseDialect(texts)
  return {
    ...sandbox,
    handle: async (request) => {
      const place = placeOf(new URL(request.url).pathname, wire)
      return await speak(request, dialect, { place, keys: wire.queryKeys }, async (usual) => sandbox.handle(usual))
    },
  }
}

function placeOf(path: string, { metricsPrefix, assetsPath }: Catalogue['wire']): Spoken['place'] {
  if (path === `${metricsPrefix}${assetsPath}`) return 'assets'
  if (path.startsWith(metricsPrefix)) return 'points'
  if (path.endsWith('/registry/v1/snapshot')) return 'snapshot'
  return path.startsWith('/registry/v1/') ? 'registry' : 'metadata'
}

function parseDialect(texts: readonly string[]): ProviderDialect {
  return texts.reduce<ProviderDialect>((dialect, text) => {
    const [, map, name = '', value = ''] = /^(?:(query|body|header):)?([\w-]+)=([\w-]*)$/.exec(text.trim()) ?? []
    if (map === 'query' || map === 'body' || map === 'header')
      return { ...dialect, [map]: { ...dialect[map], [name]: value } }
    const allowed: readonly string[] = Object.entries(open).find(([key]) => key === name)?.[1] ?? []
    if (name !== 'wrap' && !allowed.includes(value)) throw new RangeError(`no dialect: ${text}`)
    return { ...dialect, [name]: value }
  }, usual)
}

/** What speaking needs to know of the address that is asked. */
interface Spoken {
  readonly place: 'points' | 'assets' | 'metadata' | 'snapshot' | 'registry'
  /** The usual query keys of the window and of the interval. */
  readonly keys: { readonly since: string; readonly until: string; readonly interval: string }
}

/** Answers in the dialect by asking the usual provider. */
async function speak(
  request: Request,
  dialect: ProviderDialect,
  spoken: Spoken,
  handle: (request: Request) => Promise<Response>,
): Promise<Response> {
  const url = new URL(request.url)
  const foreign = translate(url, dialect)
  if (foreign !== null) return await refused(new Request(withQuery(url, [[unheard, '']]), request), foreign, handle)
  const window = spoken.place === 'points' ? widen(url, dialect, spoken.keys) : null
  const answer = await handle(new Request(url, request))
  for (const [name, other] of Object.entries(dialect.header)) {
    const value = answer.headers.get(name)
    answer.headers.delete(name)
    if (value !== null && other !== '') answer.headers.set(other, value)
  }
  if (!answer.ok || !answer.headers.get('content-type')?.includes('json')) return answer
  if (spoken.place === 'assets' && dialect.assets === 'none')
    return Response.json({ error: 'not found' }, { status: 404, headers: answer.headers })
  const body: unknown = await answer.json()
  const moving =
    dialect.unfinished === 'shown'
      ? [{ t: Math.floor(Date.parse(answer.headers.get('date') ?? '') / 86_400_000) * 86_400, v: ++looks }]
      : []
  const said =
    spoken.place === 'points' && Array.isArray(body)
      ? points([...body, ...moving], dialect, window)
      : other(body, spoken, dialect)
  const names = { ...(spoken.place === 'metadata' && dialect.query), ...dialect.body }
  return new Response(JSON.stringify(renamed(said, names)), answer)
}

const unheard = 'unheard-of'
let looks = 0

/** The refusal of a key that nobody knows, in the words of the usual provider. */
async function refused(request: Request, key: string, handle: (request: Request) => Promise<Response>) {
  const answer = await handle(request)
  return new Response((await answer.text()).replace(unheard, key), answer)
}

/** Puts the usual query keys into the address; a key that this dialect does not know, where it refuses such. */
function translate(url: URL, { query, unknown }: ProviderDialect): string | null {
  const back = new Map(Object.entries(query).map(([key, name]) => [name, key]))
  const kept: [string, string][] = []
  for (const [key, value] of url.searchParams) {
    const own = back.get(key)
    if (own !== undefined) kept.push([own, value])
    else if (!Object.hasOwn(query, key)) kept.push([key, value])
    else if (unknown === 'refused') return key
  }
  url.search = withQuery(url, kept).search
  return null
}

function withQuery(url: URL, query: readonly (readonly [string, string])[]): URL {
  const own = new URL(url)
  own.search = new URLSearchParams(query.map(([key, value]) => [key, value])).toString()
  return own
}

interface Wished {
  readonly interval: Interval
  readonly since: number
  readonly until: number
}

const wide = 70 * 86_400

/** Asks for more than is wished where this dialect dates points otherwise; what was wished. */
function widen(url: URL, { timestamp, week }: ProviderDialect, keys: Spoken['keys']): Wished | null {
  if (timestamp === usual.timestamp && week === usual.week) return null
  const at = (key: string, otherwise: number, by: number): number => {
    const wished = url.searchParams.get(key)
    if (wished === null) return otherwise
    url.searchParams.set(key, String(Number(wished) + by))
    return Number(wished)
  }
  const text = url.searchParams.get(keys.interval) ?? ''
  const since = at(keys.since, -Infinity, -wide)
  const until = at(keys.until, Infinity, wide)
  return { interval: isInterval(text) ? text : '24h', since, until }
}

function points(
  body: readonly { t: number; computed_at?: unknown }[],
  dialect: ProviderDialect,
  wished: Wished | null,
): unknown[] {
  const dated =
    wished === null ? body : body.map((point) => ({ ...point, t: spelt(point.t, wished.interval, dialect) }))
  const asked = wished === null ? dated : dated.filter(({ t }) => t >= wished.since && t < wished.until)
  return asked.map(({ computed_at: at, ...point }) =>
    typeof at !== 'number' || dialect.computed_at === 'none'
      ? point
      : { ...point, computed_at: computedAs(at, dialect) },
  )
}

function spelt(t: Instant, interval: Interval, { timestamp, week }: ProviderDialect): Instant {
  const early = interval === '1w' ? ((7 - weekdays.indexOf(week)) % 7) * 86_400 : 0
  return (timestamp === 'interval_end' ? end(t, interval) : t) - early
}

function computedAs(at: number, { computed_at: form }: ProviderDialect): number | string {
  return form === 'seconds' ? at : form === 'milliseconds' ? at * 1000 : formatInstant(Math.floor(at))
}

function other(body: unknown, { place }: Spoken, { assets, wrap }: ProviderDialect): unknown {
  if (place === 'snapshot' && wrap !== '') return { [wrap]: body }
  if (place !== 'assets' || !Array.isArray(body)) return body
  const rows = body as readonly { id: string; symbol: string }[]
  if (assets === 'ids') return rows.map(({ id }) => id)
  if (assets === 'symbols') return rows.map(({ id, ...row }) => ({ ...row, symbol: id }))
  if (assets === 'data') return { data: rows }
  return assets === 'map' ? { coins: Object.fromEntries(rows.map(({ id, ...row }) => [id, row])) } : rows
}

function renamed(value: unknown, names: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((one) => renamed(one, names))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => {
      const name = Object.hasOwn(names, key) ? names[key] : key
      return name === '' ? [] : [[name, renamed(inner, names)]]
    }),
  )
}
