import type { Catalogue } from '../../catalog/catalogue.ts'
import type { LakeError } from '../../base/errors.ts'
import type { Settings } from '../../catalog/settings.ts'
import type { AskEvent } from '../http/ask.ts'
import type { Reply } from '../http/http.ts'
import { header } from '../http/governor.ts'
import type { Outcome } from '../http/outcome.ts'
import { describeSkew, type Skew } from '../http/skew.ts'
import { commit } from '../../lake/ledger/commit.ts'
import { type Ended, endedEarly } from '../http/request-rows.ts'
import { accessTo, type AskingDeps, type Connection, withConnection, type Api } from '../http/connection.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { type Job, type Result, type Run, withLake } from '../../lake/ledger/job.ts'
import { quarantineBody } from '../../lake/store/quarantine.ts'
import type { RegistryAsk, RegistryAsking } from './reading.ts'
import { enginesOf, passingDraft, passingFacts, readRaw, type WithEngine } from './staging.ts'

/** The input of a registry job. */
export interface RegistryInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  /** Whether a snapshot that loses much is applied all the same. */
  readonly acceptShrink: boolean
  /** The most requests, repeats included; null for any number. */
  readonly maxRequests: number | null
  /** Whether the provider's address changed and the user confirmed it. */
  readonly providerMoved: boolean
}

/** The dependencies of a registry job. */
export interface RegistryDeps extends AskingDeps {
  readonly onEvent: (event: RegistryEvent) => void
}

/** A step of a registry job, for progress. */
export type RegistryEvent =
  | { readonly kind: 'answered'; readonly ask: RegistryAsk; readonly outcome: Outcome }
  | { readonly kind: 'asking'; readonly event: AskEvent }
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'committed'; readonly version: number; readonly files: number }

/** One run of a registry job: its lake and its connection are open. */
export interface RegistryRun extends Run {
  readonly input: RegistryInput
  readonly deps: RegistryDeps
  readonly withEngine: WithEngine
  readonly connection: Connection
  readonly asking: RegistryAsking
  readonly tally: RegistryTally
  /** Reports an event to the caller and the run's log. */
  readonly tell: (event: RegistryEvent) => void
}

/** The reports in the headers of a run's answers. */
interface Learnt {
  readonly limits: Record<string, string>
  notModified: number
  snapshotLimit: number | null
}

/** Returns the settings for requests to the registry, by a run or for a single look. */
export function registryApi({
  settings,
  maxRequests,
  providerMoved,
}: Pick<RegistryInput, 'settings' | 'maxRequests' | 'providerMoved'>): Api {
  const limits = { connections: 1, maxBytes: 400_000_000, perMinute: 120, maxRequests }
  return { name: 'registry', keyHeader: 'Authorization', settings, providerMoved, patient: false, ...limits }
}

/**
 * Opens the lake for a job that requests the registry, and connects it; facts other than data are recorded at the end.
 */
export async function connectRegistry<T>(
  { name, lock }: Required<Pick<Job, 'name' | 'lock'>>,
  input: RegistryInput,
  deps: RegistryDeps,
  work: (run: RegistryRun) => Promise<Result<T>>,
): Promise<T> {
  const api = registryApi(input)
  accessTo(api.name, input.settings)
  return await withLake({ root: input.settings.data, name, lock }, deps, async (run) => {
    const learnt: Learnt = { limits: {}, notModified: 0, snapshotLimit: null }
    const listeners = {
      onAsk: (event: AskEvent) => deps.onEvent({ kind: 'asking', event }),
      onSkew: (skew: Skew) => deps.onEvent({ kind: 'note', text: describeSkew(skew) }),
      onReply: (reply: Reply) => noteLimits(reply, learnt),
    }
    return await withConnection(run, api, deps, listeners, async (connection) => {
      const registryRun = runOf({ ...run, input, deps }, connection, learnt)
      const done = await work(registryRun).catch(async (error: unknown) => {
        // Requests that were sent are recorded, but the first error is the one to report.
        await noteSoft(registryRun, learnt).catch(() => undefined)
        throw error
      })
      await noteSoft(registryRun, learnt)
      return done
    })
  })
}

