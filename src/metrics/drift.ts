import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Catalogue } from '../catalog/catalogue.ts'
import { compareListing, type Drift } from '../catalog/drift.ts'
import { type ListedEndpoint, readListing } from '../catalog/listing.ts'
import { LakeError, usage } from '../errors.ts'
import { createAsker } from '../net/ask.ts'
import { createHttp, type ProxySettings } from '../net/http.ts'
import { assetsUrl } from './api.ts'
import type { Outcome } from '../net/outcome.ts'
import { usualRetries } from '../net/retry.ts'
import { isLoopback, type Settings } from '../config/settings.ts'

/** What is compared with what. */
export interface DriftInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  /** The text of a listing and its name; null: ask the provider. */
  readonly file: { readonly name: string; readonly text: string } | null
  /** Where below the API's prefix the provider lists its endpoints. */
  readonly path: string
  /** Also paths that do not end in `_pit`. */
  readonly all: boolean
}

/** What asking needs of the world. */
export interface DriftDeps {
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  readonly random: () => number
  readonly signal: AbortSignal
  readonly proxy: ProxySettings
  readonly program: string
  /** A folder for temporary files. */
  readonly temporary: string
}

const maxBytes = 50_000_000

/** The catalogue against the provider's own listing. */
export async function findDrift(input: DriftInput, deps: DriftDeps): Promise<Drift> {
  const { settings, catalogue, all } = input
  const { url, paths, exchanges } = settings.metrics
  const listing = input.file ? readListing(input.file.name, input.file.text) : await askListing(input, deps)
  const placeholders = url !== null && isLoopback(url)
  return compareListing(catalogue, listing, { paths, exchanges, placeholders, all })
}

async function askListing({ settings, catalogue, path }: DriftInput, deps: DriftDeps): Promise<ListedEndpoint[]> {
  const { url, key, requestsPerMinute } = settings.metrics
  const next = 'set it, or compare with a saved listing: --file FILE'
  if (url === null)
    throw usage('PITLAKE_METRICS_URL', { expected: 'the base address of the metrics API', got: 'nothing', next })
  if (key === null) throw usage('PITLAKE_METRICS_KEY', { expected: 'the key of the metrics API', got: 'nothing', next })
  const address = assetsUrl(url, { ...catalogue.wire, assetsPath: path.replace(/^\/+/, '') })
  const folder = await mkdtemp(join(deps.temporary, 'pitlake-drift-'))
  const http = createHttp({
    base: url,
    key: { name: 'X-Api-Key', key },
    secrets: settings.secrets,
    userAgent: deps.program.replace(' ', '/'),
    connections: 1,
    maxBytes,
    proxy: deps.proxy,
    now: deps.now,
  })
  try {
    const asker = createAsker({
      http,
      governor: { perMinute: requestsPerMinute },
      retry: usualRetries,
      maxRequests: null,
      now: deps.now,
      sleep: deps.wait,
      random: deps.random,
      signal: deps.signal,
    })
    const outcome = await asker.ask({ id: 'listing', url: address, file: join(folder, 'listing.json') })
    if (outcome.kind !== 'body') throw noListing(outcome, path)
    return readListing(`the listing at ${path}`, await readFile(outcome.file, 'utf8'))
  } finally {
    await http.close()
    await rm(folder, { recursive: true, force: true })
  }
}

function noListing(outcome: Exclude<Outcome, { kind: 'body' }>, path: string): LakeError {
  const words = 'words' in outcome && outcome.words !== '' ? outcome.words : outcome.kind
  if (outcome.kind === 'unauthorised')
    return new LakeError('unauthorised', {
      subject: 'the provider refuses the key',
      got: words,
      next: 'check PITLAKE_METRICS_KEY',
    })
  return new LakeError(outcome.kind === 'stopped' ? 'stopped' : 'incomplete', {
    subject: `the provider's listing at ${path}`,
    expected: 'a list of endpoints',
    got: words,
    next: 'name its path with --path, or compare with a saved listing: --file FILE',
  })
}
