import pLimit from 'p-limit'
import { readText, sizeOf } from '../../lake/store/files.ts'
import { isObject, jsonOf } from '../../base/json.ts'
import { isOffered } from '../../base/time.ts'
import { type Catalogue, isNameless } from '../../catalog/catalogue.ts'
import { compareListing } from '../../catalog/drift.ts'
import type { ImportedRow, ListedEndpoint } from '../../catalog/listing.ts'
import { fittingPaths } from '../../catalog/names.ts'
import type { MetadataWire, Wire } from '../../catalog/wire.ts'
import { askBeside, type Beside, type BesideDeps } from '../http/connection.ts'
import { describeOutcome, type Outcome, resumeHint } from '../http/outcome.ts'
import { metadataUrl, metricsAccess, type MetricsProvider } from './api.ts'
import { askListing } from './drift.ts'
import { largestMetadata, metadataPerMinute, metadataRetries } from './metadata.ts'
import { type PathMetadata, readMetadata } from './metadata-readings.ts'

/** The part of a provider's own listing to take. */
interface ListedEndpointsInput extends MetricsProvider {
  /** Whether to include paths that do not end in `_pit`. */
  readonly all: boolean
  /** Address of the provider's list of endpoints, below the API's prefix; null for the address of its metadata. */
  readonly path: string | null
  /** Paths whose metadata are requested, at most. */
  readonly mostPaths: number
}

/** A listed path as a row of a catalogue, with the facts in its metadata. */
export interface TakenEndpoint {
  readonly row: ImportedRow
  /** The lowest tier of a plan that includes the path; null if the metadata do not state it. */
  readonly tier: number | null
}

/** A listed path that is not taken. */
export interface LeftPath {
  readonly path: string
  readonly reason: string
}

/** The paths that a provider lists beyond the catalogue. */
export interface ListedEndpoints {
  /** Paths in the listing. */
  readonly listed: number
  /** Paths among them that are not point-in-time, and are left out without `all`. */
  readonly skipped: number
  /** Paths among the others that the catalogue has. */
  readonly known: number
  readonly taken: readonly TakenEndpoint[]
  readonly left: readonly LeftPath[]
  /** Free requests, repeats included. */
  readonly requests: number
  /** Reason for stopping before the end of the listing, and the next step; null if nothing was left out. */
  readonly stopped: { readonly reason: string; readonly next: string } | null
}

/**
 * Requests the provider's listing, and the metadata of each path that the catalogue lacks; all of these requests are
 * free.
 */
export async function listNewEndpoints(input: ListedEndpointsInput, deps: BesideDeps): Promise<ListedEndpoints> {
  const { catalogue, all, mostPaths, settings } = input
  const saved = 'import a saved listing: pitlake catalog import FILE'
  const manner = { perMinute: metadataPerMinute, retry: metadataRetries, next: `set it, or ${saved}` }
  return await askBeside(metricsAccess(input), deps, manner, async (beside) => {
    const listing = await askListing({ ...input, saved }, beside)
    const wantedPaths = listing.filter(({ path }) => all || path.endsWith('_pit'))
    const fresh = new Set(compareListing(catalogue, listing, all).new)
    const open = openPaths(catalogue, listing)
    const leftPaths: LeftPath[] = [...fresh].flatMap((path) => {
      const name = open.get(path)
      return name === undefined ? [] : [{ path, reason: `may be ${name}: write which in metrics.paths` }]
    })
    const rows = wantedPaths.filter(({ path }) => fresh.has(path) && !open.has(path))
    const askedPaths = catalogue.wire.metadata === null ? rows : rows.slice(0, mostPaths)
    leftPaths.push(
      ...rows.slice(askedPaths.length).map(({ path }) => ({ path, reason: 'not requested: beyond --max-requests' })),
    )
    const limit = pLimit(settings.metrics.concurrency)
    const readings = await Promise.all(askedPaths.map((row) => limit(readEndpoint, catalogue.wire, row, beside)))
    const takenEndpoints: TakenEndpoint[] = []
    let stopped: ListedEndpoints['stopped'] = null
    for (const reading of readings) {
      if ('row' in reading) takenEndpoints.push(reading)
      else {
        leftPaths.push({ path: reading.path, reason: reading.reason })
        stopped ??= reading.stopped ?? null
      }
    }
    const counts = {
      listed: listing.length,
      skipped: listing.length - wantedPaths.length,
      known: wantedPaths.length - fresh.size,
    }
    return { ...counts, taken: takenEndpoints, left: leftPaths, requests: beside.sent(), stopped }
  })
}

/** Finds listed paths of which several fit one path of the catalogue, with that path's name. */
function openPaths(catalogue: Catalogue, listing: readonly ListedEndpoint[]): ReadonlyMap<string, string> {
  const listed = listing.map(({ path }) => path)
  const askedPaths = new Set([...catalogue.endpoints.values()].map(({ ask }) => ask))
  const open = [...catalogue.endpoints.values()].filter(isNameless).flatMap((endpoint) => {
    const fitting = fittingPaths(endpoint, listed).filter((path) => !askedPaths.has(path))
    return fitting.length < 2 ? [] : fitting.map((path) => [path, endpoint.path] as const)
  })
  return new Map(open)
}

