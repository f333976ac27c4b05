import type { Parameter } from '../net/outcome.ts'

/** One request to the registry: a path below the base that ends in its version, and its query. */
export interface RegistryAsk {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
}

/** The whole registry in one answer. */
export const snapshotAsk: RegistryAsk = { path: '/snapshot', query: {} }

/** The newest cursor of the change feed. */
export const headAsk: RegistryAsk = { path: '/changes/head', query: {} }

/** A page of the change feed after a cursor; without a limit where the provider refuses one. */
export function changesAsk(since: string, limit: number | null): RegistryAsk {
  return { path: '/changes', query: { since, ...(limit !== null && { limit: String(limit) }) } }
}

/** A page of a list after a cursor (null: the first one), filtered where it is told by what. */
export function listAsk(path: string, cursor: string | null, limit: number, filters: Filters = {}): RegistryAsk {
  return { path, query: { ...filters, limit: String(limit), ...(cursor !== null && { cursor }) } }
}

/** Filters of a list by their names, each once: a record must fit all. */
export type Filters = Readonly<Record<string, string>>

/** One record by its own address. */
export function detailAsk(path: string, id: string): RegistryAsk {
  return { path: `${path}/${encodeURIComponent(id)}`, query: {} }
}

/** The address of a request; the key is never in it. */
export function registryUrl(base: string, ask: RegistryAsk): string {
  const query = Object.entries(ask.query).map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
  return `${base.replace(/\/+$/, '')}${ask.path}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

/** The query parameters that a refusal may name. */
export const registryParameters: readonly Parameter[] = ['since', 'limit', 'cursor'].map((name) => ({
  name,
  key: name,
}))
