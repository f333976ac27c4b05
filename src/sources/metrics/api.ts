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
  /** The requested range; null for the whole series. Only endpoints that take since and until have one. */
  readonly window: Window | null
}

/**
 * Builds the address of a request. `base` is the address before the prefix, with or without a closing slash. It
 * contains a parameter only if the endpoint takes it, and never the key; timestamps are Unix times by default.
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

/** Returns the address of the listing of assets. */
export const assetsUrl = (base: string, wire: Wire): string => pathUrl(base, wire, wire.assetsPath)

/** Returns the address of the metadata of a path in the provider's spelling. */
export function metadataUrl(base: string, template: string, path: string): string {
  return `${base.replace(/\/+$/, '')}${template.replace('{path}', () => encodePath(path))}`
}

/** Lists every query parameter by the program's name and its key, to recognise those that a refusal names. */
export function knownParameters(wire: Wire): { name: string; key: string }[] {
  return queryKeys.map((name) => ({ name, key: wire.queryKeys[name] }))
}

/** The settings of the metrics API, and the catalogue with its spelling. */
export interface MetricsProvider {
  readonly settings: Settings
  readonly catalogue: Catalogue
}

/**
 * Returns the access to the metrics API; `maxBytes` limits a body, by default to that of a request outside of a lake's
 * runs.
 */
export function metricsAccess({ settings }: MetricsProvider, maxBytes = 50_000_000): Access {
  return { name: 'metrics', settings, keyHeader: 'X-Api-Key', connections: settings.metrics.concurrency, maxBytes }
}

/** Redacts an address for logs, errors and the ledger: no credentials, no key parameters, no secrets. */
export function shownUrl(url: string, secrets: readonly string[]): string {
  return redact(url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1'), secrets)
}

function pathUrl(base: string, wire: Wire, path: string): string {
  return `${base.replace(/\/+$/, '')}/${wire.metricsPrefix.replace(/^\/+|\/+$/g, '')}/${encodePath(path)}`
}

const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/')
