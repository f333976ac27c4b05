import { isListingDue } from './assets.ts'
import { LakeError } from '../../base/errors.ts'
import { lostReason } from '../../lake/ledger/coverage.ts'
import type { Json } from '../../lake/ledger/entry.ts'
import { describeOutcome } from '../http/outcome.ts'
import { day } from '../../base/time.ts'
import { type Retry, type Answered, withoutAnswer } from './answers.ts'
import { type AnswerSink, askAll } from './ask-all.ts'
import type { Asking } from './asking.ts'
import { commitBatch } from './batch.ts'
import type { Ask, BlockedWindow, Plan } from './plan.ts'
import { notAsked, pendingAsks } from './prepare.ts'
import { connected, type MetricsRun, type OpenRun } from './run.ts'
import { settleWhole } from './settle.ts'
import { type AskingState, newAskingState, windowsOf } from './run-summary.ts'
import { unmapped } from './unmapped.ts'

/** Does what the plan says; the plan is written down first, with further facts beside it. */
export async function execute(run: MetricsRun, plan: Plan, marks: { readonly [name: string]: Json } = {}) {
  await run.begin({ ...plan.totals, ...marks }, () => run.tally.actual())
  await connected(run, async (open) => await askPlan(open, plan))
}

/**
 * Asks what the plan says. Names that are placeholders are asked last, and only once an answer has shown that the sandbox
 * is there; the listing of assets comes after the points, and nothing depends on it.
 */
async function askPlan(open: OpenRun, plan: Plan): Promise<void> {
  const { connection, tell, input, tally } = open
  const state = newAskingState()
  tell({ kind: 'planned', plan })
  const asking: Asking = { ...open, state }
  const committing = committer(open)
  const to: AnswerSink = {
    concurrency: input.settings.metrics.concurrency,
    commitNow: committing.commitNow,
    onSettled: (ask) => tell({ kind: 'settled', ask }),
  }
  const { catalogue } = input
  const reasonOf = ({ series, endpoint }: Ask): string | null => unmapped(catalogue, series, endpoint)
  const guarded = plan.asks.filter((ask) => reasonOf(ask) !== null)
  const others = inOrder(open, guarded.length === 0 ? plan.asks : plan.asks.filter((ask) => reasonOf(ask) === null))
  try {
    await askAll(asking, others, to)
    await listIfDue(open, state, guarded.length > 0 || committing.holdsBack())
    const sandbox = connection.sandbox()
    if (typeof sandbox === 'string') await askAll(asking, guarded, to)
    const refused = sandbox === null ? guarded.map((ask) => refusal(ask, reasonOf(ask))) : []
    await committing.commitNow(unasked(open, [...plan.blocked, ...refused]))
    const words = connection.gaveUp() ?? (committing.holdsBack() ? 'no answer was usable' : null)
    if (words !== null) state.stopped ??= { by: 'unreachable', until: null, words }
    await account(open, plan, state, committing)
  } catch (error) {
    // A slip of the call planned nothing, by a wrong clock nothing is put on record; and the first error is the one to tell.
    if (!(error instanceof LakeError && (error.kind === 'usage' || error.kind === 'incomplete')))
      await account(open, plan, state, committing).catch(() => undefined)
    throw error
  } finally {
    tally.close(connection.sent(), state)
  }
}

/** Puts on record what the run planned and did not ask, and what runs did not that were killed before it. */
async function account(open: OpenRun, plan: Plan, state: AskingState, committing: Committer): Promise<void> {
  const { id, input, deps, ledger, purpose, tally, connection } = open
  if (purpose.name !== 'fetch' || connection.provider() === null || committing.holdsBack()) return
  const at = Math.floor(deps.now() / 1000)
  const asks = [...plan.asks, ...(await pendingAsks(ledger, input, at, id))]
  const left = notAsked(ledger, asks, state.settled, { at, request: '', weekStart: input.settings.metrics.weekStart })
  await committing.commitNow(left.map((one) => withoutAnswer(one.ask, one.coverage)))
  tally.account()
}

