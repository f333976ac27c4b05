import { readText } from '../../lake/store/files.ts'
import { type CatalogueDrift, compareListing } from '../../catalog/drift.ts'
import { type ListedEndpoint, readListing } from '../../catalog/listing.ts'
import { LakeError } from '../../base/errors.ts'
import { assetsUrl, metadataUrl, metricsAccess, type MetricsProvider } from './api.ts'
import { isOffered } from '../../base/time.ts'
import type { Wire } from '../../catalog/wire.ts'
import type { Metadata } from './metadata.ts'
import type { PathMetadata } from './metadata-readings.ts'
import { describeOutcome, resumeHint, type Outcome } from '../http/outcome.ts'
import { askBeside, type Beside, type BesideDeps } from '../http/connection.ts'

/** The catalogue's provider and the listing to compare with. */
interface DriftInput extends MetricsProvider {
  /** The text of a listing and its name; null to request the provider's. */
  readonly file: { readonly name: string; readonly text: string } | null
  /** Address of the provider's list of endpoints, below the API's prefix; null for the address of its metadata. */
  readonly path: string | null
  /** Whether to include paths that do not end in `_pit`. */
  readonly all: boolean
  /** Earlier metadata of the provider's paths: they supply parameters if the listing contains paths alone. */
  readonly metadata: Metadata
}

/** Differences between the catalogue and a provider's listing, completed by earlier metadata of the listed paths. */
export type ProviderDrift = CatalogueDrift & {
  /** Listed paths whose parameters come from earlier metadata, in whole or in part. */
  readonly described: number
}

/** Compares the catalogue with the provider's own listing. */
export async function findDrift(input: DriftInput, deps: BesideDeps): Promise<ProviderDrift> {
  const { settings, catalogue, all, file, metadata } = input
  const next = 'set it, or compare with a saved listing: --file FILE'
  const manner = { perMinute: settings.metrics.requestsPerMinute, next }
  const listing = file
    ? readListing(file.name, file.text)
    : await askBeside(
        metricsAccess(input),
        deps,
        manner,
        async (beside) => await askListing({ ...input, saved: 'compare with a saved listing: --file FILE' }, beside),
      )
  const { queryKeys } = catalogue.wire
  const described = listing.map((row) => describe(row, metadata.get(row.path)?.parameters, queryKeys))
  return {
    ...compareListing(catalogue, described, all),
    described: described.filter((row, n) => row !== listing[n]).length,
  }
}

/**
 * Adds the parameters that a path's metadata name and its listing does not; the listing takes precedence because it is
 * newer.
 */
function describe(
  row: ListedEndpoint,
  parameters: PathMetadata['parameters'] | undefined,
  keys: Wire['queryKeys'],
): ListedEndpoint {
  const valuesOf = (key: string) =>
    parameters !== undefined && Object.hasOwn(parameters, key) ? parameters[key] : undefined
  const listed = {
    intervals: valuesOf(keys.interval)?.filter(isOffered),
    currencies: valuesOf(keys.currency),
    exchanges: valuesOf(keys.exchange),
    networks: valuesOf(keys.network),
  }
  const missing = Object.entries(listed).filter(([name, values]) => values !== undefined && !Object.hasOwn(row, name))
  return missing.length === 0 ? row : { ...row, ...Object.fromEntries(missing) }
}

/** The path below the API's prefix at which providers without a listing in their metadata list their endpoints. */
const usualPath = 'endpoints'

/** The address of a listing, and the advice if it is not available. */
interface ListingInput extends Pick<DriftInput, 'catalogue' | 'path'> {
  /** Advice to use a saved listing instead, for errors. */
  readonly saved: string
}

/** Requests the provider's listing: at the address of its metadata, then below the API's prefix. */
export async function askListing(
  { catalogue, path, saved }: ListingInput,
  { ask, base, file }: Beside,
): Promise<ListedEndpoint[]> {
  const metadataPath = path === null ? catalogue.wire.metadata?.listing : undefined
  if (metadataPath !== undefined) {
    const url = metadataUrl(base, metadataPath, '')
    const { outcome } = await ask({ id: 'listing', url, file: file('listing.json'), bucket: 'metadata' })
    if (outcome.kind === 'body') return readAnswer(metadataPath, await readText(outcome.file), saved)
    if (!('status' in outcome) || outcome.status !== 404) throw noListing(outcome, metadataPath, saved)
  }
  const place = path ?? usualPath
  const url = assetsUrl(base, { ...catalogue.wire, assetsPath: place.replace(/^\/+/, '') })
  const { outcome } = await ask({ id: 'endpoints', url, file: file('endpoints.json') })
  if (outcome.kind !== 'body') throw noListing(outcome, place, saved)
  return readAnswer(place, await readText(outcome.file), saved)
}

/** Parses a provider's listing; an answer in a wrong form is not reported as a mistake of the user. */
function readAnswer(path: string, text: string, saved: string): ListedEndpoint[] {
  const subject = `the provider's listing at ${path}`
  try {
    return readListing(subject, text)
  } catch (cause) {
    if (!(cause instanceof LakeError)) throw cause
    const [{ got } = {}] = cause.complaints
    throw new LakeError('incomplete', {
      ...unlisted(subject, 'name its path with --path', saved),
      got: isHtml(text) ? 'HTML' : got,
      cause,
    })
  }
}

const isHtml = (text: string): boolean => text.trimStart().startsWith('<')

function unlisted(subject: string, how: string, saved: string) {
  return { subject, expected: 'a list of endpoints', next: `${how}, or ${saved}` }
}

function noListing(outcome: Exclude<Outcome, { kind: 'body' }>, path: string, saved: string): LakeError {
  const words = describeOutcome(outcome)
  if (outcome.kind === 'unauthorised')
    return new LakeError('unauthorised', {
      subject: 'the provider refuses the key',
      got: words,
      next: 'check PITLAKE_METRICS_KEY',
    })
  const subject = `the provider's listing at ${path}`
  if (outcome.kind === 'stopped' || outcome.kind === 'parked' || outcome.kind === 'limited') {
    const until = outcome.kind === 'parked' ? new Date(outcome.until).toISOString() : null
    return new LakeError('stopped', { subject, got: words, next: resumeHint(until) })
  }
  const how = outcome.kind === 'again' ? 'run the same command again' : 'name its path with --path'
  return new LakeError('incomplete', { ...unlisted(subject, how, saved), got: words })
}
