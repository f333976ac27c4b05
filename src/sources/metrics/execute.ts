import { isListingDue } from './assets.ts'
import { LakeError } from '../../base/errors.ts'
import { lostReason } from '../../lake/ledger/coverage.ts'
import type { Json } from '../../lake/ledger/entry.ts'
import { describeOutcome } from '../http/outcome.ts'
import { unwatched } from '../../base/stopwatch.ts'
import { day, type Instant } from '../../base/time.ts'
import { type Retry, type Answered, withoutAnswer } from './answers.ts'
import { type AnswerSink, askAll } from './ask-all.ts'
import type { Asking } from './asking.ts'
import { type BatchCommit, commitBatch } from './commit-batch.ts'
import type { Ask, BlockedWindow, Plan } from './plan.ts'
import { notAsked, pendingAsks } from './prepare.ts'
import { withMetricsConnection, type MetricsConnection, type MetricsRun } from './run.ts'
import type { Connection } from '../http/connection.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { settleWhole } from './settle.ts'
import { type AskingState, newAskingState, windowsOf } from './run-summary.ts'
import { unmappedReason } from './unmapped.ts'

/** Executes a plan, after recording it together with further facts. */
export async function execute(metricsRun: MetricsRun, plan: Plan, marks: { readonly [name: string]: Json } = {}) {
  await metricsRun.run.begin({ ...plan.totals, ...marks }, () => metricsRun.tally.actual())
  await withMetricsConnection(metricsRun, async (open) => await askPlan(metricsRun, open, plan))
}

/**
 * Sends the requests of a plan. Those with placeholder names come last, and only if an answer has shown a sandbox; the
 * listing of assets comes after the points, and nothing depends on it.
 */
async function askPlan(metricsRun: MetricsRun, open: MetricsConnection, plan: Plan): Promise<void> {
  const { run, purpose, input, deps, tally } = metricsRun
  const { connection, tell } = open
  const { ledger } = run
  const { catalogue } = input
  const settings = input.settings.metrics
  const state = newAskingState()
  tell({ kind: 'planned', plan })
  const { wire } = catalogue
  const asking: Asking = { run: run.id, ledger, purpose, wire, settings, connection, tell, tally, now: deps.now, state }
  const committing = committer(metricsRun, open)
  const to: AnswerSink = {
    concurrency: settings.concurrency,
    during: deps.during ?? unwatched,
    commitNow: committing.commitNow,
    onSettled: (ask) => tell({ kind: 'settled', ask }),
  }
  const reasonOf = ({ series, endpoint }: Ask): string | null => unmappedReason(catalogue, series, endpoint)
  const guarded = plan.asks.filter((ask) => reasonOf(ask) !== null)
  const unguarded = guarded.length === 0 ? plan.asks : plan.asks.filter((ask) => reasonOf(ask) === null)
  const inRequestOrder = inOrder(ledger, unguarded, input.now)
  try {
    await askAll(asking, inRequestOrder, to)
    await listIfDue(metricsRun, open, state, guarded.length > 0 || committing.holdsBack())
    const sandbox = connection.sandbox()
    if (typeof sandbox === 'string') await askAll(asking, guarded, to)
    const refusedWindows = sandbox === null ? guarded.map((ask) => refusal(ask, reasonOf(ask))) : []
    await committing.commitNow(unasked(metricsRun, [...plan.blocked, ...refusedWindows]))
    const words = connection.gaveUp() ?? (committing.holdsBack() ? 'no answer was usable' : null)
    if (words !== null) state.stopped ??= { by: 'unreachable', until: null, words }
    await account(metricsRun, connection, plan, state, committing)
  } catch (error) {
    // After a mistake in the command nothing was planned, and with a wrong clock nothing may be recorded; the first
    // error is the one to report.
    if (!(error instanceof LakeError && (error.kind === 'usage' || error.kind === 'incomplete')))
      await account(metricsRun, connection, plan, state, committing).catch(() => undefined)
    throw error
  } finally {
    tally.close(connection.sent(), state)
  }
}

/** Records the windows that the run planned and did not request, and those of earlier runs that were killed. */
async function account(
  { run: { id, ledger }, input, deps, purpose, tally }: MetricsRun,
  connection: Pick<Connection, 'provider'>,
  plan: Plan,
  state: AskingState,
  committing: Committer,
): Promise<void> {
  if (purpose.name !== 'fetch' || connection.provider() === null || committing.holdsBack()) return
  const at = Math.floor(deps.now() / 1000)
  const asks = [...plan.asks, ...(await pendingAsks(ledger, input, at, id))]
  const left = notAsked(ledger, asks, state.resolvedWindows, {
    at,
    request: '',
    weekStart: input.settings.metrics.weekStart,
  })
  await committing.commitNow(left.map((leftWindow) => withoutAnswer(leftWindow.ask, leftWindow.coverage)))
  tally.account()
}

/**
 * Orders requests so that those which may be refused, or failed before, come last and delay no others. For a refused
 * path, a series that has points comes first, because its refusal applies to all. Each day begins with a different
 * series, because a single one may be refused alone.
 */
