import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { catalogue } from './sandbox-client.ts'

/** What is selected: globs of paths, and values of each dimension, `*` for all. */
export interface Chosen {
  readonly assets: readonly string[]
  readonly paths?: readonly string[] | undefined
  readonly intervals?: readonly string[] | undefined
  readonly currencies?: readonly string[] | undefined
  readonly exchanges?: readonly string[] | undefined
  readonly networks?: readonly string[] | undefined
}

/** A series that is meant, and its endpoint. */
export interface Meant {
  readonly endpoint: Endpoint
  readonly asset: string
  readonly interval: string | null
  readonly currency: string | null
  readonly exchange: string | null
  readonly network: string | null
}

/**
 * Whether a glob means a path: what stands between its stars comes in this order, the first and last part at the ends.
 */
function means(glob: string, path: string): boolean {
  const [first = '', ...others] = glob.split('*')
  const last = others.pop()
  if (last === undefined) return glob === path
  let at = first.length
  let ok = path.startsWith(first)
  for (const part of others) {
    const found = path.indexOf(part, at)
    if (found < 0) ok = false
    at = found + part.length
  }
  return ok && path.endsWith(last) && path.length - last.length >= at
}

/** The values that are meant of what an endpoint takes: those that are named, else the usual one. */
function taken(list: readonly string[], named: readonly string[] | undefined, usual: string): (string | null)[] {
  if (list.length === 0) return [null]
  if (named === undefined) return [list.includes(usual) ? usual : (list[0] ?? null)]
  return named.includes('*') ? [...list] : list.filter((value) => named.includes(value))
}

const coarse = ['1month', '1w', '24h', '1h', '10m']

/** The series that a selection means, by the words of the configuration's page: loops over what each endpoint takes. */
export function meant({ assets, paths = ['*'], intervals, currencies, exchanges, networks }: Chosen): Meant[] {
  const found: Meant[] = []
  for (const endpoint of catalogue.endpoints.values()) {
    if (!paths.some((glob) => means(glob, endpoint.path))) continue
    const coarsest = coarse.find((name) => (endpoint.intervals as readonly string[]).includes(name)) ?? ''
    const usual = (endpoint.intervals as readonly string[]).includes('24h') ? '24h' : coarsest
    for (const asset of new Set(assets))
      for (const interval of taken(endpoint.intervals, intervals, usual))
        for (const currency of taken(endpoint.currencies, currencies, 'native'))
          for (const exchange of taken(endpoint.exchanges, exchanges, 'aggregated'))
            for (const network of taken(endpoint.networks, networks, 'eth'))
              found.push({ endpoint, asset, interval, currency, exchange, network })
  }
  return found
}
