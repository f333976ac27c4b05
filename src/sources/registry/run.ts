import type { Catalogue } from '../../catalog/catalogue.ts'
import type { LakeError } from '../../base/errors.ts'
import type { Settings } from '../../catalog/settings.ts'
import type { AskEvent } from '../http/ask.ts'
import type { Reply } from '../http/http.ts'
import { header } from '../http/governor.ts'
import type { Outcome } from '../http/outcome.ts'
import { describeSkew } from '../http/skew.ts'
import { commit } from '../../lake/ledger/commit.ts'
import { type Ended, endedEarly } from '../http/request-rows.ts'
import { accessTo, type AskingDeps, type Connection, withConnection } from '../http/connection.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { type Result, type Run, withLake } from '../../lake/ledger/job.ts'
import { quarantineBody } from '../../lake/store/private.ts'
import type { RegistryAsk, RegistryAsking } from './reading.ts'
import { enginesOf, passingDraft, passingFacts, readRaw, type WithEngine } from './staging.ts'

/** What a registry job is told. */
export interface RegistryInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  /** A snapshot that loses much is applied all the same. */
  readonly acceptShrink: boolean
  readonly maxRequests: number | null
  readonly providerMoved: boolean
}

/** What a registry job needs of the world. */
export interface RegistryDeps extends AskingDeps {
  readonly onEvent: (event: RegistryEvent) => void
}

/** What happens on the way, for progress. */
type RegistryEvent =
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
  readonly tally: Tally
  /** Tells the world and the run's log. */
  readonly tell: (event: RegistryEvent) => void
}

/** What the answers of a run said beside their bodies. */
interface Learnt {
  readonly limits: Record<string, string>
  notModified: number
  snapshotLimit: number | null
}

/** The API as a run, or a single look, asks it. */
export function registryApi({
  settings,
  maxRequests,
  providerMoved,
}: RegistryInput): Parameters<typeof withConnection>[1] {
  const limits = { connections: 1, maxBytes: 400_000_000, perMinute: 120, maxRequests }
  return { name: 'registry', keyHeader: 'Authorization', settings, providerMoved, patient: false, ...limits }
}

/** Opens the lake for a job that asks the registry and connects it; what was learnt beside the data is kept. */
export async function connectRegistry<T>(
  { name, lock }: Required<Pick<Parameters<typeof withLake>[0], 'name' | 'lock'>>,
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
      onSkew: (skew: Parameters<typeof describeSkew>[0]) => deps.onEvent({ kind: 'note', text: describeSkew(skew) }),
      onReply: (reply: Reply) => noteLimits(reply, learnt),
    }
    return await withConnection(run, api, deps, listeners, async (connection) => {
      const own = runOf({ ...run, input, deps }, connection, learnt)
      const done = await work(own).catch(async (error: unknown) => {
        // What was asked was asked, but the first error is the one to tell.
        await noteSoft(own, learnt).catch(() => undefined)
        throw error
      })
      await noteSoft(own, learnt)
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
  let asked = 0
  const asking: RegistryAsking = {
    connection,
    requests: [],
    nextId: () => `${id}-${String(++asked).padStart(6, '0')}`,
    held: (address) => {
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

/** What the run learnt beside the data: requests that no commit named, and limits. */
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

/** What has come of a run so far, nothing yet; names are relied on. */
function newTally(version: number) {
  return {
    version,
    /** What the snapshot of this run was put together from; null without one. */
    source: null as 'snapshot' | 'lists' | null,
    /** The date of the snapshot that was added; null when it added nothing. */
    snapshot_date: null as string | null,
    /** Events of types that this program does not know, by type. */
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

type Tally = ReturnType<typeof newTally>

/** What scripts read of a registry run; names are relied on. */
export interface RegistrySummary extends Readonly<Tally>, Ended {
  readonly run: string
  readonly requests: number
  readonly epoch: number
  readonly records: Readonly<Record<string, number>>
}

/** The error that a registry run ends with after its work, with what to do next; null where all is done. */
export function verdictOf(summary: Ended): LakeError | null {
  const next = 'nothing half-read was applied; run the same command again'
  return endedEarly('registry', summary, { subject: 'the registry was not read to the end', next })
}
