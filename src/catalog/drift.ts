import { type Catalogue, type Endpoint, isNameless } from './catalogue.ts'
import type { ListedEndpoint } from './listing.ts'

/** An endpoint that is listed with other parameters. */
type ChangedEndpoint = {
  readonly path: string
  readonly changes: ReturnType<typeof changesOf>
}

/** How the provider spells what the catalogue names by placeholder. */
type Spelling = {
  readonly paths: Readonly<Record<string, string>>
  readonly exchanges: Readonly<Record<string, string>>
  /** Whether the provider takes the catalogue's placeholders as they are. */
  readonly placeholders: boolean
  /** Also listed paths that do not end in `_pit`. */
  readonly all: boolean
}

/** Compares the catalogue with what a provider lists; a parameter of which the listing says nothing has not changed. */
export function compareListing(catalogue: Catalogue, listing: readonly ListedEndpoint[], spelling: Spelling) {
  const listed = new Map(listing.map((row) => [row.path, row]))
  const known = new Set<string>()
  const gone: string[] = []
  const unmapped: string[] = []
  const changed: ChangedEndpoint[] = []
  for (const endpoint of catalogue.endpoints.values()) {
    const asked = spelling.paths[endpoint.path] ?? endpoint.ask
    known.add(asked)
    const row = listed.get(asked)
    if (row) {
      const changes = changesOf(catalogue, endpoint, row, spelling)
      if (changes.length > 0) changed.push({ path: endpoint.path, changes })
    } else if (!spelling.placeholders && isNameless(endpoint, spelling.paths)) unmapped.push(endpoint.path)
    else gone.push(endpoint.path)
  }
  const fresh = listing.filter(({ path }) => !known.has(path) && (spelling.all || path.endsWith('_pit')))
  return {
    listed: listing.length,
    catalogued: catalogue.endpoints.size,
    /** Listed, not catalogued. */
    new: fresh.map(({ path }) => path),
    /** Catalogued, not listed. */
    gone,
    changed,
    /** Catalogued under a placeholder that no real name is given for: nothing can be said of them. */
    unmapped,
  }
}

function changesOf(catalogue: Catalogue, endpoint: Endpoint, row: ListedEndpoint, spelling: Spelling) {
  const switches = (['since', 'until', 'format'] as const).filter((key) => endpoint[key])
  const own = endpoint.timestampFormat ? [...switches, 'timestamp_format'] : switches
  const found = [
    difference('intervals', endpoint.intervals, row.intervals),
    difference('currencies', endpoint.currencies, row.currencies),
    difference('exchanges', ...exchangesOf(catalogue, endpoint, row, spelling)),
    difference('networks', endpoint.networks, row.networks),
    difference('takes', own, row.takes),
  ]
  return found.filter((drift) => drift !== undefined)
}

/** The exchanges of both sides in the provider's words; placeholders without a real name are left out of the comparison. */
function exchangesOf(
  catalogue: Catalogue,
  endpoint: Endpoint,
  { exchanges }: ListedEndpoint,
  spelling: Spelling,
): [readonly string[], readonly string[] | undefined] {
  const open = endpoint.exchanges.filter(
    (name) => catalogue.placeholderExchanges.has(name) && spelling.exchanges[name] === undefined,
  )
  if (spelling.placeholders || open.length === 0)
    return [endpoint.exchanges.map((name) => spelling.exchanges[name] ?? name), exchanges]
  // What the open names stand for is not known: a name that only the provider has may be one of them.
  const mapped = endpoint.exchanges
    .filter((name) => !open.includes(name))
    .map((name) => spelling.exchanges[name] ?? name)
  return [mapped, exchanges?.filter((name) => mapped.includes(name))]
}

/** What the provider lists that the catalogue does not know of a parameter (`added`), and the reverse. */
function difference(parameter: string, catalogued: readonly string[], listed: readonly string[] | undefined) {
  if (listed === undefined) return undefined
  const added = listed.filter((value) => !catalogued.includes(value))
  const removed = catalogued.filter((value) => !listed.includes(value))
  return added.length + removed.length === 0 ? undefined : { parameter, added, removed }
}
