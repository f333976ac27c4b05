import { type LakeError, usage } from '../base/errors.ts'
import { formatInstant, type Instant, isInterval } from '../base/time.ts'
import { type Catalogue, type Defaults, type Dimension, dimensions, type Endpoint, isOwn } from './catalogue.ts'
import { didYouMean, hint, nearPaths } from '../base/suggestion.ts'
import { globTest } from './globs.ts'
import { namedIn } from './names.ts'

/** One series: the unit of coverage. Dimensions that the endpoint does not take are null. */
export interface Series extends Defaults {
  /** Stable, collision-free and reversible: see `seriesId`. */
  readonly id: string
  /** The catalogue's path of the endpoint. */
  readonly metric: string
  readonly asset: string
  /** Extra parameters of the catalogue row; part of the identity. */
  readonly params: Readonly<Record<string, string>>
}

/**
 * A selection: globs for paths, values for the other dimensions; `'*'` means all, a missing one the catalogue's
 * default.
 */
export interface Selection extends Readonly<Partial<Record<Dimension['plural'], readonly string[] | undefined>>> {
  readonly assets: readonly string[]
  readonly paths?: readonly string[] | undefined
  readonly since?: Instant | undefined
  readonly until?: Instant | undefined
  /** Whether flags name its assets and dimensions one by one: a path without a glob is then a series named exactly. */
  readonly exact?: boolean | undefined
  /** Whether the selection was not named by the user but derived from the contents of the lake. */
  readonly held?: true
}

/** A selected series with the wanted range `[since, until)`; null: from the beginning, until now. */
export interface Wanted {
  readonly series: Series
  readonly endpoint: Endpoint
  readonly since: Instant | null
  readonly until: Instant | null
  /** Whether flags name it exactly: pitlake then requests it even if metadata advise against it. */
  readonly exact?: boolean
}

const separator = '|'

/** Formats the identity of a series as one text: its parts escaped and joined by `|`, absent ones empty. */
export function seriesId(series: Omit<Series, 'id'>): string {
  const params = Object.keys(series.params).toSorted()
  const tail = params.map((key) => `${escape(key)}=${escape(series.params[key] ?? '')}`).join('&')
  const parts = [series.metric, series.asset, series.interval, series.currency, series.exchange, series.network]
  return [...parts.map((part) => (part === null ? '' : escape(part))), tail].join(separator)
}

/** Parses the id of a series; undefined for a text that is not an id. */
export function parseSeriesId(id: string): Series | undefined {
  const [metric = '', asset = '', interval = '', currency = '', exchange = '', network = '', tail = '', ...rest] =
    id.split(separator)
  if (rest.length > 0 || metric === '' || asset === '' || (interval !== '' && !isInterval(interval))) return undefined
  const optional = (text: string) => (text === '' ? null : unescape(text))
  const params = tail === '' ? [] : tail.split('&').map((pair) => pair.split('=').map(unescape) as [string, string])
  const identity = {
    metric: unescape(metric),
    asset: unescape(asset),
    interval: interval === '' ? null : interval,
    currency: optional(currency),
    exchange: optional(exchange),
    network: optional(network),
    params: Object.fromEntries(params),
  }
  return seriesId(identity) === id ? { id, ...identity } : undefined
}

/** A series for people to read. */
export type SeriesName = Omit<Series, 'id' | 'params'>