/** The result of reading the metadata of one path. */
type Reading = TakenEndpoint | (LeftPath & { readonly stopped?: ListedEndpoints['stopped'] })

async function readEndpoint(wire: Wire, listed: ListedEndpoint, { ask, base, file }: Beside): Promise<Reading> {
  const { path } = listed
  if (wire.metadata === null) return { row: listed, tier: null }
  const id = `metadata-${path.replaceAll(/[^\w]/g, '-')}`
  const url = metadataUrl(base, wire.metadata.template, path)
  const { outcome } = await ask({ id, url, file: file(`${id}.json`), bucket: 'metadata' })
  if (outcome.kind !== 'body') return unread(listed, outcome)
  const text = (await sizeOf(outcome.file)) <= largestMetadata ? await readText(outcome.file) : ''
  const metadata = readMetadata(text, wire.metadata)
  if (metadata === null) return { path, reason: 'its metadata cannot be read' }
  return endpointOf(wire, { listed, metadata, about: aboutOf(text, wire.metadata) })
}

/** Handles a path without metadata, which the listing may describe. */
function unread(listed: ListedEndpoint, outcome: Exclude<Outcome, { kind: 'body' }>): Reading {
  const { path } = listed
  const reason = describeOutcome(outcome)
  if (outcome.kind === 'gone' && Object.keys(listed).length > 1) return { row: listed, tier: null }
  if (outcome.kind === 'gone') return { path, reason: `the provider has no metadata of it (${reason})` }
  const isEnd = outcome.kind === 'stopped' || outcome.kind === 'parked' || outcome.kind === 'limited'
  if (!isEnd && outcome.kind !== 'again') return { path, reason: `its metadata are refused (${reason})` }
  const until = outcome.kind === 'parked' ? new Date(outcome.until).toISOString() : null
  return { path, reason: `not requested: ${reason}`, stopped: { reason, next: resumeHint(until) } }
}

/** The parts of a row: the listing and the metadata of a path. */
interface Described {
  readonly listed: ListedEndpoint
  readonly metadata: PathMetadata
  readonly about: string | null
}

function endpointOf({ queryKeys }: Wire, { listed, metadata, about }: Described): Reading {
  const { path } = listed
  const { parameters, defaults = {}, tier = null } = metadata
  const valuesOf = (key: string): readonly string[] => (Object.hasOwn(parameters, key) ? (parameters[key] ?? []) : [])
  const spelt = new Set<string>(Object.values(queryKeys))
  const unknownKeys = Object.entries(parameters).filter(([key, list]) => !spelt.has(key) && list.length > 0)
  const choice = unknownKeys.find(([key, list]) => list.length > 1 && !Object.hasOwn(defaults, key))
  if (choice !== undefined)
    return { path, reason: `requires a choice of \`${choice[0]}\`, which a row of your own can name in params` }
  const offered = valuesOf(queryKeys.interval)
  const intervals = offered.filter(isOffered)
  if (offered.length > 0 && intervals.length === 0)
    return { path, reason: `has no interval that pitlake knows (${offered.join(', ')})` }
  const lists = {
    intervals,
    currencies: valuesOf(queryKeys.currency),
    exchanges: valuesOf(queryKeys.exchange),
    networks: valuesOf(queryKeys.network),
  }
  const params = unknownKeys.flatMap(([key, [value, ...more]]) =>
    value === undefined || more.length > 0 ? [] : [[key, value] as const],
  )
  const unread = offered.filter((interval) => !isOffered(interval))
  const extra = { ...listed.extra, ...(unread.length > 0 && { intervals: unread }) }
  const [exchange] = Object.hasOwn(defaults, queryKeys.exchange) ? (defaults[queryKeys.exchange] ?? []) : []
  const isDefault = exchange !== undefined && lists.exchanges.includes(exchange)
  const row: ImportedRow = {
    ...listed,
    ...(about !== null && { about }),
    ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)),
    takes: ['since', 'until', ...(valuesOf(queryKeys.format).length > 0 ? ['format'] : [])],
    ...(params.length > 0 && { params: Object.fromEntries(params) }),
    // `aggregated` is the default wherever a path takes it.
    ...(isDefault && !lists.exchanges.includes('aggregated') && { default: { exchange } }),
    ...(Object.keys(extra).length > 0 && { extra }),
  }
  return { row, tier }
}

/** Returns the description of a path in its metadata; null if there is none. */
function aboutOf(text: string, { about }: MetadataWire): string | null {
  if (about === undefined) return null
  const body = jsonOf(text)
  const described = isObject(body) ? body[about] : undefined
  if (typeof described === 'string') return described
  if (!isObject(described)) return null
  const words = [described['description'], described['name']]
  return words.find((word): word is string => typeof word === 'string' && word !== '') ?? null
}