function inOrder(ledger: Ledger, asks: readonly Ask[], now: Instant): readonly Ask[] {
  const rows = ledger.statement(
    `SELECT DISTINCT id FROM series JOIN coverage ON series = n WHERE removed_version IS NULL AND state = 'failed'
     AND coalesce(reason, '') NOT LIKE 'refused since %' AND coalesce(reason, '') <> ?`,
  )
  const failed = new Set(rows.all(lostReason).map(({ id }) => String(id)))
  const rank = ({ refused, series }: Ask): number => {
    if (refused !== undefined) return refused === 'held' ? 1 : 2
    return failed.has(series.id) ? 3 : 0
  }
  const turn = new Map<Ask, number>()
  for (const asksOfPath of Map.groupBy(
    asks.filter(({ refused }) => refused !== undefined),
    ({ refused, endpoint }) => `${refused} ${endpoint.path}`,
  ).values())
    for (const [place, ask] of asksOfPath.entries()) turn.set(ask, (place + Math.floor(now / day)) % asksOfPath.length)
  return asks.toSorted((a, b) => rank(a) - rank(b) || (turn.get(a) ?? 0) - (turn.get(b) ?? 0))
}

/** Requests the listing at most once a day, and at once if no other answer has shown the provider yet. */
async function listIfDue(
  { run: { ledger }, input, deps, purpose }: MetricsRun,
  { connection, list }: Pick<MetricsConnection, 'connection' | 'list'>,
  state: AskingState,
  unsure: boolean,
): Promise<void> {
  if (state.stopped !== null || deps.signal.aborted) return
  const spent = input.maxRequests !== null && connection.sent() >= input.maxRequests
  const probing = unsure && connection.sandbox() === undefined
  const due = purpose.name === 'fetch' && isListingDue(ledger, deps.nowMicros())
  if (!probing && (spent || !due)) return
  const { outcome } = await list()
  if (probing && connection.sandbox() === undefined) {
    const words = describeOutcome(outcome)
    state.stopped = {
      by: 'unreachable',
      until: null,
      words: outcome.kind === 'gone' ? `no answer but ${words}` : words,
    }
  }
}

/** Commits the answers of a run in batches. */
interface Committer {
  /** Commits these together with all that waits; returns the windows to request once more. */
  readonly commitNow: (batch: readonly Answered[]) => Promise<readonly Retry[]>
  /** Whether answers wait because it is not known yet which provider answers. */
  readonly holdsBack: () => boolean
}

/**
 * Builds a committer under the provider's name. Answers wait until the name is known, so that a lake never gets a wrong
 * one.
 */
function committer(
  { run, purpose, input, deps, tally }: MetricsRun,
  { connection, engine, tell }: Pick<MetricsConnection, 'connection' | 'engine' | 'tell'>,
): Committer {
  const { ledger } = run
  const { catalogue, providerMoved, settings } = input
  const { differing } = tally
  const context = {
    run: run.id,
    ledger,
    spool: connection.spool,
    engine,
    settings: settings.metrics,
    differing,
    during: deps.during ?? unwatched,
  }
  const how: BatchCommit = {
    job: purpose.name,
    catalogue,
    providerMoved,
    secrets: settings.secrets,
    deps,
    onBeyond: (series, points) => tell({ kind: 'beyond', series, points }),
  }
  let waiting: Answered[] = []
  const commitNow = async (batch: readonly Answered[]): Promise<readonly Retry[]> => {
    const all = [...waiting, ...batch]
    if (all.length === 0) return []
    const provider = connection.provider()
    waiting = provider === null ? all : []
    if (provider === null) return []
    const done = await commitBatch({ ...context, provider }, how, all)
    tally.add(done)
    purpose.onBatch(done)
    const { version, points_added: points, files_added: files } = done.version
    const windows = windowsOf(done.coverage)
    const violations = done.violations.length + done.incidents.length
    tell({ kind: 'committed', version, points, files, windows, violations })
    return done.again
  }
  return {
    commitNow,
    holdsBack: (): boolean => waiting.length > 0,
  }
}

function refusal({ series, endpoint, interval, settles }: Ask, reason: string | null): BlockedWindow {
  return { series, endpoint, interval, window: settles, reason: reason ?? '', recorded: null }
}

/** Records windows that are not requested; an earlier record keeps its time. */
function unasked(
  { run: { id }, deps, input }: Pick<MetricsRun, 'run' | 'deps' | 'input'>,
  blocked: readonly BlockedWindow[],
): Answered[] {
  const at = Math.floor(deps.now() / 1000)
  const { weekStart } = input.settings.metrics
  return blocked.map(({ series, endpoint, interval, window, reason, recorded }, i) => {
    const ask: Ask = { series, endpoint, interval, window, settles: window, points: 0, credits: 0 }
    const { state, asked_at, request } = recorded ?? { state: 'unsupported', asked_at: at, request: `${id}-b${i}` }
    const rows = settleWhole(ask, state, reason, { at, request: '', weekStart })
    return withoutAnswer(
      ask,
      rows.map((row) => ({ ...row, asked_at, request })),
    )
  })
}
