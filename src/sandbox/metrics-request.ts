import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import { type QueryKey, queryKeys } from '../catalog/wire.ts'
import { type Interval, longestSeconds } from '../time.ts'
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

/** Why a request is refused with 400: the text names the parameter by its query key. */
export interface Refusal {
  readonly refused: string
}

type Names = Readonly<Record<QueryKey, string>>
type Given = ReadonlyMap<string, string>

const keyParameter = 'api_key'
const formats = ['json', 'csv'] as const
const timestampFormats = ['unix', 'humanized'] as const
const assetsById = new Map(worldAssets.map((asset) => [asset.id, asset]))

/** Reads the query of a data request: every parameter known to the endpoint, given once, with an allowed value. */
export function readAsk(
  query: URLSearchParams,
  endpoint: Endpoint,
  catalogue: Catalogue,
  seed: number,
  now: number,
): MetricsAsk | Refusal {
  const names = catalogue.wire.queryKeys
  const given = once(query, accepted(endpoint, names))
  if ('refused' in given) return given
  return readGiven(given.values, endpoint, names, seed, now)
}

/** The query keys that the endpoint takes, by the parameter's name. */
function accepted(endpoint: Endpoint, names: Names): Set<string> {
  const takes: Readonly<Record<QueryKey, boolean>> = {
    asset: true,
    since: endpoint.since,
    until: endpoint.until,
    interval: endpoint.intervals.length > 0,
    format: endpoint.format,
    currency: endpoint.currencies.length > 0,
    exchange: endpoint.exchanges.length > 0,
    network: endpoint.networks.length > 0,
    timestamp_format: endpoint.timestampFormat,
  }
  const keys = queryKeys.filter((key) => takes[key]).map((key) => names[key])
  return new Set([...keys, ...Object.keys(endpoint.params), keyParameter])
}

/** The parameters as a map; refused if one is not among the accepted or comes twice. */
function once(query: URLSearchParams, keys: ReadonlySet<string>): { readonly values: Given } | Refusal {
  const values = new Map<string, string>()
  for (const [key, value] of query) {
    if (!keys.has(key)) return { refused: `parameter '${key}' is not accepted by this endpoint` }
    if (values.has(key)) return { refused: `parameter '${key}' is given more than once` }
    values.set(key, value)
  }
  return { values }
}

function readGiven(given: Given, endpoint: Endpoint, names: Names, seed: number, now: number): MetricsAsk | Refusal {
  const id = given.get(names.asset)
  const asset = id === undefined ? undefined : assetsById.get(id)
  if (id === undefined) return { refused: `parameter '${names.asset}' is missing` }
  if (!asset) return { refused: `parameter '${names.asset}': unknown asset '${id}'` }
  if (!assetHas(endpoint.ask, asset)) return { refused: `parameter '${names.asset}': unsupported asset '${id}'` }
  for (const [key, fixed] of Object.entries(endpoint.params)) {
    if (given.get(key) !== fixed) return { refused: `parameter '${key}': expected '${fixed}'` }
  }
  const pick = (key: QueryKey, allowed: readonly string[], fallback: string): string | Refusal => {
    const value = given.get(names[key])
    if (value === undefined) return fallback
    return allowed.includes(value) ? value : invalid(names[key], value, allowed)
  }
  const choices = {
    interval: pick('interval', endpoint.intervals, defaultInterval(endpoint) ?? ''),
    currency: pick('currency', endpoint.currencies, preferred(endpoint.currencies, 'native')),
    exchange: pick('exchange', endpoint.exchanges, preferred(endpoint.exchanges, 'aggregated')),
    network: pick('network', endpoint.networks, preferred(endpoint.networks, 'eth')),
    format: pick('format', formats, 'json'),
    timestamp: pick('timestamp_format', timestampFormats, 'unix'),
    since: instant(names.since, given.get(names.since), 0),
    until: instant(names.until, given.get(names.until), Math.ceil(now)),
  }
  for (const choice of Object.values(choices)) if (typeof choice === 'object') return choice
  const { since, until } = choices as { since: number; until: number }
  if (since > until) return { refused: `parameter '${names.until}': ${until} is before '${names.since}' ${since}` }
  const named = (value: string | Refusal): string | null => (value === '' ? null : (value as string))
  return {
    series: {
      endpoint,
      asset: id,
      interval: named(choices.interval) as Interval | null,
      currency: named(choices.currency),
      exchange: named(choices.exchange),
      network: named(choices.network),
      seed,
    },
    since,
    until,
    csv: choices.format === 'csv',
    humanized: choices.timestamp === 'humanized',
  }
}

function invalid(key: string, value: string, allowed: readonly string[]): Refusal {
  return { refused: `parameter '${key}': '${value.slice(0, 60)}' is not one of ${allowed.join(', ')}` }
}

/** The value to take where the request names none: the wanted one if allowed, else the first, else ''. */
function preferred(allowed: readonly string[], wanted: string): string {
  return allowed.includes(wanted) ? wanted : (allowed[0] ?? '')
}

function defaultInterval({ intervals }: Endpoint): Interval | undefined {
  if (intervals.includes('24h')) return '24h'
  return intervals.toSorted((a, b) => longestSeconds(b) - longestSeconds(a))[0]
}

/** Whole Unix seconds; milliseconds and everything else is refused. */
function instant(key: string, text: string | undefined, fallback: number): number | Refusal {
  if (text === undefined) return fallback
  if (!/^-?\d{1,12}$/.test(text))
    return { refused: `parameter '${key}': '${text.slice(0, 60)}' is not a Unix timestamp` }
  return Number(text)
}
