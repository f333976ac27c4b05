import { withCleanup } from '../../base/cleanup.ts'
import { accessTo, type AskingDeps, type Connection, withConnection } from '../http/connection.ts'
import { type Result, type Run, withLake } from '../../lake/ledger/job.ts'
import type { AskOne } from '../http/request-rows.ts'
import type { AskEvent } from '../http/ask.ts'
import type { Outcome } from '../http/outcome.ts'
import { newReach, type Reach } from '../http/reach.ts'
import { type RetryPolicy, usualRetries } from '../http/retry.ts'
import type { Skew } from '../http/skew.ts'
import { Engine } from '../../lake/store/engine.ts'
import type { CommitDeps } from '../../lake/ledger/commit.ts'
import type { BatchResult } from './answers.ts'
import { metricsAccess } from './api.ts'
import { type ListingAnswer, refreshAssets } from './assets.ts'
import {
  askMetadata,
  loadMetadata,
  keepMetadata,
  metadataPerMinute,
  metadataRetries,
  type MetadataDue,
  readings,
  speaksPlaceholders,
} from './metadata.ts'
import type { Ask, Plan } from './plan.ts'
import type { PlanInput } from './prepare.ts'
import { RunTally, type WindowCounts } from './run-summary.ts'

/** Bytes of the largest body to store; the window of a larger one is requested in halves. */
export const maxBodyBytes = 1_000_000_000
const pollRetries: RetryPolicy = { ...usualRetries, attempts: 3 }

/** The input of every job that requests points. */
export interface MetricsInput extends Pick<PlanInput, 'settings' | 'catalogue' | 'now'> {
  readonly maxRequests: number | null
  readonly providerMoved: boolean
}

/** The dependencies of a job that requests points. */
export interface IngestDeps extends AskingDeps {
  readonly onEvent: (event: IngestEvent) => void
}

/** The purpose of a run that requests points: a fetch or a verify. */
export interface Purpose {
  readonly name: 'fetch' | 'verify'
  /** Maximum credits for windows; null for the cost of the plan. */
  readonly budget: number | null
  /** Whether the run is repeated in minutes, so that it can give up early. */
  readonly polls?: boolean
  readonly onBatch: (done: BatchResult) => void
}

/** One run that requests points. */
export interface MetricsRun {
  readonly run: Run
  readonly purpose: Purpose
  readonly input: MetricsInput
  readonly deps: IngestDeps
  readonly tally: RunTally
  /** Reachability of the API, learned from every request of the run. */
  readonly reach: Reach
}

/** The open connection of a run to the metrics API, with the dependencies of converting. */
export interface MetricsConnection {
  readonly connection: Connection
  /** Opens the engine on first use; a run without usable answers needs none. */
  readonly engine: () => Promise<Engine>
  /** Reports an event to the caller and the run's log. */
  readonly tell: (event: IngestEvent) => void
  /** Requests the listing of assets, under its own limit. */
  readonly list: () => Promise<ListingAnswer>
  /**
   * Requests the metadata that are due, under the same limit; returns the provider's listing of paths if it was
   * requested.
   */
  readonly describe: (due: MetadataDue) => Promise<readonly string[] | null>
}

/** Opens the lake for a job that requests points; only one job of a kind runs at a time. */
export async function withMetrics<T>(
  input: MetricsInput,
  deps: IngestDeps,
  purpose: Purpose,
  work: (run: MetricsRun) => Promise<Result<T>>,
): Promise<T> {
  accessTo('metrics', input.settings)
  const { name } = purpose
  return await withLake(
    { root: input.settings.data, name, lock: name === 'fetch' ? 'metrics' : name },
    deps,
    async (run) =>
      await work({ run, purpose, input, deps, tally: new RunTally(run.ledger.head().version), reach: newReach() }),
  )
}

/** Connects the run with the API. */
export async function withMetricsConnection(
  { run, purpose, input, deps, tally, reach }: MetricsRun,
  use: (open: MetricsConnection) => Promise<void>,
): Promise<void> {
  const { settings, maxRequests, providerMoved } = input
  const { requestsPerMinute: perMinute } = settings.metrics
  const api = {
    ...metricsAccess(input, maxBodyBytes),
    perMinute,
    maxRequests,
    providerMoved,
    patient: true,
    reach,
    retry: purpose.polls === true ? pollRetries : usualRetries,
  }
  const { onEvent } = deps
  const listeners = {
    onAsk: (event: AskEvent) => onEvent({ kind: 'asking', event }),
    onSkew: (skew: Skew) => onEvent({ kind: 'skew', skew }),
  }
  await withConnection(run, api, deps, listeners, async (connection) => {
    let opened: Promise<Engine> | undefined
    const engine = async (): Promise<Engine> =>
      await (opened ??= Engine.open(':memory:', { tempDirectory: connection.spool.file('duckdb') }))
    const tell = (event: IngestEvent): void => {
      const line = logged(event, deps.detailedLog ?? false)
      if (line !== null) connection.log.note(...line)
      onEvent(event)
    }
    const beside = connection.beside(metadataPerMinute, metadataRetries)
    const list = async (): Promise<ListingAnswer> => {
      const listed = await refreshAssets({ run, input, deps, engine, connection, ask: beside })
      tell({ kind: 'listing', assets: listed.assets, fresh: listed.fresh, outcome: listed.outcome.kind })
      if (listed.version) tally.version(listed.version)
      return listed
    }
    const describe = async (due: MetadataDue): Promise<readonly string[] | null> =>
      await refreshMetadata({ run, input, deps, tally, connection, tell, ask: beside }, due)
    await withCleanup(
      async () => await use({ connection, engine, tell, list, describe }),
      async () => {
        await connection.hangUp()
        if (opened !== undefined) (await opened).close()
      },
    )
  })
}