function runOf(opened: Run & Pick<RegistryRun, 'input' | 'deps'>, connection: Connection, learnt: Learnt): RegistryRun {
  const { id, deps, ledger, input } = opened
  const tell = (event: RegistryEvent): void => {
    if (event.kind === 'note') connection.log.note('note', { text: event.text })
    if (event.kind === 'committed') connection.log.note('commit', { version: event.version, files: event.files })
    deps.onEvent(event)
  }
  const passing = passingFacts(ledger)
  const raw = new Set(liveFiles(ledger, { table: 'raw' }).map((file) => file.path))
  let requestCount = 0
  const asking: RegistryAsking = {
    connection,
    requests: [],
    nextId: () => `${id}-${String(++requestCount).padStart(6, '0')}`,
    storedAnswer: (address) => {
      const tag = passing.tags[address]
      return tag && raw.has(tag.raw)
        ? { etag: tag.etag, read: async () => await readRaw(ledger.root, tag.raw) }
        : undefined
    },
    onOutcome: (ask, outcome) => {
      tell({ kind: 'answered', ask, outcome })
      if (outcome.kind === 'not_modified') learnt.notModified++
      if (outcome.kind === 'limited' && outcome.code === 'snapshot_limit' && outcome.waitMs !== null)
        learnt.snapshotLimit = Math.ceil(deps.now() + outcome.waitMs)
    },
    quarantine: async (body, request, reason) =>
      await quarantineBody(ledger.root, body, request, reason, input.settings.secrets),
    now: deps.now,
  }
  const tally = newTally(ledger.head().version)
  return { ...opened, connection, withEngine: enginesOf(connection.spool), asking, tally, tell }
}

const limitHeaders = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-quota-daily-limit',
  'x-quota-daily-remaining',
]

function noteLimits(reply: Reply, learnt: Learnt): void {
  for (const name of limitHeaders) {
    const value = header(reply.headers, name)
    if (value !== null && value.length < 100) learnt.limits[name] = value
  }
}

/** Records the facts other than data that the run learned: requests that no commit named, and limits. */
async function noteSoft({ id, job, ledger, deps, asking, connection }: RegistryRun, learnt: Learnt): Promise<void> {
  const provider = connection.provider()
  if (provider === null) return
  const before = passingFacts(ledger)
  const passing = passingDraft({
    limits: { ...before.limits, ...learnt.limits },
    notModified: before.notModified + learnt.notModified,
    ...(learnt.snapshotLimit !== null && { snapshotLimit: learnt.snapshotLimit }),
  })
  await commit(ledger, { job, run: id, provider, requests: asking.requests, passing }, deps)
}

/** The results of a registry run so far; scripts rely on the names. */
export interface RegistryTally {
  /** The newest version. */
  version: number
  /** Source of this run's snapshot; null without one. */
  source: 'snapshot' | 'lists' | null
  /** The date of the snapshot that was added; null if it added nothing. */
  snapshot_date: string | null
  /** Events of types that this program does not know, by type. */
  readonly unknown: Record<string, number>
  /** Events of the feed that were read. */
  events: number
  /** Pages of the feed that were read. */
  pages: number
  /** Records that appeared. */
  opened: number
  /** Records with a new version. */
  updated: number
  /** Records that went. */
  closed: number
  files_added: number
  /** Contradictions that were found. */
  findings: number
  /** Keys, values and types that were never seen before, without those of the first snapshot. */
  schema_changes: number
  /** Whether the feed has begun a new epoch. */
  new_epoch: boolean
}

/** Creates the tally of a run before its first answer. */
function newTally(version: number): RegistryTally {
  return {
    version,
    source: null,
    snapshot_date: null,
    unknown: Object.create(null) as Record<string, number>,
    events: 0,
    pages: 0,
    opened: 0,
    updated: 0,
    closed: 0,
    files_added: 0,
    findings: 0,
    schema_changes: 0,
    new_epoch: false,
  }
}

/** The result of a registry run for scripts, which depend on the names. */
export interface RegistrySummary extends Readonly<RegistryTally>, Ended {
  /** Name of the run. */
  readonly run: string
  /** Requests sent, repeats included. */
  readonly requests: number
  /** The epoch of the feed, from 1; 0 before the first snapshot. */
  readonly epoch: number
  /** Open records by table. */
  readonly records: Readonly<Record<string, number>>
}

/** Returns the error with which a registry run ends after its work, with the next step; null if all is done. */
export function verdictOf(summary: Ended): LakeError | null {
  const next = 'nothing half-read was applied; run the same command again'
  return endedEarly('registry', summary, { subject: 'the registry was not read to the end', next })
}
