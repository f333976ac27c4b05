import { LakeError, usage } from '../../base/errors.ts'
import { formatDate } from '../../base/time.ts'
import {
  type Catalogue,
  type Endpoint,
  isNameless,
  isOwn,
  type NamedExchanges,
  type ProviderNames,
} from '../../catalog/catalogue.ts'
import { fittingPaths, isOpenExchange, namedIn, noNames, withNames } from '../../catalog/names.ts'
import { globTest } from '../../catalog/globs.ts'
import { checkSelections, pathNames, type Selection } from '../../catalog/series.ts'
import type { MetricsSettings, Settings } from '../../catalog/settings.ts'
import { canonical } from '../../lake/ledger/entry.ts'
import { storedSeries } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { recordedNames } from './recorded-names.ts'
import type { MetricsProvider } from './api.ts'
import type { Metadata } from './metadata.ts'

/** The sources of names, in addition to those that a lake has recorded. */
export interface NameSources {
  readonly metadata: Metadata
  /** The provider's listing of paths; null if it is not known. */
  readonly listing: readonly string[] | null
}

/** The exchanges of stored points, by metric. */
type StoredExchanges = ReadonlyMap<string, ReadonlySet<string>>

/** A provider whose catalogue is in the provider's own names. */
export interface Named {
  readonly catalogue: Catalogue
  readonly names: ProviderNames
  /** Whether the lake has not recorded these names yet. */
  readonly isNew: boolean
  /** Notes on these names for the user. */
  readonly notes: readonly string[]
}

/**
 * Resolves the catalogue in the provider's own names: recorded ones first, then those of the configuration, then those
 * of the provider's metadata and listing. Everything that is planned, requested and stored uses this catalogue.
 */
export function resolveNames(
  { settings, catalogue }: MetricsProvider,
  ledger: Ledger | null,
  sources: NameSources,
): Named {
  const recorded = ledger === null ? noNames : recordedNames(ledger)
  const stored = ledger === null ? new Map<string, Set<string>>() : storedExchanges(ledger)
  refuseChangedNames(settings, recorded, stored)
  const names = learnNames({ settings: settings.metrics, catalogue, held: recorded, stored }, sources)
  const named = withNames(catalogue, names)
  return {
    catalogue: named,
    names,
    isNew: canonical(names) !== canonical(recorded),
    notes: newDefaults(named, sources),
  }
}

/** Returns the exchanges of each metric with stored points. */
function storedExchanges(ledger: Ledger): Map<string, Set<string>> {
  const stored = new Map<string, Set<string>>()
  for (const { metric, exchange, first_t } of storedSeries(ledger).values()) {
    if (first_t === null) continue
    const exchangesOfMetric = stored.get(metric) ?? new Set<string>()
    stored.set(metric, exchangesOfMetric)
    if (exchange !== null) exchangesOfMetric.add(exchange)
  }
  return stored
}

/** Refuses a configuration that changes the meaning of a name under which points are stored. */
export function refuseChangedNames(
  settings: Pick<Settings, 'where'> & { readonly metrics: Pick<MetricsSettings, 'paths' | 'exchanges'> },
  storedNames: ProviderNames,
  stored: StoredExchanges,
): void {
  const { paths, exchanges } = settings.metrics
  const inUse = {
    paths: new Set(stored.keys()),
    exchanges: new Set([...stored.values()].flatMap((names) => [...names])),
  }
  for (const [kind, mapped] of Object.entries({ paths, exchanges } as const))
    for (const [name, real] of Object.entries(mapped)) {
      const before = namedIn(storedNames[kind as 'paths' | 'exchanges'], name)
      if (before === undefined || before === real || !inUse[kind as 'paths' | 'exchanges'].has(before)) continue
      throw usage(settings.where(['metrics', kind, name]), {
        expected: `${before}, which ${name} means in this lake`,
        got: real,
        next: `write ${before} again and select ${real} by its own name, or use another folder (--data)`,
      })
    }
}