/** Dependencies of requesting and storing metadata. */
interface MetadataRefresh {
  readonly run: Pick<Run, 'id' | 'ledger'>
  readonly input: MetricsInput
  readonly deps: CommitDeps
  readonly tally: RunTally
  readonly connection: Connection
  readonly tell: (event: IngestEvent) => void
  /** Sends a request under a limit of its own; its refusals stop nothing else. */
  readonly ask: AskOne
}

/** Requests the metadata that are due, and stores them once the provider is known. */
async function refreshMetadata(
  { run: { id, ledger }, input, deps, tally, connection, tell, ask }: MetadataRefresh,
  due: MetadataDue,
): Promise<readonly string[] | null> {
  const { base, spool, sandbox } = connection
  const { catalogue, settings, providerMoved } = input
  const { concurrency } = settings.metrics
  const asking = { ask, base, run: id, wire: catalogue.wire, concurrency, file: spool.file }
  const storedReadings = [...loadMetadata(ledger).values()]
  const metadataAnswers = await askMetadata(asking, due, {
    isSandbox: () => typeof sandbox() === 'string',
    takesPlaceholders: (now) => speaksPlaceholders(catalogue, [...storedReadings, ...readings(now)]),
  })
  const { answers } = metadataAnswers
  tell({ kind: 'metadata', asked: answers.length, read: answers.filter(({ read }) => read !== null).length })
  const provider = connection.provider()
  if (provider === null) return null
  const version = await keepMetadata({ ledger, job: 'fetch', run: id, provider, providerMoved, deps }, metadataAnswers)
  if (version) tally.version(version)
  return metadataAnswers.listing
}

/** A step of a run that requests points, for progress and the run's log. */
export type IngestEvent =
  | { readonly kind: 'planned'; readonly plan: Plan }
  /** A request with this id is about to be sent. */
  | { readonly kind: 'request'; readonly id: string; readonly ask: Ask }
  | { readonly kind: 'asking'; readonly event: AskEvent }
  /** A request has its final outcome. */
  | { readonly kind: 'answered'; readonly ask: Ask; readonly outcome: Outcome }
  /** A window of the plan is answered, with all the parts that it was cut into. */
  | { readonly kind: 'settled'; readonly ask: Ask }
  | {
      readonly kind: 'committed'
      readonly version: number
      readonly points: number
      readonly files: number
      readonly windows: WindowCounts
      readonly violations: number
    }
  /** The clocks of this machine and of the provider differ by more than ten minutes. */
  | { readonly kind: 'skew'; readonly skew: Skew }
  /** The listing of assets was requested: the number of assets in it, and of new or changed ones. */
  | { readonly kind: 'listing'; readonly assets: number | null; readonly fresh: number; readonly outcome: string }
  /** Metadata were requested: the number of paths, and of those that have any. */
  | { readonly kind: 'metadata'; readonly asked: number; readonly read: number }
  /** New points of a series contain integers that a double cannot represent; their text is in `extra`. */
  | { readonly kind: 'beyond'; readonly series: string; readonly points: number }

/** Returns the log line of an event; null if the connection logs it, or if only a detailed log contains it. */
function logged(event: IngestEvent, detailed: boolean): readonly [name: string, facts: object] | null {
  const { kind, ...facts } = event
  switch (event.kind) {
    case 'planned':
      return [kind, { ...event.plan.totals, blocked: event.plan.blocked.length, notes: event.plan.notes }]
    case 'request':
    case 'asking':
    case 'skew':
      return null
    case 'answered':
      return detailed ? ['outcome', { series: event.ask.series.id, outcome: event.outcome.kind }] : null
    case 'settled':
      return detailed ? [kind, { series: event.ask.series.id }] : null
    case 'committed':
      return ['commit', facts]
    case 'beyond':
      return ['beyond a double', facts]
    case 'listing':
    case 'metadata':
      return [kind, facts]
    default:
      return event satisfies never
  }
}
