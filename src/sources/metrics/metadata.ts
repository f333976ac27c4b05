import type { Outcome } from '../http/outcome.ts'
import { readText, sizeOf } from '../../lake/store/files.ts'
import pLimit from 'p-limit'
import { type Catalogue, type Endpoint, isNameless } from '../../catalog/catalogue.ts'
import { readListing } from '../../catalog/listing.ts'
import { fittingPaths, isOpenExchange } from '../../catalog/names.ts'
import { LakeError } from '../../base/errors.ts'
import type { Wire } from '../../catalog/wire.ts'
import { askedPaths, type Selection } from '../../catalog/series.ts'
import type { AskOne } from '../http/request-rows.ts'
import { type DatedMetadata, type PathMetadata, readMetadata } from './metadata-readings.ts'
import { metadataUrl, type MetricsProvider } from './api.ts'
import { type RetryPolicy, usualRetries } from '../http/retry.ts'
import { commit, type CommitDeps, type Draft, type Version } from '../../lake/ledger/commit.ts'
import { canonical, type Json, type RequestRow } from '../../lake/ledger/entry.ts'
import { storedPassing, storedPassingFrom, storedStates } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { flag, listOf, mapOf, maybe, orNull, real, shape, text } from '../../base/value-checks.ts'
import { day } from '../../base/time.ts'

/** The metadata of each path, by its name on the wire. */
export type Metadata = ReadonlyMap<string, DatedMetadata>

/** Requests a minute for metadata and listings, which have a bucket of their own and cost nothing. */
export const metadataPerMinute = 1_200

/** Retries of metadata are few: without metadata a fetch finds out by trying. */
export const metadataRetries: RetryPolicy = { ...usualRetries, attempts: 3, limitedAttempts: 2 }

/** Prefix for the state and the notes of a path; unchanged metadata make no version. */
const prefix = 'metadata/'
/** Key of the note that the provider has no metadata at all. */
const absent = 'metadata'
/** Key of the note with the time at which the listing of paths was requested. */
const listed = 'listing'
const patience = 7 * day * 1_000_000
/** Number of paths without metadata, and none with any, that show a provider without metadata. */
const fewPaths = 3
/** Maximum bytes of metadata; a larger answer is ignored. */
export const largestMetadata = 10_000_000

const dated = shape({
  parameters: mapOf(listOf(text)),
  defaults: maybe(mapOf(listOf(text))),
  tier: maybe(real),
  bulk: maybe(flag),
  min: orNull(real),
  at: real,
})

/** Loads the stored metadata, whether or not they are still valid. */
export function loadMetadata(ledger: Ledger): Metadata {
  return new Map(storedStates(ledger, prefix, dated).map(({ key, value }) => [key, value]))
}

/** Reads the stored metadata of a lake in a folder, from its index in its present state; empty without a lake. */
export function storedMetadata(root: string): Metadata {
  if (!isBegun(root)) return new Map()
  using ledger = Ledger.glance(root)
  return ledger === undefined ? new Map() : loadMetadata(ledger)
}

/**
 * Loads the stored metadata that are still valid: without those of a path, or provider, that had none when last
 * requested.
 */
export function standingMetadata(ledger: Ledger): Metadata {
  const without = storedPassing(ledger, absent)?.at ?? Number.NEGATIVE_INFINITY
  const notes = storedPassingFrom(ledger, prefix)
  const counts = (path: string): boolean => {
    const { value = 'read', at = 0 } = notes.get(path) ?? {}
    return value !== 'none' && at >= without
  }
  return new Map([...loadMetadata(ledger)].filter(([path]) => counts(path)))
}

/**
 * Whether these answers show a provider without metadata: no path has any, and of no other one were any read lately.
 */
export function isWithout(ledger: Ledger | null, answers: readonly MetadataAnswer[], nowMicros: number): boolean {
  const answered = answers.filter(isAnswer)
  if (answered.length < fewPaths || answered.some(({ read }) => read !== null)) return false
  const answeredPaths = new Set(answered.map(({ path }) => path))
  const otherPaths =
    ledger === null ? [] : [...storedPassingFrom(ledger, prefix)].filter(([path]) => !answeredPaths.has(path))
  return !otherPaths.some(([, { value, at }]) => value === 'read' && Math.abs(nowMicros - at) < patience)
}

/** Paths whose metadata are to be requested. */
export interface MetadataDue {
  /** Paths with real names, as they are on the wire. */
  readonly plain: readonly string[]
  /** Paths with placeholder words; the provider's listing shows their real names. */
  readonly guarded: readonly NamelessPath[]
}

/** A path with words that stand for an unknown name. */
export type NamelessPath = Pick<Endpoint, 'path' | 'ask' | 'placeholders'>