/** Parses the id of a series for display; a text that is not an id becomes the metric. */
export function readableSeries(id: string): SeriesName {
  const none = { metric: id, asset: '', interval: null, currency: null, exchange: null, network: null }
  const { metric, asset, interval, currency, exchange, network } = parseSeriesId(id) ?? none
  return { metric, asset, interval, currency, exchange, network }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped
const special = /[%|=&\u0000-\u001f\u007f]/g

function escape(text: string): string {
  return text.replace(special, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

function unescape(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/**
 * Expands selections into series in a stable order: the catalogue's, then asset, interval, currency, exchange and
 * network as given. A series that is selected twice occurs once, with the hull of its ranges.
 */
export function expand(catalogue: Catalogue, selections: readonly Selection[]): Wanted[] {
  const bySeries = new Map<string, Wanted>()
  for (const selection of selections) {
    checkValues(catalogue, selection)
    const named = withRealExchanges(catalogue, selection)
    let some = false
    for (const endpoint of askedPaths(catalogue, selection.paths ?? ['*'])) {
      for (const series of seriesOf(endpoint, named)) {
        some = true
        const before = bySeries.get(series.id)
        const range = { since: selection.since ?? null, until: selection.until ?? null }
        const isNamed = pathNames(endpoint).some((name) => selection.paths?.includes(name) === true)
        const exact = before?.exact === true || (selection.exact === true && isNamed)
        const bounds = before ? hull(before, range) : range
        bySeries.set(series.id, { series, endpoint, ...bounds, ...(exact && { exact }) })
      }
    }
    if (!some) throw emptySelection(selection)
  }
  const order = new Map([...catalogue.endpoints.keys()].map((path, index) => [path, index]))
  return [...bySeries.values()].toSorted(
    (a, b) => (order.get(a.series.metric) ?? 0) - (order.get(b.series.metric) ?? 0),
  )
}

/** Returns the selection with the provider's own names in place of mapped placeholders. */
function withRealExchanges({ names }: Catalogue, selection: Selection): Selection {
  const { exchanges } = selection
  if (exchanges === undefined) return selection
  return { ...selection, exchanges: exchanges.map((name) => namedIn(names.exchanges, name) ?? name) }
}

/** Checks selections before anything is opened for them; refuses the same mistakes as `expand`. */
export function checkSelections(catalogue: Catalogue, selections: readonly Selection[]): void {
  for (const selection of selections) {
    checkValues(catalogue, selection)
    expand(catalogue, [{ ...selection, assets: selection.assets.slice(0, 1) }])
  }
}

const priceParts = 'it is made of one path in both currencies: `--paths supply/current_pit --currencies native,usd`'

/** Returns the endpoints that the globs name, in the catalogue's order; a glob without a match is a mistake. */
export function matchPaths(catalogue: Catalogue, globs: readonly string[]): Endpoint[] {
  const tests = globs.map(globTest).map((test) => (endpoint: Endpoint) => pathNames(endpoint).some(test))
  const all = [...catalogue.endpoints.values()]
  const paths = [...catalogue.endpoints.keys()]
  for (const [index, test] of tests.entries()) {
    if (!all.some(test)) {
      const glob = globs[index] ?? ''
      throw usage(`paths: ${glob}`, {
        expected: 'a path or glob that matches an endpoint',
        got: 'no match',
        next: glob === 'price_usd' ? priceParts : didYouMean(nearPaths(glob, paths), 'see `pitlake catalog list`'),
      })
    }
  }
  return all.filter((endpoint) => tests.some((test) => test(endpoint)))
}

/** Returns the names under which a path may be selected: the provider's, and the catalogue's that it replaced. */
export function pathNames({ path, alias }: Pick<Endpoint, 'path' | 'alias'>): readonly string[] {
  return alias === undefined ? [path] : [path, alias]
}

/**
 * Returns the endpoints that globs select and that a provider can be asked for, without user data, which have no
 * provider.
 */
export function askedPaths(catalogue: Catalogue, globs: readonly string[]): Endpoint[] {
  const found = matchPaths(catalogue, globs)
  const [userEndpoint] = found
  const providerEndpoints = found.filter((endpoint) => !isOwn(endpoint))
  if (userEndpoint === undefined || providerEndpoints.length > 0) return providerEndpoints
  const next = `pitlake import FILE --as ${userEndpoint.path.slice(userEndpoint.path.indexOf('/') + 1)}`
  throw usage(`paths: ${userEndpoint.path}`, {
    expected: 'a path that a provider has',
    got: 'own data, which is imported',
    next,
  })
}

function seriesOf({ path: metric, params, ...endpoint }: Endpoint, selection: Selection): Series[] {
  const none = { interval: null, currency: null, exchange: null, network: null }
  let found = selection.assets.map((asset): Omit<Series, 'id'> => ({ metric, asset, ...none, params }))
  for (const { singular, plural } of dimensions) {
    const values = chosen<string>(endpoint[plural], selection[plural], endpoint.defaults[singular])
    found = found.flatMap((series) => values.map((value) => ({ ...series, [singular]: value })))
  }
  return found.map((series) => ({ id: seriesId(series), ...series }))
}

/**
 * Returns the values of one dimension; `[null]` if the endpoint does not take it, so that a filter on it is ignored.
 */
function chosen<T extends string>(
  allowed: readonly T[],
  named: readonly string[] | undefined,
  standard: T | null,
): readonly (T | null)[] {
  if (allowed.length === 0) return [null]
  if (named === undefined) return [standard]
  if (named.includes('*')) return allowed
  return allowed.filter((value) => named.includes(value))
}

/**
 * Builds the error for known paths and known values that no endpoint combines; an empty request would hide the slip.
 */
function emptySelection(selection: Selection): LakeError {
  const wanted = dimensions
    .filter(({ plural }) => selection[plural])
    .map(({ plural }) => `${plural} ${(selection[plural] ?? []).join(', ')}`)
    .join('; ')
  return usage(`paths: ${(selection.paths ?? ['*']).join(', ')}`, {
    expected: 'an endpoint that takes what is selected',
    got: `none for ${wanted}`,
    next: 'see `pitlake catalog show PATH`',
  })
}

/** Refuses a value that no endpoint of the whole catalogue takes: it is a mistake, not an empty selection. */
function checkValues(catalogue: Catalogue, selection: Selection): void {
  const { since, until } = selection
  if (since !== undefined && until !== undefined && since >= until)
    throw usage('since', { expected: `an instant before until, ${formatInstant(until)}`, got: formatInstant(since) })
  for (const key of ['assets', 'paths', ...dimensions.map(({ plural }) => plural)] as const) {
    if (selection[key]?.length === 0) throw usage(key, { expected: 'at least one value', got: 'an empty list' })
  }
  for (const { plural } of dimensions) {
    const values = (withRealExchanges(catalogue, selection)[plural] ?? []).filter((value) => value !== '*')
    refuseUnknown(plural, values, knownValues(catalogue, plural))
  }
  for (const asset of selection.assets) {
    if (asset === '' || !asset.isWellFormed())
      throw usage('assets', { expected: 'asset ids', got: JSON.stringify(asset) })
  }
}

/** Lists every value that some endpoint takes. */
export function knownValues({ endpoints }: Catalogue, many: Dimension['plural']): readonly string[] {
  return [...new Set([...endpoints.values()].flatMap((endpoint): readonly string[] => endpoint[many]))]
}

/** Refuses a value that is not a known name; `what` names the list or flag. */
export function refuseUnknown(what: string, requested: readonly string[], knownNames: readonly string[]): void {
  const wrong = requested.find((value) => !knownNames.includes(value))
  if (wrong === undefined) return
  const expected = `one of ${knownNames.join(', ')}`
  throw usage(`${what}: ${wrong}`, { expected, got: wrong, next: hint(wrong, knownNames) })
}

function hull(a: Pick<Wanted, 'since' | 'until'>, b: Pick<Wanted, 'since' | 'until'>): Pick<Wanted, 'since' | 'until'> {
  return {
    since: a.since === null || b.since === null ? null : Math.min(a.since, b.since),
    until: a.until === null || b.until === null ? null : Math.max(a.until, b.until),
  }
}
