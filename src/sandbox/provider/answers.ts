/**
 * The metrics API as a provider with real names serves it, in the shapes of published recordings. All GET, with a key:
 *
 * - `/v1/metrics/<path>`: points, `_pit` or not; 403 if the path belongs to a higher tier than the plan;
 * - `/v1/metrics/assets`: `[{id, symbol, name}]`;
 * - `/v1/metadata/metrics`: `["/addresses/accumulation_balance", "/addresses/accumulation_balance_pit", …]`;
 * - `/v1/metadata/metric?path=/…[&a=BTC]`: what one path takes, its defaults, tier and range;
 * - `/v1/metadata/metric/stats?path=/…&a=BTC`: `{lag: [{unit, window, resolution: {"24h": {p50, p90, p95, p99}}}]}`;
 * - `/v1/metadata/assets`: `{data: [{id, symbol, name, asset_type, blockchains, categories, semantic_tags,
 * default_network}]}`.
 *
 * An error is `{"error": text}`. No answer shows that the provider is a sandbox.
 */
import type { Endpoint } from '../../catalog/catalogue.ts'
import { day, end, formatInstant, hour } from '../../base/time.ts'
import { pick } from '../faults.ts'
import { admitCaller, answerPoints, beginningOf, decodePath, type MetricsEnv, nothingAt } from '../metrics.ts'
import { invalidParameter, notFound, RefusedRequest } from '../refusal.ts'
import { providerAssets, type WorldAsset } from '../world/assets.ts'
import { assetHas, launchOf, worldPoints } from '../world/points.ts'
import { isBulk, type NamedProvider, tierOf } from './provider.ts'
import tables from './provider.json' with { type: 'json' }

/** Prefix of metadata addresses on the provider's side, independent of pitlake's catalogue. */
const metadataPrefix = '/v1/metadata/'

/**
 * Finds the subject of the metadata at an address: `metrics`, `assets` or a path; undefined for every other address.
 */
export function metadataName(url: URL): string | undefined {
  if (!url.pathname.startsWith(metadataPrefix)) return undefined
  const place = url.pathname.slice(metadataPrefix.length)
  if (place === 'metric' || place === 'metric/stats') return (url.searchParams.get('path') ?? '').replace(/^\//, '')
  return place
}

/** Answers one request as the provider does. */
export function answerProvider(request: Request, provider: NamedProvider, env: MetricsEnv): Response {
  const url = new URL(request.url)
  try {
    admitCaller(request, url, env)
    return metadataName(url) === undefined ? data(url, provider, env) : Response.json(metadata(url, env))
  } catch (error) {
    if (!(error instanceof RefusedRequest)) throw error
    return Response.json({ error: error.message }, { status: error.status })
  }
}

/** A path on the provider's side. */
interface ProviderPath {
  /** Name with or without `_pit`. */
  readonly name: string
  /** The point-in-time endpoint whose series it shows. */
  readonly endpoint: Endpoint
  readonly isPit: boolean
}

/**
 * Finds the path of this name; every point-in-time path stands alongside one without the ending, whose points are not
 * dated.
 */
function pathAt(name: string, { catalogue }: MetricsEnv): ProviderPath {
  const pit = catalogue.endpoints.get(name)
  if (pit !== undefined) return { name, endpoint: pit, isPit: true }
  const endpoint = catalogue.endpoints.get(`${name}_pit`)
  return endpoint === undefined ? nothingAt(name) : { name, endpoint, isPit: false }
}

function data(url: URL, provider: NamedProvider, env: MetricsEnv): Response {
  const name = decodePath(url.pathname.slice(env.catalogue.wire.metricsPrefix.length))
  if (name === 'assets') return Response.json(bornAssets(env).map(({ id, symbol, name }) => ({ id, symbol, name })))
  const path = pathAt(name, env)
  if (tierOf(name) > provider.tier)
    throw new RefusedRequest(403, 'forbidden', `your plan does not include /${name}: it requires tier ${tierOf(name)}`)
  return answerPoints(url, path.endpoint, env, path.isPit)
}

function metadata(url: URL, env: MetricsEnv): unknown {
  const place = url.pathname.slice(metadataPrefix.length)
  if (place === 'metrics') return listPaths(url, env)
  if (place === 'assets') return { data: bornAssets(env).map(assetRow) }
  if (place !== 'metric' && place !== 'metric/stats') throw notFound('not found')
  const name = metadataName(url) ?? ''
  if (name === '') throw invalidParameter("parameter 'path' is missing")
  const path = pathAt(decodePath(name), env)
  return place === 'metric' ? describe(url, path, env) : lagStatistics(url, path, env)
}

/** Lists the assets born by now. */
function bornAssets(env: MetricsEnv): readonly WorldAsset[] {
  const today = formatInstant(env.now())
  return providerAssets.filter(({ born }) => born <= today)
}

/** Lists the values that a path takes, by query key; keys that it does not take are absent. */
function parametersOf(endpoint: Endpoint, assets: readonly string[]): Record<string, readonly string[]> {
  const lists = {
    a: assets,
    c: endpoint.currencies,
    e: endpoint.exchanges.toSorted(),
    f: endpoint.format ? ['csv', 'json'] : [],
    i: endpoint.intervals,
    network: endpoint.networks,
  }
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0))
}