/** Returns the selected paths whose metadata, or whose names, were not requested within seven days. */
export function metadataDue(
  { catalogue, selections }: MetadataInput,
  ledger: Ledger | null,
  nowMicros: number,
): MetadataDue {
  const isOld = (key: string): boolean => {
    const lastRequest = ledger === null ? undefined : storedPassing(ledger, key)
    return lastRequest === undefined || Math.abs(nowMicros - lastRequest.at) >= patience
  }
  if (catalogue.wire.metadata === null || !isOld(absent)) return { plain: [], guarded: [] }
  const wanted = new Set(selections.flatMap(({ paths }) => askedPaths(catalogue, paths ?? ['*'])))
  const due = [...wanted].filter(({ ask }) => isOld(`${prefix}${ask}`))
  return {
    plain: [...new Set(due.filter((endpoint) => !isNameless(endpoint)).map(({ ask }) => ask))],
    guarded: isOld(listed) ? due.filter(isNameless) : [],
  }
}

/** A provider, and the selections of its data. */
export interface MetadataInput extends MetricsProvider {
  readonly selections: readonly Selection[]
}

/** The dependencies of requests for metadata. */
interface MetadataAsking {
  readonly ask: AskOne
  readonly base: string
  readonly run: string
  readonly wire: Wire
  readonly concurrency: number
  /** Returns the path of a temporary file. */
  readonly file: (name: string) => string
}

/** The answer to a request for the metadata of one path. */
export interface MetadataAnswer {
  /** The path's name on the wire. */
  readonly path: string
  readonly outcome: Outcome
  /** Metadata of the path; null if it has none. */
  readonly read: PathMetadata | null
  /** The request as the ledger records it. */
  readonly row: RequestRow
}

/** A provider's answers to requests for metadata. */
export interface MetadataHeard {
  readonly answers: readonly MetadataAnswer[]
  /** The paths that the provider lists; null if they were not requested, or it lists none. */
  readonly listing: readonly string[] | null
  /** The request for the listing as the ledger records it; null if there was none, or if it was not answered. */
  readonly listingRow: RequestRow | null
}

/** Facts about the provider that its answers show. */
export interface Recognition {
  /** Whether an answer so far called itself a sandbox's. */
  readonly isSandbox: () => boolean
  /** Whether the provider itself uses placeholders of the catalogue as names. */
  readonly takesPlaceholders: (heard: readonly MetadataAnswer[]) => boolean
}

/**
 * Requests the metadata of the paths, in parallel within the limit; if the first few have none, the others are not
 * requested. Words that stand for real names are looked up in the provider's listing: placeholders are sent only to a
 * sandbox that has no other names. A missing answer is not a failure.
 */
export async function askMetadata(
  asking: MetadataAsking,
  { plain, guarded }: MetadataDue,
  { isSandbox, takesPlaceholders }: Recognition,
): Promise<MetadataHeard> {
  const limit = pLimit(asking.concurrency)
  const all = async (paths: readonly string[]): Promise<MetadataAnswer[]> =>
    await Promise.all(paths.map((path) => limit(askOne, asking, path)))
  const answers: MetadataAnswer[] = []
  const answersSoFar = (): MetadataHeard => ({ answers, listing: null, listingRow: null })
  for (const path of plain.slice(0, fewPaths)) {
    const answer = await askOne(asking, path)
    answers.push(answer)
    if (answer.read !== null || !isAnswer(answer)) break
  }
  if (answers.at(-1)?.read === null) return answersSoFar()
  answers.push(...(await all(plain.slice(answers.length))))
  if (guarded.length === 0) return answersSoFar()
  const asIs = guarded.map(({ ask }) => ask)
  const found = takesPlaceholders(answers) ? unlisted : await askListing(asking)
  if (found.paths !== null) {
    const { paths } = found
    answers.push(...(await all(guarded.flatMap((endpoint) => soleName(endpoint, paths) ?? []))))
  } else if (isSandbox() && !found.isOpen) answers.push(...(await all(asIs)))
  // For a sandbox without a listing there is nothing to record.
  return { answers, listing: found.paths, listingRow: found.paths === null && isSandbox() ? null : found.row }
}

/** The answer to a request for the listing of paths. */
interface ListingHeard {
  /** Listed paths; null if the provider lists none. */
  readonly paths: readonly string[] | null
  /** Whether the question is still open because there was no answer. */
  readonly isOpen: boolean
  readonly row: RequestRow | null
}

const unlisted: ListingHeard = { paths: null, isOpen: false, row: null }

/** Requests the paths of all metrics. */
async function askListing({ ask, base, run, wire, file }: MetadataAsking): Promise<ListingHeard> {
  const address = wire.metadata?.listing
  if (address === undefined) return unlisted
  const id = `${run}-listing`
  const request = { id, url: metadataUrl(base, address, ''), file: file(`${id}.json`), bucket: 'metadata' } as const
  const { outcome, row } = await ask(request, { credits: 0 })
  const isReadable = outcome.kind === 'body' && (await sizeOf(outcome.file)) <= largestMetadata
  const paths = isReadable ? pathsIn(address, await readText(outcome.file)) : null
  const isOpen = !('at' in outcome) || outcome.kind === 'limited'
  return { paths, isOpen, row: isOpen ? null : row }
}

