/**
 * The metrics side of the local provider. Below the wire's prefix (`/v1/metrics/`), all GET:
 *
 * - `<path>`: the points of one endpoint, JSON or CSV;
 * - `assets`: `[{id, symbol, name, chain_id?, address?}]`;
 * - beside it, at the wire's `metadata.template`: what one path takes, and from when, `{path, parameters: {a: […], i:
 * […], …}, timerange: {min, max}, is_pit}`;
 * - `endpoints`: the listing, `[{path, intervals, currencies, exchanges, networks, since, until, format,
 * timestamp_format}]`.
 *
 * The key comes in the header `X-Api-Key` or the query parameter `api_key`; errors are `{"error": text}`.
 */
import { type Catalogue, dimensions, type Endpoint } from '../catalog/catalogue.ts'
import { parametersOf } from '../catalog/export.ts'
import { day, end, formatInstant, longestSeconds } from '../base/time.ts'
import { editPoints } from './body-faults.ts'
import { type Fault, pick } from './faults.ts'
import { streamPoints, type WirePoint } from './metrics-body.ts'
import { notFound, RefusedRequest, invalidParameter } from './refusal.ts'
import { assetHas, worldPoints, type WorldSeries, worldStart } from './world/points.ts'
import type { QueryKey, QueryKeys } from '../catalog/wire.ts'
import type { NamedProvider } from './provider/provider.ts'
import { providerAssets, worldAssets } from './world/assets.ts'

/** Environment of the handler: the provider it plays, and its clock. */
export interface MetricsEnv {
  readonly catalogue: Catalogue
  readonly seed: number
  readonly key: string
  /** Unix seconds, may be fractional. */
  readonly now: () => number
  /** The faults that strike this request. */
  readonly faults?: readonly Fault[]
  /** Whether metadata are served in addition to the points (default true). */
  readonly metadata?: boolean
  /** Provider whose names `catalogue` has (default: the sandbox's own placeholders). */
  readonly provider?: NamedProvider
}

/** Answers one request to the metrics API; the body of a data answer is made while it is read. */
export function answerMetrics(request: Request, env: MetricsEnv): Response {
  try {
    return answered(request, new URL(request.url), env)
  } catch (error) {
    if (!(error instanceof RefusedRequest)) throw error
    return Response.json({ error: error.message }, { status: error.status })
  }
}

function answered(request: Request, url: URL, env: MetricsEnv): Response {
  const { metricsPrefix, assetsPath, metadata: metadataPaths } = env.catalogue.wire
  const described = env.metadata !== false ? describedPath(url, env.catalogue) : undefined
  if (!url.pathname.startsWith(metricsPrefix) && described === undefined) throw notFound('not found')
  admitCaller(request, url, env)
  if (described !== undefined) {
    const isStats = pathIn(url, metadataPaths?.stats) !== undefined
    return Response.json(isStats ? lagStats(described, url, env) : describePath(described, env))
  }
  const path = decodePath(url.pathname.slice(metricsPrefix.length))
  if (path === assetsPath) return Response.json(assetListing(env))
  if (path === 'endpoints') return Response.json(listing(env))
  const endpoint = findEndpoint(env, path, url) ?? nothingAt(path)
  return answerPoints(url, endpoint, env)
}

/** Refuses every method but GET, and a missing or wrong key. */
export function admitCaller(request: Request, url: URL, env: MetricsEnv): void {
  if (request.method !== 'GET')
    throw new RefusedRequest(405, 'method_not_allowed', `method ${request.method} is not allowed`)
  const key = request.headers.get('x-api-key') ?? url.searchParams.get('api_key')
  if (key !== env.key)
    throw new RefusedRequest(401, 'unauthorized', key === null ? 'missing API key' : 'invalid API key')
}

/**
 * Answers with points of the endpoint for the query of this address; `dated` is false for a path whose points have no
 * `computed_at`.
 */
