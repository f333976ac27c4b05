import type { Outcome } from '../http/outcome.ts'
import { readText, sizeOf } from '../../lake/store/files.ts'
import pLimit from 'p-limit'
import { type Endpoint, isNameless } from '../../catalog/catalogue.ts'
import type { Wire } from '../../catalog/wire.ts'
import { askedPaths, type Selection } from '../../catalog/series.ts'
import type { AskOne } from '../http/request-rows.ts'
import { type DatedMetadata, type PathMetadata, readMetadata } from './metadata-readings.ts'
import { metadataUrl, type MetricsProvider } from './api.ts'
import { type RetryPolicy, usualRetries } from '../http/retry.ts'
import { commit, type CommitDeps, type Draft, type Version } from '../../lake/ledger/commit.ts'
import { canonical, type RequestRow } from '../../lake/ledger/entry.ts'
import { heldPassing, heldPassingFrom, heldStates } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { listOf, mapOf, orNull, real, shape, text } from '../../base/value-checks.ts'
import type { MetricsSettings } from '../../catalog/settings.ts'
import { day } from '../../base/time.ts'

/** The metadata of each path, by its name on the wire. */
export type Metadata = ReadonlyMap<string, DatedMetadata>

/** Requests a minute: metadata and listings stand in a bucket of their own, and cost nothing. */
export const metadataPerMinute = 1_200

/** They are worth few repeats: without them a fetch finds out by trying. */
export const metadataRetries: RetryPolicy = { ...usualRetries, attempts: 3, limitedAttempts: 2 }

/** State and notes of a path are kept under this and its name: unchanged metadata is no news, and so no version. */
const prefix = 'metadata/'
/** Noted where the provider has none at all. */
const absent = 'metadata'
const patience = 7 * day * 1_000_000
/** So many paths without metadata, and none with any, are a provider without metadata. */
const fewPaths = 3
const largest = 10_000_000

/** The name of an endpoint's path as the provider knows it. */
export const wirePathOf = ({ paths }: MetricsSettings, { path, ask }: Endpoint): string => paths[path] ?? ask

const dated = shape({ parameters: mapOf(listOf(text)), min: orNull(real), at: real })

/** The stored metadata, whether or not they still count. */
export function heldMetadata(ledger: Ledger): Metadata {
  return new Map(heldStates(ledger, prefix, dated).map(({ key, value }) => [key, value]))
}

/** The stored metadata that count: none of a path, or of a provider, that had no metadata when last requested. */
export function standingMetadata(ledger: Ledger): Metadata {
  const without = heldPassing(ledger, absent)?.at ?? Number.NEGATIVE_INFINITY
  const notes = heldPassingFrom(ledger, prefix)
  const counts = (path: string): boolean => {
    const { value = 'read', at = 0 } = notes.get(path) ?? {}
    return value !== 'none' && at >= without
  }
  return new Map([...heldMetadata(ledger)].filter(([path]) => counts(path)))
}

/** Whether these answers show a provider without metadata: no path has any, and of no other one were any read lately. */
export function isWithout(ledger: Ledger | null, answers: readonly MetadataAnswer[], nowMicros: number): boolean {
  const answered = answers.filter(isAnswer)
  if (answered.length < fewPaths || answered.some(({ read }) => read !== null)) return false
  const asked = new Set(answered.map(({ path }) => path))
  const others = ledger === null ? [] : [...heldPassingFrom(ledger, prefix)].filter(([path]) => !asked.has(path))
  return !others.some(([, { value, at }]) => value === 'read' && Math.abs(nowMicros - at) < patience)
}

/** Paths whose metadata are to be requested, by their names on the wire. */
export interface MetadataDue {
  /** Paths with real names. */
  readonly plain: readonly string[]
  /** Paths with placeholder names, which are requested from a sandbox only. */
  readonly guarded: readonly string[]
}

/** The selected paths whose metadata were not requested within seven days. */
export function metadataDue(
  { settings, catalogue, selections }: MetadataInput,
  ledger: Ledger | null,
  nowMicros: number,
): MetadataDue {
  const provider = ledger?.head().provider ?? null
  const isOld = (key: string): boolean => {
    const asked = ledger === null ? undefined : heldPassing(ledger, key)
    return asked === undefined || Math.abs(nowMicros - asked.at) >= patience
  }
  const due = (unmapped: boolean): string[] => {
    if (catalogue.wire.metadata === null || !isOld(absent)) return []
    const wanted = selections.flatMap(({ paths }) => askedPaths(catalogue, paths ?? ['*']))
    const names = wanted.filter((endpoint) => isNameless(endpoint, settings.metrics.paths) === unmapped)
    return [...new Set(names.map((endpoint) => wirePathOf(settings.metrics, endpoint)))].filter((path) =>
      isOld(`${prefix}${path}`),
    )
  }
  // Whoever is known to be real is never asked for placeholders.
  return { plain: due(false), guarded: provider?.metrics === undefined || provider.synthetic ? due(true) : [] }
}

