import type { Catalogue } from '../../src/catalog/catalogue.ts'
import { catalogue } from './sandbox-client.ts'

/** The catalogue with a path whose days are known so many seconds after their end. */
export function withLag(path: string, seconds: number, trust: 'provider' | 'rule' = 'provider'): Catalogue {
  const endpoint = catalogue.endpoints.get(path)
  if (!endpoint) throw new Error(path)
  const rule = { kind: 'lag', seconds, basis: 'override', quote: null, reason: null, until: null, trust } as const
  const own = { ...endpoint, rules: { ...endpoint.rules, '24h': [rule] } }
  return { ...catalogue, endpoints: new Map([...catalogue.endpoints, [path, own]]) }
}
