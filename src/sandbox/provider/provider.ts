import type { Catalogue, Endpoint } from '../../catalog/catalogue.ts'
import type { Wire } from '../../catalog/wire.ts'
import type { Interval } from '../../base/time.ts'
import type { WorldAsset } from '../world/assets.ts'
import tables from './provider.json' with { type: 'json' }

/** The two ways of naming exchanges and paths that a sandbox knows. */
export const sandboxNames = ['placeholder', 'real'] as const

/** The way a sandbox names exchanges and paths; derived, so that `sandboxNames` is the one list of them. */
export type SandboxNames = (typeof sandboxNames)[number]

/** Provider with names of its own, which the sandbox plays. */
export interface NamedProvider {
  /**
   * Endpoints under the provider's own names, by path; its spelling of the wire, independent of pitlake's catalogue.
   */
  readonly catalogue: Catalogue
  /** Tier of the key's plan: paths of a higher tier are refused. */
  readonly tier: number
}

/** Spelling of the provider, written down apart from pitlake's so that the two can differ. */
const spelling: Pick<Wire, 'metricsPrefix' | 'queryKeys'> = {
  metricsPrefix: '/v1/metrics/',
  queryKeys: {
    asset: 'a',
    since: 's',
    until: 'u',
    interval: 'i',
    format: 'f',
    currency: 'c',
    exchange: 'e',
    network: 'network',
    timestamp_format: 'timestamp_format',
  },
}

/** Words of paths that are placeholders, with the real words in their place; several if several real paths fit. */
const words = new Map<string, readonly string[]>(Object.entries(tables.words))

/** Differences between the provider's listing and pitlake's catalogue, by path. */
const changes = new Map<string, Partial<Endpoint>>(Object.entries(tables.changes) as [string, Partial<Endpoint>][])

/** Tier of the plan by default: it includes most paths and refuses some. */
export const usualTier = 2

/** Builds the provider behind a sandbox with real names. */
export function namedProvider(catalogue: Catalogue, tier: number = usualTier): NamedProvider {
  const knownEndpoints = [...catalogue.endpoints.values()]
    .filter(({ path }) => !tables.unknown.includes(path))
    .flatMap((endpoint) => realPaths(endpoint).map((path) => renamed(endpoint, path)))
  const [sample] = knownEndpoints
  const endpoints = [...knownEndpoints, ...(sample === undefined ? [] : furtherEndpoints(sample))]
  const wire = { ...catalogue.wire, ...spelling }
  return {
    catalogue: { ...catalogue, wire, endpoints: new Map(endpoints.map((endpoint) => [endpoint.path, endpoint])) },
    tier,
  }
}

/** Lists the provider's paths for one path of pitlake's catalogue. */
function realPaths({ ask, placeholders }: Endpoint): readonly string[] {
  const [word] = placeholders
  if (word === undefined) return [ask]
  return (words.get(word) ?? []).map((real) => ask.replace(word, real))
}

function renamed(endpoint: Endpoint, path: string): Endpoint {
  const exchanges = realExchanges(endpoint)
  const renamed = { ...endpoint, path, ask: path, placeholders: [], exchanges, ...changes.get(path) }
  return { ...renamed, defaults: { ...endpoint.defaults, exchange: defaultExchange(renamed) } }
}

function realExchanges({ exchanges }: Endpoint): readonly string[] {
  if (exchanges.length === 0) return []
  return exchanges.includes('aggregated') ? tables.futures : tables.options
}

/**
 * Returns the exchange of a request that names none; null if such a request is refused, or if the path takes no
 * exchange.
 */
function defaultExchange({ path, exchanges }: Endpoint): string | null {
  if (tables.withoutDefault.includes(path)) return null
  return exchanges.find((name) => name === 'aggregated' || name === tables.options[0]) ?? null
}

type FurtherRow = [string, keyof typeof tables.frequencies, string[], 'futures' | 'options' | null, string]

/** Builds point-in-time paths of the provider that pitlake's catalogue does not have. */
function furtherEndpoints(sample: Endpoint): Endpoint[] {
  return (tables.further as FurtherRow[]).map(([path, frequency, currencies, venues, about]) => {
    const exchanges = venues === null ? [] : tables[venues]
    const intervals = tables.frequencies[frequency] as Interval[]
    const lists = { intervals, currencies, exchanges, networks: [] }
    const invented = {
      ...sample,
      path,
      ask: path,
      about,
      ...lists,
      params: {},
      placeholders: [],
      since: true,
      until: true,
    }
    return { ...invented, defaults: { ...sample.defaults, exchange: defaultExchange(invented) } }
  })
}

const tiers = (tables.tiers as [string, number][]).map(([pattern, tier]) => ({ pattern: new RegExp(pattern), tier }))

/** Returns the lowest tier of a plan that includes the path. */
export function tierOf(path: string): number {
  return tiers.find(({ pattern }) => pattern.test(path))?.tier ?? 1
}

const withoutBulk = new RegExp(tables.withoutBulk)

/** Whether the provider offers the path for all assets at once. */
export function isBulk(path: string): boolean {
  return !withoutBulk.test(path)
}

/** A contract of an asset, with the chain as the registry names it. */
export interface FurtherContract {
  readonly chain: string
  readonly address: string
}

type ContractRow = [id: string, blockchain: string, address: string, decimals: number, onChain: boolean]

const registryChains = new Map(Object.entries(tables.registryChains))

/**
 * Contracts of an asset on chains other than its first; those on chains that the registry does not know are left out.
 */
export function furtherContracts({ id }: Pick<WorldAsset, 'id'>): readonly FurtherContract[] {
  return (tables.contracts as ContractRow[]).flatMap(([asset, blockchain, address]) => {
    const chain = registryChains.get(blockchain)
    return asset === id && chain !== undefined ? [{ chain, address }] : []
  })
}
