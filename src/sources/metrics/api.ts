import { type Catalogue, dimensions, type Endpoint } from '../../catalog/catalogue.ts'
import { queryKeys, type Wire } from '../../catalog/wire.ts'
import type { Series } from '../../catalog/series.ts'
import type { Settings } from '../../catalog/settings.ts'
import type { Access } from '../http/connection.ts'
import { percentEncoded } from '../http/http.ts'
import { redact } from '../../base/secrets.ts'
import type { Window } from '../../base/windows.ts'

/** One request to the metrics API, in the provider's own names. */
interface MetricsAsk {
  readonly endpoint: Endpoint
  readonly series: Series
  /** Null asks for the whole series; only endpoints that take since and until are given one. */
  readonly window: Window | null
}

/**
 * The address of a request. `base` is what stands before the prefix, with or without a closing slash. Parameters appear
 * only where the endpoint takes them; the key never does, and Unix time is the default form of timestamps.
 */
export function metricsUrl(base: string, wire: Wire, ask: MetricsAsk): string {
  const { endpoint, series, window } = ask
  const keys = wire.queryKeys
  const query: [string, string][] = [[keys.asset, series.asset]]
  const add = (isTaken: boolean, key: string, value: string | number | null): void => {
    if (isTaken && value !== null) query.push([key, String(value)])
  }
  add(endpoint.since, keys.since, window?.since ?? null)
  add(endpoint.until, keys.until, window?.until ?? null)
  for (const { singular, plural } of dimensions) add(endpoint[plural].length > 0, keys[singular], series[singular])
  add(endpoint.format, keys.format, 'json')
  for (const [key, value] of Object.entries(series.params)) add(true, key, value)
  const encoded = query.map((pair) => pair.map(percentEncoded).join('='))
  return `${pathUrl(base, wire, endpoint.ask)}?${encoded.join('&')}`
}

/** The address of the listing of assets. */
export const assetsUrl = (base: string, wire: Wire): string => pathUrl(base, wire, wire.assetsPath)

/** The address of the metadata of a path as the provider spells it. */
export function metadataUrl(base: string, template: string, path: string): string {
  return `${base.replace(/\/+$/, '')}${template.replace('{path}', () => encodePath(path))}`
}

/** Every query parameter by the program's name and its key, for reading what a refusal names. */
export function knownParameters(wire: Wire): { name: string; key: string }[] {
  return queryKeys.map((name) => ({ name, key: wire.queryKeys[name] }))
}

/** Whom to ask, and how things are spelt there. */
export interface MetricsProvider {
  readonly settings: Settings
  readonly catalogue: Catalogue
}

/** How the metrics API is spoken to; `maxBytes` is of what no lake has to hold unless said. */
export function metricsAccess({ settings }: MetricsProvider, maxBytes = 50_000_000): Access {
  return { name: 'metrics', settings, keyHeader: 'X-Api-Key', connections: settings.metrics.concurrency, maxBytes }
}

/** An address as logs, errors and the ledger may show it: no credentials, no key parameters, no secrets. */
export function shownUrl(url: string, secrets: readonly string[]): string {
  return redact(url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1'), secrets)
}

function pathUrl(base: string, wire: Wire, path: string): string {
  return `${base.replace(/\/+$/, '')}/${wire.metricsPrefix.replace(/^\/+|\/+$/g, '')}/${encodePath(path)}`
}

const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/')
