import type { Catalogue } from '../../catalog/catalogue.ts'
import { withNames } from '../../catalog/names.ts'
import { ownEndpoint } from '../../catalog/own-endpoint.ts'
import { type OwnRow, ownRow } from '../../catalog/sources.ts'
import { storedStates } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import type { Index } from '../../lake/ledger/index-rows.ts'
import { shape } from '../../base/value-checks.ts'
import { recordedNames } from '../metrics/recorded-names.ts'
import { isBegun } from '../../lake/store/new-lake.ts'

/** Prefix of the names of user data, as metrics and as keys of the state. */
export const ownPrefix = 'own/'

/** The prefix of the metrics of features, whose values a query computes. */
export const featurePrefix = 'feature/'

/** Whether a metric is user data or a feature: no provider is requested for it. */
export const isOwnPath = (metric: string): boolean =>
  [ownPrefix, featurePrefix].some((prefix) => metric.startsWith(prefix))

/** Reads the mappings of user data, by metric; features are user data, too. */
export function ownRows(index: Index): ReadonlyMap<string, OwnRow> {
  const rows = [ownPrefix, featurePrefix].flatMap((prefix) =>
    storedStates(index, prefix, shape({})).map(({ key, value }) => [`${prefix}${key}`, ownRow.parse(value)] as const),
  )
  return new Map(rows)
}

/** Returns the catalogue of a lake: in the names of the lake's provider, with the lake's user data. */
export function withOwn(base: Catalogue, index: Index): Catalogue {
  const catalogue = withNames(base, recordedNames(index))
  const userEndpoints = [...ownRows(index)].map(([path, row]) => [path, ownEndpoint(path, row, base.sessions)] as const)
  return userEndpoints.length === 0
    ? catalogue
    : { ...catalogue, endpoints: new Map([...catalogue.endpoints, ...userEndpoints]) }
}

/**
 * Returns the catalogue with the provider's names and the user data of the lake in a folder, from its index in its
 * present state; the catalogue itself if no index can be read.
 */
export function withOwnOf(catalogue: Catalogue, root: string): Catalogue {
  if (!isBegun(root)) return catalogue
  using ledger = Ledger.glance(root)
  return ledger === undefined ? catalogue : withOwn(catalogue, ledger)
}