/** Lists every path, with a slash before it; only those that take the values of the query. */
function listPaths(url: URL, env: MetricsEnv): string[] {
  const wanted = [...url.searchParams].filter(([key]) => key !== 'api_key')
  const unknown = wanted.find(([key]) => !['a', 'c', 'e', 'i', 'network'].includes(key))
  if (unknown) throw invalidParameter(`parameter '${unknown[0]}' is not accepted`)
  const born = bornAssets(env)
  const fitting = [...env.catalogue.endpoints.values()].filter((endpoint) => {
    const ids = born.filter((asset) => assetHas(endpoint.ask, asset)).map(({ id }) => id)
    const lists = parametersOf(endpoint, ids)
    return wanted.every(([key, value]) => lists[key]?.includes(value))
  })
  return fitting.flatMap(({ path }) => [`/${path.replace(/_pit$/, '')}`, `/${path}`]).toSorted()
}

/** Lists the assets of a request about a path: the one it names, else all that the path covers. */
function assetsAsked(url: URL, { endpoint }: ProviderPath, env: MetricsEnv): readonly string[] {
  const assets = bornAssets(env).filter((asset) => assetHas(endpoint.ask, asset))
  const id = url.searchParams.get('a')
  if (id === null) return assets.map((asset) => asset.id)
  if (assets.some((asset) => asset.id === id)) return [id]
  throw invalidParameter(`parameter 'a': unsupported asset '${id}'`)
}

function describe(url: URL, path: ProviderPath, env: MetricsEnv): object {
  const { name, endpoint } = path
  const assets = assetsAsked(url, path, env)
  const parameters = parametersOf(endpoint, assets)
  const fault = pick(env.faults ?? [], 'metadata-says')
  if (fault?.parameter !== undefined) parameters[fault.parameter] = fault.values?.split('+') ?? []
  const starts = assets.map((asset) => beginningOf(endpoint, asset, env.seed))
  const pit = endpoint.path
  return {
    path: `/${name}`,
    tier: tierOf(name),
    parameters,
    parameters_defaults: defaultsOf(endpoint),
    queried: Object.fromEntries([...url.searchParams].filter(([key]) => key !== 'api_key')),
    refs: { metric_variant: { ...(isBulk(name) ? { bulk: `/${name}/bulk` } : {}), pit: `/${pit}` } },
    bulk_supported: isBulk(name),
    timerange: { min: fault?.t ?? Math.min(...starts), max: Math.floor(env.now() / hour) * hour },
    modified: launchOf(pit),
    descriptors: {
      name: titleOf(name),
      group: titleOf(name.split('/')[0] ?? ''),
      tags: [],
      description: endpoint.about,
    },
  }
}

/** Lists the values that replace parameters missing from a request. */
function defaultsOf({ defaults, networks }: Endpoint): Record<string, readonly string[]> {
  const { exchange } = defaults
  const network = networks.find((network) => network === 'eth')
  return {
    ...(exchange === null ? {} : { e: [exchange] }),
    ...(network === undefined ? {} : { network: [network] }),
  }
}

/** Formats the last part of a path as a title: `Accumulation Balance (PiT)`. */
function titleOf(name: string): string {
  const bare = name.replace(/^.*\//, '').replace(/_pit$/, '')
  const title = bare.replaceAll('_', ' ').replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return name.endsWith('_pit') ? `${title} (PiT)` : title
}

/** Computes lag statistics of the points of the last thirty days, by interval. */
function lagStatistics(url: URL, path: ProviderPath, env: MetricsEnv): object {
  if (url.searchParams.get('a') === null) throw invalidParameter("parameter 'a' is missing")
  const { endpoint } = path
  const [asset = ''] = assetsAsked(url, path, env)
  const { currencies, exchanges, networks, defaults } = endpoint
  const [currency = null] = currencies
  const [network = null] = networks
  const exchange = defaults.exchange ?? exchanges[0] ?? null
  const now = env.now()
  const resolution: Record<string, object> = {}
  for (const interval of endpoint.intervals) {
    const series = { endpoint, asset, interval, currency, exchange, network, seed: env.seed }
    const lags = [...worldPoints(series, now - 30 * day, now, now)]
      .filter(({ computedAt }) => computedAt <= now)
      .map(({ t, computedAt }) => computedAt - end(t, interval))
      .toSorted((a, b) => a - b)
    const at = (share: number): number => lags[Math.floor(share * (lags.length - 1))] ?? 0
    if (lags.length > 0) resolution[interval] = { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99) }
  }
  return { lag: [{ unit: 'seconds', window: '30d', resolution }] }
}

type ChainRow = [name: string, decimals: number, onChain: boolean]
type ContractRow = [name: string, address: string, decimals: number, onChain: boolean]
type FurtherContract = [id: string, ...ContractRow]

const chains = new Map(Object.entries(tables.blockchains) as [string, ChainRow][])
/** Contracts of an asset on chains other than its first. */
const contracts = Map.groupBy(tables.contracts as FurtherContract[], ([id]) => id)
const kinds: Readonly<Record<string, unknown>> = tables.families

/** Builds one row of the list of assets. */
function assetRow(asset: WorldAsset): object {
  const { id, symbol, name, family, chain_id = '', address } = asset
  const [blockchain, decimals, onChain] = chains.get(chain_id) ?? [chain_id, 18, false]
  const contractRows: ContractRow[] = address === undefined ? [] : [[blockchain, address, decimals, onChain]]
  const all = [...contractRows, ...(contracts.get(id) ?? []).map(([, ...contract]): ContractRow => contract)]
  const [asset_type, categories, semantic_tags] = kinds[family] as [string, string[], string[]]
  return {
    id,
    symbol,
    name,
    asset_type,
    blockchains: all.map(([chain, contract, digits, on_chain_support]) => {
      return { blockchain: chain, address: contract, decimals: digits, on_chain_support }
    }),
    categories,
    semantic_tags,
    default_network: (all.find(([, , , supported]) => supported)?.[0] ?? all[0]?.[0] ?? id).toLowerCase(),
  }
}