/** Parses the listed paths; null for a text that is not a listing. */
function pathsIn(name: string, body: string): string[] | null {
  try {
    return readListing(name, body).map(({ path }) => path)
  } catch (error) {
    if (error instanceof LakeError) return null
    throw error
  }
}

/** Returns the provider's name of a path with placeholder words, the only one that fits; null if none or several do. */
function soleName(endpoint: NamelessPath, listed: readonly string[]): string | null {
  if (listed.includes(endpoint.ask)) return endpoint.ask
  const [only, ...furtherPaths] = fittingPaths(endpoint, listed)
  return only !== undefined && furtherPaths.length === 0 ? only : null
}

async function askOne({ ask, base, run, wire, file }: MetadataAsking, path: string): Promise<MetadataAnswer> {
  const keys = wire.metadata
  if (keys === null) throw new Error('metadata are not requested')
  const id = `${run}-metadata-${path.replaceAll(/[^\w]/g, '-')}`
  const url = metadataUrl(base, keys.template, path)
  const { outcome, row } = await ask({ id, url, file: file(`${id}.json`), bucket: 'metadata' }, { credits: 0 })
  const text =
    outcome.kind === 'body' && (await sizeOf(outcome.file)) <= largestMetadata ? await readText(outcome.file) : ''
  return { path, outcome, read: readMetadata(text, keys), row }
}

/** Returns the metadata in the answers. */
export function readings(answers: readonly MetadataAnswer[]): readonly PathMetadata[] {
  return answers.flatMap(({ read }) => read ?? [])
}

/** Whether the provider has answered about the path. */
const isAnswer = ({ outcome }: MetadataAnswer): boolean => 'at' in outcome && outcome.kind !== 'limited'

/** Whether metadata name placeholders of the catalogue: then they are this provider's own names. */
export function speaksPlaceholders(
  catalogue: Catalogue,
  metadata: readonly Pick<PathMetadata, 'parameters'>[],
): boolean {
  const key = catalogue.wire.queryKeys.exchange
  const lists = metadata.map(({ parameters }) => (Object.hasOwn(parameters, key) ? (parameters[key] ?? []) : []))
  return lists.some((list) => list.some((name) => isOpenExchange(catalogue, name)))
}

/**
 * Merges metadata that were read into those stored: unchanged ones keep the time at which they were first read, those
 * that no longer exist are removed.
 */
export function mergeMetadata(stored: Metadata, answers: readonly MetadataAnswer[], at: number): Metadata {
  const merged = new Map(stored)
  for (const answer of answers) {
    const { path, read } = answer
    if (read === null) {
      if (isAnswer(answer)) merged.delete(path)
      continue
    }
    const { at: _, ...before } = stored.get(path) ?? { at: 0 }
    if (canonical(before) !== canonical(read)) merged.set(path, { ...read, at })
  }
  return merged
}

/** The fields of a commit that name its origin. */
type Named = Pick<Draft, 'job' | 'run' | 'provider' | 'providerMoved'>

/** Stores metadata with the time of their request; null if no request was answered. */
export async function keepMetadata(
  { ledger, deps, ...keeping }: Named & { readonly ledger: Ledger; readonly deps: CommitDeps },
  { answers, listing, listingRow }: MetadataHeard,
): Promise<Version | null> {
  const answered = answers.filter(isAnswer)
  if (answered.length === 0 && listingRow === null) return null
  const read = answered.filter((answer) => answer.read !== null)
  const merged = mergeMetadata(loadMetadata(ledger), read, Math.floor(deps.nowMicros() / 1_000_000))
  const passing = new Map(
    answered.map(({ path, read: metadata }) => [`${prefix}${path}`, metadata === null ? 'none' : 'read']),
  )
  if (isWithout(ledger, answered, deps.nowMicros())) passing.set(absent, 'none')
  if (listingRow !== null) passing.set(listed, listing === null ? 'none' : 'read')
  return await commit(
    ledger,
    {
      ...keeping,
      requests: [...answered.map(({ row }) => row), ...(listingRow === null ? [] : [listingRow])],
      // Unchanged metadata are no news.
      state: Object.fromEntries(read.map(({ path }) => [`${prefix}${path}`, stateOf(merged.get(path))])),
      passing: Object.fromEntries(passing),
    },
    deps,
  )
}

/** Converts metadata to their form in the journal. */
function stateOf({ defaults, tier, bulk, ...rest }: Partial<DatedMetadata> = {}): Json {
  return {
    ...rest,
    ...(defaults !== undefined && { defaults }),
    ...(tier !== undefined && { tier }),
    ...(bulk !== undefined && { bulk }),
  }
}
