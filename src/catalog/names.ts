import type { Catalogue, Endpoint, NamedExchanges, ProviderNames, UnnamedEndpoint } from './catalogue.ts'

/** Names of a provider about which nothing is known yet. */
export const noNames: ProviderNames = { paths: {}, exchanges: {}, endpoints: {}, candidates: {} }

/** Looks up a value in a record by a foreign name, which may be one such as `constructor`. */
export function namedIn<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}

/**
 * Returns the catalogue under a provider's own names: paths, exchanges and defaults. All later steps (plan, store,
 * views, joins) know only these names, so two names of the provider are two series. Names already in the catalogue
 * remain unless `more` replaces them.
 */
export function withNames(catalogue: Catalogue, more: ProviderNames): Catalogue {
  const names = mergeNames(catalogue.names, more)
  const endpoints = new Map<string, Endpoint>()
  const isPlaceholder = (exchange: string): boolean => catalogue.placeholderExchanges.has(exchange)
  const all = [...catalogue.endpoints.values()].map((endpoint) => renamed(endpoint, names, isPlaceholder))
  const unchanged = new Map(all.filter(({ alias }) => alias === undefined).map((endpoint) => [endpoint.path, endpoint]))
  for (const endpoint of all) {
    const { path, alias = path } = endpoint
    const twin = endpoints.get(path) ?? (alias === path ? undefined : unchanged.get(path))
    if (twin === undefined) endpoints.set(path, endpoint)
    // One path with different fixed parameters is two metrics; with the same ones, the catalogue's own row counts.
    else if (!isSameRequest(twin, endpoint)) endpoints.set(alias, { ...endpoint, path: alias })
  }
  return { ...catalogue, endpoints, names }
}

function mergeNames(before: ProviderNames, more: ProviderNames): ProviderNames {
  const paths = { ...before.paths, ...more.paths }
  const candidates = Object.entries({ ...before.candidates, ...more.candidates })
  return {
    paths,
    exchanges: { ...before.exchanges, ...more.exchanges },
    endpoints: { ...before.endpoints, ...more.endpoints },
    candidates: Object.fromEntries(candidates.filter(([path]) => !Object.hasOwn(paths, path))),
  }
}

function isSameRequest(a: Endpoint, b: Endpoint): boolean {
  const keys = Object.keys({ ...a.params, ...b.params })
  return a.ask === b.ask && keys.every((key) => a.params[key] === b.params[key])
}

function renamed(endpoint: Endpoint, names: ProviderNames, isPlaceholder: (exchange: string) => boolean): Endpoint {
  const { path, ask, placeholders, exchanges, exchange } = endpoint.unnamed ?? unnamedOf(endpoint)
  const unnamed = { path, ask, placeholders, exchanges, exchange }
  const real = namedIn(names.paths, path)
  const fitting = namedIn(names.candidates, path)
  const place =
    real === undefined
      ? { path, ask, placeholders, ...(fitting !== undefined && { candidates: fitting }) }
      : { path: path === ask ? real : path, ask: real, placeholders: [], alias: path }
  const spelt = (name: string): string => namedIn(names.exchanges, name) ?? name
  const listed = namedIn(names.endpoints, place.path)
  // A row without placeholders keeps its own list; for such a path only the default is recorded.
  const isOpen = exchanges.some(isPlaceholder)
  const namedExchanges =
    listed !== undefined && isOpen
      ? listed.exchanges
      : [...new Set(exchanges.map(spelt)), ...lostExchanges(exchanges, listed)]
  const standard = listed?.exchange ?? (exchange === null ? null : spelt(exchange))
  const { alias: _alias, candidates: _candidates, ...rest } = endpoint
  return {
    ...rest,
    ...place,
    exchanges: namedExchanges,
    defaults: { ...endpoint.defaults, exchange: standard },
    unnamed,
  }
}

/** Returns recorded exchanges that a row of the catalogue no longer has: the lake may have points of them. */
function lostExchanges(exchanges: readonly string[], listed: NamedExchanges | undefined): readonly string[] {
  return (listed?.exchanges ?? []).filter((name) => !exchanges.includes(name))
}

function unnamedOf({ path, ask, placeholders, exchanges, defaults }: Endpoint): UnnamedEndpoint {
  return { path, ask, placeholders, exchanges, exchange: defaults.exchange }
}

/** Whether an exchange is a placeholder without a known real name. */
export function isOpenExchange({ placeholderExchanges, names }: Catalogue, exchange: string): boolean {
  return placeholderExchanges.has(exchange) && namedIn(names.exchanges, exchange) !== exchange
}

/** Whether the provider is known to use its own names; such a provider accepts no placeholder. */
export function hasOwnNames({ names: { endpoints, candidates } }: Catalogue): boolean {
  return Object.keys(endpoints).length + Object.keys(candidates).length > 0
}

/** Finds the listed paths that a path with placeholder words may stand for: each of its words matches one word. */
export function fittingPaths(
  { ask, placeholders }: Pick<Endpoint, 'ask' | 'placeholders'>,
  listed: readonly string[],
): string[] {
  const words = ask.split(/[/_]/)
  return listed.filter((path) => {
    const listedWords = path.split(/[/_]/)
    const isWord = (word: string, at: number): boolean =>
      word === listedWords[at] || (placeholders.includes(word) && /^[a-z0-9]+$/.test(listedWords[at] ?? ''))
    return path.replaceAll(/[^/_]/g, '') === ask.replaceAll(/[^/_]/g, '') && words.every(isWord)
  })
}