export function answerPoints(url: URL, endpoint: Endpoint, env: MetricsEnv, dated = true): Response {
  const now = env.now()
  const ask = readAsk(url.searchParams, endpoint, env, now)
  const shownPoints = dated ? wirePoints(ask, now) : undated(wirePoints(ask, now))
  const points = editPoints(env.faults ?? [], shownPoints, now)
  const type = ask.csv ? 'text/csv; charset=utf-8' : 'application/json'
  return new Response(streamPoints(points, ask), { headers: { 'content-type': type } })
}

function* undated(points: Iterable<WirePoint>): Iterable<WirePoint> {
  for (const point of points) yield { ...point, computed_at: undefined }
}

/** Refuses a path that the API does not have. */
export function nothingAt(path: string): never {
  throw notFound(`no metric at ${path.slice(0, 200)}`)
}

/** Finds the endpoint at a path; of several that differ in fixed parameters the one that the query names. */
function findEndpoint({ catalogue }: MetricsEnv, path: string, { searchParams }: URL): Endpoint | undefined {
  const rows = [...catalogue.endpoints.values(), ...revisedIn(catalogue)].filter((endpoint) => endpoint.ask === path)
  const named = rows.find(({ params }) =>
    Object.entries(params).every(([key, value]) => searchParams.get(key) === value),
  )
  return named ?? rows[0]
}

function* wirePoints({ series, since, until }: MetricsAsk, now: number): Iterable<WirePoint> {
  // The most common form first: a literal of fixed shape is several times faster than a spread.
  for (const { t, body, computedAt, revised } of worldPoints(series, since, until, now)) {
    const shownComputed = revised ? undefined : computedAt
    yield 'v' in body ? { t, v: body.v, computed_at: shownComputed } : { t, ...body, computed_at: shownComputed }
  }
}

/** Lists the assets born by now, with what identifies their contracts. */
function assetListing(env: MetricsEnv): readonly object[] {
  const today = formatInstant(env.now())
  return worldAssets
    .filter((asset) => asset.born <= today)
    .map(({ id, symbol, name, chain_id, address }) => ({ id, symbol, name, chain_id, address }))
}

/**
 * Builds the endpoint that no listing mentions and whose values are revised; it is in no catalogue but a user's own.
 */
function revisedIn({ endpoints }: Catalogue): readonly Endpoint[] {
  const [like] = endpoints.values()
  const path = 'estimates/idle_rate'
  const none = { currencies: [], exchanges: [], networks: [], params: {}, placeholders: [] }
  return like === undefined
    ? []
    : [{ ...like, ...none, path, ask: path, intervals: ['24h', '1month'], since: true, until: true }]
}

/** Lists one object per path, in the catalogue's order. */
function listing({ catalogue }: MetricsEnv): readonly object[] {
  const rows = Map.groupBy(catalogue.endpoints.values(), ({ ask }) => ask)
  return [...rows].flatMap(([path, [endpoint]]) => (endpoint ? [{ path, ...parametersOf(endpoint) }] : []))
}

/** Lists the assets born by now that the path covers. */
function assetsOf(path: string, env: MetricsEnv): string[] {
  const today = formatInstant(env.now())
  return worldAssets.filter((asset) => asset.born <= today && assetHas(path, asset)).map(({ id }) => id)
}

/** Finds the path whose metadata, or lag statistics, an address requests; undefined for every other address. */
export function describedPath(url: URL, { wire }: Catalogue): string | undefined {
  return pathIn(url, wire.metadata?.template) ?? pathIn(url, wire.metadata?.stats)
}

function pathIn(url: URL, template = ''): string | undefined {
  const [before = ''] = template.split('{path}')
  const text = decodePath(`${url.pathname}${url.search}`)
  return before !== '' && text.startsWith(before) ? text.slice(before.length).replace(/&.*$/, '') : undefined
}