/** Collects the names known so far: recorded ones stay, the configuration and then the provider add to them. */
export function learnNames(
  {
    settings,
    catalogue,
    held,
    stored,
  }: {
    readonly settings: Pick<MetricsSettings, 'paths' | 'exchanges'>
    readonly catalogue: Catalogue
    readonly held: ProviderNames
    readonly stored: StoredExchanges
  },
  { metadata, listing }: NameSources,
): ProviderNames {
  const paths: Record<string, string> = { ...held.paths, ...settings.paths }
  const candidates: Record<string, readonly string[]> = {}
  for (const [path, fitting] of Object.entries(held.candidates))
    if (!Object.hasOwn(paths, path)) candidates[path] = fitting
  if (listing !== null) {
    const takenPaths = new Set([...catalogue.endpoints.values()].map(({ ask }) => ask))
    for (const endpoint of catalogue.endpoints.values()) {
      if (!isNameless(endpoint) || Object.hasOwn(paths, endpoint.path)) continue
      const possible = listing.includes(endpoint.ask) ? [endpoint.ask] : fittingPaths(endpoint, listing)
      const fitting = possible.filter((path) => path === endpoint.ask || !takenPaths.has(path)).toSorted()
      const [only, ...furtherPaths] = fitting
      delete candidates[endpoint.path]
      if (only !== undefined && furtherPaths.length === 0) paths[endpoint.path] = only
      else candidates[endpoint.path] = fitting
    }
  }
  const exchanges = { ...held.exchanges, ...settings.exchanges }
  const spelt = withNames(catalogue, { paths, exchanges, candidates, endpoints: held.endpoints })
  const endpoints: Record<string, NamedExchanges> = { ...held.endpoints }
  for (const endpoint of spelt.endpoints.values()) {
    const recordedExchanges = namedIn(held.endpoints, endpoint.path)
    if (isOfCatalogue(spelt, endpoint)) {
      const standard = standardOf(endpoint, metadata, stored.get(endpoint.path), recordedExchanges)
      if (standard !== null) endpoints[endpoint.path] = standard
      continue
    }
    if (recordedExchanges === undefined && !endpoint.exchanges.some((name) => isOpenExchange(spelt, name))) continue
    const namedExchanges = exchangesOf(spelt, endpoint, metadata, stored.get(endpoint.path), recordedExchanges)
    if (namedExchanges !== null) endpoints[endpoint.path] = namedExchanges
  }
  return { paths, exchanges, endpoints, candidates }
}

/** Whether the catalogue itself has the real names of the endpoint's exchanges. */
function isOfCatalogue({ placeholderExchanges }: Catalogue, endpoint: Endpoint): boolean {
  if (isOwn(endpoint)) return false
  const exchanges = endpoint.unnamed?.exchanges ?? endpoint.exchanges
  return exchanges.length > 0 && !exchanges.some((name) => placeholderExchanges.has(name))
}

/**
 * Returns the default exchange of a path whose exchanges the catalogue names, once the path is in use; recorded, so
 * that a changed file cannot change results.
 */
function standardOf(
  { ask, defaults: { exchange } }: Endpoint,
  metadata: Metadata,
  stored: ReadonlySet<string> | undefined,
  recorded: NamedExchanges | undefined,
): NamedExchanges | null {
  const standard = recorded?.exchange ?? exchange
  if (standard === null || (recorded === undefined && stored === undefined && !metadata.has(ask))) return null
  return { exchanges: [...new Set([standard, ...(stored ?? [])])].toSorted(), exchange: standard }
}

/**
 * Returns the exchanges that metadata list for an endpoint, with those of stored points; the recorded ones if the
 * metadata list no real exchange, null if there are none.
 */
