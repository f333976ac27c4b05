import { readText } from '../../lake/store/files.ts'
import { type CatalogueDrift, compareListing } from '../../catalog/drift.ts'
import { type ListedEndpoint, readListing } from '../../catalog/listing.ts'
import { LakeError } from '../../base/errors.ts'
import { assetsUrl, metadataUrl, metricsAccess, type MetricsProvider } from './api.ts'
import { describeOutcome, resumeHint, type Outcome } from '../http/outcome.ts'
import { askBeside, type Beside, type BesideDeps } from '../http/connection.ts'

/** The catalogue's provider and the listing to compare with. */
interface DriftInput extends MetricsProvider {
  /** The text of a listing and its name; null: ask the provider. */
  readonly file: { readonly name: string; readonly text: string } | null
  /** Where the provider lists its endpoints, below the API's prefix; null: at the address of its metadata. */
  readonly path: string | null
  /** Also paths that do not end in `_pit`. */
  readonly all: boolean
}

/** Compares the catalogue with the provider's own listing. */
export async function findDrift(input: DriftInput, deps: BesideDeps): Promise<CatalogueDrift> {
  const { settings, catalogue, all, file } = input
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
  return compareListing(catalogue, listing, all)
}

/** The path below the API's prefix at which providers without a listing in their metadata list their endpoints. */
const usualPath = 'endpoints'

/** Where a listing is requested, and what to do without one. */
interface ListingInput extends Pick<DriftInput, 'catalogue' | 'path'> {
  /** How to use a saved listing instead, for errors. */
  readonly saved: string
}

/** Asks the provider for its listing: at the address of its metadata, then below the API's prefix. */
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

/** What a provider answers is no mistake of whoever asks. */
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