/** A provider and what is selected of it. */
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
  /** The path of a temporary file. */
  readonly file: (name: string) => string
}

/** The answer to a request for the metadata of one path. */
export interface MetadataAnswer {
  /** The path's name on the wire. */
  readonly path: string
  readonly outcome: Outcome
  /** Null if the path has no metadata. */
  readonly read: PathMetadata | null
  /** The request as the ledger records it. */
  readonly row: RequestRow
}

/**
 * Asks for the metadata of the paths, at once as far as the limit allows; where the first few have none, nobody asks for
 * the others. Names that stand for real ones are asked of a sandbox only. No answer is a failure.
 */
export async function askMetadata(
  asking: MetadataAsking,
  { plain, guarded }: MetadataDue,
  isSandbox: (answers: readonly MetadataAnswer[]) => boolean,
): Promise<MetadataAnswer[]> {
  const limit = pLimit(asking.concurrency)
  const all = async (paths: readonly string[]): Promise<MetadataAnswer[]> =>
    await Promise.all(paths.map((path) => limit(askOne, asking, path)))
  const answers: MetadataAnswer[] = []
  for (const path of plain.slice(0, fewPaths)) {
    const answer = await askOne(asking, path)
    answers.push(answer)
    if (answer.read !== null || !isAnswer(answer)) break
  }
  if (answers.at(-1)?.read === null) return answers
  answers.push(...(await all(plain.slice(answers.length))))
  if (isSandbox(answers)) answers.push(...(await all(guarded)))
  return answers
}

async function askOne({ ask, base, run, wire, file }: MetadataAsking, path: string): Promise<MetadataAnswer> {
  const keys = wire.metadata
  if (keys === null) throw new Error('metadata are not asked for')
  const id = `${run}-metadata-${path.replaceAll(/[^\w]/g, '-')}`
  const url = metadataUrl(base, keys.template, path)
  const { outcome, row } = await ask({ id, url, file: file(`${id}.json`), bucket: 'metadata' }, { credits: 0 })
  const text = outcome.kind === 'body' && (await sizeOf(outcome.file)) <= largest ? await readText(outcome.file) : ''
  return { path, outcome, read: readMetadata(text, keys), row }
}

/** Whether the provider has said anything of the path. */
const isAnswer = ({ outcome }: MetadataAnswer): boolean => 'at' in outcome && outcome.kind !== 'limited'

/** What was read over what was known: what says the same keeps the instant at which it was first read, what is no more goes. */
export function mergeMetadata(held: Metadata, answers: readonly MetadataAnswer[], at: number): Metadata {
  const merged = new Map(held)
  for (const answer of answers) {
    const { path, read } = answer
    if (read === null) {
      if (isAnswer(answer)) merged.delete(path)
      continue
    }
    const { at: _, ...before } = held.get(path) ?? { at: 0 }
    if (canonical(before) !== canonical(read)) merged.set(path, { ...read, at })
  }
  return merged
}

/** Whose commit it is. */
type Named = Pick<Draft, 'job' | 'run' | 'provider' | 'providerMoved'>

/** Keeps what was read, and when it was asked for; null where nobody has answered. */
export async function keepMetadata(
  { ledger, deps, ...keeping }: Named & { readonly ledger: Ledger; readonly deps: CommitDeps },
  answers: readonly MetadataAnswer[],
): Promise<Version | null> {
  const answered = answers.filter(isAnswer)
  if (answered.length === 0) return null
  const read = answered.filter((answer) => answer.read !== null)
  const merged = mergeMetadata(heldMetadata(ledger), read, Math.floor(deps.nowMicros() / 1_000_000))
  const passing = new Map(answered.map(({ path, read: own }) => [`${prefix}${path}`, own === null ? 'none' : 'read']))
  if (isWithout(ledger, answered, deps.nowMicros())) passing.set(absent, 'none')
  return await commit(
    ledger,
    {
      ...keeping,
      requests: answered.map(({ row }) => row),
      // What says the same as before is no news.
      state: Object.fromEntries(read.map(({ path }) => [`${prefix}${path}`, { ...merged.get(path) }])),
      passing: Object.fromEntries(passing),
    },
    deps,
  )
}