function exchangesOf(
  catalogue: Catalogue,
  endpoint: Endpoint,
  metadata: Metadata,
  stored: ReadonlySet<string> | undefined,
  knownExchanges: NamedExchanges | undefined,
): NamedExchanges | null {
  const key = catalogue.wire.queryKeys.exchange
  const { parameters, defaults } = metadata.get(endpoint.ask) ?? { parameters: {}, defaults: undefined }
  const listed = namedIn<readonly string[]>(parameters, key) ?? []
  if (listed.length === 0 || listed.some((name) => isOpenExchange(catalogue, name))) return knownExchanges ?? null
  const mapped = (endpoint.unnamed?.exchanges ?? []).flatMap((name) => namedIn(catalogue.names.exchanges, name) ?? [])
  const all = [...new Set([...listed, ...mapped, ...(stored ?? [])])]
  const { exchange } = endpoint.defaults
  const wanted = [
    knownExchanges?.exchange,
    exchange,
    ...(namedIn<readonly string[]>(defaults ?? {}, key) ?? []),
    all[0],
  ]
  const chosen = wanted.find((name) => name !== undefined && name !== null && all.includes(name))
  return chosen === undefined || chosen === null ? null : { exchanges: all, exchange: chosen }
}

/**
 * Notes default exchanges of the provider, or of the catalogue, that differ from the one that this lake has recorded.
 */
function newDefaults(catalogue: Catalogue, { metadata }: NameSources): string[] {
  const key = catalogue.wire.queryKeys.exchange
  return [...catalogue.endpoints.values()].flatMap((endpoint) => {
    const { path, ask, defaults, exchanges, unnamed } = endpoint
    const { exchange: standard } = defaults
    if (standard === null) return []
    const written = isOfCatalogue(catalogue, endpoint) ? (unnamed?.exchange ?? standard) : standard
    if (written !== standard)
      return [`${path}: the catalogue's default exchange is ${written}; this lake keeps ${standard}`]
    const { at = 0, defaults: offered = {} } = metadata.get(ask) ?? { defaults: {} }
    const [theirs] = namedIn<readonly string[]>(offered, key) ?? []
    if (theirs === undefined || !exchanges.includes(theirs)) return []
    if (theirs === standard || standard === 'aggregated') return []
    return [
      `${path}: since ${formatDate(at)} the provider's default exchange is ${theirs}; this lake keeps ${standard}`,
    ]
  })
}

/**
 * Returns selections with the catalogue's placeholders for names that only the provider's metadata can show; before
 * these are known, a real name is not a mistake.
 */
export function unnamedSelections(catalogue: Catalogue, selections: readonly Selection[]): readonly Selection[] {
  const nameless = [...catalogue.endpoints.values()].filter(isNameless)
  return selections.map((selection) => {
    const { exchanges, paths, ...rest } = selection
    const cataloguePaths = paths?.map(
      (path) => nameless.find((endpoint) => fittingPaths(endpoint, [path]).length > 0)?.path ?? path,
    )
    const named = cataloguePaths === undefined ? rest : { ...rest, paths: cataloguePaths }
    const isOpen = hasOpenExchanges(catalogue, cataloguePaths ?? ['*'])
    return exchanges === undefined || isOpen ? named : { ...named, exchanges }
  })
}

/** Whether the catalogue has every name of the selection. */
export function isKnownSelection(catalogue: Catalogue, selection: Selection): boolean {
  try {
    checkSelections(catalogue, [selection])
    return true
  } catch (error) {
    if (error instanceof LakeError) return false
    throw error
  }
}

/** Whether a selected path takes exchanges without a known real name. */
function hasOpenExchanges(catalogue: Catalogue, paths: readonly string[]): boolean {
  const tests = paths.map(globTest)
  return [...catalogue.endpoints.values()].some(
    (endpoint) =>
      endpoint.exchanges.some((name) => isOpenExchange(catalogue, name)) &&
      pathNames(endpoint).some((name) => tests.some((test) => test(name))),
  )
}