/** Computes lag statistics of the points of the last thirty days that had appeared by now. */
function lagStats(path: string, url: URL, env: MetricsEnv): object {
  const endpoint = [...env.catalogue.endpoints.values()].find(({ ask }) => ask === path)
  const asset = url.searchParams.get(env.catalogue.wire.queryKeys.asset) ?? ''
  const interval = endpoint?.intervals.includes('24h') ? '24h' : endpoint?.intervals[0]
  const born = worldAssets.find(({ id }) => id === asset)
  if (endpoint === undefined || interval === undefined || born === undefined || !assetHas(path, born))
    return nothingAt(path)
  const [currency = null] = endpoint.currencies
  const [exchange = null] = endpoint.exchanges
  const [network = null] = endpoint.networks
  const now = env.now()
  const series = { endpoint, asset, interval, currency, exchange, network, seed: env.seed }
  const lags = [...worldPoints(series, now - 30 * day, now, now)]
    .filter(({ computedAt }) => computedAt <= now)
    .map(({ t, computedAt }) => computedAt - end(t, interval))
    .toSorted((a, b) => a - b)
  const at = (share: number): number | null => lags[Math.floor(share * (lags.length - 1))] ?? null
  return { path: `/${path}`, asset, lag_seconds: { p5: at(0.05), p50: at(0.5), p95: at(0.95) } }
}

/** Describes the values that one path takes, under the query keys, and from when. */
function describePath(path: string, env: MetricsEnv): object {
  const { queryKeys, metadata: keys } = env.catalogue.wire
  const endpoint = [...env.catalogue.endpoints.values()].find(({ ask }) => ask === path)
  if (endpoint === undefined || keys === null) return nothingAt(path)
  const assets = assetsOf(path, env)
  const lists = [
    ['asset', assets] as const,
    ...dimensions.map(({ singular, plural }) => [singular, endpoint[plural]] as const),
  ]
  const listParameters = lists.filter(([, list]) => list.length > 0)
  const parameters = Object.fromEntries(listParameters.map(([name, list]) => [queryKeys[name], list]))
  const says = pick(env.faults ?? [], 'metadata-says')
  if (says?.parameter !== undefined) parameters[says.parameter] = says.values?.split('+') ?? []
  const starts = assets.map((asset) => beginningOf(endpoint, asset, env.seed))
  const range = { [keys.min]: says?.t ?? Math.min(...starts), max: Math.floor(env.now()) }
  return { path: `/${path}`, [keys.parameters]: parameters, [keys.timerange]: range, is_pit: true }
}

/** Computes since when an asset has points, in whichever interval they begin first. */
export function beginningOf(endpoint: Endpoint, asset: string, seed: number): number {
  const place = { currency: null, exchange: null, network: null }
  const intervals = endpoint.intervals.length === 0 ? [null] : endpoint.intervals
  const starts = intervals.map((interval) => worldStart({ endpoint, asset, interval, ...place, seed }) ?? Infinity)
  return Math.min(...starts)
}

/** Decodes the percent signs of a path; unchanged if they are wrong. */
export function decodePath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Request to an endpoint; `since` inclusive, `until` exclusive, Unix seconds. */
interface MetricsAsk {
  readonly series: WorldSeries
  readonly since: number
  readonly until: number
  readonly csv: boolean
  readonly humanized: boolean
}

type Given = ReadonlyMap<string, string>

