import { dimensions, type Endpoint } from '../catalog/catalogue.ts'
import type { QueryKey, Wire } from '../catalog/wire.ts'
import { longestSeconds } from '../time.ts'
import { invalidParameter } from './refusal.ts'
import { worldAssets } from './world/assets.ts'
import { assetHas, type WorldSeries } from './world/points.ts'

/** What one request asks of an endpoint; `since` inclusive, `until` exclusive, Unix seconds. */
export interface MetricsAsk {
  readonly series: WorldSeries
  readonly since: number
  readonly until: number
  readonly csv: boolean
  readonly humanized: boolean
}

type Given = ReadonlyMap<string, string>

const assetsById = new Map(worldAssets.map((asset) => [asset.id, asset]))

/** Reads the query of a data request: every parameter known to the endpoint, given once, with an allowed value. */
export function readAsk(
  query: URLSearchParams,
  endpoint: Endpoint,
  { queryKeys: names }: Wire,
  seed: number,
  now: number,
): MetricsAsk {
  const given = once(query, accepted(endpoint, names))
  const asset = assetOf(given, endpoint, names.asset)
  for (const [key, fixed] of Object.entries(endpoint.params))
    if (given.get(key) !== fixed) throw invalidParameter(`parameter '${key}': expected '${fixed}'`)
  /** The value that is given, else the usual one if it is allowed, else the first. */
  const pick = <T extends string>(key: QueryKey, allowed: readonly T[], usual: string | undefined): T | null => {
    const value = given.get(names[key])
    if (value === undefined) return allowed.find((one) => one === usual) ?? allowed[0] ?? null
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
    exchange: pick('exchange', exchanges, 'aggregated'),
    network: pick('network', networks, 'eth'),
    seed,
  }
  const csv = pick('format', ['json', 'csv'], 'json') === 'csv'
  const humanized = pick('timestamp_format', ['unix', 'humanized'], 'unix') === 'humanized'
  const since = instant(names.since, given, 0)
  const until = instant(names.until, given, Math.ceil(now))
  if (since > until) throw invalidParameter(`parameter '${names.until}': ${until} is before '${names.since}' ${since}`)
  return { series, since, until, csv, humanized }
}

/** The query keys that the endpoint takes. */
function accepted(endpoint: Endpoint, names: Wire['queryKeys']): ReadonlySet<string> {
  const taken: QueryKey[] = [
    'asset',
    ...(['since', 'until', 'format'] as const).filter((key) => endpoint[key]),
    ...dimensions.flatMap(({ one, many }) => (endpoint[many].length > 0 ? [one] : [])),
    ...(endpoint.timestampFormat ? (['timestamp_format'] as const) : []),
  ]
  return new Set([...taken.map((key) => names[key]), ...Object.keys(endpoint.params), 'api_key'])
}

/** The parameters as a map; refused if one is not among the accepted or comes twice. */
function once(query: URLSearchParams, keys: ReadonlySet<string>): Given {
  const values = new Map<string, string>()
  for (const [key, value] of query) {
    if (!keys.has(key)) throw invalidParameter(`parameter '${key}' is not accepted by this endpoint`)
    if (values.has(key)) throw invalidParameter(`parameter '${key}' is given more than once`)
    values.set(key, value)
  }
  return values
}

function assetOf(given: Given, endpoint: Endpoint, key: string): string {
  const id = given.get(key)
  if (id === undefined) throw invalidParameter(`parameter '${key}' is missing`)
  const asset = assetsById.get(id)
  if (!asset) throw invalidParameter(`parameter '${key}': unknown asset '${id}'`)
  if (!assetHas(endpoint.ask, asset)) throw invalidParameter(`parameter '${key}': unsupported asset '${id}'`)
  return id
}

/** Whole Unix seconds; milliseconds and everything else is refused. */
function instant(key: string, given: Given, otherwise: number): number {
  const text = given.get(key) ?? String(otherwise)
  if (/^-?\d{1,12}$/.test(text)) return Number(text)
  throw invalidParameter(`parameter '${key}': '${text.slice(0, 60)}' is not a Unix timestamp`)
}