/**
 * What may be refused, or failed before, comes last, lest a part that is out of order keeps a run from all others. Of a
 * refused path a series that has points comes first, whose refusal is one of all. Each day begins with a different series,
 * because one may be refused alone.
 */
function inOrder({ ledger, input }: OpenRun, asks: readonly Ask[]): readonly Ask[] {
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
  for (const own of Map.groupBy(
    asks.filter(({ refused }) => refused !== undefined),
    ({ refused, endpoint }) => `${refused} ${endpoint.path}`,
  ).values())
    for (const [place, ask] of own.entries()) turn.set(ask, (place + Math.floor(input.now / day)) % own.length)
  return asks.toSorted((a, b) => rank(a) - rank(b) || (turn.get(a) ?? 0) - (turn.get(b) ?? 0))
}

/** The listing, at most once a day; at once where nothing else has shown yet who answers. */
async function listIfDue(open: OpenRun, state: AskingState, unsure: boolean): Promise<void> {
  const { input, deps, ledger, purpose, connection } = open
  if (state.stopped !== null || deps.signal.aborted) return
  const spent = input.maxRequests !== null && connection.sent() >= input.maxRequests
  const probing = unsure && connection.sandbox() === undefined
  const due = purpose.name === 'fetch' && isListingDue(ledger, deps.nowMicros())
  if (!probing && (spent || !due)) return
  const { outcome } = await open.list()
  if (probing && connection.sandbox() === undefined)
    state.stopped = { by: 'unreachable', until: null, words: describeOutcome(outcome) }
}

/** Commits the answers of a run in batches. */
interface Committer {
  /** Commits these together with all that waits; returns the windows to request once more. */
  readonly commitNow: (batch: readonly Answered[]) => Promise<readonly Retry[]>
  /** Whether answers wait because it is not known yet which provider answers. */
  readonly holdsBack: () => boolean
}

/** Commits batches under the provider's name; what comes before the name is known waits, lest a lake gets a wrong one. */
function committer(open: OpenRun): Committer {
  let waiting: Answered[] = []
  const commitNow = async (batch: readonly Answered[]): Promise<readonly Retry[]> => {
    const all = [...waiting, ...batch]
    if (all.length === 0) return []
    const provider = open.connection.provider()
    waiting = provider === null ? all : []
    if (provider === null) return []
    const done = await commitBatch({ ...open, provider }, all)
    open.tally.add(done)
    open.purpose.onBatch(done)
    const { version, points_added: points, files_added: files } = done.version
    const windows = windowsOf(done.coverage)
    const violations = done.violations.length + done.incidents.length
    open.tell({ kind: 'committed', version, points, files, windows, violations })
    return done.again
  }
  return {
    commitNow,
    holdsBack: (): boolean => waiting.length > 0,
  }
}

function refusal({ series, endpoint, interval, settles }: Ask, reason: string | null): BlockedWindow {
  return { series, endpoint, interval, window: settles, reason: reason ?? '', told: null }
}

/** Records windows that are not requested; what was recorded of them before keeps its time. */
function unasked({ id, deps, input }: MetricsRun, blocked: readonly BlockedWindow[]): Answered[] {
  const at = Math.floor(deps.now() / 1000)
  const { weekStart } = input.settings.metrics
  return blocked.map(({ series, endpoint, interval, window, reason, told }, i) => {
    const ask: Ask = { series, endpoint, interval, window, settles: window, points: 0, credits: 0 }
    const { state, asked_at, request } = told ?? { state: 'unsupported', asked_at: at, request: `${id}-b${i}` }
    const rows = settleWhole(ask, state, reason, { at, request: '', weekStart })
    return withoutAnswer(
      ask,
      rows.map((row) => ({ ...row, asked_at, request })),
    )
  })
}