/** Reads the query of a data request: every parameter known to the endpoint, given once, with an allowed value. */
function readAsk(query: URLSearchParams, endpoint: Endpoint, env: MetricsEnv, now: number): MetricsAsk {
  const { seed, provider } = env
  const { queryKeys: names } = env.catalogue.wire
  const parameters = once(query, accepted(endpoint, names))
  const asset = assetOf(parameters, endpoint, env)
  for (const [key, fixed] of Object.entries(endpoint.params))
    if (parameters.get(key) !== fixed) throw invalidParameter(`parameter '${key}': expected '${fixed}'`)
  /**
   * Returns the given value, else the usual one if it is allowed, else the first; a usual value of null requires one.
   */
  const pick = <T extends string>(key: QueryKey, allowed: readonly T[], usual: string | null | undefined): T | null => {
    const value = parameters.get(names[key])
    if (value === undefined && usual === null && allowed.length > 0)
      throw invalidParameter(`parameter '${names[key]}' is missing`)
    if (value === undefined) return allowed.find((value) => value === usual) ?? allowed[0] ?? null
    const found = allowed.find((one) => one === value)
    if (found !== undefined) return found
    throw invalidParameter(`parameter '${names[key]}': '${value.slice(0, 60)}' is not one of ${allowed.join(', ')}`)
  }
  const { intervals, currencies, exchanges, networks } = endpoint
  const longest = intervals.toSorted((a, b) => longestSeconds(b) - longestSeconds(a))[0]
  const series = {
    endpoint,
    asset,
    interval: pick('interval', intervals, intervals.includes('24h') ? '24h' : longest),
    currency: pick('currency', currencies, 'native'),
    exchange: pick('exchange', exchanges, provider === undefined ? 'aggregated' : endpoint.defaults.exchange),
    network: pick('network', networks, 'eth'),
    seed,
  }
  const csv = pick('format', ['json', 'csv'], 'json') === 'csv'
  const humanized = pick('timestamp_format', ['unix', 'humanized'], 'unix') === 'humanized'
  const since = instant(names.since, parameters, 0)
  const until = instant(names.until, parameters, Math.ceil(now))
  if (since > until) throw invalidParameter(`parameter '${names.until}': ${until} is before '${names.since}' ${since}`)
  return { series, since, until, csv, humanized }
}

/** Lists the query keys that the endpoint takes. */
function accepted(endpoint: Endpoint, names: QueryKeys): ReadonlySet<string> {
  const keys: QueryKey[] = [
    'asset',
    ...(['since', 'until', 'format'] as const).filter((key) => endpoint[key]),
    ...dimensions.flatMap(({ singular, plural }) => (endpoint[plural].length > 0 ? [singular] : [])),
    ...(endpoint.timestampFormat ? (['timestamp_format'] as const) : []),
  ]
  return new Set([...keys.map((key) => names[key]), ...Object.keys(endpoint.params), 'api_key'])
}

/** Reads the parameters as a map; refuses one that is not among the accepted or comes twice. */
function once(query: URLSearchParams, keys: ReadonlySet<string>): Given {
  const values = new Map<string, string>()
  for (const [key, value] of query) {
    if (!keys.has(key)) throw invalidParameter(`parameter '${key}' is not accepted by this endpoint`)
    if (values.has(key)) throw invalidParameter(`parameter '${key}' is given more than once`)
    values.set(key, value)
  }
  return values
}

function assetOf(parameters: Given, endpoint: Endpoint, { catalogue, provider }: MetricsEnv): string {
  const key = catalogue.wire.queryKeys.asset
  const id = parameters.get(key)
  if (id === undefined) throw invalidParameter(`parameter '${key}' is missing`)
  const asset = (provider === undefined ? worldAssets : providerAssets).find((asset) => asset.id === id)
  if (!asset) throw invalidParameter(`parameter '${key}': unknown asset '${id}'`)
  if (!assetHas(endpoint.ask, asset)) throw invalidParameter(`parameter '${key}': unsupported asset '${id}'`)
  return id
}

/** Reads whole Unix seconds; refuses milliseconds and everything else. */
function instant(key: string, parameters: Given, otherwise: number): number {
  const text = parameters.get(key) ?? String(otherwise)
  if (/^-?\d{1,12}$/.test(text)) return Number(text)
  throw invalidParameter(`parameter '${key}': '${text.slice(0, 60)}' is not a Unix timestamp`)
}
