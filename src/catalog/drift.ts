import { type Catalogue, type Endpoint, isNameless } from './catalogue.ts'
import { fittingPaths, isOpenExchange } from './names.ts'
import type { ListedEndpoint } from './listing.ts'

/** A parameter for which the provider lists different values than the catalogue. */
export type ParameterChange = {
  /** Name of the parameter, such as `intervals` or `currencies`. */
  readonly parameter: string
  /** Values that only the provider lists. */
  readonly added: readonly string[]
  /** Values that only the catalogue lists. */
  readonly removed: readonly string[]
}

/** An endpoint that is listed with different parameters. */
export type ChangedEndpoint = {
  readonly path: string
  readonly changes: readonly ParameterChange[]
}

/** Differences between a provider's listing and the catalogue. */
export type CatalogueDrift = {
  /** Endpoints in the listing. */
  readonly listed: number
  /** Endpoints in the catalogue. */
  readonly catalogued: number
  /** Paths that are listed and not in the catalogue. */
  readonly new: readonly string[]
  /** Paths that are in the catalogue and not listed. */
  readonly gone: readonly string[]
  readonly changed: readonly ChangedEndpoint[]
  /** Paths that the catalogue names by a placeholder without a real name: they cannot be compared. */
  readonly unmapped: readonly string[]
}

/**
 * Compares the catalogue with a provider's listing; a parameter that the listing does not name counts as unchanged.
 * With `all`, includes listed paths that do not end in `_pit`.
 */
export function compareListing(catalogue: Catalogue, listing: readonly ListedEndpoint[], all: boolean): CatalogueDrift {
  const isPlaceholder = takesPlaceholders(catalogue, listing)
  const listed = new Map(listing.map((row) => [row.path, row]))
  const knownPaths = new Set<string>()
  const gonePaths: string[] = []
  const unmapped: string[] = []
  const changed: ChangedEndpoint[] = []
  for (const endpoint of catalogue.endpoints.values()) {
    const [only, ...furtherPaths] =
      isNameless(endpoint) && !isPlaceholder ? fittingPaths(endpoint, [...listed.keys()]) : []
    const requestedPath = only !== undefined && furtherPaths.length === 0 ? only : endpoint.ask
    knownPaths.add(requestedPath)
    const row = listed.get(requestedPath)
    if (row) {
      const changes = changesOf(catalogue, endpoint, row, isPlaceholder)
      if (changes.length > 0) changed.push({ path: endpoint.path, changes })
    } else if (!isPlaceholder && isNameless(endpoint)) unmapped.push(endpoint.path)
    else gonePaths.push(endpoint.path)
  }
  const fresh = listing.filter(({ path }) => !knownPaths.has(path) && (all || path.endsWith('_pit')))
  return {
    listed: listing.length,
    catalogued: catalogue.endpoints.size,
    new: fresh.map(({ path }) => path),
    gone: gonePaths,
    changed,
    unmapped,
  }
}

/** Whether the listing itself has placeholders of the catalogue: then they are names of this provider. */
function takesPlaceholders(catalogue: Catalogue, listing: readonly ListedEndpoint[]): boolean {
  const nameless = new Set([...catalogue.endpoints.values()].filter(isNameless).map(({ ask }) => ask))
  return listing.some(
    ({ path, exchanges = [] }) => nameless.has(path) || exchanges.some((name) => isOpenExchange(catalogue, name)),
  )
}

function changesOf(
  catalogue: Catalogue,
  endpoint: Endpoint,
  row: ListedEndpoint,
  isPlaceholder: boolean,
): ParameterChange[] {
  const switches = (['since', 'until', 'format'] as const).filter((key) => endpoint[key])
  const catalogued = endpoint.timestampFormat ? [...switches, 'timestamp_format'] : switches
  const found = [
    difference('intervals', endpoint.intervals, row.intervals),
    difference('currencies', endpoint.currencies, row.currencies),
    difference('exchanges', ...exchangesOf(catalogue, endpoint, row, isPlaceholder)),
    difference('networks', endpoint.networks, row.networks),
    difference('takes', catalogued, row.takes),
  ]
  return found.filter((drift) => drift !== undefined)
}

/**
 * Returns the exchanges of both sides in the provider's words; placeholders without a real name are left out of the
 * comparison.
 */
function exchangesOf(
  catalogue: Catalogue,
  endpoint: Endpoint,
  { exchanges }: ListedEndpoint,
  isPlaceholder: boolean,
): [readonly string[], readonly string[] | undefined] {
  const open = endpoint.exchanges.filter((name) => isOpenExchange(catalogue, name))
  if (isPlaceholder || open.length === 0) return [endpoint.exchanges, exchanges]
  // The real names of open exchanges are unknown: a name that only the provider has may be one of them.
  const mapped = endpoint.exchanges.filter((name) => !open.includes(name))
  return [mapped, exchanges?.filter((name) => mapped.includes(name))]
}

/** Compares the values of one parameter; undefined if they are the same or the provider lists none. */
function difference(
  parameter: string,
  catalogued: readonly string[],
  listed: readonly string[] | undefined,
): ParameterChange | undefined {
  if (listed === undefined) return undefined
  const added = listed.filter((value) => !catalogued.includes(value))
  const removed = catalogued.filter((value) => !listed.includes(value))
  return added.length + removed.length === 0 ? undefined : { parameter, added, removed }
}
